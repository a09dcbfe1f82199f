"""Models on the Hugging Face hub (extra `hub`): folders of a repository, reached through huggingface_hub."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from metarank._util.extra import require_extra
from metarank._util.files import whole_folder
from metarank.persist.card import README
from metarank.persist.trust import ModelError

HUB = "hf://"


def hub() -> Any:
    """The library that reaches the hub."""
    require_extra("hub", "huggingface_hub")
    import huggingface_hub

    return huggingface_hub


def fetched(place: str, manifest: str, listed: Callable[[Path], Iterable[str]]) -> Path:
    """The folder of a model at "hf://OWNER/NAME" or "hf://OWNER/NAME@REVISION", downloaded once.

    Of the repository only the manifest, what it lists and the card are downloaded. They stand in a folder
    beside the library's own copies, to which its files are links where the file system has hard links.
    """
    match = re.fullmatch(rf"{HUB}([\w.-]+/[\w.-]+)(?:@(.+))?", place)
    if match is None:
        raise ValueError(f"path must be hf://OWNER/NAME or hf://OWNER/NAME@REVISION, got {place!r}")
    repository, revision = match.groups()

    def download(names: Iterable[str], revision: str | None) -> Path:
        patterns = [glob.escape(name) for name in names]
        return Path(hub().snapshot_download(repository, revision=revision, allow_patterns=patterns))

    found = download([manifest], revision)
    target = found.parents[1] / "metarank" / found.name  # the name is that of the commit
    if not target.exists():
        with whole_folder(target) as folder:
            _link(found / manifest, folder, place)
            names = list(listed(folder))
            download([*names, README], found.name)
            for name in names:
                _link(found / name, folder, place)
            with suppress(ModelError):
                _link(found / README, folder, place)
    return target


def _link(file: Path, folder: Path, place: str) -> None:
    """A file of the library's, which may be a link, as a file of a folder."""
    if not file.is_file():
        raise ModelError(f"{place} is not a complete metarank model: {file.name!r} is missing")
    try:
        os.link(file.resolve(), folder / file.name)
    except OSError:
        shutil.copyfile(file, folder / file.name)

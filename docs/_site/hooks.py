"""The hooks of MkDocs: which pages the site has, where links lead, and whether all that it shows is there.

Pages are the files of docs/ and of other folders of the repository, as they stand: README.md is the first
page, and the pages of experiments/ are below the benchmarks. Their links are those of the repository; here
they become links of the site. Notebooks are run, and shown with what they print and draw. The reference has
a page for each public module, made of its docstrings.
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import notebooks
import reference
from written import faults_of

ROOT = Path(__file__).resolve().parents[2]
log = logging.getLogger("mkdocs.hooks.metarank")

# Files of the repository that are on the site, by their place there; those of docs/ keep theirs.
PLACES = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "GUARANTEES.md": "project/guarantees.md",
    "SECURITY.md": "project/security.md",
    "data/README.md": "data/README.md",
}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def places() -> dict[str, str]:
    """Where each file of the repository stands on the site."""
    found = dict(PLACES)
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "pictures").iterdir()]):
        name = path.relative_to(ROOT).as_posix()
        found.setdefault(name, name.removeprefix("docs/"))
    for path in notebooks.BOOKS:
        found[path.relative_to(ROOT).as_posix()] = f"notebooks/{path.stem}.md"
    for pattern in ("*.md", "*/*.md"):
        for path in sorted((ROOT / "experiments").glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            found[name] = name
    return found


def experiments() -> list[Any]:
    """The pages of experiments, for the menu."""
    first = ["experiments/README.md", "experiments/tried.md"]
    return [
        *first,
        *(name for name in places() if re.fullmatch(r"experiments/.+\.md", name) and name not in first),
    ]


def on_config(config: Any) -> Any:
    for part in config.nav:
        if "Reference" in part:
            part["Reference"] = [*reference.menu(), *part["Reference"]]
        if "Benchmarks" in part:
            part["Benchmarks"] = [*part["Benchmarks"], {"Pages of experiments": experiments()}]
    return config


def on_files(files: Files, config: Any) -> Files:
    for path in notebooks.BOOKS:
        text = notebooks.page(path, ROOT / "build" / "notebooks")
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    for name, place in places().items():
        if name.endswith(".ipynb"):
            continue
        there = files.get_file_from_path(name.removeprefix("docs/")) if name.startswith("docs/") else None
        if there is not None and there.src_uri == place:
            continue
        if there is not None:
            files.remove(there)
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    for place, text in reference.pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def turned(text: str, place: str, known: dict[str, str], sources: dict[str, str]) -> str:
    """The links of the repository as links of the site; what is no page of it is left as text."""
    source = posixpath.dirname(sources.get(place, place))

    def at(target: str) -> str | None:
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return target
        name = posixpath.normpath(posixpath.join(source, path))
        if name not in known and (ROOT / name).is_dir():
            name += "/README.md"
        if name not in known:
            if not (ROOT / name).exists():
                log.warning(f"{place}: a link to {name}, which is not there")
            return None
        to = posixpath.relpath(known[name], posixpath.dirname(place) or ".")
        return f"{to}#{anchor}" if anchor else to

    def link(match: re.Match[str]) -> str:
        to = at(match[2])
        return match[1] if to is None else f"[{match[1]}]({to})"

    parts = FENCE.split(text)
    for i in range(0, len(parts), 2):
        for pattern, mark in ((LINK, ""), (IMAGE, "!")):
            parts[i] = pattern.sub(lambda m, mark=mark: mark + link(m), parts[i])
    return "".join(parts)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    known = places()
    place = page.file.src_uri
    if place == "index.md":
        page.meta["hide"] = ["navigation"]
    if place.startswith("reference/"):
        return markdown
    return turned(markdown, place, known, {to: name for name, to in known.items()})


def on_post_build(config: Any) -> None:
    for fault in faults_of(Path(config.site_dir)):
        log.warning(fault)

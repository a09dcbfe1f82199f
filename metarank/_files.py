"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO]:
    """A file that is written beside its place and renamed when complete; what stood there stays until then.

    A device or a pipe has no content to keep and is written to directly.

    Raises
    ------
    OSError
        If `path` is a folder, or its folder cannot be written to.
    """
    target = Path(path)
    encoding = None if "b" in mode else "utf-8"
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a file, not a folder, is to be written", str(target))
    if target.exists() and not target.is_file():
        with open(target, mode, encoding=encoding) as device:
            yield device
        return
    target = target.resolve()
    handle, staging = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, mode, encoding=encoding) as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(staging, 0o666 & ~mask)
        os.replace(staging, target)
    except BaseException:
        if os.path.exists(staging):
            os.unlink(staging)
        raise

"""Files and folders that appear complete or not at all.

Content is written into a hidden folder beside its place and renamed when it is complete and on the disk. A
failed or interrupted write leaves what stood there; so does a process that is killed, or a machine that goes
down. A killed process may leave the hidden folder `.metarank-...`, which can be deleted.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
PathLike = str | os.PathLike[str]

_HIDDEN = ".metarank-"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
# What renaming onto a folder that is not empty gives.
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
# What an exchange gives where it is not known, and where a sandbox forbids it.
_CANNOT_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)


@contextmanager
def whole_file(path: PathLike, mode: str = "w") -> Iterator[IO]:
    """A file that is written beside its place and renamed when complete; what stood there stays until then.

    A device or a pipe has no content to keep and is written to directly.

    Raises
    ------
    OSError
        If `path` is a folder, or its folder is missing or cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.txt"
    >>> with whole_file(path) as f:
    ...     _ = f.write("42")
    ...     path.exists()
    False
    >>> path.read_text()
    '42'
    """
    target = Path(path)
    # Lines end as they are written, on every system.
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a file, not a folder, is to be written", str(target))
    if target.exists() and not target.is_file():
        with _naming(path), open(target, mode, **text) as device:
            yield device
        return
    target = target.resolve()
    with _naming(path), _hidden_folder(target.parent) as hidden:
        with open(hidden / "new", mode, **text) as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(hidden / "new", target)
        _sync(target.parent)


@contextmanager
def whole_folder(path: PathLike) -> Iterator[Path]:
    """A folder that is written beside its place; when the block ends it takes the place of what stood there.

    The block gets the folder to write to, and brings the files in it to the disk itself. Folders above that
    are missing are made. On Linux an earlier folder is exchanged for the new one in one step. Elsewhere, and
    on file systems that cannot do that, it takes two renames: a process that is killed between them leaves
    the earlier folder as `old` in the hidden folder beside.

    Raises
    ------
    OSError
        If a file stands at `path`, or nothing can be written there.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> with whole_folder(path) as folder:
    ...     _ = (folder / "a.txt").write_text("A")
    >>> [p.name for p in path.iterdir()]
    ['a.txt']
    """
    target = Path(path).resolve()
    missing = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    for parent in missing:
        _sync(parent.parent)
    with _naming(path), _hidden_folder(target.parent) as hidden:
        new = hidden / "new"
        new.mkdir()
        yield new
        _sync(new)
        _put_in_place(new, target, hidden / "old")
        _sync(target.parent)


def can_be_written(path: PathLike) -> None:
    """Check that something can be made at `path`, by making it beside; permissions alone do not tell.

    Raises
    ------
    OSError
        If not.
    """
    above = next(parent for parent in Path(path).resolve().parents if parent.exists())
    with _naming(path), _hidden_folder(above):
        pass


def of_one_moment(read: F) -> F:
    """Of a function that reads a folder written by `whole_folder`: what it returns is of one content.

    Where another process replaced the folder while it was read, it is read again.
    """

    @wraps(read)
    def reading(path: PathLike, *args: Any, **kwargs: Any) -> Any:
        while True:
            before = _identity(path)
            try:
                content = read(path, *args, **kwargs)
            except (ValueError, OSError):
                if _identity(path) == before:
                    raise
            else:
                if _identity(path) == before:
                    return content

    return cast(F, reading)


def _identity(path: PathLike) -> tuple[int, int, int] | None:
    """What tells a folder from any other that stood or will stand at `path`."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


@contextmanager
def _hidden_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, removed with its content when the block ends."""
    hidden = Path(tempfile.mkdtemp(prefix=_HIDDEN, dir=parent))
    try:
        yield hidden
    finally:
        try:
            shutil.rmtree(hidden, ignore_errors=True)
        except KeyboardInterrupt:
            shutil.rmtree(hidden, ignore_errors=True)
            raise


@contextmanager
def _naming(path: PathLike) -> Iterator[None]:
    """Errors of the writing name what was to be written, not the hidden folder, and never nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and _HIDDEN not in os.fsdecode(error.filename)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Rename the folder `new` to `target`; what stands there goes to `new` or `old`."""
    try:
        os.rename(new, target)  # in one step where nothing, or an empty folder, stands there
    except OSError as error:
        if error.errno not in _OCCUPIED:
            raise
        if _exchanged(new, target):
            return
        try:
            os.rename(target, old)
            os.rename(new, target)
        finally:
            if old.exists() and not target.exists():
                os.rename(old, target)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one step (Linux); False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    code = ctypes.get_errno() if failed else 0
    if failed and code not in _CANNOT_EXCHANGE:
        raise OSError(code, os.strerror(code), str(one), None, str(other))
    return not failed

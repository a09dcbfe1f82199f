"""Files and folders that appear whole or not at all.

Both are written beside their place and renamed when complete and on the disk, so that a process that is
killed, or a machine that goes down, leaves what stood there or what was to come, never a part of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from metarank._util.staging import (
    NEW,
    OCCUPIED,
    displaced,
    put_back,
    remove_leftovers,
    restore,
    staging,
    standing,
    sync_folder,
)

F = TypeVar("F", bound=Callable[..., Any])
PathLike = str | os.PathLike[str]

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_READINGS = 100
# What a write without a file's name ends in where there is no room.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
# What an exchange gives where it is not known, where a sandbox forbids it, and where a name has just gone.
_CANNOT_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM, errno.ENOENT)


@contextmanager
def whole_file(path: PathLike, mode: str = "w") -> Iterator[IO]:
    """A file that is written beside its place and renamed when complete; what stood there stays until then.

    A device or a pipe has no content to keep and is written to directly. What processes that were killed
    left of the same file is removed.

    Raises
    ------
    OSError
        If `path` is a folder, or its folder cannot be written to.

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
    remove_leftovers(target)
    with _naming(path), staging(target, _new_file) as place:
        with open(place, mode, **text) as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(place, target)
        sync_folder(target.parent)


@contextmanager
def whole_folder(path: PathLike) -> Iterator[Path]:
    """A folder that is written beside its place; when the block ends it takes the place of what stood there.

    The block gets the folder to write to, and brings the files in it to the disk itself. Folders above that
    are missing are made. An earlier folder is exchanged for the new one in one step; on file systems that
    cannot do that it is set aside first, where `metarank._util.staging.standing` finds it, should the
    process be killed in between. What processes that were killed left of the same folder is removed.

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
    _make_folders(target.parent)
    restore(target)
    remove_leftovers(target)
    with _naming(path), staging(target, os.mkdir) as place:
        yield place
        sync_folder(place)
        _put_in_place(place, target)
        sync_folder(target.parent)


@contextmanager
def _naming(path: PathLike) -> Iterator[None]:
    """Errors of the writing name what was to be written, not the place beside it, and never nothing."""
    try:
        yield
    except OSError as error:
        of_place = error.filename is not None and NEW in os.fsdecode(error.filename)
        if of_place or (error.filename is None and error.errno in _NO_ROOM):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def can_be_written(path: PathLike) -> None:
    """Find out whether something can be made at `path`, by making it beside; permissions alone do not tell.

    Raises
    ------
    OSError
        If not.
    """
    target = Path(path).resolve()
    parent = next(p for p in target.parents if p.exists())
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(parent))
    first = parent / target.relative_to(parent).parts[0]
    remove_leftovers(first)
    with staging(first, os.mkdir):
        pass


def bytes_on_disk(found: os.stat_result) -> int:
    """What a file takes up of its size: holes, which read as zeros, take up nothing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as f:
    ...     _ = f.write(b"words"), f.truncate(1 << 30), f.flush()
    ...     bytes_on_disk(os.fstat(f.fileno())) < 1 << 20
    True
    """
    # Not every system tells.
    blocks: int | None = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else min(found.st_size, 512 * blocks)


def of_one_moment(read: F) -> F:
    """Of a function that reads a folder written by `whole_folder`: what it gives is of one content.

    Where another process replaced the folder while it was read, it is read again; where one was killed
    between setting a folder aside and putting the next in place, what was set aside is read.
    """

    @wraps(read)
    def reading(path: PathLike, *args: Any, **kwargs: Any) -> Any:
        for _ in range(_READINGS):
            place, before = _found(Path(path))
            try:
                found = read(path if place == Path(path) else place, *args, **kwargs)
            except (ValueError, OSError):
                if _found(Path(path)) == (place, before):
                    raise
            else:
                if _found(Path(path)) == (place, before):
                    return found
        raise OSError(errno.EBUSY, "it is replaced again and again while it is read", str(path))

    return cast(F, reading)


def _found(target: Path) -> tuple[Path, tuple[int, int, int] | None]:
    """Where the content of a folder stands, and what tells it from any other."""
    aside = standing(target.resolve())
    place = aside if aside.exists() and not target.exists() else target
    try:
        found = place.stat()
    except OSError:
        return place, None
    return place, (found.st_dev, found.st_ino, found.st_mtime_ns)


def _new_file(place: Path) -> None:
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))


def _make_folders(folder: Path) -> None:
    if folder.exists():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def _put_in_place(place: Path, target: Path) -> None:
    """Rename `place` to `target`, in the place of a folder that stands there."""
    while True:
        try:
            os.rename(place, target)  # in one step where nothing, or an empty folder, stands there
            return
        except OSError as error:
            if error.errno not in OCCUPIED:
                raise
        if _exchange(place, target) or _replace_in_two_steps(place, target):
            return


def _replace_in_two_steps(place: Path, target: Path) -> bool:
    """Set `target` aside and rename `place` to it; False where another process was quicker."""
    old = displaced(place)
    try:
        os.rename(target, old)
        os.rename(place, target)
        return True
    except OSError as error:
        if error.errno not in (*OCCUPIED, errno.ENOENT):
            raise
        return False
    finally:
        if old.exists() and not target.exists():
            put_back(old, target)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step (Linux); False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))

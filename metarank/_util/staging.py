"""Places beside a target where its next content is written, and what killed processes left of them.

Beside the target NAME stand, while it is written,

- `.NAME.TOKEN.metarank-new`, the content to come, held by a lock that ends with its process;
- `.NAME.TOKEN.metarank-old`, what stood at NAME, only where a folder cannot be exchanged in one step.

Whatever is of this form and held by nobody was left by a process that was killed. If NAME is missing while
both places of a token are there, it was killed between its two renames, and the old content is what stands.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing can be held, and what was left is left alone
    fcntl = None  # type: ignore[assignment]

NEW, _OLD = ".metarank-new", ".metarank-old"
# What renaming onto a folder that is not empty gives.
OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)


@contextmanager
def staging(target: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new place beside `target`, made by `make`, held while the block runs and gone after it.

    Raises
    ------
    OSError
        If the folder of `target` is missing or cannot be written to.
    """
    place, held = None, None
    try:
        while held is None:
            place = target.parent / f".{target.name}.{secrets.token_hex(4)}{NEW}"
            try:
                make(place)
            except FileExistsError:
                place = None
                continue
            held = _claim(place, wait=True)
            # Between the lines above somebody may have taken it for left over; some places cannot be held.
            if place.exists():
                break
        assert place is not None
        yield place
    finally:
        try:
            if place is not None:
                _remove(place)
        except KeyboardInterrupt:
            assert place is not None
            _remove(place)
            raise
        finally:
            if held is not None:
                os.close(held)


def displaced(place: Path) -> Path:
    """Where what stood at the target goes while the content of `place` takes its place."""
    return place.with_name(place.name.removesuffix(NEW) + _OLD)


def standing(target: Path) -> Path:
    """Where the content of `target` is: there, or set aside by a process that was killed.

    Examples
    --------
    >>> standing(Path("missing"))
    PosixPath('missing')
    """
    if os.path.lexists(target):
        return target
    for old in _places(target, _OLD):
        if os.path.lexists(_partner(old)):
            return old
    return target


def restore(target: Path) -> None:
    """Put the content of `target` back where a process was killed between its two renames."""
    old = standing(target)
    if old != target:
        put_back(old, target)


def put_back(old: Path, target: Path) -> None:
    """Rename `old` to `target`, unless another process was quicker: with the same, or with later content."""
    try:
        os.rename(old, target)
    except OSError as error:
        if error.errno not in (errno.ENOENT, *OCCUPIED):
            raise


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left beside `target`, as far as it can be removed."""
    for place in [*_places(target, NEW), *_places(target, _OLD)]:
        if place.name.endswith(_OLD) and os.path.lexists(_partner(place)):
            continue  # somebody is between two renames
        held = _claim(place)
        if held is not None:
            _remove(place)
            os.close(held)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if fcntl is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _places(target: Path, suffix: str) -> list[Path]:
    form = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}{re.escape(suffix)}")
    try:
        with os.scandir(target.parent) as entries:
            return sorted(target.parent / entry.name for entry in entries if form.fullmatch(entry.name))
    except OSError:
        return []


def _partner(old: Path) -> Path:
    return old.with_name(old.name.removesuffix(_OLD) + NEW)


def _claim(place: Path, *, wait: bool = False) -> int | None:
    """A descriptor that holds a place; None where another process holds it, or it is gone, or cannot be held.

    The lock of a descriptor ends with its process, however that ends.
    """
    if fcntl is None:
        return None
    try:
        held = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(held), os.lstat(place)):
            return held
    except OSError:
        pass
    os.close(held)
    return None


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink(missing_ok=True)

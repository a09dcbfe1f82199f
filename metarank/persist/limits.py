"""What a model folder may ask of the process that loads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# An integer of a saved model is at most so large.
MOST = 2**31 - 1
# A size that no array of a saved model bears out is at most so large unless `Limits` says otherwise;
# what would be larger is not fitted.
MOST_DECLARED = 1 << 24
# All that is declared, and all that is not on the disk, by what one size may be. Up to twenty parts of a
# model declare sizes; file systems that compress hold ten bytes in one.
TOGETHER = 32


@dataclass(frozen=True)
class Limits:
    """What a model folder may ask of the process that loads it.

    Parameters
    ----------
    manifest_bytes : int
        Size of the manifest, most of which is decoded into Python objects.
    depth : int
        Lists, mappings and objects within one another.
    files : int
    declared : int
        A size that no array has to bear out, such as the number of features of sparse rows: at most so much,
        or as many as the files of the model have bytes on the disk, where holes and further names of a file
        count nothing. All such sizes together, and all bytes that are not on the disk together: at most 32
        times as much.

    Examples
    --------
    >>> Limits(depth=8).depth
    8
    """

    manifest_bytes: int = 1 << 24
    depth: int = 64
    files: int = 100_000
    declared: int = MOST_DECLARED

    def __post_init__(self) -> None:
        for name in ("manifest_bytes", "depth", "files", "declared"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a positive integer, got {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")


LIMITS = Limits()


@dataclass
class Allowance:
    """Sizes that no array bears out: what each may be, and what is left for all."""

    each: int = MOST
    left: int | None = None

    def take(self, size: int) -> None:
        """Count a size that was declared; ValueError where it is more than is left."""
        if self.left is not None:
            if size > self.left:
                raise ValueError(
                    f"sizes that no array bears out must not add up to so much: {size} is more than the "
                    f"{self.left} that are left, see persist.Limits"
                )
            self.left -= size


_allowance: ContextVar[Allowance] = ContextVar("_allowance", default=Allowance())  # noqa: B039  # never less


def allowance() -> Allowance:
    """What may still be declared, where a model is loaded; any size elsewhere."""
    return _allowance.get()


@contextmanager
def declared_sizes_up_to(most: int, together: int | None = None) -> Iterator[None]:
    """What sizes that no array bears out may be, in `Size` and `Csr`: each and together."""
    token = _allowance.set(Allowance(min(most, MOST), together))
    try:
        yield
    finally:
        _allowance.reset(token)

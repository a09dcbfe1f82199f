"""Limits on what a model folder may make the loading process allocate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# The largest integer in a saved model.
MOST = 2**31 - 1
# The largest size that no array of a saved model confirms, unless `Limits` says otherwise. No fit exceeds it.
MOST_DECLARED = 1 << 24
# The limit on the sum of such sizes, as a multiple of the limit on one: up to twenty parts of a model declare
# sizes, and compressing file systems store ten bytes in one.
TOGETHER = 32


@dataclass(frozen=True)
class Limits:
    """Limits on what a model folder may make the loading process allocate.

    Parameters
    ----------
    manifest_bytes : int
        Size of the manifest, most of which is decoded into Python objects.
    depth : int
        Nesting of lists, mappings and objects.
    files : int
        Number of files.
    declared : int
        Largest size that no array confirms, such as the number of features of sparse rows. If the model has
        more bytes on disk than this, their number is the limit; holes and hard links do not count. The sum
        of all such sizes, and the sum of all bytes that are not on disk, may be 32 times as large.

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
    """Sizes that no array confirms: the limit for each, and what is left of the limit for all."""

    each: int = MOST
    left: int | None = None

    def take(self, size: int) -> None:
        """Count a declared size; ValueError if it exceeds what is left."""
        if self.left is not None:
            if size > self.left:
                raise ValueError(
                    f"sizes that no array bears out must not add up to so much: {size} is more than the "
                    f"{self.left} that are left, see persist.Limits"
                )
            self.left -= size


_allowance: ContextVar[Allowance] = ContextVar("_allowance", default=Allowance())  # noqa: B039  # never less


def allowance() -> Allowance:
    """The allowance of the model that is being loaded; unlimited elsewhere."""
    return _allowance.get()


@contextmanager
def declared_sizes_up_to(most: int, together: int | None = None) -> Iterator[None]:
    """Limit the sizes that no array confirms, in `Declared` and `Csr`: each of them, and their sum."""
    token = _allowance.set(Allowance(min(most, MOST), together))
    try:
        yield
    finally:
        _allowance.reset(token)

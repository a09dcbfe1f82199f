"""Mistakes that a sanitized core must report: ``python -m sanitize.faults NAME``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from sanitize.core import import_core

_core = import_core()

import numpy as np  # noqa: E402  # the core first, as in the tests


def overflow() -> None:
    """The core reads beyond the end of an array."""
    _core.row_norms(np.lib.stride_tricks.as_strided(np.ones(16, np.float32), (64, 16), (64, 4)))


def misaligned() -> None:
    """The core reads floats from an odd address."""
    _core.row_norms(np.frombuffer(bytearray(65), np.float32, offset=1).reshape(4, 4))


def race() -> None:
    """Two calls of the core write to one array at the same time, for long enough to meet."""
    n = 1000
    indptr, indices = np.arange(0, 4 * n + 1, 4), np.tile(np.arange(4, dtype=np.int32), n)
    values, out = np.ones(4 * n, np.float32), np.empty((n, n))
    together = threading.Barrier(2)

    def write() -> None:
        together.wait()
        _core.sparse_gram((indptr, indices, values, 4), out, 2)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


FAULTS: dict[str, Callable[[], None]] = {"overflow": overflow, "misaligned": misaligned, "race": race}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()

"""The few large matrices of a fit, and whether the machine has room for them."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from metarank._util.cgroup import MEMBERSHIP, ROOT, memory_left
from metarank.scorers.base import LabelScorer
from metarank.scorers.classical.kernels import GramScorer
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.source import Source, describers
from metarank.types.view import TrainingSet

logger: logging.Logger = logging.getLogger("metarank.memory")

MEMINFO = Path("/proc/meminfo")


def check_memory(data: TrainingSet, sources: Sequence[Source], n_pairs: int) -> None:
    """Log what the matrices of a fit take that grow with rows x rows or with pairs x columns.

    Raises
    ------
    ValueError
        If the machine, or the control group of the process, has less.
    """
    for source in sources:
        source.scorer._check_params()
    square = max((_square_entries(source.scorer, data) for source in sources), default=0)
    columns = 4 * len(describers(sources))  # about four of each source
    parts = {
        f"square matrices of {data.X.shape[0]} rows": 8 * square,
        f"the table of {n_pairs} pairs": 12 * n_pairs * columns,
    }
    needed, left = sum(parts.values()), memory_available()
    listed = ", ".join(f"{name} {_text(size)}" for name, size in parts.items())
    logger.info("memory: about %s (%s)", _text(needed), listed)
    if left is not None and needed > left:
        raise ValueError(
            f"this fit needs about {_text(needed)} of memory and {_text(left)} are left ({listed}): use "
            "effort='low', a shortlister, a smaller shortlist_size, or fewer rows of X"
        )


def _square_entries(scorer: LabelScorer, data: TrainingSet) -> int:
    """The numbers in the square matrices that a scorer holds at once."""
    n_rows, n_features = data.X.shape
    if isinstance(scorer, GramScorer):
        return int(3 * n_rows**2)
    size = min(n_rows, n_features + 1)
    is_ridge = isinstance(scorer, OneVsAll) and scorer.loss == "ridge" and size <= scorer.max_size
    return int(size**2) if is_ridge else 0


def memory_available(root: Path = ROOT, membership: Path = MEMBERSHIP, meminfo: Path = MEMINFO) -> int | None:
    """Bytes that the process may still allocate, by the machine and by its control group; None if unknown."""
    limits = [left for left in (memory_left(root, membership), _machine_memory(meminfo)) if left is not None]
    return min(limits, default=None)


def _machine_memory(meminfo: Path) -> int | None:
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def _text(size: float) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"

"""An estimate of the memory of a fit, part by part, and the number of pairs to describe at once.

Parts on which results do not depend (the pairs described at once, products of a ridge kept between proposing
and describing) shrink to fit the budget. The other parts cannot shrink.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.cgroup import MEMBERSHIP, ROOT, memory_left
from metarank.scorers.sizes import CUT, DESCRIBE, RANK, STAGES, FitSizes, MemoryPart
from metarank.scorers.source import Source, describers, proposers
from metarank.types.dense_index import index_bytes
from metarank.types.view import CHUNK_PAIRS

logger: logging.Logger = logging.getLogger("metarank.memory")

MEMINFO = Path("/proc/meminfo")
_LEAST_CHUNK_PAIRS = 2_000
# Bytes of one pair of a chunk without its columns: ids, keys of the union, scores by source.
_PAIR_BYTES = 64
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_budget(budget: Any) -> int | None:
    """Bytes of a memory budget: an int, a text such as "4GiB", "512 MiB" or "2 GB", "auto", or None.

    "auto" is what the process holds plus nine tenths of what is left: of the machine's memory or of the limit
    of its control group, whichever is less.

    Raises
    ------
    ValueError, TypeError
        If it is none of these, or not positive.

    Examples
    --------
    >>> parse_budget("4GiB") == 4 * 2**30, parse_budget("2.5 GB"), parse_budget(None)
    (True, 2500000000, None)
    """
    if budget is None:
        return None
    rule = "memory_budget must be bytes, a text such as '4GiB' or '512 MiB', 'auto', or None"
    if isinstance(budget, str) and budget == "auto":
        return resident_bytes() + int(0.9 * memory_available())
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", budget.lower())
        if match is None or (match[3] and not match[2]):
            raise ValueError(f"{rule}, got {budget!r}")
        size = int(float(match[1]) * (1024 if match[3] else 1000) ** _UNITS[match[2]])
    elif isinstance(budget, bool) or not isinstance(budget, Integral):
        raise TypeError(f"{rule}, got {budget!r}")
    else:
        size = int(budget)
    if size < 1:
        raise ValueError(f"{rule}, and positive, got {budget!r}")
    return size


@dataclass(frozen=True)
class MemoryPlan:
    """The parts of a fit, and the room that they leave for describing pairs.

    Attributes
    ----------
    parts : tuple of MemoryPart
    chunk_pairs : int
        Pairs described at once.
    keeps_products : bool
        Whether products of a ridge are kept between proposing and describing, or computed twice.
    """

    parts: tuple[MemoryPart, ...]
    chunk_pairs: int = CHUNK_PAIRS
    keeps_products: bool = True

    @property
    def peak(self) -> int:
        """Bytes at the largest stage."""
        return max(self._at(stage) for stage in STAGES)

    def _at(self, stage: str) -> int:
        return sum(part.bytes for part in self.parts if stage in part.stages)

    @property
    def largest(self) -> MemoryPart:
        """The largest part of the largest stage."""
        stage = max(STAGES, key=self._at)
        return max((p for p in self.parts if stage in p.stages), key=lambda part: part.bytes)

    def __str__(self) -> str:
        stage = max(STAGES, key=self._at)
        parts = sorted(self.parts, key=lambda part: -part.bytes)
        listed = ", ".join(f"{part.name} {_text(part.bytes)}" for part in parts if part.bytes >= 2**20)
        return f"memory: about {_text(self.peak)} at its peak, when {stage} ({listed})"


def plan_fit(
    sizes: FitSizes, sources: Sequence[Source], budget: int | None, *, resident: int | None = None
) -> MemoryPlan:
    """The memory plan of a fit within a budget. One line is logged.

    Parameters
    ----------
    sizes : FitSizes
    sources : list of Source, unfitted
    budget : bytes or None
    resident : int, optional
        Bytes that the process already holds, including the data; by default as the system reports them.

    Raises
    ------
    ValueError
        If the fit exceeds the budget. The message names the largest part and how to make it smaller.
    """
    for source in sources:
        source.scorer._check_params()
    plan = _within(sizes, sources, budget, resident_bytes() if resident is None else resident)
    logger.info("%s", plan)
    return plan


def _within(sizes: FitSizes, sources: Sequence[Source], budget: int | None, here: int) -> MemoryPlan:
    roomy = MemoryPlan(_parts(sizes, sources, here, CHUNK_PAIRS, keeps_products=True))
    if budget is None or roomy.peak <= budget:
        return roomy
    least = MemoryPlan(_parts(sizes, sources, here, _LEAST_CHUNK_PAIRS, keeps_products=False))
    if least.peak > budget:
        part = least.largest
        raise ValueError(
            f"memory_budget must be at least about {_text(least.peak)} for this fit, got {_text(budget)}: "
            f"most of it goes to {part.name}, {_text(part.bytes)}; {part.remedy}"
        )
    described = sum(part.bytes for part in least.parts if DESCRIBE in part.stages)
    left = budget - described + _chunk_bytes(sources, _LEAST_CHUNK_PAIRS)
    chunk = int(np.clip(left // _chunk_bytes(sources, 1), _LEAST_CHUNK_PAIRS, CHUNK_PAIRS))
    parts = _parts(sizes, sources, here, chunk, keeps_products=False)
    return MemoryPlan(parts, chunk, keeps_products=False)


def prediction_chunk(budget: int | None, n_columns: int) -> int:
    """The number of pairs to describe at once in prediction. Results do not depend on it."""
    if budget is None:
        return CHUNK_PAIRS
    left = budget - resident_bytes()
    return int(np.clip(left // (12 * n_columns + _PAIR_BYTES), _LEAST_CHUNK_PAIRS, CHUNK_PAIRS))


def memory_available(root: Path = ROOT, membership: Path = MEMBERSHIP, meminfo: Path = MEMINFO) -> int:
    """Bytes that the process may still allocate, by the machine's memory and the limit of its control group.

    Raises
    ------
    ValueError
        If the system reports neither.
    """
    found = [left for left in (memory_left(root, membership), _machine_memory(meminfo)) if left is not None]
    if not found:
        raise ValueError("memory_budget='auto' needs a system that says what is left; give bytes")
    return min(found)


def _machine_memory(meminfo: Path) -> int | None:
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def resident_bytes() -> int:
    """Bytes of physical memory of the process; its peak if the system does not report the current value."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _parts(
    s: FitSizes, sources: Sequence[Source], resident: int, chunk_pairs: int, *, keeps_products: bool
) -> tuple[MemoryPart, ...]:
    """The parts of a fit; only large arrays are counted."""
    pairs, columns = s.n_pairs, sum(scorer.n_columns() for scorer in describers(sources))
    table = 8 * pairs * columns
    booster = table // 2 + 16 * columns * min(pairs, 200_000)
    # The table, one without a fold, and what the booster makes of it.
    points = 20 * s.point_pairs * (columns + 2 * len(proposers(sources)) + 1)
    fewer_pairs = "take a smaller shortlist_size, or fewer features"
    found = [
        MemoryPart("what is loaded", resident, remedy="load fewer rows, or start from a fresh process"),
        MemoryPart("indexes of training rows", index_bytes_of(s, sources)),
        MemoryPart("shortlists", (32 + 8 * len(proposers(sources))) * pairs, remedy=fewer_pairs),
        MemoryPart("columns of the ranker's rows", 4 * pairs * columns, (DESCRIBE,), fewer_pairs),
        MemoryPart("pairs described at once", _chunk_bytes(sources, min(chunk_pairs, pairs)), (DESCRIBE,)),
        # Until the table is complete, memory holds its columns; then the binned copy and draws of its pairs.
        MemoryPart("feature table", table, (RANK,), fewer_pairs),
        MemoryPart("tables without two folds", s.n_tables * table // 2, (RANK,), fewer_pairs),
        MemoryPart("table of the booster", booster, (RANK,), fewer_pairs),
        MemoryPart("columns of lists of points", 4 * s.point_pairs * columns, (DESCRIBE,), fewer_pairs),
        MemoryPart("tables of lists of points", points, (RANK,), fewer_pairs),
        MemoryPart("thresholds", 400 * min(pairs, 200_000), (CUT,)),
    ]
    for source in sources:
        found += source.scorer.memory(s, keeps_products=keeps_products)
    return tuple(found)


def index_bytes_of(s: FitSizes, sources: Sequence[Source]) -> int:
    """Postings by feature or FAISS indexes, norms, labels by row and by label, means of labels; scratch."""
    n, d = s.X.shape
    labels = 32 * s.Y.nnz + 16 * (n + s.n_labels)
    scratch = 24 * n * s.n_jobs
    if sp.issparse(s.X):
        means = 16 * int(min(s.n_terms * s.Y.nnz / n, 0.2 * s.n_labels * d))
        return 8 * s.n_terms + 24 * n + 8 * d + means + labels + scratch
    kinds = {source.scorer.index_kind(n) for source in sources} - {None}
    approximate = sum(index_bytes(str(kind), n, d) for kind in kinds)
    return 4 * n * d * (3 if n >= 20_000 else 1) + 4 * s.n_labels * d + labels + scratch + approximate


def _chunk_bytes(sources: Sequence[Source], pairs: int) -> int:
    widest = max((scorer.n_columns() for scorer in describers(sources)), default=1)
    return pairs * (4 * widest + _PAIR_BYTES)


def _text(size: float) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"

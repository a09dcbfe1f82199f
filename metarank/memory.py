"""How much memory a fit takes, part by part, known before it starts; and how many pairs to describe at once.

Parts that no result depends on (how many pairs are described at a time, whether products of a ridge are kept
between proposing and describing) shrink to what a budget leaves; the others are what they are.
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

from metarank._cgroup import MEMBERSHIP, ROOT, memory_left
from metarank.scorers.base import Features, LabelScorer
from metarank.scorers.dense_index import index_bytes, settled_index
from metarank.scorers.shortlister import Shortlister
from metarank.view import CHUNK_PAIRS

logger = logging.getLogger("metarank.memory")

MEMINFO = Path("/proc/meminfo")
_LEAST_CHUNK_PAIRS = 2_000
# What one pair of a chunk takes beside its columns: ids, keys of the union, scores by source.
_PAIR_BYTES = 64
# Most subwords of an embedder of names, and torch with its libraries.
_SUBWORDS, _TORCH_BYTES = 32_000, 190 << 20
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

# The stages of a fit. Parts of one stage are there at the same time, those of different stages are not.
DESCRIBE, RANK, CUT, FIT = STAGES = ("describing", "ranking", "thresholds", "fitting on all rows")


def parse_budget(budget: Any) -> int | None:
    """Bytes of a memory budget: an int, a text such as "4GiB", "512 MiB" or "2 GB", "auto", or None.

    "auto" is what the process holds and nine tenths of what is left to it: of the machine's memory, or of
    what its control group may take, whichever is less.

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
class Part:
    """Something a fit holds in memory: for how long, and what makes it smaller."""

    name: str
    bytes: int
    stages: tuple[str, ...] = STAGES
    remedy: str = "fit on fewer rows"


@dataclass(frozen=True)
class MemoryPlan:
    """The parts of a fit, and what they leave for describing pairs.

    Attributes
    ----------
    parts : tuple of Part
    chunk_pairs : int
        Pairs described at once.
    keeps_products : bool
        Whether products of a ridge are kept from proposing to describing, or made twice.
    """

    parts: tuple[Part, ...]
    chunk_pairs: int = CHUNK_PAIRS
    keeps_products: bool = True

    @property
    def peak(self) -> int:
        """Bytes at the largest stage."""
        return max(self._at(stage) for stage in STAGES)

    def _at(self, stage: str) -> int:
        return sum(part.bytes for part in self.parts if stage in part.stages)

    @property
    def largest(self) -> Part:
        """The part that matters most at the largest stage."""
        stage = max(STAGES, key=self._at)
        return max((p for p in self.parts if stage in p.stages), key=lambda part: part.bytes)

    def __str__(self) -> str:
        stage = max(STAGES, key=self._at)
        parts = sorted(self.parts, key=lambda part: -part.bytes)
        listed = ", ".join(f"{part.name} {_text(part.bytes)}" for part in parts if part.bytes >= 2**20)
        return f"memory: about {_text(self.peak)} at its peak, when {stage} ({listed})"


@dataclass(frozen=True)
class FitSizes:
    """What the size of a fit depends on.

    Attributes
    ----------
    X, Y : features (n, d) and labels (n, L)
    shortlisters, scorers : unfitted
    ranked_rows : int
        Rows the ranker learns from.
    pairs_per_row : int
    n_folds : int
        Folds of the map.
    used_folds : int
        Folds of which rows are ranked: each costs a fit of the scorers that have no closed form.
    n_jobs : int
    n_tables : int
        Feature tables beside that of the ranker, by which it is judged; see `crossfit.nested_columns`.
    """

    X: Features
    Y: sp.csr_matrix
    shortlisters: Sequence[LabelScorer]
    scorers: Sequence[LabelScorer]
    ranked_rows: int
    pairs_per_row: int
    n_folds: int
    used_folds: int
    n_jobs: int
    n_tables: int = 0

    @property
    def n_terms(self) -> int:
        return self.X.size if isinstance(self.X, np.ndarray) else int(self.X.nnz)

    @property
    def n_pairs(self) -> int:
        return self.ranked_rows * self.pairs_per_row

    @property
    def n_columns(self) -> int:
        return sum(_n_columns(scorer) for scorer in self.scorers)


def plan_fit(sizes: FitSizes, budget: int | None, *, resident: int | None = None) -> MemoryPlan:
    """The memory a fit will take within a budget; it is logged, in a line.

    Parameters
    ----------
    sizes : FitSizes
    budget : bytes or None
    resident : int, optional
        Bytes the process holds already, the data among them; asked of the system by default.

    Raises
    ------
    ValueError
        If the fit cannot be had within the budget: names the largest part and what makes it smaller.
    """
    for scorer in [*sizes.shortlisters, *sizes.scorers]:
        if isinstance(scorer, Shortlister):
            scorer._check_params()
    plan = _within(sizes, budget, resident_bytes() if resident is None else resident)
    logger.info("%s", plan)
    return plan


def _within(sizes: FitSizes, budget: int | None, here: int) -> MemoryPlan:
    roomy = MemoryPlan(_parts(sizes, here, CHUNK_PAIRS, keeps_products=True))
    if budget is None or roomy.peak <= budget:
        return roomy
    least = MemoryPlan(_parts(sizes, here, _LEAST_CHUNK_PAIRS, keeps_products=False))
    if least.peak > budget:
        part = least.largest
        raise ValueError(
            f"memory_budget must be at least about {_text(least.peak)} for this fit, got {_text(budget)}: "
            f"most of it goes to {part.name}, {_text(part.bytes)}; {part.remedy}"
        )
    described = sum(part.bytes for part in least.parts if DESCRIBE in part.stages)
    left = budget - described + _chunk_bytes(sizes, _LEAST_CHUNK_PAIRS)
    chunk = int(np.clip(left // _chunk_bytes(sizes, 1), _LEAST_CHUNK_PAIRS, CHUNK_PAIRS))
    return MemoryPlan(_parts(sizes, here, chunk, keeps_products=False), chunk, keeps_products=False)


def prediction_chunk(budget: int | None, n_columns: int) -> int:
    """Pairs described at once in prediction, within what the budget leaves; no result depends on it."""
    if budget is None:
        return CHUNK_PAIRS
    left = budget - resident_bytes()
    return int(np.clip(left // (12 * n_columns + _PAIR_BYTES), _LEAST_CHUNK_PAIRS, CHUNK_PAIRS))


def memory_available(root: Path = ROOT, membership: Path = MEMBERSHIP, meminfo: Path = MEMINFO) -> int:
    """Bytes this process may still take: of the machine's memory and of its control group's limit.

    Raises
    ------
    ValueError
        If the system tells neither.
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
    """Bytes of physical memory the process holds; its peak where the system does not tell."""
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


def _parts(s: FitSizes, resident: int, chunk_pairs: int, *, keeps_products: bool) -> tuple[Part, ...]:
    """What a fit holds, in whole arrays; small things are not counted."""
    n, d = s.X.shape
    pairs, columns = s.n_pairs, s.n_columns
    table = 8 * pairs * columns
    fewer_pairs = "take a smaller shortlist_size, or fewer features"
    found = [
        Part("what is loaded", resident, remedy="load fewer rows, or start from a fresh process"),
        Part("indexes of training rows", _index_bytes(s)),
        Part("shortlists", (32 + 8 * len(s.shortlisters)) * pairs, remedy=fewer_pairs),
        Part("columns of the ranker's rows", 4 * pairs * columns, (DESCRIBE,), fewer_pairs),
        Part("pairs described at once", _chunk_bytes(s, min(chunk_pairs, pairs)), (DESCRIBE,)),
        # Its columns are there until it is complete, then the binned copy and draws of its pairs.
        Part("feature table", table, (RANK,), fewer_pairs),
        Part("tables without two folds", s.n_tables * table // 2, (RANK,), fewer_pairs),
        Part("table of the booster", table // 2 + 16 * columns * min(pairs, 200_000), (RANK,), fewer_pairs),
        Part("thresholds", 400 * min(pairs, 200_000), (CUT,)),
    ]
    distinct = {id(scorer): scorer for scorer in [*s.shortlisters, *s.scorers]}.values()
    for scorer in distinct:
        found += _scorer_parts(scorer, s, n, d, keeps_products)
    return tuple(found)


def _scorer_parts(scorer: LabelScorer, s: FitSizes, n: int, d: int, keeps_products: bool) -> list[Part]:
    from metarank.scorers.instance_tree import FastXML
    from metarank.scorers.kernel_ridge import KernelRidge
    from metarank.scorers.kernel_svm import KernelSVM
    from metarank.scorers.label_tree import LabelTree
    from metarank.scorers.name_embedder import NameEmbedder
    from metarank.scorers.one_vs_all import OneVsAll

    name, n_labels = type(scorer).__name__, s.Y.shape[1]
    labels_per_row = max(1.0, s.Y.nnz / n)
    fits = s.used_folds + 1
    if isinstance(scorer, OneVsAll):
        weights = 8 * n_labels * min(d, scorer.weights_per_label or d)
        solved = Part(f"weights of {name}", 3 * weights, (FIT,), "take a smaller weights_per_label")
        size = min(n, d + 1)
        if scorer.loss != "ridge":
            return [solved, Part(f"fits of {name} without folds", weights * fits, (DESCRIBE,))]
        if size > scorer.max_size:
            return [solved, Part(f"gradients of {name}", 4 * 256 * 4 * (n + d) * s.n_jobs, (DESCRIBE, FIT))]
        other = "leave one-vs-all out, or take a smaller max_size"
        fold = n * n * (s.n_folds - 1) / s.n_folds**2  # entries of a fold's product
        at_once = s.used_folds if keeps_products else min(s.n_jobs, s.used_folds)
        return [
            solved,
            Part(f"matrix of {name}, {size} x {size}", 8 * size * size, (DESCRIBE, RANK, CUT, FIT), other),
            Part(f"products of {name} by fold", int(8 * fold * (at_once + 2 * s.n_jobs)), (DESCRIBE,), other),
        ]
    if isinstance(scorer, LabelTree):
        # Measured: an edge has weights for the terms of the rows of its labels, up to a thousand or so. In
        # training they are there more than twice, beside the rows that visit each node.
        saved = int(min(6 * s.n_terms * labels_per_row, 3000 * n_labels)) * scorer.n_trees
        training = int(1.4 * saved) + n * (44 * scorer._settled("visitors") + 100) + 16 * s.n_terms
        fewer = "take fewer trees (n_trees), or another shortlister"
        return [
            Part(f"{name} on all rows", saved + training, (FIT,), fewer),
            Part(f"{name} without folds", saved * s.used_folds + training, (DESCRIBE,), fewer),
        ]
    if isinstance(scorer, FastXML):
        # Each level of a tree shares the rows' terms out among its nodes; leaves hold labels.
        one = int(scorer.n_trees * (2 * s.n_terms + 8 * n * min(labels_per_row * 4, 100)))
        fewer = "take fewer trees (n_trees), or another shortlister"
        return [
            Part(f"{name} on all rows", one, (FIT,), fewer),
            Part(f"{name} without folds", one * s.used_folds, (DESCRIBE,), fewer),
        ]
    if isinstance(scorer, (KernelRidge, KernelSVM)):
        matrices = 3 * 8 * n * n
        return [Part(f"matrices of {name}, {n} x {n}", matrices, (DESCRIBE, FIT), "take effort='low'")]
    if isinstance(scorer, NameEmbedder):
        # Vectors of subwords, labels and names; in training each has two moments, a gradient and its value at
        # the best epoch beside it, and torch is there.
        one = 4 * scorer.dim * (min(_SUBWORDS, 4 * d) + 2 * n_labels)
        training, smaller = 4 * one + _TORCH_BYTES, "take a smaller dim, or label_text='auto'"
        return [
            Part(f"{name} on all rows", one + training, (FIT,), smaller),
            Part(f"{name} without folds", one * s.used_folds + training, (DESCRIBE,), smaller),
        ]
    return [Part(name, 16 * s.Y.nnz + 8 * n_labels, (FIT,))]


def _index_bytes(s: FitSizes) -> int:
    """Postings by feature or FAISS indexes, norms, labels by row and by label, means of labels; scratch."""
    n, d = s.X.shape
    labels = 32 * s.Y.nnz + 16 * (n + s.Y.shape[1])
    scratch = 24 * n * s.n_jobs
    if sp.issparse(s.X):
        means = 16 * int(min(s.n_terms * s.Y.nnz / n, 0.2 * s.Y.shape[1] * d))
        return 8 * s.n_terms + 24 * n + 8 * d + means + labels + scratch
    approximate = sum(index_bytes(kind, n, d) for kind in _indexes_of_votes(s, n))
    return 4 * n * d * (3 if n >= 20_000 else 1) + 4 * s.Y.shape[1] * d + labels + scratch + approximate


def _indexes_of_votes(s: FitSizes, n: int) -> set[str]:
    from metarank.scorers.neighbors import NeighborShortlister

    scorers = [getattr(scorer, "scorer", scorer) for scorer in [*s.shortlisters, *s.scorers]]
    return {settled_index(scorer.index, n) for scorer in scorers if isinstance(scorer, NeighborShortlister)}


def _chunk_bytes(s: FitSizes, pairs: int) -> int:
    return pairs * (4 * max((_n_columns(scorer) for scorer in s.scorers), default=1) + _PAIR_BYTES)


def _n_columns(scorer: LabelScorer) -> int:
    """Columns a scorer gives, or a guess where it is not metarank's."""
    try:
        return _columns_of(scorer)
    except (TypeError, ValueError):
        return 1  # a parameter that `fit` will refuse in words of its own


def _columns_of(scorer: LabelScorer) -> int:
    from metarank.scorers.centroid import Centroids
    from metarank.scorers.label_tree import LabelTree
    from metarank.scorers.name_embedder import NameEmbedder
    from metarank.scorers.names import COLUMNS, NameScorer, SpellingScorer
    from metarank.scorers.neighbors import LabelNeighbors, NeighborShortlister
    from metarank.scorers.objective import ObjectiveScorer

    if isinstance(scorer, ObjectiveScorer):
        return _columns_of(scorer.scorer)
    if isinstance(scorer, LabelNeighbors):
        orders, means = scorer._statistics()
        return len(tuple(scorer.metrics)) * (len(orders) + len(means))
    if isinstance(scorer, NeighborShortlister):
        return 2 * len(tuple(scorer.ks)) + bool(scorer.names)
    if isinstance(scorer, NameScorer):
        return 2 if isinstance(scorer, SpellingScorer) else len(COLUMNS)
    if isinstance(scorer, (Centroids, NameEmbedder)):
        return 2
    if isinstance(scorer, LabelTree):
        return 1 + (scorer.n_trees if scorer.n_trees > 1 else 0)
    return 1 if type(scorer).__module__.startswith("metarank.") else 4


def _text(size: float) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"

"""`RankingData`: the lists a ranker learns from, checked once; cross-fitted scores; quality of an order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._threads import single_threaded_blas
from metarank.crossfit import over_folds
from metarank.features.table import FeatureTable

if TYPE_CHECKING:
    from metarank.ranker.base import Ranker

DEFAULT_FOLDS = 5
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class RankingData:
    """A table with the gains of its m pairs and, for its n lists, weights and folds.

    Parameters
    ----------
    table : FeatureTable
    gains : float32 array (m,)
    weight : float64 array (n,)
    fold : int32 array (n,)
    seed : int
    targets : dict of str to float32 array (m,)
        Gains by objective, where there are several; `gains` is then the relevance for any of them.
    """

    table: FeatureTable
    gains: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    seed: int
    targets: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        table: FeatureTable,
        gains: np.ndarray,
        sample_weight: np.ndarray | None,
        fold: np.ndarray | None,
        seed: int,
        targets: dict[str, np.ndarray] | None = None,
    ) -> RankingData:
        """Validate what `Ranker.fit` takes; see there."""
        n, m = table.candidates.n_rows, table.candidates.n_pairs
        gains = np.ascontiguousarray(gains, np.float32)
        if gains.shape != (m,):
            raise ValueError(f"gains must have shape {(m,)}, one a pair, got {gains.shape}")
        if not np.isfinite(gains).all() or (gains < 0).any():
            bad = gains[~(np.isfinite(gains) & (gains >= 0))][0]
            raise ValueError(f"gains must be finite and >= 0, got {bad}")
        table = as_float32(table)
        finite = _finite_columns(table.values)
        if not finite.all():
            raise ValueError(
                f"table.values must be finite, but {table.names[int(np.argmin(finite))]!r} is not"
            )
        if m == 0 or not table.names:
            raise ValueError(f"table must hold a pair and a column at least, got shape {table.values.shape}")
        weight = np.ones(n) if sample_weight is None else np.ascontiguousarray(sample_weight, np.float64)
        if weight.shape != (n,):
            raise ValueError(f"sample_weight must have shape {(n,)}, one a list, got {weight.shape}")
        if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            raise ValueError("sample_weight must be finite and >= 0, and not all zero")
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise TypeError(f"seed must be an integer, got {seed!r}")
        if seed < 0:
            raise ValueError(f"seed must be >= 0, got {seed}")
        if fold is None:
            fold = _core.fold_of_rows(n, DEFAULT_FOLDS, int(seed))
        fold = np.asarray(fold)
        if fold.shape != (n,) or fold.dtype.kind not in "iu":
            raise ValueError(f"fold must be an integer array of shape {(n,)}, got {fold.dtype} {fold.shape}")
        targets = {name: np.ascontiguousarray(values, np.float32) for name, values in (targets or {}).items()}
        for name, values in targets.items():
            if values.shape != (m,):
                raise ValueError(f"targets must have shape {(m,)}, got {values.shape} for {name!r}")
        return cls(table, gains, weight, fold.astype(np.int32), int(seed), targets)

    @property
    def indptr(self) -> np.ndarray:
        return self.table.indptr

    @property
    def sizes(self) -> np.ndarray:
        """int64 (n,): pairs of each list."""
        return np.diff(self.indptr)

    @property
    def informative(self) -> np.ndarray:
        """bool (n,): lists that hold two different gains and count for something."""
        return informative_lists(self.gains, self.indptr, self.weight)

    def lists(self, index: np.ndarray) -> RankingData:
        """Some lists (ids or a mask), in the given order."""
        index = np.arange(len(self.weight))[index]
        pairs = self.pairs_of(index)
        table = FeatureTable(self.table.values[pairs], self.table.names, self.table.candidates.rows(index))
        targets = {name: values[pairs] for name, values in self.targets.items()}
        return RankingData(table, self.gains[pairs], self.weight[index], self.fold[index], self.seed, targets)

    def pairs_of(self, index: np.ndarray) -> np.ndarray:
        """Positions of the pairs of some lists (ids)."""
        return pairs_of_lists(self.indptr, index)

    def pairs(self, kept: np.ndarray) -> RankingData:
        """Some of the pairs (ascending positions); every list stays, perhaps shorter."""
        targets = {name: values[kept] for name, values in self.targets.items()}
        return RankingData(
            self.table.pairs(kept), self.gains[kept], self.weight, self.fold, self.seed, targets
        )

    def sample(self, max_pairs: int) -> RankingData:
        """Whole lists drawn by hash up to `max_pairs` pairs, at least one list; itself if it is no larger."""
        if self.table.candidates.n_pairs <= max_pairs:
            return self
        order = np.argsort(hash_numbers(len(self.weight), self.seed), kind="stable")
        n_kept = max(1, int(np.searchsorted(np.cumsum(self.sizes[order]), max_pairs, side="right")))
        return self.lists(np.sort(order[:n_kept]))


def pairs_of_lists(indptr: np.ndarray, index: np.ndarray) -> np.ndarray:
    """int64: positions of the pairs of some lists (ids), one list after another."""
    counts = np.diff(indptr)[index]
    before = np.concatenate([[0], np.cumsum(counts)])
    return np.repeat(indptr[:-1][index] - before[:-1], counts) + np.arange(before[-1])


def informative_lists(gains: np.ndarray, indptr: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """bool (n,): lists of positive weight that hold two different gains."""
    out = np.zeros(len(weight), bool)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    starts = indptr[filled]
    out[filled] = np.maximum.reduceat(gains, starts) > np.minimum.reduceat(gains, starts)
    return out & (weight > 0)


def as_float32(table: FeatureTable) -> FeatureTable:
    """The table with values as the core wants them, C-contiguous float32; itself if they are."""
    values = np.ascontiguousarray(table.values, np.float32)
    return table if values is table.values else replace(table, values=values)


def _finite_columns(values: np.ndarray) -> np.ndarray:
    """bool (F,), a block of pairs at a time: a mask of all would be a quarter of the table."""
    blocks = range(0, len(values), _BLOCK)
    finite = [np.isfinite(values[start : start + _BLOCK]).all(axis=0) for start in blocks]
    return np.logical_and.reduce(finite, axis=0) if finite else np.ones(values.shape[1], bool)


def hash_numbers(n: int, seed: int) -> np.ndarray:
    """int32 (n,): a pseudo-random number for each index, a function of (seed, index)."""
    return _core.fold_of_rows(n, 2**31 - 1, seed)


def cross_fit_scores(ranker: Ranker, data: RankingData, n_jobs: int = 1) -> np.ndarray:
    """Scores of all training pairs, each from a ranker fitted without the pair's fold.

    Parameters
    ----------
    ranker : Ranker
        Stays unfitted; what it chooses by cross-validation is chosen once, on all folds.
    data : RankingData
        With at least two folds. Where the others hold nothing to learn from, a fold scores 0.

    Returns
    -------
    float64 array (m,)
    """
    folds = np.unique(data.fold)
    if len(folds) < 2:
        raise ValueError(f"fold must hold at least two different folds, got {len(folds)}")

    with single_threaded_blas():
        settled = ranker.tuned(data, n_jobs)

        def one_fold(f: int, threads: int) -> np.ndarray:
            seen, held_out = data.lists(data.fold != f), data.lists(data.fold == f)
            if not settled.can_learn(seen):
                return np.zeros(len(held_out.gains))
            return clone(settled).fit_lists(seen, threads).score(held_out.table, n_jobs=threads)

        scores = np.empty(data.table.candidates.n_pairs)
        for f, held_out in zip(folds, over_folds(one_fold, folds, n_jobs)):
            scores[data.pairs_of(np.flatnonzero(data.fold == f))] = held_out
    return scores


def spread_within_lists(scores: np.ndarray, indptr: np.ndarray) -> float:
    """Root mean squared distance of the scores from the mean of their list; 1.0 where that is 0."""
    sizes = np.diff(indptr)
    row = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(row, weights=scores, minlength=len(sizes)) / np.maximum(sizes, 1)
    return float(np.sqrt(np.mean((scores - mean[row]) ** 2))) or 1.0

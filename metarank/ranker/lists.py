"""`RankingData`: the lists a ranker learns from, checked once; cross-fitted scores; quality of an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._util.threads import single_threaded_blas
from metarank.scorers.crossfit import OuterPart, over_folds
from metarank.types.feature_table import FeatureTable
from metarank.types.view import first_of_unit, fold_of_rows

if TYPE_CHECKING:
    from metarank.ranker.base import Ranker

DEFAULT_FOLDS = 5
_BLOCK = 1 << 16
# Keeps what is drawn for labels without evidence apart from other draws.
_PLACES_SHIFT = 7_000_003


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
    outer : tuple of OuterPart of tables, optional
        What rankers are judged on, and by what they learn for that; by default on one fold after another,
        by what they learn from the other folds.
    shown : bool array (m,), optional
        Whether the View that describes a pair shows rows of its label; see `placed`.
    groups : int array (n,), optional
        Lists of the same group stay together where lists are divided.
    """

    table: FeatureTable
    gains: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    seed: int
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    outer: tuple[OuterPart[FeatureTable], ...] | None = None
    shown: np.ndarray | None = None
    groups: np.ndarray | None = None

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

    @property
    def shares(self) -> np.ndarray:
        """float32 (m,): gains over the greatest of all."""
        return self.gains / (self.gains.max(initial=0) or np.float32(1))

    def lists(self, index: np.ndarray) -> RankingData:
        """Some lists (ids or a mask), in the given order."""
        index = np.arange(len(self.weight))[index]
        pairs = self.pairs_of(index)
        table = FeatureTable(self.table.values[pairs], self.table.names, self.table.candidates.rows(index))
        targets = {name: values[pairs] for name, values in self.targets.items()}
        groups = None if self.groups is None else self.groups[index]
        weight, fold = self.weight[index], self.fold[index]
        return RankingData(table, self.gains[pairs], weight, fold, self.seed, targets, groups=groups)

    def pairs_of(self, index: np.ndarray) -> np.ndarray:
        """Positions of the pairs of some lists (ids)."""
        return pairs_of_lists(self.indptr, index)

    def pairs(self, kept: np.ndarray) -> RankingData:
        """Some of the pairs (ascending positions); every list stays, perhaps shorter."""
        targets = {name: values[kept] for name, values in self.targets.items()}
        return replace(
            self,
            table=self.table.pairs(kept),
            gains=self.gains[kept],
            targets=targets,
            outer=None,
            shown=None,
        )

    def drawn(self, one_in: int) -> np.ndarray:
        """bool (n,): one of so many lists, by hash; lists of the same group are drawn together."""
        number = hash_numbers(len(self.weight), self.seed)
        return number[first_of_unit(len(number), None, self.groups)] % one_in == 0

    def sample(self, max_pairs: int) -> RankingData:
        """Whole lists drawn by hash up to `max_pairs` pairs, at least one list; itself if it is no larger."""
        if self.table.candidates.n_pairs <= max_pairs:
            return self
        order = np.argsort(hash_numbers(len(self.weight), self.seed), kind="stable")
        n_kept = max(1, int(np.searchsorted(np.cumsum(self.sizes[order]), max_pairs, side="right")))
        kept = np.sort(order[:n_kept])
        outer = None if self.outer is None else tuple(_of_lists(part, kept) for part in self.outer)
        shown = None if self.shown is None else self.shown[self.pairs_of(kept)]
        return replace(self.lists(kept), outer=outer, shown=shown)

    def trials(self) -> list[OuterPart[FeatureTable]]:
        """What a ranker is judged on, part by part: `outer`, or else fold by fold."""
        if self.outer is not None:
            return [part for part in self.outer if len(part.held_out)]
        folds = np.unique(self.fold)
        if len(folds) < 2:
            raise ValueError(f"fold must hold at least two different folds, got {len(folds)}")
        return [OuterPart(np.flatnonzero(self.fold == f), np.flatnonzero(self.fold != f)) for f in folds]

    def learned_in(self, trial: OuterPart[FeatureTable]) -> RankingData:
        """The lists that a ranker to be judged on a part learns from."""
        seen = self.lists(trial.seen)
        if len(np.unique(seen.fold)) < 2:  # described by one View, and so divided anew
            fold = _fold_of_lists(len(seen.weight), self.seed, seen.groups)
            seen = replace(seen, fold=fold)
        return seen if trial.described is None else replace(seen, table=trial.described)

    def by_fold(self) -> RankingData:
        """Without trials of its own: what is tuned by cross-validation, and not told to anyone."""
        return replace(self, outer=None, shown=None)

    def placed(self, scores: np.ndarray) -> np.ndarray:
        """Scores (m,) of which those of pairs that are not `shown` are drawn, by hash, from the row's others.

        A label all of whose rows are held out has no evidence, and that it has none tells that they are. It
        takes the place of any other, as it would where it had rows by which nothing is to be told.
        """
        if self.shown is None or self.shown.all():
            return scores
        row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        others = np.bincount(row, weights=self.shown, minlength=len(self.sizes)).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(others)[:-1]])
        to_place = np.flatnonzero(~self.shown & (others[row] > 0))
        drawn = hash_numbers(len(scores), self.seed + _PLACES_SHIFT)[to_place].astype(np.int64)
        from_row = row[to_place]
        values = scores[self.shown]
        spread = float(np.ptp(values)) if len(values) else 0.0
        out = scores.copy()
        # No tie with the pair it is drawn from: ahead of it or behind, as another hash says.
        side = hash_numbers(len(scores), self.seed + 2 * _PLACES_SHIFT)[to_place] / 2**31 - 0.5
        out[to_place] = values[first[from_row] + drawn % others[from_row]] + 1e-6 * spread * side
        alone = ~self.shown & (others[row] == 0)
        out[alone] = float(values.mean()) if len(values) else 0.0
        return out


def _fold_of_lists(n: int, seed: int, groups: np.ndarray | None) -> np.ndarray:
    if groups is None:
        return _core.fold_of_rows(n, DEFAULT_FOLDS, seed)
    return fold_of_rows(n, DEFAULT_FOLDS, seed, groups=groups)


def _of_lists(part: OuterPart[FeatureTable], kept: np.ndarray) -> OuterPart[FeatureTable]:
    """A part of some lists (ascending ids), numbered by their places among them."""
    seen = np.isin(part.seen, kept)
    table = part.described
    if table is not None:
        pairs = pairs_of_lists(table.indptr, np.flatnonzero(seen))
        table = FeatureTable(table.values[pairs], table.names, table.candidates.rows(np.flatnonzero(seen)))
    held_out = part.held_out[np.isin(part.held_out, kept)]
    return OuterPart(np.searchsorted(kept, held_out), np.searchsorted(kept, part.seen[seen]), table)


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
    """Scores of all training pairs, each from a ranker that learned nothing of the pair's list; see `trials`.

    Parameters
    ----------
    ranker : Ranker
        Stays unfitted; what it chooses by cross-validation is chosen once, on all folds.
    data : RankingData
        With at least two folds. Where there is nothing to learn from, a part scores 0.

    Returns
    -------
    float64 array (m,)
    """
    with single_threaded_blas():
        tuned = ranker.tuned(data, n_jobs)
        return trial_scores(lambda seen, threads: clone(tuned).fit_lists(seen, threads), tuned, data, n_jobs)


def trial_scores(
    fit: Callable[[RankingData, int], Ranker], ranker: Ranker, data: RankingData, n_jobs: int
) -> np.ndarray:
    """Scores (m,) of the lists of each trial by `fit(lists it learns from, threads)`; 0 where `ranker` cannot
    learn from them."""
    trials = data.trials()

    def one_part(number: int, threads: int) -> np.ndarray:
        seen, held_out = data.learned_in(trials[number]), data.lists(trials[number].held_out)
        if not ranker.can_learn(seen):
            return np.zeros(len(held_out.gains))
        return fit(seen, threads).score(held_out.table, n_jobs=threads)

    scores = np.zeros(data.table.candidates.n_pairs)
    with single_threaded_blas():
        for trial, held_out in zip(trials, over_folds(one_part, np.arange(len(trials)), n_jobs)):
            scores[data.pairs_of(trial.held_out)] = held_out
    return scores


def spread_within_lists(scores: np.ndarray, indptr: np.ndarray) -> float:
    """Root mean squared distance of the scores from the mean of their list; 1.0 where that is 0."""
    sizes = np.diff(indptr)
    row = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(row, weights=scores, minlength=len(sizes)) / np.maximum(sizes, 1)
    return float(np.sqrt(np.mean((scores - mean[row]) ** 2))) or 1.0

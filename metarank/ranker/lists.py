"""`RankingData`: the lists a ranker learns from, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from metarank import _core
from metarank.scorers.crossfit import OuterPart
from metarank.types.feature_table import FeatureTable
from metarank.types.ragged import entries_of_rows, extreme_of_rows
from metarank.types.view import fold_of_rows

DEFAULT_FOLDS = 5
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
        Whether the TrainingView that describes a pair shows rows of its label; see `placed`.
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
        """Validate what `Ranker.fit` takes; see there. `assemble` has checked the values of the table."""
        n, m = table.candidates.n_rows, table.candidates.n_pairs
        gains = np.ascontiguousarray(gains, np.float32)
        if gains.shape != (m,) or not (np.isfinite(gains) & (gains >= 0)).all():
            raise ValueError(f"gains must be {m} finite numbers >= 0, one per pair")
        if m == 0 or not table.names:
            raise ValueError(f"table must hold a pair and a column at least, got shape {table.values.shape}")
        weight = np.ones(n) if sample_weight is None else np.ascontiguousarray(sample_weight, np.float64)
        if weight.shape != (n,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
            raise ValueError(f"sample_weight must be {n} finite numbers >= 0, one a list, not all zero")
        fold = _core.fold_of_rows(n, DEFAULT_FOLDS, seed) if fold is None else np.asarray(fold, np.int32)
        if fold.shape != (n,):
            raise ValueError(f"fold must be {n} integers, one a list, got shape {fold.shape}")
        targets = {name: np.ascontiguousarray(values, np.float32) for name, values in (targets or {}).items()}
        return cls(table, gains, weight, fold, seed, targets)

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
        return entries_of_rows(self.indptr, index)[1]

    def pairs(self, kept: np.ndarray) -> RankingData:
        """Some of the pairs (ascending positions); every list stays, perhaps shorter."""
        targets = {name: values[kept] for name, values in self.targets.items()}
        table = self.table.pairs(kept)
        return replace(self.by_fold(), table=table, gains=self.gains[kept], targets=targets)

    def sample(self, max_pairs: int) -> RankingData:
        """Whole lists drawn by hash up to `max_pairs` pairs, at least one list; itself if it is no larger."""
        if self.table.candidates.n_pairs <= max_pairs:
            return self
        kept = drawn_lists(self.sizes, max_pairs, self.seed)
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
        if len(np.unique(seen.fold)) < 2:  # described by one TrainingView, and so divided anew
            fold = fold_of_rows(len(seen.weight), DEFAULT_FOLDS, self.seed, groups=seen.groups)
            seen = replace(seen, fold=fold)
        return seen if trial.described is None else replace(seen, table=trial.described)

    def by_fold(self) -> RankingData:
        """Without trials: for candidates of cross-validation, which are not logged."""
        return replace(self, outer=None, shown=None)

    def placed(self, scores: np.ndarray) -> np.ndarray:
        """Scores (m,) of which those of pairs that are not `shown` are drawn, by hash, from the row's others.

        A label all of whose rows are held out has no evidence, and that it has none tells that they are. It
        replaces any other rule, as if its rows showed no difference.
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


def _of_lists(part: OuterPart[FeatureTable], kept: np.ndarray) -> OuterPart[FeatureTable]:
    """A part of some lists (ascending ids), numbered by their places among them."""
    seen = np.isin(part.seen, kept)
    table = part.described
    if table is not None:
        _, pairs = entries_of_rows(table.indptr, np.flatnonzero(seen))
        table = FeatureTable(table.values[pairs], table.names, table.candidates.rows(np.flatnonzero(seen)))
    held_out = part.held_out[np.isin(part.held_out, kept)]
    return OuterPart(np.searchsorted(kept, held_out), np.searchsorted(kept, part.seen[seen]), table)


def informative_lists(gains: np.ndarray, indptr: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """bool (n,): lists of positive weight that hold two different gains."""
    least, greatest = (extreme_of_rows(of, gains, indptr, 0.0) for of in (np.minimum, np.maximum))
    return (greatest > least) & (weight > 0)


def hash_numbers(n: int, seed: int) -> np.ndarray:
    """int32 (n,): a pseudo-random number for each index, a function of (seed, index)."""
    return _core.fold_of_rows(n, 2**31 - 1, seed)


def drawn(n: int, wanted: int, seed: int) -> np.ndarray:
    """The `wanted` of n positions of smallest hash, ascending."""
    return np.sort(np.argsort(hash_numbers(n, seed), kind="stable")[:wanted])


def drawn_lists(sizes: np.ndarray, most: int, seed: int) -> np.ndarray:
    """The numbers of as many lists, by hash, as hold `most` pairs together, ascending; at least one."""
    order = np.argsort(hash_numbers(len(sizes), seed), kind="stable")
    return np.sort(order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))])

"""The most probable label set."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from metarank import _core
from metarank._util.elementary import log
from metarank.persist.fields import Array, Flag, Ids, Number
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.rules import Threshold
from metarank.types.candidates import Candidates

_PRIOR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
# The set of all labels more probable than not competes as if it had been seen this often.
_PSEUDO_COUNT = 0.3
# Most cells (sets times labels) that are kept; the most frequent sets stay.
_MAX_CELLS = 1_000_000


class SubsetThreshold(Threshold):
    """Keep the label set with the greatest ``sum of its logits + b log(times seen in training)``.

    The sets seen in training and the set of labels with a probability above 0.5 are compared. b is chosen on
    the training rows, each left out of its own counts. This needs lists of all L labels of training. On
    shorter lists each label is decided separately (and the best label is kept where no training row is
    empty), as are labels added after training.
    """

    family = "subset"

    sets: Annotated[np.ndarray, Array("", np.bool_, ("sets", None))]
    counts: Annotated[np.ndarray, Ids("", np.int64, ("sets",), least=1, below=2**62)]
    prior_weight: Annotated[float, Number("", 0, 1)]
    keep_best: Annotated[bool, Flag("")]

    def fit(self, lists: ScoredLists, metric: str) -> SubsetThreshold:
        n, n_labels = lists.n_rows, lists.candidates.n_labels
        self.keep_best = lists.never_empty
        self.prior_weight = 0.0
        self.sets, self.counts = np.zeros((0, n_labels), bool), np.zeros(0, np.int64)
        if not lists.candidates.is_full or n == 0:
            return self
        truth = lists.truth.reshape(n, n_labels)
        packed, first, set_of_row, counts = np.unique(
            np.packbits(truth, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        place = np.argsort(-counts, kind="stable")[: max(1, _MAX_CELLS // n_labels)]
        self.sets, self.counts = truth[first[place]], counts[place]
        known = np.full(len(packed), -1)
        known[place] = np.arange(len(place))
        own = known[set_of_row.ravel()]

        z = lists.logits.reshape(n, n_labels).astype(np.float32)
        half, half_value = self._half(z)
        half_right = (half == truth).all(axis=1)
        values = self._set_values(z)
        prior = np.tile(log(self.counts), (n, 1))
        rows = np.flatnonzero(own >= 0)
        prior[rows, own[rows]] = log(self.counts[own[rows]] - 1.0)
        values[np.isinf(prior)] = -np.inf
        prior[np.isinf(prior)] = 0.0
        right = []
        for b in _PRIOR_WEIGHTS:
            total = values + b * prior
            best = np.argmax(total, axis=1)
            seen_wins = total[np.arange(n), best] >= half_value + b * log(_PSEUDO_COUNT)
            right.append(np.count_nonzero(np.where(seen_wins, best == own, half_right)))
        self.prior_weight = _PRIOR_WEIGHTS[int(np.argmax(right))]
        return self

    def keep(self, lists: ScoredLists) -> np.ndarray:
        n, n_known = lists.n_rows, self.sets.shape[1]
        known = lists.labels < n_known
        kept = lists.logits >= 0
        if len(self.sets) == 0 or np.count_nonzero(known) < n * n_known:
            return kept | (lists.rank == 0) if self.keep_best else kept
        z = lists.logits[known].reshape(n, n_known).astype(np.float32)
        half, half_value = self._half(z)
        total = self._set_values(z) + self.prior_weight * log(self.counts)
        best = np.argmax(total, axis=1)
        seen_wins = total[np.arange(n), best] >= half_value + self.prior_weight * log(_PSEUDO_COUNT)
        kept[known] = np.where(seen_wins[:, None], self.sets[best], half).ravel()
        return kept

    def _half(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The set of labels with logit >= 0, and the sum of its logits in the order used for other sets."""
        half = z >= 0
        value = np.zeros(len(z), np.float32)
        for column in z.T:
            value += np.maximum(column, np.float32(0))
        return half, value.astype(np.float64)

    def _set_values(self, z: np.ndarray) -> np.ndarray:
        """float64 (n, number of sets): sum of the logits of each set."""
        k = len(self.sets)
        weights = np.ascontiguousarray(self.sets.T, np.float32)
        every = Candidates.all_labels(len(z), k)
        sums = _core.linear_scores_dense(z, weights, np.zeros(k, np.float32), every.indptr, every.labels, 1)
        return sums.reshape(len(z), k).astype(np.float64)

"""How often the pairs that a source proposed are relevant: the pairs, bins of their scores, and rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import log
from metarank.scorers.given.lists import places, rows_of
from metarank.types.given import Given
from metarank.types.view import TrainingSet

# The best scores of all training lists fall into bins that grow by a factor; the first holds so many pairs.
_FIRST_BIN, _BIN_GROWTH = 30, 1.3
# Places 0, 1, 2, ... of a list fall into bins that grow by a factor too.
PLACES = np.unique(np.round(1.25 ** np.arange(35)).astype(np.int64))
# The range of the pairs that a label's own record is weighed against.
_LEAST_WEIGHT, _MOST_WEIGHT = 0.3, 50.0


@dataclass(frozen=True, eq=False)
class ProposedPairs:
    """The pairs that a source proposed for labelled rows, and what became of them.

    Parameters
    ----------
    n_rows : int
    row, label, bin, place : int arrays (m,)
    hit : float64 array (m,), 1 where the pair is relevant
    relevant_row, relevant : int arrays, the relevant pairs of the rows
    n_relevant : int array (n,)
    """

    n_rows: int
    row: np.ndarray
    label: np.ndarray
    bin: np.ndarray
    place: np.ndarray
    hit: np.ndarray
    relevant_row: np.ndarray
    relevant: np.ndarray
    n_relevant: np.ndarray

    @classmethod
    def of(cls, given: Given, source: str, edges: np.ndarray, Y: sp.csr_matrix) -> ProposedPairs:
        own = given.scores[source]
        return cls(
            n_rows=given.n_rows,
            row=rows_of(own),
            label=own.indices,
            bin=np.searchsorted(edges, own.data, side="right"),
            place=np.searchsorted(PLACES, places(own), side="right"),
            hit=(given.candidates(source).values_of(Y) > 0).astype(np.float64),
            relevant_row=rows_of(Y),
            relevant=Y.indices,
            n_relevant=np.diff(Y.indptr),
        )

    def showing(self, data: TrainingSet, fold: int) -> ProposedPairs:
        """What the View without a fold shows of it; see `TrainingSet.hidden_in`."""
        if data.hidden_in is None:
            return self
        shown = data.hidden_in != fold
        of_relevant = shown[self.relevant]
        row = self.relevant_row[of_relevant]
        return replace(
            self,
            hit=self.hit * shown[self.label],
            relevant_row=row,
            relevant=self.relevant[of_relevant],
            n_relevant=np.bincount(row, minlength=self.n_rows),
        )


def edges(scores: np.ndarray) -> tuple[np.ndarray, float]:
    """The lower bounds of the bins of scores, float32, and the least logarithm of a positive score."""
    positive = scores[scores > 0]
    least_log = float(log(positive.min().astype(np.float64))) if len(positive) else 0.0
    ordered = np.sort(scores)[::-1]
    growth = int(np.ceil(np.log(max(2, len(ordered))) / np.log(_BIN_GROWTH)))
    tops = np.unique((_FIRST_BIN * _BIN_GROWTH ** np.arange(growth)).astype(np.int64))
    return np.unique(ordered[tops[tops < len(ordered)]]).astype(np.float32), least_log


def tally(group: np.ndarray, hit: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, and relevant ones, of each of n groups."""
    return np.bincount(group, minlength=n), np.bincount(group, weights=hit, minlength=n)


def weight_of_scores(hits: np.ndarray, expected: np.ndarray) -> float:
    """The pairs a = 1/v against which a label's own record is weighed.

    v is how far the true ratios of hits h to expected hits e spread over labels: in a gamma-Poisson mixture
    E (h - e)^2 = e + v e^2.
    """
    spread = float(((hits - expected) ** 2 - expected).sum())
    scale = float((expected**2).sum())
    if spread <= 0 or scale <= 0:
        return _MOST_WEIGHT
    return float(np.clip(scale / spread, _LEAST_WEIGHT, _MOST_WEIGHT))


def monotone(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest rates that do not decrease (pool adjacent violators)."""
    pools: list[list[float]] = []  # (rate, weight, length)
    for rate, weight in zip(rates.tolist(), weights.tolist()):
        pools.append([rate, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            b, a = pools.pop(), pools.pop()
            both = a[1] + b[1]
            pools.append([(a[0] * a[1] + b[0] * b[1]) / both, both, a[2] + b[2]])
    return np.repeat([rate for rate, _, _ in pools], [int(n) for _, _, n in pools])

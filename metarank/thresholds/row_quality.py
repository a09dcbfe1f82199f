"""Expected precision, recall and F1 of the label set of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from metarank.persist.fields import Array, Number
from metarank.persist.spec import Saved
from metarank.thresholds.lists import ScoredLists

_KNOTS, _LEAST_ROWS = 20, 100


@dataclass(eq=False, repr=False)
class RowQuality(Saved):
    """The expected precision, recall and F1 of a row's label set.

    Precision is the mean probability of the kept labels. Recall and F1 also need the number of relevant
    labels. Probabilities alone leave out labels that are not candidates, and assume that labels are
    independent. So a rising curve, learned from held-out training rows, corrects the forecast.

    Parameters
    ----------
    forecast, observed : float64 arrays (2, knots)
        Of F1, and of recall, over rows whose sets are not empty; recall over those with a relevant label.
    empty : float
        The share of rows with an empty set that have no relevant label.
    """

    forecast: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]
    observed: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]
    empty: Annotated[float, Number("", 0, 1)]

    @classmethod
    def learned(cls, lists: ScoredLists, kept: np.ndarray) -> RowQuality:
        """Learn from held-out rows with relevance, and the pairs of their sets."""
        from sklearn.isotonic import IsotonicRegression

        n = lists.n_rows
        hits = np.bincount(lists.row[kept & lists.truth], minlength=n)
        relevant = lists.relevant_per_row + lists.missed_per_row
        size = np.bincount(lists.row[kept], minlength=n)
        forecast, observed = np.tile([0.0, 1.0], (2, 2, 1))
        counted = np.flatnonzero(size > 0), np.flatnonzero((size > 0) & (relevant > 0))
        if len(counted[1]) >= _LEAST_ROWS:
            true = 2 * hits / np.maximum(size + relevant, 1), hits / np.maximum(relevant, 1)
            knots = []
            for rough, came, rows in zip(_rough(lists, kept)[1:], true, counted):
                parts = np.array_split(rows[np.argsort(rough[rows], kind="stable")], _KNOTS)
                knots.append([[0.0, *(of[part].mean() for part in parts)] for of in (rough, came)])
            forecast, observed = np.swapaxes(knots, 0, 1)
            pairs = zip(forecast, observed)  # equal forecasts share their mean
            observed = np.array([IsotonicRegression().fit_transform(x, came) for x, came in pairs])
        empty = relevant[size == 0]
        return cls(forecast, observed, float(np.mean(empty == 0)) if len(empty) else 0.0)

    def of(self, lists: ScoredLists, kept: np.ndarray) -> dict[str, NDArray[np.float32]]:
        """The columns precision, recall and f1, float32 (n,) each. An empty set has precision NaN, recall 0,
        and as F1 the share of such rows that have no label, since F1 is 1 there."""
        precision, *others = _rough(lists, kept)
        f1, recall = (np.interp(others[j], self.forecast[j], self.observed[j]) for j in range(2))
        none = np.isnan(precision)
        recall, f1 = np.where(none, 0.0, recall), np.where(none, self.empty, f1)
        return dict(zip(("precision", "recall", "f1"), np.array([precision, recall, f1], np.float32)))


def _rough(lists: ScoredLists, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, F1 and recall from the probabilities of candidates alone."""
    n, p = lists.n_rows, lists.probabilities
    hits = np.bincount(lists.row[kept], p[kept], n)
    size, relevant = np.bincount(lists.row[kept], minlength=n), np.bincount(lists.row, p, n)
    precision = np.divide(hits, size, out=np.full(n, np.nan), where=size > 0)
    return precision, 2 * hits / np.maximum(size + relevant, 1e-12), hits / np.maximum(relevant, 1e-12)

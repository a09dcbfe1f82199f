"""Decisions by probabilities: what mistakes cost, how many labels a row gets, what a row's set is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from metarank._util.parameters import check_integer
from metarank.persist.fields import Array
from metarank.persist.spec import Saved
from metarank.thresholds.lists import ScoredLists
from metarank.types.checks import check_numbers

MISTAKES = ("false_positive", "false_negative")
QUALITY = ("precision", "recall", "f1")
_KNOTS, _LEAST_ROWS = 20, 100


@dataclass(frozen=True, eq=False)
class Costs:
    """What mistakes cost: the cut of least expected cost keeps a label whose odds are at least their ratio.

    Parameters
    ----------
    false_positive, false_negative : float64 array (L,) or ()
        >= 0, and not both 0.

    Examples
    --------
    >>> costs = Costs.read("false_positive=1, false_negative=4")
    >>> round(float(costs.least_probability()), 3)
    0.2
    """

    false_positive: np.ndarray
    false_negative: np.ndarray

    @classmethod
    def read(cls, optimize: Any) -> Costs | None:
        """Costs in a mapping, a table of two columns or a text; None of what names no mistake.

        Raises
        ------
        ValueError
            A cost is missing, below 0, not finite, or both are 0; a column is no mistake.
        """
        if isinstance(optimize, str) and any(name in optimize for name in MISTAKES):
            optimize = dict(part.partition("=")[::2] for part in optimize.replace(" ", "").split(","))
        elif hasattr(optimize, "columns"):
            optimize = {name: np.asarray(optimize[name]) for name in optimize.columns}
        if not isinstance(optimize, Mapping):
            return optimize if isinstance(optimize, Costs) else None
        if set(optimize) != set(MISTAKES):
            told = sorted(map(str, optimize))
            raise ValueError(f"optimize must hold the costs {' and '.join(MISTAKES)}, got {told!s:.80}")
        costs = {}
        for name in MISTAKES:
            of_labels = check_numbers(np.atleast_1d(optimize[name]), f"optimize: {name}")
            costs[name] = of_labels if np.ndim(optimize[name]) else of_labels[0]
            if (costs[name] < 0).any():
                raise ValueError(f"optimize: {name} must be >= 0, got {costs[name].min():g}")
        out = cls(**costs)
        if np.any((out.false_positive == 0) & (out.false_negative == 0)):
            raise ValueError("optimize: false_positive and false_negative must not both be 0")
        return out

    def check(self, n_labels: int) -> Costs:
        """Itself, if it has one cost, or one a label."""
        for name in MISTAKES:
            costs = getattr(self, name)
            if costs.ndim and len(costs) != n_labels:
                raise ValueError(
                    f"optimize: {name} must be a number, or {n_labels}, one a label, got {len(costs)}"
                )
        return self

    def least_probability(self) -> Any:
        """From which on a label is kept."""
        return self.false_positive / (self.false_positive + self.false_negative)

    def keep(self, lists: ScoredLists) -> NDArray[np.bool_]:
        """bool (m,)"""
        positive, negative = (
            of[lists.labels] if of.ndim else of for of in (self.false_positive, self.false_negative)
        )
        p = lists.probabilities
        return np.asarray((1 - p) * positive <= p * negative) & (negative > 0)


@dataclass(frozen=True)
class SetSizes:
    """How many labels a row gets at least and at most, whatever the cut says: its best ones.

    Raises
    ------
    ValueError, TypeError
        If they are no whole numbers, `at_least` below 0, or `at_most` below `at_least` or 1.
    """

    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        check_integer("at_least", self.at_least, 0)
        if self.at_most is not None:
            check_integer("at_most", self.at_most, max(1, self.at_least))

    def __bool__(self) -> bool:
        return self.at_least > 0 or self.at_most is not None

    def hold(self, kept: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """bool (m,): the kept pairs, by the place of each pair in its row."""
        most = rank < (np.inf if self.at_most is None else self.at_most)
        return (kept & most) | (rank < self.at_least)


ANY_SIZE = SetSizes()


@dataclass(eq=False, repr=False)
class RowQuality(Saved):
    """What precision, recall and F1 of a row's label set are to be expected.

    Precision is the mean probability of the kept labels. Recall and F1 also need the number of relevant
    labels. By probabilities alone that leaves out those that are no candidates, and takes labels to be
    independent: a rising curve, learned from held-out training rows, leads to what came true.

    Parameters
    ----------
    forecast, observed : float64 arrays (2, knots)
        Of recall and F1.
    """

    forecast: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]
    observed: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]

    @classmethod
    def learned(cls, lists: ScoredLists, kept: np.ndarray) -> RowQuality:
        """Of held-out rows with relevance, and the pairs of their sets."""
        n = lists.n_rows
        hits = np.bincount(lists.row[kept & lists.truth], minlength=n)
        relevant = lists.relevant_per_row + lists.missed_per_row
        size = np.bincount(lists.row[kept], minlength=n)
        true = (hits / np.maximum(relevant, 1), 2 * hits / np.maximum(size + relevant, 1))
        forecast, observed = np.tile([0.0, 1.0], (2, 2, 1))
        counted = np.flatnonzero(relevant > 0)
        if len(counted) >= _LEAST_ROWS:
            knots = []
            for rough, came in zip(_rough(lists, kept)[1:], true):
                parts = np.array_split(counted[np.argsort(rough[counted], kind="stable")], _KNOTS)
                knots.append([[0.0, *(of[part].mean() for part in parts)] for of in (rough, came)])
            forecast, observed = np.swapaxes(knots, 0, 1)
            observed = np.array(
                [IsotonicRegression().fit_transform(range(_KNOTS + 1), of) for of in observed]
            )
        return cls(forecast, observed)

    def of(self, lists: ScoredLists, kept: np.ndarray) -> dict[str, NDArray[np.float32]]:
        """A table with a line a row: float32 (n,) each. Of a row without a label precision is NaN, and recall
        and F1 are 0."""
        precision, *others = _rough(lists, kept)
        out = {"precision": precision}
        for j, name in enumerate(QUALITY[1:]):
            value = np.interp(others[j], self.forecast[j], self.observed[j])
            out[name] = np.where(np.isnan(precision), 0.0, value)
        return {name: values.astype(np.float32) for name, values in out.items()}


def _rough(lists: ScoredLists, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1 by the probabilities of candidates alone."""
    n, p = lists.n_rows, lists.probabilities
    hits = np.bincount(lists.row[kept], p[kept], n)
    size, relevant = np.bincount(lists.row[kept], minlength=n), np.bincount(lists.row, p, n)
    precision = np.divide(hits, size, out=np.full(n, np.nan), where=size > 0)
    return precision, hits / np.maximum(relevant, 1e-12), 2 * hits / np.maximum(size + relevant, 1e-12)

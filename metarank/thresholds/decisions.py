"""Decisions by probabilities: what mistakes cost, how many labels a row gets, what a row's set is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from metarank._util.parameters import check_integer
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Saved
from metarank.thresholds.lists import ScoredLists
from metarank.types.checks import check_numbers

MISTAKES = ("false_positive", "false_negative")
_KNOTS, _LEAST_ROWS = 20, 100


@dataclass(frozen=True, eq=False)
class Costs:
    """What mistakes cost: the cut of least expected cost keeps a label whose odds are at least their ratio.

    Parameters
    ----------
    false_positive, false_negative : float64 array (L,) or ()
        >= 0, and not both 0.
    false_positive_of, false_negative_of : list or None
        The labels in their order, where they are not those of the model; `check` puts them into its order.

    Examples
    --------
    >>> from metarank.types.candidates import Candidates
    >>> lists = ScoredLists(Candidates.all_labels(1, 3), np.array([-2.0, -1.0, 0.0]))
    >>> Costs.read("false_positive=1, false_negative=4").keep(lists)
    array([False,  True,  True])
    """

    false_positive: np.ndarray
    false_negative: np.ndarray
    false_positive_of: list[Any] | None = None
    false_negative_of: list[Any] | None = None

    @classmethod
    def read(cls, optimize: Any) -> Costs | None:
        """Costs in a mapping, a table of two columns or a text; None of what names no mistake.

        Raises
        ------
        ValueError
            A cost is missing, below 0 or not finite; a column is no mistake.
        """
        if isinstance(optimize, str) and any(name in optimize for name in MISTAKES):
            parts = [part.partition("=")[::2] for part in optimize.replace(" ", "").split(",")]
            optimize = dict(parts) if len(dict(parts)) == len(parts) else {optimize: None}
        elif hasattr(optimize, "columns"):
            optimize = {name: optimize[name] for name in optimize.columns}
        if not isinstance(optimize, Mapping):
            return optimize if isinstance(optimize, Costs) else None
        if set(optimize) != set(MISTAKES):
            told = sorted(map(str, optimize))
            raise ValueError(f"optimize must hold the costs {' and '.join(MISTAKES)}, got {told!s:.80}")
        costs: dict[str, Any] = {}
        for name in MISTAKES:
            given, names = optimize[name], None
            if isinstance(given, Mapping):
                names, given = list(given), list(given.values())
            elif not callable(index := getattr(given, "index", len)) and type(index).__name__ != "RangeIndex":
                names = list(index)
            of_labels = check_numbers(np.atleast_1d(given), f"optimize: {name}")
            if (of_labels < 0).any():
                raise ValueError(f"optimize: {name} must be >= 0, got {of_labels.min():g}")
            costs[name], costs[f"{name}_of"] = (of_labels if np.ndim(given) else of_labels[0]), names
        return cls(**costs)

    def check(self, n_labels: int, label_names: Sequence[Any] | None = None) -> Costs:
        """The costs in the order of the labels; ValueError if they are not one, or one a label."""
        ordered: dict[str, Any] = {}
        for name in MISTAKES:
            costs, names = getattr(self, name), getattr(self, f"{name}_of")
            if costs.ndim and len(costs) != n_labels:
                raise ValueError(
                    f"optimize: {name} must be a number, or {n_labels}, one a label, got {len(costs)}"
                )
            if names is not None:
                known = dict(zip(names, costs))
                wanted = range(n_labels) if label_names is None else label_names
                if missing := [label for label in wanted if label not in known]:
                    raise ValueError(f"optimize: {name} must name all labels, got none for {missing[0]!r}")
                costs = np.array([known[label] for label in wanted])
            ordered[name] = costs
        out = Costs(**ordered)
        if np.any((out.false_positive == 0) & (out.false_negative == 0)):
            raise ValueError("optimize: false_positive and false_negative must not both be 0")
        return out

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
        return bool(self.at_least) or self.at_most is not None

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
        Of F1, and of recall, over rows whose sets are not empty; recall over those with a relevant label.
    empty : float
        The share of rows with an empty set that have no relevant label.
    """

    forecast: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]
    observed: Annotated[np.ndarray, Array("", np.float64, (2, "knots"), least=0, most=1)]
    empty: Annotated[float, Number("", 0, 1)]

    @classmethod
    def learned(cls, lists: ScoredLists, kept: np.ndarray) -> RowQuality:
        """Of held-out rows with relevance, and the pairs of their sets."""
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
        """A table with a line a row: float32 (n,) each. Of an empty set precision is NaN, recall 0, and F1
        the share of such rows that had no label, since it is then 1."""
        precision, *others = _rough(lists, kept)
        f1, recall = (np.interp(others[j], self.forecast[j], self.observed[j]) for j in range(2))
        none = np.isnan(precision)
        recall, f1 = np.where(none, 0.0, recall), np.where(none, self.empty, f1)
        out = {"precision": precision, "recall": recall, "f1": f1}
        return {name: values.astype(np.float32) for name, values in out.items()}


def _rough(lists: ScoredLists, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, F1 and recall by the probabilities of candidates alone."""
    n, p = lists.n_rows, lists.probabilities
    hits = np.bincount(lists.row[kept], p[kept], n)
    size, relevant = np.bincount(lists.row[kept], minlength=n), np.bincount(lists.row, p, n)
    precision = np.divide(hits, size, out=np.full(n, np.nan), where=size > 0)
    return precision, 2 * hits / np.maximum(size + relevant, 1e-12), hits / np.maximum(relevant, 1e-12)

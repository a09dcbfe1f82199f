"""What mistakes cost, and the label sets of least expected cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank.thresholds.lists import ScoredLists
from metarank.types.checks import check_numbers

MISTAKES = ("false_positive", "false_negative")


@dataclass(frozen=True, eq=False)
class Costs:
    """What mistakes cost. The set of least expected cost keeps a label whose odds are at least their ratio.

    Parameters
    ----------
    false_positive, false_negative : float64 array (L,) or ()
        >= 0, and not both 0.
    false_positive_of, false_negative_of : list or None
        The labels, where they are not in the order of the model; `check` sorts them.

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
        """Costs from a mapping, a table of two columns or a text; None if `optimize` names no mistake.

        Raises
        ------
        ValueError
            If a cost is missing, below 0 or not finite, or a column is not one of the two.
        """
        if isinstance(optimize, str) and any(name in optimize for name in MISTAKES):
            parts = [part.partition("=")[::2] for part in optimize.replace(" ", "").split(",")]
            optimize = dict(parts) if len(dict(parts)) == len(parts) else {optimize: None}
        elif hasattr(optimize, "columns"):
            optimize = {name: optimize[name] for name in optimize.columns}
        if not isinstance(optimize, Mapping):
            return optimize if isinstance(optimize, Costs) else None
        if set(optimize) != set(MISTAKES):
            got = sorted(map(str, optimize))
            raise ValueError(f"optimize must hold the costs {' and '.join(MISTAKES)}, got {got!s:.80}")
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
        """The costs in the order of the labels; ValueError for other labels or another number of them."""
        ordered: dict[str, Any] = {}
        for name in MISTAKES:
            costs, names = getattr(self, name), getattr(self, f"{name}_of")
            if names is None and costs.ndim and len(costs) != n_labels:
                raise ValueError(f"optimize: {name} must hold 1 or {n_labels} numbers, got {len(costs)}")
            if names is not None:
                known = dict(zip(names, costs))
                wanted = range(n_labels) if label_names is None else label_names
                if wrong := sorted({*wanted} ^ known.keys(), key=str):
                    raise ValueError(f"optimize: {name} must name all labels and no other, see {wrong[0]!r}")
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

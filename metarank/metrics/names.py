"""Names of metrics: "nDCG@5" is parsed to a `Metric` and printed back unchanged."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from metarank.metrics import areas, gains, regression, sets
from metarank.metrics import ranking_metrics as ranking
from metarank.metrics.inputs import Inputs
from metarank.metrics.meanings import meaning
from metarank.metrics.statistics import Statistics

Needs = Literal["ranking", "scores", "relevance", "sets"]


@dataclass(frozen=True)
class Definition:
    """What a name means; its metrics take a `k` never, always or optionally."""

    k: Literal["none", "required", "optional"]
    needs: Needs
    statistics: Callable[[Inputs, Any], Statistics] | None = None
    value: Callable[[Inputs, Any], float] | None = None  # for a metric that is no function of sums over rows
    greater_is_better: bool = True
    unit: str = "fraction"
    labelwise: bool = False  # points and labels swapped: statistics of labels


_ERROR: Final = Definition("required", "relevance", greater_is_better=False, unit="relevance")
_GRADED: Final[dict[str, Definition]] = {
    "WP": Definition("required", "ranking", gains.wp_rows),
    "WN": Definition("required", "ranking", gains.wn_rows),
    "Tau": Definition("required", "ranking", gains.tau_rows),
    "WP-regret": replace(_ERROR, needs="ranking", statistics=gains.wp_regret_rows),
    "Regression-error": replace(_ERROR, statistics=regression.regression_error_rows),
    "XMAD": replace(_ERROR, statistics=regression.xmad_rows),
    "XRMSE": replace(_ERROR, statistics=regression.xrmse_rows),
    "MAD": replace(_ERROR, k="none", statistics=regression.mad_rows),
}

DEFINITIONS: Final[dict[str, Definition]] = {
    "P": Definition("required", "ranking", ranking.precision_rows),
    "R": Definition("required", "ranking", ranking.recall_rows),
    "F1": Definition("required", "ranking", ranking.f1_rows),
    "nDCG": Definition("optional", "ranking", ranking.ndcg_rows),
    "MAP": Definition("none", "scores", ranking.average_precision_rows),
    "RankLoss": Definition("none", "scores", ranking.ranking_loss_rows, greater_is_better=False),
    "One-error": Definition("none", "ranking", ranking.one_error_rows, greater_is_better=False),
    "Coverage": Definition(
        "none", "scores", ranking.coverage_rows, greater_is_better=False, unit="positions"
    ),
    "MRR": Definition("optional", "ranking", ranking.reciprocal_rank_rows),
    "MRR-all": Definition("none", "scores", ranking.reciprocal_rank_all_rows),
    "ADG": Definition("none", "scores", ranking.average_discounted_gain_rows),
    "AUC": Definition("none", "scores", value=areas.macro_auc),
    "micro-AUC": Definition("none", "scores", value=areas.pooled_auc),
    "PSP": Definition("required", "ranking", gains.psp_rows),
    "PSnDCG": Definition("required", "ranking", gains.psndcg_rows),
    "PSP-point": Definition("required", "ranking", gains.psp_point_rows),
    "PSnDCG-point": Definition("required", "ranking", gains.psndcg_point_rows),
    "C": Definition("required", "ranking", gains.distinct_rows),
    **_GRADED,
    **{f"{name}-l": replace(definition, labelwise=True) for name, definition in _GRADED.items()},
    "RMSE": replace(_ERROR, k="none", statistics=regression.rmse_rows),
    "AUPRC": Definition("none", "relevance", value=areas.average_precision),
    "micro-F1": Definition("none", "sets", sets.micro_f1_rows),
    "macro-F1": Definition("none", "sets", sets.macro_f1_rows),
    "example-F1": Definition("none", "sets", sets.example_f1_rows),
    "example-precision": Definition("none", "sets", sets.example_precision_rows),
    "example-recall": Definition("none", "sets", sets.example_recall_rows),
    "Hamming": Definition("none", "sets", sets.hamming_rows, greater_is_better=False),
    "subset-accuracy": Definition("none", "sets", sets.subset_accuracy_rows),
    "LabelCoverage": Definition("none", "sets", sets.label_coverage_rows),
    "hP": Definition("none", "sets", sets.hierarchical_precision_rows),
    "hR": Definition("none", "sets", sets.hierarchical_recall_rows),
    "hF": Definition("none", "sets", sets.hierarchical_f1_rows),
}


@dataclass(frozen=True)
class Metric:
    """A metric by name, with its k if it has one.

    Attributes
    ----------
    name : str
        Without k: "nDCG".
    k : int or None
    greater_is_better : bool
    needs : "ranking", "scores", "relevance" or "sets"
        Its input: the first k labels, the whole list, scores that are predictions of relevance, or label
        sets. ("nDCG" and "MRR" without k need "scores".)
    unit : "fraction", "positions" or "relevance"

    Examples
    --------
    >>> m = Metric.parse("nDCG@5")
    >>> m.name, m.k, m.needs, str(m)
    ('nDCG', 5, 'ranking', 'nDCG@5')
    >>> Metric.parse("RankLoss").greater_is_better
    False
    >>> Metric.parse("ndcg@5")
    Traceback (most recent call last):
    ValueError: unknown metric 'ndcg@5'; did you mean 'nDCG@5'? Known: P@k, R@k, F1@k, nDCG, nDCG@k, ...
    """

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        definition = DEFINITIONS.get(self.name)
        if definition is None:
            raise ValueError(unknown(str(self)))
        if self.k is None and definition.k == "required":
            raise ValueError(f"metric {self.name!r} needs a k, as in '{self.name}@5'")
        if self.k is not None and definition.k == "none":
            raise ValueError(f"metric {self.name!r} takes no k, got '{self}'")
        if self.k is not None and self.k < 1:
            raise ValueError(f"the k of a metric must be positive, got '{self}'")

    @classmethod
    def parse(cls, name: str | Metric) -> Metric:
        """The metric of a name, or the metric itself.

        Raises
        ------
        ValueError
            If the name is unknown, or its k is missing, not allowed, or not a positive integer.
        """
        if isinstance(name, Metric):
            return name
        if not isinstance(name, str):
            raise TypeError(f"a metric is named by a string, got {name!r}")
        parts = re.fullmatch(r"([A-Za-z][A-Za-z0-9-]*)(?:@(0|[1-9][0-9]{0,8}))?", name)
        if parts is None:
            raise ValueError(unknown(name))
        return cls(parts[1], None if parts[2] is None else int(parts[2]))

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @property
    def definition(self) -> Definition:
        return DEFINITIONS[self.name]

    @property
    def greater_is_better(self) -> bool:
        return self.definition.greater_is_better

    @property
    def needs(self) -> Needs:
        needs = self.definition.needs
        full_list = (self.definition.k == "optional" and self.k is None) or self.definition.labelwise
        return "scores" if full_list and needs == "ranking" else needs

    @property
    def unit(self) -> str:
        return self.definition.unit

    @property
    def meaning(self) -> str:
        """What it measures, its unit, and whether greater is better.

        Examples
        --------
        >>> Metric.parse("One-error").meaning
        'the share of rows whose first label is irrelevant; in per cent, less is better'
        """
        return meaning(self.name, self.k, self.unit, self.greater_is_better)

    def shown(self, value: float) -> str:
        """A value as tables and pages show it: fractions times 100, label positions and errors as they are.

        Examples
        --------
        >>> Metric("P", 5).shown(0.4733333), Metric("Coverage").shown(1.75), Metric("MAP").shown(np.nan)
        ('47.33', '1.750', '–')
        """
        if value != value:
            return "–"
        digits = {"positions": 3, "relevance": 4}.get(self.unit)
        return f"{100 * value:.2f}" if digits is None else f"{value:.{digits}f}"

    def statistics(self, inputs: Inputs) -> Statistics | None:
        """The metric as a function of sums over rows, or None."""
        return None if self.definition.labelwise else self._statistics(inputs)

    def per_row(self, inputs: Inputs) -> np.ndarray | None:
        """Values of the rows (labelwise: of the labels) whose mean is the metric, or None."""
        of_rows = self._statistics(inputs)
        return None if of_rows is None else of_rows.per_row

    def value(self, inputs: Inputs) -> float:
        if self.definition.value is not None:
            return self.definition.value(inputs, self.k)
        of_rows = self._statistics(inputs)
        assert of_rows is not None
        return of_rows.value

    def _statistics(self, inputs: Inputs) -> Statistics | None:
        if self.definition.statistics is None:
            return None
        return self.definition.statistics(inputs.swapped if self.definition.labelwise else inputs, self.k)


def known_names() -> list[str]:
    """All names, with "@k" where there is a k.

    Examples
    --------
    >>> known_names()[:4]
    ['P@k', 'R@k', 'F1@k', 'nDCG']
    """
    forms = {"none": ("",), "required": ("@k",), "optional": ("", "@k")}
    return [name + form for name, definition in DEFINITIONS.items() for form in forms[definition.k]]


def unknown(name: str) -> str:
    """The message for an unknown metric: the closest name, and how to list all."""
    base, at, k = name.partition("@")
    folded = {n.lower(): n for n in DEFINITIONS}
    close = difflib.get_close_matches(base.lower(), folded, n=1, cutoff=0.5)
    meant = f"{folded[close[0]]}{at}{k}" if close else name
    hint = f"; did you mean {meant!r}?" if meant != name else "; k is a whole number from 1." if at else "."
    return f"unknown metric {name!r}{hint} Known: {', '.join(known_names())}"

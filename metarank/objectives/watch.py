"""Metrics of each objective while a model is trained, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metarank._util.progress import report
from metarank.objectives.checks import Grouping, metric_of
from metarank.objectives.ndcg import NdcgLists
from metarank.objectives.pairwise import AucPairs, Cost
from metarank.objectives.partial_labels import attenuation, completed


class Metrics:
    """AUC and, with queries, nDCG@10 of each objective on one set of rows.

    A graded label's AUC is the multipartite one; with queries it is the mean over those that have a pair.
    With propensities it is the AUC of the complete labels, and there is no nDCG; see
    `metarank.objectives.partial_labels`.

    Examples
    --------
    >>> from metarank.objectives import check_groups
    >>> metrics = Metrics(np.array([[0.0], [1.0]]), check_groups(2), ["clicks"])
    >>> metrics.measure(np.array([0.1, 0.2]))
    array([[1.]])
    """

    def __init__(
        self,
        values: np.ndarray,
        grouping: Grouping,
        objectives: Sequence[str],
        *,
        cost: Cost = "difference",
        label_gain: Any = None,
        where: str = "Y",
        n_jobs: int = 1,
        propensity: np.ndarray | None = None,
    ) -> None:
        self.objectives: list[str] = list(objectives)
        self.grouping: Grouping = grouping
        self.n_jobs = n_jobs
        self._factor: np.ndarray | None = None
        if propensity is not None:
            self._factor = attenuation(values, propensity, grouping, objectives)
            values = completed(values, propensity)
        called = [f"the label {name!r} of {where}" for name in objectives]
        columns = list(zip(values.T, called))
        self._pairs = [AucPairs(y, grouping, cost=cost, name=name) for y, name in columns]
        self._lists = []
        if grouping.has_queries and propensity is None:
            self._lists = [NdcgLists(y, grouping, label_gain=label_gain, name=name) for y, name in columns]
        self.names: list[str] = ["auc", "ndcg@10"] if self._lists else ["auc"]

    def measure(self, scores: np.ndarray) -> np.ndarray:
        """float64 (K, M): a row per objective, a column per metric."""
        areas = np.array([pairs.area(scores, n_jobs=self.n_jobs) for pairs in self._pairs])
        if self._factor is not None:
            areas = 0.5 + self._factor * (areas - 0.5)
        out = [[area] for area in areas.tolist()]
        for row, lists in zip(out, self._lists):
            row.append(lists.ndcg(scores, 10, n_jobs=self.n_jobs))
        return np.array(out)

    def column(self, metric: str) -> int:
        """Number of the metric that a ranker's parameter `metric` asks for."""
        return self.names.index(metric_of(metric, self.grouping))


class Watch:
    """Keeps the metrics of every round, and says when training should stop.

    Parameters
    ----------
    metrics : Metrics
    metric : "auc" or "ndcg"
        The one that counts.
    stop_on : int, "min" or "mean"
        An objective's number, or what of all objectives.
    patience : int
        Rounds without a gain; 0 never stops, and the last round is the best.
    part : (int, int)
        The number of this training, from 0, and how many there are: for the report of progress.
    """

    def __init__(
        self, metrics: Metrics, metric: str, stop_on: int | str, patience: int, part: tuple[int, int]
    ) -> None:
        self.metrics = metrics
        self.part = part
        self.column: int = metrics.column(metric)
        self.stop_on = stop_on
        self.patience = patience
        self.history: list[np.ndarray] = []
        self.best: int = 0  # round, from 0

    def record(self, scores: np.ndarray) -> bool:
        """Measure the scores after a round; whether to stop."""
        self.history.append(self.metrics.measure(scores))
        now = len(self.history) - 1
        if not self.patience or self._value(now) > self._value(self.best):
            self.best = now
        return bool(self.patience) and now - self.best >= self.patience

    def report(self, stage: str, done: float) -> None:
        """Say that a share of this training is done."""
        number, total = self.part
        which = f"model {number + 1} of {total}, " if total > 1 else ""
        report(f"{which}{stage}", min(1.0, (number + done) / total))

    @property
    def attained(self) -> np.ndarray:
        """float64 (K,): the metric of each objective at the best round."""
        return self.history[self.best][:, self.column]

    def curves(self) -> dict[str, dict[str, list[float]]]:
        """Of each objective, of each metric, a value a round."""
        return {
            objective: {
                name: [float(values[k, m]) for values in self.history]
                for m, name in enumerate(self.metrics.names)
            }
            for k, objective in enumerate(self.metrics.objectives)
        }

    def _value(self, number: int) -> float:
        values = self.history[number][:, self.column]
        if isinstance(self.stop_on, str):
            return float(values.min() if self.stop_on == "min" else values.mean())
        return float(values[self.stop_on])

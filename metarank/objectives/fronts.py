"""Trade-offs of several objectives: `pareto_front` trains for many weights and measures on held-out rows.

The front of points, its hypervolume and its knee can be had for any points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.parameters import LARGEST_SEED, check_integer, seed_of
from metarank._util.printable import plain_table
from metarank._util.progress import as_part, report
from metarank.objectives.aggregation import METHODS, PLUG_IN, Aggregation
from metarank.objectives.checks import metric_of
from metarank.objectives.front import hypervolume, knee, non_dominated
from metarank.objectives.learning import GradedRows, graded_rows
from metarank.objectives.multi_objective import MultiObjectiveRanker, names_of
from metarank.types.checks import check_same_order


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Result of `pareto_front`: a point for each model, a coordinate for each objective, on held-out rows.

    Attributes
    ----------
    objective_names : list of str
        K of them.
    metric : "auc" or "ndcg@10"
    weights : float64 array (m, K)
        Weights of each point, summing to 1.
    aggregation : list of str (m)
        The method of each point.
    points : float64 array (m, K)
        The metric of each objective; greater is better.
    models : list of MultiObjectiveRanker (m)
        Fitted, one per point. Those of a plug-in method share their probability models.
    alone : dict of str to MultiObjectiveRanker
        For each objective the model trained on it alone.
    alone_points : float64 array (K, K)
        Metrics of these models: row j is the model of objective j.
    n_rows, n_queries : int
        Rows and queries of the measurement; n_queries is 0 without queries.
    """

    objective_names: list[str]
    metric: str
    weights: NDArray[np.float64]
    aggregation: list[str]
    points: NDArray[np.float64]
    models: list[MultiObjectiveRanker]
    alone: dict[str, MultiObjectiveRanker]
    alone_points: NDArray[np.float64]
    n_rows: int
    n_queries: int

    @cached_property
    def on_front(self) -> NDArray[np.bool_]:
        """bool array (m,): the points that no other point dominates."""
        return non_dominated(self.points)

    @cached_property
    def knee(self) -> int:
        """Index of the knee, where a gain in one objective begins to cost most; see `objectives.knee`."""
        return knee(self.points)

    @cached_property
    def hypervolume(self) -> float:
        """Hypervolume of all points above 0, the least value of the metrics."""
        return hypervolume(self.points, 0.0)

    @cached_property
    def hypervolumes(self) -> dict[str, float]:
        """Hypervolume of the points of each method."""
        of = np.array(self.aggregation)
        return {
            method: hypervolume(self.points[of == method], 0.0) for method in dict.fromkeys(self.aggregation)
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts, ready for JSON, without the models."""
        return {
            "objectives": list(self.objective_names),
            "metric": self.metric,
            "n_rows": self.n_rows,
            "n_queries": self.n_queries,
            "hypervolume": self.hypervolume,
            "hypervolumes": dict(self.hypervolumes),
            "knee": self.knee,
            "points": [
                {
                    "aggregation": method,
                    "weights": weights.tolist(),
                    "values": values.tolist(),
                    "on_front": bool(on_front),
                }
                for method, weights, values, on_front in zip(
                    self.aggregation, self.weights, self.points, self.on_front
                )
            ],
            "alone": {name: values.tolist() for name, values in zip(self.objective_names, self.alone_points)},
        }

    def __str__(self) -> str:
        names = self.objective_names
        metric = {"auc": "AUC", "ndcg@10": "nDCG@10"}[self.metric]
        rows = [
            [
                self.aggregation[i] + (" (knee)" if i == self.knee else ""),
                *(f"{w:.3g}" for w in self.weights[i]),
                *(f"{value:.4f}" for value in self.points[i]),
            ]
            for i in self.front_order()
        ]
        rows += [
            [f"{name} alone", *("" for _ in names), *(f"{value:.4f}" for value in values)]
            for name, values in zip(names, self.alone_points)
        ]
        head = ["on the front", *(f"w {name}" for name in names), *(f"{metric} {name}" for name in names)]
        volumes = [
            [method, str(self.aggregation.count(method)), f"{volume:.6f}"]
            for method, volume in self.hypervolumes.items()
        ]
        if len(volumes) > 1:
            volumes.append(["all", str(len(self.points)), f"{self.hypervolume:.6f}"])
        where = f"{self.n_rows:,} held-out rows" + (f", {self.n_queries:,} queries" if self.n_queries else "")
        return "\n".join(
            [
                f"{len(self.points)} points, {self.on_front.sum()} on the front; {metric} on {where}",
                "",
                plain_table(head, rows),
                "",
                plain_table(["method", "points", "hypervolume"], volumes),
            ]
        )

    def front_order(self) -> np.ndarray:
        """int array: the points on the front, by descending first objective, then the second, and so on."""
        on_front = np.flatnonzero(self.on_front)
        return on_front[np.lexsort(-self.points[on_front].T[::-1])]


def pareto_front(
    X: Any,
    Y: Any,
    *,
    ranker: MultiObjectiveRanker | None = None,
    aggregations: Sequence[str] = ("label", "loss"),
    n_weights: int = 11,
    group: Any = None,
    qid: Any = None,
    eval_set: tuple[Any, Any] | None = None,
    eval_group: Any = None,
    eval_qid: Any = None,
    propensities: Any = None,
    eval_propensities: Any = None,
    feature_names: Sequence[str] | None = None,
) -> ParetoFront:
    """Trade-offs of several objectives in one ranking: a model for each of many weights, measured held out.

    Parameters
    ----------
    X : array-like or sparse (n, d), or data frame
    Y : array-like (n, K), data frame, or mapping of names to columns
        Grades >= 0 of K >= 2 objectives, at least two different ones for each.
    ranker : MultiObjectiveRanker, optional
        Its settings are used; the object itself is not changed or fitted. The sweep replaces its `weights`
        and the method of its `aggregation`. With `early_stopping` the held-out rows also choose the rounds,
        so that metrics on them are slightly too good.
    aggregations : sequence of str
        Some of "label", "loss", "product", "plug-in-label" and "plug-in-loss". The plug-ins train one model
        for each objective, whatever the number of weights.
    n_weights : int
        For K = 2 the number of weights on the line from (1, 0) to (0, 1), evenly spaced. Beyond, weights
        are the simplex lattice (multiples of 1 / H) with the greatest H that has at most `n_weights`
        points. If that lattice has no inner point, equal weights are added and count as one. The corners
        and this point are always trained.
    group, qid : array-like, optional
        Queries of the rows, as in `MultiObjectiveRanker.fit`.
    eval_set : (X, Y), optional
        Rows to measure on. Without it a quarter of the rows (with queries, of the queries) is held
        out, by hash: the first of four folds.
    eval_group, eval_qid : array-like, optional
        Queries of `eval_set`.
    propensities, eval_propensities : array-like or mapping, optional
        Where relevant labels are missing from Y, or from that of `eval_set`, as in
        `MultiObjectiveRanker.fit`: the front is then that of the complete labels.
    feature_names : sequence of str, optional
        Names of the columns of X; None takes those of a data frame.

    Returns
    -------
    ParetoFront
        `print` shows a table, `metarank.plot.front` draws it. It also has the model of each objective alone
        (loss aggregation with all weight on it).

    Raises
    ------
    ValueError, TypeError
        Fewer than two objectives; unknown, repeated or no aggregations; too few weights; a label
        constant in the rows trained or measured on; queries of which none can be held out; otherwise as
        `MultiObjectiveRanker.fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> Y = {"relevance": (X[:, 0] > 0) * 1, "clicks": (X[:, 1] - X[:, 0] > 1) * 1}
    >>> ranker = MultiObjectiveRanker(model="linear", n_jobs=1)
    >>> front = pareto_front(X, Y, ranker=ranker, aggregations=["loss"], n_weights=3)
    >>> front.points.shape, front.on_front.tolist(), front.knee
    ((3, 2), [True, True, True], 1)
    >>> front.models[front.knee].predict(X).shape
    (600,)
    """
    ranker = MultiObjectiveRanker() if ranker is None else ranker
    methods = _check_aggregations(aggregations)
    check_same_order(X=X, Y=Y, qid=qid)
    rows = graded_rows(ranker.features(X, min_rows=2), Y, group, qid, propensities)
    names = rows.names
    if len(names) < 2:
        raise ValueError(f"Y must hold at least two objectives, got {names}: one has no front")
    check_integer("n_weights", n_weights, len(names))
    swept = simplex_lattice(len(names), int(n_weights))
    seed = seed_of(ranker.random_state, LARGEST_SEED)
    settings = clone(ranker).set_params(random_state=seed)
    watched = settings._watched(eval_set, eval_group, eval_qid, eval_propensities, rows)
    if watched is None:
        if rows.n_queries == 1:
            raise ValueError(
                "group or qid must name at least two queries, of which one is held out: give eval_set"
            )
        out = rows.folds(4, seed) == 0
        rows, watched = rows.take(~out), rows.take(out, f"the {out.sum()} held-out rows")
    n_models = len(names) + sum(1 if method in PLUG_IN else len(swept) for method in methods)
    sweep = _Sweep(settings, rows, watched, n_models, names_of(X) if feature_names is None else feature_names)
    alone = [sweep.fit("loss", corner, f"{name} alone") for name, corner in zip(names, np.eye(len(names)))]
    models = [model for method in methods for model in sweep.models(method, swept, alone)]
    report("done", 1.0)
    return ParetoFront(
        objective_names=names,
        metric=metric_of(settings.metric, watched.grouping),
        weights=np.tile(swept, (len(methods), 1)),
        aggregation=[method for method in methods for _ in swept],
        points=np.array([model.attained_ for model in models]),
        models=models,
        alone=dict(zip(names, alone)),
        alone_points=np.array([model.attained_ for model in alone]),
        n_rows=len(watched.values),
        n_queries=watched.n_queries,
    )


class _Sweep:
    """The trainings of one call on checked `rows`, measured on those that are `watched`; `n_models` is how
    many will be trained, for the report of progress."""

    def __init__(
        self,
        settings: MultiObjectiveRanker,
        rows: GradedRows,
        watched: GradedRows,
        n_models: int,
        feature_names: Sequence[str] | None,
    ) -> None:
        self.settings, self.rows, self.watched, self.feature_names = settings, rows, watched, feature_names
        self.metrics = settings._metrics(watched)
        self._n_models, self._n_done = n_models, 0

    def models(
        self, method: str, swept: np.ndarray, alone: list[MultiObjectiveRanker]
    ) -> Iterator[MultiObjectiveRanker]:
        """A fitted model for each of the weights; `alone` are those of one objective, trained before."""
        fitted = self.fit(method, None, method) if method in PLUG_IN else None
        for number, w in enumerate(swept, 1):
            if fitted is not None:  # the same probability models, measured anew
                model = fitted.reweighted(w).set_params(weights=w)
                scores = model.predict(self.watched.X)
                model.attained_ = self.metrics.measure(scores)[:, self.metrics.column(model.metric)]
                yield model
            elif method == "loss" and np.count_nonzero(w) == 1:
                self._n_done += 1
                yield alone[int(w.argmax())]
            else:
                yield self.fit(method, w, f"{method}, weights {number} of {len(swept)}")

    def fit(self, method: str, weights: np.ndarray | None, stage: str) -> MultiObjectiveRanker:
        """One training, and the report of it."""
        aggregation = replace(Aggregation.of(self.settings.aggregation), method=method)  # type: ignore[arg-type]
        model = clone(self.settings).set_params(aggregation=aggregation, weights=weights)
        with as_part(stage, self._n_done / self._n_models, 1 / self._n_models):
            model._learn(model.settings(), self.rows, self.watched, self.metrics)
        model._feature_names = list(self.feature_names or ())
        self._n_done += 1
        return model


def simplex_lattice(n_objectives: int, n_weights: int) -> NDArray[np.float64]:
    """Weights that cover the simplex evenly, float64 (m, K), descending: all on the first objective first.

    Parameters
    ----------
    n_objectives : int
    n_weights : int
        See `pareto_front`.

    Examples
    --------
    >>> simplex_lattice(2, 3).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    >>> len(simplex_lattice(3, 11)), simplex_lattice(4, 4)[-1].tolist()
    (10, [0.25, 0.25, 0.25, 0.25])
    """
    k = n_objectives
    steps = 1
    while comb(steps + k, k - 1) + (steps + 1 < k and k > 2) <= n_weights:
        steps += 1
    # Stars and bars: K - 1 bars among steps + K - 1 places part the steps.
    rows = [np.diff([-1, *bars, steps + k - 1]) - 1 for bars in combinations(range(steps + k - 1), k - 1)]
    lattice = np.array(rows[::-1]) / steps
    if k > 2 and steps < k:  # every point lies on the rim
        lattice = np.vstack([lattice, np.full(k, 1 / k)])
    return lattice


def _check_aggregations(aggregations: Any) -> list[str]:
    methods = [aggregations] if isinstance(aggregations, str) else list(aggregations)
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"aggregations must be among {list(METHODS)}, got {method!r}")
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"aggregations must be one method or several different ones, got {methods}")
    return methods

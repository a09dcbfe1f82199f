"""`pareto_front`: train for many weights, measure on held-out rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.parameters import LARGEST_SEED, check_integer, seed_of
from metarank._util.progress import as_part, report
from metarank._util.threads import resolve_n_jobs
from metarank.objectives.checks import (
    Grouping,
    check_eval_set,
    check_groups,
    check_matrix,
    check_targets,
    check_weights,
    metric_of,
)
from metarank.objectives.choice import Choice
from metarank.objectives.front import check_reference
from metarank.objectives.labels import hash_uniform
from metarank.objectives.learning import PLUG_IN
from metarank.objectives.multi_objective import METHODS, MultiObjectiveRanker
from metarank.objectives.pareto import ParetoFront
from metarank.objectives.partial_labels import check_propensities

# Those whose answer moves with the weights; "epsilon" has constraints instead.
SWEPT = tuple(method for method in METHODS if method != "epsilon")
# What is held out is drawn independently of what the same seed draws elsewhere.
_HELD_OUT_STREAM = 0x68656C64 << 32


def pareto_front(
    X: Any,
    Y: Any,
    *,
    ranker: MultiObjectiveRanker | None = None,
    aggregations: Sequence[str] = ("label", "loss"),
    n_weights: int = 11,
    weights: Any = None,
    group: Any = None,
    qid: Any = None,
    eval_set: tuple[Any, Any] | None = None,
    eval_group: Any = None,
    eval_qid: Any = None,
    reference: Any = None,
    n_jobs: int | None = None,
    propensities: Any = None,
    eval_propensities: Any = None,
) -> ParetoFront:
    """Trade-offs of several objectives in one ranking: a model for each of many weights, measured held out.

    Parameters
    ----------
    X : array-like or sparse (n, d), or data frame
    Y : array-like (n, K), data frame, or mapping of names to columns
        Grades >= 0 of K >= 2 objectives, at least two different ones for each.
    ranker : MultiObjectiveRanker, optional
        Its settings are used; the object itself is not changed or fitted. The sweep replaces its
        `aggregation`, `weights` and `constraints`. ``model="auto"`` is decided once, by loss aggregation with
        equal weights. With `early_stopping` the held-out rows also choose the
        rounds, so that metrics on them are slightly too good.
    aggregations : sequence of str
        Some of "label", "loss", "product", "plug-in-label", "plug-in-loss" and "chebyshev". The plug-ins
        train one model for each objective, whatever the number of weights; "chebyshev" trains about ten for
        each weight.
    n_weights : int
        For K = 2 the number of weights on the line from (1, 0) to (0, 1), evenly spaced. Beyond, weights
        are the simplex lattice (multiples of 1 / H) with the greatest H that has at most `n_weights`
        points. If that lattice has no inner point, equal weights are added and count as one. The corners
        and this point are always trained.
    weights : float array (m, K), optional
        Weights of your own instead, a row for each model; only proportions count.
    group, qid : array-like, optional
        Queries of the rows, as in `MultiObjectiveRanker.fit`.
    eval_set : (X, Y), optional
        Rows to measure on. Without it a quarter of the rows (with queries, of the queries) is held out: those
        with the smallest hashes of (random_state, row number or query id).
    eval_group, eval_qid : array-like, optional
        Queries of `eval_set`.
    reference : float array (K,) or float, optional
        The corner of the hypervolumes; by default 0, the least value of the metrics.
    n_jobs : int or None
        Threads; None takes the ranker's. No result depends on it.
    propensities, eval_propensities : array-like or mapping, optional
        Where relevant labels are missing from Y, or from that of `eval_set`, as in
        `MultiObjectiveRanker.fit`: the front is then that of the complete labels.

    Returns
    -------
    ParetoFront
        `print` shows a table, `plot(path)` draws it. For each objective it also has the model trained on it
        alone (loss aggregation with all weight on it).

    Raises
    ------
    ValueError, TypeError
        Fewer than two objectives; unknown, repeated or no aggregations; weights or a reference of another
        shape, not finite, or (weights) negative or a row of zeros; too few weights; a label constant in the
        rows trained or measured on; queries of which none can be held out; otherwise as
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
    if not isinstance(ranker, MultiObjectiveRanker):
        raise TypeError(f"ranker must be a MultiObjectiveRanker, got {type(ranker).__name__}")
    n_threads = resolve_n_jobs(ranker.n_jobs if n_jobs is None else n_jobs)
    methods = _check_aggregations(aggregations)
    features = ranker._features(X, ranker.model != "linear", layout=ranker._layout, min_rows=2)
    values, names = check_targets(Y, n_rows=features.shape[0])
    if len(names) < 2:
        raise ValueError(f"Y must hold at least two objectives, got {names}: one has no front")
    grouping = check_groups(len(values), group, qid)
    propensity = check_propensities(propensities, values.shape, names)
    swept = _check_weights(weights, n_weights, len(names))
    settings = clone(ranker).set_params(
        constraints=None, n_jobs=n_threads, random_state=seed_of(ranker.random_state, LARGEST_SEED)
    )
    metric = metric_of(settings.metric, grouping)
    corner = check_reference(0.0 if reference is None else reference, len(names))

    data = {"X": features, "Y": dict(zip(names, values.T)), "group": group, "qid": qid}
    data |= {"eval_set": eval_set, "eval_group": eval_group, "eval_qid": eval_qid}
    data |= {"propensities": propensity, "eval_propensities": eval_propensities}
    where = "eval_set"
    if check_eval_set(eval_set, eval_group, eval_qid, names) is None:
        out = _held_out(grouping, settings.random_state)
        where = f"the {out.sum()} held-out rows"
        if eval_propensities is not None:
            raise ValueError("eval_propensities describe eval_set, which is missing")
        data |= _parts(features, data["Y"], grouping, propensity, out)
    n_models = len(names) + sum(1 if method in PLUG_IN else len(swept) for method in methods)
    sweep = _Sweep(settings, data, where, n_models)
    alone = [sweep.fit("loss", corner, f"{name} alone") for name, corner in zip(names, np.eye(len(names)))]
    models = [model for method in methods for model in sweep.models(method, swept, alone)]
    report("done", 1.0)
    measured = sweep.metrics.grouping
    return ParetoFront(
        objective_names=names,
        metric=metric,
        weights=np.tile(swept, (len(methods), 1)),
        aggregation=[method for method in methods for _ in swept],
        points=np.array([model.attained_ for model in models]),
        models=models,
        alone=dict(zip(names, alone)),
        alone_points=np.array([model.attained_ for model in alone]),
        reference=corner,
        n_rows=len(measured.order),
        n_queries=len(measured.ids) if measured.has_queries else 0,
    )


class _Sweep:
    """The trainings of one call, on inputs that were checked.

    Parameters
    ----------
    settings : MultiObjectiveRanker
    data : dict
        Arguments of `MultiObjectiveRanker.fit`; a label without an order in its `eval_set` is refused.
    where : str
        How messages call these rows.
    n_models : int
        How many will be trained, for the report of progress.
    """

    def __init__(
        self, settings: MultiObjectiveRanker, data: dict[str, Any], where: str, n_models: int
    ) -> None:
        self.settings, self.data = settings, data
        names = list(data["Y"])
        found = check_eval_set(data["eval_set"], data["eval_group"], data["eval_qid"], names, where)
        assert found is not None
        self.eval_X, values, grouping = found
        propensity = check_propensities(data["eval_propensities"], values.shape, names, "eval_propensities")
        self.metrics = settings._metrics(values, grouping, names, where, propensity)
        self._n_models, self._n_done = n_models, 0
        self._choice: Choice | None = None
        if settings.model == "auto":  # once, for equal weights
            self._n_models += 1
            self._choice = self.fit("loss", None, "choosing the model")._choice

    def models(
        self, method: str, swept: np.ndarray, alone: list[MultiObjectiveRanker]
    ) -> Iterator[MultiObjectiveRanker]:
        """A fitted model for each of the weights; `alone` are those of one objective, trained before."""
        if method in PLUG_IN:
            fitted = self.fit(method, None, method)
            for w in swept:
                yield self._reweighted(fitted, w)
            return
        for number, w in enumerate(swept, 1):
            if method == "loss" and np.count_nonzero(w) == 1:
                self._n_done += 1
                yield alone[int(w.argmax())]
                continue
            yield self.fit(method, w, f"{method}, weights {number} of {len(swept)}")

    def fit(self, method: str, weights: np.ndarray | None, stage: str) -> MultiObjectiveRanker:
        """One training, and the report of it."""
        model = clone(self.settings).set_params(aggregation=method, weights=weights)
        with as_part(stage, self._n_done / self._n_models, 1 / self._n_models):
            report(stage, 0.0)
            held_out = (self.data[f"eval_{name}"] for name in ("set", "group", "qid", "propensities"))
            queries = self.data["group"], self.data["qid"]
            model._fit(
                self.data["X"],
                self.data["Y"],
                queries,
                self.data["propensities"],
                tuple(held_out),
                self._choice,
            )
        self._n_done += 1
        return model

    def _reweighted(self, fitted: MultiObjectiveRanker, weights: np.ndarray) -> MultiObjectiveRanker:
        """A plug-in with other weights: the same probability models, measured anew."""
        model = copy.copy(fitted).set_params(weights=weights)
        model.weights_ = weights
        scores = model.predict(self.eval_X)
        model.attained_ = self.metrics.measure(scores)[:, self.metrics.column(model.metric)]
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


def _check_weights(weights: Any, n_weights: Any, n_objectives: int) -> np.ndarray:
    """float64 (m, K), rows that sum to 1."""
    check_integer("n_weights", n_weights, n_objectives)
    if weights is None:
        return simplex_lattice(n_objectives, int(n_weights))
    rows = check_matrix(weights, "weights")
    if rows.shape[1] != n_objectives:
        raise ValueError(f"weights must have shape (m, {n_objectives}), a row a model, got {rows.shape}")
    checked = [check_weights(row, n_objectives, name=f"weights[{i}]") for i, row in enumerate(rows)]
    return np.array([row / row.sum() for row in checked])


def _check_aggregations(aggregations: Any) -> list[str]:
    methods = [aggregations] if isinstance(aggregations, str) else list(aggregations)
    for method in methods:
        if method not in SWEPT:
            raise ValueError(f"aggregations must be among {list(SWEPT)}, got {method!r}")
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"aggregations must be one method or several different ones, got {methods}")
    return methods


def _held_out(grouping: Grouping, seed: int) -> np.ndarray:
    """bool (n,): a quarter of the rows, or of the queries, at least one and not all."""
    ids = grouping.ids if grouping.has_queries else np.arange(len(grouping.order))
    if len(ids) < 2:
        raise ValueError(
            "group or qid must name at least two queries, of which one is held out: give eval_set"
        )
    u = hash_uniform(ids, seed ^ _HELD_OUT_STREAM)
    chosen = np.zeros(len(ids), bool)
    chosen[np.lexsort((ids, u))[: max(1, round(len(ids) / 4))]] = True
    return chosen[grouping.group_of_row] if grouping.has_queries else chosen


def _parts(
    X: Any, Y: dict[str, np.ndarray], grouping: Grouping, propensity: np.ndarray | None, out: np.ndarray
) -> dict[str, Any]:
    """Arguments of `MultiObjectiveRanker.fit` for all rows but some, which are watched."""
    ids = grouping.ids[grouping.group_of_row] if grouping.has_queries else None
    by_row = propensity is not None and propensity.ndim == 2
    seen, watched = (propensity[rows] if by_row else propensity for rows in (~out, out))  # type: ignore[index]
    return {
        "X": X[~out],
        "Y": {name: column[~out] for name, column in Y.items()},
        "group": None,
        "qid": None if ids is None else ids[~out],
        "eval_set": (X[out], {name: column[out] for name, column in Y.items()}),
        "eval_qid": None if ids is None else ids[out],
        "propensities": seen,
        "eval_propensities": watched,
    }

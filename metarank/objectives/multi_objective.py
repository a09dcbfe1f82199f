"""`MultiObjectiveRanker`: one score per row for several objectives."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metarank._util.parameters import (
    LARGEST_SEED,
    as_fitted,
    check_choice,
    check_integer,
    check_random_state,
    check_real,
    one_target,
    remembered,
    seed_of,
)
from metarank._util.progress import check_verbose, report, shows_progress
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.objectives.aggregation import PLUG_IN, Aggregation, Method
from metarank.objectives.checks import check_weights, metric_of
from metarank.objectives.learning import GradedRows, PlugIn, Training, graded_rows
from metarank.objectives.models import LinearModel, normalised_importances, raw_scores
from metarank.objectives.partial_labels import check_linear
from metarank.objectives.positions import ShownRows, the_rest, without_position_bias
from metarank.objectives.watch import Metrics
from metarank.persist.fields import (
    Array,
    Declared,
    Each,
    Integer,
    List,
    Number,
    Object,
    Params,
    Strings,
    Text,
)
from metarank.persist.savable import Savable
from metarank.persist.spec import Spec
from metarank.types.boosters import BoosterArrays
from metarank.types.checks import (
    check_features,
    check_same_order,
    check_savable_width,
    check_writable,
    layout_of,
)

_NAME = "MultiObjectiveRanker"
# Settings of LightGBM that have a parameter here, or that the ranker determines.
_OWN_SETTINGS = {
    "objective",
    "metric",
    "num_iterations",
    "n_estimators",
    "num_threads",
    "n_jobs",
    "seed",
    "random_state",
    "linear_tree",
    "categorical_feature",
}
# A metric after each round; not a number if an objective is constant on the rows.
_CURVE = List("", Number("", floats="any"))
_NO_MISSING = "model='linear' allows no missing values: fill them, or use model='lightgbm'"


@cache
def _lightgbm_names() -> set[str]:
    """The settings that LightGBM knows; it ignores others silently."""
    from lightgbm.basic import _ConfigAliases

    return {alias for aliases in _ConfigAliases._get_all_param_aliases().values() for alias in aliases}


def _params_of(model: MultiObjectiveRanker) -> dict[str, Any]:
    """The parameters as plain values and arrays."""
    params = as_fitted(model.get_params(deep=False), getattr(model, "_given_", {}))
    for name in ("weights", "label_gain"):
        if not isinstance(params[name], (type(None), str, Mapping)):
            params[name] = np.asarray(params[name])
    if isinstance(params["aggregation"], Aggregation):
        params["aggregation"] = vars(params["aggregation"])
    return {name: dict(v) if isinstance(v, Mapping) else v for name, v in params.items()}


def _n_models(known: Any, model: str) -> int:
    """How many models of a kind are saved: one per objective for plug-ins, otherwise one."""
    if known.model != model:
        return 0
    return int(known["K"]) if Aggregation.of(known.aggregation).method in PLUG_IN else 1


@dataclass(eq=False, repr=False)
class MultiObjectiveRanker(Savable):
    """Learns one ranking from several targets.

    Parameters
    ----------
    aggregation : str or Aggregation
        How several objectives become one: "label", "loss", "product", "plug-in-label" or "plug-in-loss", see
        `metarank.objectives.Aggregation`, which also sets how labels are combined and the cost of pairs.
    model : "lightgbm" or "linear"
        Boosted trees, or weights of standardised columns found by L-BFGS. With few queries the linear model
        is often better; `diagnose` compares settings by cross-validation.
    weights : array-like (K,), mapping of names to weights, or None
        Weights of the objectives; None: equal. Only proportions count.
    n_jobs : int or None
        Threads; no result depends on it.
    random_state : int, None, RandomState or Generator
        Seed of LightGBM.
    metric : "auto", "auc" or "ndcg"
        The loss, and the metric of early stopping: pairwise surrogates of the AUC and the AUC, or LambdaRank
        and nDCG@10. "auto": "ndcg" if `fit` gets queries.
    label_gain : None, "linear" or array-like
        Gains of nDCG, as in `ndcg_gradients`.
    n_rounds : int
        Boosting rounds; also bounds the steps of L-BFGS (times 5).
    params : dict or None
        Settings of LightGBM, such as ``{"num_leaves": 15}``; its defaults otherwise. The linear model ignores
        them.
    l2 : float
        Penalty of the linear model.
    early_stopping : int
        If positive, training stops after this many rounds without improvement on `eval_set`, and keeps the
        best round.
    stop_on : str, int or None
        What must improve: an objective by name or number, or the "min" or "mean" of all; None is "mean".
    verbose : int
        0: silent. 1: `fit` shows a line of progress, see `MetaRanker`.

    Attributes
    ----------
    objective_names_ : list of str
    weights_ : float64 array (K,)
        Weights, summing to 1.
    metric_ : "auc" or "ndcg"
    evals_ : dict
        ``evals_[objective][metric]`` is a list with a value for each round, on the rows of `eval_set`, or
        without it on the training rows: "auc", and with queries "ndcg@10". The rounds are those of the
        final model; for plug-ins, those of each objective's model.
    best_round_ : int or list of int
        Number of the best round, from 1; for plug-ins one for each objective.
    attained_ : float64 array (K,)
        The final metric of each objective on the watched rows.
    n_features_in_ : int
    position_propensity_ : float64 array (P,) or None
        If `fit` gets positions: the examination probability of each, relative to the greatest.
    random_state_ : int
        The seed of the fit, see `MetaRanker`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> Y = {"relevance": (X[:, 0] > 0) * 1, "clicks": (X[:, 1] > 1) * 1}
    >>> ranker = MultiObjectiveRanker("loss", model="linear", weights={"relevance": 2, "clicks": 1}, n_jobs=1)
    >>> scores = ranker.fit(X, Y).predict(X)
    >>> scores.shape, ranker.weights_.round(2)
    ((500,), array([0.67, 0.33]))
    """

    aggregation: Method | Aggregation = "label"
    model: Literal["lightgbm", "linear"] = "lightgbm"
    weights: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    _: KW_ONLY
    metric: Literal["auto", "auc", "ndcg"] = "auto"
    label_gain: Any = None
    n_rounds: int = 100
    params: Mapping[str, Any] | None = None
    l2: float = 1e-4
    early_stopping: int = 0
    stop_on: str | int | None = None
    verbose: int = 0

    saved: ClassVar[Spec] = Spec(
        Params(of=_params_of, seeded=LARGEST_SEED, check=lambda model: model._check_saved()),
        Strings("objective_names_", "K"),
        Array("weights_", np.float64, ("K",), least=0),
        Text("metric_", ("auc", "ndcg")),
        Declared("n_features_in_", key="n_features", size="d"),
        Strings("_feature_names", key="feature_names"),
        Text("layout_", ("dense", "sparse")),
        Array("attained_", np.float64, ("K",), floats="any"),
        List("curves_", Each("", _CURVE, keys=("auc", "ndcg@10")), "K"),
        List(
            "best_round_",
            Integer(""),
            of=lambda model: np.ravel(model.best_round_).tolist(),
            into=lambda rounds: rounds if len(rounds) > 1 else rounds[0],
        ),
        List(
            "linear_models_",
            Object("", LinearModel, ("d",)),
            lambda known: _n_models(known, "linear"),
        ),
        List(
            "tree_models_",
            Object("", BoosterArrays, {"d": "d", "outputs": "one"}),
            lambda known: _n_models(known, "lightgbm"),
        ),
        Object("plug_in_", PlugIn, ("K",)),
        Array("position_propensity_", np.float64, ("P",), above=0, most=1, optional=True),
    )

    # --- fit ---------------------------------------------------------------

    def fit(
        self,
        X: Any,
        Y: Any = None,
        group: Any = None,
        *,
        y: Any = None,
        qid: Any = None,
        eval_set: tuple[Any, Any] | None = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        propensities: Any = None,
        eval_propensities: Any = None,
        position: Any = None,
        position_of: Any = None,
        position_propensity: Any = None,
    ) -> MultiObjectiveRanker:
        """Learn from rows and their targets.

        Parameters
        ----------
        X : array-like or sparse (n, d), or data frame
            NaN is a missing value for boosted trees, as in LightGBM, and an error for the linear model, here
            and in `predict`.
        Y : array-like (n, K) or (n,), data frame, or mapping of names to columns
            Grades >= 0, at least two different ones per label.
        y : optional
            The name of Y in scikit-learn; pass one of the two.
        group : array-like (G,), optional
            Sizes of consecutive queries.
        qid : array-like (n,), optional
            Instead of `group`: the query of each row, integers or strings, in any order.
        eval_set : (X, Y), optional
            Rows on which metrics are computed; early stopping needs them.
        eval_group, eval_qid : array-like, optional
            Queries of `eval_set`, if the training rows have queries.
        propensities : array-like (K,) or (n, K), or mapping of names to numbers or arrays (n,), optional
            If relevant labels are missing from Y: the probability, in (0, 1], that a grade above 0 was
            observed, per label or per row and label; a grade of 0 is always observed as 0. Labels that a
            mapping does not name are complete. Targets, weights of labels, formulas and metrics are then
            those of the complete labels; `metarank.objectives.partial_labels` has the equations. Needs metric
            "auc", cost "difference" and combine "sum" or "product". Boosted plug-ins take one per label.
        eval_propensities : as propensities, optional
            Those of `eval_set`; by default its labels are complete.
        position : array-like (n,), optional
            The position at which each row was shown: 1 is the first; 0 or missing if it was not shown.
            Clicks are then replaced by the click rate at a position that everybody examines, estimated from
            all rows (`metarank.objectives.positions` has the model). Every kind of aggregation learns from
            these rates.
        position_of : str, int, or a sequence of them, optional
            The objectives that depend on position, by name or number; by default all except "relevance", so
            all of an array, whose objectives are "objective_0", "objective_1", ...
        position_propensity : array-like (P,), optional
            The examination probability, in (0, 1], of the positions 1 to P, if known, such as from an
            experiment; otherwise it is learned. Grades of `eval_set` are assumed to have no position bias.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            An input or a parameter is invalid; the message names it.
        """
        settings = self.settings()
        check_same_order(X=X, Y=one_target(Y, y), qid=qid)
        rows = graded_rows(self.features(X, min_rows=2), one_target(Y, y), group, qid, propensities)
        shown = ShownRows.checked(rows, position, position_of, position_propensity)
        columns = names_of(X)
        for objective in rows.names:
            check_writable(objective, "the objectives of Y")
        for column in columns or ():
            check_writable(column, "the columns of X")
        check_savable_width(rows.X)
        watched = self._watched(eval_set, eval_group, eval_qid, eval_propensities, rows)
        if watched is None and self.early_stopping:
            raise ValueError(f"early_stopping needs eval_set, got early_stopping={self.early_stopping}")
        self._learn(settings, rows, watched, shown=shown)
        self._feature_names = columns or []
        return self

    @shows_progress
    def _learn(
        self,
        settings: SimpleNamespace,
        rows: GradedRows,
        watched: GradedRows | None,
        metrics: Metrics | None = None,
        shown: ShownRows | None = None,
    ) -> MultiObjectiveRanker:
        """`fit` with checked parameters and rows, and the metrics of `eval_set` or of all rows."""
        for name, of in zip(rows.names, rows.values.T):
            if of.min() == of.max():
                raise ValueError(f"the label {name!r} of Y is constant, {of[0]:g}: it has no AUC")
        rows, curve = without_position_bias(rows, shown, settings.seed, settings.n_jobs)
        metrics = self._metrics(rows if watched is None else watched) if metrics is None else metrics
        weights = check_weights(self.weights, len(rows.names), names=rows.names)
        given = remembered(self.get_params(deep=False))
        training = Training(settings, rows, weights / weights.sum())
        with single_threaded_blas(), the_rest(shown):
            result = training.fit(None if watched is None else watched.X, metrics)
        report("done", 1.0)
        self.random_state_: int = settings.seed
        self._given_ = given
        self.objective_names_: list[str] = rows.names
        self.weights_: NDArray[np.float64] = training.weights
        self.position_propensity_: NDArray[np.float64] | None = curve
        self.metric_ = training.metric
        self.curves_: list[dict[str, list[float]]] = list(result.evals.values())
        self.best_round_: int | list[int] = result.best_round
        self.attained_: NDArray[np.float64] = result.attained
        self.n_features_in_: int = rows.X.shape[1]
        self.layout_ = layout_of(rows.X)
        is_linear = self.model == "linear"
        self.linear_models_: list[LinearModel] = result.models if is_linear else []
        self.tree_models_: list[BoosterArrays] = [] if is_linear else result.models
        self.plug_in_: PlugIn = training.plug_in()
        return self

    def features(self, X: Any, **rules: Any) -> Any:
        """Features as float32, dense for a linear model; for boosted trees NaN is a missing value."""
        is_linear = self.model == "linear"
        rules = {"layout": "dense" if is_linear else None} | rules
        return check_features(X, estimator=_NAME, allow_nan=not is_linear, nan_hint=_NO_MISSING, **rules)

    @property
    def evals_(self) -> dict[str, dict[str, list[float]]]:
        """The metrics of each objective after each round."""
        return dict(zip(self.objective_names_, self.curves_))

    @property
    def _models(self) -> list[Any]:
        """One model, or one for each objective."""
        return [*self.linear_models_, *self.tree_models_]

    @property
    def _is_plug_in(self) -> bool:
        return Aggregation.of(self.aggregation).method in PLUG_IN

    def settings(self) -> SimpleNamespace:
        """The parameters, checked."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        check_choice("model", self.model, ("lightgbm", "linear"))
        check_choice("metric", self.metric, ("auto", "auc", "ndcg"))
        check_integer("n_rounds", self.n_rounds, 1)
        check_integer("early_stopping", self.early_stopping, 0)
        check_real("l2", self.l2, 0.0, np.inf, "a number >= 0")
        check_random_state(self.random_state, LARGEST_SEED)
        check_verbose(self.verbose)
        params = {} if self.params is None else self.params
        plain = isinstance(params, Mapping) and all(isinstance(name, str) for name in params)
        if not plain or any(not isinstance(v, (bool, int, float, str)) for v in params.values()):
            raise ValueError(f"params must be a dict of LightGBM's settings, got {self.params!r:.80}")
        for name in params:
            if name in _OWN_SETTINGS:
                raise ValueError(f"params must leave {name!r} to the ranker, got {params[name]!r}")
            if name not in _lightgbm_names():
                raise ValueError(f"params must name settings of LightGBM, got {name!r}")
        checked = {"aggregation": Aggregation.of(self.aggregation), "params": dict(params), "n_jobs": n_jobs}
        seed = seed_of(self.random_state, LARGEST_SEED)
        return SimpleNamespace(**self.get_params(deep=False) | checked, seed=seed)

    def _check_saved(self) -> None:
        """Parameters of a saved model: the aggregation is an object again."""
        if not isinstance(self.aggregation, str):
            self.aggregation = Aggregation.of(self.aggregation)
        self.settings()

    def _watched(
        self, eval_set: Any, group: Any, qid: Any, propensities: Any, rows: GradedRows
    ) -> GradedRows | None:
        """The rows to watch, which have the features, objectives and kind of queries of `rows`; None where
        none are given."""
        if eval_set is None:
            if group is not None or qid is not None or propensities is not None:
                raise ValueError(
                    "eval_group, eval_qid and eval_propensities describe eval_set, which is missing"
                )
            return None
        try:
            X, Y = eval_set
        except (TypeError, ValueError):
            raise ValueError("eval_set must be a pair (X, Y)") from None
        rules = {"n_features": rows.X.shape[1], "layout": layout_of(rows.X), "name": "X of eval_set"}
        given = self.features(X, **rules), Y, group, qid, propensities
        watched = graded_rows(*given, where="eval_set", objectives=rows.names)
        if watched.grouping.has_queries != rows.grouping.has_queries:
            raise ValueError(
                "eval_set must have queries (eval_group or eval_qid) if and only if the training rows do"
            )
        return watched

    def _metrics(self, rows: GradedRows) -> Metrics:
        """The metrics of some rows."""
        n_jobs, cost = resolve_n_jobs(self.n_jobs), Aggregation.of(self.aggregation).cost
        if rows.propensity is not None:
            check_linear("auc" if metric_of(self.metric, rows.grouping) == "auc" else "ndcg", cost)
        options: dict[str, Any] = {"cost": cost, "label_gain": self.label_gain, "n_jobs": n_jobs}
        options |= {"where": rows.where, "propensity": rows.propensity}
        return Metrics(rows.values, rows.grouping, rows.names, **options)

    # --- use ---------------------------------------------------------------

    def predict(self, X: Any, weights: Any = None) -> NDArray[np.float64]:
        """Scores, float64 (n,): rows with greater scores rank higher (within their query).

        Parameters
        ----------
        X : array-like or sparse (n, d), or data frame
        weights : array-like (K,) or mapping of names to weights, optional
            Weights to use instead of those of the fit; for plug-ins only.

        Raises
        ------
        ValueError
            Not fitted, invalid input, or weights for a method whose weights are fixed by `fit`.
        """
        check_is_fitted(self)
        known, names = getattr(self, "feature_names_in_", None), names_of(X)
        if known is not None and names is not None and list(known) != names:
            pairs = enumerate(zip(known, names))
            at = next((i for i, pair in pairs if pair[0] != pair[1]), min(len(known), len(names)))
            raise ValueError(
                "The feature names should match those that were passed during fit: from column "
                f"{at} on {list(known)[at : at + 5]}, got {names[at : at + 5]}"
            )
        rules = {"n_features": self.n_features_in_, "layout": self.layout_, "min_rows": 0}
        features = self.features(X, **rules)
        model = self if weights is None else self.reweighted(weights)
        return model.scores(features, resolve_n_jobs(self.n_jobs))

    def score(
        self,
        X: Any,
        Y: Any = None,
        group: Any = None,
        *,
        y: Any = None,
        qid: Any = None,
        propensities: Any = None,
    ) -> float:
        """The unweighted mean of one metric over the objectives.

        Parameters
        ----------
        X, Y, y, group, qid, propensities : as in `fit`
            Held-out rows. Y has the objectives of the fit.

        Returns
        -------
        float
            The metric is nDCG@10 for rows with queries, otherwise AUC, or that of `metric`. For each
            objective it is the value that `evals_` and `attained_` hold for an `eval_set`.

        Raises
        ------
        ValueError
            Not fitted; bad input; other objectives than those of the fit; an objective that is constant;
            ``metric="ndcg"`` without queries.
        """
        Y = one_target(Y, y)
        check_is_fitted(self)
        rows = graded_rows(None, Y, group, qid, propensities, objectives=self.objective_names_)
        metrics = self._metrics(rows)
        column, scores = metrics.column(self.metric), self.predict(X)
        if len(scores) != len(rows.values):
            raise ValueError(f"Y must have as many rows as X, {len(scores)}, got {len(rows.values)}")
        return float(metrics.measure(scores)[:, column].mean())

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, float64 (d,), with sum 1; all 0 if no column is used.

        For boosted trees it is the gain of all splits by the column, as LightGBM counts it; for the linear
        model the absolute weight times the column's standard deviation. For plug-ins it is the mean over the
        objectives' models, weighted by `weights_`. `feature_names_in_` has the names if X was a data
        frame.
        """
        weights = self.weights_ if self._is_plug_in else np.ones(1)
        total = sum(w * normalised_importances(model) for w, model in zip(weights, self._models))
        return np.asarray(total / (np.sum(total) or 1.0))

    def reweighted(self, weights: Any) -> MultiObjectiveRanker:
        """Return the fitted model with other weights of the objectives, without a new fit; for plug-ins only.

        Raises
        ------
        ValueError
            Not fitted, or a method whose weights are fixed by `fit`.
        """
        check_is_fitted(self)
        w = check_weights(weights, len(self.objective_names_), names=self.objective_names_)
        w = w / w.sum()
        if not self._is_plug_in and not np.allclose(w, self.weights_, rtol=1e-9):
            raise ValueError(
                f"weights must be those of the fit, {self.weights_.tolist()}, with aggregation="
                f"{Aggregation.of(self.aggregation).method!r}: for others fit again, or use 'plug-in-label' "
                "or 'plug-in-loss', which take them here"
            )
        out = copy.copy(self)
        out.weights_ = w
        return out

    def scores(self, features: Any, n_jobs: int) -> np.ndarray:
        """`predict` for checked features."""
        raw = [raw_scores(model, features, n_jobs) for model in self._models]
        return self.plug_in_.combine(raw, self.weights_) if self._is_plug_in else raw[0]

    def contributions(self, features: np.ndarray) -> NDArray[np.float64]:
        """Contributions to the score, float64 (n, d + 1): a value for each column and, last, a constant.

        A row sums to its score up to rounding. For plug-ins the shares of each model's log-odds are scaled
        to the probability.
        """
        raw = [model.contributions(features) for model in self._models]
        return self.plug_in_.contributions(raw, self.weights_) if self._is_plug_in else raw[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.model != "linear"
        return tags

    @property
    def _feature_names(self) -> list[str]:
        """Names of the columns; none where X had none."""
        return list(getattr(self, "feature_names_in_", []))

    @_feature_names.setter
    def _feature_names(self, names: list[str]) -> None:
        self.__dict__.pop("feature_names_in_", None)
        if names and len(names) != self.n_features_in_:
            raise ValueError(f"feature_names must be {self.n_features_in_}, one per column, got {len(names)}")
        if names:
            self.feature_names_in_: NDArray[np.object_] = np.array(names, dtype=object)


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None for anything else."""
    if not hasattr(X, "columns"):
        return None
    names = list(getattr(X, "column_names", X.columns))
    return names if all(isinstance(name, str) for name in names) else None

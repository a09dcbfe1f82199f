"""`MultiObjectiveRanker`: one score a row for several objectives."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from metarank import persist
from metarank._util.parameters import (
    LARGEST_SEED,
    POSITIVE,
    as_fitted,
    check_choice,
    check_integer,
    check_random_state,
    check_real,
    one_target,
    remembered,
    seed_of,
)
from metarank._util.progress import as_part, check_verbose, note, report, shows_progress
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.objectives.boosted_model import BoostedScorer
from metarank.objectives.checks import (
    Grouping,
    check_eval_set,
    check_groups,
    check_targets,
    check_weights,
    metric_of,
)
from metarank.objectives.choice import MOST_DENSE, Choice, choose
from metarank.objectives.labels import COMBINATIONS, Combination
from metarank.objectives.learning import PLUG_IN, PlugIn, Training
from metarank.objectives.objective_model import ObjectiveModel
from metarank.objectives.pair_costs import check_cost
from metarank.objectives.pairwise import SURROGATES, Cost, Surrogate
from metarank.objectives.partial_labels import check_linear, check_propensities
from metarank.objectives.watch import Metrics
from metarank.persist.fields import (
    Array,
    Declared,
    Field,
    Group,
    Integer,
    Known,
    List,
    Object,
    Params,
    Strings,
    Text,
)
from metarank.persist.spec import Saved, Spec
from metarank.types.checks import check_features, check_savable_width, check_writable, layout_of

Method = Literal["label", "loss", "product", "plug-in-label", "plug-in-loss", "chebyshev", "epsilon"]
METHODS: tuple[str, ...] = get_args(Method)
_NAME = "MultiObjectiveRanker"
# The rules of the parameters: one of some words, an integer of at least, a number in a range.
_WORDS = {
    "aggregation": METHODS,
    "model": ("lightgbm", "linear", "auto"),
    "metric": ("auto", "auc", "ndcg"),
    "combine": COMBINATIONS,
    "surrogate": SURROGATES,
}
_LEAST = {"n_rounds": 1, "num_leaves": 2, "min_data_in_leaf": 1, "max_bin": 2, "early_stopping": 0}
_RANGES = {
    "learning_rate": (POSITIVE[0], np.inf, "a number > 0"),
    "feature_fraction": (POSITIVE[0], 1.0, "a number in (0, 1]"),
    "lambda_l2": (0.0, np.inf, "a number >= 0"),
    "l2": (0.0, np.inf, "a number >= 0"),
}
_NO_MISSING = "model='linear' knows no missing values; fill them in, or take model='lightgbm', which does"
_NONE_CHOSEN = (
    "model='auto' has chosen a linear part here, which knows no missing values: fill them in, or take "
    "model='lightgbm', which does"
)


class _Curves(Field):
    """Curves of each objective, in their order: pairs of a name and an array."""

    def read(self, value: Any, known: Known) -> dict[str, dict[str, list[float]]]:
        if not isinstance(value, list) or len(value) != known["K"]:
            raise self.fail(known, f"be curves of {known['K']} objectives", value)
        curve = Array(self.name, np.float64, floats="any")
        try:
            read = [{name: curve.read(values, known).tolist() for name, values in pairs} for pairs in value]
        except TypeError:
            raise self.fail(known, "be pairs of a name and a curve", value) from None
        return dict(zip(known.objective_names_, read))


class _Rounds(Field):
    """One number of a round, or several."""

    def read(self, value: Any, known: Known) -> int | list[int]:
        one = Integer(self.name)
        return [one.read(v, known) for v in value] if isinstance(value, list) else one.read(value, known)


def _pairs(curves: Mapping[str, list[float]]) -> list[list[Any]]:
    return [[name, np.array(values)] for name, values in curves.items()]


def _params_of(model: MultiObjectiveRanker) -> dict[str, Any]:
    """The parameters as plain values and arrays."""
    params = as_fitted(model.get_params(deep=False), getattr(model, "_given_", {}))
    for name in ("weights", "label_gain", "cost"):
        if not isinstance(params[name], (type(None), str, Mapping)):
            params[name] = np.asarray(params[name])
    return {name: dict(v) if isinstance(v, Mapping) else v for name, v in params.items()}


def _n_models(known: Any) -> int:
    """One an objective for plug-ins, otherwise one."""
    return int(known["K"]) if known.aggregation in PLUG_IN else 1


class MultiObjectiveRanker(Saved, BaseEstimator):
    """Learns one ranking from several targets.

    Parameters
    ----------
    aggregation : str
        How several objectives become one:

        * "label": label aggregation: `combine` makes one target of all, which is learned. With "sum" and
          difference costs the optimal order is that of ``sum_k w_k E[y_k | x]``.
        * "loss": loss aggregation: ``sum_k a_k loss_k``, each the mean over its own pairs. For AUC the
          optimal order is that of ``sum_k a_k eta_k(x) / (pi_k (1 - pi_k))``: skewed labels count for more
          than their weight.
        * "product": "label" with ``combine="product"``.
        * "plug-in-label", "plug-in-loss": a probability model for each label, put into these two formulas.
          Only here `predict` takes other weights without a new fit.
        * "chebyshev": loss aggregation with the weights under which the greatest shortfall
          ``w_k (1 - metric_k / its value alone)`` is least.
        * "epsilon": loss aggregation with the weights that are best for the other objectives while those in
          `constraints` keep a share of what they attain alone.

        The last two judge on `eval_set`, or without one on the training rows. Boosted trees look better there
        than they are, so that new rows may miss the constraints.
    model : "lightgbm", "linear" or "auto"
        Boosted trees, or weights of standardised columns found by L-BFGS. "auto" compares, by five-fold
        cross-validation over queries (without queries over rows), the linear model with `l2` 0.01, 0.1
        and 1, trees as they are set and smaller, slower ones (an eighth of the leaves, half the learning
        rate), and blends of the best of either kind: a weighted sum of their scores, divided by their
        deviations within queries. What is best in `metric`, in the mean over the weighted objectives, is
        then trained on all rows; `choices_` tells of each. It takes 25 trainings more. Features
        with missing values, or sparse ones that would have more than 2^26 values, are for trees alone.
    weights : array-like (K,), mapping of names to weights, or None
        Weights of the objectives; None: equal. Only proportions count.
    n_jobs : int or None
        Threads; no result depends on it.
    random_state : int, None, RandomState or Generator
        Seed of LightGBM and of ``combine="stochastic"``.
    metric : "auto", "auc" or "ndcg"
        The loss, and the metric of early stopping and of the searches: pairwise surrogates of the AUC and the
        AUC, or LambdaRank and nDCG@10. "auto": "ndcg" where `fit` is given queries.
    combine : "sum", "product", "max", "lexicographic" or "stochastic"
        As in `aggregate_labels`; "lexicographic" takes the objectives by descending weight.
    cost : "difference", "uniform" or float array (G, G)
        What misranking a pair of grades costs, as in `auc_gradients`: with "label" of the aggregated label's
        grades, otherwise of each label's. A matrix is for integer grades 0 to G - 1, see `scale_costs`; of
        binary labels it concerns "label" alone. Plug-ins have the formula of difference costs and take no
        matrix; `pair_cost_scorer` has that of others.
    surrogate : str
        As in `auc_gradients`.
    label_gain : None, "linear" or array-like
        Gains of nDCG, as in `ndcg_gradients`.
    n_rounds, learning_rate, num_leaves, min_data_in_leaf, lambda_l2, feature_fraction, max_bin : numbers
        As in LightGBM; `n_rounds` also bounds the steps of L-BFGS (times 5).
    l2 : float
        Penalty of the linear model.
    early_stopping : int
        If positive, training stops after this many rounds without a gain on `eval_set`, and keeps the best
        round.
    stop_on : str, int or None
        What must gain: an objective by name or number, or the "min" or "mean" of all; None is "mean".
    constraints : mapping of names to numbers in (0, 1], or None
        For "epsilon": the share of its value alone that an objective must attain on the watched rows.
    verbose : int
        0: silent. 1: `fit` shows a line of progress, see `MetaRanker`.

    Attributes
    ----------
    objective_names_ : list of str
    weights_ : float64 array (K,)
        Weights, summing to 1. For "chebyshev" and "epsilon" these are the weights found;
        ``aggregation="loss"`` with them gives the same model.
    metric_ : "auc" or "ndcg"
    evals_ : dict
        ``evals_[objective][metric]`` is a list with a value for each round, on the evaluation rows, or
        without them on the training rows: "auc", and with queries "ndcg@10". The rounds are those of the
        model that was kept; for plug-ins, those of each objective's own model.
    best_round_ : int or list of int
        Number of the best round, from 1; for plug-ins one for each objective. Of blends it is the trees',
        beside the linear part.
    choices_ : list of str
        For ``model="auto"`` what was tried and its metric on held-out rows, best first; the first was taken.
    attained_, alone_ : float64 array (K,)
        The final metric of each objective on the watched rows; and, for plug-ins, "chebyshev" and "epsilon",
        that of a model of its own (NaN where none was needed).
    n_features_in_ : int
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

    saved: ClassVar[Spec] = Spec(
        Params(of=_params_of, seeded=LARGEST_SEED, check=lambda model: model._check_parameters()),
        Strings("objective_names_", "K"),
        Array("weights_", np.float64, ("K",), least=0),
        Text("metric_", ("auc", "ndcg")),
        Declared("n_features_in_", key="n_features", size="d"),
        Strings("_feature_names", key="feature_names"),
        Text("layout_", ("dense", "sparse")),
        _Curves("evals_", of=lambda model: [_pairs(model.evals_[name]) for name in model.objective_names_]),
        _Rounds("best_round_"),
        Array("attained_", np.float64, ("K",), floats="any"),
        Array("alone_", np.float64, ("K",), floats="any"),
        Strings("choices_", older=list, omits_none=True, of=lambda model: model.choices_ or None),
        List("scorers_", Object("", ObjectiveModel, ("d",), inline=True), _n_models),
        Group(
            "plug_in_",
            PlugIn,
            Array("top_grade", np.float64, ("K",), least=0),
            Array("spread", np.float64, ("K",), above=0, optional=True),
        ),
    )

    def __init__(
        self,
        aggregation: Method = "label",
        model: Literal["lightgbm", "linear", "auto"] = "lightgbm",
        weights: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        *,
        metric: Literal["auto", "auc", "ndcg"] = "auto",
        combine: Combination = "sum",
        cost: Cost = "difference",
        surrogate: Surrogate = "logistic",
        label_gain: Any = None,
        n_rounds: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_data_in_leaf: int = 20,
        lambda_l2: float = 0.0,
        feature_fraction: float = 1.0,
        max_bin: int = 255,
        l2: float = 1e-4,
        early_stopping: int = 0,
        stop_on: str | int | None = None,
        constraints: Mapping[str, float] | None = None,
        verbose: int = 0,
    ) -> None:
        self.aggregation = aggregation
        self.model = model
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.metric = metric
        self.combine = combine
        self.cost = cost
        self.surrogate = surrogate
        self.label_gain = label_gain
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_data_in_leaf = min_data_in_leaf
        self.lambda_l2 = lambda_l2
        self.feature_fraction = feature_fraction
        self.max_bin = max_bin
        self.l2 = l2
        self.early_stopping = early_stopping
        self.stop_on = stop_on
        self.constraints = constraints
        self.verbose = verbose

    # --- fit ---------------------------------------------------------------

    @shows_progress
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
    ) -> MultiObjectiveRanker:
        """Learn from rows and their targets.

        Parameters
        ----------
        X : array-like or sparse (n, d), or data frame
            NaN is a missing value for boosted trees, as in LightGBM, here and in `predict`; the linear model
            refuses it.
        Y : array-like (n, K) or (n,), data frame, or mapping of names to columns
            Grades >= 0, at least two different ones for each label.
        y : optional
            Y by the name that scikit-learn has for it; not both.
        group : array-like (G,), optional
            Sizes of consecutive queries.
        qid : array-like (n,), optional
            Instead of `group`: the query of each row, integers or strings, in any order.
        eval_set : (X, Y), optional
            Rows on which metrics are watched; early stopping needs them.
        eval_group, eval_qid : array-like, optional
            Queries of `eval_set`, where the training rows have queries.
        propensities : array-like (K,) or (n, K), or mapping of names to numbers or arrays (n,), optional
            Where relevant labels are missing from Y: the probability, in (0, 1], with which a grade above
            0 was observed, of each label or of each row and label; a grade of 0 is never observed
            otherwise. Labels that a mapping does not name are complete. Targets, weights of labels,
            formulas and metrics are then those of the complete labels;
            `metarank.objectives.partial_labels` has the equations. It takes metric "auc", cost
            "difference" and combine "sum", "product" or "stochastic". Boosted plug-ins take one a label.
        eval_propensities : as propensities, optional
            Those of `eval_set`; without them its labels are complete.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            An input or a parameter is invalid; the message names it.

        Warns
        -----
        UserWarning
            If no model keeps all `constraints`. The one that misses them by the least is kept.
        """
        held_out = eval_set, eval_group, eval_qid, eval_propensities
        return self._fit(X, one_target(Y, y), (group, qid), propensities, held_out)

    def _fit(
        self,
        X: Any,
        Y: Any,
        queries: tuple[Any, Any],
        propensities: Any,
        eval_set: tuple[Any, Any, Any, Any],
        choice: Choice | None = None,
    ) -> MultiObjectiveRanker:
        """`fit`, with what model="auto" stands for where it is known already."""
        n_jobs = self._check_parameters()
        features = self._features(X, self.model != "linear", layout=self._layout, min_rows=2)
        values, names = check_targets(Y, n_rows=features.shape[0])
        columns = _names_of(X)
        for objective in names:
            check_writable(objective, "the objectives of Y")
        for column in columns or ():
            check_writable(column, "the columns of X")
        check_savable_width(features)
        grouping = check_groups(len(values), *queries)
        _refuse_constant_labels(values, names)
        weights = check_weights(self.weights, len(names), names=names)
        propensity = check_propensities(propensities, values.shape, names)
        given = remembered(self.get_params(deep=False))
        seeded = copy.copy(self)
        seeded.random_state = seed_of(self.random_state, LARGEST_SEED)
        training = Training(seeded, values, names, grouping, weights / weights.sum(), n_jobs, propensity)
        held_out, metrics = self._watched(*eval_set, features, training)
        with single_threaded_blas():
            if self.model == "auto":
                linear = _takes_linear(features, held_out)
                if linear:
                    features, held_out = _dense(features), _dense(held_out)
                if choice is None:
                    with as_part("choosing", 0.0, 0.8):
                        choice = choose(training, features, held_out, metrics, linear=linear)
                        note(f"model of several objectives: {choice.told[0]}")
            with as_part("training", 0.8, 0.2) if self.model == "auto" else nullcontext():
                training.prepare(features, held_out, metrics, choice)
                result = training.fit()
        report("done", 1.0)
        self.random_state_: int = seeded.random_state
        self._given_ = given
        self.objective_names_ = names
        self.weights_: NDArray[np.float64] = result.weights
        self.metric_ = training.metric
        self.evals_: dict[str, dict[str, list[float]]] = result.evals
        self.best_round_: int | list[int] = result.best_round
        self.attained_: NDArray[np.float64] = result.attained
        self.alone_: NDArray[np.float64] = training.alone
        self.n_features_in_: int = features.shape[1]
        self.layout_ = layout_of(features)
        self.scorers_: list[Any] = result.scorers
        self.plug_in_: PlugIn = training.plug_in()
        self.choices_: list[str] = [] if choice is None else choice.told
        self._choice = choice
        self._feature_names = columns or []
        return self

    def _features(self, X: Any, allow_nan: bool, **rules: Any) -> Any:
        """Features as float32; for boosted trees NaN is a missing value."""
        hint = _NONE_CHOSEN if self.model == "auto" else _NO_MISSING
        return check_features(X, estimator=_NAME, allow_nan=allow_nan, nan_hint=hint, **rules)

    @property
    def _layout(self) -> Literal["dense"] | None:
        return "dense" if self.model == "linear" else None

    @property
    def _knows_missing(self) -> bool:
        """Whether the fitted model takes missing values."""
        return all(isinstance(scorer, BoostedScorer) for scorer in self.scorers_)

    def _check_parameters(self) -> int:
        n_jobs = resolve_n_jobs(self.n_jobs)
        for name, words in _WORDS.items():
            check_choice(name, getattr(self, name), words)
        for name, least in _LEAST.items():
            check_integer(name, getattr(self, name), least)
        for name, (low, high, rule) in _RANGES.items():
            check_real(name, getattr(self, name), low, high, rule)
        if not isinstance(check_cost(self.cost), str) and self.aggregation in PLUG_IN:
            raise ValueError(
                f"cost must be 'difference' or 'uniform' with aggregation={self.aggregation!r}, got a matrix:"
                " the formula is that of difference costs; pair_cost_scorer has that of others"
            )
        check_random_state(self.random_state, LARGEST_SEED)
        check_verbose(self.verbose)
        if (self.constraints is not None) != (self.aggregation == "epsilon"):
            raise ValueError(
                "constraints and aggregation='epsilon' go together, got "
                f"constraints={self.constraints!r} with aggregation={self.aggregation!r}"
            )
        return n_jobs

    def _watched(
        self, eval_set: Any, group: Any, qid: Any, propensities: Any, X: Any, training: Training
    ) -> tuple[Any, Metrics]:
        """Features of the rows to watch, None for the training rows, and the metrics on them."""
        names, grouping = training.names, training.grouping
        found = check_eval_set(eval_set, group, qid, names)
        if found is None:
            if self.early_stopping:
                raise ValueError(
                    f"early_stopping needs rows to watch: give eval_set, got early_stopping="
                    f"{self.early_stopping} without"
                )
            if propensities is not None:
                raise ValueError("eval_propensities describe eval_set, which is missing")
            return None, self._metrics(training.values, grouping, names, propensity=training.propensity)
        X_eval, values, eval_grouping = found
        rules = {"n_features": X.shape[1], "layout": layout_of(X), "name": "X of eval_set"}
        features = self._features(X_eval, self.model != "linear", **rules)
        check_targets(values, n_rows=features.shape[0], name="Y of eval_set")
        if eval_grouping.has_queries != grouping.has_queries:
            raise ValueError(
                "eval_set must have queries (eval_group or eval_qid) if and only if the training rows do"
            )
        propensity = check_propensities(propensities, values.shape, names, "eval_propensities")
        return features, self._metrics(values, eval_grouping, names, "eval_set", propensity)

    def _metrics(
        self,
        values: np.ndarray,
        grouping: Grouping,
        names: list[str],
        where: str = "Y",
        propensity: np.ndarray | None = None,
    ) -> Metrics:
        n_jobs = resolve_n_jobs(self.n_jobs)
        if propensity is not None:
            check_linear("auc" if metric_of(self.metric, grouping) == "auc" else "ndcg", self.cost)
        options: dict[str, Any] = {"cost": self.cost, "label_gain": self.label_gain, "n_jobs": n_jobs}
        return Metrics(values, grouping, names, where=where, propensity=propensity, **options)

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
            Not fitted, bad input, or weights for a method whose weights are fixed by `fit`.
        """
        check_is_fitted(self)
        _check_feature_names(self, X)
        rules = {"n_features": self.n_features_in_, "layout": self.layout_, "min_rows": 0}
        features = self._features(X, self._knows_missing, **rules)
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
        """How well the ranking serves the objectives: the unweighted mean of one metric over them.

        Parameters
        ----------
        X, Y, y, group, qid, propensities : as in `fit`
            Held-out rows. Y has the objectives of the fit.

        Returns
        -------
        float
            The metric is nDCG@10 for rows with queries and AUC without, or what `metric` asks for. For each
            objective it is the value that `evals_` and `attained_` hold for an `eval_set`.

        Raises
        ------
        ValueError
            Not fitted; bad input; other objectives than those of the fit; an objective that is constant;
            ``metric="ndcg"`` without queries.
        """
        Y = one_target(Y, y)
        check_is_fitted(self)
        values, names = check_targets(Y)
        if names != self.objective_names_:
            raise ValueError(f"Y must hold the objectives {self.objective_names_}, got {names}")
        grouping = check_groups(len(values), group, qid)
        propensity = check_propensities(propensities, values.shape, names)
        metrics = self._metrics(values, grouping, names, propensity=propensity)
        column = metrics.column(self.metric)
        scores = self.predict(X)
        if len(scores) != len(values):
            raise ValueError(f"Y must have as many rows as X, {len(scores)}, got {len(values)}")
        return float(metrics.measure(scores)[:, column].mean())

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, float64 (d,), summing to 1; all 0 if no column is used.

        For boosted trees it is the gain of all splits by the column, as LightGBM counts it; for the linear
        model the absolute weight times the column's standard deviation. For plug-ins it is the mean over the
        objectives' models, weighted by `weights_`. `feature_names_in_` has the names where X was a data
        frame. Linear models saved by earlier versions lack importances.
        """
        weights = self.weights_ if self.aggregation in PLUG_IN else np.ones(1)
        parts = [scorer.importances() for scorer in self.scorers_]
        total = sum(w * part / (part.sum() or 1.0) for w, part in zip(weights, parts))
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
        if self.aggregation not in PLUG_IN and not np.allclose(w, self.weights_, rtol=1e-9):
            raise ValueError(
                f"weights must be those of the fit, {self.weights_.tolist()}, with aggregation="
                f"{self.aggregation!r}: for others fit again, or use 'plug-in-label' or 'plug-in-loss', "
                "which take them here"
            )
        out = copy.copy(self)
        out.weights_ = w
        return out

    def scores(self, features: Any, n_jobs: int) -> np.ndarray:
        """`predict` of features that are checked already."""
        raw = [scorer.score(features, n_jobs) for scorer in self.scorers_]
        return self.plug_in_.combine(raw, self.weights_) if self.aggregation in PLUG_IN else raw[0]

    def contributions(self, features: np.ndarray) -> NDArray[np.float64]:
        """Contributions to the score, float64 (n, d + 1): a value for each column and, last, a constant.

        A row sums to its score up to rounding. For plug-ins the shares of each model's log-odds are scaled
        to the probability.
        """
        raw = [scorer.contributions(features) for scorer in self.scorers_]
        return self.plug_in_.contributions(raw, self.weights_) if self.aggregation in PLUG_IN else raw[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, which `metarank.load` reads: checksums, no pickle.

        Raises
        ------
        ValueError
            If not fitted, or if something else stands at `path`.
        """
        check_is_fitted(self)
        persist.save(self, path)

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
            raise ValueError(f"feature_names must be {self.n_features_in_}, one a column, got {len(names)}")
        if names:
            self.feature_names_in_: NDArray[np.object_] = np.array(names, dtype=object)


def _takes_linear(features: Any, held_out: Any) -> bool:
    """Whether rows may be described to a linear model: densely, and without missing values."""
    return all(
        X is None
        or (
            X.shape[0] * X.shape[1] <= MOST_DENSE
            and not np.isnan(X if isinstance(X, np.ndarray) else X.data).any()
        )
        for X in (features, held_out)
    )


def _dense(X: Any) -> Any:
    return X if X is None or isinstance(X, np.ndarray) else np.ascontiguousarray(X.toarray())


def _refuse_constant_labels(values: np.ndarray, names: list[str]) -> None:
    for k, name in enumerate(names):
        if values[:, k].min() == values[:, k].max():
            raise ValueError(
                f"the label {name!r} of Y is constant, {values[0, k]:g} everywhere: no AUC exists"
            )


def _check_feature_names(model: MultiObjectiveRanker, X: Any) -> None:
    known, names = getattr(model, "feature_names_in_", None), _names_of(X)
    if known is not None and names is not None and list(known) != names:
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{list(known)[:5]}, got {names[:5]}"
        )


def _names_of(X: Any) -> list[str] | None:
    if not hasattr(X, "columns"):
        return None
    names = list(getattr(X, "column_names", X.columns))
    return names if all(isinstance(name, str) for name in names) else None

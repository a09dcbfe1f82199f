"""What ``model="auto"`` is: a linear model, boosted trees or a blend of both, by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.progress import as_part
from metarank.objectives.checks import Grouping, check_groups
from metarank.objectives.labels import hash_uniform
from metarank.objectives.watch import Metrics
from metarank.types.view import fold_of_rows

if TYPE_CHECKING:
    from metarank.objectives.learning import Training

N_FOLDS = 5
# Shares of the trees in a blend.
SHARES = (0.25, 0.5, 0.75)
# Penalties of the linear model that are tried, if they are above its l2.
PENALTIES = (0.01, 0.1, 1.0)
# A linear model needs dense features: of sparse ones with more values than this it is not tried.
MOST_DENSE = 1 << 26
# The folds are drawn independently of what the same seed draws elsewhere.
_STREAM = 0x6175746F << 32


@dataclass(frozen=True)
class Choice:
    """The parts of a model, what parameters they have instead of the ranker's, and how they are added up.

    Attributes
    ----------
    linear, trees : dict or None
        Parameters of the part; None where it has none.
    share : float
        Of the trees.
    deviations : (float, float)
        Of the scores of either part within queries, by which they are divided where they are added up.
    told : list of str
        What was tried, best first.
    """

    linear: dict[str, Any] | None = None
    trees: dict[str, Any] | None = None
    share: float = 1.0
    deviations: tuple[float, float] = (1.0, 1.0)
    told: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, model: str) -> Choice:
        """What a word asks for."""
        return cls(linear={}, share=0.0) if model == "linear" else cls(trees={})

    def factors(self, *, of_log_odds: bool) -> np.ndarray:
        """Of the scores of either part; log-odds have one scale already."""
        shares = np.array([1 - self.share, self.share])
        return shares if of_log_odds else shares / np.array(self.deviations)


@dataclass
class _Tried:
    name: str
    choice: Choice
    # Scores of held-out rows: a row for each model of the ranker.
    scores: np.ndarray
    value: float


def choose(training: Training, X: Any, X_eval: Any, metrics: Metrics, *, linear: bool) -> Choice:
    """The choice that ranks held-out queries, or rows, best in the mean over the weighted objectives.

    Folds are made of queries, by a hash of their ids; without queries of rows, copies of each other in
    one. Every candidate is trained on the same folds. Methods that search for weights are judged by loss
    aggregation with the weights that are given. Blends are those of the best linear model and the best
    trees.

    Parameters
    ----------
    training : Training
        Of all rows.
    X : float32 array or CSR matrix
    X_eval, metrics :
        Rows watched for early stopping, as in the fit itself, and metrics on them.
    linear : bool
        Whether there may be a linear part: it needs dense features without missing values.
    """
    grouping = training.grouping
    fold = _folds(grouping, int(training.ranker.random_state), X)
    # Without queries rows of a fold are compared: scores of different models are not.
    within = grouping if grouping.has_queries else check_groups(len(fold), qid=fold)
    jobs = _jobs(training, X, fold, X_eval, metrics)
    held_out = np.concatenate([rows for rows, _ in jobs]) if jobs else np.zeros(0, np.int64)
    try:
        judge = _judge(training, held_out, within)
    except ValueError:  # a label that is constant there
        return Choice(trees={}, told=["lightgbm: too few queries or rows to compare"])
    candidates = _candidates(training.ranker, linear)
    tried: list[_Tried] = []
    for number, (name, choice) in enumerate(candidates):
        scores = np.zeros((training.n_models, len(fold)))
        for i, (rows, train) in enumerate(jobs):
            part = 1 / (len(jobs) * len(candidates))
            with as_part(f"choosing, {name}", (number * len(jobs) + i) * part, part):
                scores[:, rows] = train(choice)
        tried.append(_Tried(name, choice, scores, judge(scores)))
    tried += _blends(training, tried, held_out, within, judge)
    order = sorted(range(len(tried)), key=lambda i: -tried[i].value)
    found = tried[order[0]].choice
    told = [f"{tried[i].name}: {training.metric} {tried[i].value:.4f}" for i in order]
    return Choice(found.linear, found.trees, found.share, found.deviations, told)


def _candidates(ranker: Any, linear: bool) -> list[tuple[str, Choice]]:
    leaves = min(ranker.num_leaves, max(4, (ranker.num_leaves + 1) // 8))
    rate = ranker.learning_rate / 2
    small = {"num_leaves": leaves, "learning_rate": rate}
    out = [
        ("lightgbm", Choice(trees={})),
        (f"lightgbm ({leaves} leaves, learning rate {rate:g})", Choice(trees=small)),
    ]
    penalties = [l2 for l2 in PENALTIES if l2 > ranker.l2] or [ranker.l2]
    of_linear = [(f"linear (l2 {l2:g})", Choice(linear={"l2": l2}, share=0.0)) for l2 in penalties]
    return of_linear + out if linear else out


def _folds(grouping: Grouping, seed: int, X: Any) -> np.ndarray:
    """int array (n,): the fold of each row."""
    if not grouping.has_queries:
        return fold_of_rows(len(grouping.order), N_FOLDS, seed, X)
    u = hash_uniform(grouping.ids, seed ^ _STREAM)
    of_query = np.empty(len(grouping.ids), np.int64)
    of_query[np.lexsort((grouping.ids, u))] = np.arange(len(grouping.ids)) % N_FOLDS
    return np.asarray(of_query[grouping.group_of_row])


Job = tuple[np.ndarray, Callable[[Choice], np.ndarray]]


def _jobs(training: Training, X: Any, fold: np.ndarray, X_eval: Any, metrics: Metrics) -> list[Job]:
    """Rows of each fold, and a function that trains on the others and scores them."""
    out: list[Job] = []
    for number in range(int(fold.max()) + 1):
        inside = fold == number
        if inside.all() or not inside.any():
            continue
        part = training.rows(np.flatnonzero(~inside))
        if not part.can_learn():
            continue

        def train(choice: Choice, part: Training = part, inside: np.ndarray = inside) -> np.ndarray:
            part.prepare(X[~inside], X_eval, metrics, choice)
            return np.array([scorer.score(X[inside], part.n_jobs) for scorer in part.scorers()])

        out.append((np.flatnonzero(inside), train))
    return out


def _judge(training: Training, rows: np.ndarray, within: Grouping) -> Callable[[np.ndarray], float]:
    """What scores of the rows are worth: the metric of the fit, in the mean over the weighted objectives."""
    part = training.rows(rows)
    metrics = Metrics(
        part.values,
        check_groups(len(rows), qid=within.ids[within.group_of_row[rows]]),
        training.names,
        cost=training.ranker.cost,
        label_gain=training.ranker.label_gain,
        n_jobs=training.n_jobs,
        propensity=part.propensity,
        ndcg=training.metric == "ndcg",
    )
    column = metrics.column(training.metric)

    def judge(scores: np.ndarray) -> float:
        found = metrics.measure(training.combined(list(scores[:, rows])))[:, column]
        return float((found * training.weights).sum())

    return judge


def _blends(
    training: Training,
    tried: list[_Tried],
    rows: np.ndarray,
    within: Grouping,
    judge: Callable[[np.ndarray], float],
) -> list[_Tried]:
    """Of the best linear model and the best trees."""
    kinds = [[t for t in tried if (t.choice.trees is None) == is_linear] for is_linear in (True, False)]
    if not all(kinds):
        return []
    linear, trees = (max(kind, key=lambda t: t.value) for kind in kinds)
    deviations = (_deviation(linear.scores, rows, within), _deviation(trees.scores, rows, within))
    if not min(deviations) > 0:
        return []
    out = []
    for share in SHARES:
        choice = Choice(linear.choice.linear, trees.choice.trees, share, deviations)
        a, b = choice.factors(of_log_odds=training.n_models > 1 or training.is_plug_in)
        scores = a * linear.scores + b * trees.scores
        name = f"{1 - share:g} {linear.name} + {share:g} {trees.name}"
        out.append(_Tried(name, choice, scores, judge(scores)))
    return out


def _deviation(scores: np.ndarray, rows: np.ndarray, within: Grouping) -> float:
    """Standard deviation of the scores within queries, or within folds."""
    of, group = scores[0, rows], within.group_of_row[rows]
    size = np.bincount(group)
    mean = np.bincount(group, of) / np.maximum(size, 1)
    return float(np.sqrt(((of - mean[group]) ** 2).mean()))

"""Linear rankers: a weight for each standardised column, found by the loss that each minimises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank import _core
from metarank._util.algebra import Minimum, dot, gram, minimum, solve_upper, times, upper_factor
from metarank._util.elementary import logistic
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.lists import RankingData
from metarank.types.feature_table import FeatureTable

# Pairs looked at to choose the penalty, and to guess the curvature of the loss.
_TUNING_PAIRS = 100_000
_CURVATURE_PAIRS = 20_000
_MOST_STEPS = 500
# Of the logistic loss: pairs that are all but certain would leave some directions without curvature.
_LEAST_BEND = 1e-4

ListLoss = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int], tuple[float, np.ndarray]]


class LinearProblem:
    """A penalised loss of linear scores, ``loss(w, b) + l2 / 2 |w|²``, on standardised columns.

    The scores and the gradient are summed by the core straight from the float32
    table, in one fixed order for any number of threads.
    """

    def __init__(self, data: RankingData, ranker: LinearRanker, n_jobs: int) -> None:
        self.values: np.ndarray = data.table.values
        self.mean: np.ndarray
        self.scale: np.ndarray
        self.mean, self.scale = column_scale(self.values)
        self.target: np.ndarray = ranker._target(data)
        self.indptr: np.ndarray = data.indptr
        self.weight: np.ndarray = ranker._list_weight(data)
        self.list_loss: ListLoss = ranker._list_loss
        self.n_jobs = n_jobs

    def loss(self, w: np.ndarray, b: float) -> tuple[float, np.ndarray, float]:
        """Loss, its gradient in w, its gradient in b."""
        scores = _core.linear_scores(self.values, self.mean, self.scale * w, b, self.n_jobs)
        loss, slope = self.list_loss(scores, self.target, self.indptr, self.weight, self.n_jobs)
        gradient = _core.linear_gradient(self.values, self.mean, slope, self.n_jobs)
        return loss, self.scale * gradient, float(slope.sum())


def column_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and 1 / standard deviation of each column; 0 for a constant one, which carries no information."""
    mean = values.mean(axis=0, dtype=np.float64)
    deviation = values.std(axis=0, dtype=np.float64)
    constant = deviation <= 1e-7 * np.abs(mean)  # but for rounding
    return mean, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, deviation))


def minimised(
    loss: Callable[[np.ndarray, float], tuple[float, np.ndarray, float]],
    start: np.ndarray,
    root: np.ndarray,
    l2: float,
    *,
    most_steps: int,
    flat: float,
    least_gain: float,
    has_intercept: bool,
    after: Callable[[np.ndarray], None] | None = None,
) -> Minimum:
    """The optimum of ``loss(w, b) + l2 / 2 |w|²`` by L-BFGS, as R w and, last, b in `x`.

    Parameters
    ----------
    loss : function of w (d,) and b
        Gives its value, its gradient in w and its gradient in b.
    start : float64 array (d + 1,)
        R w and b to start from.
    root : float64 array (d, d)
        R, upper triangular: in R w the curvature should be about one. Where columns are strongly correlated,
        a dozen steps in R w do what hundreds in w would.
    most_steps, flat, least_gain, after
        As `minimum` takes them.
    has_intercept : bool
        Whether b may move.
    """

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        w = solve_upper(root, u[:-1])
        value, gradient, slope = loss(w, u[-1])
        gradient = solve_upper(root, gradient + l2 * w, transposed=True)
        return value + 0.5 * l2 * dot(w, w), np.append(gradient, slope * has_intercept)

    return minimum(objective, start, most_steps=most_steps, flat=flat, least_gain=least_gain, after=after)


@with_parameters
class LinearRanker(Ranker):
    """A weighted sum of standardised columns, learned with an L2 penalty.

    A subclass names its compiled list loss. The penalty weighs against the mean of
    that loss, so its size does not depend on the number of lists.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty; "auto" chooses by cross-validation over the folds of the lists.
    """

    l2: float | Literal["auto"] = "auto"

    # Compiled: (scores, target, indptr, list weights, threads) -> loss, its gradient in the scores.
    _list_loss: ListLoss = field(init=False)
    # Tried by l2="auto", strongest first so that each fit starts near its optimum.
    _grid: ClassVar[tuple[float, ...]] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
    _has_intercept: ClassVar[bool] = False
    # Steps after which the curvature is looked at anew: where it stays the same, that would only cost.
    _steps: ClassVar[int] = _MOST_STEPS
    # Second derivative of the loss along a direction of unit variance, about.
    _bend: ClassVar[float] = 1.0

    saved: ClassVar[Spec] = saved_with(
        Array("mean_", np.float64, ("columns",)),
        Array("weights_", np.float64, ("columns",)),
        Number("intercept_"),
        Number("l2_", 0),
    )

    def tuned(self, data: RankingData, n_jobs: int) -> Self:
        """A copy whose `l2` is the one of least held-out loss over the folds of the lists."""
        copy: Self = clone(self)
        return copy.set_params(l2=self._choose_l2(data, n_jobs))

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self.l2_: float = self._choose_l2(data, n_jobs)
        problem = LinearProblem(data, self, n_jobs)
        ((w, b),) = self._solve_path(problem, data, [self.l2_], tolerance=1e-7)
        self.mean_: NDArray[np.float64] = problem.mean
        self.weights_: NDArray[np.float64] = problem.scale * w
        self.intercept_: float = float(b)

    def _choose_l2(self, data: RankingData, n_jobs: int) -> float:
        if self.l2 != "auto":
            if isinstance(self.l2, bool) or not isinstance(self.l2, Real) or not 0 < self.l2 < np.inf:
                raise ValueError(f"l2 must be 'auto' or a positive number, got {self.l2!r}")
            return float(self.l2)
        data = data.sample(_TUNING_PAIRS)
        held_out_loss = np.zeros(len(self._grid))
        for f in np.unique(data.fold):
            train, test = data.lists(data.fold != f), data.lists(data.fold == f)
            if not len(train.gains) or not train.weight.any() or not test.weight.any():
                continue
            problem = LinearProblem(train, self, n_jobs)
            target = self._target(test)
            for k, (w, b) in enumerate(self._solve_path(problem, train, list(self._grid), tolerance=1e-4)):
                scores = _core.linear_scores(test.table.values, problem.mean, problem.scale * w, b, n_jobs)
                held_out_loss[k] += self._list_loss(scores, target, test.indptr, test.weight, n_jobs)[0]
        return float(self._grid[int(np.argmin(held_out_loss))])

    def _solve_path(
        self, problem: LinearProblem, data: RankingData, path: list[float], tolerance: float
    ) -> list[tuple[np.ndarray, float]]:
        """The optimum (w, b) for each penalty, by L-BFGS in coordinates where the curvature is about one.

        It stops where no derivative in R w is above the tolerance, with R'R = curvature of the loss + l2 I.
        """
        w, b, optima = np.zeros(len(problem.mean)), 0.0, []
        curvature = self._curvature(problem, data, w, b)
        for l2 in path:
            left = _MOST_STEPS
            while left > 0:
                steps = min(self._steps, left)
                root = upper_factor(curvature + l2 * np.eye(len(w)))
                found = minimised(
                    problem.loss,
                    np.append(times(root, w), b),
                    root,
                    l2,
                    most_steps=steps,
                    flat=tolerance,
                    least_gain=1e-6 * tolerance,
                    has_intercept=self._has_intercept,
                )
                w, b = solve_upper(root, found.x[:-1]), float(found.x[-1])
                left -= steps
                if found.steps < steps:
                    break
                curvature = self._curvature(problem, data, w, b)
            optima.append((w, b))
        return optima

    def _curvature(self, problem: LinearProblem, data: RankingData, w: np.ndarray, b: float) -> np.ndarray:
        """Of the loss at (w, b), about: bend times covariance of the columns.

        Within lists if only differences within a list count.
        """
        part = data.sample(_CURVATURE_PAIRS)
        z = (part.table.values - problem.mean) * problem.scale
        if not self._has_intercept:
            filled = part.sizes > 0
            means = np.add.reduceat(z, part.indptr[:-1][filled]) / part.sizes[filled, None]
            z -= np.repeat(means, part.sizes[filled], axis=0)
        return self._bend * gram(z, n_jobs=problem.n_jobs) / len(z)

    def _target(self, data: RankingData) -> np.ndarray:
        """float32 (m,): the gains as the loss wants them."""
        return data.gains

    def _list_weight(self, data: RankingData) -> np.ndarray:
        """float64 (n,): weights under which the summed loss is a mean."""
        weight = np.where(data.informative, data.weight, 0.0)
        return weight / (weight.sum() or 1.0)

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return _core.linear_scores(table.values, self.mean_, self.weights_, self.intercept_, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        shares = (table.values - self.mean_) * self.weights_
        return np.column_stack([shares, np.full(len(shares), self.intercept_)])


class LogisticRanker(LinearRanker):
    """Linear log-odds of relevance, learned on all pairs alike (pointwise).

    Minimises the mean over pairs of ``log(1 + exp(s)) - y s`` plus ``l2 / 2 |w|²``, where
    ``y = gain / greatest gain``: with 0/1 gains the score is a log-odds, with graded ones the
    order is by expected gain. Scores can be compared across lists.

    Parameters
    ----------
    l2 : see `LinearRanker`

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> LogisticRanker(l2=0.1).fit(table, np.array([0, 1, 1, 0])).score(table).round(2)
    array([-0.68,  2.04,  0.68, -2.04])
    """

    name = "logistic"
    _list_loss = staticmethod(_core.logistic_loss)
    _grid = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
    _has_intercept = True
    _steps = 30

    def _target(self, data: RankingData) -> np.ndarray:
        return data.shares

    def _curvature(self, problem: LinearProblem, data: RankingData, w: np.ndarray, b: float) -> np.ndarray:
        part = data.sample(_CURVATURE_PAIRS)
        z = (part.table.values - problem.mean) * problem.scale
        p = logistic(times(z, w) + b) if w.any() else np.full(len(z), problem.target.mean(dtype=np.float64))
        return gram(z, np.maximum(p * (1.0 - p), _LEAST_BEND), problem.n_jobs) / len(z)

    def _list_weight(self, data: RankingData) -> np.ndarray:
        return data.weight / (dot(data.weight, data.sizes) or 1.0)


class ListNet(LinearRanker):
    """Linear scores whose softmax over a list matches the list's gains (Cao et al. 2007, eq. 6).

    Minimises the mean over lists of ``-sum_j P_j log softmax(s)_j`` plus ``l2 / 2 |w|²``, with
    ``P_j = gain_j / sum of gains`` (their P with the identity for phi: an irrelevant pair gets
    no probability). Convex, and solved to the optimum. Lists whose gains are all equal are left out.

    Parameters
    ----------
    l2 : see `LinearRanker`

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(20, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (20, 1)), ["nearness"], pairs)
    >>> ranker = ListNet(l2=0.1).fit(table, np.tile([0, 1, 0], 20))
    >>> ranker.score(table)[:3].round(1)
    array([-2.1,  2.1,  0. ])
    """

    name = "listnet"
    _list_loss = staticmethod(_core.listnet_loss)


class RankSVM(LinearRanker):
    """Linear scores with a margin between every two pairs of a list with different gains (Joachims 2002).

    Minimises the mean over lists of the mean of ``max(0, 1 - (s_i - s_j))²`` over all i, j with
    gain_i > gain_j, plus ``l2 / 2 |w|²``. The mean within a list keeps long lists from ruling
    (Cao et al. 2006, the form made for retrieval); the squared hinge makes it smooth. All such
    i, j count, in O(n log n) for a list of n.

    Parameters
    ----------
    l2 : see `LinearRanker`

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> RankSVM(l2=0.1).fit(table, np.array([0, 1, 1, 0])).score(table).argsort()
    array([3, 0, 2, 1])
    """

    name = "ranksvm"
    _list_loss = staticmethod(_core.ranksvm_loss)
    _bend = 4.0

"""`LinearRanker`: a weight for each standardised column, found by the loss that it minimises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank import _core
from metarank._util.algebra import Minimum, dot, gram, minimum, solve_upper, times, upper_factor
from metarank._util.elementary import logistic
from metarank._util.parameters import check_choice, with_parameters
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.cutting_planes import Planes, by_cutting_planes
from metarank.ranker.lists import RankingData
from metarank.types.feature_table import FeatureTable

# Pairs looked at to choose the penalty, and to guess the curvature of the loss.
_TUNING_PAIRS = 100_000
_CURVATURE_PAIRS = 20_000
_MOST_STEPS = 500
# Of the logistic loss: pairs that are all but certain would leave some directions without curvature.
_LEAST_BEND = 1e-4


@dataclass(frozen=True)
class ListLoss:
    """How the loss of scored lists is minimised that the core knows by the same name.

    Parameters
    ----------
    grid : tuple of float
        Penalties tried by l2="auto", strongest first so that each fit starts near its optimum.
    pointwise : bool
        Whether pairs are judged one by one: the level of the scores then matters.
    bend : float
        Second derivative of the loss along a direction of unit variance, about.
    smooth : bool
        Whether L-BFGS finds the optimum; cutting planes otherwise.
    """

    grid: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
    pointwise: bool = False
    bend: float = 1.0
    smooth: bool = True


LOSSES = {
    "logistic": ListLoss((0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001), pointwise=True),
    "listnet": ListLoss(),
    "ranksvm": ListLoss(bend=4.0),
    "svmmap": ListLoss((1.0, 0.1, 0.01, 0.001), smooth=False),
}


class StandardisedColumns:
    """Linear scores of float32 rows on standardised columns, and the gradients of losses of these scores.

    The core sums both straight from the rows, in one fixed order for any number of threads.
    """

    def __init__(self, values: np.ndarray, n_jobs: int) -> None:
        self.values: np.ndarray = values
        self.n_jobs = n_jobs
        self.mean: np.ndarray = values.mean(axis=0, dtype=np.float64)
        deviation = values.std(axis=0, dtype=np.float64)
        constant = deviation <= 1e-7 * np.abs(self.mean)  # except for rounding; it carries no information
        self.scale: np.ndarray = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, deviation))

    def scores(self, values: np.ndarray, w: np.ndarray, b: float) -> np.ndarray:
        """Of other rows, by weights (d,) of standardised columns and an intercept."""
        return _core.linear_scores(values, self.mean, self.scale * w, float(b), self.n_jobs)

    def loss(
        self, of_scores: Callable[[np.ndarray], tuple[float, np.ndarray]], w: np.ndarray, b: float
    ) -> tuple[float, np.ndarray, float]:
        """A loss of the scores, its gradient in w, its gradient in b."""
        value, slope = of_scores(self.scores(self.values, w, b))
        gradient = _core.linear_gradient(self.values, self.mean, slope, self.n_jobs)
        return value, self.scale * gradient, float(slope.sum())

    def minimised(
        self,
        of_scores: Callable[[np.ndarray], tuple[float, np.ndarray]],
        start: np.ndarray,
        root: np.ndarray,
        l2: float,
        has_intercept: bool,
        *,
        most_steps: int,
        flat: float,
        after: Callable[[np.ndarray], None] | None = None,
    ) -> Minimum:
        """The optimum of ``loss(w, b) + l2 / 2 |w|²`` by L-BFGS, as R w and, last, b in `x`.

        Parameters
        ----------
        of_scores : function of the scores (n,)
            The loss and its gradient.
        start : float64 array (d + 1,)
            R w and b to start from.
        root : float64 array (d, d)
            R, upper triangular: in R w the curvature should be about one. Where columns are strongly
            correlated, a dozen steps in R w do what hundreds in w would.
        has_intercept : bool
            Whether b may move.
        most_steps, flat, after
            As `minimum` takes them.
        """

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            w = solve_upper(root, u[:-1])
            value, gradient, slope = self.loss(of_scores, w, u[-1])
            gradient = solve_upper(root, gradient + l2 * w, transposed=True)
            return value + 0.5 * l2 * dot(w, w), np.append(gradient, slope * has_intercept)

        stops = {"flat": flat, "least_gain": 1e-6 * flat}
        return minimum(objective, start, most_steps=most_steps, after=after, **stops)


@with_parameters
class LinearRanker(Ranker):
    """A weighted sum of standardised columns, learned with an L2 penalty.

    The penalty weighs against the mean of the loss, so its size does not depend on the number of lists.

    Parameters
    ----------
    loss : str
        What is minimised, plus ``l2 / 2 |w|²``:

        * "logistic": the mean over pairs of ``log(1 + exp(s)) - y s``, where ``y = gain / greatest gain``:
          with 0/1 gains the score is a log-odds, with graded ones the order is by expected gain. Scores can
          be compared across lists.
        * "listnet": the mean over lists of ``-sum_j P_j log softmax(s)_j`` with ``P_j = gain_j / sum of
          gains`` (Cao et al. 2007, eq. 6, with the identity for phi: an irrelevant pair gets no probability).
          Lists whose gains are all equal are left out.
        * "ranksvm": the mean over lists of the mean of ``max(0, 1 - (s_i - s_j))²`` over all i, j with
          gain_i > gain_j (Joachims 2002). The mean within a list keeps long lists from ruling (Cao et al.
          2006); the squared hinge makes it smooth. All such i, j count, in O(n log n) for a list of n.
        * "svmmap": the mean over lists of ``max_y [1 - AP(y) + w.psi(x, y)] - w.psi(x, y*)``, a bound on 1 -
          MAP (Yue & Finley 2007, problem 1 with margin rescaling; their C is 1 / l2). The most violated
          ranking is found exactly by their Algorithm 1. Grades count as relevant or not.
        * "fixed": none. The weights are those that `of` was given.
    l2 : float or "auto"
        Penalty; "auto" chooses by cross-validation over the folds of the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> gains = np.array([0, 1, 1, 0])
    >>> LinearRanker(loss="logistic", l2=0.1).fit(table, gains).score(table).round(2)
    array([-0.68,  2.04,  0.68, -2.04])
    >>> LinearRanker(loss="svmmap", l2=0.1).fit(table, gains).score(table).argsort()
    array([3, 0, 2, 1])
    """

    loss: Literal["logistic", "listnet", "ranksvm", "svmmap", "fixed"] = "listnet"
    l2: float | Literal["auto"] = "auto"

    saved: ClassVar[Spec] = saved_with(
        Array("mean_", np.float64, ("columns",)),
        Array("weights_", np.float64, ("columns",)),
        Number("intercept_"),
        Number("l2_", 0),
    )

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> LinearRanker:
        """The ranker whose score is the sum of the columns by these weights, which no loss has found."""
        out = cls(loss="fixed")
        out.names_, out.weights_ = list(weights), np.array(list(weights.values()), np.float64)
        out.mean_, out.intercept_, out.l2_ = np.zeros(len(weights)), 0.0, 0.0
        return out

    @property
    def name(self) -> str:
        return self.loss

    def tuned(self, data: RankingData, n_jobs: int) -> Self:
        """A copy whose `l2` is the one of least held-out loss over the folds of the lists."""
        copy: Self = clone(self)
        return copy.set_params(l2=self._choose_l2(data, n_jobs))

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self.l2_: float = self._choose_l2(data, n_jobs)
        columns = StandardisedColumns(data.table.values, n_jobs)
        ((w, b),) = self._solve_path(columns, data, (self.l2_,), tolerance=1e-7)
        self.mean_: NDArray[np.float64] = columns.mean
        self.weights_: NDArray[np.float64] = columns.scale * w
        self.intercept_: float = float(b)

    def _choose_l2(self, data: RankingData, n_jobs: int) -> float:
        check_choice("loss", self.loss, list(LOSSES))
        if self.l2 != "auto":
            if isinstance(self.l2, bool) or not isinstance(self.l2, Real) or not 0 < self.l2 < np.inf:
                raise ValueError(f"l2 must be 'auto' or a positive number, got {self.l2!r}")
            return float(self.l2)
        data = data.sample(_TUNING_PAIRS)
        grid = LOSSES[self.loss].grid
        held_out_loss = np.zeros(len(grid))
        for f in np.unique(data.fold):
            train, test = data.lists(data.fold != f), data.lists(data.fold == f)
            if not len(train.gains) or not train.weight.any() or not test.weight.any():
                continue
            columns = StandardisedColumns(train.table.values, n_jobs)
            of_test = self._loss_of(test, test.weight, n_jobs)
            for k, (w, b) in enumerate(self._solve_path(columns, train, grid, tolerance=1e-4)):
                held_out_loss[k] += of_test(columns.scores(test.table.values, w, b))[0]
        return float(grid[int(np.argmin(held_out_loss))])

    def _loss_of(
        self, data: RankingData, weight: np.ndarray, n_jobs: int
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """The loss of lists with weights (n,), and its gradient in their scores."""
        target = data.shares if LOSSES[self.loss].pointwise else data.gains
        return lambda scores: _core.list_loss(self.loss, scores, target, data.indptr, weight, n_jobs)

    def _solve_path(
        self, columns: StandardisedColumns, data: RankingData, path: tuple[float, ...], tolerance: float
    ) -> list[tuple[np.ndarray, float]]:
        """The optimum (w, b) for each penalty."""
        of_scores = self._loss_of(data, self._list_weight(data), columns.n_jobs)
        if LOSSES[self.loss].smooth:
            return self._smooth_path(columns, data, of_scores, path, tolerance)
        # The planes bound the loss whatever the penalty: each solution starts from the last one's.
        planes = Planes(len(columns.mean))
        return [
            (by_cutting_planes(lambda w: columns.loss(of_scores, w, 0.0)[:2], planes, l2), 0.0) for l2 in path
        ]

    def _smooth_path(
        self,
        columns: StandardisedColumns,
        data: RankingData,
        of_scores: Callable[[np.ndarray], tuple[float, np.ndarray]],
        path: tuple[float, ...],
        tolerance: float,
    ) -> list[tuple[np.ndarray, float]]:
        """By L-BFGS in coordinates where the curvature is about one.

        It stops where no derivative in R w is above the tolerance, with R'R = curvature of the loss + l2 I.
        """
        pointwise = LOSSES[self.loss].pointwise
        w, b, optima = np.zeros(len(columns.mean)), 0.0, []
        curvature = self._curvature(columns, data, w, b)
        for l2 in path:
            left = _MOST_STEPS
            while left > 0:
                # The curvature of log-odds changes on the way; otherwise a new look at it only costs.
                steps = min(30 if pointwise else _MOST_STEPS, left)
                root = upper_factor(curvature + l2 * np.eye(len(w)))
                start = np.append(times(root, w), b)
                optimum = columns.minimised(
                    of_scores, start, root, l2, pointwise, most_steps=steps, flat=tolerance
                )
                w, b = solve_upper(root, optimum.x[:-1]), float(optimum.x[-1])
                left -= steps
                if optimum.steps < steps:
                    break
                curvature = self._curvature(columns, data, w, b)
            optima.append((w, b))
        return optima

    def _curvature(
        self, columns: StandardisedColumns, data: RankingData, w: np.ndarray, b: float
    ) -> np.ndarray:
        """Of the loss at (w, b), about: its bend times the covariance of the columns.

        The covariance within lists where only differences within a list count.
        """
        part = data.sample(_CURVATURE_PAIRS)
        z = (part.table.values - columns.mean) * columns.scale
        loss = LOSSES[self.loss]
        if loss.pointwise:
            share = data.shares.mean(dtype=np.float64)
            p = logistic(times(z, w) + b) if w.any() else np.full(len(z), share)
            return gram(z, np.maximum(p * (1.0 - p), _LEAST_BEND), columns.n_jobs) / len(z)
        filled = part.sizes > 0
        means = np.add.reduceat(z, part.indptr[:-1][filled]) / part.sizes[filled, None]
        z -= np.repeat(means, part.sizes[filled], axis=0)
        return loss.bend * gram(z, n_jobs=columns.n_jobs) / len(z)

    def _list_weight(self, data: RankingData) -> np.ndarray:
        """float64 (n,): weights under which the summed loss is a mean."""
        if LOSSES[self.loss].pointwise:
            return data.weight / (dot(data.weight, data.sizes) or 1.0)
        weight = np.where(data.informative, data.weight, 0.0)
        return weight / (weight.sum() or 1.0)

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return _core.linear_scores(table.values, self.mean_, self.weights_, self.intercept_, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        shares = (table.values - self.mean_) * self.weights_
        return np.column_stack([shares, np.full(len(shares), self.intercept_)])

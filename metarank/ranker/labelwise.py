"""`LabelwiseRanker`: the pooled logistic ranker with a correction for each label."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from metarank import _core
from metarank._threads import single_threaded_blas
from metarank.features.table import FeatureTable
from metarank.ranker.base import Ranker
from metarank.ranker.linear import column_scale
from metarank.ranker.lists import RankingData
from metarank.ranker.logistic import LogisticRanker

_TUNING_PAIRS = 100_000
# Tried by shrinkage="auto", strongest first so that each fit starts near its optimum.
_GRID = (300.0, 100.0, 30.0, 10.0, 3.0)
# The intercept of a label is shrunk less: label frequencies do differ.
_INTERCEPT_SHARE = 0.3


class LabelwiseRanker(Ranker):
    """Linear log-odds of relevance with weights of each label's own, shrunk towards common ones.

    First a `LogisticRanker` learns weights w for all pairs. Then the label l gets
    ``score = s + v_l.z + c_l``, s being the pooled score and z the standardised columns, where v_l and c_l
    minimise the *sum* over the label's pairs of ``log(1 + exp(score)) - y score`` plus
    ``shrinkage / 2 (|v_l|² + 0.3 c_l²)``: a label with few relevant pairs stays with w. Targets y
    are gains divided by the greatest gain. A label that never was relevant in fit is scored by w.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty of the pooled ranker.
    shrinkage : float or "auto"
        Pull towards it; "auto" chooses by cross-validation over the folds of the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.candidates import Candidates
    >>> from metarank.features.table import FeatureTable
    >>> x = np.float32([[1], [1], [-1], [-1]])  # good for label 0, bad for label 1
    >>> table = FeatureTable(np.tile(x, (20, 1)), ["x"], Candidates.all_labels(40, 2))
    >>> ranker = LabelwiseRanker(l2=0.1, shrinkage=1.0).fit(table, np.tile([1, 0, 0, 1], 20))
    >>> ranker.score(table)[:4].round(1)
    array([ 2.6, -2.6, -2.6,  2.6])
    """

    name = "labelwise"

    mean_: np.ndarray
    weights_: np.ndarray
    intercept_: np.ndarray
    l2_: float
    shrinkage_: float

    def __init__(
        self, *, l2: float | Literal["auto"] = "auto", shrinkage: float | Literal["auto"] = "auto"
    ) -> None:
        self.l2 = l2
        self.shrinkage = shrinkage

    def tuned(self, data: RankingData, n_jobs: int) -> LabelwiseRanker:
        """A copy whose `l2` and `shrinkage` are those of least held-out loss over the folds of the lists."""
        pooled = LogisticRanker(l2=self.l2).tuned(data, n_jobs)
        return LabelwiseRanker(l2=pooled.l2, shrinkage=self._choose_shrinkage(pooled, data, n_jobs))

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        with single_threaded_blas():
            settled = self.tuned(data, n_jobs)
            self.l2_, self.shrinkage_ = float(settled.l2), float(settled.shrinkage)
            pooled = LogisticRanker(l2=self.l2_).fit_lists(data, n_jobs)
            self.mean_ = pooled.mean_
            ((self.weights_, self.intercept_),) = label_paths(pooled, data, [self.shrinkage_])

    def _choose_shrinkage(self, pooled: LogisticRanker, data: RankingData, n_jobs: int) -> float:
        if self.shrinkage != "auto":
            if (
                isinstance(self.shrinkage, bool)
                or not isinstance(self.shrinkage, Real)
                or not self.shrinkage > 0
            ):
                raise ValueError(f"shrinkage must be 'auto' or a positive number, got {self.shrinkage!r}")
            return float(self.shrinkage)
        data = data.sample(_TUNING_PAIRS)
        held_out_loss = np.zeros(len(_GRID))
        for f in np.unique(data.fold):
            train, test = data.lists(data.fold != f), data.lists(data.fold == f)
            if not train.weight.any() or not test.weight.any():
                continue
            fitted = LogisticRanker(l2=pooled.l2).fit_lists(train, n_jobs)
            target, weight = pooled._target(test), pooled._list_weight(test)
            for k, (weights, bias) in enumerate(label_paths(fitted, train, list(_GRID))):
                scores = _label_scores(test.table, fitted.mean_, weights, bias, n_jobs)
                held_out_loss[k] += _core.logistic_loss(scores, target, test.indptr, weight, n_jobs)[0]
        return float(_GRID[int(np.argmin(held_out_loss))])

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return _label_scores(table, self.mean_, self.weights_, self.intercept_, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        shares = (table.values - self.mean_) * self.weights_[table.labels]
        return np.column_stack([shares, self.intercept_[table.labels]])

    def _get_fitted(self) -> dict[str, Any]:
        names = ("mean_", "weights_", "intercept_", "l2_", "shrinkage_")
        return {name: getattr(self, name) for name in names}

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        for name, value in fitted.items():
            setattr(self, name, value)


def _label_scores(
    table: FeatureTable, mean: np.ndarray, weights: np.ndarray, bias: np.ndarray, n_jobs: int
) -> np.ndarray:
    return _core.label_linear_scores(table.values, table.labels, mean, weights, bias, n_jobs)


def label_paths(
    pooled: LogisticRanker, data: RankingData, path: list[float]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each shrinkage of a path from strong to weak: weights (L, F) and intercepts (L,)."""
    _, scale = column_scale(data.table.values)
    n_labels, n_features = data.table.candidates.n_labels, len(data.table.names)
    weights = np.tile(pooled.weights_, (len(path), n_labels, 1))
    bias = np.full((len(path), n_labels), pooled.intercept_)
    target, offset = pooled._target(data), pooled.score(data.table)
    pair_weight = np.repeat(data.weight, data.sizes)

    order = np.argsort(data.table.labels, kind="stable")
    starts = np.searchsorted(data.table.labels[order], np.arange(n_labels + 1))
    for label in np.unique(data.table.labels[(target > 0) & (pair_weight > 0)]):
        pairs = order[starts[label] : starts[label + 1]]
        z = np.ones((len(pairs), n_features + 1))
        z[:, :-1] = (data.table.values[pairs] - pooled.mean_) * scale
        v = np.zeros(n_features + 1)
        for k, shrinkage in enumerate(path):
            penalty = shrinkage * np.append(np.ones(n_features), _INTERCEPT_SHARE)
            v = penalised_logistic(z, target[pairs], offset[pairs], pair_weight[pairs], penalty, v)
            weights[k, label] += v[:-1] * scale
            bias[k, label] += v[-1]
    return list(zip(weights, bias))


def penalised_logistic(
    z: np.ndarray,
    y: np.ndarray,
    offset: np.ndarray,
    weight: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """argmin over v of ``sum weight (log(1 + exp(s)) - y s) + v.diag(penalty).v / 2``, s = offset + z v.

    Newton's method; a step that does not go down is halved.
    """

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        s = offset + z @ v
        return float(weight @ (np.logaddexp(0.0, s) - y * s) + 0.5 * penalty @ v**2), s

    v, (value, s) = start, objective(start)
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(s, -500, 500)))
        gradient = z.T @ (weight * (p - y)) + penalty * v
        hessian = (z.T * (weight * p * (1.0 - p))) @ z + np.diag(penalty)
        step = cho_solve(cho_factor(hessian), gradient)
        decrease = float(gradient @ step)
        if decrease <= 1e-8 * (1.0 + abs(value)):
            break
        rate = 1.0
        new_value, s = objective(v - step)
        while new_value > value - 1e-4 * rate * decrease and rate > 1e-6:
            rate *= 0.5
            new_value, s = objective(v - rate * step)
        v, value = v - rate * step, new_value
    return v

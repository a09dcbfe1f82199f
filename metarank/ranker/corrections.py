"""`LabelCorrections`: how far each label departs from the pooled model."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from metarank import _core
from metarank._util.algebra import dot, gram, solve_positive, times, transposed_times
from metarank._util.elementary import logistic, softplus
from metarank.persist.fields import Array, Ids, Known, Number, Strings
from metarank.persist.spec import Saved
from metarank.ranker.lists import RankingData
from metarank.types.feature_table import FeatureTable

_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
# A label with fewer relevant pairs keeps the pooled model; so do labels beyond the most frequent ones.
_LEAST_RELEVANT = 5
_MOST_LABELS = 300
# Pairs looked at to choose the strength.
_TUNING_PAIRS = 700_000


def _width(known: Known) -> int:
    """Weights of a label: of its own columns, the pooled log-odds and 1."""
    return known["own"] + 2


class LabelCorrections(Saved):
    """A logistic model for each label that starts at the pooled log-odds and is pulled back to them.

    The log-odds of label l are ``a_l s + v_l . z + c_l``, s the pooled score and z some standardised
    columns, under the penalty ``strength / 2 (|v_l|^2 + (a_l - 1)^2 var(s) + 0.3 c_l^2)``, which is not
    divided by the number of pairs: the more pairs a label has, the freer it is.

    Parameters
    ----------
    columns : list of str
        Columns that a label may weigh in its own way.
    """

    columns: Annotated[list[str], Strings("")]
    strength_: Annotated[float, Number("", 0)]
    # Positions of the columns in the table.
    ids_: Annotated[np.ndarray, Ids("", np.int64, ("own",), below="columns")]
    mean_: Annotated[np.ndarray, Array("", np.float64, (_width,))]
    scale_: Annotated[np.ndarray, Array("", np.float64, (_width,), above=0)]
    # (L, number of columns + 2): columns, pooled score, intercept.
    weights_: Annotated[np.ndarray, Array("", np.float64, (None, _width))]

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns

    def fit(self, data: RankingData, pooled: np.ndarray, strength: float | None = None) -> LabelCorrections:
        """Learn from held-out pooled scores (m,). Returns self.

        They serve all folds: a pooled model has few parameters, and the fold's share in it is not to be seen.
        The strength is chosen by cross-validation unless it is given.
        """
        names, candidates = data.table.names, data.table.candidates
        self.ids_ = np.array([names.index(c) for c in self.columns if c in names], np.int64)
        own = data.table.values[:, self.ids_].astype(np.float64)
        design = np.column_stack([own, pooled, np.ones(len(pooled))])
        self.mean_, self.scale_ = design.mean(axis=0), design.std(axis=0)
        # The pooled score keeps its place and scale, so that a weight of 1 means no correction.
        self.mean_[-2:], self.scale_[-2:] = 0.0, 1.0
        self.scale_[self.scale_ == 0] = 1.0
        design = (design - self.mean_) / self.scale_
        weight = np.repeat(data.weight / data.weight.mean(), data.sizes)
        problem = _Problem(design, data.shares, weight, float(pooled.std()) or 1.0)

        relevant = np.bincount(candidates.labels, weights=data.gains > 0, minlength=candidates.n_labels)
        frequent = np.argsort(-relevant, kind="stable")[:_MOST_LABELS]
        frequent = frequent[relevant[frequent] >= _LEAST_RELEVANT]
        by_label = np.argsort(candidates.labels, kind="stable")
        starts = np.searchsorted(candidates.labels[by_label], np.arange(candidates.n_labels + 1))
        pairs_of = {label: by_label[starts[label] : starts[label + 1]] for label in frequent}
        if strength is None:
            strength = _chosen_strength(problem, list(pairs_of.values()), np.repeat(data.fold, data.sizes))
        self.strength_ = strength
        self.weights_ = np.zeros((candidates.n_labels, design.shape[1]))
        self.weights_[:, -2] = 1.0
        for label, pairs in pairs_of.items():
            self.weights_[label] = problem.solved(pairs, strength)
        return self

    def score(self, table: FeatureTable, pooled: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Corrected log-odds, float64 (m,), of pairs with pooled log-odds."""
        own = np.ascontiguousarray(table.values[:, self.ids_])
        by_label = self._of_labels(table.candidates.n_labels)
        weights = np.ascontiguousarray(by_label[:, :-2] / self.scale_[:-2])
        bias = np.ascontiguousarray(by_label[:, -1])
        terms = _core.label_linear_scores(own, table.labels, self.mean_[:-2].copy(), weights, bias, n_jobs)
        total: np.ndarray = pooled * by_label[table.labels, -2] + terms
        return total

    def _of_labels(self, n_labels: int) -> np.ndarray:
        """The weights of L labels; one that came after training keeps the pooled model."""
        new = np.zeros((max(0, n_labels - len(self.weights_)), self.weights_.shape[1]))
        new[:, -2] = 1.0
        return np.concatenate([self.weights_, new]) if len(new) else self.weights_

    def contributions(self, table: FeatureTable, pooled: np.ndarray) -> np.ndarray:
        """Shares (m, F + 1) of the columns in the corrected log-odds, given their shares in the pooled."""
        w = self._of_labels(table.candidates.n_labels)[table.labels]
        out = pooled * w[:, -2:-1]
        out[:, -1] += w[:, -1]
        for j, column in enumerate(self.ids_):
            out[:, column] += (table.values[:, column] - self.mean_[j]) / self.scale_[j] * w[:, j]
        return out


def _chosen_strength(problem: _Problem, pairs_of_labels: list[np.ndarray], fold: np.ndarray) -> float:
    """The strength of least held-out loss, by the pairs of the most frequent labels and the fold of pairs."""
    losses, folds = np.zeros(len(_STRENGTHS)), np.unique(fold)
    looked_at = 0
    for pairs in pairs_of_labels:
        if looked_at > _TUNING_PAIRS:
            break
        looked_at += len(pairs)
        for f in folds:
            train, test = pairs[fold[pairs] != f], pairs[fold[pairs] == f]
            if not len(train) or not len(test):
                continue
            w = None
            # The strongest penalty first: each solution is where the next one starts.
            for k in reversed(range(len(_STRENGTHS))):
                w = problem.solved(train, _STRENGTHS[k], w)
                z = times(problem.design[test], w)
                losses[k] += dot(problem.weight[test], softplus(z) - problem.target[test] * z)
    return _STRENGTHS[int(np.argmin(losses)) if pairs_of_labels else -1]


class _Problem(NamedTuple):
    """The logistic regression of a label: columns, targets and weights of pairs, spread of pooled scores."""

    design: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    spread: float

    def solved(self, pairs: np.ndarray, strength: float, start: np.ndarray | None = None) -> np.ndarray:
        """The optimum by Newton's method, with steps halved until the loss falls."""
        A, y, weight = self.design[pairs], self.target[pairs], self.weight[pairs]
        prior = np.zeros(A.shape[1])
        prior[-2] = 1.0
        penalty = np.full(A.shape[1], strength)
        penalty[-2] *= self.spread**2
        penalty[-1] *= 0.3
        w = prior.copy() if start is None else start.copy()

        def loss_of(w: np.ndarray) -> tuple[float, np.ndarray]:
            z = times(A, w)
            d = w - prior
            return dot(weight, softplus(z) - y * z) + 0.5 * dot(penalty, d * d), z

        loss, z = loss_of(w)
        for _ in range(30):
            p = logistic(np.clip(z, -35, 35))
            gradient = transposed_times(A, weight * (p - y)) + penalty * (w - prior)
            step = solve_positive(gram(A, weight * p * (1 - p)) + np.diag(penalty), gradient)
            size = 1.0
            while size > 1e-4:
                trial, z_trial = loss_of(w - size * step)
                if trial <= loss:
                    break
                size /= 2
            else:
                return w
            w, z, gained, loss = w - size * step, z_trial, loss - trial, trial
            if gained <= 1e-9 * (1 + abs(loss)):
                break
        return w

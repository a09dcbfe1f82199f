"""`Baseline`: what every system of the small sets offers, and the cross-validation they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank.types.view import fold_of_rows

Features = np.ndarray | sp.csr_matrix
Scorer = Callable[[Features], np.ndarray]
Fit = Callable[[Features, np.ndarray], Scorer]
Folds = list[tuple[np.ndarray, np.ndarray]]
T = TypeVar("T")
N_FOLDS = 5
# From here on free parameters are judged on one held-out fold instead of five.
MANY_ROWS = 5000


class Baseline(ABC):
    """Scores all labels of a row; free parameters are chosen inside `fit`, on the training part alone.

    Parameters
    ----------
    seed : int
    given : mapping, optional
        Free parameters that are not to be chosen.
    """

    # Yes where the score reaches this: 0 for a margin, 0.5 for a probability.
    cut: ClassVar[float] = 0.0
    # Scores of the training rows from which section 2.3's threshold is learned, by the model of all rows
    # ("non-splitting strategy"), neighbours leaving the row itself out; None: held-out scores are taken.
    training: np.ndarray | None = None
    # The free parameters: given, or chosen by `fit`.
    chosen: dict[str, Any]

    def __init__(self, seed: int = 0, given: Mapping[str, Any] | None = None) -> None:
        self.seed = seed
        self.chosen = dict(given or {})

    @abstractmethod
    def fit(self, X: Features, Y: np.ndarray) -> Baseline:
        """Learn from float32 rows X (n, d) and boolean labels Y (n, L)."""

    @abstractmethod
    def scores(self, X: Features) -> np.ndarray:
        """Float64 (n, L), greater is better."""

    def decide(self, scores: np.ndarray) -> np.ndarray | None:
        """Label sets, bool (n, L), by the system's default threshold; None where it has none."""
        return scores >= self.cut

    def choose(
        self, name: str, grid: Sequence[Any], fit: Callable[[Any], Fit], X: Features, Y: np.ndarray
    ) -> Any:
        """The value of a free parameter that ranks held-out rows best."""
        if name not in self.chosen:
            folds = folds_to_choose_by(len(Y), self.seed)
            judged = np.concatenate([outside for _, outside in folds])

            def held_out(value: Any) -> np.ndarray:
                return np.vstack([fit(value)(X[inside], Y[inside])(X[outside]) for inside, outside in folds])

            self.chosen[name] = best_of(grid, held_out, Y[judged])
        return self.chosen[name]


def folds_of(n: int, seed: int) -> Folds:
    """(training rows, held-out rows) of each of five folds."""
    fold = fold_of_rows(n, N_FOLDS, seed)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]


def folds_to_choose_by(n: int, seed: int) -> Folds:
    """Five folds; one where rows are many."""
    return folds_of(n, seed)[: 1 if n > MANY_ROWS else N_FOLDS]


def quality(Y: np.ndarray, scores: np.ndarray) -> float:
    """Mean average precision: what free parameters are chosen by."""
    return metrics.evaluate(Y.astype(np.float32), scores, ["MAP"], n_jobs=1)["MAP"]


def held_out_scores(fit: Fit, X: Features, Y: np.ndarray, seed: int) -> np.ndarray:
    """Scores of each row by a model of the other folds, float64 (n, L)."""
    out = np.zeros(Y.shape)
    for inside, outside in folds_of(X.shape[0], seed):
        out[outside] = fit(X[inside], Y[inside])(X[outside])
    return out


def best_of(grid: Sequence[T], held_out: Callable[[T], np.ndarray], Y: np.ndarray) -> T:
    """The value whose held-out scores rank best; ties go to the first."""
    return max(grid, key=lambda value: quality(Y, held_out(value)))


def one_vs_rest(fit_one: Callable[[np.ndarray], Scorer], Y: np.ndarray) -> Scorer:
    """A scorer of all labels from one model a label; one that all rows or none carry scores +1 or -1.

    `fit_one(y)` returns the function X -> scores of that label, float (n,).
    """

    def one(y: np.ndarray) -> Scorer:
        if y.all() or not y.any():
            constant = 1.0 if y.all() else -1.0
            return lambda X: np.full(X.shape[0], constant)
        return fit_one(y)

    models = [one(y) for y in Y.T]
    return lambda X: np.column_stack([model(X) for model in models])

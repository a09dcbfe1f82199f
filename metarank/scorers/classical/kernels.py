"""What kernel machines share: the similarity, its free parameters, and fits on one Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._util.threads import in_threads, single_threaded_blas
from metarank.persist.fields import Array, Number, Text
from metarank.persist.spec import Saved
from metarank.scorers.base import HeldOutColumns
from metarank.scorers.crossfit import scatter_folds
from metarank.scorers.linear.shared_ridge import inverse_with
from metarank.types.arrays import Parts, csr_parts, dense, dense_blocks, require_rows, sample_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingSet, TrainingView

METRICS = {"rbf": "squared_l2", "laplacian": "l1"}
# Rows the parameters are chosen on at most.
_CHOICE_ROWS = 1000


@dataclass(frozen=True)
class Kernel(Saved):
    """``exp(-gamma distance(x, z))``: the squared L2 distance for "rbf", L1 for "laplacian".

    Parameters
    ----------
    name : "rbf" or "laplacian"
    gamma : float
    scale : float32 array (d,) or None
        Factors of the columns before the distance is taken.
    """

    name: Annotated[str, Text("", METRICS)]
    gamma: Annotated[float, Number("", 1e-30, 1e30)]
    scale: Annotated[np.ndarray | None, Array("", np.float32, ("d",), optional=True)] = None

    def rows(self, X: Features) -> np.ndarray:
        """Rows as the kernel compares them: dense, scaled."""
        A = dense(X)
        if self.scale is None:
            return A
        with np.errstate(under="ignore"):
            return np.ascontiguousarray(A * self.scale)

    def matrix(self, A: np.ndarray, B: np.ndarray, n_jobs: int) -> np.ndarray:
        """float64 (a, b); each entry depends on its two rows only, so that of a subset is a submatrix."""
        return _core.kernel_matrix(A, B, METRICS[self.name], self.gamma, n_jobs).astype(np.float64)

    def machine(self, X: Features, arrays: Parts, candidates: Candidates, n_jobs: int) -> np.ndarray:
        """``bias[l] + sum_j k(x, support_j) dual[l, j]`` for each pair, float32 (m,). `arrays` are support,
        dual and bias."""
        parts, how = [], (METRICS[self.name], self.gamma)
        for block, indptr, labels in dense_blocks(X, candidates):
            parts.append(_core.kernel_machine(self.rows(block), *arrays, *how, indptr, labels, n_jobs))
        return np.concatenate([np.zeros(0, np.float32), *parts])


class GramScorer(HeldOutColumns):
    """A classifier of each label, learned from one Gram matrix of the view's rows for all labels and folds.

    A subclass tunes `kernel_` (None: linear) and what else it needs in `_tune`, and learns in `_solve`.
    """

    is_classifier = True
    max_rows: int
    kernel_: Kernel | None

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Self:
        """Learn from the rows of the TrainingView. Returns self.

        Raises
        ------
        ValueError
            If a parameter is out of its range or the TrainingView has more than `max_rows` rows.
        """
        self._tune(view, n_jobs)
        with single_threaded_blas():
            self._solve(self._gram(view.X, n_jobs), view)
        return self

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """Columns of the pairs of training rows, to the byte as from fits without the row's fold.

        The Gram matrix is computed once. What is learned of it without a fold never sees the fold's labels.
        """
        tuned = clone(self.tuned(data.view(), n_jobs=n_jobs))
        tuned._tune(data.view(), n_jobs)
        gram = tuned._gram(data.X, n_jobs)

        def one_fold(fold: int, threads: int) -> dict[str, np.ndarray]:
            view = data.without_fold(fold)
            held_out = np.flatnonzero(data.fold[rows] == fold)
            fitted = clone(tuned)
            fitted._tune(view, threads)
            fitted._solve(gram[np.ix_(view.rows, view.rows)], view)
            return fitted.score(data.X[rows[held_out]], candidates.rows(held_out), n_jobs=threads)

        with single_threaded_blas():
            return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def _check_view(self, view: TrainingView) -> None:
        require_rows(view)
        if view.n_rows > self.max_rows:
            raise ValueError(
                f"the TrainingView must have at most max_rows={self.max_rows} rows, got {view.n_rows}"
            )

    def _gram(self, X: Features, n_jobs: int) -> np.ndarray:
        if self.kernel_ is not None:
            A = self.kernel_.rows(X)
            return self.kernel_.matrix(A, A, n_jobs)
        return linear_gram(X, n_jobs)

    def _tune(self, view: TrainingView, n_jobs: int) -> None:
        """Check the parameters, and set `kernel_`; what is left open is chosen."""
        raise TypeError(f"{type(self).__name__} must implement _tune")

    def _solve(self, gram: np.ndarray, view: TrainingView) -> None:
        """Learn from the Gram matrix of the TrainingView's rows, which may be overwritten."""
        raise TypeError(f"{type(self).__name__} must implement _solve")


def linear_gram(X: Features, n_jobs: int) -> np.ndarray:
    """The inner products of all pairs of rows, float64 (n, n)."""
    gram = np.zeros((X.shape[0], X.shape[0]))
    _core.sparse_gram((*csr_parts(sp.csr_matrix(X)), X.shape[1]), gram, n_jobs)
    return gram


def tuned_kernel(
    view: TrainingView, name: str, *, gamma: float | None, alpha: float | None, scaling: str, n_jobs: int
) -> tuple[Kernel, float]:
    """The kernel and the ridge penalty of least squared error on held-out folds.

    Parameters left None (scaling "auto") are searched: the columns as scaled or as given, gamma by
    factors of 2 around the inverse median distance, alpha by factors of 3, one after the other
    until neither moves. At most 1,000 rows of the TrainingView are looked at.

    Returns
    -------
    (Kernel, alpha)
    """
    rows = sample_rows(view, _CHOICE_ROWS)
    X, fold = dense(view.X[rows]), view.fold[rows]
    Y = (view.Y[rows].toarray() > 0).astype(np.float64)
    unscale = None if view.feature_scale is None else (1.0 / view.feature_scale).astype(np.float32)
    both: list[np.ndarray | None] = [None] if unscale is None else [None, unscale]
    scales: list[np.ndarray | None] = both if scaling == "auto" else [None if scaling == "unit" else unscale]
    free = np.any(fold != fold[:1]) and (gamma is None or alpha is None or len(scales) > 1)

    def search(scale: np.ndarray | None) -> tuple[float, float, float]:
        A = X if scale is None else np.ascontiguousarray(X * scale)
        D = _core.kernel_matrix(A, A, METRICS[name], 0.0, 1).astype(np.float64)
        above = D[np.triu_indices(len(D), 1)]
        median = float(np.median(above)) if len(above) else 1.0
        unit = 1.0 / median if median > 0 else 1.0
        of_gamma = gamma if gamma is not None else unit * (2.0 if name == "laplacian" else 1.0)
        start = of_gamma, alpha if alpha is not None else 0.3
        return _descend(D, Y, fold, start, (gamma is None, alpha is None)) if free else (0.0, *start)

    searched = list(in_threads(search, scales, n_jobs=min(n_jobs, len(scales))))
    best = min(range(len(searched)), key=lambda i: searched[i][0])
    _, chosen_gamma, chosen_alpha = searched[best]
    return Kernel(name, float(chosen_gamma), scales[best]), float(chosen_alpha)


def _descend(
    D: np.ndarray, Y: np.ndarray, fold: np.ndarray, start: tuple[float, float], moves: tuple[bool, bool]
) -> tuple[float, float, float]:
    """Coordinate descent on the grid gamma 2^i, alpha 3^j from the start given, along those that move."""
    gamma, alpha = start
    seen: dict[tuple[int, int], float] = {}

    def error(i: int, j: int) -> float:
        if (i, j) not in seen:
            K = np.exp(-(gamma * 2.0**i) * D)
            seen[i, j] = held_out_error(K, Y, fold, alpha * 3.0**j)
        return seen[i, j]

    at, best = (0, 0), error(0, 0)
    for _ in range(3):
        before = at
        for move, (di, dj) in zip(moves, ((1, 0), (0, 1))):
            for sign in (1, -1) if move else ():
                while abs(at[0] + sign * di) <= 4 and abs(at[1] + sign * dj) <= 4:
                    there = (at[0] + sign * di, at[1] + sign * dj)
                    if error(*there) >= best:
                        break
                    at, best = there, error(*there)
        if at == before:
            break
    return best, gamma * 2.0 ** at[0], alpha * 3.0 ** at[1]


def held_out_error(gram: np.ndarray, Y: np.ndarray, fold: np.ndarray, alpha: float) -> float:
    """Squared error of each fold's rows under the ridge fit to the other folds, in closed form.

    With G = (K + 1 + alpha m I)^-1 and A = G Y the held-out scores of fold f are Y_f - (G_ff)^-1 A_f.
    """
    inverse = inverse_with(gram + 1.0, ridge_term(gram, alpha))
    dual = inverse @ Y
    error = 0.0
    for f in np.unique(fold):
        at = np.flatnonzero(fold == f)
        residual = scipy.linalg.solve(inverse[np.ix_(at, at)], dual[at], assume_a="pos", check_finite=False)
        error += float(np.sum(residual**2))
    return error


def ridge_term(gram: np.ndarray, alpha: float) -> float:
    """alpha times the mean of the Gram matrix's diagonal, so that alpha has no unit."""
    return alpha * max(float(np.diagonal(gram).mean()), 1e-12)

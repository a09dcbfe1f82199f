"""`KernelRidge`: regularised least squares on the labels, one factorisation for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._threads import single_threaded_blas
from metarank.candidates import Candidates
from metarank.crossfit import scatter_folds
from metarank.scorers._arrays import dense, dense_blocks, linear_scores, require_rows, sample_rows
from metarank.scorers.base import Features, LabelScorer
from metarank.view import TrainingSet, View

_GAMMA_GRID = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the inverse of the median squared distance
_ALPHA_GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_FIRST_ALPHA = 0.3  # while gamma is chosen
# Rows the parameters are chosen on at most: the 55 factorisations take about half a second.
_CHOICE_ROWS = 1000


class KernelRidge(LabelScorer):
    """The kernel ridge regression of each label's 0/1 column.

    With the Gram matrix K of the View's rows and Y its 0/1 label matrix, the dual coefficients are
    ``A = (K + 1 + alpha m I)^-1 Y`` and the scores ``(k(x) + 1) A``, m the mean of K's diagonal;
    the constant kernel 1 stands for the intercept. One Cholesky factorisation serves all labels.

    Parameters
    ----------
    kernel : "auto", "rbf" or "linear"
        "rbf" is ``exp(-gamma ||x - z||^2)``; sparse rows are made dense for it. "auto": "rbf" for dense
        X, "linear" for sparse X.
    gamma, alpha : float or "auto"
        "auto": the value with the least squared error on held-out folds of at most 1,000 rows of the
        View: gamma among 1/4 to 4 times the inverse median squared distance, then alpha among 0.01 to 3.
    max_rows : int
        Rows the View may have; memory grows with their square.

    Attributes
    ----------
    kernel_, gamma_, alpha_
        What was chosen; `gamma_` is None for the linear kernel.

    Notes
    -----
    Column: ``kernel_ridge``. A label without relevant (or without irrelevant) rows in the View scores
    0 (or 1) for every row.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = KernelRidge(gamma=0.5, alpha=0.1).fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["kernel_ridge"].round(1)
    array([1., 1., 0., 0.], dtype=float32)
    """

    def __init__(
        self,
        *,
        kernel: str = "auto",
        gamma: float | str = "auto",
        alpha: float | str = "auto",
        max_rows: int = 10_000,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.max_rows = max_rows

    def fit(self, view: View, *, n_jobs: int = 1) -> KernelRidge:
        """Learn from the rows of the View. Returns self.

        Raises
        ------
        ValueError
            If a parameter is out of its range or the View has more than `max_rows` rows.
        """
        self._choose(view, n_jobs)
        with single_threaded_blas():
            return self._solve(self._gram(view.X, n_jobs), view.X, view.Y)

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray | None = None, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """Columns of the pairs of training rows, to the byte as from fits without the row's fold.

        `gamma` and `alpha` are chosen once, on all rows; the Gram matrix is computed once; each
        fold has its own factorisation, which never sees the fold's labels.
        """
        rows = np.arange(len(data.fold)) if rows is None else rows
        chosen = clone(self)._choose(data.view(), n_jobs)
        gram = chosen._gram(data.X, n_jobs)

        def one_fold(fold: int, threads: int) -> dict[str, np.ndarray]:
            train = np.flatnonzero(data.fold != fold)
            held_out = np.flatnonzero(data.fold[rows] == fold)
            fitted = clone(self)._copy_choice(chosen)
            fitted._solve(gram[np.ix_(train, train)], data.X[train], data.Y[train])
            return fitted.score(data.X[rows[held_out]], candidates.rows(held_out), n_jobs=threads)

        with single_threaded_blas():
            return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def with_choice_of(self, fitted: KernelRidge) -> KernelRidge:
        """An unfitted copy with the parameters that `fitted` arrived at."""
        gamma = self.gamma if fitted.gamma_ is None else fitted.gamma_
        return clone(self).set_params(kernel=fitted.kernel_, gamma=gamma, alpha=fitted.alpha_)

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        if self.kernel_ == "linear":
            return {"kernel_ridge": linear_scores(X, self.weights_, self.bias_, candidates, n_jobs)}
        parts = [
            _core.gaussian_machine(
                block, self.support_, self.dual_, self.bias_, self.gamma_, indptr, labels, n_jobs
            )
            for block, indptr, labels in dense_blocks(X, candidates)
        ]
        return {"kernel_ridge": np.concatenate([np.zeros(0, np.float32), *parts])}

    def _choose(self, view: View, n_jobs: int) -> KernelRidge:
        """Check the parameters and set `kernel_`, `gamma_`, `alpha_`."""
        if self.kernel not in ("auto", "rbf", "linear"):
            raise ValueError(f"kernel must be 'auto', 'rbf' or 'linear', got {self.kernel!r}")
        for name, value in (("gamma", self.gamma), ("alpha", self.alpha)):
            if value != "auto" and not (isinstance(value, (int, float)) and 0 < value < np.inf):
                raise ValueError(f"{name} must be 'auto' or a positive number, got {value!r}")
        require_rows(view)
        if view.n_rows > self.max_rows:
            raise ValueError(f"the View must have at most max_rows={self.max_rows} rows, got {view.n_rows}")
        auto = "linear" if sp.issparse(view.X) else "rbf"
        self.kernel_ = auto if self.kernel == "auto" else self.kernel

        rows = sample_rows(view, _CHOICE_ROWS)
        X, fold = view.X[rows], view.fold[rows]
        self.gamma_ = None
        gammas: list[float] = []
        if self.kernel_ == "rbf" and self.gamma == "auto":
            unit = 1.0 / _median_squared_distance(dense(X), n_jobs)
            gammas = [g * unit for g in _GAMMA_GRID]
            self.gamma_ = unit
        elif self.kernel_ == "rbf":
            self.gamma_ = float(self.gamma)
        self.alpha_ = _FIRST_ALPHA if self.alpha == "auto" else float(self.alpha)
        if (gammas or self.alpha == "auto") and np.any(fold != fold[0]):
            Y = (view.Y[rows].toarray() > 0).astype(np.float64)

            def error(gamma: float | None, alpha: float) -> float:
                self.gamma_ = gamma
                return _held_out_error(self._gram(X, n_jobs), Y, fold, alpha)

            with single_threaded_blas():
                if gammas:
                    self.gamma_ = min(gammas, key=lambda gamma: error(gamma, self.alpha_))
                if self.alpha == "auto":
                    self.alpha_ = min(_ALPHA_GRID, key=lambda alpha: error(self.gamma_, alpha))
        return self

    def _copy_choice(self, other: KernelRidge) -> KernelRidge:
        self.kernel_, self.gamma_, self.alpha_ = other.kernel_, other.gamma_, other.alpha_
        return self

    def _gram(self, X: Features, n_jobs: int) -> np.ndarray:
        """float64 (n, n): each entry depends on its two rows only, so that of a subset is a submatrix."""
        if self.kernel_ == "rbf":
            A = dense(X)
            return _core.gaussian_kernel(A, A, self.gamma_, n_jobs).astype(np.float64)
        A = sp.csr_matrix(X).astype(np.float64)
        return np.asarray((A @ A.T).todense())

    def _solve(self, gram: np.ndarray, X: Features, Y: sp.csr_matrix) -> KernelRidge:
        relevant = (Y.toarray() > 0).astype(np.float64)
        everywhere = relevant.all(axis=0)
        dual = _ridge_solve(gram, relevant, self.alpha_)
        dual[:, everywhere] = 0.0
        self.bias_ = np.where(everywhere, 1.0, dual.sum(axis=0)).astype(np.float32)
        if self.kernel_ == "rbf":
            self.support_ = dense(X)
            self.dual_ = np.ascontiguousarray(dual.T, np.float32)
        else:
            self.weights_ = np.ascontiguousarray(X.T @ dual, np.float32)
        return self

    def get_state(self) -> dict[str, Any]:
        """Parameters, the choice, and the dual coefficients (rbf) or the weights (linear)."""
        names = ["kernel_", "gamma_", "alpha_", "bias_"]
        names += ["support_", "dual_"] if self.kernel_ == "rbf" else ["weights_"]
        return {"params": self.get_params(), "fitted": {name: getattr(self, name) for name in names}}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KernelRidge:
        """The inverse of `get_state`."""
        scorer = cls(**state["params"])
        for name, value in state["fitted"].items():
            setattr(scorer, name, value)
        return scorer


def _ridge_solve(gram: np.ndarray, Y: np.ndarray, alpha: float) -> np.ndarray:
    """(K + 1 + alpha m I)^-1 Y, m the mean of K's diagonal. Overwrites `gram`."""
    ridge = alpha * max(float(np.diagonal(gram).mean()), 1e-12)
    gram += 1.0
    gram[np.diag_indices_from(gram)] += ridge
    # The transpose of a symmetric matrix is the same matrix in the order LAPACK works in, without a copy.
    factor = scipy.linalg.cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, Y, check_finite=False)


def _held_out_error(gram: np.ndarray, Y: np.ndarray, fold: np.ndarray, alpha: float) -> float:
    """Squared error of each fold's rows under the fit to the other folds."""
    error = 0.0
    for f in np.unique(fold):
        train, held_out = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        dual = _ridge_solve(gram[np.ix_(train, train)], Y[train], alpha)
        error += float(np.sum(((gram[np.ix_(held_out, train)] + 1.0) @ dual - Y[held_out]) ** 2))
    return error


def _median_squared_distance(X: np.ndarray, n_jobs: int) -> float:
    distances = _core.squared_distances(X, X, n_jobs)[np.triu_indices(len(X), 1)]
    median = float(np.median(distances)) if len(distances) else 0.0
    return median if median > 0 else 1.0

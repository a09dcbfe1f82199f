"""Linear and kernel machines a label: Binary-SVM, logistic regression, chains of it, SVM with RBF kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multioutput import ClassifierChain
from sklearn.svm import SVC, LinearSVC

from systems.small.base import Baseline, Features, Scorer, one_vs_rest


class _Chosen(Baseline):
    """One-vs-rest, C by five-fold cross-validation."""

    GRID: tuple[float, ...]
    # Rows of unit length ask for larger C than features of unit variance.
    TEXT_GRID: tuple[float, ...]

    def fit(self, X: Features, Y: np.ndarray) -> _Chosen:
        grid = self.TEXT_GRID if sp.issparse(X) else self.GRID
        C = self.choose("C", grid, lambda C: partial(self._fit, C), X, Y)
        self.scores_of = self._fit(C, X, Y)
        return self

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        raise NotImplementedError

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)


class BinarySVM(_Chosen):
    """Linear SVM (squared hinge), cut at zero."""

    GRID = (0.0001, 0.001, 0.01, 0.1, 1.0)
    TEXT_GRID = (0.1, 0.3, 1.0, 3.0, 10.0)

    def fit(self, X: Features, Y: np.ndarray) -> BinarySVM:
        super().fit(X, Y)
        self.training = self.scores(X)
        return self

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        dual = sp.issparse(X) or X.shape[0] < X.shape[1]
        make = partial(LinearSVC, C=C, dual=dual, random_state=self.seed, max_iter=2000)
        return one_vs_rest(lambda y: make().fit(X, y).decision_function, Y)


class LogisticOneVsRest(_Chosen):
    """Logistic regression; the score is the probability."""

    cut = 0.5
    GRID = (0.001, 0.01, 0.1, 1.0)
    TEXT_GRID = (1.0, 10.0, 100.0)

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        inputs = X.astype(np.float64)
        scores_of = one_vs_rest(lambda y: fit_logistic(inputs, y, C, self.seed), Y)
        return lambda Z: scores_of(Z.astype(np.float64))


class RBFSVM(_Chosen):
    """scikit-learn's SVC, gamma = "scale", cut at zero."""

    GRID = TEXT_GRID = (1.0, 3.0, 10.0)

    def _fit(self, C: float, X: Features, Y: np.ndarray) -> Scorer:
        if not sp.issparse(X):
            return one_vs_rest(lambda y: SVC(C=C).fit(X, y).decision_function, Y)
        # One kernel for all labels: libsvm takes twenty times as long on sparse rows.
        X = X.astype(np.float64)
        gamma = 1.0 / (X.shape[1] * (X.multiply(X).mean() - X.mean() ** 2))
        kernel = rbf_kernel(X, gamma=gamma)
        make = partial(SVC, C=C, kernel="precomputed")
        scores_of = one_vs_rest(lambda y: make().fit(kernel, y).decision_function, Y)
        return lambda Z: scores_of(rbf_kernel(Z.astype(np.float64), X, gamma=gamma))


class ClassifierChainLR(Baseline):
    """The mean of several scikit-learn chains in random order; the score is the probability."""

    cut = 0.5
    N_CHAINS = 10

    def fit(self, X: Features, Y: np.ndarray) -> ClassifierChainLR:
        # One chain on text: a chain of 90 labels over 26,000 words costs as much as ten elsewhere.
        n_chains, C = (1, 10.0) if sp.issparse(X) else (self.N_CHAINS, 1.0)
        X = X.astype(np.float64)
        carried = Y.any(axis=0) & ~Y.all(axis=0)
        self.learned, self.constant = np.flatnonzero(carried), Y.all(axis=0).astype(np.float64)
        self.chains = [
            ClassifierChain(make_logistic(X, C, self.seed), order="random", random_state=self.seed + i).fit(
                X, Y[:, self.learned].astype(np.int8)
            )
            for i in range(n_chains)
        ]
        return self

    def scores(self, X: Features) -> np.ndarray:
        out = np.tile(self.constant, (X.shape[0], 1))
        chains = [chain.predict_proba(X.astype(np.float64)) for chain in self.chains]
        out[:, self.learned] = np.mean(chains, axis=0)
        return out


def make_logistic(X: Features, C: float, seed: int) -> LogisticRegression:
    """liblinear's dual solver for text, Newton's method otherwise: each many times faster than L-BFGS there.

    Newton's method wants float64.
    """
    if sp.issparse(X):
        return LogisticRegression(C=C, solver="liblinear", dual=True, random_state=seed)
    return LogisticRegression(C=C, solver="newton-cholesky")


def fit_logistic(X: Features, y: np.ndarray, C: float, seed: int) -> Scorer:
    """The probability of y given a row, learned from float64 X (n, d) and boolean y (n,)."""
    model = make_logistic(X, C, seed).fit(X, y)
    return lambda Z: model.predict_proba(Z)[:, 1]

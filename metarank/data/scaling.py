"""`FeatureTransform`: the features as the scorers see them, learned in fit and saved."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.persist.fields import Array, Known, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.arrays import csr_parts
from metarank.types.candidates import canonical_csr

_NO_WEIGHTS = np.empty(0, np.float32)


def _check_weights(known: Known) -> None:
    if (known.weights is None) != (known.kind in ("unit", "none")):
        raise ValueError(f"weights need kind 'scale' or 'tfidf', got {known.kind!r}")


def smooth_idf(df: np.ndarray, n: int) -> np.ndarray:
    """``ln((1 + n) / (1 + df)) + 1`` as float32."""
    return (np.log((1 + n) / (1 + df)) + 1).astype(np.float32)


def idf_of(X: sp.csr_matrix) -> np.ndarray:
    """The `smooth_idf` of each column of canonical X (n, d) over its rows, float32 (d,)."""
    return smooth_idf(np.bincount(X.indices, minlength=X.shape[1]), X.shape[0])


def ltc(counts: sp.csr_matrix, idf: np.ndarray) -> sp.csr_matrix:
    """float32 CSR of ``(1 + ln count) * idf``, rows of unit length; sums in double, in column order.

    Without any idf, the values are taken as they are.
    """
    data = _core.text_rows(*csr_parts(counts), idf)
    return canonical_csr(data, counts.indices, counts.indptr, counts.shape)


def inverse_spread(spread: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The factor of each column of X of this spread; 1 where that is within rounding of the values."""
    flat = spread <= 1e-6 * np.abs(X).max(axis=0, initial=0.0)
    return np.where(flat, 1.0, 1.0 / np.where(flat, 1.0, spread))


class FeatureTransform(Saved):
    """Bring features to a scale on which distances mean something.

    Dense features are divided by their standard deviation ("scale"; constant
    ones are left alone), as Yang & Gopal did where features are not comparable.
    Sparse features are taken as text: counts (integers) are weighted by ltc
    TF-IDF, ``(1 + ln tf) * (1 + ln((1 + n) / (1 + df)))``, anything else is
    taken as already weighted; rows are then brought to unit length ("tfidf").

    Attributes
    ----------
    kind : "scale", "tfidf", "unit" or "none"
    weights : float32 array (d,) or None
        Factor of each feature.

    Examples
    --------
    >>> t = FeatureTransform().fit(np.array([[0.0, 10.0], [2.0, 10.0]], np.float32))
    >>> t.transform(np.array([[1.0, 5.0]], np.float32))
    array([[1., 5.]], dtype=float32)
    """

    kind: Annotated[str, Text("", ("scale", "tfidf", "unit", "none"))] = "none"
    weights: Annotated[np.ndarray | None, Array("", np.float32, ("d",), optional=True)] = None

    saved: ClassVar[Spec] = Spec(check=_check_weights)

    @property
    def scale(self) -> np.ndarray | None:
        """Factors of dense columns; None for sparse features."""
        return self.weights if self.kind == "scale" else None

    def fit(self, X: np.ndarray | sp.csr_matrix) -> FeatureTransform:
        """Learn the scale from float32 features (n, d), dense or CSR."""
        if not isinstance(X, np.ndarray):
            counts = X.nnz > 0 and X.data.min() >= 1 and bool(np.all(X.data == np.floor(X.data)))
            self.kind = "tfidf" if counts else "unit"
            if counts:
                self.weights = idf_of(X)
        else:
            self.kind = "scale"
            # Sums over rows, one column at a time, in float64: no BLAS.
            weights = inverse_spread(X.std(axis=0, dtype=np.float64), X)
            self.weights = np.minimum(weights, np.finfo(np.float32).max).astype(np.float32)
        return self

    def transform(self, X: np.ndarray | sp.csr_matrix) -> np.ndarray | sp.csr_matrix:
        """The features on the learned scale; a new array, row by row independent."""
        if self.kind == "none":
            return X
        if isinstance(X, np.ndarray):
            with np.errstate(over="ignore", under="ignore"):  # scores that are not finite are refused
                return np.ascontiguousarray(X * self.weights, dtype=np.float32)
        return ltc(X, _NO_WEIGHTS if self.weights is None else self.weights)

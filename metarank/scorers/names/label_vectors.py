"""Label vectors: where the training points of each label lie (XReg, eq. 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.threads import single_threaded_blas
from metarank.types.arrays import csr_parts
from metarank.types.checks import check_features

# Columns the kernels handle at a time: dimensions are multiples of it.
TILE = 32
# Bytes the dense vectors of all labels, or of all features, may take; more of them get shorter ones.
_MAX_BYTES = 1 << 29
# Subspace iterations: after the first, the subspace of random vectors, one more comes near the best.
_PASSES = 2
_TINY = np.finfo(np.float32).tiny


def principal_label_vectors(
    X: sp.csr_matrix, Y: sp.csr_matrix, *, n_dims: int, seed: int, n_jobs: int
) -> np.ndarray:
    """Eq. 3 within the principal subspace of the label vectors: float32 (L, n_dims), rows of unit length.

    Found by subspace iteration, in which v_l has the weight 1 / sqrt(sum_i y_il^2), about that of a unit
    vector. No more than `n_dims` features are kept as they are.
    """
    d, n_labels = X.shape[1], Y.shape[1]
    while max(d, n_labels) * n_dims * 4 > _MAX_BYTES and n_dims % (2 * TILE) == 0:
        n_dims //= 2
    rows = (*csr_parts(X), *csr_parts(Y))
    if d <= n_dims:
        return _core.label_vectors(*rows, n_labels, np.eye(d, -(-d // TILE) * TILE, dtype=np.float32), n_jobs)
    sq = np.bincount(
        Y.indices, (Y.data / Y.data.max(initial=_TINY)).astype(np.float64) ** 2, minlength=n_labels
    )
    scale = (1 / np.sqrt(np.where(sq > 0, sq, 1))).astype(np.float32)[:, None]
    V = np.random.default_rng(seed).standard_normal((n_labels, n_dims), np.float32)
    for _ in range(_PASSES):
        V *= scale
        basis = _orthonormal(_core.feature_range(*rows[:3], d, *rows[3:], V, n_jobs))
        V = _core.label_vectors(*rows, n_labels, basis, n_jobs)
    return V


def _orthonormal(B: np.ndarray) -> np.ndarray:
    """Columns that span those of float32 B (d, k); zero ones where it has fewer dimensions."""
    with single_threaded_blas():
        variance, rotation = np.linalg.eigh((B.T @ B).astype(np.float64))
        kept = variance > 1e-5 * variance[-1]  # the others are lost in rounding
        return B @ np.where(kept, rotation / np.sqrt(np.where(kept, variance, 1)), 0).astype(np.float32)


def exact_label_vectors(X: sp.csr_matrix, Y: sp.csr_matrix) -> sp.csr_matrix:
    """Eq. 3 as it stands: float32 CSR (L, d), rows of unit length or empty."""
    # The largest values become 1, so that no sum overflows; directions stay.
    unit = [max(float(abs(A).max()), _TINY) if A.nnz else 1.0 for A in (X, Y)]
    V = sp.csr_matrix((Y / unit[1]).T.astype(np.float64) @ (X / unit[0]).astype(np.float64))
    V.sort_indices()
    return _unit_rows(V)


def given_label_vectors(vectors: Any, n_labels: int) -> np.ndarray | sp.csr_matrix:
    """The user's own vectors, checked, one row a label, as rows of unit length or zero."""
    V = check_features(vectors, name="label_vectors")
    if V.shape[0] != n_labels:
        raise ValueError(f"label_vectors must have {n_labels} rows, one a label, got {V.shape[0]}")
    return _unit_rows(V.astype(np.float64))


def _unit_rows(V: np.ndarray | sp.csr_matrix) -> np.ndarray | sp.csr_matrix:
    """Rows of float64 V divided by their length, as float32; zero rows stay."""
    if isinstance(V, np.ndarray):
        norm = np.sqrt((V**2).sum(axis=1, keepdims=True))
        return np.ascontiguousarray(V / np.where(norm > 0, norm, 1), np.float32)
    row = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
    norm = np.sqrt(np.bincount(row, V.data**2, minlength=V.shape[0]))
    data = (V.data / np.where(norm > 0, norm, 1)[row]).astype(np.float32)
    return sp.csr_matrix((data, V.indices, V.indptr), shape=V.shape)

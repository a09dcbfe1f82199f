"""`canonical_csr`: sparse matrices of arrays that need no further look."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def canonical_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_matrix:
    """The float32 CSR matrix of arrays that are canonical: sorted, without duplicates. Stored zeros stay.

    SciPy, which would look again, is not asked.
    """
    out = sp.csr_matrix(shape, dtype=np.float32)
    dtype = np.int32 if len(data) < 2**31 else np.int64  # SciPy's routines want one for both
    out.data = np.ascontiguousarray(data, np.float32)
    out.indices, out.indptr = np.ascontiguousarray(indices, dtype), np.ascontiguousarray(indptr, dtype)
    out.has_sorted_indices = out.has_canonical_format = True
    return out

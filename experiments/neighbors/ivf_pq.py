"""Inverted lists of product-quantised codes (FAISS IVF-PQ), as an alternative to the index that metarank has.

It is smaller and slower than the graph, so no shortlister has it. The nearest lists are found in the core:
FAISS finds them by matrix products whose rounding changes with the batch.
"""

from __future__ import annotations

from typing import Any, ClassVar

import faiss
import numpy as np

from metarank import _core
from metarank._util.threads import single_threaded_blas
from metarank.types.dense_index import faiss_threads, scale_of, scaled, selector


class IvfPqIndex:
    """Inverted lists of rows by nearest centroid, rows as product-quantised codes (Jegou et al. 2011), L2.

    One byte of code for every four features: a small part of the memory of the other indexes. Parameters as
    of `HnswIndex`.
    """

    FEATURES_PER_CODE: ClassVar = 4
    ROWS_PER_CENTROID: ClassVar = 64  # that k-means learns from, in so many rounds
    ROUNDS: ClassVar = 10
    LISTS_READ: ClassVar = 64
    FETCHED: ClassVar = 10  # times k, since codes tell distances roughly

    def __init__(self, X: np.ndarray, arrays: dict[str, Any] | None = None) -> None:
        self.n_rows: int
        self.n_features: int
        self.n_rows, self.n_features = X.shape
        self._arrays = self._build(X) if arrays is None else arrays
        self._restore()

    def arrays(self) -> dict[str, Any]:
        """centroids float32 (n_lists, d'), codebook float32 (d' / 4, 256, 4), lists int32 (n,), codes uint8
        (n, d' / 4), the rows' scale; d' = d, made a multiple of 4 by zeros."""
        return self._arrays

    def propose(self, Q: np.ndarray, k: int, within: np.ndarray | None, n_jobs: int) -> np.ndarray:
        """Rows near each query, int32 (len(Q), at most 10 k), as `HnswIndex.propose`."""
        Q, centroids = self._padded(scaled(Q, self._arrays["scale"])), self._arrays["centroids"]
        m, n_read = min(self.FETCHED * k, self.n_rows), min(self.LISTS_READ, len(centroids))
        every = np.arange(len(centroids), dtype=np.int32)
        nothing = np.empty((len(Q), 0), np.int32), np.zeros(len(Q))
        lists, far = _core.nearest_rows_dense(centroids, self._sq_norm, Q, every, n_read, 0, *nothing, n_jobs)
        with selector(within) as sel, faiss_threads(n_jobs):
            params = faiss.SearchParametersIVF(nprobe=n_read, sel=sel)
            # The wrapper for arrays, search_preassigned, takes no parameters.
            given = np.ascontiguousarray(lists, np.int64), np.square(far)
            ids, distances = np.empty((len(Q), m), np.int64), np.empty((len(Q), m), np.float32)
            pointers = map(faiss.swig_ptr, (*given, distances, ids))
            self._faiss.search_preassigned_c(len(Q), faiss.swig_ptr(Q), m, *pointers, False, params, None)
        return np.ascontiguousarray(ids, np.int32)

    def _build(self, X: np.ndarray) -> dict[str, Any]:
        scale = scale_of(X)
        X = self._padded(scaled(X, scale))
        n_lists = max(1, min(int(4 * np.sqrt(self.n_rows)), self.n_rows // 39))
        quantizer = faiss.IndexFlatL2(X.shape[1])
        index = faiss.IndexIVFPQ(quantizer, X.shape[1], n_lists, X.shape[1] // self.FEATURES_PER_CODE, 8)
        for clustering in (index.cp, index.pq.cp):
            clustering.seed, clustering.max_points_per_centroid = 1234, self.ROWS_PER_CENTROID
            clustering.min_points_per_centroid, clustering.niter = 1, self.ROUNDS
        with faiss_threads(1), single_threaded_blas():
            index.train(X)
            index.add(X)
        return {
            "scale": scale,
            "centroids": quantizer.reconstruct_n(0, n_lists),
            "codebook": faiss.vector_to_array(index.pq.centroids).reshape(-1, 256, self.FEATURES_PER_CODE),
            **_rows_of_lists(index, self.n_rows),
        }

    def _restore(self) -> None:
        centroids = np.ascontiguousarray(self._arrays["centroids"], np.float32)
        self._sq_norm = _core.row_norms(centroids)[0]
        quantizer = faiss.IndexFlatL2(centroids.shape[1])
        n_codes = centroids.shape[1] // self.FEATURES_PER_CODE
        index = faiss.IndexIVFPQ(quantizer, centroids.shape[1], len(centroids), n_codes, 8)
        with faiss_threads(1):
            quantizer.add(centroids)
        codebook = np.ascontiguousarray(self._arrays["codebook"], np.float32)
        faiss.copy_array_to_vector(codebook.ravel(), index.pq.centroids)
        index.is_trained, index.ntotal = True, self.n_rows
        lists = self._arrays["lists"]
        order = np.argsort(lists, kind="stable").astype(np.int64)
        codes = np.ascontiguousarray(self._arrays["codes"][order])
        ends = np.cumsum(np.bincount(lists, minlength=len(centroids)))
        for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends)):
            if end > begin:
                ids = faiss.swig_ptr(order[begin:end])
                index.invlists.add_entries(number, int(end - begin), ids, faiss.swig_ptr(codes[begin:end]))
        with faiss_threads(1), single_threaded_blas():
            index.precompute_table()
        self._faiss, self._quantizer = index, quantizer

    def _padded(self, X: np.ndarray) -> np.ndarray:
        missing = -self.n_features % self.FEATURES_PER_CODE
        return np.ascontiguousarray(np.pad(X, ((0, 0), (0, missing)))) if missing else X


def _rows_of_lists(index: Any, n_rows: int) -> dict[str, np.ndarray]:
    """The list and the code of each row."""
    inverted = index.invlists
    lists = np.empty(n_rows, np.int32)
    codes = np.empty((n_rows, inverted.code_size), np.uint8)
    for number in range(index.nlist):
        size = inverted.list_size(number)
        if size:
            ids = faiss.rev_swig_ptr(inverted.get_ids(number), size)
            lists[ids] = number
            codes[ids] = faiss.rev_swig_ptr(inverted.get_codes(number), size * inverted.code_size).reshape(
                size, -1
            )
    return {"lists": lists, "codes": codes}

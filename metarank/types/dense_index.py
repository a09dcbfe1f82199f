"""Approximate indexes over many dense rows: FAISS HNSW and IVF-PQ, which propose rows near a query.

They propose ids and no more: distances that reach an output are computed again in the core. A proposal
depends on its query and the rows alone. HNSW walks its graph query by query; the nearest lists of IVF-PQ
are found in the core, since FAISS finds them by matrix products whose rounding changes with the batch.
Both are built by one thread: with several, the graph and the k-means would depend on their timing.

Rows outside a View are left out inside the search (a FAISS `IDSelector`), so a training row never has a
neighbour of its own fold. An index holds features only and serves all Views of a fit.

Saved models hold an index as arrays: no file of FAISS's own, and loading builds nothing again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from metarank import _core
from metarank._util.threads import openmp_threads, single_threaded_blas
from metarank.persist.fields import Array, Field, Ids, Integer, Number

INDEXES: Final = ("auto", "flat", "hnsw", "ivfpq")
# Fewer rows are compared one by one, whatever index is asked for: quick enough, and PQ learns from thousands.
LEAST_ROWS = 10_000
# "auto": from here on HNSW (experiments/neighbors).
AUTO_ROWS = 50_000
# Values of at most 2^40 are squared as they are; a query's are held to 10^15.
_EXPONENT, _FAR = 40, np.float32(1e15)


def resolved_index(index: str, n_rows: int, n_voters: int | None = None) -> str:
    """The index that is used for so many dense rows: "flat", "hnsw" or "ivfpq".

    The size of the training set decides, so that the Views without a fold use what the final model uses; only
    where few of its rows are in the View (`n_voters`; all by default) these are compared one by one.

    Examples
    --------
    >>> resolved_index("auto", 5_000), resolved_index("auto", 500_000), resolved_index("ivfpq", 50_000)
    ('flat', 'hnsw', 'ivfpq')
    """
    if (n_rows if n_voters is None else n_voters) < LEAST_ROWS:
        return "flat"
    if index == "auto":
        return "hnsw" if n_rows >= AUTO_ROWS else "flat"
    return index


class HnswIndex:
    """A navigable small-world graph over the rows (Malkov & Yashunin 2018), by L2 distance.

    Parameters
    ----------
    X : float32 array (n, d), C-contiguous
    arrays : dict, optional
        `arrays` of an index over the same rows, which is then restored; built otherwise. They keep the rules
        of `SAVED` and of `check_graph`: FAISS follows them without looking.
    """

    LINKS: ClassVar = 32
    BREADTH_OF_BUILD: ClassVar = 40
    BREADTH: ClassVar = 128  # rows kept in view while walking
    FETCHED: ClassVar = 2  # times k

    def __init__(self, X: np.ndarray, arrays: dict[str, Any] | None = None) -> None:
        faiss = _faiss()
        self.n_rows: int = len(X)
        self._scale = _scale_of(X) if arrays is None else float(arrays["scale"])
        X = _scaled(X, self._scale)
        self._faiss = faiss.IndexHNSWFlat(X.shape[1], self.LINKS)
        graph = self._faiss.hnsw
        graph.efConstruction = self.BREADTH_OF_BUILD
        if arrays is None:
            with faiss_threads(1), single_threaded_blas():
                self._faiss.add(X)
            return
        with faiss_threads(1):
            self._faiss.storage.add(X)
        self._faiss.ntotal = self.n_rows
        faiss.copy_array_to_vector(np.ascontiguousarray(arrays["levels"], np.int32), graph.levels)
        faiss.copy_array_to_vector(np.ascontiguousarray(arrays["offsets"], np.uint64), graph.offsets)
        faiss.copy_array_to_vector(np.ascontiguousarray(arrays["links"], np.int32), graph.neighbors)
        graph.entry_point, graph.max_level = arrays["entry"], int(max(arrays["levels"])) - 1

    def arrays(self) -> dict[str, Any]:
        """levels int32 (n,), offsets int64 (n + 1,) into links int32, the entry point, the rows' scale."""
        faiss = _faiss()
        graph = self._faiss.hnsw
        return {
            "levels": faiss.vector_to_array(graph.levels),
            "offsets": faiss.vector_to_array(graph.offsets).astype(np.int64),
            "links": faiss.vector_to_array(graph.neighbors),
            "entry": int(graph.entry_point),
            "scale": self._scale,
        }

    def propose(self, Q: np.ndarray, k: int, within: np.ndarray | None, n_jobs: int) -> np.ndarray:
        """Rows near each query, int32 (len(Q), at most 2 k), padded with -1.

        Parameters
        ----------
        Q : float32 array (n_queries, d), C-contiguous
        k : int
        within : bool array (n,), optional
            The rows that may be proposed; all by default.
        n_jobs : int
        """
        faiss = _faiss()
        m = min(self.FETCHED * k, self.n_rows)
        share = 1.0 if within is None else max(float(within.mean()), 1 / self.n_rows)
        # The walk passes rows that may not be proposed: it has to be as much broader.
        breadth = min(self.n_rows, int(np.ceil(max(self.BREADTH, m) / share)))
        with _selector(within) as sel, faiss_threads(n_jobs):
            params = faiss.SearchParametersHNSW(efSearch=breadth, sel=sel)
            _, ids = self._faiss.search(_scaled(Q, self._scale), m, params=params)
        return np.ascontiguousarray(ids, np.int32)


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
        faiss = _faiss()
        Q, centroids = self._padded(_scaled(Q, self._arrays["scale"])), self._arrays["centroids"]
        m, n_read = min(self.FETCHED * k, self.n_rows), min(self.LISTS_READ, len(centroids))
        every = np.arange(len(centroids), dtype=np.int32)
        nothing = np.empty((len(Q), 0), np.int32), np.zeros(len(Q))
        lists, far = _core.nearest_rows_dense(centroids, self._sq_norm, Q, every, n_read, 0, *nothing, n_jobs)
        with _selector(within) as sel, faiss_threads(n_jobs):
            params = faiss.SearchParametersIVF(nprobe=n_read, sel=sel)
            # The wrapper for arrays, search_preassigned, takes no parameters.
            given = np.ascontiguousarray(lists, np.int64), np.square(far)
            ids, distances = np.empty((len(Q), m), np.int64), np.empty((len(Q), m), np.float32)
            pointers = map(faiss.swig_ptr, (*given, distances, ids))
            self._faiss.search_preassigned_c(len(Q), faiss.swig_ptr(Q), m, *pointers, False, params, None)
        return np.ascontiguousarray(ids, np.int32)

    def _build(self, X: np.ndarray) -> dict[str, Any]:
        faiss = _faiss()
        scale = _scale_of(X)
        X = self._padded(_scaled(X, scale))
        n_lists = _n_lists(self.n_rows)
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
        faiss = _faiss()
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


def _n_codes(known: Any) -> int:
    """Codes of a row."""
    return -(-int(known["d"]) // IvfPqIndex.FEATURES_PER_CODE)


def _padded_width(known: Any) -> int:
    """Features of a row, with zeros to whole codes."""
    return _n_codes(known) * IvfPqIndex.FEATURES_PER_CODE


_SCALE = Number("scale", 2.0**-126, 2.0**126)
# What `arrays` gives, over "rows" of "d" features.
SAVED: Final[dict[str, tuple[Field, ...]]] = {
    "hnsw": (
        Ids("levels", np.int32, ("rows",), below=64, first=1),
        Array("offsets", np.int64, (lambda known: known["rows"] + 1,)),
        Ids("links", np.int32, below="rows", first=-1),
        Integer("entry", 0, lambda known: max(0, known["rows"] - 1)),
        _SCALE,
    ),
    "ivfpq": (
        _SCALE,
        Array("centroids", np.float32, ("centroids", _padded_width)),
        Array("codebook", np.float32, (_n_codes, 256, IvfPqIndex.FEATURES_PER_CODE)),
        Ids("lists", np.int32, ("rows",), below="centroids"),
        Array("codes", np.uint8, ("rows", _n_codes)),
    ),
}
DenseIndex: TypeAlias = HnswIndex | IvfPqIndex
CLASSES: Final[dict[str, type[HnswIndex] | type[IvfPqIndex]]] = {"hnsw": HnswIndex, "ivfpq": IvfPqIndex}


def index_bytes(kind: str, n_rows: int, n_features: int) -> int:
    """Memory of an index over so many rows, about; that of the rows themselves is not counted.

    Examples
    --------
    >>> [index_bytes(kind, 100_000, 64) // 2**20 for kind in ("flat", "hnsw", "ivfpq")]
    [0, 50, 24]
    """
    if kind == "hnsw":
        return n_rows * (4 * n_features + 4 * (2 * HnswIndex.LINKS + 1) + 12)
    if kind == "ivfpq":
        n_codes = -(-n_features // IvfPqIndex.FEATURES_PER_CODE)
        lists = _n_lists(n_rows)
        return n_rows * (2 * n_codes + 12) + lists * (4 * n_features + 1024 * n_codes)
    return 0


def _n_lists(n_rows: int) -> int:
    return max(1, min(int(4 * np.sqrt(n_rows)), n_rows // 39))


def _scale_of(X: np.ndarray) -> float:
    """1, or a power of two that brings rows of extreme values near 1.

    FAISS squares them in float32, and its k-means ends the process where that is infinite.
    """
    largest = max(float(X.max(initial=0.0)), -float(X.min(initial=0.0)))
    exponent = int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= _EXPONENT else 2.0 ** -max(-126, min(126, exponent))


def _scaled(A: np.ndarray, scale: float) -> np.ndarray:
    """A times the scale; entries far beyond all rows are held to where their squares are finite."""
    if scale == 1.0 and np.abs(A).max(initial=0.0) < _FAR:
        return A
    with np.errstate(over="ignore"):
        return np.clip(A * np.float32(scale), -_FAR, _FAR)


def _faiss() -> Any:
    import faiss

    return faiss


@contextmanager
def faiss_threads(n_jobs: int) -> Iterator[None]:
    """FAISS uses so many threads inside."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(openmp_threads(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def _selector(within: np.ndarray | None) -> Iterator[Any]:
    """A FAISS selector of the rows of a mask; what it points to lives as long as it is used."""
    faiss = _faiss()
    if within is None:
        yield None
        return
    bits = np.packbits(within, bitorder="little")
    yield faiss.IDSelectorBitmap(bits)


def _rows_of_lists(index: Any, n_rows: int) -> dict[str, np.ndarray]:
    """The list and the code of each row."""
    faiss = _faiss()
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


def check_graph(arrays: dict[str, Any]) -> None:
    """ValueError unless FAISS can walk a graph, whose arrays keep the rules of `SAVED`, within them."""
    levels, offsets, links, entry = (arrays[name] for name in ("levels", "offsets", "links", "entry"))
    # A row has 2 x 32 links at the lowest level and 32 at each other, to rows of that level.
    room = HnswIndex.LINKS * (np.asarray(levels, np.int64) + 1)
    if not (
        offsets[0] == 0
        and np.array_equal(np.diff(offsets), room)
        and offsets[-1] == len(links)
        and levels[entry] == levels.max()
        and all(_links_stay(levels, offsets, links, level) for level in range(1, int(levels.max())))
    ):
        raise ValueError("the HNSW graph of a saved model must be one over its training rows")


def _links_stay(levels: np.ndarray, offsets: np.ndarray, links: np.ndarray, level: int) -> bool:
    """Whether the links of a level lead to rows of that level."""
    first = offsets[:-1][levels > level] + HnswIndex.LINKS * (level + 1)
    to = links[first[:, None] + np.arange(HnswIndex.LINKS)]
    return bool((levels[to[to >= 0]] > level).all())

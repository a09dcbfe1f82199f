"""The approximate index over many dense rows: FAISS HNSW, which proposes rows near a query.

It proposes ids and no more: distances that reach an output are computed again in the core. A proposal
depends on its query and the rows alone, since the graph is walked query by query. It is built by one thread:
with several, the graph would depend on their timing.

Rows outside a view are left out inside the search (a FAISS `IDSelector`), so a training row never has a
neighbour of its own fold. An index holds features only and serves all views of a fit.

Saved models hold an index as arrays: no file of FAISS's own, and loading builds nothing again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import numpy as np

from metarank._util.threads import openmp_threads, single_threaded_blas
from metarank.persist.fields import Array, Field, Ids, Integer, Number

INDEXES: Final = ("auto", "flat", "hnsw")
# Fewer rows are compared one by one, whatever index is asked for: that is quick enough.
LEAST_ROWS = 10_000
# "auto": from here on HNSW (experiments/tried.md).
AUTO_ROWS = 50_000
# Values of at most 2^40 are squared as they are; a query's are held to 10^15.
_EXPONENT, _FAR = 40, np.float32(1e15)


def resolved_index(index: str, n_rows: int, n_voters: int | None = None) -> str:
    """The index that is used for this many dense rows: "flat" or "hnsw".

    The size of the training set decides, so that the views without a fold use what the final model uses; only
    where few of its rows are in the TrainingView (`n_voters`; all by default) these are compared one by one.

    Examples
    --------
    >>> resolved_index("auto", 5_000), resolved_index("auto", 500_000), resolved_index("hnsw", 40_000)
    ('flat', 'hnsw', 'hnsw')
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
        self._scale = scale_of(X) if arrays is None else float(arrays["scale"])
        X = scaled(X, self._scale)
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
        sel = selector(within)  # the parameters of older versions do not keep it
        params = faiss.SearchParametersHNSW(efSearch=breadth, sel=sel)
        with faiss_threads(n_jobs):
            _, ids = self._faiss.search(scaled(Q, self._scale), m, params=params)
        return np.ascontiguousarray(ids, np.int32)


# What `arrays` gives, over "rows" of "d" features.
SAVED: Final[tuple[Field, ...]] = (
    Ids("levels", np.int32, ("rows",), below=64, least=1),
    Array("offsets", np.int64, ("rows+1",)),
    Ids("links", np.int32, below="rows", least=-1),
    Integer("entry", 0, lambda known: max(0, known["rows"] - 1)),
    Number("scale", 2.0**-126, 2.0**126),
)


def scale_of(X: np.ndarray) -> float:
    """1, or a power of two that brings rows of extreme values near 1.

    FAISS squares them in float32, where they would be infinite or vanish.
    """
    largest = max(float(X.max(initial=0.0)), -float(X.min(initial=0.0)))
    exponent = int(np.frexp(largest)[1])
    return 1.0 if abs(exponent) <= _EXPONENT else 2.0 ** -max(-126, min(126, exponent))


def scaled(A: np.ndarray, scale: float) -> np.ndarray:
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
    """FAISS uses this many threads inside."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(openmp_threads(n_jobs, "faiss"))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def selector(within: np.ndarray | None) -> Any:
    """A FAISS selector of the rows of a mask, which lives as long as the selector does; None of all rows."""
    return None if within is None else _faiss().IDSelectorBitmap(np.packbits(within, bitorder="little"))


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

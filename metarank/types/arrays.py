"""What the base classifiers share: features and pairs in the forms the compiled core reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.types.candidates import Candidates, canonical_csr
from metarank.types.view import Features, TrainingView

F = TypeVar("F", np.ndarray, sp.csr_matrix)

# Nodes, and leaves, have ids of 32 bits, of which leaves take the negative half.
_MOST_NODES = 1 << 30
# Sparse rows made dense at a time, and their values: of many features, fewer rows.
_BLOCK_ROWS = 256
_BLOCK_VALUES = 1 << 24


# indptr int64, indices int32 and data float32 of a CSR matrix.
Parts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def csr_parts(X: sp.csr_matrix) -> Parts:
    """(indptr int64, indices int32, data float32) of a CSR matrix."""
    return (
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(X.data, np.float32),
    )


def require_rows(view: TrainingView) -> None:
    """Refuse to learn from nothing."""
    if view.n_rows == 0:
        raise ValueError("the TrainingView must have at least one row, got 0")


def sample_rows(view: TrainingView, limit: int) -> np.ndarray:
    """All rows of the TrainingView, or `limit` of them drawn by its seed, as ascending positions in it."""
    if view.n_rows <= limit:
        return np.arange(view.n_rows)
    return np.sort(np.random.default_rng([view.seed, limit]).permutation(view.n_rows)[:limit])


def dense(X: Features) -> np.ndarray:
    """X as a C-contiguous float32 array."""
    return np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float32)


def unit_rows(X: F) -> F:
    """Rows of float32 X brought to unit length, each by a sum of its own; a row of zeros stays.

    CSR must be canonical. The sums run in double and in one order, so no row depends on the others.
    """
    if isinstance(X, np.ndarray):
        indptr = np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
        return _core.unit_rows(indptr, np.ascontiguousarray(X).ravel()).reshape(X.shape)
    data = _core.unit_rows(np.asarray(X.indptr, np.int64), X.data)
    return canonical_csr(data, X.indices, X.indptr, X.shape)


def joined_ids(ids: Sequence[np.ndarray], n_nodes: Sequence[int], n_leaves: Sequence[int]) -> np.ndarray:
    """Ids within several lists of trees as ids within one: nodes >= 0 and leaves ``~leaf`` < 0; int32.

    Raises
    ------
    ValueError
        If they are too many for ids of 32 bits.

    Examples
    --------
    >>> tree = np.array([1, ~0, ~1, ~2])
    >>> joined_ids([tree, tree], n_nodes=[2, 2], n_leaves=[3, 3])
    array([ 1, -1, -2, -3,  3, -4, -5, -6], dtype=int32)
    """
    if max(sum(n_nodes), sum(n_leaves)) >= _MOST_NODES:
        raise ValueError(
            f"trees must have fewer than 2^30 nodes and leaves, got {sum(n_nodes)} and {sum(n_leaves)}"
        )
    moved = []
    for own, nodes, leaves in zip(ids, np.cumsum([0, *n_nodes]), np.cumsum([0, *n_leaves])):
        own = own.astype(np.int64)
        moved.append(np.where(own >= 0, own + nodes, own - leaves).astype(np.int32))
    return np.concatenate(moved)


def stacked(parts: Sequence[Features]) -> Features:
    """The rows of several matrices, at least one and all dense or all sparse, one after another."""
    return sp.vstack(parts, "csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def dense_blocks(X: Features, candidates: Candidates) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(X, indptr, labels) in one piece where X is dense, in blocks of dense rows where it is sparse."""
    check_rows(X, candidates)
    most = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // max(1, X.shape[1])))
    step = most if sp.issparse(X) else max(1, candidates.n_rows)
    for start in range(0, candidates.n_rows, step):
        part = candidates if step >= candidates.n_rows else candidates.rows(slice(start, start + step))
        yield dense(X[start : start + step]), part.indptr, part.labels


def check_rows(X: Features, candidates: Candidates) -> None:
    """Rows of X are rows of the candidates, or ValueError."""
    if X.shape[0] != candidates.n_rows:
        raise ValueError(f"X must have {candidates.n_rows} rows, as candidates has, got {X.shape[0]}")


def pruning_factors(X: sp.csr_matrix) -> np.ndarray:
    """What weights are multiplied by before the largest are kept, float32 (d,).

    The square root of the feature's root mean square value over the rows that have it, 0 where none has:
    halfway between the weight itself and what it adds to a score. Frequent features are small in TF-IDF
    rows, and of their many weights, which cost the most time in prediction, most do not matter.
    """
    count = np.bincount(X.indices, minlength=X.shape[1])
    squares = np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=X.shape[1])
    return ((squares / np.maximum(count, 1)) ** 0.25).astype(np.float32)


def linear_scores(
    X: Features, W: np.ndarray, bias: np.ndarray, candidates: Candidates, n_jobs: int
) -> np.ndarray:
    """``bias[l] + x . W[:, l]`` for each pair, float32 (m,); W is float32 (d, L)."""
    check_rows(X, candidates)
    pairs = candidates.indptr, candidates.labels
    if sp.issparse(X):
        return _core.linear_scores_sparse((*csr_parts(X), X.shape[1]), W, bias, *pairs, n_jobs)
    return _core.linear_scores_dense(dense(X), W, bias, *pairs, n_jobs)

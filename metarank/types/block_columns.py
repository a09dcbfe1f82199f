"""`BlockColumns`: which columns of a matrix of all blocks are those of one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank.persist.fields import Flag, Integer, Known, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.blocks import KINDS
from metarank.types.canonical import canonical_csr

# The rows of features of a block or of all blocks.
Rows: TypeAlias = np.ndarray | sp.csr_matrix


@dataclass(frozen=True)
class BlockColumns(Saved):
    """The columns `start` to `stop` of a matrix are a block.

    Parameters
    ----------
    name : str
    kind : str
        One of `metarank.types.blocks.KINDS`.
    start, stop : int
    is_dense : bool
        Whether the block alone is a dense matrix, whatever that of all blocks is.
    words : list of str or None
        The words that its columns stand for.

    Examples
    --------
    >>> columns = BlockColumns("size", "numbers", 1, 3, is_dense=True)
    >>> columns.of(sp.csr_matrix(np.float32([[1, 2, 0], [0, 0, 4]])))
    array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    name: str
    kind: str
    start: int
    stop: int
    is_dense: bool
    words: list[str] | None = field(default=None, compare=False)

    saved: ClassVar[Spec] = Spec(
        Text("name"),
        Text("kind", KINDS),
        Integer("start"),
        Integer("stop"),
        Flag("is_dense"),
        check=lambda known: _check_range(known),
    )

    def of(self, X: Rows) -> Rows:
        """The block's columns of a matrix of all blocks: a C-contiguous array, or canonical CSR."""
        if isinstance(X, np.ndarray):
            return np.ascontiguousarray(X[:, self.start : self.stop])
        inside = (X.indices >= self.start) & (X.indices < self.stop)
        before = np.concatenate([[0], np.cumsum(inside)])
        shape = (X.shape[0], self.stop - self.start)
        out = canonical_csr(X.data[inside], X.indices[inside] - self.start, before[X.indptr], shape)
        return np.asarray(out.toarray()) if self.is_dense else out


def _check_range(known: Known) -> None:
    if known.stop < known.start:
        raise ValueError(f"stop must be at least start, {known.start}, got {known.stop}")


def side_by_side(parts: Sequence[Rows]) -> Rows:
    """Blocks of the same rows as one matrix: dense if all of them are, otherwise canonical CSR.

    Examples
    --------
    >>> side_by_side([np.float32([[1, 0]]), sp.csr_matrix(np.float32([[0, 3]]))]).toarray()
    array([[1., 0., 0., 3.]], dtype=float32)
    """
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, axis=1)
    sparse: list[Any] = [part if sp.issparse(part) else sp.csr_matrix(part) for part in parts]
    counts = np.stack([np.diff(part.indptr) for part in sparse])
    indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    first, before = 0, indptr[:-1].copy()
    for part, n in zip(sparse, counts):
        at = np.repeat(before - part.indptr[:-1], n) + np.arange(part.nnz)
        indices[at], data[at] = part.indices + first, part.data
        before += n
        first += part.shape[1]
    return canonical_csr(data, indices, indptr, (len(indptr) - 1, first))

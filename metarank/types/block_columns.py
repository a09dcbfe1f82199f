"""`BlockColumns`: which columns of a matrix of all blocks are those of one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank.persist.fields import Flag, Integer, Known, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.candidates import canonical_csr

KINDS = ("text", "vector", "numbers", "categories", "sparse")
# The block of all columns of numbers of a table, and that of its categories.
NUMBERS, CATEGORIES = "numbers", "categories"

# The rows of features of a block or of all blocks.
Rows: TypeAlias = np.ndarray | sp.csr_matrix


@dataclass(frozen=True)
class BlockColumns(Saved):
    """The columns `start` to `stop` of a matrix are a block.

    Parameters
    ----------
    name : str
    kind : str
        One of `KINDS`.
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

    name: Annotated[str, Text("")]
    kind: Annotated[str, Text("", KINDS)]
    start: Annotated[int, Integer("")]
    stop: Annotated[int, Integer("")]
    is_dense: Annotated[bool, Flag("")]
    words: list[str] | None = field(default=None, compare=False)

    saved: ClassVar[Spec] = Spec(check=lambda known: _check_range(known))

    def of(self, X: Rows) -> Rows:
        """The block's columns of a matrix of all blocks: a C-contiguous array, or canonical CSR."""
        own = X[:, self.start : self.stop]
        if isinstance(own, np.ndarray):
            return np.ascontiguousarray(own)
        return np.asarray(own.toarray()) if self.is_dense else own


# All blocks but those of vectors, as one.
BUT_VECTORS = "all but vectors"


def with_rest(blocks: Sequence[BlockColumns]) -> list[BlockColumns]:
    """The blocks, vectors being the last, and one more of all columns before the vectors, where these are
    beside sparse ones: what reads words reads them apart from the vectors.

    Examples
    --------
    >>> text = BlockColumns("text", "text", 0, 9, is_dense=False)
    >>> [block.name for block in with_rest([text, BlockColumns("image", "vector", 9, 12, is_dense=True)])]
    ['text', 'image', 'all but vectors']
    """
    others = [block for block in blocks if block.kind != "vector"]
    if len(others) == len(blocks) or all(block.is_dense for block in others):
        return list(blocks)
    words = [word for block in others for word in block.words or [""] * (block.stop - block.start)]
    known = words if any(block.words is not None for block in others) else None
    return [*blocks, BlockColumns(BUT_VECTORS, "sparse", 0, others[-1].stop, is_dense=False, words=known)]


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
    stored = [_stored(part) for part in parts]
    ends = np.cumsum(sum(np.diff(indptr) for indptr, _, _ in stored))
    indptr = np.concatenate([np.zeros(1, np.int64), ends])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    at, width = indptr[:-1], 0
    for part, (own, columns, values) in zip(parts, stored):  # SciPy's takes long for a single row
        counts = np.diff(own)
        place = np.arange(len(values)) + (at if len(at) == 1 else np.repeat(at - own[:-1], counts))
        indices[place], data[place] = columns + width, values
        at, width = at + counts, width + part.shape[1]
    return canonical_csr(data, indices, indptr, (len(at), width))


def _stored(part: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, indices, data) of what is not 0 in a dense matrix, or is stored in a sparse one."""
    if not isinstance(part, np.ndarray):
        part = part if isinstance(part, sp.csr_matrix) else sp.csr_matrix(part)
        return part.indptr, part.indices, part.data
    row, column = np.nonzero(part)
    return np.searchsorted(row, np.arange(len(part) + 1)), column.astype(np.int32), part[row, column]

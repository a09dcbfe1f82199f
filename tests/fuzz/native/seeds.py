"""Valid inputs of the harnesses, written to `corpus/native`: ``python -m fuzz.native.seeds``.

Mutants of an input that is refused at once reach little. Run it again after a harness reads its input in
another order; files of other names in the corpus stay.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import weight_blocks

from fuzz.native import HERE

RNG = np.random.default_rng(0)
I64, I32, F64, F32, U8 = np.int64, np.int32, np.float64, np.float32, np.uint8


class Packed:
    """Values in the order in which a harness reads them, see `input.h`."""

    def __init__(self) -> None:
        self.content = b""

    def byte(self, *values: int) -> Packed:
        self.content += bytes(values)
        return self

    def word(self, *values: int) -> Packed:
        for value in values:
            self.content += value.to_bytes(2, "little")
        return self

    def array(self, dtype: Any, *arrays: Any) -> Packed:
        """With one dimension or two; the columns of the latter are known to the harness."""
        for values in arrays:
            values = np.ascontiguousarray(values, dtype)
            self.word(len(values))
            self.content += values.tobytes()
        return self

    def csr(self, matrix: sp.csr_matrix) -> Packed:
        return self.array(I64, matrix.indptr).array(I32, matrix.indices).array(F32, matrix.data)

    def lists(self, n_rows: int, n_labels: int) -> Packed:
        """The same two labels for each row."""
        labels = np.tile([0, n_labels - 1], n_rows)
        return self.array(I64, 2 * np.arange(n_rows + 1)).array(I32, labels)

    def weights(self, d: int, slots: sp.csr_matrix, node_start: list[int]) -> Packed:
        """The packed classifiers of slots."""
        bias = RNG.normal(size=slots.shape[0]).astype(F32)
        arrays = weight_blocks.encode(sp.csr_array(slots), bias, np.array(node_start, I64))
        self.word(d)
        for name in ("node_block", "block_slot", "bucket_start", "data_start", "shift", "bucket_offset"):
            self.array(arrays[name].dtype, arrays[name])
        return self.array(U8, arrays["data"]).array(F32, arrays["bias"], arrays["scale"])


def _rows(n: int, d: int, density: float = 0.4) -> sp.csr_matrix:
    matrix = sp.random(n, d, density, "csr", F32, random_state=RNG)
    matrix.sort_indices()
    return matrix


def _dense(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(F32)


def _centroids() -> Packed:
    return (
        Packed().byte(3).array(F32, _dense(3, 3)).array(U8, [1, 0, 1]).array(F32, _dense(2, 3)).lists(2, 3)
        .byte(4).csr(_rows(2, 5)).word(5)
    )  # fmt: skip


def _csr_rows() -> Packed:
    rows = _rows(3, 6)
    return Packed().word(6).array(I32, rows.indptr).csr(rows).array(F32, np.ones(6))


def _cuts() -> Packed:
    p, q = 3, 2
    return (
        Packed().byte(p, q, 5).array(I64, [0, 3, 5]).array(F64, RNG.normal(size=5), RNG.random(5)).byte(9)
        .array(F64, RNG.normal(size=(5, p))).array(I32, [0, 1, 0, 1, 1])
        .array(F64, np.ones(p), RNG.normal(size=(2, q)))
    )  # fmt: skip


def _feature_table() -> Packed:
    return (
        Packed().byte(0, 2, 1).array(I64, [0, 2, 4]).array(F32, *_dense(3, 4))
        .byte(2).array(F32, _dense(4, 2))
    )  # fmt: skip


def _instance_trees() -> Packed:
    """Two trees: one of two nodes and three leaves, one that is a leaf."""
    d, n_labels = 5, 4
    return (
        Packed().word(d, n_labels).byte(3, 200).array(I32, [0, ~2], [1, ~0, ~1, ~2]).array(F32, [0.1, -0.2])
        .array(I64, [0, 2, 3]).array(I32, [0, 3, 1]).array(F32, [1, -1, 2])
        .array(I64, [0, 2, 3, 5]).array(I32, [0, 3, 1, 0, 2]).array(F32, [0.5, 1, 1, 0.2, 0.9])
        .csr(_rows(3, d)).lists(3, n_labels).csr(_rows(n_labels, d)).array(F64, np.ones(n_labels))
        .array(U8, [1, 1, 0, 1])
    )  # fmt: skip


def _kernel_machine() -> Packed:
    return (
        Packed()
        .byte(3, 4, 0, 7)
        .array(F32, _dense(2, 3), _dense(4, 3), _dense(5, 4), np.zeros(5))
        .lists(2, 5)
    )


def _label_means() -> Packed:
    return (
        Packed().word(6).byte(30, 1).csr(_rows(4, 6)).array(F64, np.ones(4)).array(U8, [1, 1, 0, 1])
        .csr(_rows(3, 6)).lists(3, 4)
    )  # fmt: skip


def _label_neighbors(sparse: bool) -> Packed:
    """Four rows, three labels."""
    label_indptr, label_rows = [0, 2, 3, 5], [0, 1, 2, 1, 3]
    seed = Packed().byte(sparse, 0, 1).array(I64, label_indptr).array(I32, label_rows).lists(2, 3)
    if sparse:
        return seed.word(6).csr(_rows(4, 6)).csr(_rows(2, 6))
    return (
        seed.byte(3, 2).array(F32, _dense(4, 3), np.ones(4), _dense(2, 3)).array(I64, [0, 1, 3, 4, 5])
        .array(I32, [0, 0, 2, 1, 2], [0, 1, 2, 3, 1, 0, 3, 2]).array(F64, np.full((2, 2), 0.5))
    )  # fmt: skip


def _label_trees(link: int) -> Packed:
    """Two trees over four labels: a root with two nodes below it, and a root alone."""
    n_labels, d = 4, 6
    seed = Packed().word(n_labels).byte(link, 200, 3, 2).array(I32, [0, 3]).array(I64, [0, 2, 4, 6, 10])
    seed.array(I32, [1, 2, ~0, ~1, ~2, ~3, ~3, ~2, ~1, ~0]).array(F32, [0, 0.5, 1, 0])
    seed.weights(d, _rows(10, d), [0, 2, 4, 6, 10])
    return seed.csr(_rows(3, d)).lists(3, n_labels).array(F64, [1, 0.5, 0.5, 1])


def _linear_scores(sparse: bool) -> Packed:
    seed = Packed().byte(3, 4).array(F32, _dense(3, 4), np.zeros(4)).lists(2, 4).byte(sparse)
    return seed.csr(_rows(2, 3)) if sparse else seed.array(F32, _dense(2, 3))


def _names() -> Packed:
    return Packed().word(8).byte(2).csr(_rows(4, 8)).csr(_rows(3, 8)).lists(3, 4)


def _nearest_rows(sparse: bool) -> Packed:
    seed = Packed().byte(sparse, 2, 0).array(I32, [0, 1, 3])
    if sparse:
        return seed.word(6).csr(_rows(4, 6)).csr(_rows(2, 6))
    return (
        seed.byte(3).array(F32, _dense(4, 3), np.ones(4), _dense(2, 3)).byte(2).array(I32, [[0, 1], [3, 1]])
        .array(F64, [0.5, 2])
    )  # fmt: skip


def _pair_scores() -> Packed:
    return (
        Packed().byte(3).array(F32, _dense(4, 3)).array(F64, np.zeros(3), np.ones(3)).byte(1)
        .array(I32, [0, 1, 1, 0]).array(F64, _dense(2, 3), np.zeros(2))
    )  # fmt: skip


def _top_labels() -> Packed:
    return (
        Packed().byte(2).array(I64, [0, 3, 4]).array(I32, [0, 2, 5, 1]).array(F32, _dense(4)).byte(3)
        .array(F64, _dense(2, 3))
    )  # fmt: skip


def _vector_scores() -> Packed:
    return Packed().byte(3).array(F32, _dense(2, 3), _dense(4, 3), np.zeros(4)).lists(2, 4)


def _votes() -> Packed:
    """Four rows, three labels, names of six words; two neighbours of each of two rows."""
    return (
        Packed().word(6).byte(1).array(I64, [0, 1, 3, 4, 5]).array(I32, [0, 0, 2, 1, 2], [0, 2, 1])
        .array(F64, [0.5, 0.25, 0.5], [1, 2, 1]).csr(_rows(3, 6)).byte(2)
        .array(I32, [[0, 3], [2, -1]]).array(F32, [[1, 0.5], [1, 0]]).lists(2, 3)
    )  # fmt: skip


def _weight_blocks() -> Packed:
    return Packed().word(3, 5).byte(1).weights(40, _rows(5, 40, 0.5), [0, 2, 5])


def _weight_index(exact: bool) -> Packed:
    """Five entries of three features and four labels."""
    seed = Packed().byte(exact).word(3).byte(1).array(I64, [0, 2, 3, 5]).array(np.uint16, [0, 2, 1, 0, 3])
    seed.array(F32, np.ones(4), [0, -1, -np.inf, 0]).array(F32 if exact else np.int16, [3, -2, 1, 5, 7])
    return seed.csr(_rows(2, 3)).lists(2, 4)


SEEDS: dict[str, Callable[[], Packed]] = {
    "centroids/dense": _centroids,
    "csr_rows/rows": _csr_rows,
    "cuts/cuts": _cuts,
    "feature_table/table": _feature_table,
    "instance_trees/forest": _instance_trees,
    "kernel_machine/rows": _kernel_machine,
    "label_means/means": _label_means,
    "label_neighbors/sparse": lambda: _label_neighbors(True),
    "label_neighbors/dense": lambda: _label_neighbors(False),
    "label_trees/logistic": lambda: _label_trees(0),
    "label_trees/hinge": lambda: _label_trees(2),
    "linear_scores/sparse": lambda: _linear_scores(True),
    "linear_scores/dense": lambda: _linear_scores(False),
    "names/names": _names,
    "nearest_rows/sparse": lambda: _nearest_rows(True),
    "nearest_rows/dense": lambda: _nearest_rows(False),
    "pair_scores/pairs": _pair_scores,
    "top_labels/scores": _top_labels,
    "vector_scores/pairs": _vector_scores,
    "votes/votes": _votes,
    "weight_blocks/blocks": _weight_blocks,
    "weight_index/rounded": lambda: _weight_index(False),
    "weight_index/exact": lambda: _weight_index(True),
}


def main(corpus: Path = HERE.parent / "corpus" / "native") -> None:
    for name, make in SEEDS.items():
        path = corpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make().content)


if __name__ == "__main__":
    main()

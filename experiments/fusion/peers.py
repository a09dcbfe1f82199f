"""Scores of new rows by a peer, run by the interpreter of the peer's own environment.

python experiments/fusion/peers.py {omikuji,pecos} FOLDER

FOLDER holds X.npz, Y.npz and new.npz: the training rows, of unit length, their labels, and the new rows. The
hundred best labels of each new row are written to scores.npz.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

TOP = 100


def omikuji(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix, folder: Path) -> sp.csr_matrix:
    """Parabel by omikuji: three trees, its defaults."""
    import omikuji as peer

    path = folder / "train.txt"
    with path.open("w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for x, y in zip(rows_of(X), rows_of(Y)):
            file.write(",".join(map(str, y[0])) + "".join(f" {i}:{v!r}" for i, v in zip(*x)) + "\n")
    model = peer.Model.train_on_data(str(path), peer.Model.default_hyper_param(), n_threads=1)
    found = [model.predict(list(zip(*x)), top_k=TOP) for x in rows_of(new)]
    counts, pairs = [len(row) for row in found], [pair for row in found for pair in row]
    labels, scores = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], np.float32)
    row = np.repeat(np.arange(len(found)), counts)
    return sp.csr_matrix((scores, (row, labels)), (new.shape[0], Y.shape[1]))


def rows_of(matrix: sp.csr_matrix) -> list[tuple[list[int], list[float]]]:
    """Columns and values of each row."""
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:])
    return [(matrix.indices[a:b].tolist(), matrix.data[a:b].tolist()) for a, b in ends]


def pecos(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix, folder: Path) -> sp.csr_matrix:
    """XR-Linear by PECOS, one tree of 16-way splits, its defaults."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    chain = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), nr_splits=16, threads=1)
    return XLinearModel.train(X, Y, C=chain, threads=1).predict(new, only_topk=TOP, threads=1)


if __name__ == "__main__":
    own = Path(sys.argv[2])
    given = [sp.csr_matrix(sp.load_npz(own / f"{name}.npz"), dtype=np.float32) for name in ("X", "Y", "new")]
    for matrix in given:
        matrix.sort_indices()
    sp.save_npz(own / "scores.npz", {"omikuji": omikuji, "pecos": pecos}[sys.argv[1]](*given, own))

"""Retrievers whose hundred best labels are re-ranked: each scores new rows from training rows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parent.parent / "shortlist_speed"))
from environments import DEFAULT_FOLDER, python_of

TOP = 100
Retriever = Callable[[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix], sp.csr_matrix]


def best(scores: sp.csr_matrix, k: int = TOP) -> sp.csr_matrix:
    """The k best entries of each row; ties in order of column."""
    scores = sp.csr_matrix(scores, dtype=np.float32)
    scores.sort_indices()
    row = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((-scores.data, row))
    kept = np.sort(order[np.arange(len(order)) - scores.indptr[row[order]] < k])
    return sp.csr_matrix((scores.data[kept], (row[kept], scores.indices[kept])), scores.shape)


def unit(X: sp.csr_matrix) -> sp.csr_matrix:
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags_array(1.0 / np.maximum(norms, 1e-12)) @ X)


def inverted_index(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
    """Votes of the 30 nearest training rows by the cosine of TF-IDF weights, through an inverted index."""
    df = np.bincount(X.indices, minlength=X.shape[1])
    idf = sp.diags_array(np.log((1 + X.shape[0]) / (1 + df)) + 1)
    index, queries = unit(X @ idf).T.tocsr(), unit(new @ idf)
    parts = []
    for start in range(0, new.shape[0], 1000):
        parts.append(best(queries[start : start + 1000] @ index, 30) @ Y)
    return best(sp.vstack(parts, format="csr"))


def of_peer(name: str, X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
    """What peers.py finds in the peer's environment."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"X": unit(X), "Y": sp.csr_matrix(Y > 0, dtype=np.float32), "new": unit(new)}
        for part, matrix in own.items():
            sp.save_npz(Path(folder) / part, matrix)
        python, script = python_of(name, ENVIRONMENTS_FOLDER), Path(__file__).with_name("peers.py")
        subprocess.run([python, script, name, folder], check=True, capture_output=True)
        return best(sp.load_npz(Path(folder) / "scores.npz"))


ENVIRONMENTS_FOLDER = DEFAULT_FOLDER
RETRIEVERS: dict[str, Retriever] = {
    "inverted index": inverted_index,
    "omikuji": partial(of_peer, "omikuji"),
    "PECOS": partial(of_peer, "pecos"),
}


def missing(name: str) -> str:
    """Why a retriever cannot run; empty where it can."""
    try:
        python_of(name.lower(), ENVIRONMENTS_FOLDER)
    except FileNotFoundError as error:
        return str(error)
    return ""

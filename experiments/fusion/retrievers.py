"""Retrievers whose hundred best labels are re-ranked: each scores new rows from training rows."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from metarank.data import Dataset, write_xc

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


def omikuji(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
    """Parabel by omikuji: three trees, its defaults."""
    import omikuji as peer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_xc(path, Dataset(X=unit(X), Y=Y))
        settings = peer.Model.default_hyper_param()
        model = peer.Model.train_on_data(str(path), settings, n_threads=1)
    out = sp.lil_matrix((new.shape[0], Y.shape[1]), dtype=np.float32)
    rows = unit(new)
    for i in range(new.shape[0]):
        own = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = list(zip(rows.indices[own].tolist(), rows.data[own].tolist()))
        for label, score in model.predict(pairs, top_k=TOP):
            out[i, label] = score
    return best(sp.csr_matrix(out))


def pecos(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
    """XR-Linear by PECOS, one tree of 16-way splits, its defaults."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    rows, labels = unit(X).astype(np.float32), sp.csr_matrix(Y > 0, dtype=np.float32)
    chain = Indexer.gen(LabelEmbeddingFactory.create(labels, rows, method="pifa"), nr_splits=16, threads=1)
    model = XLinearModel.train(rows, labels, C=chain, threads=1)
    return best(model.predict(unit(new).astype(np.float32), only_topk=TOP, threads=1))


RETRIEVERS: dict[str, Retriever] = {"inverted index": inverted_index, "omikuji": omikuji, "PECOS": pecos}
_MODULES = {"omikuji": "omikuji", "PECOS": "pecos"}


def missing(name: str) -> str:
    """Why a retriever cannot run; empty where it can."""
    module = _MODULES.get(name)
    if module is None or importlib.util.find_spec(module) is not None:
        return ""
    return f"{module} is not installed"

"""The hundred best labels of a retriever, before and after they are re-ranked by metarank and by LightGBM."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import cpu_seconds
from peer_environments import python_of
from sklearn.preprocessing import normalize

import metarank
from metarank import MetaRanker, data, metrics
from metarank.metrics.propensity import inv_propensity
from systems.fusion.rivals import best, lambdarank, ranks, row_of, with_values

TOP, FOLDS, NEIGHBOURS = 100, 5, 30
METRICS = ("P@1", "nDCG@5", "PSP@5")
ROWS = ("retriever", "metarank", "LightGBM")
K1, B = 1.2, 0.75
COLUMNS = (
    "the retriever's score",
    "its rank",
    "BM25 of the row's words and the label's training rows as one document",
    "cosine of the row and the sum of these rows (TF-IDF)",
    "the share of the words of the label's name that the row has",
    "the logarithm of the label's training rows",
)


def inverted_index(X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
    """Votes of the nearest training rows by the cosine of TF-IDF weights, through an inverted index."""
    df = np.bincount(X.indices, minlength=X.shape[1])
    idf = sp.diags_array(np.log((1 + X.shape[0]) / (1 + df)) + 1)
    index, queries = normalize(X @ idf).T.tocsr(), normalize(new @ idf)
    parts = [best(queries[i : i + 1000] @ index, NEIGHBOURS) @ Y for i in range(0, new.shape[0], 1000)]
    return best(sp.vstack(parts, format="csr"), TOP)


def of_peer(
    module: str, params: dict, X: sp.csr_matrix, Y: sp.csr_matrix, new: sp.csr_matrix
) -> sp.csr_matrix:
    """What `measure.py` finds in the peer's environment."""
    python = python_of(module, Path(os.environ["BENCH_ENVIRONMENTS"]))
    if python is None:
        raise FileNotFoundError(f"{module} is not installed: make bench-setup")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, values in (("X", X), ("Y", Y), ("X_test", new)):
            sp.save_npz(folder / f"{name}.npz", values, compressed=False)
        data.write_xc(folder / "train.txt", data.Dataset(X, Y))
        job = {"module": module, "params": params, "threads": 1, "data": place, "k": TOP, "singles": 1}
        (folder / "job.json").write_text(json.dumps({**job, "out": f"{place}/cell"}))
        script = Path(__file__).parents[2] / "measure.py"
        subprocess.run([python, script, folder / "job.json"], check=True, capture_output=True)
        with np.load(folder / "cell.npz") as file:
            labels, scores = file["/labels"], file["/scores"]
    row, place_of = np.nonzero(labels >= 0)
    entries = scores[row, place_of], (row, labels[row, place_of])
    return sp.csr_matrix(entries, (new.shape[0], Y.shape[1]))


def words_of_names(names: dict[str, Any], n_labels: int, n_features: int) -> sp.csr_matrix:
    """(L, D): of each label the words of its name, shares of one."""
    column = {word: j for j, word in enumerate(names["feature_names"] or [])}
    pairs = [
        (label, column[word])
        for label, name in enumerate(names["label_texts"] or names["label_names"] or [])
        for word in set(re.findall(r"\w+", name.lower())) & column.keys()
    ]
    label, word = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    weight = 1 / np.bincount(label, minlength=n_labels)[label]
    return sp.csr_matrix((weight, (label, word)), (n_labels, n_features))


def columns(
    scores: sp.csr_matrix, rows: sp.csr_matrix, X: sp.csr_matrix, Y: sp.csr_matrix, names: sp.csr_matrix
) -> np.ndarray:
    """`COLUMNS` of each pair (row, label), by training rows X with labels Y."""
    tf = sp.csr_matrix(Y.T @ (X > 0).astype(np.float32))
    length = np.asarray(tf.sum(axis=1)).ravel()
    df = np.bincount(X.indices, minlength=X.shape[1])
    idf = np.log1p((X.shape[0] - df + 0.5) / (df + 0.5))
    norm = K1 * (1 - B + B * length / max(length.mean(), 1e-9))
    bm25 = with_values(tf, idf[tf.indices] * tf.data * (K1 + 1) / (tf.data + norm[row_of(tf)]))
    has = (rows > 0).astype(np.float32)
    described = []
    for query, documents in ((has, bm25), (rows, normalize(Y.T @ X)), (has, names)):
        lists = enumerate(pairwise(scores.indptr))
        found = [documents[scores.indices[a:b]] @ query[[i]].toarray().ravel() for i, (a, b) in lists]
        described.append(np.concatenate(found))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])[scores.indices]
    return np.column_stack([scores.data, ranks(scores), *described, np.log1p(counts)])


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]
        self.retriever, self.settings = params["retriever"], params.get("settings", {})

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Quality and CPU seconds of the retriever, of metarank and of LightGBM on its candidates."""
        self.X, self.Y, new, Y_test = (
            sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("X", "Y", "X_test", "Y_test")
        )
        self.names = json.loads((folder / "names.json").read_text())
        self.fold = np.random.default_rng(self.seed).integers(0, FOLDS, self.X.shape[0])
        weights, rows = inv_propensity(self.Y), {}
        before = cpu_seconds()
        given = self.training_scores(), self.retrieved(np.arange(self.X.shape[0]), new)
        answer = given[1]
        for name, way in zip(ROWS, (None, self.metarank, self.lightgbm)):
            if way:
                before = cpu_seconds()
                answer = way(*given, new)
            spent = cpu_seconds() - before
            values = metrics.evaluate(Y_test, answer, list(METRICS), inv_propensity=weights)
            rows[name] = {**values, "CPU s": spent}
        return {"rows": rows}, {}

    def retrieved(self, seen: np.ndarray, new: sp.csr_matrix) -> sp.csr_matrix:
        X, Y = self.X[seen], self.Y[seen]
        if self.retriever == "inverted index":
            return inverted_index(X, Y, new)
        return of_peer(self.retriever, self.settings, X, Y, new)

    def training_scores(self) -> sp.csr_matrix:
        """Of retrievers that did not see the row's fold."""
        parts = [self.retrieved(np.flatnonzero(self.fold != f), self.X[self.fold == f]) for f in range(FOLDS)]
        return sp.csr_matrix(sp.vstack(parts, format="csr")[np.argsort(np.argsort(self.fold, kind="stable"))])

    def metarank(self, scores: sp.csr_matrix, found: sp.csr_matrix, new: sp.csr_matrix) -> Any:
        model = MetaRanker(n_jobs=1, random_state=self.seed)
        train = data.Dataset(self.X, self.Y, **self.names)
        model.fit(train, candidates={"retriever": scores}, folds=self.fold)
        return model.rank(new, k=10, candidates={"retriever": found})

    def lightgbm(self, scores: sp.csr_matrix, found: sp.csr_matrix, new: sp.csr_matrix) -> sp.csr_matrix:
        names = words_of_names(self.names, self.Y.shape[1], self.X.shape[1])
        row = row_of(scores)
        described = np.empty((len(row), len(COLUMNS)), np.float32)
        for f in range(FOLDS):
            inside, seen = np.flatnonzero(self.fold == f), np.flatnonzero(self.fold != f)
            of_fold = columns(scores[inside], self.X[inside], self.X[seen], self.Y[seen], names)
            described[self.fold[row] == f] = of_fold
        grades = np.asarray(self.Y[row, scores.indices]).ravel()
        answers = columns(found, new, self.X, self.Y, names)
        learned = lambdarank(described, grades, row, self.fold[row] == 0, answers, self.seed)
        return with_values(found, learned - learned.min() + 1)

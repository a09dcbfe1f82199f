"""Questions with tags: metarank, and two ways that one would write oneself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import cpu_seconds
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_union
from sklearn.svm import LinearSVC

import metarank
from metarank import MetaRanker, data, metrics
from metarank.data.compressed import raw_bytes
from systems.fusion.rivals import best

TRAINING_ROWS, NEIGHBOURS = 12_404, 40  # of the tutorial that has the set
METRICS = ("P@1", "nDCG@5", "R@10")
VOTE, SVC, METARANK = "vote of 40 neighbours", "LinearSVC", "metarank"


def make(source: Path, folder: Path) -> dict[str, Any]:
    path = source / "text" / "cooking_stackexchange" / "cooking.stackexchange.txt.xz"
    whole = data.load(path)
    sp.save_npz(folder / "Y.npz", whole.Y)
    (folder / "texts.json").write_text(json.dumps([whole.texts, whole.label_names]))
    checksum = hashlib.sha256(raw_bytes(path)).hexdigest()
    return {
        "checksum": checksum,
        "n": TRAINING_ROWS,
        "n_test": whole.n_rows - TRAINING_ROWS,
        "L": whole.n_labels,
    }


def words_and_letters() -> Any:
    """Words and pairs of words, and letters within words by threes to fives."""
    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    return make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), grams)


def one_vs_rest(classifier: Any, X: Any, Y: sp.csr_matrix) -> Callable[[Any], np.ndarray]:
    """The scores of all labels of new rows, by a classifier for each label with a row."""
    # A label without a row would be given a margin of 0, above those of most others.
    shown = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    model = OneVsRestClassifier(classifier).fit(X, Y[:, shown])

    def scores(new: Any) -> np.ndarray:
        out = np.full((new.shape[0], Y.shape[1]), -np.inf)
        out[:, shown] = model.decision_function(new)
        return out

    return scores


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed, self.way = metarank.__version__, params["random_state"], params["way"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        texts, self.names = json.loads((folder / "texts.json").read_text())
        Y = sp.load_npz(folder / "Y.npz").tocsr()
        self.texts, self.Y, new = texts[:TRAINING_ROWS], Y[:TRAINING_ROWS], texts[TRAINING_ROWS:]
        before = cpu_seconds()
        answer = {VOTE: self.vote, SVC: self.svc, METARANK: self.metarank}[self.way]()
        fitted = cpu_seconds()
        scores = answer(new)
        row_ms = 1000 * (cpu_seconds() - fitted) / len(new)
        values = metrics.evaluate(Y[TRAINING_ROWS:], scores, list(METRICS))
        return {"rows": {**values, "fit s": fitted - before, "row ms": row_ms}}, {}

    def vote(self) -> Any:
        words = TfidfVectorizer(sublinear_tf=True).fit(self.texts)
        index = words.transform(self.texts).T.tocsr()
        return lambda new: best(words.transform(new) @ index, NEIGHBOURS) @ self.Y

    def svc(self) -> Any:
        both = words_and_letters()
        scores = one_vs_rest(LinearSVC(), both.fit_transform(self.texts), self.Y)
        return lambda new: scores(both.transform(new))

    def metarank(self) -> Any:
        model = MetaRanker(n_jobs=1, random_state=self.seed)
        model.fit(data.Dataset(texts=self.texts, Y=self.Y, label_names=self.names))
        return lambda new: model.rank(new, k=10)

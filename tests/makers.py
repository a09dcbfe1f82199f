"""Toy data, and a scorer of a user's own, for the tests of whole models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from metarank import Dataset, MetaRanker, persist
from metarank.apps.cli import main
from metarank.data import make_extreme, make_multilabel
from metarank.model.answering.answer import read_request
from metarank.persist import register
from metarank.scorers.base import LabelScorer
from metarank.scorers.trees.hierarchy import Hierarchy
from metarank.scorers.trees.parent_tree import flat
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.label_names import LabelVectors, OtherNames
from metarank.types.texts import NAME, PART, NameForms, WordRows
from metarank.types.view import Features, TrainingSet, TrainingView, fold_of_rows

WORDS = (
    "sea sun sand wave wind sail port fish salt tide",
    "oven bread flour salt dough yeast crust sugar milk egg",
    "code test bug loop type class list graph tree sort",
)
TOPICS = ["the sea", "bread", "code"]


def dense(n: int = 60, L: int = 4, seed: int = 0) -> Dataset:
    """Dense features, as of measurements."""
    return make_multilabel(n, n_features=6, n_labels=L, seed=seed)


def sparse(n: int = 60, L: int = 4, seed: int = 0) -> Dataset:
    """Sparse features, as of words."""
    return make_multilabel(n, n_features=80, n_labels=L, seed=seed, sparse=True)


def texts(n: int = 60, seed: int = 0) -> Dataset:
    """Short raw texts on one or two of three topics, with names of the labels."""
    rng = np.random.default_rng(seed)
    documents, labels = [], []
    for _ in range(n):
        topics = np.unique(rng.integers(0, 3, size=rng.integers(1, 3)))
        documents.append(
            " ".join(rng.choice(WORDS[t].split(), 5).tolist()[i] for i in range(5) for t in topics)
        )
        labels.append([TOPICS[t] for t in topics])
    return Dataset(texts=documents, Y=labels, label_names=TOPICS, name="topics")


def blocks(n: int = 60, seed: int = 0) -> Dataset:
    """Rows of a title, a vector, numbers that may be missing, and a category; each tells of one topic."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 3)) < 0.45).astype(np.float32)
    Y[~Y.any(axis=1), 0] = 1
    words = np.array([topic.split() for topic in WORDS])
    titles = [" ".join(words[(0 if y[0] else rng.integers(1, 3)), rng.integers(0, 10, 3)]) for y in Y]
    vectors = (Y[:, [1, 1]] @ np.eye(2, 5) + 0.4 * rng.normal(size=(n, 5))).astype(np.float32)
    numbers = Y[:, [2, 2, 0]] + 0.5 * rng.normal(size=(n, 3))
    numbers = np.where(rng.random((n, 3)) < 0.1, np.nan, numbers)
    X = {
        "title": titles,
        "vector": vectors,
        "numbers": pd.DataFrame(numbers, columns=[f"numbers {j}" for j in range(3)]),
        "colour": np.where(rng.random(n) < 0.2, "green", np.where(Y[:, 1] > 0, "red", "blue")).tolist(),
    }
    return Dataset(X, Y, label_names=TOPICS, name="blocks")


def many_labels(n: int = 40) -> Dataset:
    """More labels than are all ranked: candidates come from a shortlist."""
    return make_extreme(n, n_features=200, n_labels=1200, labels_per_row=3, nnz_per_row=12, seed=0)


def many_texts(n: int = 40) -> Dataset:
    """Texts with more labels than are all ranked: their names propose candidates too."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{i}" for i in range(300)]
    names = [" ".join(rng.choice(vocabulary, 2)) for _ in range(1200)]
    labels = [np.unique(rng.integers(0, 1200, 3)).tolist() for _ in range(n)]
    documents = [" ".join([names[row[0]], *rng.choice(vocabulary, 6)]) for row in labels]
    return Dataset(
        texts=documents, Y=sp.csr_matrix(_indicator(labels, 1200)), label_names=names, name="many texts"
    )


def _indicator(labels: list[list[int]], L: int) -> np.ndarray:
    return np.array([np.isin(np.arange(L), row) for row in labels], np.float32)


MAKERS = {"dense": dense, "sparse": sparse, "texts": texts, "blocks": blocks}
MAKERS |= {"many labels": many_labels, "many texts": many_texts}


# Two folds, one ranker, no base classifiers: for what does not depend on the learner; and as options.
QUICK = {"effort": "low", "ranker": "logistic", "n_folds": 2, "n_jobs": 1}
QUICKLY = ["--effort", "low", "--ranker", "logistic", "--folds", "2", "--jobs", "1", "--quiet"]


def run(argv: list) -> int:
    """The exit code of a command."""
    try:
        return main([str(a) for a in argv])
    except SystemExit as stop:  # argparse, and uvicorn
        return int(stop.code or 0)


@cache
def fitted(maker: str, **params: Any) -> MetaRanker:
    """A model of a maker's data; shared by the tests, which must not change it."""
    return MetaRanker(**(params or QUICK)).fit(MAKERS[maker]())


def candidates(model: MetaRanker, X: Any) -> Candidates:
    """What the sources of a model propose."""
    asked, request = model.answering(), read_request(model.fitted_, X)
    return asked.united(asked.proposed(request)[1], request.n_rows)


def saved_bytes(model: Any, folder: Path) -> dict[str, bytes]:
    """The files of a model, which is saved to a folder that is not there yet."""
    persist.save(model, folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def contents(place: Path) -> dict[str, bytes] | bytes | None:
    """The files of a folder, or a file; None where there is neither."""
    if place.is_dir():
        return {p.name: p.read_bytes() for p in sorted(place.iterdir())}
    return place.read_bytes() if place.exists() else None


def same_bytes(a: Any, b: Any) -> bool:
    """Whether two arrays are of one dtype and hold the same bytes."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def given_pairs(n_rows: int, n_labels: int) -> Given:
    """Scores of two sources, some of them 0 or negative, and a feature of pairs; some rows have none."""
    rng = np.random.default_rng([n_rows, n_labels])
    found: list[sp.csr_matrix] = []
    for share in (0.7, 0.4, 0.3):
        stored = rng.random((n_rows, n_labels)) < share
        stored[::7] = False
        row, label = np.nonzero(stored)
        values = (rng.integers(-1, 9, len(row)) / 4).astype(np.float32)
        indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
        found.append(sp.csr_matrix((values, label, indptr), (n_rows, n_labels)))
    return Given(n_rows, n_labels, {"bm25": found[0], "knn": found[1]}, {"clicks": found[2]})


def training_set(X: Features, Y: sp.csr_matrix, *, n_folds: int = 3, seed: int = 0) -> TrainingSet:
    """The training set `MetaRanker` makes of these; the labels' texts depend on the sizes alone, and so does
    what is given of pairs."""
    vectors = np.random.default_rng(3).normal(size=(Y.shape[1], X.shape[1])).astype(np.float32)
    n_rows, n_labels = X.shape[0], Y.shape[1]
    numbers = np.random.default_rng(5).integers(1, 6, size=(n_rows, 12))
    forms = WordRows.of([[1 + label % 5] for label in range(n_labels)] + [[1, 2]])
    texts: dict[str, Any] = {
        "given": replace(given_pairs(n_rows, n_labels), words=WordRows.of(numbers.tolist())),
        "label_vectors": LabelVectors(vectors),
        "name_forms": NameForms(
            forms,
            np.append(np.arange(n_labels), 0).astype(np.int32),
            np.append(np.full(n_labels, NAME), PART).astype(np.int32),
        ),
    }
    if sp.issparse(X):
        texts["words"] = [f"word{j}" for j in range(X.shape[1])]
        rng = np.random.default_rng(7)
        for source in ("label_text", "label_spelling"):
            texts[source] = sp.random(Y.shape[1], X.shape[1], 0.1, "csr", np.float32, random_state=rng)
            texts[source].sort_indices()
        others = sp.random(3, X.shape[1], 0.1, "csr", np.float32, random_state=rng)
        label = np.array([0, 0, Y.shape[1] - 1], np.int32)
        texts["other_names"] = {
            source: OtherNames(others, label) for source in ("label_text", "label_spelling")
        }
    return TrainingSet(X, Y, fold_of_rows(X.shape[0], n_folds, seed), seed=seed, **texts)


@register
class MeanFeature(LabelScorer):
    """A user's scorer: the mean of one feature over the label's rows, less the instance's own value."""

    def __init__(self, *, feature: int = 0) -> None:
        self.feature = feature

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> MeanFeature:
        values = column(view.X, self.feature)
        totals = np.array([values[view.Y[:, [label]].nonzero()[0]].sum() for label in range(view.n_labels)])
        self.mean_ = totals / np.maximum(view.label_counts, 1)
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        own = column(X, self.feature)[candidates.row_of_pair]
        return {"mean_feature": (self.mean_[candidates.labels] - own).astype(np.float32)}

    def get_state(self) -> dict[str, Any]:
        return {"feature": self.feature, "mean": self.mean_}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> MeanFeature:
        out = cls(feature=state["feature"])
        out.mean_ = state["mean"]
        return out


def column(X: Features, j: int) -> np.ndarray:
    """One feature of dense or sparse rows, float64 (n,)."""
    return np.asarray(X[:, [j]].toarray() if sp.issparse(X) else X[:, [j]], np.float64)[:, 0]


def pairs_of(n_rows: int, n_labels: int) -> Candidates:
    """All pairs of so many rows and labels."""
    return Candidates.all_labels(n_rows, n_labels)


def tree_of(nested: Any, n_labels: int | None = None) -> Hierarchy:
    """A hierarchy of one tree from nested lists of label ids."""
    start, child = flat(nested)
    every = int(np.count_nonzero(child < 0)) if n_labels is None else n_labels
    return Hierarchy(np.zeros(1, np.int32), start, child, every)

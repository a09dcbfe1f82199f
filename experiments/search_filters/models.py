"""What the cells of the tables are made by: each system learns from texts and gives lists."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from borrowed import top_of_rows
from sklearn.base import clone
from titles import Titles
from worth import Lists

from metarank import MetaRanker, persist, shortlist
from metarank.data import Dataset, TextVectorizer
from metarank.types.view import TrainingSet

K = 100  # length of the lists


class System(Protocol):
    """A row of the tables.

    `warm_up` does once what is no part of training, such as imports; `add` makes labels known by their names
    alone, ids following those of the fit.
    """

    def warm_up(self) -> None: ...

    def fit(self, train: Titles) -> None: ...

    def lists(self, titles: Titles, k: int) -> Lists: ...

    def add(self, names: list[str]) -> None: ...

    def n_parameters(self) -> int | None: ...

    def save(self, folder: Path) -> None: ...


def make(system: str, params: dict[str, Any], seed: int, threads: int) -> System:
    """A system by the name of its kind, "shortlister", "pipeline" or "embedder"."""
    kinds: dict[str, type] = {"shortlister": Shortlister, "pipeline": Pipeline, "embedder": Embedder}
    made: System = kinds[system](params, seed, threads)
    return made


class Shortlister:
    """One of metarank's trees on TF-IDF; `params` are the class, as "estimator", and its arguments.

    "names" among them: labels are put together by their names, not by where their rows lie: "words", TF-IDF
    of the names, or arguments of the `LabelEmbedder` that reads them.
    """

    def __init__(self, params: dict[str, Any], seed: int, threads: int) -> None:
        arguments = dict(params)
        self.names = arguments.pop("names", None)
        self.model = getattr(shortlist, arguments.pop("estimator"))(**arguments, random_state=seed)
        self.seed, self.threads = seed, threads

    def warm_up(self) -> None:
        pass

    def fit(self, train: Titles) -> None:
        self.vectorizer = TextVectorizer()
        X = self.vectorizer.fit_transform(train.texts)
        if self.names is not None:
            self.model.set_params(label_vectors=self._of_names(train))
        if "Y" in inspect.signature(self.model.fit).parameters:
            self.model.fit(X, train.Y, n_jobs=self.threads)
        else:
            view = TrainingSet(X, train.Y, np.zeros(X.shape[0], np.int32)).view()
            self.model.fit(view, n_jobs=self.threads)

    def _of_names(self, train: Titles) -> Any:
        if self.names == "words":
            return self.vectorizer.transform(train.names)
        from metarank.text import LabelEmbedder

        embedder = LabelEmbedder(**self.names, n_jobs=self.threads, random_state=self.seed)
        return embedder.fit(train.texts, train.Y, train.names).encode_names(train.names)

    def lists(self, titles: Titles, k: int) -> Lists:
        X = self.vectorizer.transform(titles.texts)
        found = self.model.shortlist(X, k=min(k, len(titles.names)), n_jobs=self.threads)
        scores = next(iter(found.scores.values()))
        return Lists(*top_of_rows(found.indptr, found.labels, scores, k))

    def add(self, names: list[str]) -> None:
        raise NotImplementedError("trees have no place for a label without a training point")

    def n_parameters(self) -> None:
        return None

    def save(self, folder: Path) -> None:
        persist.save(self.model, folder)


class Pipeline:
    """The whole of metarank, from the same texts; `params` are arguments of MetaRanker."""

    def __init__(self, params: dict[str, Any], seed: int, threads: int) -> None:
        self.model = MetaRanker(n_jobs=threads, random_state=seed, **params)

    def warm_up(self) -> None:
        pass

    def fit(self, train: Titles) -> None:
        dataset = Dataset(texts=train.texts, Y=train.Y, label_names=train.names, name=train.name)
        self.model.fit(dataset, exclude=_excluded(train))

    def lists(self, titles: Titles, k: int) -> Lists:
        excluded = _excluded(titles)
        labels = self.model.rank(titles.texts, k=k, exclude=excluded).labels
        chances = sp.csr_matrix(self.model.predict_proba(titles.texts, exclude=excluded))
        row = np.repeat(np.arange(len(labels)), labels.shape[1])
        chance = np.asarray(chances[row, np.maximum(labels, 0).ravel()]).reshape(labels.shape)
        return Lists(labels, np.where(labels >= 0, chance, -np.inf))

    def add(self, names: list[str]) -> None:
        # The model tells labels apart by their names, some sets do not.
        taken, new = set(self.model.label_names_ or ()), []
        for name in names:
            new.append(name if name not in taken else f"{name} [{len(taken)}]")
            taken.add(new[-1])
        self.model.update_labels(add=new)

    def n_parameters(self) -> None:
        return None

    def save(self, folder: Path) -> None:
        self.model.save(folder)


class Embedder:
    """`metarank.text.LabelEmbedder`; `params` are its arguments."""

    def __init__(self, params: dict[str, Any], seed: int, threads: int) -> None:
        from metarank.text import LabelEmbedder

        self.model = LabelEmbedder(n_jobs=threads, random_state=seed, **params)

    def warm_up(self) -> None:
        few = clone(self.model).set_params(n_epochs=1, encoder="bow")
        few.fit(["a b", "b c"] * 8, sp.csr_matrix(np.eye(2, dtype=np.float32)[[0, 1] * 8]), ["a", "c"])

    def fit(self, train: Titles) -> None:
        self.model.fit(train.texts, train.Y, train.names)

    def lists(self, titles: Titles, k: int) -> Lists:
        ranking = self.model.rank(titles.texts, k=k)
        chances = np.where(ranking.labels >= 0, 1 / (1 + np.exp(-ranking.scores.astype(float))), -np.inf)
        return Lists(ranking.labels, chances)

    def add(self, names: list[str]) -> None:
        self.model = self.model.add_labels(names)

    def n_parameters(self) -> int:
        return int(self.model.n_parameters_)

    def save(self, folder: Path) -> None:
        self.model.save(folder)


def _excluded(titles: Titles) -> sp.csr_matrix | None:
    """The labels out of the question, where there are any."""
    row = np.flatnonzero(titles.own >= 0)
    if not len(row):
        return None
    pairs = (np.ones(len(row), np.float32), (row, titles.own[row]))
    return sp.csr_matrix(pairs, shape=titles.Y.shape)

"""Saved models of every kind as targets; `readers.py` has those of files.

A target makes an input from (seed, number), hands it to metarank and returns what came of it: "ok", or the
error, which must be one that the door promises. Anything else is a failure.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.mutate import Folder
from fuzz.uses import Failure, outline, refuse_memory_error, use
from metarank import Dataset, MetaRanker, MultiObjectiveRanker, load, persist
from metarank.data import make_extreme, make_multilabel
from metarank.ranker import BoostedRanker, EnsembleRanker
from metarank.scorers.base import LabelScorer
from metarank.types.view import TrainingSet

_QUICK: dict[str, Any] = {"effort": "low", "n_folds": 2, "n_jobs": 1}
_TREES = {"n_trees": 2}


# --- models ------------------------------------------------------------------


def text_data() -> Dataset:
    words = ("sea sun sand wave wind", "oven bread flour salt dough", "code test bug loop type")
    rng = np.random.default_rng(0)
    labels = [[int(t)] if rng.random() < 0.6 else [int(t), (int(t) + 1) % 3] for t in rng.integers(0, 3, 40)]
    texts = [" ".join(rng.choice(words[t].split(), 3)[i] for t in row for i in range(3)) for row in labels]
    names = ["the sea", "bread", "code"]
    return Dataset(texts=texts, Y=[[names[t] for t in row] for row in labels], label_names=names)


N_SPARSE = 60


def sparse_data() -> Dataset:
    return make_extreme(40, n_features=N_SPARSE, n_labels=120, labels_per_row=3, nnz_per_row=8, seed=0)


def dense_data() -> Dataset:
    return make_multilabel(50, n_features=6, n_labels=4, seed=0)


def fitted(data: Callable[[], Dataset], **params: Any) -> Any:
    return MetaRanker(**{**_QUICK, "ranker": "logistic", **params}).fit(data())


def _classifiers() -> list[Any]:
    """Every base classifier, with few trees."""
    from metarank.scorers.classical.forest import ExtraTrees

    small = [ExtraTrees(n_trees=3)]
    return ["linear-svm", "linear-ridge", "rbf-ridge", "rbf-svm", "centroids", "tail", *small]


def _updated() -> Any:
    """A model whose labels have changed since: scorers are kept."""
    model = fitted(dense_data, features=["prior", "linear-svm", "neighbors"])
    return model.update_labels(add=2, remove=[1])


def _objectives() -> Any:
    data = dense_data()
    assert data.X is not None
    targets = {"relevance": data.Y, "clicks": sp.csr_matrix(data.Y[:, ::-1])}
    return MetaRanker(**_QUICK).fit(data.X, targets, objectives="plug-in-label")


def _multi_objective(model: str, aggregation: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5]).astype(float)
    small = {"n_rounds": 3, "params": {"min_data_in_leaf": 5, "num_leaves": 4}} if model == "lightgbm" else {}
    return MultiObjectiveRanker(aggregation, model, n_jobs=1, **small).fit(X, Y)


def _embedder(combine: str, encoder: str) -> Any:
    from metarank.text import LabelEmbedder

    sizes = {"subword_dim": 4, "hidden_dim": 4, "embedding_dim": 4, "vocabulary_size": 80}
    data = text_data()
    assert data.texts is not None
    model = LabelEmbedder(combine, encoder, n_jobs=1, n_epochs=1, **sizes)  # type: ignore[arg-type]
    return model.fit(list(data.texts), data.Y, data.label_names)


def _trees(name: str, **params: Any) -> Any:
    import metarank.shortlist as shortlist

    return getattr(shortlist, name)(**params)


def _approximate() -> Any:
    """A model of neighbours with a graph, which small sets do not have by themselves."""
    from metarank.types import dense_index

    dense_index.LEAST_ROWS = 1
    data = make_multilabel(600, n_features=5, n_labels=4, seed=0)
    return fitted(lambda: data, features=[_trees("NeighborShortlister", ks=(3,), index="hnsw")])


def _alone(name: str, make: Callable[[], Dataset] = sparse_data, **params: Any) -> Any:
    """A shortlister by itself; one that is fitted on a TrainingView alone gets one."""
    data = make()
    view = TrainingSet(data.X, data.Y, np.zeros(data.n_rows, np.int32)).view()
    return _trees(name, **params).fit(view, n_jobs=1)


MODELS: dict[str, Callable[[], Any]] = {
    "texts": partial(fitted, text_data),
    "texts, names": partial(fitted, text_data, features=["names", "spelling", "neighbors"]),
    "dense, auto": lambda: MetaRanker(n_folds=2, n_jobs=1, effort="low").fit(dense_data()),
    "dense, ensemble": lambda: fitted(dense_data, ranker=EnsembleRanker(n_rounds=4)),
    "dense, lambdarank": lambda: fitted(dense_data, ranker=BoostedRanker(n_rounds=4)),
    "dense, classifiers": lambda: fitted(dense_data, features=_classifiers()),
    "labels changed": _updated,
    "objectives": _objectives,
    "neighbors": lambda: fitted(sparse_data, shortlister="neighbors"),
    "hnsw": _approximate,
    "one-vs-all": lambda: fitted(sparse_data, shortlister=_trees("OneVsAll")),
    "parabel": lambda: fitted(sparse_data, shortlister=_trees("Parabel", max_leaf=10, **_TREES)),
    "xreg": lambda: fitted(sparse_data, shortlister=_trees("XReg", max_leaf=10, tail=0.8, **_TREES)),
    "fastxml": lambda: fitted(sparse_data, shortlister=_trees("FastXML", **_TREES)),
    "pfastrexml": lambda: fitted(sparse_data, shortlister=_trees("PfastreXML", alpha=0.8, **_TREES)),
    "multi-objective, trees": partial(_multi_objective, "lightgbm", "label"),
    "multi-objective, linear": partial(_multi_objective, "linear", "plug-in-loss"),
    "embedder, lale": partial(_embedder, "lale", "bilstm"),
    "embedder, concat": partial(_embedder, "concat", "cnn"),
    "alone: one-vs-all": partial(_alone, "OneVsAll"),
    "alone: ridge": partial(_alone, "OneVsAll", loss="ridge"),
    "alone: parabel": partial(_alone, "Parabel", max_leaf=10, **_TREES),
    "alone: xreg": partial(_alone, "XReg", max_leaf=10, tail=0.8, **_TREES),
    "alone: fastxml": partial(_alone, "FastXML", **_TREES),
    "alone: pfastxml": partial(_alone, "PfastXML", **_TREES),
    "alone: pfastrexml": partial(_alone, "PfastreXML", alpha=0.8, **_TREES),
    "alone: neighbors": partial(_alone, "NeighborShortlister", ks=(3, 10)),
    "alone: neighbors, dense": partial(
        _alone, "NeighborShortlister", dense_data, ks=(3,), relevance="inverse-propensity"
    ),
    "embedder, gile": partial(_embedder, "gile", "bow"),
}


class ModelTarget:
    """Mutants of one saved model: loaded, and where that goes well, used."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = f"model: {name}"
        self.original = Folder(folder)
        if name.startswith("hnsw"):
            from metarank.types import dense_index

            dense_index.LEAST_ROWS = 1
        self.rows = _rows_for(load(folder))

    def run(self, rng: random.Random, scratch: Path) -> str:
        self.original.mutant(rng, scratch / "M")
        verify = rng.random() < 0.5
        try:
            model = load(scratch / "M", verify=verify)
        except persist.ModelError as error:
            refuse_memory_error(error)
            if "\n" in str(error):
                raise Failure(f"more than one line: {error}") from error
            return f"load: {outline(error)}"
        refused = use(model, self.rows, rng, scratch)
        return f"use: {refused[0]}" if refused else "ok"


def _rows_for(model: Any) -> Any:
    """A few rows that the model takes."""
    encoder = getattr(model, "encoder_", None)
    if hasattr(model, "subwords_") or getattr(encoder, "vectorizer", None) is not None:
        return ["sun and sand", "bread of the sea", ""]
    alone = isinstance(model, LabelScorer)
    d = model.named_sizes().get("d") if alone else model.n_features_in_
    X = np.random.default_rng(1).normal(size=(3, d)).astype(np.float32)
    sparse = d == N_SPARSE if alone else getattr(encoder, "layout", "dense") == "sparse"
    return sp.csr_matrix(np.where(np.abs(X) > 0.5, np.abs(X), 0)) if sparse else X


def save_models(folder: Path, names: list[str] | None = None) -> None:
    """Fit and save the models that are to be mutated, where they are not there yet."""
    for name in names or list(MODELS):
        target = folder / _file_name(name)
        if not target.exists():
            persist.save(MODELS[name](), target)


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "-", name)


def model_target(name: str, folder: Path) -> ModelTarget:
    """The target of a model that `save_models` wrote."""
    return ModelTarget(name, folder / _file_name(name))


def scratch_folder() -> Any:
    """A folder for mutants, in memory where there is such a place."""
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="metarank-fuzz-", dir=shared if shared.is_dir() else None)

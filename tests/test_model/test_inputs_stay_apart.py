"""What a fit was given may be overwritten afterwards: the model stays what it was."""

import copy

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import MetaRanker, MultiObjectiveRanker, data, load
from metarank.shortlist import FastXML, OneVsAll, PfastreXML, PfastXML, XReg
from metarank.thresholds import LearnedThresholds
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

N, L, D = 60, 5, 40
QUICK = {"effort": "low", "n_jobs": 1, "n_folds": 2, "ranker": "logistic"}


def sparse_rows(n=N, seed=0):
    X = sp.random(n, D, 0.2, "csr", np.float32, random_state=np.random.default_rng(seed))
    X.sort_indices()
    return X


def dense_rows(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)


def relevance(n=N, seed=1):
    return sp.csr_matrix((np.random.default_rng(seed).random((n, L)) < 0.4).astype(np.float32))


def names_of_rows(n=N):
    return [[f"label {j}" for j in np.flatnonzero(row)] for row in relevance(n).toarray()]


def some_texts():
    return list(makers.texts(N).texts)


def labels_of_texts():
    ds = makers.texts(N)
    return [[ds.label_names[j] for j in row.indices] for row in ds.Y]


def scribble(thing):
    """Overwrite all that can be overwritten."""
    if sp.issparse(thing):
        for part in ("data", "indices", "indptr", "row", "col", "coords"):
            scribble(getattr(thing, part, None))
    elif isinstance(thing, np.ndarray):
        assert thing.flags.writeable, "arrays stay the caller's"
        thing[...] = "scribbled" if thing.dtype == object else 3
    elif isinstance(thing, pd.DataFrame):
        thing.iloc[:, :] = 3
    elif isinstance(thing, dict):
        for value in thing.values():
            scribble(value)
        thing.clear()
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            scribble(value)
        if isinstance(thing, list):
            thing[:] = [3] * (len(thing) + 1)
    elif isinstance(thing, data.Dataset):
        for value in vars(thing).values():
            scribble(value)
    elif isinstance(thing, Candidates):
        for value in (thing.indptr, thing.labels, thing.scores):
            scribble(value)


def fit(**params):
    """A fit of `MetaRanker` with some parameters."""
    return lambda *given: MetaRanker(**{**QUICK, **params}).fit(*given)


def more_rows(X, Y, first):
    model = MetaRanker(**QUICK, features=["neighbors", "centroids"]).fit(*copy.deepcopy(first))
    return model.partial_fit(X, Y)


def labels_changed(X, Y, change):
    return MetaRanker(**QUICK, features=["neighbors", "names"]).fit(X, Y).update_labels(**change)


def boosted(X, Y, group, weights):
    return MultiObjectiveRanker(n_rounds=5, n_jobs=1, weights=weights).fit(X, Y, group=group)


def embedded(texts, Y, names):
    pytest.importorskip("torch")
    from metarank.text import LabelEmbedder

    sizes = {"subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "n_epochs": 1}
    return LabelEmbedder(encoder="bow", n_jobs=1, **sizes).fit(texts, Y, names)


def alone(kind):
    return lambda X, Y, weight: clone(kind).fit(X, Y, sample_weight=weight, n_jobs=1)


def dataset():
    names = [f"label {j}" for j in range(L)]
    known = [f"word{j}" for j in range(D)]
    return data.Dataset(sparse_rows(), relevance(), names, known, label_texts=list(names))


def dense_relevance():
    return relevance().toarray()


# What is called, what it is given, and rows to be ranked afterwards.
CASES = {
    "dense": (fit(), (dense_rows, dense_relevance), dense_rows),
    "sparse": (fit(), (sparse_rows, relevance), sparse_rows),
    "frames": (
        fit(),
        (lambda: pd.DataFrame(dense_rows()), lambda: pd.DataFrame(dense_relevance())),
        dense_rows,
    ),
    "lists": (fit(), (lambda: dense_rows().tolist(), names_of_rows), dense_rows),
    "texts": (fit(), (some_texts, labels_of_texts), some_texts),
    "Dataset": (fit(), (dataset,), sparse_rows),
    "shortlisted": (fit(shortlister=["neighbors", "parabel"]), (sparse_rows, relevance), sparse_rows),
    "weights and exclusions": (
        lambda X, Y, w, e: MetaRanker(**QUICK).fit(X, Y, sample_weight=w, exclude=e),
        (
            sparse_rows,
            relevance,
            lambda: np.arange(N) % 3 + 1.0,
            lambda: sp.csr_matrix(np.eye(N, L, dtype=np.float32)),
        ),
        sparse_rows,
    ),
    "several objectives": (
        fit(ranker="auto"),
        (sparse_rows, lambda: {"a": relevance(), "b": relevance(seed=2)}),
        sparse_rows,
    ),
    "partial_fit": (
        more_rows,
        (lambda: sparse_rows(seed=3), lambda: relevance(seed=4), lambda: (sparse_rows(), relevance())),
        sparse_rows,
    ),
    "update_labels": (
        labels_changed,
        (some_texts, labels_of_texts, lambda: {"add": {"salt": "salt and tide"}, "rename": {"code": "tree"}}),
        some_texts,
    ),
    "boosted objectives": (
        boosted,
        (dense_rows, dense_relevance, lambda: np.full(6, 10), lambda: np.ones(L)),
        dense_rows,
    ),
    "linear objectives": (
        lambda X, Y: MultiObjectiveRanker(model="linear", n_jobs=1).fit(X, Y),
        (sparse_rows, lambda: {"a": np.arange(N) % 2, "b": np.arange(N) % 3}),
        sparse_rows,
    ),
    **{
        type(kind).__name__: (alone(kind), (sparse_rows, relevance, lambda: np.ones(N)), sparse_rows)
        for kind in (FastXML(n_trees=1), PfastXML(n_trees=1), PfastreXML(n_trees=1), XReg(n_trees=1))
    },
    "LabelEmbedder": (embedded, (some_texts, labels_of_texts, lambda: list(makers.TOPICS)), some_texts),
    "OneVsAll": (
        lambda X, Y: OneVsAll().fit(TrainingSet(X, Y, np.zeros(N, np.int32)).view(), n_jobs=1),
        (sparse_rows, relevance),
        sparse_rows,
    ),
}


def answers(model, X):
    if hasattr(model, "rank"):
        ranking = model.rank(X, k=3)
        return ranking.labels.tobytes(), ranking.scores.tobytes()
    if hasattr(model, "shortlist"):
        found = model.shortlist(X, 3, n_jobs=1)
        return found.labels.tobytes(), *(values.tobytes() for values in found.scores.values())
    return (model.predict(X).tobytes(),)


@pytest.mark.check_beyond(5)
@pytest.mark.parametrize("case", CASES)
def test_a_model_is_apart_from_what_it_was_fitted_on(case, tmp_path):
    call, makes, rows = CASES[case]
    untouched, given = ([make() for make in makes] for _ in range(2))
    first, second = call(*untouched), call(*given)
    scribble(given)
    assert answers(second, rows()) == answers(first, rows())
    assert makers.saved_bytes(second, tmp_path / "second") == makers.saved_bytes(first, tmp_path / "first")
    assert answers(load(tmp_path / "second"), rows()) == answers(first, rows())


def test_thresholds_are_apart_from_what_they_were_learned_of():
    def given():
        rng = np.random.default_rng(0)
        pairs, scores = Candidates.all_labels(N, 3), rng.normal(size=3 * N)
        return pairs, scores, (scores + rng.normal(size=3 * N) > 1).astype(np.float32), np.arange(N) % 5

    def answered(learner):
        kept = (learner.keep(*given()[:2], metric) for metric in learner.by_metric_)
        return [learner.probabilities(*given()[:2]), *kept]

    learners = []
    for overwritten in (False, True):
        *scored, fold = given()
        learners.append(LearnedThresholds().fit(*scored, fold=fold))
        if overwritten:
            scribble([*scored, fold])
    first, second = map(answered, learners)
    assert all(np.array_equal(a, b) for a, b in zip(first, second))

"""Means of labels drawn towards their names: in the tail classifiers, in XReg-t and in PfastreXML."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, load, metrics
from metarank.data.dataset import Dataset
from metarank.scorers.trees.tail import COLUMN, NAME_WEIGHTS, TailClassifiers
from metarank.shortlist import PfastreXML, XReg
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

N_LABELS, WORDS = 30, 40


def made(seed: int = 0, n: int = 150) -> Dataset:
    """Rows of the two words of a label's name, one of which is missing now and then, and of others.

    Labels have few rows, some none; one has no name that is known.
    """
    rng = np.random.default_rng(seed)
    second = [2 * label + 1 if label < 20 else 2 * (label - 20) + 3 for label in range(N_LABELS)]
    names = [[2 * (label % 20), second[label]] for label in range(N_LABELS)]
    of_row = (rng.pareto(1.0, n) * 2).astype(int) % (N_LABELS - 4)
    X = np.zeros((n, WORDS), np.float32)
    for row, label in enumerate(of_row):
        X[row, names[label][: rng.integers(1, 3)]] = 1
        X[row, rng.integers(0, WORDS, 4)] += 0.7
    Y = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), of_row)), (n, N_LABELS))
    words = [f"w{j}" for j in range(WORDS)]
    label_names = [" ".join(words[j] for j in own) for own in names]
    label_names[3] = "unheard"
    return Dataset(sp.csr_matrix(X), Y, label_names=label_names, feature_names=words)


def text_of(data: Dataset) -> sp.csr_matrix:
    rows = [[f"w{j}" in name.split() for j in range(WORDS)] for name in data.label_names]
    text = np.array(rows, np.float64)
    return sp.csr_matrix(text / np.maximum(np.sqrt(text.sum(axis=1, keepdims=True)), 1), dtype=np.float32)


def training_set(data: Dataset) -> TrainingSet:
    return TrainingSet(data.X, data.Y, fold_of_rows(data.Y.shape[0], 3, 0), label_text=text_of(data))


def unit(A: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(A, axis=-1, keepdims=True)
    return A / np.where(length > 0, length, 1)


def slow(data: TrainingSet, rows: np.ndarray, Q: sp.csr_matrix, kappa: float, unit_means: bool) -> np.ndarray:
    """mu_l = (sum of its rows + kappa t_l) / (N_l + kappa), in double; (n, L) of log P_tail for gamma = 2."""
    X, T, Y = unit(data.X[rows].toarray()), unit(data.label_text.toarray()), data.Y[rows].toarray() > 0
    Q, out = unit(Q.toarray()), np.empty((Q.shape[0], Y.shape[1]))
    for label in range(Y.shape[1]):
        own, named = X[Y[:, label]], kappa * T[label]
        count = len(own) + (kappa if named.any() else 0)
        mean = (own.sum(axis=0) + named) / count if count else np.zeros(X.shape[1])
        if not count:
            squared = np.full(len(Q), 2.0)
        elif unit_means:
            squared = 2 * (1 - Q @ unit(mean))
        else:
            squared = ((Q - mean) ** 2).sum(axis=1)
        out[:, label] = -np.log1p(np.exp(squared))
    return out


@pytest.mark.parametrize("unit_means", [True, False])
@pytest.mark.parametrize("kappa", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("fold", [None, 1])
def test_agrees_with_a_slow_twin(unit_means: bool, kappa: float, fold: int | None) -> None:
    data, Q = training_set(made()), made(1).X
    view = data.view() if fold is None else data.without_fold(fold)
    tail = TailClassifiers(gamma=2.0, unit_means=unit_means, name_weight=kappa).fit(view)
    assert tail.name_weight_ == kappa
    found = tail.score(Q, Candidates.all_labels(Q.shape[0], N_LABELS))[COLUMN]
    np.testing.assert_allclose(
        found, slow(data, view.rows, Q, kappa, unit_means).ravel(), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("unit_means", [True, False])
@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_the_nearest_means_are_proposed(unit_means: bool, kappa: float) -> None:
    data, Q = training_set(made()), made(2, n=70).X
    tail = TailClassifiers(unit_means=unit_means, name_weight=kappa).fit(data.view())
    every = tail.score(Q, Candidates.all_labels(Q.shape[0], N_LABELS))[COLUMN].reshape(-1, N_LABELS)
    shares = (Q @ tail.means_.means.T).toarray() > 0
    for k in (1, 5, 40):
        found = tail.shortlist(Q, k)
        threaded = tail.shortlist(Q, k, n_jobs=4)
        assert found.scores["tail"].tobytes() == threaded.scores["tail"].tobytes()
        np.testing.assert_array_equal(found.labels, threaded.labels)
        for row in range(Q.shape[0]):
            inside = slice(*found.indptr[row : row + 2])
            own = found.labels[inside]
            assert (np.diff(own) > 0).all()
            assert shares[row, own].all()
            np.testing.assert_array_equal(found.scores["tail"][inside], every[row, own])
            others = np.setdiff1d(np.flatnonzero(shares[row]), own)
            assert len(own) == min(k, shares[row].sum())
            assert not len(others) or every[row, others].max() <= every[row, own].min() + 1e-6
    alone = tail.shortlist(Q[7], 5)
    np.testing.assert_array_equal(alone.labels, tail.shortlist(Q, 5).rows(np.array([7])).labels)


def test_the_weight_is_chosen_where_names_help_and_is_none_where_they_do_not() -> None:
    data = training_set(made())
    assert TailClassifiers().fit(data.view()).name_weight_ > 0
    rng = np.random.default_rng(5)
    data.label_text = data.label_text[rng.permutation(N_LABELS)]
    assert TailClassifiers().fit(data.view()).name_weight_ < 1
    tuned = TailClassifiers(gamma=7.0).tuned(data.view())
    assert tuned.name_weight in NAME_WEIGHTS
    assert tuned.gamma == 7


def test_a_label_without_rows_is_known_by_its_name() -> None:
    data = training_set(made())
    without = int(np.flatnonzero(data.Y.getnnz(axis=0) == 0)[0])
    row = sp.csr_matrix(data.label_text[without])
    named, nameless = (TailClassifiers(name_weight=k).fit(data.view()) for k in (1.0, 0.0))
    assert without in named.shortlist(row, 3).labels
    assert without not in nameless.shortlist(row, N_LABELS).labels


@pytest.mark.parametrize("kind", [XReg, PfastreXML])
def test_trees_take_names_of_a_data_set(kind: type, tmp_path) -> None:
    data, test = made(n=100), made(9, n=200)
    params = {"n_trees": 10, "max_leaf": 5}
    params |= {"tail": "auto", "relevance": "inverse-propensity"} if kind is XReg else {"alpha": "auto"}
    named = kind(**params).fit(data)
    assert named.tail_.name_weight_ > 0
    fixed = kind(**params, name_weight=0.5).fit(data)
    fixed.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert fixed.tail_.name_weight_ == again.tail_.name_weight_ == 0.5
    assert again.get_params() == fixed.get_params()
    one, other = (model.shortlist(data.X, 5).final_score for model in (fixed, again))
    assert one.tobytes() == other.tobytes()
    without = kind(**params).fit(data.X, data.Y)
    assert without.tail_ is None or without.tail_.name_weight_ == 0
    found = [
        metrics.evaluate(test.Y, model.shortlist(test.X, 10), ["nDCG@5"])["nDCG@5"]
        for model in (named, without)
    ]
    assert found[0] > found[1]


def test_labels_that_change_keep_their_names() -> None:
    data, own = made(), TailClassifiers(name_weight=1.0)
    model = MetaRanker(
        shortlister=["parabel", own], features=["votes", "prior", own, "parabel"], n_folds=3, n_jobs=1
    ).fit(data)
    tail = next(s.scorer for s in model.fitted_.sources if isinstance(s.scorer, TailClassifiers))
    assert tail.name_weight_ == 1
    model.update_labels(add=["w3 w30"])
    after = next(s.scorer for s in model.fitted_.sources if isinstance(s.scorer, TailClassifiers))
    assert after.name_weight_ == 1
    row = sp.csr_matrix(([1.0, 1.0], ([0, 0], [3, 30])), (1, WORDS), np.float32)
    assert N_LABELS in after.shortlist(row, 5).labels
    assert np.isfinite(model.rank(data.X[:5], k=3).scores).all()

"""`NameRecord` against counts by hand, row by row and word by word."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.names.record import COLUMNS, NameRecord
from metarank.types.candidates import Candidates
from metarank.types.label_names import OtherNames
from metarank.types.view import TrainingSet


def made(seed: int, *, others: bool = False, n: int = 40, n_labels: int = 12, d: int = 9) -> TrainingSet:
    """Rows with stored zeros, labels without rows, without names, and with words that no row has."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.4, "csr", np.float32, rng)
    X.data[::7] = 0.0
    Y = sp.csr_matrix((rng.random((n, n_labels)) < 0.15).astype(np.float32))
    Y = sp.csr_matrix(Y.multiply(np.arange(n_labels) != 3).astype(np.float32))
    text = sp.random(n_labels, d, 0.25, "csr", np.float32, rng)
    names = {}
    if others:
        label = np.sort(rng.integers(0, n_labels, 8)).astype(np.int32)
        names = {"label_text": OtherNames(sp.random(8, d, 0.3, "csr", np.float32, rng), label)}
    for matrix in (X, text):
        matrix.sort_indices()
    fold = (np.arange(n) % 3).astype(np.int32)
    return TrainingSet(X, Y, fold, label_text=text, other_names=names)


def by_hand(data: TrainingSet, rows: np.ndarray, X: sp.csr_matrix) -> dict[str, np.ndarray]:
    """The columns of all pairs, from the rows of a TrainingView."""
    seen, Y = data.X[rows].toarray() != 0, data.Y[rows].toarray() > 0
    words = [set(text.indices.tolist()) for text in data.label_text]
    names = [[own] if own else [] for own in words]
    others = data.other_names.get("label_text")
    if others is not None:
        for label, text in zip(others.label, others.text):
            names[label] += [set(text.indices.tolist())] if text.nnz else []
    n, (n_labels, d) = len(rows), data.label_text.shape
    pairs = [(i, label) for i in range(n) for label in range(n_labels) if Y[i, label]]
    of_word = {w: [seen[i, w] for i, label in pairs if w in words[label]] for w in range(d)}
    every = [hit for hits in of_word.values() for hit in hits]
    share = sum(every) / len(every) if every else 0.5
    holds = np.array(
        [
            [any(all(row[w] for w in name) for name in names[label]) for label in range(n_labels)]
            for row in seen
        ]
    ).reshape(n, n_labels)
    of_all = (holds & Y).sum() / holds.sum() if holds.any() else 0.5

    def odds(row: np.ndarray, label: int) -> float:
        total = 0.0
        for w in words[label]:
            p = min(max((sum(of_word[w]) + 4 * share) / (len(of_word[w]) + 4), 1e-3), 1 - 1e-3)
            q = (seen[:, w].sum() + 0.5) / (n + 1)
            total += math.log(p / q) if row[w] else math.log((1 - p) / (1 - q))
        return total

    has = X.toarray() != 0
    columns = [
        np.array([odds(row, label) for row in has for label in range(n_labels)]),
        np.tile(np.log1p(holds.sum(axis=0)), len(has)),
        np.tile(((holds & Y).sum(axis=0) + of_all) / (holds.sum(axis=0) + 1), len(has)),
        np.tile(((holds & Y).sum(axis=0) + 0.5) / (Y.sum(axis=0) + 1), len(has)),
    ]
    return dict(zip(COLUMNS, columns))


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("fold", [None, 0, 2])
def test_counts_by_hand(others: bool, fold: int | None) -> None:
    for seed in range(4):
        data = made(seed, others=others)
        view = data.view() if fold is None else data.without_fold(fold)
        X = made(seed + 100).X
        found = NameRecord().fit(view).score(X, Candidates.all_labels(X.shape[0], 12))
        expected = by_hand(data, view.rows, X)
        assert list(found) == list(COLUMNS)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=2e-6, atol=2e-6, err_msg=name)


def test_a_name_of_which_no_word_is_known_says_nothing() -> None:
    data = made(0)
    data.label_text = sp.csr_matrix(data.label_text.shape, dtype=np.float32)
    found = NameRecord().fit(data.view()).score(data.X, Candidates.all_labels(40, 12))
    assert not any(found[name].any() for name in COLUMNS[:2])


def test_grades_play_no_part() -> None:
    data, graded = made(1), made(1)
    graded.Y.data *= np.arange(1, graded.Y.nnz + 1, dtype=np.float32)
    pairs = Candidates.all_labels(40, 12)
    for name, values in NameRecord().fit(data.view()).score(data.X, pairs).items():
        np.testing.assert_array_equal(values, NameRecord().fit(graded.view()).score(data.X, pairs)[name])

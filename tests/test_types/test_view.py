import numpy as np
import scipy.sparse as sp

from metarank.types.view import TrainingSet, fold_of_rows


def make(n=30, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    Y = sp.csr_matrix((rng.random((n, n_labels)) < 0.3).astype(np.float32))
    return TrainingSet(X, Y, fold_of_rows(n, 3, 7), seed=7)


def test_the_fold_of_a_row_depends_on_seed_and_row_number_only():
    assert np.array_equal(fold_of_rows(50, 5, 1)[:20], fold_of_rows(20, 5, 1))
    assert not np.array_equal(fold_of_rows(50, 5, 1), fold_of_rows(50, 5, 2))


def test_folds_are_balanced_within_chance():
    counts = np.bincount(fold_of_rows(20_000, 5, 3))
    # Five standard deviations of a binomial(20000, 1/5).
    assert np.all(np.abs(counts - 4000) < 5 * np.sqrt(20_000 * 0.2 * 0.8))


def test_views_of_a_fold_and_its_complement_part_the_rows():
    data = make()
    for f in range(3):
        view = data.without_fold(f)
        assert np.array_equal(view.rows, np.flatnonzero(data.fold != f))
        assert np.array_equal(view.Y.toarray(), data.Y.toarray()[view.rows])
        assert np.array_equal(view.label_counts, data.Y.toarray()[view.rows].astype(bool).sum(0))
        indptr, rows = view.rows_by_label
        for label in range(view.n_labels):
            expected = [i for i in view.rows if data.Y[i, label] > 0]
            assert rows[indptr[label] : indptr[label + 1]].tolist() == expected


def test_shared_state_is_built_once():
    data = make()
    calls = []
    for f in range(3):
        data.without_fold(f).shared("norms", lambda X: calls.append(1) or (X**2).sum(1))
    assert len(calls) == 1

import numpy as np
import pytest
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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_rows_as_new_have_features_of_others_and_of_names_alone(sparse, named):
    rng = np.random.default_rng(5)
    X = (rng.random((12, 9)) < 0.3).astype(np.float32) * rng.random((12, 9)).astype(np.float32)
    text = (rng.random((4, 9)) < 0.1).astype(np.float32)
    names = {"label_text": sp.csr_matrix(text)} if named else {}
    Y = sp.csr_matrix(np.ones((12, 4), np.float32))
    data = TrainingSet(sp.csr_matrix(X) if sparse else X, Y, fold_of_rows(12, 3, 0), **names)
    others, held_out = data.view().part(np.arange(8)), data.view().part(np.arange(8, 12))
    known = [X[:8, j].any() or (named and text[:, j].any()) for j in range(9)]
    assert 0 < sum(known) < 9
    found = held_out.X_as_new_to(others)
    assert np.array_equal(found.toarray() if sparse else found, X[8:] * known)
    assert sp.issparse(found) == sparse
    if sparse:
        assert found.nnz == np.count_nonzero(X[8:] * known)
        assert found.has_canonical_format
    # Where all is known, the rows are as they are.
    whole = data.view()
    assert whole.X_as_new_to(whole) is whole.X

"""Labels hidden from a fold's view: its rows are described as if the label had just been added by name."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from test_leakage import CASES, SCORERS, rows_and_labels, tuned

from metarank import Candidates
from metarank.scorers.base import HeldOutColumns
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.wrapped import KeptScorer
from metarank.types.view import TrainingSet, hidden_labels

HIDDEN_FOLD, HIDDEN = 1, 2


def test_each_fold_hides_labels_of_its_own():
    hidden = hidden_labels(200, 5, seed=3)
    assert hidden.dtype == np.int32
    assert np.bincount(hidden + 1).tolist() == [180, 4, 4, 4, 4, 4]
    assert np.array_equal(hidden, hidden_labels(200, 5, seed=3))
    assert not np.array_equal(hidden, hidden_labels(200, 5, seed=4))
    assert np.bincount(hidden_labels(20, 3, seed=0) + 1).tolist() == [17, 1, 1, 1]
    assert (hidden_labels(19, 5, seed=0) == -1).all()


def test_views_do_not_show_rows_of_hidden_labels():
    Y = sp.csr_matrix(np.array([[1, 1], [0, 2], [1, 0], [1, 1]], np.float32))
    data = TrainingSet(
        np.eye(4, dtype=np.float32), Y, np.array([0, 0, 1, 1]), hidden_in=np.array([-1, 0], np.int32)
    )
    of_fold = data.without_fold(0)
    assert of_fold.Y.toarray().tolist() == [[1, 0], [1, 0]]
    assert of_fold.part(np.array([1])).Y.toarray().tolist() == [[1, 0]]
    assert of_fold.label_counts.tolist() == [2, 0]
    indptr, rows = of_fold.rows_by_label
    assert (indptr.tolist(), rows.tolist()) == ([0, 2, 2], [2, 3])
    assert data.without_fold(1).Y.toarray().tolist() == [[1, 1], [0, 2]]
    assert (data.view().Y != Y).nnz == 0
    objective = TrainingSet(
        data.X, Y, data.fold, targets={"clicks": Y * 3}, hidden_in=np.array([-1, 0], np.int32)
    ).without_fold(0)
    assert objective.of_objective("clicks").Y.toarray().tolist() == [[3, 0], [3, 0]]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_hidden_is_as_if_the_label_had_no_row(name, layout):
    """Shortcuts through one matrix for all folds included."""
    X, Y = rows_and_labels(layout)
    plain = makers.training_set(X, sp.csr_matrix(Y))
    erased_Y = Y.copy()
    erased_Y[:, HIDDEN] = 0
    erased = makers.training_set(X, sp.csr_matrix(erased_Y))
    hiding = makers.training_set(X, sp.csr_matrix(Y))
    hiding.hidden_in = np.where(np.arange(Y.shape[1]) == HIDDEN, HIDDEN_FOLD, -1).astype(np.int32)
    scorer = tuned(SCORERS[name](), plain)
    rows = np.flatnonzero(plain.fold == HIDDEN_FOLD)
    pairs = Candidates.all_labels(len(rows), Y.shape[1])
    got, want = (held_out_columns(scorer, data, pairs, rows=rows) for data in (hiding, erased))
    assert list(got) == list(want)
    for column in got:
        assert got[column].tobytes() == want[column].tobytes(), column
    if not isinstance(scorer, HeldOutColumns):
        return
    # One matrix for all folds: the others see the label as ever.
    rows = np.flatnonzero(plain.fold != HIDDEN_FOLD)
    pairs = Candidates.all_labels(len(rows), Y.shape[1])
    got, want = (held_out_columns(scorer, data, pairs, rows=rows) for data in (hiding, plain))
    for column in got:
        assert got[column].tobytes() == want[column].tobytes(), column


@pytest.mark.parametrize("name", ["linear-svm", "rbf-ridge", "linear-ridge", "rbf-svm"])
def test_a_kept_classifier_says_of_an_added_label_what_it_says_of_one_without_rows(name):
    X, Y = rows_and_labels("dense")
    Y[:, HIDDEN] = 0
    data = makers.training_set(X, sp.csr_matrix(Y))
    fitted = tuned(SCORERS[name](), data).fit(data.view())
    pairs = Candidates.all_labels(3, Y.shape[1])
    (of_empty,) = (values.reshape(3, -1)[:, HIDDEN] for values in fitted.score(X[:3], pairs).values())
    grown = KeptScorer.of(fitted, np.arange(Y.shape[1], dtype=np.int32), Y.shape[1] + 1)
    pairs = Candidates.all_labels(3, Y.shape[1] + 1)
    (of_added,) = (values.reshape(3, -1)[:, -1] for values in grown.score(X[:3], pairs).values())
    np.testing.assert_array_equal(of_added, of_empty)

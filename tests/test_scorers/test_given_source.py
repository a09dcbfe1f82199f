"""The columns of given candidates, by hand; the shortcut for held-out rows equals fits without the fold."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.scorers.given.given_scorer import OF_LABELS, GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.view import TrainingSet


def training_set(**options) -> TrainingSet:
    ds = makers.dense(60, L=5)
    data = makers.training_set(ds.X, ds.Y)
    for name, value in options.items():
        setattr(data, name, value)
    return data


def test_it_proposes_what_is_given():
    data, rows = training_set(), np.array([1, 9, 14])
    scorer = GivenScorer(given="knn")
    found = held_out_shortlist(scorer, data, 1, rows=rows)
    own = data.given[rows].scores["knn"]
    np.testing.assert_array_equal(found.to_csr().toarray(), own.toarray())
    assert (np.diff(found.indptr) == np.diff(own.indptr)).all()


def test_columns_by_hand():
    scores = sp.csr_matrix(np.float32([[4, 1, 0], [2, 0, 8], [0, 3, 0], [1, 5, 0]]))
    Y = sp.csr_matrix(np.float32([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]]))
    given = Given(4, 3, {"s": scores})
    scorer = GivenScorer(given="s").fit(
        TrainingSet(np.zeros((4, 0), np.float32), Y, np.zeros(4), given=given).view()
    )
    columns = scorer.score(given[:2], Candidates.all_labels(2, 3))
    assert {len(columns), *columns} >= {12, *(f"s: {name}" for name in OF_LABELS)}
    np.testing.assert_array_equal(columns["s: score"], [4, 1, 1, 2, 2, 8])
    np.testing.assert_allclose(
        columns["s: log score"], [np.log(4), 0, -1, np.log(2), np.log(2) - 1, np.log(8)], atol=1e-6
    )
    second = 1 / np.log2(3)
    np.testing.assert_allclose(columns["s: rank discount"], [1, second, 0, second, 0, 1], atol=1e-6)
    np.testing.assert_allclose(columns["s: share of best score"], [1, 0.25, 0, 0.25, 0, 1])
    np.testing.assert_allclose(columns["s: standardized score"], [1, -1, -2, -1, -2, 1])
    np.testing.assert_array_equal(columns["s: proposed"], [1, 1, 0, 1, 0, 1])
    # Of the five proposals of labelled rows three are relevant; label 0 is right twice of two.
    rate = 3.5 / 6
    np.testing.assert_allclose(columns["s: precision for label"][0], (2 + 5 * rate) / 7)
    # Label 2 is relevant in one of the two labelled rows without it.
    assert columns["s: precision for label"][2] > columns["s: precision for label"][4]
    # All seven scores are in one bin: none is unusual for its label.
    np.testing.assert_array_equal(columns["s: score against label's usual"], [0, 0, -5, 0, -5, 0])
    np.testing.assert_allclose(columns["s: label's usual score"], 1)
    frequency = np.log([3.5 / 5, 3.5 / 5, 1.5 / 5])
    np.testing.assert_allclose(columns["s: log frequency of label"][:3], frequency, rtol=1e-6)


def test_a_row_without_a_label_tells_nothing_of_a_source():
    data = training_set()
    some = GivenScorer(given="bm25").fit(data.view())
    empty = sp.csr_matrix(data.Y.toarray() * (np.arange(60) < 40)[:, None]).astype(np.float32)
    data.Y = empty
    of_all = GivenScorer(given="bm25").fit(data.view())
    of_some = GivenScorer(given="bm25").fit(data.view().part(np.arange(40)))
    assert of_all.right_.tobytes() == of_some.right_.tobytes() != some.right_.tobytes()


def test_a_source_that_is_right_has_better_columns_than_one_that_is_not():
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((200, 4)) < 0.4).astype(np.float32))
    scores = rng.random((200, 4)) * 0.5 + 0.1
    scores[:, 0] += 0.4 * Y.toarray()[:, 0]  # of label 0 alone the scores mean anything
    given = Given(200, 4, {"s": sp.csr_matrix(scores.astype(np.float32))})
    data = TrainingSet(np.zeros((200, 0), np.float32), Y, np.arange(200) % 5, given=given)
    columns = held_out_columns(GivenScorer(given="s"), data, Candidates.all_labels(200, 4))
    odds = columns["s: log-probability"].reshape(200, 4)
    relevant = Y.toarray() > 0
    gap = [odds[relevant[:, j], j].mean() - odds[~relevant[:, j], j].mean() for j in range(4)]
    assert gap[0] > 0.5 > max(gap[1:])


def test_what_is_usual_for_one_label_is_unusual_for_another():
    rng = np.random.default_rng(0)
    scores = rng.random((300, 2)) + np.array([0.0, 2.0])
    scores[0] = 2.5
    given = Given(300, 2, {"s": sp.csr_matrix(scores.astype(np.float32))})
    Y = sp.csr_matrix(np.tile(np.float32([0, 1]), (300, 1)))
    data = TrainingSet(np.zeros((300, 0), np.float32), Y, np.arange(300) % 5, given=given)
    columns = GivenScorer(given="s").fit(data.view()).score(given[:1], Candidates.all_labels(1, 2))
    unusual = columns["s: score against label's usual"]
    assert unusual[0] > 2 > abs(unusual[1])
    assert columns["s: label's usual score"][0] < columns["s: label's usual score"][1]
    # The order of the scores alone counts.
    curved = Given(300, 2, {"s": sp.csr_matrix(np.exp(scores).astype(np.float32))})
    data = TrainingSet(np.zeros((300, 0), np.float32), Y, np.arange(300) % 5, given=curved)
    again = GivenScorer(given="s").fit(data.view()).score(curved[:1], Candidates.all_labels(1, 2))
    for name in OF_LABELS:
        assert again[f"s: {name}"].tobytes() == columns[f"s: {name}"].tobytes()


def companions(n: int = 200) -> TrainingSet:
    """Label 2 is relevant where label 0 is proposed, and never proposed itself."""
    rng = np.random.default_rng(1)
    proposed = (0.2 + rng.random((n, 2))) * (rng.random((n, 2)) < 0.5)
    Y = np.column_stack([proposed > 0.1, proposed[:, 0] > 0.1, np.zeros(n)])
    Y = sp.csr_matrix(Y.astype(np.float32))
    S = sp.csr_matrix(np.hstack([proposed, np.zeros((n, 2))]).astype(np.float32))
    return TrainingSet(np.zeros((n, 0), np.float32), Y, np.arange(n) % 5, given=Given(n, 4, {"s": S}))


def test_rows_with_such_candidates_have_labels_that_nobody_proposed():
    data = companions()
    scorer = GivenLinear(given=["s"]).fit(data.view())
    [column] = scorer.score(data.given, Candidates.all_labels(200, 4)).values()
    columns = column.reshape(200, 4)
    right = data.Y.toarray()[:, 2] > 0
    assert columns[right, 2].min() > columns[~right, 2].max()
    assert not columns[:, 3].any()  # no row has it
    found = scorer.shortlist(data.given, 3)
    assert (np.diff(found.indptr) == 3).all()
    assert found.recall(data.Y) > 0.95


@pytest.mark.parametrize("what", ["no candidate", "no label"])
def test_rows_of_which_nothing_is_known_score_alike(what):
    data = companions(20)
    if what == "no candidate":
        data.given = Given(20, 4, {"s": sp.csr_matrix((20, 4), dtype=np.float32)})
    else:
        data.Y = sp.csr_matrix((20, 4), dtype=np.float32)
    scorer = GivenLinear(given=["s"]).fit(data.view())
    [column] = scorer.score(data.given, Candidates.all_labels(20, 4)).values()
    columns = column.reshape(20, 4)
    assert (columns == columns[0]).all()
    assert np.isfinite(columns).all()

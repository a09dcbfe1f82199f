from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank.types.candidates import Candidates, canonical_csr


def random_candidates(rng, n, n_labels, name="score"):
    mask = rng.random((n, n_labels)) < 0.4
    scores = sp.csr_matrix(mask * rng.integers(1, 5, (n, n_labels)).astype(np.float32))
    return Candidates.from_csr(scores, name)


def as_dicts(c, name="score"):
    return [
        dict(zip(c.labels[a:b].tolist(), c.scores[name][a:b].tolist()))
        for a, b in zip(c.indptr[:-1], c.indptr[1:])
    ]


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 7), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_top_keeps_the_best_with_ties_to_the_smaller_id(seed, n, n_labels, k):
    c = random_candidates(np.random.default_rng(seed), n, n_labels)
    for before, after in zip(as_dicts(c), as_dicts(c.top(k))):
        best = sorted(before, key=lambda lab: (-before[lab], lab))[:k]
        assert sorted(best) == list(after)
        assert all(after[lab] == before[lab] for lab in best)


def test_top_of_empty_lists_and_of_scores_that_are_not_finite():
    scores = np.array([np.nan, 1, -np.inf, np.inf, 2, 2], np.float32)
    c = Candidates(np.array([0, 0, 4, 6, 6]), np.array([0, 1, 2, 3, 0, 1]), 4, {"score": scores})
    two, one = c.top(2), c.top(1)
    assert (two.indptr.tolist(), two.labels.tolist()) == ([0, 0, 2, 4, 4], [1, 3, 0, 1])
    assert (one.indptr.tolist(), one.labels.tolist()) == ([0, 0, 1, 2, 2], [3, 0])
    np.testing.assert_array_equal(c.top(3).labels, [1, 2, 3, 0, 1])
    np.testing.assert_array_equal(c.top(10**9).scores["score"], scores)
    none = Candidates(np.zeros(1, np.int64), np.zeros(0, np.int32), 4, {"score": np.zeros(0)})
    assert none.top(3).n_rows == 0


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_union_holds_every_pair_once_and_fills_missing_scores_with_the_row_minimum(seed):
    rng = np.random.default_rng(seed)
    a, b = random_candidates(rng, 5, 6, "a"), random_candidates(rng, 5, 6, "b")
    u = a.union(b)
    for da, db, ua, ub in zip(as_dicts(a, "a"), as_dicts(b, "b"), as_dicts(u, "a"), as_dicts(u, "b")):
        assert list(ua) == sorted(set(da) | set(db))
        assert ua == {lab: da.get(lab, min(da.values(), default=0.0)) for lab in ua}
        assert ub == {lab: db.get(lab, min(db.values(), default=0.0)) for lab in ub}


def test_recall_is_the_share_of_relevant_pairs_proposed():
    c = Candidates(np.array([0, 2, 3]), np.array([0, 2, 1]), 3)
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 2, 1]]))
    assert c.recall(Y) == pytest.approx(2 / 4)
    assert c.recall(sp.csr_matrix((2, 3))) == 1.0


def test_rows_selects_and_reorders():
    c = random_candidates(np.random.default_rng(0), 6, 5)
    assert as_dicts(c.rows([4, 0, 4])) == [as_dicts(c)[i] for i in (4, 0, 4)]
    assert as_dicts(c.rows(slice(2, 4))) == as_dicts(c)[2:4]


@pytest.mark.parametrize(
    ("indptr", "labels", "message"),
    [
        ([0, 2], [1, 1], "ascending and distinct"),
        ([0, 2], [2, 1], "ascending and distinct"),
        ([0, 1], [3], r"in \[0, 3\), got 3 to 3"),
        ([0, 1], [-1], r"in \[0, 3\)"),
        ([0, 2, 1, 2], [0, 1], "must not decrease"),
        ([0, 1], [0, 1], "end at the number of pairs"),
        ([1, 2], [0, 1], "start at 0"),
        ([], [], "start at 0"),
    ],
)
def test_malformed_candidates_are_refused(indptr, labels, message):
    with pytest.raises(ValueError, match=message):
        Candidates(np.array(indptr, np.int64), np.array(labels, np.int32), 3)


def test_a_row_boundary_may_step_down():
    c = Candidates(np.array([0, 0, 2, 3, 3]), np.array([1, 2, 0]), 3)
    assert c.row_of_pair.tolist() == [1, 1, 2]


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_transpose(seed, n, n_labels):
    c = random_candidates(np.random.default_rng(seed), n, n_labels)
    by_label = c.transpose()
    np.testing.assert_array_equal(by_label.to_csr().toarray(), c.to_csr().toarray().T)
    back = by_label.transpose()
    assert [a.tobytes() for a in (back.indptr, back.labels, back.scores["score"])] == [
        a.tobytes() for a in (c.indptr, c.labels, c.scores["score"])
    ]


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_united_is_the_union_of_all_parts_without_scores(seed, n_parts):
    rng = np.random.default_rng(seed)
    parts = [random_candidates(rng, 6, 7) for _ in range(n_parts)]
    slow = reduce(Candidates.union, parts)
    united = Candidates.united(parts)
    np.testing.assert_array_equal(united.indptr, slow.indptr)
    np.testing.assert_array_equal(united.labels, slow.labels)
    assert (united.n_labels, united.scores) == (7, {})
    assert united.labels.dtype == np.int32


def test_united_refuses_parts_that_do_not_agree():
    c = Candidates.all_labels(2, 3)
    for other in (Candidates.all_labels(2, 4), Candidates.all_labels(3, 3)):
        with pytest.raises(ValueError, match="must agree in rows and labels"):
            Candidates.united([c, other])


def test_canonical_matrices_of_one_shape_share_nothing():
    one, two = (canonical_csr(np.array([value]), [1], [0, 1], (1, 3), np.float64) for value in (2, 5))
    one.data[:], one.indices[:] = 7, 0
    assert (two.toarray() == [[0, 5, 0]]).all()
    assert two.dtype == np.float64
    assert two.has_canonical_format
    assert two.has_sorted_indices
    assert canonical_csr([], [], [0, 0], (1, 3)).nnz == 0

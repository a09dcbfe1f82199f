"""`Ranking`: the k best labels of each row."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.metrics import evaluate, per_row
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking


def slow_top_k(scores, k):
    labels = np.full((len(scores), k), -1, np.int32)
    for i, s in enumerate(scores):
        listed = [j for j in np.lexsort((np.arange(len(s)), -s)) if s[j] > -np.inf][:k]
        labels[i, : len(listed)] = listed
    return labels


@pytest.mark.parametrize("k", [1, 3, 9, 15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unlisted", [0.0, 0.6])
def test_from_scores_agrees_with_a_slow_twin(k, dtype, unlisted):
    rng = np.random.default_rng(k)
    scores = rng.integers(-3, 4, (600, 9)).astype(dtype)
    scores[rng.random(scores.shape) < unlisted] = -np.inf
    expected = slow_top_k(scores, k)
    row, label = np.nonzero(scores > -np.inf)
    csr = sp.csr_matrix((scores[row, label], (row, label)), shape=scores.shape)
    for container in (scores, csr, Candidates.from_csr(csr)):
        for n_jobs in (1, 4):
            got = Ranking.from_scores(container, k, n_jobs=n_jobs)
            np.testing.assert_array_equal(got.labels, expected)
            listed = expected >= 0
            taken = np.take_along_axis(scores, np.maximum(expected, 0).astype(np.int64), axis=1)
            np.testing.assert_array_equal(got.scores, np.where(listed, taken, -np.inf))


@pytest.mark.parametrize(
    ("scores", "refused"),
    [
        ([[2, 0, 1], [0, 1, 2]], True),
        ([[2, 0, -1], [-1, -1, -1], [1, -1, -1]], True),  # padded, as a Ranking is
        ([[2.0, 0.0, 1.0], [0.0, 1.0, 2.0]], False),  # floats are scores, whatever their values
        ([[2, 0, 1], [1, 1, 2]], False),
        ([[3, 0, 1], [0, 1, 2]], False),
        ([[2, -1, 1], [0, 1, 2]], False),
        ([[-2, 0, 1], [0, 1, 2]], False),
        ([[1, 0], [0, 1]], False),  # decisions on two labels
        ([[-1, -1, -1]], False),
        (np.zeros((0, 3), np.int32), False),
        ([[4, 0, 1]], False),
    ],
)
def test_ids_are_no_scores(scores, refused):
    Y = np.ones(np.shape(scores))
    if not refused:
        evaluate(Y, scores, ["nDCG"])
        return
    for take in (
        lambda: evaluate(Y, scores, ["nDCG"]),
        lambda: per_row(Y, np.array(scores, np.int32), "P@1"),
        lambda: Ranking.from_scores(scores, 2),
    ):
        with pytest.raises(ValueError, match=r"^scores must not be label ids, .* below 3: pass the Ranking"):
            take()


def test_ids_of_a_ranking_are_refused_as_scores():
    scores = np.random.default_rng(0).random((5, 7))
    Y = scores > 0.6
    ranking = Ranking.from_scores(scores, 7)
    assert evaluate(Y, ranking, ["MAP"]) == evaluate(Y, scores, ["MAP"])
    with pytest.raises(ValueError, match="label ids"):
        evaluate(Y, ranking.labels, ["MAP"])


def test_from_candidates_with_values():
    c = Candidates(np.array([0, 2, 3]), np.array([1, 4, 0]), 5, {"a": np.array([1.0, 2.0, 3.0])})
    assert Ranking.from_scores(c, 2).labels.tolist() == [[4, 1], [0, -1]]
    assert Ranking.from_scores(c, 2, values=np.array([5.0, 2.0, 3.0])).labels.tolist() == [[1, 4], [0, -1]]
    with pytest.raises(ValueError, match="values must have shape"):
        Ranking.from_scores(c, 2, values=np.ones(2))
    with pytest.raises(ValueError, match="values need Candidates"):
        Ranking.from_scores(np.ones((1, 2)), 2, values=np.ones(2))
    with pytest.raises(ValueError, match="carry no scores"):
        Ranking.from_scores(Candidates.all_labels(1, 2), 2)


def test_a_listed_label_survives_the_narrowing_of_its_score():
    r = Ranking.from_scores(np.array([[-1e300, 1e300]]), 2)
    assert r.labels.tolist() == [[1, 0]]
    assert np.isfinite(r.scores[0, 1])


def test_views_and_exports():
    names = ["a", "b", "c"]
    r = Ranking.from_scores(np.array([[0.0, 2.0, 1.0], [5.0, -np.inf, 4.0]]), 3, label_names=names)
    assert (len(r), r.n_rows, r.k, r.n_labels) == (2, 2, 3, 3)
    assert list(r) == [[(1, 2.0), (2, 1.0), (0, 0.0)], [(0, 5.0), (2, 4.0)]]
    assert r.top(1).labels.tolist() == [[1], [0]]
    assert r.top(9).k == 3
    assert r.rows([1, 0, 1]).labels[:, 0].tolist() == [0, 1, 0]
    assert r.rows(slice(1)).label_names is names
    csr = r.to_csr()
    assert csr.nnz == 5  # the score 0 is stored
    assert csr.toarray().tolist() == [[0, 2, 1], [5, 0, 4]]
    np.testing.assert_array_equal(Ranking.from_scores(csr, 3).labels, r.labels)
    frame = r.to_frame()
    assert list(frame.columns) == ["row", "rank", "label", "label_name", "score"]
    assert frame.iloc[4].tolist() == [1, 2, 2, "c", 4.0]
    assert "label_name" not in Ranking(r.labels, r.scores, 3).to_frame()
    none = Ranking.from_scores(np.zeros((0, 4)), 2)
    assert (len(none), none.k, list(none), none.to_csr().shape) == (0, 2, [], (0, 4))


def test_rows_by_number_and_names():
    scores = np.array([[0.0, 2.0, 1.0], [5.0, -np.inf, 4.0]])
    r = Ranking.from_scores(scores, 3, label_names=["tree", "", "tree"])
    assert [r[i] for i in range(2)] == list(r)
    assert r[-1] == r[np.int64(1)] == [(0, 5.0), (2, 4.0)]
    for rows in (slice(1, 2), [1], np.array([1]), np.array([False, True])):
        assert isinstance(r[rows], Ranking)
        assert r[rows].labels.tolist() == [[0, 2, -1]]
    assert len(r[[]]) == len(r[:0]) == 0
    with pytest.raises(IndexError):
        r[2]
    with pytest.raises(TypeError, match="only by rows"):
        r[0, 1]
    assert r.names.tolist() == [["1", "tree (id 2)", "tree (id 0)"], ["tree (id 0)", "tree (id 2)", None]]
    assert Ranking.from_scores(scores, 1).names.tolist() == [["1"], ["0"]]
    assert r[:0].names.shape == (0, 3)


def test_index():
    r = Ranking(np.array([[0], [1]]), np.ones((2, 1)), 2, index=[("a", 1), ("b", 2)])
    assert list(r.to_frame()["row"]) == [("a", 1), ("b", 2)]
    assert list(Ranking.concatenate([r, r[:1]]).index) == [("a", 1), ("b", 2), ("a", 1)]
    assert Ranking.concatenate([r, Ranking(r.labels, r.scores, 2)]).index is None
    with pytest.raises(ValueError, match="index must have 2 entries, got 1"):
        Ranking(r.labels, r.scores, 2, index=["a"])


def test_to_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    columns = Ranking.from_scores(np.array([[1.0, 2.0]]), 1).to_frame()
    assert {name: column.tolist() for name, column in columns.items()} == {
        "row": [0],
        "rank": [1],
        "label": [1],
        "score": [2.0],
    }


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([[3]], [[1.0]], "lie in"),
        ([[-2]], [[1.0]], "lie in"),
        ([[0.5]], [[1.0]], "ids"),
        ([0, 1], [1.0, 0.0], "ids"),
        ([[0, 1]], [[1.0]], "shape"),
        ([[-1, 0]], [[1.0, 0.0]], "at the end"),
        ([[0, 1]], [[1.0, 2.0]], "not increase"),
        ([[0, 1]], [[1.0, np.nan]], "NaN"),
        ([[0, 1]], [[1.0, -np.inf]], "-inf"),
        ([[0, 1, 0]], [[3.0, 2.0, 1.0]], "distinct"),
    ],
)
def test_bad_arrays(labels, scores, message):
    with pytest.raises(ValueError, match=message):
        Ranking(np.array(labels), np.array(scores), 3)


def test_bad_arguments():
    with pytest.raises(ValueError, match="label_names must hold 3"):
        Ranking(np.array([[0]]), np.array([[1.0]]), 3, ["a"])
    with pytest.raises(ValueError, match="k must be a positive integer"):
        Ranking.from_scores(np.ones((1, 2)), 0)
    with pytest.raises(ValueError, match="NaN"):
        Ranking.from_scores(np.array([[np.nan]]), 1)
    with pytest.raises(ValueError, match="NaN"):
        Ranking.from_scores(sp.csr_matrix(np.array([[np.nan]])), 1)
    with pytest.raises(TypeError, match="numbers"):
        Ranking.from_scores(np.array([["a"]]), 1)

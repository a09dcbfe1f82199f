"""Integers as labels: names in order of value wherever labels come in lists, never a matrix of their size."""

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from metarank import Dataset, MetaRanker, load
from metarank.data import from_frame, parse_xc, to_parquet
from metarank.data import load as load_data
from metarank.scorers.trees.parabel import Parabel

TEXTS = makers.texts()
IDS = [[int(10**j) for j in row.indices] for row in TEXTS.Y]  # 1, 10, 100 for 0, 1, 2
DENSE = makers.dense(60, 3)


def model(Y, X=DENSE.X, **options) -> MetaRanker:
    return MetaRanker(**makers.QUICK).fit(X, Y, **options)


@pytest.mark.parametrize(
    ("Y", "names"),
    [
        ([[1], [2]], ["1", "2"]),
        ([[10], [2, 10], []], ["2", "10"]),
        ([[10**8], [0]], ["0", "100000000"]),
        ([np.array([3, 1]), (1,)], ["1", "3"]),
        ([[1.0], [2.0]], ["1", "2"]),
        (np.array([2, 10, 2]), ["2", "10"]),
        (np.array([-1, 1, -10]), ["-10", "-1", "1"]),
        (pd.Series([7, 9]), ["7", "9"]),
    ],
    ids=str,
)
def test_ids_in_lists_are_names_in_order_of_value(Y, names):
    ds = Dataset(np.ones((len(Y), 2)), Y)
    assert (ds.label_names, ds.label_names_are_ids, ds.n_labels) == (names, True, len(names))
    for row, given in zip(ds.Y, Y):
        assert [names[j] for j in row.indices] == [
            str(int(v)) for v in np.unique(np.asarray(given, dtype=float))
        ]
    assert ds.take([0]).label_names_are_ids


def test_n_labels_and_matrices_make_places_of_them():
    assert Dataset(np.ones((2, 2)), [[1], [2]], n_labels=4).Y.toarray().tolist() == [
        [0, 1, 0, 0],
        [0, 0, 1, 0],
    ]
    assert Dataset(np.ones((2, 2)), [[1], [0]], label_names=["a", "b"]).Y.toarray().tolist() == [
        [0, 1],
        [1, 0],
    ]
    with pytest.raises(ValueError, match=r"Y must hold label ids in \[0, 2\), got 2 at row 1"):
        Dataset(np.ones((2, 2)), [[1], [2]], n_labels=2)
    lists = [row.indices.tolist() for row in DENSE.Y]
    places = model(lists, n_labels=5)
    assert (places.n_labels_, places.label_names_) == (5, None)
    assert "labels: integers are ids in [0, 5)" in places.choices_
    with pytest.raises(ValueError, match="Y must have 7 labels, got 3"):
        MetaRanker().fit(DENSE, n_labels=7)


def test_a_model_of_ids_is_that_of_a_matrix_and_keeps_them(tmp_path):
    by_matrix, by_name = model(DENSE.Y), model([[int(10**j) for j in row.indices] for row in DENSE.Y])
    assert by_name.label_names_ == ["1", "10", "100"]
    assert "labels: integers are names, 3 from 1 to 100; n_labels makes them ids" in by_name.choices_
    assert np.array_equal(by_matrix.decision_function(DENSE.X), by_name.decision_function(DENSE.X))
    by_name.save(tmp_path / "m")
    again = load(tmp_path / "m")
    new = [[100], [1, 10]] * 30
    indicator = np.array([[0, 0, 1], [1, 1, 0]] * 30)
    assert again.score(DENSE.X, new) == by_matrix.score(DENSE.X, indicator)
    again.partial_fit(DENSE.X, new)
    by_matrix.partial_fit(DENSE.X, indicator)
    assert np.array_equal(again.decision_function(DENSE.X), by_matrix.decision_function(DENSE.X))
    with pytest.raises(ValueError, match="only labels of this model, got '2'"):
        again.partial_fit(DENSE.X, [[1], [2]] * 30)


def test_ids_are_no_words(tmp_path):
    """A text that holds the number of a label does not speak for it."""
    numbered = [f"{text} {10 ** int(row.indices[0])}" for text, row in zip(TEXTS.texts, TEXTS.Y)]
    plain = MetaRanker(**makers.QUICK).fit(numbered, TEXTS.Y)
    for X, Y in (
        (numbered, IDS),
        (Dataset(texts=numbered, Y=IDS), None),
        (from_frame(pd.DataFrame({"t": numbered, "y": IDS}), text_column="t", labels_column="y"), None),
    ):
        fitted = MetaRanker(**makers.QUICK).fit(X, Y)
        assert fitted.feature_columns_ == plain.feature_columns_
        assert np.array_equal(fitted.decision_function(numbered), plain.decision_function(numbered))
    path = tmp_path / "ids.parquet"
    to_parquet(Dataset(texts=numbered, Y=IDS), path)
    assert load_data(path).label_names_are_ids


def test_a_large_id_asks_for_no_memory_of_its_size():
    assert model([[10**8], [3]] * 30).n_labels_ == 2
    with pytest.raises(ValueError, match=r"label ids must be below 4194304 .* got 100000000"):
        parse_xc(b"100000000 0:1\n1 1:1\n")
    with pytest.raises(ValueError, match=r"Y must hold label ids below 4194304 .* got 100000000 at row 0"):
        Parabel().fit(DENSE.X, [[10**8], [3]] * 30)
    with pytest.raises(ValueError, match=r"Y must hold integer label ids in \[0, 2\^63\)"):
        model([[2**63], [3]] * 30)


@pytest.mark.check
def test_objectives_by_ids():
    seen, bought = [[2], [10, 2]] * 30, [[100], [10]] * 30
    several = MetaRanker(**{**makers.QUICK, "ranker": "auto"}).fit(DENSE.X, {"seen": seen, "bought": bought})
    assert several.label_names_ == ["2", "10", "100"]
    beside = {"seen": sp.csr_matrix(np.eye(3)[[0, 1] * 30]), "bought": [[2], [1]] * 30}
    assert MetaRanker(**{**makers.QUICK, "ranker": "auto"}).fit(DENSE.X, beside).label_names_ is None


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([["a"], ["a "]], "Y must be names of one label each, got 'a' and 'a ', which differ only in blanks"),
        ([["a"], [""]], "Y must be names, got the empty ''"),
        ([["a"], ["\ud800"]], "Y must be names that UTF-8 can write"),
        (pd.DataFrame([[1, 0], [0, 1]], columns=["a", "a"]), "columns of Y .* got 'a' twice"),
        (pd.DataFrame([[1, 0], [0, 1]], columns=["a", " "]), "columns of Y must be names, got the empty"),
        (np.zeros((2, 3)), "Y must hold a relevant label"),
    ],
    ids=str,
)
def test_names_that_are_the_ids_are_told_apart(Y, message):
    with pytest.raises(ValueError, match=message):
        MetaRanker().fit([[1.0], [2.0]], Y)


def test_labels_with_ids_of_their_own_may_share_a_name():
    shared = Dataset(np.ones((2, 2)), np.eye(2), label_names=["a", "a"])
    assert shared.label_names == ["a", "a"]
    with pytest.raises(ValueError, match=r"the name of labels 0, 1"):
        Dataset(np.ones((2, 2)), [["a"], ["a"]], label_names=["a", "a"])

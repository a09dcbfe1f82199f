"""What is known of labels: the table, its rules and relations, and where the labels of Y are in it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import load, persist
from metarank.data import LabelDescriptions
from metarank.types.label_descriptions import ancestors, depths, relation

FULL = {
    "ids": ["p1", "p2", "p3", 4],
    "names": ["vessels", "boats", "", "boats"],
    "alternative_names": [[], ["small craft", "dinghies"], None, ["canoes"]],
    "descriptions": ["What floats.", None, "", "Of bark."],
    "parents": [[], ["p1"], ["vessels"], ["p2", "p3"]],
    "related": [["p3"], [], [], []],
    "vectors": [[1, 0], None, [0.5, 2], np.array([3, 4])],
}


def test_a_table_is_what_was_given_and_saved_whole(tmp_path):
    labels = LabelDescriptions(**FULL)
    assert (labels.ids, labels.shown_names) == (["p1", "p2", "p3", "4"], ["vessels", "boats", "p3", "boats"])
    assert labels.alternative_names == [[], ["small craft", "dinghies"], [], ["canoes"]]
    assert labels.descriptions == ["What floats.", "", "", "Of bark."]
    assert labels.depth.tolist() == [0, 1, 1, 2]
    assert np.argwhere(labels.parents.toarray()).tolist() == [[1, 0], [2, 0], [3, 1], [3, 2]]
    assert np.argwhere(labels.related.toarray()).tolist() == [[0, 2], [2, 0]]
    np.testing.assert_array_equal(labels.vectors, np.float32([[1, 0], [0, 0], [0.5, 2], [3, 4]]))
    persist.save(labels, tmp_path / "T")
    for again in (LabelDescriptions(**labels.columns()), load(tmp_path / "T")):
        assert repr(again.columns()) == repr(labels.columns())
        np.testing.assert_array_equal(again.depth, labels.depth)


BAD = [
    ({"descriptions": ["a"]}, "needs ids or names"),
    ({"names": []}, "must have a label, got none"),
    ({"ids": ["a", "b", "a"]}, "ids must be names of one label each, got 'a' twice"),
    ({"ids": ["a", " "]}, "ids must be names, got the empty ' '"),
    ({"ids": [1.5]}, "ids must be texts or integers, got 1.5"),
    ({"names": ["a", "a"]}, "got 'a' twice"),
    (
        {"names": ["a", "b"], "descriptions": ["x"]},
        "descriptions must have an entry for each of the 2 names, got 1",
    ),
    (
        {"names": ["a", "b"], "alternative_names": [[], ["c", "c "]]},
        "must hold names, each once .* got .'c', 'c '. of 'b'",
    ),
    ({"names": ["a", "b"], "alternative_names": [["a"], []]}, "the name of its label, got .'a'. of 'a'"),
    ({"names": ["a"], "alternative_names": [[" "]]}, "alternative_names must hold names.* got .' '. of 'a'"),
    ({"names": ["a"], "alternative_names": ["c|d"]}, "names must hold a list per label, got 'c|d'"),
    ({"names": ["a", "b"], "parents": [[], ["z"]]}, "parents of label 'b' must name known labels.* got 'z'"),
    ({"names": ["a"], "related": [["z"]]}, "related of label 'a' must name known labels.* got 'z'"),
    (
        {"ids": ["1", "2", "3"], "names": ["a", "b", "b"], "parents": [["b"], [], []]},
        "parents of label 'a' must name a label by its id if several share the name, got 'b'",
    ),
    (
        {"names": ["a", "b", "c", "d"], "parents": [["b"], ["c"], ["a"], ["a"]]},
        r"parents must not form a cycle, got 'c' -> 'a', which is below it",
    ),
    ({"names": ["a"], "parents": [["a"]]}, "cycle, got 'a' -> 'a'"),
    ({"names": ["a"], "parents": sp.csr_matrix((1, 2))}, r"parents must have shape \(1, 1\), got \(1, 2\)"),
    ({"names": ["a", "b"], "vectors": [[1, 2], [1, 2, 3]]}, "vectors must be numbers, as many of each label"),
    (
        {"names": ["a", "b"], "vectors": [[1, 2], [1, np.nan]]},
        "vectors must hold finite numbers, got nan of label 'b'",
    ),
    ({"names": ["a"], "vectors": [["x"]]}, "vectors must be numbers, as many of each label"),
    ({"names": ["a"], "vectors": [None]}, "vectors must be numbers \\(L, dv\\)"),
]


@pytest.mark.parametrize(("columns", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_tables_are_refused_in_one_line(columns, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        LabelDescriptions(**columns)
    assert "\n" not in str(caught.value)


# --- labels of Y in the table ------------------------------------------------------


def test_labels_of_y_are_found_by_id_and_by_name():
    labels = LabelDescriptions(ids=["p1", "p2", "p3"], names=["sea", "sun", "p1"])
    Y = sp.csr_matrix(np.float32([[1, 0, 2], [0, 3, 1]]))
    found, table = labels.covering(Y, ["sun", "p1", "p2"])
    assert table is labels
    np.testing.assert_array_equal(found.toarray(), [[0, 2, 0], [3, 1, 0]])
    same, _ = labels.covering(Y, None)
    assert same is Y


def test_labels_that_the_table_lacks_are_kept_and_named():
    labels = LabelDescriptions(names=["sea", "sun"], alternative_names=[["ocean"], []], vectors=np.eye(2))
    Y = sp.csr_matrix(np.float32([[1, 1], [0, 1]]))
    with pytest.warns(UserWarning, match="that the table of labels lacks: 'sand'"):
        found, table = labels.covering(Y, ["sand", "sea"])
    assert table.names == ["sea", "sun", "sand"]
    assert table.alternative_names == [["ocean"], [], []]
    np.testing.assert_array_equal(found.toarray(), [[1, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x", "y"], "labels must have those of Y by id or name, got none, such as 'x'"),
        (None, "Y must have a column for each of the 3 labels of the table, or names, got 2 columns"),
        (["a", "b"], "Y must name a label by its id if several share the name, got 'b'"),
    ],
)
def test_a_table_of_other_labels_is_refused(names, message):
    labels = LabelDescriptions(ids=["1", "2", "3"], names=["a", "b", "b"])
    with pytest.raises(ValueError, match=message):
        labels.covering(sp.csr_matrix(np.ones((1, 2), np.float32)), names)


# --- relations -----------------------------------------------------------------------


def test_ancestors_and_depths_agree_with_walks():
    rng = np.random.default_rng(0)
    n = 60
    child, parent = rng.integers(0, n, 90), rng.integers(0, n, 90)
    order = rng.permutation(n)  # so that no order of the labels is that of the hierarchy
    pairs = [(order[max(a, b)], order[min(a, b)]) for a, b in zip(child, parent) if a != b]
    parents = relation(*zip(*pairs), n)
    above = {label: set(parents[label].indices.tolist()) for label in range(n)}

    def walk(label):
        return set().union(*({p} | walk(p) for p in above[label])) if above[label] else set()

    def depth(label):
        return 1 + max(map(depth, above[label])) if above[label] else 0

    found = ancestors(parents)
    assert [set(found[label].indices.tolist()) for label in range(n)] == [walk(label) for label in range(n)]
    assert depths(parents).tolist() == [depth(label) for label in range(n)]

"""Metrics of judged labels only: unjudged ones are removed from lists and sets before the metric."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Ranking, metrics
from metarank.types.candidates import Candidates

# Label 0 is relevant, 3 too, 1 was rejected; 2 and 4 were never looked at.
Y = np.array([[1, 0, 0, 1, 0]])
SCORES = np.array([[0.5, 0.4, 0.9, 0.3, 0.8]])
JUDGED = [[1]]


@pytest.mark.parametrize(
    ("name", "plain", "condensed"),
    [
        # The list is 2, 4, 0, 1, 3, and condensed 0, 1, 3.
        ("P@1", 0, 1),
        ("P@3", 1 / 3, 2 / 3),
        ("R@2", 0, 1 / 2),
        ("MRR", 1 / 3, 1),
        ("MAP", (1 / 3 + 2 / 5) / 2, (1 + 2 / 3) / 2),
        ("One-error", 1, 0),
        ("nDCG@3", (1 / 2) / (1 + 1 / np.log2(3)), (1 + 1 / 2) / (1 + 1 / np.log2(3))),
        ("MRR-all", (1 / 3 + 1 / 5) / 2, (1 + 1 / 3) / 2),
    ],
)
def test_by_hand(name, plain, condensed):
    found = metrics.evaluate(Y, SCORES, [name], judged=JUDGED)[name]
    assert found == pytest.approx(condensed)
    assert metrics.evaluate(Y, SCORES, [name])[name] == pytest.approx(plain)
    assert metrics.per_row(Y, SCORES, name, judged=JUDGED) == pytest.approx([condensed])


@pytest.mark.parametrize(
    ("name", "condensed"), [("micro-F1", 2 / 4), ("example-F1", 2 / 4), ("macro-F1", (1 + 0 + 0) / 3)]
)
def test_sets_by_hand(name, condensed):
    """Of the set 0, 1, 2 the label 2 is removed: one right, one wrong, one missed."""
    found = metrics.evaluate(Y, None, [name], Y_pred=[[1, 1, 1, 0, 0]], judged=JUDGED)[name]
    if (
        name == "macro-F1"
    ):  # the labels that are neither relevant nor in a set count as plain macro-F1 counts them
        plain = metrics.evaluate(Y, None, [name], Y_pred=[[1, 1, 0, 0, 0]])[name]
        assert found == pytest.approx(plain)
    else:
        assert found == pytest.approx(condensed)


def test_every_container_gives_the_same():
    rng = np.random.default_rng(0)
    scores = rng.permutation(200 * 12).reshape(200, 12).astype(np.float32)
    truth = (rng.random((200, 12)) < 0.2).astype(np.float32)
    judged = sp.csr_matrix((rng.random((200, 12)) < 0.4) & (truth == 0))
    names = ["P@3", "nDCG", "MAP", "Coverage", "ADG"]
    values = [
        metrics.evaluate(truth, form, names, judged=judged)
        for form in (scores, sp.csr_matrix(scores + 1), Ranking.from_scores(scores, 12))
    ]
    assert values[0] == values[1] == values[2]
    lists = [row.indices.tolist() for row in judged]
    assert metrics.evaluate(truth, scores, names, judged=lists) == values[0]


def test_all_judged_is_the_plain_metric():
    rng = np.random.default_rng(1)
    scores, truth = rng.random((50, 6)), (rng.random((50, 6)) < 0.3).astype(float)
    every = sp.csr_matrix(np.ones((50, 6)))
    names = ["P@1", "nDCG@3", "MAP", "MRR-all", "Coverage"]
    assert metrics.evaluate(truth, scores, names, judged=every) == metrics.evaluate(truth, scores, names)


def test_what_is_not_listed_stays_so():
    """Label 3 is relevant and in no list: never found, and last where ties count against the prediction."""
    ranking = Ranking(np.int32([[2, 0]]), np.float32([[2, 1]]), 5)
    found = metrics.evaluate(Y, ranking, ["P@2", "R@2", "MAP"], judged=JUDGED)
    # Condensed: 0, then 1 and 3 tied.
    assert found == pytest.approx({"P@2": 1 / 2, "R@2": 1 / 2, "MAP": (1 + 2 / 3) / 2})
    none = Candidates(np.array([0, 0]), np.array([], np.int32), 5, {"s": np.array([], np.float32)})
    assert metrics.evaluate(Y, none, ["P@2"], judged=JUDGED) == {"P@2": 0}


@pytest.mark.parametrize(
    "name", ["RankLoss", "AUC", "Hamming", "subset-accuracy", "LabelCoverage", "WP-l@2", "RMSE"]
)
def test_what_counts_all_labels_refuses(name):
    with pytest.raises(ValueError, match=f"judged does not go with '{name}', which counts all labels"):
        metrics.evaluate(Y, SCORES, [name], Y_pred=Y, judged=JUDGED)


@pytest.mark.parametrize(
    ("judged", "error", "said"),
    [
        ([[1], [1]], ValueError, "judged must have 1 rows and 5 labels, got 2 and 5"),
        ([[5]], ValueError, "judged .*5"),
        (sp.csr_matrix((1, 4)), ValueError, "judged must have 1 rows and 5 labels, got 1 and 4"),
        ([1], TypeError, "judged must hold a list of labels"),
        (np.ones((1, 5), int), TypeError, "judged must"),
    ],
)
def test_bad_input(judged, error, said):
    with pytest.raises(error, match=said):
        metrics.evaluate(Y, SCORES, ["P@1"], judged=judged)
    with pytest.raises(ValueError, match="scores must have the shape of Y_true"):
        metrics.evaluate(Y, SCORES[:, :4], ["P@1"], judged=JUDGED)

"""Rejected labels are irrelevant, and all others without a label unjudged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from makers import QUICK, saved_bytes

from metarank import MetaRanker, data
from metarank.model.fitting.unjudged import believed_gains, labelled_share, relevant_though_unlabelled
from metarank.types.candidates import Candidates
from metarank.types.given import check_rejected
from metarank.types.label_table import LabelTable

BOTH = data.make_multilabel(900, n_features=8, n_labels=6, seed=4)
TRAIN, TEST = BOTH.take(slice(0, 600)), BOTH.take(slice(600, 900))


def half_labelled(share=0.4, reviewed=100, seed=0):
    """The training rows with two in five labels, but all of those of the first rows, and what these lack."""
    rng = np.random.default_rng(seed)
    Y = (TRAIN.Y > 0).toarray()
    shown = Y & (rng.random(Y.shape) < share)
    shown[:reviewed] = Y[:reviewed]
    rejected = np.zeros_like(Y)
    rejected[:reviewed] = ~Y[:reviewed]
    return replace(TRAIN, Y=sp.csr_matrix(shown.astype(np.float32))), sp.csr_matrix(rejected)


@pytest.fixture(scope="module")
def models():
    train, rejected = half_labelled()
    plain, judged = MetaRanker(**QUICK), MetaRanker(**QUICK)
    return plain.fit(train), judged.fit(train, negatives=rejected)


def test_probabilities_aim_at_the_truth(models):
    complete = MetaRanker(**QUICK).fit(TRAIN)
    plain, judged, whole = (float(np.mean(m.predict_proba(TEST))) for m in (*models, complete))
    assert plain < 0.75 * whole
    # A hundred reviewed rows tell the labelled share within about a tenth.
    assert abs(judged - whole) < 0.2 * whole
    # So do the sizes of label sets.
    sizes = [model.predict(TEST, "hamming").sum() for model in models]
    assert sizes[0] < sizes[1] < 1.2 * TEST.Y.nnz
    assert any(
        c.startswith("negatives: ") and "unjudged ones count as relevant" in c for c in models[1].choices_
    )


def test_every_form_is_one(models, tmp_path):
    train, rejected = half_labelled()
    lists = [row.indices.tolist() for row in sp.csr_matrix(rejected)]
    named = replace(train, label_names=list("abcdef"))
    for X, given in (
        (train, lists),
        (train, rejected.astype(np.int8)),
        (named, [["abcdef"[i] for i in r] for r in lists]),
    ):
        model = MetaRanker(**QUICK).fit(X, negatives=given)
        assert np.array_equal(model.decision_function(TEST), models[1].decision_function(TEST))


def test_no_rejection_is_none(tmp_path):
    plain = MetaRanker(**QUICK).fit(TRAIN)
    empty = MetaRanker(**QUICK).fit(TRAIN, negatives=sp.csr_matrix(TRAIN.Y.shape))
    assert saved_bytes(plain, tmp_path / "a") == saved_bytes(empty, tmp_path / "b")


@pytest.mark.parametrize(
    "params", [{}, {"shortlister": "neighbors", "shortlist_size": 3}], ids=["all", "near"]
)
def test_threads_make_no_difference(params):
    train, rejected = half_labelled()
    one, four = (MetaRanker(**QUICK | params | {"n_jobs": n}).fit(train, negatives=rejected) for n in (1, 4))
    assert np.array_equal(one.decision_function(TEST), four.decision_function(TEST))


def test_a_rejected_label_is_not_missing(models):
    train, rejected = half_labelled()
    pairs = {(m.row, m.label) for m in models[1].suggest_missing(1000)}
    assert pairs
    assert not any(rejected[row, label] or train.Y[row, label] for row, label in pairs)


DENSE = np.array([[0, 1, 0], [1, 0, 0]])
FORMS = [sp.csr_matrix(DENSE), sp.coo_array(DENSE), [["b"], ["a"]], [[1], {"a"}]]
FORMS += [pd.Series([["b"], ["a"]]), [["b"], ("a",)]]


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_negatives_take_the_forms_of_labels(form):
    found = check_rejected(form, sp.csr_matrix(np.eye(2, 3)), LabelTable(3, list("abc")))
    assert found.labels.tolist() == [1, 0]
    assert found.indptr.tolist() == [0, 1, 2]


def test_negatives_name_labels_of_a_table_by_their_ids():
    Y, rejected = [["y1"], ["y2"]] * 10, [["y2"], []] * 10
    table = [{"id": "y1", "name": "sea"}, {"id": "y2", "name": "bread"}]
    X = np.random.default_rng(0).normal(size=(20, 3))
    model, same = (
        MetaRanker(**QUICK).fit(X, Y, labels=table, negatives=given)
        for given in (rejected, [["bread"], []] * 10)
    )
    assert np.array_equal(model.decision_function(X), same.decision_function(X))


# --- the estimate --------------------------------------------------------------------


def drawn(share, reviewed, seed=0, n=2000):
    """Pairs whose relevance follows their score; of relevant ones a share is labelled, in some rows all."""
    rng = np.random.default_rng(seed)
    pairs = Candidates.all_labels(n, 5)
    scores = rng.normal(size=5 * n)
    relevant = rng.random(5 * n) < 1 / (1 + np.exp(2 - 3 * scores))
    known = np.repeat(rng.random(n) < reviewed, 5)
    gains = relevant & (known | (rng.random(5 * n) < share))
    return pairs, scores, gains.astype(np.float32), known & ~relevant, relevant


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("reviewed", [0.05, 0.3])
def test_labelled_share_by_simulation(share, reviewed):
    pairs, scores, gains, rejected, relevant = drawn(share, reviewed)
    found = labelled_share(scores, gains, rejected, in_reviewed_rows(rejected))
    assert abs(found - share) < 0.08
    # Counts of relevant pairs follow.
    believed = believed_gains(pairs, scores, gains, rejected, 0)
    assert abs(believed.sum() / relevant.sum() - 1) < 0.08
    assert not believed[rejected].any()
    assert (believed >= gains).all()


def test_without_judged_rows_all_is_labelled_and_grades_get_the_median():
    pairs, scores, gains, rejected, _ = drawn(0.5, 0.3)
    assert np.array_equal(believed_gains(pairs, scores, gains, np.zeros_like(rejected), 0), gains)
    assert set(np.unique(believed_gains(pairs, scores, 3 * gains, rejected, 0))) == {0, 3}


def in_reviewed_rows(rejected):
    return np.repeat(rejected.reshape(-1, 5).any(axis=1), 5)


def test_by_hand():
    """Three in four pairs of score 2 are labelled where nothing is reviewed, 80 % of the relevant ones: of
    any other of that score it is (1 - .8) / .8 * .75 / .25 = .75 likely that it is relevant."""
    scores = np.array([2.0, 2, 2, 2, 2, 1, 1])
    gains, reviewed = np.float32([1, 1, 1, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 1, 0, 0], bool)
    found = relevant_though_unlabelled(scores, gains, reviewed, 0.8)
    np.testing.assert_allclose(found, [0, 0, 0, 0.75, 0.75, 0, 0])


def test_share_by_hand():
    """Of the 60 surest pairs, 16 of 20 in reviewed rows are relevant and 20 of the other 40 labelled:
    f = .8 - sqrt(.8 * .2 / 20), g = .5."""
    gains = np.concatenate([np.ones(16), np.zeros(4), np.ones(20), np.zeros(20), np.ones(84), np.zeros(56)])
    scores = np.concatenate([np.ones(60), np.zeros(140)])
    place = np.arange(200)
    found = labelled_share(scores, gains, (place >= 16) & (place < 20), place < 20)
    assert found == pytest.approx(0.5 / (0.8 - np.sqrt(0.8 * 0.2 / 20)))


# --- bad input ---------------------------------------------------------------------------

LISTS = [[] for _ in range(600)]


@pytest.mark.parametrize(
    ("negatives", "said"),
    [
        (LISTS[:9], "negatives must have 600 rows and 6 labels, got 9 and 6"),
        (sp.csr_matrix((600, 2)), "negatives must have 600 rows and 6 labels, got 600 and 2"),
        (np.zeros((600, 6)), "negatives must be a sparse matrix .*, got a dense array"),
        ([[7], *LISTS[1:]], "negatives .*7"),
        ([["sea"], *LISTS[1:]], "negatives .*'sea'"),
        ([0] * 600, "negatives must"),
        ("sea", "negatives must be"),
        (TRAIN.Y, "negatives must not hold labels of Y, got .* at row .* in both"),
    ],
)
def test_bad_input(negatives, said):
    with pytest.raises((ValueError, TypeError), match=said):
        MetaRanker(**QUICK).fit(TRAIN, negatives=negatives)


def test_several_objectives_refuse():
    Y = {"relevance": TRAIN.Y, "clicks": TRAIN.Y}
    with pytest.raises(ValueError, match="negatives must be left out with several objectives"):
        MetaRanker(**QUICK | {"ranker": "auto"}).fit(TRAIN.X, Y, negatives=LISTS)

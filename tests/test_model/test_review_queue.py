"""Which pairs a person should look at first: sorted by gain, nothing known, more found than by the surest."""

from __future__ import annotations

from dataclasses import replace

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, data, load

BOTH = data.make_multilabel(700, n_features=8, n_labels=8, seed=6)
TRAIN, TEST = BOTH.take(slice(0, 300)), BOTH.take(slice(300, 700))
ROWS = replace(TEST, Y=sp.csr_matrix(TEST.Y.shape, dtype=np.float32))


@pytest.fixture(scope="module", params=[None, "neighbors"])
def model(request):
    return MetaRanker(**makers.QUICK, shortlister=request.param, shortlist_size=4).fit(TRAIN)


@pytest.mark.parametrize("goal", ["recall", "errors"])
def test_gains_are_what_they_say(model, goal):
    probabilities = sp.csr_matrix(model.predict_proba(ROWS)).toarray()
    kept = model.predict(ROWS).toarray() > 0
    gain = np.where(kept, 0 if goal == "recall" else 1 - probabilities, probabilities)
    found = model.review_queue(ROWS, 60, goal=goal)
    assert len(found) == 60
    keys = [(-pair.gain, pair.row, pair.label) for pair in found]
    assert keys == sorted(keys)
    for pair in found:
        assert pair.gain == pytest.approx(gain[pair.row, pair.label])
        assert pair.probability == pytest.approx(probabilities[pair.row, pair.label])
    if not model.shortlisters_:
        assert found[-1].gain == pytest.approx(np.sort(gain.ravel())[-60])
    assert model.review_queue(ROWS, 7, goal=goal) == found[:7]


def test_finds_more_than_the_surest_and_chance(model):
    truth, kept = (TEST.Y > 0).toarray(), model.predict(ROWS).toarray() > 0
    probabilities = sp.coo_matrix(model.predict_proba(ROWS))
    surest = np.argsort(-probabilities.data, kind="stable")[:100]

    def found_in(row, label, right):
        return int(np.count_nonzero(right[row, label]))

    for goal, right in (("recall", truth & ~kept), ("errors", truth != kept)):
        queue = np.array([(pair.row, pair.label) for pair in model.review_queue(ROWS, 100, goal=goal)]).T
        own = found_in(*queue, right)
        assert own > found_in(probabilities.row[surest], probabilities.col[surest], right)
        assert own > 1.3 * 100 * right.mean()
        # The expected gain is what is gained.
        expected = sum(pair.gain for pair in model.review_queue(ROWS, 100, goal=goal))
        assert abs(own - expected) < 20


def test_known_pairs_are_left_out(model):
    found = {(pair.row, pair.label) for pair in model.review_queue(TEST, 10**6, goal="errors")}
    assert not any(TEST.Y[row, label] for row, label in found)
    first = model.review_queue(ROWS, 1)[0]
    rejected = [[first.label] if row == first.row else [] for row in range(TEST.n_rows)]
    rest = model.review_queue(ROWS, 5, negatives=rejected)
    assert rest[:4] == model.review_queue(ROWS, 5)[1:]
    labelled = sp.csr_matrix((np.ones(1), ([first.row], [first.label])), TEST.Y.shape)
    assert model.review_queue(ROWS.X, 5, Y=labelled) == rest


def test_limits_and_rare_labels(model):
    assert {pair.label for pair in model.review_queue(ROWS, 20, allowed=[1, 2])} <= {1, 2}
    assert all(pair.label != 1 for pair in model.review_queue(ROWS, 20, exclude=[1]))
    weighed = model.review_queue(ROWS, 5, propensity_weight=1)
    for pair in weighed:
        assert pair.gain == pytest.approx(pair.probability * model.inv_propensity_[pair.label])


def test_saved_models_queue_the_same(model, tmp_path):
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").review_queue(ROWS, 30, goal="errors") == model.review_queue(
        ROWS, 30, goal="errors"
    )


def test_rows_are_judged_by_themselves(model):
    order = np.random.default_rng(0).permutation(TEST.n_rows)
    shuffled = {(order[p.row], p.label): p.gain for p in model.review_queue(ROWS.X[order], 10**6)}
    assert shuffled == {(p.row, p.label): p.gain for p in model.review_queue(ROWS.X, 10**6)}


def test_names():
    train = makers.MAKERS["texts"]()
    pair = makers.fitted("texts").review_queue(
        replace(train, Y=sp.csr_matrix(train.Y.shape, dtype=np.float32)), 1
    )[0]
    assert pair.label_name == train.label_names[pair.label]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"k": 0}, ValueError, "k must be"),
        ({"goal": "fame"}, ValueError, "goal must be one of recall, errors, got 'fame'"),
        ({"goal": None}, ValueError, "goal must be one of recall, errors, got None"),
        ({"optimize": "fame"}, ValueError, "fame"),
        ({"propensity_weight": -1}, ValueError, "propensity_weight must be a number in"),
        ({"negatives": [[]]}, ValueError, "negatives must have 400 rows and 8 labels, got 1 and 8"),
        ({"negatives": "sea"}, TypeError, "negatives must be"),
    ],
)
def test_bad_input(model, given, error, said):
    with pytest.raises(error, match=said):
        model.review_queue(ROWS.X, **given)


def test_labels_are_given_once(model):
    with pytest.raises(ValueError, match="Y must be left out if X is a Dataset"):
        model.review_queue(TEST, 3, Y=TEST.Y)

"""Guaranteed sets: bounds worked by hand and by slow twins, what is guaranteed, and what is refused."""

import math

import numpy as np
import pytest
from scipy.special import expit
from test_learner import stored
from test_thresholds import lists_of

import metarank
from metarank import MetaRanker, ThresholdLearner
from metarank.thresholds.guarantees import Guarantees, betting_bounds, conformal_bounds, parse_wish

WISHES = ("recall>=0.9", "recall>=0.7", "precision>=0.8")


def scored(n=300, L=4, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.normal(-1.0, 2.2, (n, L)) + rng.normal(0, 0.7, L)
    return 0.4 * true + 3.0, rng.random((n, L)) < expit(true)


# --- bounds -----------------------------------------------------------------------


def test_the_conformal_bound_worked_by_hand():
    # (n R + B) / (n + 1) of the losses 0, 1/2, 1, 0: (1.5 + 1) / 5.
    assert conformal_bounds(np.array([[0.0], [0.5], [1.0], [0.0]])).tolist() == [0.5]
    assert conformal_bounds(np.zeros((0, 2))).tolist() == [1.0, 1.0]


def test_the_betting_bound_worked_by_hand():
    # Two losses of 0, confidence 3/4: wealth 4. The stakes are 1 (sqrt(2 log 4 / 2 / .25) > 1), so the
    # capital is (1 + R)^2 = 4 at R = 1, and (1 + R)^3 = 4 for three losses at R = .5874.
    assert betting_bounds(np.zeros((2, 1)), 0.75)[0] == 1.0
    assert betting_bounds(np.zeros((3, 1)), 0.75)[0] == pytest.approx(4 ** (1 / 3) - 1, abs=2e-5)
    assert betting_bounds(np.zeros((1, 1)), 0.75)[0] == 1.0


def slow_bound(losses, confidence):
    """Line by line from Bates et al. (2021), proposition 5, for a grid of R."""
    n, delta = len(losses), 1 - confidence
    for R in np.arange(1, 1025) / 1024:
        capital, mean, spread, variance = 1.0, 0.5, 0.25, 0.25
        for i, loss in enumerate(losses, 1):
            stake = min(1.0, math.sqrt(2 * math.log(1 / delta) / (n * variance)))
            capital *= 1 - stake * (loss - R)
            if capital >= 1 / delta:
                return R
            mean = (0.5 + losses[:i].sum()) / (1 + i)
            spread += (loss - mean) ** 2
            variance = spread / (1 + i)
    return 1.0


@pytest.mark.parametrize("n", [5, 40, 100])
def test_the_betting_bound_against_a_slow_twin(n):
    rng = np.random.default_rng(n)
    losses = np.column_stack([rng.random(n), rng.random(n) < 0.1, 0.2 * rng.random(n)])
    expected = [slow_bound(column, 0.9) for column in losses.T]
    np.testing.assert_allclose(betting_bounds(losses, 0.9), expected, atol=1 / 1024 + 2**-16)
    counted = rng.random(losses.shape) < 0.7
    alone = [betting_bounds(losses[c, j][:, None], 0.9)[0] for j, c in enumerate(counted.T)]
    np.testing.assert_allclose(betting_bounds(losses, 0.9, counted), alone)


def test_the_betting_bound_holds_in_the_share_it_says():
    rng = np.random.default_rng(0)
    coins = (rng.random((80, 4000)) < 0.15).astype(float)
    assert (betting_bounds(coins, 0.9) >= 0.15).mean() >= 0.9


# --- guarantees ---------------------------------------------------------------------


def test_recall_and_precision_of_cuts_worked_by_hand():
    Z = np.tile([[2.0, 0.0, -2.0]], (400, 1))
    Y = np.tile([[1, 0, 1]], (400, 1))
    guarantees = Guarantees().fit(lists_of(Z, Y), np.zeros(400, int))
    low, high = (guarantees.recall[np.searchsorted(guarantees.recall_thresholds, z)] for z in (-2.0, -1.9))
    assert 0.98 < low < 1
    assert 0.45 < high < 0.5  # one of two relevant labels kept, less the margin
    # Above 0 all that is kept is relevant, at 0 one of two, at -2 two of three.
    by_cut = dict(zip(guarantees.precision_thresholds.round(2).tolist(), guarantees.precision.tolist()))
    assert 0.98 < by_cut[0.05] < 1
    assert 0.45 < by_cut[-1.0] < 0.5
    assert by_cut[-3.0] == by_cut[0.0]  # the walk does not come back from a worse cut


def test_rows_of_a_group_count_once():
    """A thousand copies of ten rows guarantee no more than ten rows do."""
    Z, Y = np.tile([[2.0, -2.0]], (1000, 1)), np.tile([[1, 0]], (1000, 1))
    group = np.arange(1000) % 10
    together = Guarantees().fit(lists_of(Z, Y), np.zeros(1000, int), group)
    ten = Guarantees().fit(lists_of(Z[:10], Y[:10]), np.zeros(10, int))
    assert together.n_rows == 10
    assert together.best("recall") == ten.best("recall") < 0.8
    assert together.best("precision") == ten.best("precision") < 0.8


@pytest.mark.parametrize(("text", "level"), [("recall>=0.9", 0.9), ("precision>=0.75", 0.75)])
def test_the_guarantee_holds_on_new_rows(text, level):
    S, Y = scored(6000)
    values = []
    for draw in range(15):
        rows = slice(200 * draw, 200 * draw + 200)
        learner = ThresholdLearner("global", optimize=text)
        values.append(learner.fit(S[rows], Y[rows]).score(S[3000:], Y[3000:]))
    assert level <= np.mean(values) < level + 0.1
    assert np.mean(np.array(values) >= level) >= 0.9


def test_a_greater_confidence_needs_larger_sets():
    S, Y = scored()
    size = [
        ThresholdLearner("global", confidence=c).fit(S, Y).predict(S, "recall>=0.9").nnz for c in (0.9, 0.99)
    ]
    assert size[0] < size[1]


def attained(of, found, relevant):
    return metarank.metrics.evaluate(relevant, None, [f"example-{of}"], Y_pred=found)[f"example-{of}"]


def test_rows_that_do_not_count_are_left_out():
    found, relevant = [[1, 1], [0, 0], [1, 0]], [[1, 0], [1, 1], [0, 0]]
    assert attained("precision", found, relevant) == 0.25
    assert attained("recall", found, relevant) == 0.5


# --- laws -------------------------------------------------------------------------


@pytest.mark.parametrize("wish", WISHES)
def test_sets_are_those_of_every_interface(wish, tmp_path):
    S, Y = scored()
    learner = ThresholdLearner("global").fit(S, Y)
    kept = learner.predict(S, wish).toarray()
    assert kept.any()
    assert (ThresholdLearner("global").fit(stored(S), Y).predict(stored(S), wish).toarray() == kept).all()
    order = np.random.default_rng(0).permutation(len(S))
    assert (learner.predict(S[order], wish).toarray() == kept[order]).all()
    assert (learner.predict(S[:7], wish).toarray() == kept[:7]).all()
    learner.save(tmp_path / "model")
    assert (metarank.load(tmp_path / "model").predict(S, wish).toarray() == kept).all()
    chosen = ThresholdLearner("global", optimize=wish).fit(S, Y)
    assert (chosen.predict(S).toarray() == kept).all()
    assert chosen.score(S, Y) == attained(parse_wish(wish).of, learner.predict(S, wish), Y)


def test_the_model_guarantees_too(tmp_path):
    ds = metarank.data.make_multilabel(500, n_features=10, n_labels=4, seed=0)
    train, test = ds.take(np.arange(250)), ds.take(np.arange(250, 500))
    model = MetaRanker(effort="low", features=["neighbors", "votes"], ranker="logistic", n_jobs=1).fit(train)
    kept = model.predict(test, optimize="recall>=0.8")
    assert attained("recall", kept, test.Y.toarray()) >= 0.8
    assert kept.nnz < kept.shape[0] * kept.shape[1]
    model.save(tmp_path / "model")
    assert (metarank.load(tmp_path / "model").predict(test, "recall>=0.8") != kept).nnz == 0
    with pytest.raises(ValueError, match="the best possible is recall>="):
        model.predict(test, "recall>=0.999")


# --- what is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (
            "recall>=0.999",
            r"cannot be guaranteed with confidence 0.9 from \d+ rows: more rows allow more; the best",
        ),
        ("precision>=0.999", r"the best possible is precision>=0\.\d+"),
        ("recall>=1", "optimize must guarantee a share above 0 and below 1, got 'recall>=1'"),
        ("precision>=0", "optimize must guarantee a share above 0 and below 1, got 'precision>=0'"),
        ("recall<=0.9", "optimize must be None or one of .* or a guarantee such as 'recall>=0.9'"),
        ("recall>=0.9.1", "optimize must be None or one of"),
        ("precision", "optimize must be None or one of"),
    ],
)
def test_impossible_wishes_are_errors(wish, message):
    S, Y = scored(300)
    learner = ThresholdLearner("global").fit(S, Y)
    with pytest.raises(ValueError, match=message):
        learner.predict(S, wish)
    with pytest.raises(ValueError, match=message):
        ThresholdLearner("global", optimize=wish).fit(S, Y)


def test_the_best_that_is_named_can_be_had():
    S, Y = scored(300)
    learner = ThresholdLearner("global").fit(S, Y)
    for of in ("recall", "precision"):
        with pytest.raises(ValueError, match="the best") as error:
            learner.predict(S, f"{of}>=0.9999")
        assert learner.predict(S, str(error.value).split()[-1]).nnz


@pytest.mark.parametrize(
    ("confidence", "error"),
    [
        (None, TypeError),
        (0, ValueError),
        (1, ValueError),
        (1.5, ValueError),
        ("high", TypeError),
        (True, TypeError),
    ],
)
def test_the_confidence_is_checked(confidence, error):
    with pytest.raises(error, match="confidence must be a number between 0 and 1, got"):
        ThresholdLearner(confidence=confidence).fit(*scored(50))

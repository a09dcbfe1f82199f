"""Diagnosis: every figure against a slow twin, laws, intervals by simulation, words, bad input."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score, roc_auc_score

from metarank.objectives import diagnose, label_spread, per_label_auc
from metarank.objectives.conflicts import pair_conflicts
from metarank.objectives.intervals import auc_estimates, ndcg_estimates


def make(n=400, seed=0, shares=(0.5, 0.1), coupling=0.0):
    """Features, binary labels of the given shares, and the labels' probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(shares)))
    x[:, 1:] += coupling * x[:, :1]
    eta = 1 / (1 + np.exp(-2 * (x - np.quantile(x, 1 - np.array(shares), axis=0).diagonal())))
    return x, (rng.random(eta.shape) < eta).astype(float), eta


# --- before training ---------------------------------------------------------


def test_skews_and_hidden_weights():
    Y = np.zeros((1000, 2))
    Y[:500, 0] = 1
    Y[450:550, 1] = 1
    found = diagnose(Y, weights=[2.0, 1.0], names=["relevant", "recent"])
    np.testing.assert_allclose(found.pi, [0.5, 0.1])
    np.testing.assert_allclose(found.inner_weights, [2 / 0.25, 1 / 0.09])
    np.testing.assert_allclose(found.loss_shares, [8 / (8 + 1 / 0.09), 1 / 0.09 / (8 + 1 / 0.09)])
    np.testing.assert_allclose(found.label_shares, [2 / 3, 1 / 3])
    assert (found.leader, found.dictates, found.mild) == (1, True, False)
    assert found.lead == pytest.approx(1 / 0.09 / 8)
    # There, both labels count alike, and below it the other one dictates.
    at = diagnose(Y, weights=[2.0, found.dictates_until])
    np.testing.assert_allclose(at.loss_shares, 0.5)
    assert not at.dictates
    assert diagnose(Y, weights=[2.0, 0.99 * found.dictates_until]).leader == 0


def test_balanced_weights_make_loss_aggregation_rank_as_label_aggregation():
    Y = make(shares=(0.5, 0.1, 0.8))[1]
    found = diagnose(Y, weights=[1.0, 2.0, 3.0])
    balanced = diagnose(Y, weights=found.balanced_weights)
    np.testing.assert_allclose(balanced.loss_shares, found.label_shares)
    assert found.balanced_weights.sum() == pytest.approx(6.0)


def test_tilt_compares_the_two_aggregations():
    Y = make(shares=(0.5, 0.1))[1]
    found = diagnose(Y)
    ratio = found.loss_shares / found.label_shares
    assert found.tilt == pytest.approx(ratio.max() / ratio.min())
    assert found.favoured == 1
    assert diagnose(Y, weights=[5.0, 1.0]).tilt == pytest.approx(found.tilt)
    # Loss aggregation does not notice ranges of grades, the sum does.
    graded = diagnose(np.column_stack([2 * Y[:, 0], 1 - Y[:, 0] * (np.arange(len(Y)) % 3 > 0)]))
    assert any("different ranges" in text and "67 %" in text for text in graded.warnings)


def test_three_labels_dictate_only_over_all_others_together():
    rng = np.random.default_rng(1)
    alike = (rng.random((2000, 3)) < [0.5, 0.5, 0.2]).astype(float)
    found = diagnose(alike)
    assert (found.leader, found.dictates) == (2, False)
    assert "weighs most, but not more than all others together" in str(found)
    rare = (rng.random((2000, 3)) < [0.5, 0.5, 0.02]).astype(float)
    found = diagnose(rare)
    assert (found.leader, found.dictates) == (2, True)
    stopped = diagnose(rare, weights=[1.0, 1.0, found.dictates_until])
    assert stopped.loss_shares[2] == pytest.approx(0.5)


@pytest.mark.parametrize("grouped", [False, True])
def test_conflicts_equal_all_pairs(grouped):
    rng = np.random.default_rng(2)
    Y = np.column_stack([rng.integers(4, size=70), rng.random(70) < 0.3, rng.normal(size=70).round(1)])
    group = rng.integers(6, size=70) if grouped else np.zeros(70, int)
    opposite, ordered = np.zeros((2, 3, 3))
    n_pairs = 0
    for i, j in combinations(range(70), 2):
        if group[i] == group[j]:
            n_pairs += 1
            sign = np.sign(Y[i] - Y[j])
            opposite += np.outer(sign, sign) < 0
            ordered += np.outer(sign, sign) != 0
    found = pair_conflicts(Y, group if grouped else None)
    np.testing.assert_allclose(found.opposite, opposite, atol=1e-9)
    np.testing.assert_allclose(found.ordered, ordered, atol=1e-9)
    assert found.n_pairs == n_pairs


def test_conflicts_and_correlations_agree_with_scipy():
    rng = np.random.default_rng(3)
    Y = rng.random((300, 2))
    found = diagnose(Y)
    assert 1 - 2 * found.conflicts[0, 1] == pytest.approx(kendalltau(Y[:, 0], Y[:, 1]).statistic)
    np.testing.assert_allclose(found.correlations, np.corrcoef(Y.T), atol=1e-12)


def test_labels_that_cancel_out():
    first = np.tile([1.0, 0.0, 0.0], 50)
    found = diagnose(np.column_stack([first, 1 - first]))
    assert found.nearly_constant
    assert found.kept_spread == 0
    assert "nearly constant" in found.warnings[0]
    assert "cancel" in found.recommendation
    # Unequal weights bring an order back.
    found = diagnose(np.column_stack([first, 1 - first]), weights=[2.0, 1.0])
    assert found.kept_spread == pytest.approx(1 / 3)
    assert not found.nearly_constant
    # Tenths do not add up exactly.
    three = np.column_stack([0.1 * first, 0.2 * first, 0.3 * (1 - first)])
    assert diagnose(three).kept_spread == 0
    # Labels without a conflict keep all they have.
    agreeing = diagnose(np.column_stack([first, np.maximum(first, np.arange(150) < 90)]))
    assert agreeing.kept_spread == pytest.approx(1)
    assert "seldom conflict" in agreeing.recommendation


def test_kept_spread_equals_all_pairs():
    rng = np.random.default_rng(4)
    Y, w = rng.integers(4, size=(60, 3)).astype(float), np.array([0.5, 1.0, 2.0])
    apart = np.abs(Y[:, None] - Y)
    slow = np.abs(Y @ w - (Y @ w)[:, None]).sum() / (apart @ w).sum()
    assert diagnose(Y, weights=w).kept_spread == pytest.approx(slow)


def test_spread_within_queries_is_a_harmonic_mean():
    rng = np.random.default_rng(5)
    Y, qid = rng.integers(3, size=(90, 2)).astype(float), np.repeat(np.arange(9), 10)
    Y[:10, 0] = 2.0  # a query without a pair
    found = diagnose(Y, qid=qid)
    for k in range(2):
        spread = [label_spread(Y[qid == q])[k] for q in range(9) if np.ptp(Y[qid == q, k]) > 0]
        assert found.spread[k] == pytest.approx(1 / np.mean(1 / np.array(spread)))
    assert found.n_queries == 9


# --- after training ----------------------------------------------------------


def test_auc_with_delongs_interval():
    x, Y, _ = make()
    found = diagnose(Y, x.sum(1))
    model = found.models["scores"]
    np.testing.assert_allclose(model.auc, per_label_auc(x.sum(1), Y))
    # DeLong's structural components, one label at a time.
    for k in range(2):
        s, y = x.sum(1), Y[:, k] == 1
        wins = (s[y][:, None] > s[~y]) + (s[y][:, None] == s[~y]) / 2
        v10, v01 = wins.mean(1), wins.mean(0)
        variance = v10.var() / len(v10) + v01.var() / len(v01)
        assert auc_estimates(s, Y).standard_error(np.eye(2)[k]) == pytest.approx(np.sqrt(variance))
        assert model.auc_high[k] - model.auc[k] == pytest.approx(1.959964 * np.sqrt(variance))
    assert model.min_auc.value == model.auc.min()
    assert model.diff_auc.value == pytest.approx(np.ptp(model.auc))


@pytest.mark.parametrize("grouped", [False, True])
def test_standard_errors_are_those_of_fresh_samples(grouped):
    """Of AUC, of graded AUC and of the difference between labels."""
    rng = np.random.default_rng(6)
    n, qid = 240, np.repeat(np.arange(40), 6)
    values, errors = [], []
    unit = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    for _ in range(400):
        x = rng.normal(size=n)
        Y = np.column_stack(
            [x + rng.normal(size=n) > 0.8, np.clip((x + 2 * rng.normal(size=n)).round(), 0, 4)]
        )
        found = auc_estimates(x, Y.astype(float), qid if grouped else None)
        values.append(unit @ found.values)
        errors.append([found.standard_error(row) for row in unit])
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(values, axis=0), rtol=0.12)


def test_ndcg_of_queries():
    rng = np.random.default_rng(7)
    Y, s = rng.integers(4, size=(120, 2)).astype(float), rng.integers(5, size=120).astype(float)
    qid = rng.permutation(np.repeat(np.arange(12), 10))
    Y[qid == 3] = 0  # no gain: left out
    found = ndcg_estimates(s, Y, qid, 5)
    for k in range(2):
        slow = [ndcg_score(Y[qid == q, k][None], s[qid == q][None], k=5) for q in range(12) if q != 3]
        assert found.values[k] == pytest.approx(np.mean(slow))
        assert found.standard_error(np.eye(2)[k]) == pytest.approx(np.std(slow) / np.sqrt(11))
    model = diagnose(Y, s, qid=qid, k=5).models["scores"]
    np.testing.assert_allclose(model.ndcg, found.values)
    assert diagnose(Y, s).models["scores"].ndcg is None


def test_auc_within_queries():
    rng = np.random.default_rng(8)
    Y, s, qid = (rng.random((90, 1)) < 0.3).astype(float), rng.normal(size=90), np.repeat(np.arange(15), 6)
    areas = [
        roc_auc_score(Y[qid == q, 0], s[qid == q]) for q in range(15) if 0 < Y[qid == q].sum() < 6
    ]  # fmt: skip
    assert diagnose(Y, s, qid=qid).models["scores"].auc[0] == pytest.approx(np.mean(areas))
    by_sizes = diagnose(Y, s, group=[6] * 15)
    assert by_sizes.to_dict() == diagnose(Y, s, qid=qid).to_dict()


def test_dominance_between_candidates():
    x, Y, eta = make(n=3000, seed=9, shares=(0.5, 0.3))
    rng = np.random.default_rng(9)
    good = eta.sum(1)
    found = diagnose(
        Y, {"good": good, "first": x[:, 0], "noise": rng.normal(size=3000), "nudged": good + 1e-3 * x[:, 0]}
    )
    assert list(found.models) == ["good", "first", "noise", "nudged"]
    areas = np.array([model.auc for model in found.models.values()])
    for i in range(4):
        for j in range(4):
            expected = (areas[i] >= areas[j]).all() and (areas[i] > areas[j]).any()
            assert found.dominance[i, j] == expected
    assert found.clear[0, 2]
    assert not (found.clear & ~found.dominance).any()
    assert "noise" in found.recommendation
    assert "good dominates noise" in str(found)


def test_scores_of_any_container():
    x, Y, _ = make(n=60)
    table = pd.DataFrame(x, columns=["a", "b"])
    assert diagnose(Y, table).to_dict() == diagnose(Y, {"a": x[:, 0], "b": x[:, 1]}).to_dict()
    assert list(diagnose(Y, x).models) == ["scores 0", "scores 1"]


# --- laws --------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_rows_does_not_matter(grouped):
    rng = np.random.default_rng(10)
    Y, s = rng.integers(4, size=(200, 3)).astype(float), rng.normal(size=200).round(1)
    qid = rng.integers(20, size=200) if grouped else None
    shuffled = rng.permutation(200)
    a = diagnose(Y, s, qid=qid).to_dict()
    b = diagnose(Y[shuffled], s[shuffled], qid=None if qid is None else qid[shuffled]).to_dict()
    for key in ("spread", "loss_shares", "conflicts", "kept_spread", "correlations"):
        np.testing.assert_allclose(np.array(a[key], float), np.array(b[key], float), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(a["models"]["scores"]["auc"], b["models"]["scores"]["auc"], rtol=1e-12)


def test_scale_of_weights_and_of_labels():
    Y = make()[1]
    once, thrice = diagnose(Y), diagnose(Y, weights=[3.0, 3.0])
    np.testing.assert_allclose(once.loss_shares, thrice.loss_shares)
    assert thrice.dictates_until == pytest.approx(3 * once.dictates_until)
    # A label in other units: loss aggregation does not notice, the sum of labels does.
    scaled = diagnose(Y * [1.0, 5.0])
    np.testing.assert_allclose(scaled.loss_shares, once.loss_shares)
    np.testing.assert_allclose(scaled.label_shares, [1 / 6, 5 / 6])


def test_one_label():
    found = diagnose([[1], [0], [2]], [3.0, 1.0, 2.0])
    assert not found.dictates
    assert found.warnings[0].startswith("fewer than ten")
    assert "nothing to aggregate" in found.recommendation
    assert "1 label" in str(found)


# --- words -------------------------------------------------------------------


def test_the_page():
    _, Y, eta = make(n=2000, seed=11)
    found = diagnose(Y, {"label": eta.sum(1), "loss": eta @ [4, 11]}, names=["relevance", "clicks"])
    page = str(found)
    for part in (
        "2,000 rows, 2 labels",
        "relevance / clicks",
        "'clicks' dictates",
        "Recommendation: Take label",
    ):
        assert part in page
    table = page[page.index("label  ") :].split("\n\n")[0].splitlines()
    assert len({len(line) for line in table}) == 1
    mild = diagnose(make(n=2000, shares=(0.5, 0.45))[1])
    assert mild.mild
    assert "which is mild" in str(mild)
    assert "about equally skewed" in mild.recommendation
    rare = diagnose(np.eye(200)[:, :2] + np.arange(200)[:, None] // 100)
    assert "fewer than ten" not in str(rare)


def test_to_dict_is_json():
    x, Y, _ = make(n=80)
    told = diagnose(Y, x, qid=np.arange(80) // 8).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    # Labels of which no pair has both: no share of conflicts.
    apart = diagnose([[1, 0], [0, 0], [0, 1], [0, 0]], group=[2, 2]).to_dict()
    assert apart["conflicts"][0][1] is None
    assert json.dumps(apart, allow_nan=False)


# --- bad input ---------------------------------------------------------------

Y2 = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": [[1, -1], [0, 1]]}, "Y must be finite and >= 0.* -1 at row 0"),
        ({"Y": np.ones((3, 0))}, r"at least one objective \(K >= 1\)"),
        ({"Y": np.ones((0, 2))}, "Y must have at least one row"),
        ({"Y": [[1, 1], [0, 1]], "names": ["a", "b"]}, "label 'b' has one value in all rows: no AUC exists"),
        ({"Y": Y2, "group": [1, 1]}, "label 'objective_0' has one value in every query: no AUC exists"),
        ({"Y": Y2, "weights": [1]}, r"weights must have one entry an objective, shape \(2,\), got \(1,\)"),
        ({"Y": Y2, "weights": [0, 0]}, "weights must not sum to 0"),
        ({"Y": Y2, "names": ["a", "a"]}, r"names must be 2 different names, one a label, got \['a', 'a'\]"),
        ({"Y": Y2, "group": [3]}, "group must add up to the number of rows, 2, got 3"),
        ({"Y": Y2, "qid": [0]}, r"qid must have one entry a row, shape \(2,\), got \(1,\)"),
        ({"Y": Y2, "qid": [0, 0], "group": [2]}, "give one of them, got both"),
        (
            {"Y": Y2, "scores": [1.0]},
            r"scores must have one entry a row .*, got \(1,\) in 'scores'",
        ),
        ({"Y": Y2, "scores": {"m": [1.0, np.nan]}}, "scores must not be NaN, got NaN in 'm'"),
        ({"Y": Y2, "k": 0}, "k must be a positive integer, got 0"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        diagnose(**arguments)

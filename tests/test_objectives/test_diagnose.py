"""Diagnosis: every figure against a slow twin, laws, cross-validation, bad input."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from metarank import MultiObjectiveRanker
from metarank.objectives import diagnose, label_spread


def make(n=400, seed=0, shares=(0.5, 0.1)):
    """Features, and binary labels of about the given shares."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(shares)))
    eta = 1 / (1 + np.exp(-2 * (x - np.quantile(x, 1 - np.array(shares), axis=0).diagonal())))
    return x, (rng.random(eta.shape) < eta).astype(float)


def test_skews_and_hidden_weights():
    Y = np.zeros((1000, 2))
    Y[:500, 0] = 1
    Y[450:550, 1] = 1
    found = diagnose(Y, weights=[2.0, 1.0])
    np.testing.assert_allclose(found.pi, [0.5, 0.1])
    np.testing.assert_allclose(found.loss_shares, [8 / (8 + 1 / 0.09), 1 / 0.09 / (8 + 1 / 0.09)])
    np.testing.assert_allclose(found.label_shares, [2 / 3, 1 / 3])
    # A label in other units: loss aggregation does not notice, the sum of labels does.
    scaled = diagnose(Y * [1.0, 5.0], weights=[4.0, 2.0])
    np.testing.assert_allclose(scaled.loss_shares, found.loss_shares)
    np.testing.assert_allclose(scaled.label_shares, [2 / 7, 5 / 7])


def test_balanced_weights_make_loss_aggregation_rank_as_label_aggregation():
    Y = make(shares=(0.5, 0.1, 0.8))[1]
    found = diagnose(Y, weights=[1.0, 2.0, 3.0])
    balanced = diagnose(Y, weights=found.balanced_weights)
    np.testing.assert_allclose(balanced.loss_shares, found.label_shares)
    assert found.balanced_weights.sum() == pytest.approx(6.0)


@pytest.mark.parametrize("grouped", [False, True])
def test_conflicts_equal_all_pairs(grouped):
    rng = np.random.default_rng(2)
    Y = np.column_stack([rng.integers(4, size=70), rng.random(70) < 0.3, rng.normal(size=70).round(1)])
    group = rng.integers(6, size=70) if grouped else np.zeros(70, int)
    opposite, ordered = np.zeros((2, 3, 3))
    for i, j in combinations(range(70), 2):
        if group[i] == group[j]:
            sign = np.sign(Y[i] - Y[j])
            opposite += np.outer(sign, sign) < 0
            ordered += np.outer(sign, sign) != 0
    found = diagnose(Y - Y.min(axis=0), qid=group if grouped else None)
    n_pairs = sum(np.sum(group == g) * (np.sum(group == g) - 1) / 2 for g in range(6))
    np.testing.assert_array_equal(found.conflicts, opposite / ordered)
    np.testing.assert_allclose(found.conflict_shares, opposite / n_pairs, rtol=1e-12)


def test_conflicts_agree_with_scipy():
    Y = np.random.default_rng(3).random((300, 2))
    found = diagnose(Y)
    assert 1 - 2 * found.conflicts[0, 1] == pytest.approx(kendalltau(Y[:, 0], Y[:, 1]).statistic)


def test_spreads_within_queries_are_harmonic_means_over_those_with_a_pair():
    rng = np.random.default_rng(5)
    Y, qid = rng.integers(3, size=(90, 2)).astype(float), np.repeat(np.arange(9), 10)
    Y[:10, 0] = 0.0  # a query without a pair
    Y[:, 1] = Y[:, 1] > 1
    found = diagnose(Y, qid=qid)
    for k in range(2):
        spread = [label_spread(Y[qid == q])[k] for q in range(9) if np.ptp(Y[qid == q, k]) > 0]
        assert found.spread[k] == pytest.approx(1 / np.mean(1 / np.array(spread)))
    assert found.n_queries == 9
    assert diagnose(Y, group=[10] * 9).to_dict() == found.to_dict()


@pytest.mark.parametrize("grouped", [False, True])
def test_label_and_loss_aggregation_are_compared_by_cross_validation(grouped):
    x, Y = make(800)
    rng = np.random.default_rng(6)
    X = np.column_stack([x, rng.normal(size=(800, 2))])
    qid = np.arange(800) // 10 if grouped else None
    ranker = MultiObjectiveRanker(model="linear", n_rounds=5, n_jobs=1)
    found = diagnose(Y, X=X, ranker=ranker, qid=qid)
    assert found.cross_metric == ("ndcg@10" if grouped else "auc")
    assert list(found.cross_validated) == ["label", "loss"]
    assert not hasattr(ranker, "weights_")
    label, loss = (values.mean(axis=0) for values in found.cross_validated.values())
    assert found.cross_validated["label"].shape == (5, 2)
    assert loss[1] > label[1]  # the rarer label has more of the weight
    assert loss[0] < label[0]
    assert "±" in str(found)


def test_containers_the_order_of_rows_and_json():
    rng = np.random.default_rng(10)
    Y = rng.integers(4, size=(200, 3)).astype(float)
    base = diagnose(Y).to_dict()
    names = ["objective_0", "objective_1", "objective_2"]
    assert (
        base
        == diagnose(pd.DataFrame(Y, columns=names)).to_dict()
        == diagnose(dict(zip(names, Y.T))).to_dict()
    )
    moved = diagnose(Y[rng.permutation(200)]).to_dict()
    for key in ("spread", "loss_shares", "conflicts"):
        np.testing.assert_allclose(np.array(base[key], float), np.array(moved[key], float), rtol=1e-12)
    assert json.loads(json.dumps(base, allow_nan=False)) == base
    # Labels of which no pair has both: no share of conflicts.
    apart = diagnose([[1, 0], [0, 0], [0, 1], [0, 0]], group=[2, 2]).to_dict()
    assert apart["conflicts"][0][1] is None


def test_the_page():
    page = str(diagnose(dict(zip(["relevance", "clicks"], make(n=2000)[1].T))))
    for part in ("2,000 rows, 2 objectives", "relevance / clicks", "balanced weight"):
        assert part in page
    table = page[page.index("objective  ") :].split("\n\n")[0].splitlines()
    assert len({len(line) for line in table}) == 1
    assert "conflicts" not in str(diagnose([[1], [0], [2]]))


Y2 = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": [[1, -1], [0, 1]]}, "Y must be finite and >= 0.* -1 at row 0"),
        ({"Y": np.ones((0, 2))}, "Y must have at least one row"),
        ({"Y": {"a": [1, 0], "b": [1, 1]}}, "label 'b' has one value in all rows: no AUC exists"),
        ({"Y": Y2, "group": [1, 1]}, "label 'objective_0' has one value in every query: no AUC exists"),
        ({"Y": Y2, "weights": [0, 0]}, "weights must be >= 0 and not sum to 0"),
        ({"Y": Y2, "qid": [0, 0], "group": [2]}, "pass one, got both"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        diagnose(**arguments)

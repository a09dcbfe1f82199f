"""Metrics of the complete ground truth, estimated from labels some of which are missing."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import metrics
from metarank.metrics import concentration_bound, unbiased, unbiased_per_row
from metarank.types.ranking import Ranking

RANKED = ["P@3", "nDCG@3", "R@3", "MRR-all", "ADG"]
NAMES = [*RANKED, "F1", "F0.5", "Hamming"]
OVER_RELEVANT = ["R@3", "MRR-all", "ADG"]


def log2(x):
    return math.log2(x)


# Worked by hand: labels 0 to 3 have the ranks 2, 1, 4 and 3; the set is {1, 3}; 0 and 3 were observed of
# three relevant labels, with p = 1/2 and 1/4.
Y = [[1, 0, 0, 1]]
SCORES = [[0.5, 0.9, 0.1, 0.3]]
SET = [[0, 1, 0, 1]]
W = [2.0, 1.0, 1.0, 4.0]
WORKED = {
    "P@2": 2 / 2,
    "P@5": (2 + 4) / 5,
    "nDCG@2": (2 / log2(3)) / (1 + 1 / log2(3)),
    "nDCG@5": (2 / log2(3) + 4 / log2(4)) / sum(1 / log2(1 + j) for j in range(1, 6)),
    "R@2": 2 / 3,
    "R@4": (2 + 4) / 3,
    "MRR-all": (2 / 2 + 4 / 3) / 3,
    "ADG": (2 / log2(3) + 4 / log2(4)) / 3,
    "F1": 2 * 4 / (3 + 2),
    "F2": (1 + 4) * 4 / (4 * 3 + 2),
    "F0.5": 1.25 * 4 / (0.25 * 3 + 2),
    "Hamming": 2 - 4 + 2,
}


def test_worked_example():
    values = unbiased(Y, SCORES, WORKED, inv_propensity=W, n_relevant=[3], Y_pred=SET)
    assert values == pytest.approx(WORKED)
    assert list(values) == list(WORKED)


def test_worked_example_of_the_corollary():
    g = [0.5, 1, 1, 2]
    assert unbiased(Y, SCORES, ["R@2", "MRR-all", "ADG"], g=g) == pytest.approx(
        {"R@2": 2, "MRR-all": 2 / 2 + (1 / 2) / 3, "ADG": 2 / log2(3) + (1 / 2) / log2(4)}
    )
    assert unbiased(Y, SCORES, ["R@4"], g=2) == {"R@4": 1.0}


def problem(seed, n=12, n_labels=9):
    """Labels, tied scores, sets and inverse propensities of pairs."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, n_labels)) < 0.4
    relevant[3] = False
    scores = rng.integers(0, 4, (n, n_labels)).astype(float)
    chosen = rng.random((n, n_labels)) < 0.3
    chosen[4] = False
    return relevant, scores, chosen, 1 / rng.uniform(0.2, 1.0, (n, n_labels))


def twin(y, scores, chosen, w, n_relevant, name):
    """The table of the paper, one point and one label after the other."""
    base, _, k = name.partition("@")
    k = int(k or 0)
    values = []
    for i in range(len(y)):
        order = sorted(range(y.shape[1]), key=lambda label: (-scores[i, label], label))
        ranks = {label: rank for rank, label in enumerate(order, start=1)}
        total = 0.0
        for label in np.flatnonzero(y[i]):
            r, hit = ranks[label], chosen[i, label]
            total += w[i, label] * {
                "P": (r <= k) / max(k, 1),
                "nDCG": (r <= k) / log2(r + 1),
                "R": r <= k,
                "MRR-all": 1 / r,
                "ADG": 1 / log2(r + 1),
                "Hamming": 1 - 2 * hit,
            }.get(base, hit)
        if base == "nDCG":
            total /= sum(1 / log2(1 + j) for j in range(1, k + 1))
        elif base in ("R", "MRR-all", "ADG"):
            total = total / n_relevant[i] if n_relevant[i] else np.nan
        elif base == "Hamming":
            total += chosen[i].sum()
        elif base.startswith("F"):
            b2 = float(base[1:]) ** 2
            below = b2 * n_relevant[i] + chosen[i].sum()
            total = (1 + b2) * total / below if below else 1.0
        values.append(total)
    return np.array(values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*NAMES, "P@20", "nDCG@20", "R@1"])
def test_agrees_with_the_slow_twin(name, seed):
    y, scores, chosen, w = problem(seed)
    n_relevant = np.minimum(y.sum(axis=1) + np.arange(len(y)) % 3, y.shape[1])
    arguments = dict(inv_propensity=w, n_relevant=n_relevant, Y_pred=chosen)
    expected = twin(y, scores, chosen, w, n_relevant, name)
    np.testing.assert_allclose(unbiased_per_row(y, scores, name, **arguments), expected, rtol=1e-12)
    assert unbiased(y, scores, [name], **arguments)[name] == pytest.approx(np.nanmean(expected))


@pytest.mark.parametrize("name", NAMES)
def test_every_container_gives_the_same_numbers(name):
    y, scores, chosen, w = problem(7)
    n = y.sum(axis=1)
    base = unbiased_per_row(y, scores, name, inv_propensity=w, n_relevant=n, Y_pred=chosen)
    observed = sp.csr_matrix(y * w)
    shuffled = sp.csr_matrix(w)
    for row in range(len(y)):
        of_row = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        shuffled.indices[of_row] = shuffled.indices[of_row][::-1].copy()
        shuffled.data[of_row] = shuffled.data[of_row][::-1].copy()
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    for weights in (w.tolist(), observed, observed.tocsc(), sp.coo_array(y * w), shuffled):
        for sets in (chosen.astype(int), sp.csc_array(chosen)):
            for Y_true in (sp.csr_matrix(y * 3.0), y.astype(np.int8)):
                given = unbiased_per_row(
                    Y_true, scores, name, inv_propensity=weights, n_relevant=n, Y_pred=sets, n_jobs=1
                )
                np.testing.assert_array_equal(given, base)
    per_label = unbiased_per_row(y, scores, name, inv_propensity=w[0], n_relevant=n, Y_pred=chosen)
    as_pairs = np.broadcast_to(w[0], w.shape)
    np.testing.assert_array_equal(
        per_label, unbiased_per_row(y, scores, name, inv_propensity=as_pairs, n_relevant=n, Y_pred=chosen)
    )


def test_a_label_that_is_not_listed_has_no_gain():
    y, scores = [[1, 1, 1]], [[0.3, -np.inf, 0.9]]
    values = unbiased(y, scores, RANKED, n_relevant=[3])
    assert values["MRR-all"] == pytest.approx((1 + 1 / 2) / 3)
    assert values["R@3"] == pytest.approx(2 / 3)
    ranking = Ranking(np.array([[2, 0]], np.int32), np.array([[0.9, 0.3]]), 3)
    assert unbiased(y, ranking, RANKED, n_relevant=[3]) == values


def test_plain_metrics_where_no_label_is_missing():
    y, scores, chosen, _ = problem(11)
    names = ["P@1", "P@3", "R@3", "MRR-all", "ADG"]
    values = unbiased(y, scores, [*names, "F1", "Hamming"], n_relevant=y.sum(axis=1), Y_pred=chosen)
    assert {name: values[name] for name in names} == pytest.approx(metrics.evaluate(y, scores, names))
    assert values["F1"] == pytest.approx(metrics.example_f1(y, chosen))
    assert values["Hamming"] == pytest.approx(metrics.hamming_loss(y, chosen) * y.shape[1])


@pytest.mark.parametrize(("name", "normalised"), [("P@3", "PSP@3"), ("nDCG@3", "PSnDCG@3")])
def test_over_the_best_possible_it_is_the_propensity_scored_metric(name, normalised):
    y, scores, _, w = problem(13)
    best = unbiased(y, y * w[0], [name], inv_propensity=w[0])[name]
    ours = unbiased(y, scores, [name], inv_propensity=w[0])[name] / best
    assert ours == pytest.approx(metrics.evaluate(y, scores, [normalised], inv_propensity=w[0])[normalised])


def test_points_without_relevant_labels():
    y, scores, chosen = [[1, 0], [0, 0]], [[2.0, 1.0]] * 2, [[1, 0], [0, 0]]
    exact = unbiased(y, scores, ["P@1", "R@1", "F1"], n_relevant=[1, 0], Y_pred=chosen)
    assert exact == {"P@1": 0.5, "R@1": 1.0, "F1": 1.0}
    assert unbiased(y, scores, ["R@1"], g=1.0) == {"R@1": 0.5}  # its labels may have been lost
    assert unbiased(y, scores, ["R@1", "F1"], n_relevant=[1, 2], Y_pred=chosen) == {"R@1": 0.5, "F1": 0.5}
    assert math.isnan(unbiased([[0]], [[1.0]], ["ADG"], n_relevant=[0])["ADG"])
    nobody = sp.csr_matrix((0, 3))
    assert all(math.isnan(v) for v in unbiased(nobody, nobody, RANKED, n_relevant=[]).values())


# Unbiasedness: one complete ground truth and one prediction, masked thousands of times. The maskings
# are judged in one call, as so many copies of the points.

N_MASKINGS = 3000


def masked(truth, p, seed, *, together):
    """(maskings * n, L): relevant labels kept with probability p; `together`: by one draw a point."""
    rng = np.random.default_rng(seed)
    draws = rng.random((N_MASKINGS, len(truth), 1 if together else truth.shape[1]))
    return (truth & (draws < p)).reshape(-1, truth.shape[1])


def copies(array):
    return np.tile(array, (N_MASKINGS,) + (1,) * (np.ndim(array) - 1))


def of_maskings(observed, scores, chosen, name, **arguments):
    """The estimate of each masking."""
    rows = unbiased_per_row(
        sp.csr_matrix(observed), copies(scores), name, Y_pred=copies(chosen), n_jobs=1, **arguments
    )
    return np.nanmean(rows.reshape(N_MASKINGS, -1), axis=1)


def distance(values, expected):
    """Of the mean of the maskings from the expected value, in standard errors."""
    return abs(values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values)))


@pytest.fixture(scope="module")
def complete():
    truth, scores, chosen, _ = problem(21, n=8)
    chosen = truth & (
        np.random.default_rng(1).random(truth.shape) < 0.7
    )  # mostly right, so that a loss shows
    chosen[0, 0] = chosen[1, 1] = True
    return truth, scores, chosen


@pytest.mark.parametrize("together", [False, True], ids=["independent", "dependent"])
@pytest.mark.parametrize("of", ["label", "pair"])
@pytest.mark.parametrize("name", NAMES)
def test_unbiased(complete, name, of, together):
    truth, scores, chosen = complete
    n = truth.sum(axis=1)
    exact = unbiased(truth, scores, [name], n_relevant=n, Y_pred=chosen)[name]
    p = np.random.default_rng(2).uniform(0.2, 0.8, truth.shape[1] if of == "label" else truth.shape)
    observed = masked(truth, p, seed=3, together=together)
    w = 1 / p if of == "label" else sp.csr_matrix(observed * copies(1 / p))
    values = of_maskings(observed, scores, chosen, name, inv_propensity=w, n_relevant=copies(n))
    assert distance(values, exact) < 4
    naive = of_maskings(observed, scores, chosen, name, n_relevant=copies(n))
    assert distance(naive, exact) > 20


@pytest.mark.parametrize("name", OVER_RELEVANT)
def test_unbiased_by_the_corollary(complete, name):
    truth, scores, chosen = complete
    n = truth.sum(axis=1)
    counted = n > 0
    g = np.random.default_rng(4).uniform(0.3, 0.9, truth.shape[1])
    p = g / np.maximum(n, 1)[:, None]
    exact = unbiased(truth, scores, [name], n_relevant=n)[name] * counted.mean()  # others count 0 under g
    observed = masked(truth, p, seed=5, together=False)
    assert distance(of_maskings(observed, scores, chosen, name, g=g), exact) < 4
    assert distance(of_maskings(observed, scores, chosen, name, g=g.max()), exact) > 4
    w = sp.csr_matrix(observed * copies(1 / p))
    by_count = of_maskings(observed, scores, chosen, name, inv_propensity=w, n_relevant=copies(n))
    np.testing.assert_allclose(of_maskings(observed, scores, chosen, name, g=g), by_count * counted.mean())


@pytest.mark.parametrize("name", ["P@3", "nDCG@3", "Hamming"])
def test_unbiased_where_the_truth_is_random_too(complete, name):
    """Theorem 4.1 for any P(y*); the others need y* to be fixed (Theorem 4.2)."""
    _, scores, chosen = complete
    rng = np.random.default_rng(6)
    truth = rng.random((N_MASKINGS, *scores.shape)) < rng.random(scores.shape)
    p = rng.uniform(0.2, 0.8, scores.shape[1])
    observed = (truth & (rng.random(truth.shape) < p)).reshape(-1, scores.shape[1])
    exact = of_maskings(truth.reshape(observed.shape), scores, chosen, name)
    estimates = of_maskings(observed, scores, chosen, name, inv_propensity=1 / p)
    assert distance(estimates - exact, 0) < 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_the_bound_holds(complete, name, delta):
    truth, scores, chosen = complete
    n = truth.sum(axis=1)
    exact = unbiased(truth, scores, [name], n_relevant=n, Y_pred=chosen)[name]
    p = np.linspace(0.2, 0.8, truth.shape[1])
    observed = masked(truth, p, seed=7, together=True)
    values = of_maskings(observed, scores, chosen, name, inv_propensity=1 / p, n_relevant=copies(n))
    bound = concentration_bound(name, n, inv_propensity=1 / p, delta=delta)
    assert np.mean(abs(values - exact) <= bound) >= 1 - delta


@pytest.mark.parametrize("n", [50, 800])
def test_the_bound_is_close_where_it_can_be(n):
    """One label a point, kept one time in two: the bound is within 1.5 of the true 95 % quantile."""
    kept = np.random.default_rng(8).random((2000, n)) < 0.5
    estimates = 2.0 * kept.mean(axis=1)  # P@1 with w = 2 and the label at the first rank
    bound = concentration_bound("P@1", np.ones(n), inv_propensity=[2.0])
    quantile = np.quantile(abs(estimates - 1), 0.95)
    assert quantile <= bound <= 1.5 * quantile
    one = unbiased(kept[0][:, None], np.ones((n, 1)), ["P@1"], inv_propensity=[2.0])["P@1"]
    assert one == pytest.approx(estimates[0])


def test_the_bound_by_hand():
    n, w = [2, 4], [1.0, 8.0]
    half = math.sqrt((4 + 16) / 2) * math.sqrt(math.log(2 / 0.1) / 4)  # L and the root; rho is left
    rho = {
        "P@5": 8 / 5,
        "nDCG@2": 8 / (1 + 1 / log2(3)),
        "R@5": 8 / 2,
        "MRR-all": 8 / 2,
        "ADG": 8 / 2,
        "F1": 2 * 8 / (2 + 1),
        "F2": 5 * 8 / (4 * 2 + 1),
        "Hamming": 8,
    }
    for name, greatest in rho.items():
        bound = concentration_bound(name, n, inv_propensity=w, delta=0.1)
        assert bound == pytest.approx(greatest * half), name
    pairs = sp.csr_matrix([[3.0, 0.0], [0.0, 8.0]])
    assert concentration_bound("R@5", n, inv_propensity=pairs, delta=0.1) == pytest.approx(2 * half)
    assert concentration_bound("R@5", n, inv_propensity=[[3.0, 1.0], [1.0, 8.0]], delta=0.1) == pytest.approx(
        2 * half
    )
    assert concentration_bound("ADG", n, g=[0.5, 0.2], delta=0.1) == pytest.approx(5 * half)
    assert concentration_bound("P@1", n, delta=0.1) == pytest.approx(half)


def test_the_bound_leaves_out_the_points_the_metric_leaves_out():
    assert concentration_bound("R@5", [2, 0]) == concentration_bound("R@5", [2])
    assert concentration_bound("P@5", [2, 0]) == pytest.approx(concentration_bound("P@5", [2]) / 2)
    assert math.isnan(concentration_bound("R@5", [0]))
    assert concentration_bound("P@5", [0]) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_bound_shrinks_with_the_root_of_n(name):
    small, large = (concentration_bound(name, [3] * n, inv_propensity=[5.0]) for n in (100, 900))
    assert small == pytest.approx(3 * large)


GOOD = dict(inv_propensity=W, n_relevant=[3], Y_pred=SET)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(inv_propensity=[1, 1, 0.5, 1]), r"inv_propensity must hold .* >= 1, got 0.5 at label 2"),
        (dict(inv_propensity=[[1, np.nan, 1, 1]]), r"inv_propensity must .* got nan at row 0, label 1"),
        (dict(inv_propensity=[1, np.inf, 1, 1]), r"inv_propensity must .* got inf at label 1"),
        (dict(inv_propensity=[1, 1]), r"inv_propensity must have shape \(4,\) or \(1, 4\), got \(2,\)"),
        (dict(inv_propensity=np.ones((4, 1))), r"shape \(4,\) or \(1, 4\), got \(4, 1\)"),
        (dict(inv_propensity=2.0), r"shape \(4,\) or \(1, 4\), got \(\)"),
        (dict(inv_propensity=[[1], [1, 2]]), "inv_propensity must .* rows of unequal length"),
        (dict(inv_propensity=sp.csr_matrix([[2.0, 0, 0, 0.5]])), "got 0.5 at row 0, label 3"),
        (dict(inv_propensity=sp.csr_matrix([[2.0, 0, 0, 0]])), "Y_true, got none at row 0, label 3"),
        (dict(n_relevant=None), "n_relevant or g must be given for R@3"),
        (dict(n_relevant=[1]), r"observed labels, 2 at row 0, .* got 1$"),
        (dict(n_relevant=[5]), r"the number of labels, 4, got 5$"),
        (dict(n_relevant=[np.nan]), "n_relevant must be finite and >= 0, got nan at row 0"),
        (dict(n_relevant=[3, 3]), r"n_relevant must have shape \(1,\), got \(2,\)"),
        (dict(n_relevant=3), r"n_relevant must have shape \(n,\), .* got \(\)"),
        (dict(g=1.0), "n_relevant and g must not both be given"),
        (dict(n_relevant=None, g=0.0), "g must be finite and positive, got 0.0"),
        (dict(n_relevant=None, g=[1, 1, np.nan, 1]), "g must be finite and positive, got nan"),
        (dict(n_relevant=None, g=[1, 1]), r"g must be a number or have shape \(4,\), got shape \(2,\)"),
        (dict(n_relevant=None, g=1.0), "n_relevant must be given for F1"),
        (dict(Y_pred=None), "Y_pred must be given"),
    ],
)
def test_bad_values_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        unbiased(Y, SCORES, NAMES, **{**GOOD, **changed})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("P@0", "cut-off of a metric must be positive, got 'P@0'"),
        ("F0", "beta of F must be positive, got 'F0'"),
        ("MRR", "no unbiased estimate of 'MRR' is known, but of .*MRR-all"),
        ("nDCG", "no unbiased estimate of 'nDCG' is known, but of .*nDCG@k"),
        ("P@-1", "no unbiased estimate of 'P@-1'"),
    ],
)
def test_bad_names_are_named(name, message):
    for ask in (
        lambda: unbiased(Y, SCORES, [name], **GOOD),
        lambda: unbiased_per_row(Y, SCORES, name, **GOOD),
        lambda: concentration_bound(name, [3]),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_wrong_types():
    with pytest.raises(TypeError, match="names must be a list of metrics, got 'P@1'"):
        unbiased(Y, SCORES, "P@1")
    with pytest.raises(TypeError, match="named by a string, got 1"):
        unbiased(Y, SCORES, [1])
    for weights in (["a"] * 4, np.ones(4) * 1j, sp.csr_matrix(np.ones((1, 4), dtype=bool))):
        with pytest.raises(TypeError, match="inv_propensity must hold real numbers"):
            unbiased(Y, SCORES, ["P@1"], inv_propensity=weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(delta=0.0), "delta must lie between 0 and 1, got 0.0"),
        (dict(delta=math.nan), "delta must lie between 0 and 1, got nan"),
        (dict(g=1.0), "g serves R@k, MRR-all and ADG only, got g = 1.0 for 'P@5'"),
        (dict(inv_propensity=[0.5]), "inv_propensity must hold .* got 0.5"),
        (
            dict(inv_propensity=np.ones((2, 3))),
            r"inv_propensity must have shape \(L,\) or \(1, L\), got \(2, 3\)",
        ),
    ],
)
def test_bad_arguments_of_the_bound(arguments, message):
    with pytest.raises(ValueError, match=message):
        concentration_bound("P@5", [3], **arguments)


def test_arguments_are_left_as_they_are():
    weights = sp.csr_matrix((np.array([4.0, 2.0]), np.array([3, 0]), np.array([0, 2])), shape=(1, 4))
    before = weights.indices.copy(), weights.data.copy()
    assert unbiased(Y, SCORES, ["P@2"], inv_propensity=weights) == {"P@2": 1.0}
    np.testing.assert_array_equal(weights.indices, before[0])
    np.testing.assert_array_equal(weights.data, before[1])

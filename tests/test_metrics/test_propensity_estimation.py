"""Propensities estimated from data, the curve fitted to them, label weights and the plot."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import propensity
from metarank.propensity import (
    PRESETS,
    PropensityPoints,
    fit_propensity,
    inv_propensity,
    label_weights,
    plot_propensities,
    propensities_from_hierarchy,
    propensities_from_substitutes,
    propensities_from_symmetry,
)


def indicator(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), np.float32)
    for i, row in enumerate(rows):
        Y[i, row] = 1
    return Y


def observed_share(complete_counts, a, b, n):
    """The share N_l / N*_l for which N_l, on average what is left of N*_l, has this propensity by eq. 1."""
    low, high = np.zeros(len(complete_counts)), complete_counts.astype(float)
    for _ in range(60):
        middle = (low + high) / 2
        too_many = middle * inv_propensity(middle, a, b, n_points=n) > complete_counts
        low, high = np.where(too_many, low, middle), np.where(too_many, middle, high)
    return low / complete_counts


# --- the fit ---


@pytest.mark.parametrize(("a", "b"), [*PRESETS.values(), (0.2, 12.0), (1.3, 0.3)])
def test_fit_recovers_the_exact_curve(a, b):
    counts = np.unique(np.geomspace(1, 3000, 40).astype(int))
    fit = fit_propensity(counts, 1 / inv_propensity(counts, a, b, n_points=20_000), 20_000)
    assert abs(fit.a - a) < 1e-3
    assert abs(fit.b - b) < 1e-3
    assert fit.error < 1e-6
    assert not fit.at_bound


def test_fit_is_no_worse_than_a_grid():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 500, 60)
    p = np.clip(1 / inv_propensity(counts, n_points=900) + rng.normal(0, 0.2, 60), 0, 1)
    s = rng.random(60)
    fit = fit_propensity(counts, p, 900, sample_weight=s)

    def error(a, b):
        return np.sqrt(np.average((1 / inv_propensity(counts, a, b, n_points=900) - p) ** 2, weights=s))

    assert fit.error == pytest.approx(error(fit.a, fit.b), rel=1e-12)
    grid = [error(a, b) for a in np.geomspace(0.05, 5, 25) for b in np.geomspace(0.01, 100, 25)]
    assert fit.error <= min(grid) + 1e-12


def test_weight_is_repetition_and_order_does_not_matter():
    counts, p = np.array([2, 5, 30, 200]), np.array([0.3, 0.2, 0.6, 0.7])
    weighted = fit_propensity(counts, p, 1000, sample_weight=[1, 2, 1, 3])
    repeated = fit_propensity(np.repeat(counts, [1, 2, 1, 3]), np.repeat(p, [1, 2, 1, 3]), 1000)
    np.testing.assert_allclose(weighted[:3], repeated[:3], rtol=1e-5)
    assert fit_propensity(counts[::-1], p[::-1], 1000, sample_weight=[3, 1, 2, 1]) == weighted


def test_fit_says_when_the_shape_is_wrong():
    falling = fit_propensity([2, 20, 200], [0.9, 0.5, 0.1], 1000)
    assert falling.at_bound


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([5], [0.5], 100), "at least 2 different counts"),
        (([], [], 100), "at least 2 different counts"),
        (([1, 1, 5], [0.2, 0.2, 0.5], 100), "at least 2 different counts"),
        (([2, 5], [0.5, 1.1], 100), r"propensities must lie in \[0, 1\], got 1.1 at 1"),
        (([2, 5], [-0.1, 0.5], 100), "propensities must lie"),
        (([2, 5], [np.nan, 0.5], 100), "propensities must lie"),
        (([-1, 5], [0.5, 0.5], 100), r"counts must lie in \[0, 100\], got -1.0 at 0"),
        (([2, 500], [0.5, 0.5], 100), "counts must lie"),
        (([1, 2], [0.5, 0.5], 2), "n_points must be at least 3"),
        (([1, 2, 3], [0.5, 0.5], 9), "one length"),
    ],
)
def test_fit_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_propensity(*arguments)


def test_fit_refuses_weights():
    with pytest.raises(ValueError, match="sample_weight must lie"):
        fit_propensity([2, 5], [0.5, 0.5], 9, sample_weight=[1, -1])
    with pytest.raises(ValueError, match="at least 2 different counts"):
        fit_propensity([2, 5], [0.5, 0.5], 9, sample_weight=[1, 0])


# --- bins ---


def test_bins_are_of_equal_height():
    counts = np.arange(1, 48)
    points = PropensityPoints(np.arange(47), counts, counts, counts * 2, n_points=50)
    bins = points.binned(20)
    assert bins.sizes.tolist() == [24, 23]
    assert bins.counts.tolist() == [12.5, 36.0]
    np.testing.assert_allclose(bins.propensities, 0.5)
    assert points.binned(1000).sizes.tolist() == [47]
    with pytest.raises(ValueError, match="labels_per_bin"):
        points.binned(0)


def test_bins_share_out_equal_counts():
    # Which two of the three labels of one point make up the first bin is not for their order to decide.
    points = PropensityPoints(
        np.arange(4), np.array([1, 1, 1, 4]), np.array([0, 3, 3, 4]), np.array([4, 4, 4, 4]), n_points=9
    )
    np.testing.assert_allclose(points.binned(2).propensities, [0.5, 0.75])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"counts": [0, 2]}, r"counts must lie in \[1, 9\], got 0 at 0"),
        ({"counts": [1, 10]}, "counts must lie"),
        ({"possible": [0, 2]}, "possible must lie"),
        ({"found": [1, -2]}, "found must lie"),
        ({"found": [1]}, r"found must have shape \(2,\)"),
    ],
)
def test_points_refuse(columns, message):
    good = {"labels": [0, 1], "counts": [1, 2], "found": [1, 2], "possible": [3, 4], "n_points": 9}
    with pytest.raises(ValueError, match=message):
        PropensityPoints(**{**good, **columns})


def test_no_points_no_bins():
    points = propensities_from_hierarchy(np.ones((4, 3)), np.empty((0, 2), int))
    assert len(points) == 0
    assert [len(column) for column in points.binned()] == [0, 0, 0]


# --- hierarchy ---


def test_hierarchy_by_hand():
    # The example of the paper in small: 2 points carry "14th century in Italy" (0), 3 more a descendant only.
    # 1 and 2 are children of 0, 3 and 4 of 1, and 5 of both 2 and 3; 6 stands alone.
    parents = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (5, 3), (5, 3)]
    Y = indicator([[0], [0, 4], [4], [5], [1, 5], [6], []], 7)
    points = propensities_from_hierarchy(Y, parents, min_descendants=5)
    assert (points.labels.tolist(), points.n_points) == ([0], 7)
    assert (points.found.tolist(), points.possible.tolist()) == ([2], [5])
    assert points.propensities.tolist() == [0.4]
    # 1 has the descendants 3, 4, 5 (N = 1; 4, 4 and 5 in other points), 2 and 3 were never observed.
    points = propensities_from_hierarchy(Y, parents, min_descendants=1)
    assert points.labels.tolist() == [0, 1]
    assert points.possible.tolist() == [5, 4]


def brute_hierarchy(Y, parents, min_descendants):
    n_labels = Y.shape[1]
    children = {label: {c for c, p in parents if p == label} for label in range(n_labels)}

    def below(label):
        return children[label].union(*(below(c) for c in children[label]))

    result = {}
    for label in range(n_labels):
        d = sorted(below(label))
        only = (Y[:, d].sum(axis=1) > 0) & (Y[:, label] == 0)
        if len(d) >= min_descendants and Y[:, label].any():
            result[label] = (int(Y[:, label].sum()), int(Y[:, label].sum() + only.sum()))
    return result


@pytest.mark.parametrize("seed", range(4))
def test_hierarchy_agrees_with_sets_and_permutes_with_the_labels(seed):
    rng = np.random.default_rng(seed)
    n_labels = 14
    Y = (rng.random((40, n_labels)) < 0.1).astype(np.float32)
    pairs = [(c, int(p)) for c in range(1, n_labels) for p in rng.integers(0, c, rng.integers(1, 3))]
    points = propensities_from_hierarchy(sp.csr_matrix(Y), pairs, min_descendants=2)
    found = {k: (f, p) for k, f, p in zip(points.labels, points.found, points.possible)}
    assert found == brute_hierarchy(Y, pairs, 2)

    new_id = rng.permutation(n_labels)
    Y_new = np.empty_like(Y)
    Y_new[:, new_id] = Y
    moved = propensities_from_hierarchy(Y_new, new_id[np.array(pairs)], min_descendants=2)
    order = np.argsort(new_id[points.labels])
    np.testing.assert_array_equal(moved.labels, new_id[points.labels][order])
    np.testing.assert_array_equal(moved.propensities, points.propensities[order])
    for a, b in zip(moved.binned(3), points.binned(3)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([(0, 1), (1, 2), (2, 1)], "label 1 is its own ancestor"),
        ([(3, 3)], "label 3 is its own ancestor"),
        ([(0, 4)], r"label ids in \[0, 4\), got \(0, 4\) at row 0"),
        ([(-1, 0)], "label ids"),
        ([0, 1], "integer pairs"),
        ([(0.0, 1.0)], "integer pairs"),
    ],
)
def test_hierarchy_refuses(parents, message):
    with pytest.raises(ValueError, match=message):
        propensities_from_hierarchy(np.ones((5, 4)), parents)


A, B, N = 0.6, 2.6, 20_000
N_PARENTS, N_CHILDREN = 400, 6


def masked_hierarchy(mask_children):
    """Labels of points, parents first, with what the curve of A and B leaves of them.

    Returns Y, the pairs (child, parent), and of each parent the complete count and the propensity.
    """
    rng = np.random.default_rng(0)
    complete = np.geomspace(20, 4000, N_PARENTS).astype(int)
    propensity = observed_share(complete, A, B, N)
    rows, labels, pairs = [], [], []
    for parent in range(N_PARENTS):
        children = N_PARENTS + parent * N_CHILDREN + np.arange(N_CHILDREN)
        pairs += [(child, parent) for child in children]
        carriers = rng.choice(N, complete[parent], replace=False)
        has = rng.random((len(carriers), N_CHILDREN)) < 0.3
        has[np.arange(len(carriers)), rng.integers(0, N_CHILDREN, len(carriers))] = True  # one at least
        if mask_children:
            has &= rng.random(has.shape) < observed_share(has.sum(axis=0), A, B, N)
        seen = carriers[rng.random(len(carriers)) < propensity[parent]]
        at, which = np.nonzero(has)
        rows += [seen, carriers[at]]
        labels += [np.full(len(seen), parent), children[which]]
    rows, labels = np.concatenate(rows), np.concatenate(labels)
    Y = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, labels)), shape=(N, N_PARENTS * 7))
    return Y, pairs, complete, propensity


def test_hierarchy_recovers_the_curve_that_masked_the_labels():
    Y, pairs, complete, propensity = masked_hierarchy(mask_children=False)
    points = propensities_from_hierarchy(Y, pairs)
    np.testing.assert_array_equal(points.possible, complete[points.labels])
    assert np.abs(points.propensities - propensity[points.labels]).mean() < 0.03
    fit = points.fit()
    x = np.geomspace(5, 3000, 50)
    difference = 1 / inv_propensity(x, fit.a, fit.b, n_points=N) - 1 / inv_propensity(x, A, B, n_points=N)
    assert np.abs(difference).max() < 0.02
    assert abs(fit.a - A) < 0.05


def test_hierarchy_is_on_the_high_side_where_descendants_are_lost_too():
    Y, pairs, complete, propensity = masked_hierarchy(mask_children=True)
    points = propensities_from_hierarchy(Y, pairs)
    assert np.all(points.possible <= complete[points.labels])
    excess = points.propensities - propensity[points.labels]
    assert excess[:100].mean() > 0.2  # rare labels with rare descendants, most of which are lost
    assert 0 < excess[-100:].mean() < 0.03


# --- substitutes ---


def test_substitutes_by_hand():
    # Label 0 was bought with the items 0, 1 and 2, label 1 with 2 and 3, label 2 with nothing, 3 with 0.
    bought = indicator([[0, 3], [0], [0, 1], [1]], 4)
    viewed = indicator([[1], [1, 4, 5], [5, 0], []], 6)
    points = propensities_from_substitutes(bought, viewed)
    # Along with the items 0, 1, 2: {1, 4, 5, 0}. Nothing is known of item 3, so that label 1 is left out.
    assert points.labels.tolist() == [0, 3]
    assert (points.found.tolist(), points.possible.tolist()) == ([3, 1], [4, 1])
    assert (points.propensities.tolist(), points.n_points) == ([0.75, 1.0], 4)


def test_substitutes_never_exceed_one():
    points = propensities_from_substitutes(np.ones((3, 1)), np.ones((3, 1)))
    assert (points.found.tolist(), points.possible.tolist()) == ([3], [1])
    assert points.propensities.tolist() == [1.0]


@pytest.mark.parametrize("seed", range(3))
def test_substitutes_agree_with_sets(seed):
    rng = np.random.default_rng(seed)
    bought, viewed = rng.random((30, 12)) < 0.12, rng.random((30, 25)) < 0.08
    expected = {}
    for label in range(12):
        items = np.flatnonzero(bought[:, label])
        if len(items) and viewed[items].any(axis=1).all():
            expected[label] = (len(items), int(viewed[items].any(axis=0).sum()))
    points = propensities_from_substitutes(sp.coo_matrix(bought), sp.csc_matrix(viewed))
    found = {k: (f, p) for k, f, p in zip(points.labels, points.found, points.possible)}
    assert found == expected
    order = rng.permutation(12)
    moved = propensities_from_substitutes(bought[:, order], viewed)
    back = np.argsort(order[moved.labels])
    np.testing.assert_array_equal(order[moved.labels][back], points.labels)
    np.testing.assert_array_equal(moved.possible[back], points.possible)


def test_substitutes_refuse_other_rows():
    with pytest.raises(ValueError, match="viewed must have the 3 rows"):
        propensities_from_substitutes(np.ones((3, 2)), np.ones((2, 2)))


# --- symmetry ---


def test_symmetry_by_hand():
    names = ["argmax", "argmin", "max", "nanmax", "who is not a document"]
    # Rows: argmin, argmax, an overview that is no label, max, nanmax.
    row_labels = [1, 0, -1, 2, 3]
    Y = indicator([[0, 2], [1, 2, 4], [0, 1, 2], [0, 3], [2, 3]], len(names))
    points = propensities_from_symmetry(Y, row_labels, min_pairs=1)
    # argmax names argmin (answers), max (answers); argmin names argmax (answers), max (does not);
    # max names argmax (answers) and nanmax (answers); nanmax names max (answers), and itself.
    assert points.labels.tolist() == [0, 1, 2, 3]
    assert points.found.tolist() == [2, 1, 2, 1]
    assert points.possible.tolist() == [2, 2, 2, 1]
    assert points.counts.tolist() == [3, 2, 4, 1]
    assert propensities_from_symmetry(Y, row_labels, min_pairs=2).labels.tolist() == [0, 1, 2]


def test_symmetry_permutes_with_rows_and_labels():
    rng = np.random.default_rng(3)
    Y = (rng.random((30, 20)) < 0.3).astype(np.float32)
    own = np.concatenate([rng.permutation(20)[:15], np.full(15, -1)])
    points = propensities_from_symmetry(Y, own, min_pairs=3)
    assert len(points) > 5
    rows, new_id = rng.permutation(30), rng.permutation(20)
    Y_new = np.empty_like(Y)
    Y_new[:, new_id] = Y[rows]
    moved = propensities_from_symmetry(Y_new, np.where(own >= 0, new_id[own], -1)[rows], min_pairs=3)
    order = np.argsort(new_id[points.labels])
    for column in ("counts", "found", "possible", "propensities"):
        np.testing.assert_array_equal(getattr(moved, column), getattr(points, column)[order])


def test_symmetry_recovers_a_masked_relation():
    rng = np.random.default_rng(0)
    n = 600
    upper = np.triu(rng.random((n, n)) < 0.1, 1)
    complete = upper | upper.T
    p = rng.uniform(0.2, 0.9, n)
    points = propensities_from_symmetry(complete & (rng.random((n, n)) < p), np.arange(n))
    assert len(points) == n
    error = points.propensities - p
    assert abs(error.mean()) < 0.01
    # Of binomial size.
    assert np.std(error / np.sqrt(p * (1 - p) / points.possible)) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("row_labels", "message"),
    [
        ([0, 1], "row_labels must be 3 integers"),
        ([0.0, 1.0, 2.0], "row_labels must be 3 integers"),
        ([0, 1, 4], r"row_labels must lie in \[-1, 4\), got 4 at row 2"),
        ([-2, 1, 2], "row_labels must lie"),
        ([1, 0, 1], "got 1 more than once"),
    ],
)
def test_symmetry_refuses(row_labels, message):
    with pytest.raises(ValueError, match=message):
        propensities_from_symmetry(np.ones((3, 4)), row_labels)


def test_thresholds_are_positive():
    with pytest.raises(ValueError, match="min_pairs"):
        propensities_from_symmetry(np.ones((3, 4)), [0, 1, 2], min_pairs=0)
    with pytest.raises(ValueError, match="min_descendants"):
        propensities_from_hierarchy(np.ones((3, 4)), [(0, 1)], min_descendants=0)


def test_symmetry_without_rows_that_are_labels():
    assert len(propensities_from_symmetry(np.ones((3, 4)), [-1, -1, -1])) == 0


def test_symmetry_on_pydocs():
    pytest.importorskip("sklearn")
    from metarank.data.pydocs import load_pydocs, own_labels

    dataset = load_pydocs()
    own = own_labels(dataset)
    points = propensities_from_symmetry(dataset.Y, own, min_pairs=1)
    assert len(points) > 500
    row_of = {int(label): i for i, label in enumerate(own) if label >= 0}
    named = [set(row.indices.tolist()) for row in dataset.Y]
    for label, found, possible in list(zip(points.labels, points.found, points.possible))[::97]:
        others = [a for a in named[row_of[label]] if a in row_of]
        assert possible == len(others)
        assert found == sum(label in named[row_of[a]] for a in others)
    # Most, but by no means all See Also entries are answered.
    assert 0.5 < points.found.sum() / points.possible.sum() < 0.95


# --- weights ---


def test_label_weights_by_hand():
    Y = indicator([[0, 1], [0], [0, 1], [0]], 3)
    np.testing.assert_allclose(label_weights(Y, "power", beta=0.5), [0.5, 2**-0.5, 1.0])
    np.testing.assert_allclose(label_weights(Y, "log"), np.log([4 / 3, 2, 4]))
    np.testing.assert_array_equal(label_weights(Y, a=0.6, b=2.6), inv_propensity(Y, 0.6, 2.6))


@pytest.mark.parametrize("kind", ["inverse-propensity", "power", "log"])
def test_label_weights_are_positive_and_fall(kind):
    w = label_weights(np.arange(51), kind, n_points=50)
    assert w.dtype == np.float64
    assert np.all(np.isfinite(w) & (w > 0))
    assert np.all(np.diff(w) <= 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "idf"}, "kind must be"),
        ({"kind": "power", "beta": -1.0}, "beta must be"),
        ({"kind": "power", "beta": np.inf}, "beta must be"),
        ({"kind": "log", "n_points": 1}, "at least 2 points"),
        ({"kind": "log", "n_points": 0}, "one count"),
    ],
)
def test_label_weights_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        label_weights([1, 0], **{"n_points": 5, **arguments})


# --- the plot ---


def example_points():
    counts = np.arange(2, 122)
    possible = np.round(counts * inv_propensity(counts, 0.6, 2.6, n_points=400)).astype(int)
    return PropensityPoints(np.arange(120), counts, counts, possible, n_points=400)


def test_plot_is_well_formed_and_complete():
    points = example_points()
    root = ElementTree.fromstring(plot_propensities(points))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("20 labels" in t for t in titles) == 2 * 6  # a bin of 20 labels in each of the panels
    for name in ("default", "wikipedia", "amazon", "N_l^-0.5, scaled", "log(N / N_l), scaled"):
        assert titles.count(name) == 1
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(t.startswith("fit: a = 0.6") for t in texts)
    assert plot_propensities(points) == plot_propensities(points, points.fit())


def test_plot_holds_bins_of_propensity_zero():
    points = example_points()
    none = PropensityPoints(points.labels, points.counts, points.found * 0, points.possible, 400)
    assert "nan" not in plot_propensities(none, points.fit()).lower()


def test_plot_refuses():
    points = example_points()
    for agree_at in (0.5, 400, np.nan):
        with pytest.raises(ValueError, match="agree_at"):
            plot_propensities(points, agree_at=agree_at)
    empty = propensities_from_symmetry(np.ones((3, 4)), [-1, -1, -1])
    with pytest.raises(ValueError, match="at least one label"):
        plot_propensities(empty)


def test_all_names_are_there():
    for name in propensity.__all__:
        assert getattr(propensity, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = propensity.nothing

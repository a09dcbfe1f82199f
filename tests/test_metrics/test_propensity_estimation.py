"""Propensities estimated from data, the curve fitted to them, label weights and the plot."""

import numpy as np
import pytest

from metarank.metrics.propensity import PRESETS, PropensityPoints, fit_propensity, inv_propensity


def indicator(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), np.float32)
    for i, row in enumerate(rows):
        Y[i, row] = 1
    return Y


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
        (([1, 2, 3], [0.5, 0.5], 9), "the same length"),
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


# --- weights ---

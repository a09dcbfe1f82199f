"""Inverse propensities."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.metrics.propensity import PRESETS, inv_propensity


@pytest.mark.parametrize("preset", PRESETS)
def test_agrees_with_the_paper(preset):
    a, b = PRESETS[preset]
    counts, n = np.array([0, 1, 7, 50]), 50
    c = (math.log(n) - 1) * (b + 1) ** a
    p = [1 / (1 + c * math.exp(-a * math.log(count + b))) for count in counts]
    np.testing.assert_allclose(inv_propensity(counts, a, b, n_points=n), 1 / np.array(p), rtol=1e-14)


def test_containers_and_grades_agree():
    rng = np.random.default_rng(0)
    Y = (rng.random((20, 6)) < 0.4) * rng.integers(1, 5, (20, 6))
    expected = inv_propensity((Y > 0).sum(axis=0), n_points=20)
    assert expected.dtype == np.float64
    for container in (Y, Y.tolist(), sp.csr_matrix(Y), sp.csc_array(Y.astype(np.float32))):
        np.testing.assert_array_equal(inv_propensity(container), expected)
    explicit_zero = sp.csr_matrix((np.array([0.0, 1.0]), [0, 1], [0, 2, 2, 2]), shape=(3, 2))
    np.testing.assert_array_equal(inv_propensity(explicit_zero), inv_propensity(np.array([0, 1]), n_points=3))


def test_rarer_labels_weigh_more():
    w = inv_propensity(np.arange(100), n_points=100)
    assert np.all(np.diff(w) < 0)
    assert np.all(w > 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"Y": np.ones((2, 3))}, ValueError, "log N > 1"),
        ({"Y": np.zeros((0, 3))}, ValueError, "log N > 1"),
        ({"Y": np.ones((9, 3)), "a": 0.0}, ValueError, "a must be"),
        ({"Y": np.ones((9, 3)), "b": -1.0}, ValueError, "b must be"),
        ({"Y": np.ones((9, 3)), "b": np.nan}, ValueError, "b must be"),
        ({"Y": np.ones(3)}, ValueError, r"\(n, L\)"),
        ({"Y": np.ones((9, 3)), "n_points": 9}, ValueError, "one count"),
        ({"Y": np.array([10]), "n_points": 9}, ValueError, "one count"),
        ({"Y": np.array([-1]), "n_points": 9}, ValueError, "one count"),
        (dict(Y=[1, 2], n_points="3"), TypeError, "n_points must be a finite number"),
        (dict(Y=[1, 2], n_points=np.inf), ValueError, "n_points must be a finite number"),
        (dict(Y=[1j], n_points=10), TypeError, "Y must hold counts"),
        (dict(Y=[1, 2], a="default", n_points=10), TypeError, "a must be a positive number"),
        (dict(Y=[1, 2], a=700, b=10.0, n_points=10), ValueError, "a and b must give finite weights"),
        (dict(Y=np.array([[np.nan, 1], [1, 1], [0, 1]])), ValueError, "Y must be finite"),
    ],
)
def test_malformed_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        inv_propensity(**arguments)

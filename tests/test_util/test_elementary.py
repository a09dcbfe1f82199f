"""The core's exp and log, and what is made of them, beside the C library's in long double."""

from __future__ import annotations

import numpy as np
import pytest

from metarank._util import elementary

LONG = np.longdouble
NAN, INF = np.nan, np.inf

# What each is, said in long double, and numbers between which it is tried.
TWINS = {
    "exp": (np.exp, [(-745.0, 709.0), (-1.0, 1.0)]),
    "exp2": (np.exp2, [(-1074.0, 1023.0), (-1.0, 1.0)]),
    "log": (np.log, [(1e-300, 1e300), (1e-9, 3.0), (0.5, 2.0)]),
    "log2": (np.log2, [(1e-300, 1e300), (1e-9, 3.0), (0.5, 2.0)]),
    "log1p": (np.log1p, [(-0.999, 1.0), (-1e-6, 1e-6), (0.0, 1e9)]),
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), [(-700.0, 40.0), (-3.0, 3.0)]),
    "softplus": (lambda z: np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))), [(-700.0, 700.0), (-3.0, 3.0)]),
    "log_odds": (lambda p: np.log(p / (1 - p)), [(1e-9, 0.25), (0.75, 0.999)]),
}
UNITS = {"exp2": 2, "logistic": 3, "softplus": 3, "log_odds": 3}

# Where a function is more, or less, than a rule: arguments and values.
EXACT = {
    "exp": [(0, 1), (-INF, 0), (INF, INF), (NAN, NAN), (710, INF), (-746, 0), (-745.13, 5e-324)],
    "exp2": [
        (0, 1),
        (3, 8),
        (-1, 0.5),
        (1023, 2.0**1023),
        (-1074, 5e-324),
        (1025, INF),
        (-INF, 0),
        (NAN, NAN),
    ],
    "log": [(1, 0), (0, -INF), (-1, NAN), (INF, INF), (NAN, NAN), (5e-324, -744.4400719213812)],
    "log2": [(1, 0), (8, 3), (0.5, -1), (5e-324, -1074), (2.0**1023, 1023), (0, -INF), (-1, NAN)],
    "log1p": [(0, 0), (-1, -INF), (-2, NAN), (INF, INF), (1e-300, 1e-300), (NAN, NAN)],
    "logistic": [(0, 0.5), (-INF, 0), (INF, 1), (800, 1), (NAN, NAN)],
    "softplus": [(-INF, 0), (INF, INF), (1e3, 1e3), (NAN, NAN)],
    "log_odds": [(0.5, 0), (0, -INF), (1, INF), (2, NAN), (NAN, NAN)],
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long double is no longer than double")
def test_within_units_of_the_last_place(name):
    twin, ranges = TWINS[name]
    rng = np.random.default_rng(0)
    for low, high in ranges:
        x = rng.uniform(low, high, 20_000)
        if low > 0:
            x = np.concatenate([x, np.exp(rng.uniform(np.log(low), np.log(high), 20_000))])
        true = twin(x.astype(LONG))
        found = getattr(elementary, name)(x)
        away = np.abs(found.astype(LONG) - true) / np.spacing(np.abs(true.astype(np.float64)))
        assert away.max() < UNITS.get(name, 1)


@pytest.mark.parametrize("name", EXACT)
def test_at_the_edges(name):
    x, values = np.array(EXACT[name], np.float64).T
    np.testing.assert_array_equal(getattr(elementary, name)(x), values)


def test_shapes_and_types():
    x = np.asfortranarray(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    found = elementary.log(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, elementary.log(x.astype(np.float64)).astype(np.float32))
    assert elementary.log([1, 2]).dtype == np.float64
    assert elementary.log(np.float32(2)) == np.float32(np.log(2))
    assert elementary.log(1) == 0
    assert elementary.exp(np.zeros((0, 3))).shape == (0, 3)

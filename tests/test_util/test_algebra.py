"""Dense algebra of fits: what NumPy and SciPy compute, but for the last bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from metarank._util.algebra import (
    dot,
    gram,
    minimum,
    solve_positive,
    solve_upper,
    times,
    transposed_times,
    upper_factor,
)


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (3, 7), (50, 8), (203, 41)])
def test_products_and_solutions_are_those_of_numpy(n: int, d: int) -> None:
    rng = np.random.default_rng([n, d])
    A, w, x, v = rng.normal(size=(n, d)), rng.random(n), rng.normal(size=d), rng.normal(size=n)
    np.testing.assert_allclose(gram(A, w), (A.T * w) @ A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gram(A), A.T @ A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(times(A, x), A @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(transposed_times(A, v), A.T @ v, rtol=1e-12, atol=1e-12)
    assert dot(x, x) == pytest.approx(x @ x, rel=1e-13)
    M = A.T @ A + np.eye(d)
    R = upper_factor(M)
    np.testing.assert_allclose(R.T @ R, M, rtol=1e-12, atol=1e-12)
    assert not np.tril(R, -1).any()
    np.testing.assert_allclose(R @ solve_upper(R, x), x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(R.T @ solve_upper(R, x, transposed=True), x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(M @ solve_positive(M, x), x, rtol=1e-9, atol=1e-12)


def test_threads_and_layout_change_no_byte() -> None:
    A = np.random.default_rng(0).normal(size=(301, 90))
    assert gram(A, n_jobs=4).tobytes() == gram(np.asfortranarray(A)).tobytes()


@pytest.mark.parametrize("M", [[[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[np.nan]], [[np.inf]]])
def test_what_is_not_positive_definite_is_refused(M: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="positive definite"):
        upper_factor(np.array(M))


def test_sizes_are_checked() -> None:
    A = np.ones((3, 2))
    for ask in (
        lambda: gram(A, np.ones(2)),
        lambda: times(A, np.ones(3)),
        lambda: transposed_times(A, np.ones(2)),
        lambda: dot(np.ones(2), np.ones(3)),
        lambda: upper_factor(A),
        lambda: solve_upper(np.eye(2), np.ones(3)),
    ):
        with pytest.raises(ValueError, match="must"):
            ask()


def logistic_loss(seed: int, spread: float):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(80, 6)) * spread ** np.arange(6)
    y = (A[:, 0] + rng.normal(size=80) > 0) * 1.0

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = A @ w
        p = 1 / (1 + np.exp(-z))
        return float((np.logaddexp(0, z) - y * z).mean() + 0.005 * w @ w), A.T @ (p - y) / 80 + 0.01 * w

    return objective


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_the_minimum_is_that_of_scipy_in_as_many_steps(seed: int, spread: float) -> None:
    objective = logistic_loss(seed, spread)
    stop = {"gtol": 1e-8, "ftol": 1e-16, "maxiter": 500}
    expected = minimize(objective, np.zeros(6), jac=True, method="L-BFGS-B", options=stop)
    found = minimum(objective, np.zeros(6), most_steps=500, flat=1e-8, least_gain=1e-16)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
    assert found.loss <= expected.fun + 1e-13
    assert found.steps <= 1.5 * expected.nit + 5


def test_it_ends_where_it_is_told_to() -> None:
    objective = logistic_loss(0, 3.0)
    settings = {"flat": 1e-9, "least_gain": 0.0}
    assert minimum(objective, np.zeros(6), most_steps=3, **settings).steps == 3
    seen: list[np.ndarray] = []

    def after(x: np.ndarray) -> None:
        seen.append(x)
        if len(seen) == 2:
            raise StopIteration

    found = minimum(objective, np.zeros(6), most_steps=9, after=after, **settings)
    assert found.steps == 2
    np.testing.assert_array_equal(found.x, seen[1])
    assert minimum(objective, found.x, most_steps=9, flat=1e9, least_gain=0.0).steps == 0
    assert minimum(objective, np.zeros(6), most_steps=99, flat=0.0, least_gain=0.5).steps <= 3


def test_a_step_too_long_is_taken_back() -> None:
    """Infinite and NaN losses behind a wall do not end the search."""

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(1e3 * x[0] - np.log(x[0])), np.array([1e3 - 1 / x[0]])

    found = minimum(objective, np.array([5.0]), most_steps=200, flat=1e-6, least_gain=0.0)
    assert found.x[0] == pytest.approx(1e-3, rel=1e-6)

"""The estimates of `experiments/propensity/unbiased.py`: by hand, and their means over maskings."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

STUDY = Path(__file__).parents[2] / "experiments" / "propensity"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY))
    import unbiased

    yield unbiased
    sys.modules.pop("unbiased")


def test_worked_example(study):
    """Labels 0 to 3 have the ranks 2, 1, 4 and 3; 0 and 3 were observed of three, with p = 1/2 and 1/4."""
    Y, scores, weight = (
        sp.csr_matrix([[1, 0, 0, 1]]),
        np.array([[0.5, 0.9, 0.1, 0.3]]),
        np.array([2, 1, 1, 4.0]),
    )
    assert study.unbiased(Y, scores, ["P@2", "P@5", "nDCG@2"], weight) == pytest.approx(
        {"P@2": 2 / 2, "P@5": (2 + 4) / 5, "nDCG@2": (2 / math.log2(3)) / (1 + 1 / math.log2(3))}
    )
    assert study.unbiased_per_row(Y, scores, "R@4", weight, np.array([3])) == [2.0]


@pytest.mark.parametrize("name", ["P@3", "nDCG@3", "R@3"])
def test_the_mean_of_many_maskings_is_the_complete_value(study, name):
    rng = np.random.default_rng(3)
    complete, scores = rng.random((8, 9)) < 0.4, rng.random((8, 9))
    complete[:, 0] = True
    p, n = rng.uniform(0.2, 0.8, 9), complete.sum(axis=1)
    exact = study.unbiased_per_row(sp.csr_matrix(complete), scores, name, None, n).mean()
    draws = [sp.csr_matrix(complete & (rng.random(complete.shape) < p)) for _ in range(2000)]
    values = np.array([study.unbiased_per_row(Y, scores, name, 1 / p, n).mean() for Y in draws])
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / math.sqrt(len(values))
    plain = np.array([study.unbiased_per_row(Y, scores, name, None, n).mean() for Y in draws])
    assert plain.mean() < exact - 20 * plain.std(ddof=1) / math.sqrt(len(plain))

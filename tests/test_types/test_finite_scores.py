"""The look for scores that are no numbers, or too large."""

import numpy as np
import pytest

from metarank.types.checks import ScoresNotFiniteError, finite_scores


@pytest.mark.parametrize("n", [1, 3, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e30, -2e30])
def test_scores_out_of_range_are_refused_wherever_they_stand(n, dtype, bad):
    for place in {0, n // 2, n - 1}:
        for rest in (0, 1e20, -9e29):
            scores = np.full(n, rest, dtype)
            scores[place] = bad
            with pytest.raises(ScoresNotFiniteError, match="scores must be finite"):
                finite_scores(scores, 1e30)
            if np.isfinite(bad):
                assert finite_scores(scores) is scores


@pytest.mark.parametrize("shape", [(0,), (4,), (2, 3), (5000,)])
@pytest.mark.parametrize("value", [0, -1, 3e38, -3e38])
def test_scores_within_range_are_given_back(shape, value):
    scores = np.full(shape, value, np.float32)
    assert finite_scores(scores) is scores

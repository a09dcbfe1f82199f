"""The label prior."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.scorers.neighbors.prior import LabelPrior
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet


@pytest.fixture
def data():
    Y = sp.csr_matrix(np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0]], np.float32))
    return TrainingSet(np.zeros((4, 2), np.float32), Y, np.array([0, 0, 1, 1], np.int32))


def test_counts_the_view_only(data):
    pairs = Candidates.all_labels(1, 3)
    x = np.zeros((1, 2), np.float32)
    whole = LabelPrior().fit(data.view()).score(x, pairs)["prior"]
    np.testing.assert_allclose(whole, np.log(np.array([3.5, 0.5, 2.5]) / 5), rtol=1e-6)
    part = LabelPrior().fit(data.without_fold(0)).score(x, pairs)["prior"]
    np.testing.assert_allclose(part, np.log(np.array([1.5, 0.5, 1.5]) / 3), rtol=1e-6)
    assert whole.dtype == np.float32


def test_state_and_bad_candidates(data):
    prior = LabelPrior().fit(data.view())
    x = np.zeros((2, 2), np.float32)
    again = LabelPrior.from_state(prior.get_state())
    pairs = Candidates.all_labels(2, 3)
    assert again.score(x, pairs)["prior"].tobytes() == prior.score(x, pairs)["prior"].tobytes()
    with pytest.raises(ValueError, match="candidates must be of 3 labels, got 4"):
        prior.score(x, Candidates.all_labels(2, 4))

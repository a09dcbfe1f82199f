"""The estimates of `experiments/propensity/relations_estimates.py`, worked by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "experiments" / "propensity"


@pytest.fixture(autouse=True)
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY))
    import relations_estimates

    yield relations_estimates
    sys.modules.pop("relations_estimates")


def indicator(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), np.float32)
    for i, row in enumerate(rows):
        Y[i, row] = 1
    return Y


def test_hierarchy_by_hand(study):
    # The example of the paper in small: 2 points carry "14th century in Italy" (0), 3 more a descendant only.
    # 1 and 2 are children of 0, 3 and 4 of 1, and 5 of both 2 and 3; 6 stands alone.
    parents = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (5, 3), (5, 3)]
    Y = indicator([[0], [0, 4], [4], [5], [1, 5], [6], []], 7)
    points = study.propensities_from_hierarchy(Y, parents, min_descendants=5)
    assert (points.labels.tolist(), points.n_points) == ([0], 7)
    assert (points.found.tolist(), points.possible.tolist()) == ([2], [5])
    assert points.propensities.tolist() == [0.4]
    # 1 has the descendants 3, 4, 5 (N = 1; 4, 4 and 5 in other points), 2 and 3 were never observed.
    points = study.propensities_from_hierarchy(Y, parents, min_descendants=1)
    assert points.labels.tolist() == [0, 1]
    assert points.possible.tolist() == [5, 4]


def test_substitutes_by_hand(study):
    # Label 0 was bought with the items 0, 1 and 2, label 1 with 2 and 3, label 2 with nothing, 3 with 0.
    bought = indicator([[0, 3], [0], [0, 1], [1]], 4)
    viewed = indicator([[1], [1, 4, 5], [5, 0], []], 6)
    points = study.propensities_from_substitutes(bought, viewed)
    # Along with the items 0, 1, 2: {1, 4, 5, 0}. Nothing is known of item 3, so that label 1 is left out.
    assert points.labels.tolist() == [0, 3]
    assert (points.found.tolist(), points.possible.tolist()) == ([3, 1], [4, 1])
    assert (points.propensities.tolist(), points.n_points) == ([0.75, 1.0], 4)


def test_symmetry_by_hand(study):
    names = ["argmax", "argmin", "max", "nanmax", "who is not a document"]
    # Rows: argmin, argmax, an overview that is no label, max, nanmax.
    row_labels = [1, 0, -1, 2, 3]
    Y = indicator([[0, 2], [1, 2, 4], [0, 1, 2], [0, 3], [2, 3]], len(names))
    points = study.propensities_from_symmetry(Y, row_labels, min_pairs=1)
    # argmax names argmin (answers), max (answers); argmin names argmax (answers), max (does not);
    # max names argmax (answers) and nanmax (answers); nanmax names max (answers), and itself.
    assert points.labels.tolist() == [0, 1, 2, 3]
    assert points.found.tolist() == [2, 1, 2, 1]
    assert points.possible.tolist() == [2, 2, 2, 1]
    assert points.counts.tolist() == [3, 2, 4, 1]
    assert study.propensities_from_symmetry(Y, row_labels, min_pairs=2).labels.tolist() == [0, 1, 2]

"""Non-dominated points, hypervolume and knee: slow twins, laws, bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank.objectives import hypervolume, knee, non_dominated

# Few distinct values, so that ties and copies are frequent.
coarse = (
    st.integers(1, 5)
    .flatmap(lambda k: st.lists(st.lists(st.integers(0, 6), min_size=k, max_size=k), min_size=1, max_size=9))
    .map(lambda rows: np.array(rows, float) / 4)
)


def dominates(first, second, tolerance=0.0):
    """Whether the first point is nowhere worse and somewhere better (Definition 3.1)."""
    return (first >= second - tolerance).all() and (first > second + tolerance).any()


def inclusion_exclusion(points, reference):
    """Sum over all subsets of the box that every point of the subset dominates."""
    boxes = np.maximum(points - reference, 0)
    total = 0.0
    for size in range(1, len(boxes) + 1):
        for subset in combinations(boxes, size):
            total += (-1) ** (size + 1) * np.min(subset, axis=0).prod()
    return total


# --- non-dominated -------------------------------------------------------------


@given(coarse, st.sampled_from([0.0, 0.1, 0.25, 0.5]))
def test_non_dominated_is_what_dominates_leaves(points, tolerance):
    expected = [not any(dominates(other, p, tolerance=tolerance) for other in points) for p in points]
    assert non_dominated(points, tolerance).tolist() == expected


@given(coarse, st.randoms())
def test_non_dominated_permutes_with_its_points_and_is_never_empty(points, random):
    order = np.array(random.sample(range(len(points)), len(points)))
    mask = non_dominated(points)
    assert mask.any()
    assert non_dominated(points[order]).tolist() == mask[order].tolist()
    # Increasing maps of single objectives change nothing, nor does leaving out what is dominated.
    assert non_dominated(np.exp(points) * 3).tolist() == mask.tolist()
    assert non_dominated(points[mask]).all()


def test_copies_stand_together_and_no_points_have_an_empty_front():
    assert non_dominated([[1, 0], [1, 0], [0, 0]]).tolist() == [True, True, False]
    assert non_dominated(np.zeros((0, 3))).shape == (0,)


def test_dominance_with_a_tolerance_may_have_cycles():
    assert not non_dominated([[0, 0, 0], [1.5, -0.75, -0.75], [0.75, 0.75, -1.5]], 1.0).any()


# --- hypervolume ---------------------------------------------------------------


@settings(deadline=None)
@given(coarse, st.sampled_from([-1.0, 0.0, 0.3, 2.0]))
def test_hypervolume_is_inclusion_exclusion(points, reference):
    expected = inclusion_exclusion(points, reference)
    assert hypervolume(points, reference) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(coarse, st.randoms())
def test_laws_of_the_hypervolume(points, random):
    whole = hypervolume(points, 0.0)
    shuffled = points[random.sample(range(len(points)), len(points))]
    # Order, copies and dominated points do not show, to the bit; the order of objectives does not either.
    assert hypervolume(shuffled, 0.0) == whole
    assert hypervolume(np.vstack([points, points]), 0.0) == whole
    assert hypervolume(points[:, ::-1], 0.0) == pytest.approx(whole)
    assert hypervolume(points[non_dominated(points)], 0.0) == pytest.approx(whole)
    # More points never cover less; stretching an objective stretches the volume; a shift shifts both.
    assert hypervolume(points[:-1].reshape(-1, points.shape[1]), 0.0) <= whole + 1e-12
    assert hypervolume(points * 2, 0.0) == pytest.approx(whole * 2 ** points.shape[1])
    assert hypervolume(points + 3, 3.0) == pytest.approx(whole)


def test_hypervolume_of_one_point_and_of_none():
    assert hypervolume([[0.8, 0.7]], [0.5, 0.5]) == pytest.approx(0.06)
    assert hypervolume([[0.8, 0.5], [0.5, 0.9]], [0.5, 0.5]) == 0.0
    assert hypervolume(np.zeros((0, 2)), [0.5, 0.5]) == 0.0
    assert hypervolume([[2.0], [3.0]], 1.0) == 2.0


# --- knee ----------------------------------------------------------------------


def slow_knee(points):
    """Two objectives: the greatest distance from the straight line between the ends of the front."""
    front = [i for i, p in enumerate(points) if not any(dominates(o, p) for o in points)]
    ends = np.array([max(tuple(points[i]) for i in front), max(tuple(points[i])[::-1] for i in front)])
    (x1, y1), (y2, x2) = ends
    if (x1, y1) == (x2, y2):
        return front[0]
    # Distances in the scaled plane are proportional to those along either axis.
    above = [round((points[i][0] - x2) / (x1 - x2) + (points[i][1] - y1) / (y2 - y1) - 1, 10) for i in front]
    return front[above.index(max(above))]


@given(coarse.filter(lambda points: points.shape[1] == 2))
def test_knee_of_two_objectives_is_farthest_from_the_chord(points):
    assert knee(points) == slow_knee(points)


@given(coarse)
def test_knee_is_on_the_front_and_keeps_its_place_under_scaling(points):
    found = knee(points)
    assert non_dominated(points)[found]
    assert knee(points * 4 + 1) == found
    assert knee(np.vstack([points, points.min(axis=0) - 1])) == found


def test_knee_of_three_objectives_by_hand():
    ends = np.eye(3)
    assert knee([*ends, [0.4, 0.4, 0.4], [0.5, 0.5, 0.3]]) == 4
    assert knee([[1, 0, 0], [0, 1, 0], [0.3, 0.3, 1], [0.6, 0.55, 0.5]]) == 3


def test_knee_where_nothing_is_above_the_chord():
    assert knee([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]) == 0
    assert knee([[1.0, 0.0], [0.3, 0.3], [0.0, 1.0]]) == 0
    assert knee([[0.5, 0.5]]) == 0
    assert knee([[0.1, 0.1], [0.5, 0.5], [0.5, 0.5]]) == 1
    assert knee([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.9, 0.9, 0.9]]) == 2
    # An objective that never varies has no say.
    assert knee([[1.0, 0.0, 5.0], [0.8, 0.8, 5.0], [0.0, 1.0, 5.0]]) == 1


# --- bad input -----------------------------------------------------------------


@pytest.mark.parametrize("function", [non_dominated, knee, lambda points: hypervolume(points, 0.0)])
@pytest.mark.parametrize(
    ("points", "match"),
    [
        ([1.0, 2.0], r"points must be a matrix \(n, K\) with K >= 1, got shape \(2,\)"),
        (np.zeros((2, 0)), r"got shape \(2, 0\)"),
        ([[1.0, np.nan]], r"points must be finite, got nan at position \[0, 1\]"),
        ([[1.0, np.inf]], r"points must be finite, got inf at position \[0, 1\]"),
        ([[1.0], [1.0, 2.0]], "points must be numbers"),
        ([["a", "b"]], "points must be numbers"),
    ],
)
def test_bad_points(function, points, match):
    with pytest.raises(ValueError, match=match):
        function(points)


def test_bad_tolerance_reference_and_no_points():
    for tolerance in (-0.1, np.nan):
        with pytest.raises(ValueError, match="tolerance must be >= 0"):
            non_dominated([[1.0]], tolerance)
    with pytest.raises(ValueError, match="reference must have 2 entries, got 3"):
        hypervolume([[1.0, 2.0]], [0, 0, 0])
    with pytest.raises(ValueError, match="reference must be finite"):
        hypervolume([[1.0, 2.0]], [0, np.nan])
    with pytest.raises(ValueError, match="points must hold at least one point"):
        knee(np.zeros((0, 2)))

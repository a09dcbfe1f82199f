"""Groups of rows, and fold maps of one's own: rows of a group are never on both sides of a division."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from makers import QUICK, saved_bytes

from metarank import MetaRanker, data, load
from metarank.model.fitting import stages
from metarank.types.view import first_of_unit, fold_of_rows

TRAIN = data.make_multilabel(120, n_features=6, n_labels=5, seed=3)
GROUPS = np.arange(120) // 4


def whole(fold, groups):
    return all(len(np.unique(fold[groups == g])) == 1 for g in np.unique(groups))


# --- the fold map ---------------------------------------------------------------


@pytest.mark.parametrize("n_groups", [2, 3, 7, 60, 200])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_groups_are_whole_and_folds_full(n_groups, n_folds):
    groups = np.random.default_rng(n_groups).integers(0, n_groups, 400)
    fold = fold_of_rows(400, n_folds, 1, groups=groups)
    assert whole(fold, groups)
    counts = np.bincount(fold)
    assert len(counts) == min(n_folds, n_groups)
    assert counts.min() > 0
    assert np.ptp(counts) <= np.bincount(groups).max()
    renamed = np.array([f"author {9 * g}" for g in groups])
    assert np.array_equal(fold, fold_of_rows(400, n_folds, 1, groups=renamed))
    assert n_groups < 60 or not np.array_equal(fold, fold_of_rows(400, n_folds, 2, groups=groups))


def test_copies_and_groups_join():
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    groups = np.arange(30) // 3
    X[4] = X[10]  # groups 1 and 3
    X[11] = X[20]  # and 6
    first = first_of_unit(30, X, groups)
    joined = np.flatnonzero(np.isin(groups, [1, 3, 6]))
    assert (first[joined] == 3).all()
    others = np.setdiff1d(np.arange(30), joined)
    assert np.array_equal(first[others], 3 * (others // 3))
    assert whole(fold_of_rows(30, 4, 0, X, groups), first)


def test_values_that_are_frequent_join_nothing():
    """Four groups and coarse features: by their copies all rows would be one unit."""
    X = (np.arange(40) % 13)[:, None].astype(np.float32)
    groups = np.arange(40) // 10
    assert np.array_equal(first_of_unit(40, X, groups), 10 * groups)
    assert np.array_equal(first_of_unit(5, None, np.zeros(5, int)), np.arange(5)), "one group is not divided"


# --- in a fit -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{}, {"shortlister": "neighbors", "shortlist_size": 3}], ids=["all", "near"]
)
def test_every_division_of_a_fit_keeps_groups(params, monkeypatch):
    divided = []

    def seen(columns, pairs, n_jobs, data, scorers):
        divided.append((data.fold, pairs.fold, pairs.outer))
        return ranked(columns, pairs, n_jobs, data, scorers)

    ranked = stages.ranked
    monkeypatch.setattr(stages, "ranked", seen)
    MetaRanker(**QUICK | params | {"n_folds": 3}).fit(TRAIN, groups=GROUPS)
    (fold, of_lists, outer), *_ = divided
    assert whole(fold, GROUPS)
    assert whole(of_lists, GROUPS)
    assert outer is not None
    if outer != "nested":
        for part in outer:
            assert not set(GROUPS[part.seen]) & set(GROUPS[part.held_out])


def noisy(n_groups=30, size=8, seed=0):
    """Rows near their group's centre, whose labels are drawn by group: other groups tell nothing of them."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = (5 * rng.normal(size=(n_groups, 4)))[groups] + 0.1 * rng.normal(size=(n_groups * size, 4))
    Y = np.eye(6, dtype=np.float32)[rng.integers(0, 6, n_groups)][groups]
    return X.astype(np.float32), Y, groups


def test_quality_is_that_of_new_groups():
    X, Y, groups = noisy()
    params = {**QUICK, "n_folds": 5}
    plain, grouped = MetaRanker(**params).fit(X, Y), MetaRanker(**params).fit(X, Y, groups=groups)
    assert plain.held_out_quality_["P@1"].value > 0.9
    value, low, high = grouped.held_out_quality_["P@1"]
    assert value < 0.45
    assert low < 1 / 6 < high
    # Thirty groups tell less than 240 rows.
    assert high - low > 1.5 * (
        plain.held_out_quality_["micro-F1"].high - plain.held_out_quality_["micro-F1"].low
    )
    # So probabilities do not promise more than a new group keeps.
    new = np.random.default_rng(9).normal(size=(50, 4)).astype(np.float32) * 5
    assert grouped.predict_proba(new).max() < plain.predict_proba(new).max()


@pytest.mark.parametrize(
    "groups", [[str(g) for g in GROUPS], pd.Series(GROUPS), GROUPS.astype(float), tuple(GROUPS)]
)
def test_containers_and_names_of_groups_and_threads_make_no_difference(groups, tmp_path):
    one = MetaRanker(**QUICK).fit(TRAIN, groups=GROUPS)
    other = MetaRanker(**QUICK | {"n_jobs": 4}).fit(TRAIN, groups=groups).set_params(n_jobs=1)
    assert saved_bytes(one, tmp_path / "a") == saved_bytes(other, tmp_path / "b")
    again = load(tmp_path / "a")
    assert np.array_equal(again.decision_function(TRAIN), one.decision_function(TRAIN))


def test_choices_say_so():
    assert any("3, fewer than n_folds=5" in c for c in fit_of(n_folds=5, groups=np.arange(120) % 3).choices_)
    assert any(
        "5, each of whole groups, of which there are 30" in c
        for c in fit_of(n_folds=5, groups=GROUPS).choices_
    )
    assert any("4, those of folds" in c for c in fit_of(folds=np.arange(120) % 4).choices_)
    assert not any(c.startswith("folds") for c in fit_of().choices_)


def fit_of(n_folds=2, **given):
    return MetaRanker(**QUICK | {"n_folds": n_folds}).fit(TRAIN, **given)


def test_a_given_map_is_the_map(monkeypatch):
    folds = []
    at_work = MetaRanker._at_work

    def seen(self, data, n_jobs):
        folds.append(data.fold)
        return at_work(self, data, n_jobs)

    monkeypatch.setattr(MetaRanker, "_at_work", seen)
    given = np.random.default_rng(0).choice([2, 5, 11], 120)
    fit_of(folds=given)
    assert np.array_equal(folds[0], np.searchsorted([2, 5, 11], given))
    fit_of(folds=GROUPS % 3, groups=GROUPS)
    assert np.array_equal(folds[1], GROUPS % 3)


# --- bad input --------------------------------------------------------------------------


BAD = {
    "groups": [
        (GROUPS[:9], ValueError, r"have shape \(120,\), got 9 values"),
        (np.zeros((120, 2)), ValueError, r"have shape \(120,\), got \(120, 2\)"),
        (np.zeros(120), ValueError, "hold at least 2 groups, .* got 0.0 only"),
        ([None, *range(119)], ValueError, "give the group of each row, got None at row 0"),
        ([*range(119), float("nan")], ValueError, "give .* got nan at row 119"),
        (pd.Series(["a", pd.NA] * 60), ValueError, "give .* got .* at row 1"),
        ([[1]] * 120, TypeError, r"hold integers or texts, got \[1\] at row 0"),
        ("author", TypeError, "be a list with a value per row, got 'author'"),
        ({1, 2}, TypeError, "be a list with a value per row"),
    ],
    "folds": [
        (np.zeros(120, int), ValueError, "hold at least 2 folds, got 0 only"),
        (np.arange(120) - 1, ValueError, "hold integers >= 0, got -1 at row 0"),
        (np.arange(120) / 2, TypeError, "hold integers >= 0, got 0.0"),
        (np.arange(120) > 3, TypeError, "hold integers >= 0, got False"),
        (np.arange(3), ValueError, r"have shape \(120,\), got 3 values"),
    ],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    for value, error, rule in BAD[name]:
        with pytest.raises(error, match=f"{name} must {rule}"):
            MetaRanker(**QUICK).fit(TRAIN, **{name: value})
    with pytest.raises(ValueError, match="folds must keep groups together, got rows 0 and 1"):
        MetaRanker(**QUICK).fit(TRAIN, folds=np.arange(120) % 2, groups=GROUPS)

"""z-scores within candidate lists."""

import itertools

import numpy as np
import pytest

from metarank.candidates import Candidates
from metarank.features.assemble import assemble
from metarank.features.standardize import standardize_within_lists


def slow(values, indptr):
    out = np.zeros(values.shape)
    for a, b in itertools.pairwise(indptr):
        part = values[a:b].astype(np.float64)
        if len(part):
            std = part.std(axis=0)
            out[a:b] = np.where(std > 0, (part - part.mean(axis=0)) / np.where(std > 0, std, 1), 0)
    return out


def lists(rng, n=40, F=7):
    counts = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    values = rng.normal(size=(indptr[-1], F)).astype(np.float32)
    values[:, 2] = np.float32(0.1)
    values[:, 3] *= 1e6
    return values, indptr


def test_agrees_with_slow_twin():
    values, indptr = lists(np.random.default_rng(0))
    out = standardize_within_lists(values, indptr)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, slow(values, indptr), atol=1e-5)
    assert np.all(out[:, 2] == 0)


def test_threads_and_splits_give_the_same_bytes():
    values, indptr = lists(np.random.default_rng(1), n=300)
    whole = standardize_within_lists(values, indptr)
    assert standardize_within_lists(values, indptr, n_jobs=4).tobytes() == whole.tobytes()
    cut = indptr[150]
    halves = [
        standardize_within_lists(values[:cut], indptr[:151]),
        standardize_within_lists(values[cut:], indptr[150:] - cut),
    ]
    assert np.concatenate(halves).tobytes() == whole.tobytes()


def test_no_pairs():
    assert standardize_within_lists(np.empty((0, 3), np.float32), np.array([0, 0])).shape == (0, 3)
    assert standardize_within_lists(np.empty((2, 0), np.float32), np.array([0, 2])).shape == (2, 0)


@pytest.mark.parametrize(
    ("values", "indptr", "message"),
    [
        ([[np.nan]], [0, 1], "values must be finite"),
        ([[np.inf]], [0, 1], "values must be finite"),
        ([[1.0]], [0, 2], "indptr must start at 0 and end"),
        ([[1.0], [2.0]], [0, 3, 2], "indptr must not decrease"),
        ([1.0], [0, 1], "values must be of shape"),
    ],
)
def test_bad_input(values, indptr, message):
    with pytest.raises(ValueError, match=message):
        standardize_within_lists(np.array(values, np.float32), np.array(indptr))


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("raw", [None, ["c4", "c1"], []])
def test_a_table_holds_own_columns_then_twins(standardize, raw):
    values, indptr = lists(np.random.default_rng(2), n=200)
    pairs = Candidates(indptr, np.concatenate([np.arange(c) for c in np.diff(indptr)]), 9)
    columns = {f"c{j}": np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])}
    table = assemble(columns, pairs, standardize=standardize, raw=raw)
    own = [name for name in columns if raw is None or not standardize or name in raw]
    twins = [f"z({name})" for name in columns] if standardize else []
    assert table.names == own + twins
    parts = [columns[name][:, None] for name in own]
    if standardize:
        parts.append(standardize_within_lists(values, indptr))
    assert table.values.tobytes() == np.concatenate(parts, axis=1).tobytes()
    assert assemble(columns, pairs, standardize=standardize, raw=raw, n_jobs=4).values.tobytes() == (
        table.values.tobytes()
    )


def test_columns_that_do_not_fit_are_named():
    pairs = Candidates.all_labels(2, 2)
    good = np.arange(4, dtype=np.float32)
    for bad, match in (
        (good[:3], r"column 'b' must have shape \(4,\)"),
        (np.float32([0, 1, -np.inf, 0]), "column 'b' must be finite"),
        (np.float32([0, np.nan, 0, 0]), "column 'b' must be finite"),
    ):
        for standardize in (True, False):
            with pytest.raises(ValueError, match=match):
                assemble({"a": good, "b": bad}, pairs, standardize=standardize)
    with pytest.raises(ValueError, match="at least one column"):
        assemble({}, pairs)

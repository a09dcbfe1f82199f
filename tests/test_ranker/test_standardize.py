"""z-scores within candidate lists."""

import itertools

import numpy as np
import pytest

from metarank.ranker.assemble import assemble
from metarank.types.candidates import Candidates
from metarank.types.feature_table import RELATIVE


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


def pairs_of(indptr):
    return Candidates(indptr, np.concatenate([np.arange(c) for c in np.diff(indptr)]).astype(np.int32), 9)


def test_twins_are_z_scores_within_each_list():
    """Population mean and deviation; 0 for a column that is constant in a list."""
    values, indptr = lists(np.random.default_rng(0))
    columns = {f"c{j}": np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])}
    found = assemble(columns, pairs_of(indptr), raw=[]).values
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slow(values, indptr), atol=1e-5)
    assert np.all(found[:, 2] == 0)


def test_threads_and_splits_give_the_same_bytes():
    values, indptr = lists(np.random.default_rng(1), n=300)

    def table(first, last, n_jobs=1):
        part = values[indptr[first] : indptr[last]]
        columns = {f"c{j}": np.ascontiguousarray(part[:, j]) for j in range(part.shape[1])}
        return assemble(columns, pairs_of(indptr[first : last + 1] - indptr[first]), n_jobs=n_jobs).values

    whole = table(0, 300).tobytes()
    assert table(0, 300, n_jobs=4).tobytes() == whole
    assert np.concatenate([table(0, 150), table(150, 300)]).tobytes() == whole


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("raw", [None, ["c4", "c1"], []])
def test_a_table_holds_own_columns_then_twins(standardize, raw):
    values, indptr = lists(np.random.default_rng(2), n=200)
    pairs = pairs_of(indptr)
    columns = {f"c{j}": np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])}
    table = assemble(columns, pairs, standardize=standardize, raw=raw)
    own = [name for name in columns if raw is None or not standardize or name in raw]
    twins = [name + RELATIVE for name in columns] if standardize else []
    assert table.names == own + twins
    for name in own:
        assert table.values[:, own.index(name)].tobytes() == columns[name].tobytes()
    if standardize:
        np.testing.assert_allclose(table.values[:, len(own) :], slow(values, indptr), atol=1e-5)
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

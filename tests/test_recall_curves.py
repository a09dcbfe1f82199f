"""Recall of sources of candidates, against a slow count."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.candidates import Candidates
from metarank.recall_curves import RecallCurves, recall_curves

N, L = 40, 30


def source(seed: int, most: int = 8) -> Candidates:
    """Lists of different lengths, some empty, with equal scores among them."""
    rng = np.random.default_rng(seed)
    lists = [np.sort(rng.permutation(L)[: rng.integers(0, most)]) for _ in range(N)]
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    labels = np.concatenate(lists)
    return Candidates(indptr, labels, L, {"score": rng.integers(0, 3, len(labels)).astype(np.float32)})


def slow(sources, Y, counts, k, low, high):
    """(hits, relevant) of labels with low to high points, for each source and the union."""
    hits, relevant = dict.fromkeys([*sources, "union"], 0), 0
    for i in range(N):
        for label in range(L):
            if Y[i, label] <= 0 or not low <= counts[label] <= high:
                continue
            relevant += 1
            found = []
            for name, c in sources.items():
                span = slice(c.indptr[i], c.indptr[i + 1])
                best = sorted(zip(-c.scores["score"][span], c.labels[span]))[:k]
                found.append(label in [int(b) for _, b in best])
                hits[name] += found[-1]
            hits["union"] += any(found)
    return hits, relevant


def test_curves_agree_with_a_slow_count():
    rng = np.random.default_rng(0)
    Y = (rng.random((N, L)) < 0.2) * rng.random((N, L))
    counts = rng.integers(0, 30, L)
    sources = {"a": source(1), "b": source(2)}
    curves = recall_curves(sources, sp.csr_matrix(Y), counts)
    assert list(curves.recall) == ["a", "b", "union"]
    assert curves.bands == ["0", "1", "2-5", "6-20", ">20", "all"]
    bounds = [(0, 0), (1, 1), (2, 5), (6, 20), (21, 10**9), (0, 10**9)]
    for band, (low, high) in enumerate(bounds):
        for k in range(1, 8):
            hits, relevant = slow(sources, Y, counts, k, low, high)
            assert curves.n_relevant[band] == relevant
            for name, n in hits.items():
                expected = n / relevant if relevant else np.nan
                np.testing.assert_allclose(curves.recall[name][band, k - 1], expected)
    everything = curves.recall["a"][-1, -1]
    assert everything == pytest.approx(sources["a"].recall(sp.csr_matrix(Y)))


def test_curves_never_fall_and_the_union_is_above_all():
    Y = sp.random(N, L, 0.3, "csr", random_state=0)
    curves = recall_curves({"a": source(1), "b": source(2)}, Y, np.ones(L, np.int64), k=12)
    for curve in curves.recall.values():
        assert curve.shape == (6, 12)
        assert np.all(np.diff(curve[-1]) >= 0)
    assert np.all(curves.recall["union"][-1] >= np.maximum(curves.recall["a"], curves.recall["b"])[-1])


def test_edges():
    empty = Candidates(np.zeros(N + 1), np.zeros(0), L, {"score": np.zeros(0)})
    nothing = recall_curves({"a": empty}, sp.csr_matrix((N, L)), np.zeros(L, np.int64))
    assert isinstance(nothing, RecallCurves)
    assert np.isnan(nothing.recall["a"]).all()
    assert nothing.table(ks=(1, 99))[1:] == [["a", "1", *"------"], ["union", "1", *"------"]]
    Y, counts = sp.csr_matrix(np.eye(N, L)), np.zeros(L, np.int64)
    assert recall_curves({"a": empty}, Y, counts).recall["a"][-1].tolist() == [0.0]


@pytest.mark.parametrize(
    ("sources", "counts", "match"),
    [
        ({}, np.zeros(L), "sources must name at least one"),
        ({"union": source(1)}, np.zeros(L), "must not be called 'union'"),
        ({"a": source(1)}, np.zeros(L + 1), r"label_counts must have shape \(30,\)"),
        ({"a": Candidates.all_labels(N, L)}, np.zeros(L), "must carry scores"),
        ({"a": source(1).rows(slice(0, 3))}, np.zeros(L), r"sources\['a'\] must be of the 40 rows"),
    ],
)
def test_what_is_refused(sources, counts, match):
    with pytest.raises(ValueError, match=match):
        recall_curves(sources, sp.csr_matrix((N, L)), counts)

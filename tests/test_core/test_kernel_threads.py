"""Kernels whose other tests are too small for a second thread: the same bytes, whoever does the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import _core
from metarank.shortlist import FastXML
from metarank.types.arrays import csr_parts, unit_rows
from metarank.types.candidates import Candidates


def uniform(*shape: int, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(0).random(shape).astype(dtype)


def label_linear_scores(n_jobs: int) -> np.ndarray:
    labels = np.arange(5000, dtype=np.int32) % 7
    values = uniform(5000, 3, dtype=np.float32)
    return _core.label_linear_scores(values, labels, uniform(3), uniform(7, 3), uniform(7), n_jobs)


def list_ndcg(n_jobs: int) -> np.ndarray:
    indptr, gains = np.arange(0, 2001, 10), np.tile(np.arange(10.0), 200)
    ideal = _core.ideal_dcg(gains, indptr, 5, 1)
    return _core.list_ndcg(uniform(2000), gains, ideal, np.arange(2000), indptr, 5, n_jobs)


def xc_text(n_jobs: int) -> np.ndarray:
    """Blocks of text are of a MiB."""
    text = np.frombuffer(b"".join(b"%d 0:%d.5 3:0.25\n" % (i % 5, i) for i in range(150_000)), np.uint8)
    indptr, ids, values, *_ = _core.parse_rows(text, 4, 5, True, True, False, False, 1, n_jobs)
    return np.concatenate([indptr, ids, values])


@cache
def forest() -> tuple[FastXML, sp.csr_matrix]:
    X = sp.random(1500, 20, 0.3, "csr", np.float32, random_state=0)
    Y = sp.csr_matrix(np.eye(6, dtype=np.float32)[np.arange(1500) % 6])
    return FastXML(n_trees=3, max_leaf=50).fit(X, Y), X


def pairs_in_trees(n_jobs: int) -> np.ndarray:
    model, X = forest()
    pairs = Candidates.all_labels(X.shape[0], 6)
    return model._trees.pairs(csr_parts(unit_rows(X)), pairs.indptr, pairs.labels, n_jobs)


KERNELS = [label_linear_scores, list_ndcg, xc_text, pairs_in_trees]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_any_number_of_threads(kernel: Callable[[int], np.ndarray]) -> None:
    one = kernel(1)
    assert len(np.unique(one)) > 2
    assert kernel(3).tobytes() == one.tobytes()

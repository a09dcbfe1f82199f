"""Allowed labels: only these are ranked, and a short list of them is ranked as a whole."""

from __future__ import annotations

from itertools import pairwise

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Candidates
from metarank.types.restrict import LabelLimits, check_lists


@pytest.fixture(scope="module", params=["dense", "many labels", "many texts"])
def fitted(request):
    return makers.fitted(request.param), makers.MAKERS[request.param]().take(slice(0, 12))


def rows_of(matrix: sp.csr_matrix) -> list[list[int]]:
    return [matrix.indices[a:b].tolist() for a, b in pairwise(matrix.indptr)]


def by_hand(found: Candidates, allowed: list[list[int]], banned: list[list[int]], least: int, w: np.ndarray):
    """The rule of `Limits`, row by row."""
    out = []
    for i in range(found.n_rows):
        mine = found.labels[found.indptr[i] : found.indptr[i + 1]].tolist()
        open_to = [label for label in sorted(set(allowed[i])) if label not in banned[i]]
        kept = [label for label in mine if label in open_to]
        others = sorted(
            (label for label in open_to if label not in kept), key=lambda label: (w[label], label)
        )
        out.append(sorted(kept + others[: max(0, least - len(kept))]))
    return out


@pytest.mark.parametrize("seed", range(20))
def test_rule_by_hand(seed):
    rng = np.random.default_rng(seed)
    n, L, least = 7, 30, int(rng.integers(1, 12))
    found = Candidates.from_csr(sp.random(n, L, 0.2, "csr", np.float32, random_state=rng))
    found = Candidates(found.indptr, found.labels, L)
    banned = [rng.integers(0, L, rng.integers(0, 6)).tolist() for _ in range(n)]
    per_row = [rng.integers(0, L, rng.integers(0, 25)).tolist() for _ in range(n)]
    flat = rng.integers(0, L, rng.integers(0, 25))
    w = rng.integers(1, 4, L).astype(float)
    for allowed, lists in ((per_row, per_row), (flat, [flat.tolist()] * n)):
        limits = LabelLimits.checked(banned, allowed, n, L)
        for rows in (slice(0, n), slice(2, 5)):
            part = found.rows(rows)
            got = limits.rows(rows).complete(limits.rows(rows).within(part), least, w)
            expected = by_hand(part, lists[rows], banned[rows], least, w)
            assert rows_of(got.to_csr(np.ones(got.n_pairs))) == expected


def test_only_these_and_all_of_a_short_list(fitted):
    model, test = fitted
    n, L = test.n_rows, model.n_labels_
    allowed = [[(7 * i) % L, (11 * i + 3) % L, L - 1] if i % 3 else [] for i in range(n)]
    ranking = model.rank(test, k=5, allowed=allowed)
    for i, row in enumerate(ranking):
        assert {label for label, _ in row} == set(allowed[i])
    mask = np.zeros((n, L), bool)
    for i, row in enumerate(allowed):
        mask[i, row] = True
    again = model.rank(test, k=5, allowed=sp.csr_matrix(mask))
    np.testing.assert_array_equal(again.labels, ranking.labels)
    probability = sp.csr_matrix(model.predict_proba(test, allowed=allowed)).toarray()
    assert (probability[mask] > 0).all()
    assert not probability[~mask].any()
    assert not model.predict(test, allowed=allowed).toarray()[~mask].any()
    scores = model.decision_function(test, allowed=allowed)
    for i, row in enumerate(allowed):
        if row:
            assert scores[i][mask[i]].min() > scores[i][~mask[i]].max()


def test_one_list_for_all_rows(fitted):
    model, test = fitted
    some = [3, 1, 2, 1]
    ranking = model.rank(test, k=6, allowed=some)
    np.testing.assert_array_equal(np.sort(ranking.labels)[:, -3:], np.tile([1, 2, 3], (test.n_rows, 1)))
    for same in (np.array(some), (1, 2, 3), range(1, 4), [some] * test.n_rows):
        np.testing.assert_array_equal(model.rank(test, k=6, allowed=same).scores, ranking.scores)
    empty = model.rank(test, k=2, allowed=[])
    assert (empty.labels == -1).all()
    assert model.predict(test, allowed=[]).nnz == 0
    less = model.rank(test, k=6, allowed=some, exclude=[[1]] * test.n_rows)
    assert set(less.labels.ravel()) == {-1, 2, 3}


def test_all_labels_allowed_changes_nothing(fitted):
    model, test = fitted
    everything = model.rank(test, k=5, allowed=range(model.n_labels_))
    plain = model.rank(test, k=5)
    np.testing.assert_array_equal(everything.labels, plain.labels)
    np.testing.assert_array_equal(everything.scores, plain.scores)


def test_rows_batches_and_prefixes(fitted):
    model, test = fitted
    L = model.n_labels_
    rng = np.random.default_rng(0)
    allowed = [rng.permutation(L)[: rng.integers(0, L)].tolist() for _ in range(test.n_rows)]
    ranking = model.rank(test, k=6, allowed=allowed)
    order = rng.permutation(test.n_rows)
    turned = model.rank(test.take(order), k=6, allowed=[allowed[i] for i in order])
    np.testing.assert_array_equal(turned.labels, ranking.labels[order])
    np.testing.assert_array_equal(turned.scores, ranking.scores[order])
    one = model.rank(test.take(slice(4, 5)), k=3, allowed=allowed[4:5])
    np.testing.assert_array_equal(one.scores, ranking.scores[4:5, :3])


def test_own_candidates_are_cut_down_and_not_completed(fitted):
    model, test = fitted
    ranking = model.rank(test, k=4, candidates=[[0, 1, 2]] * test.n_rows, allowed=[2, 3])
    np.testing.assert_array_equal(ranking.labels[:, 0], 2)
    assert (ranking.labels[:, 1:] == -1).all()


WRONG = [[[0]], [10**6], [-1], np.array([1, -1]), np.array([10**6], np.uint64), [0.5], ["a"], [True]]
WRONG += ["all", {1: 2}, np.zeros((12, 2)), sp.csr_matrix((12, 3000))]


@pytest.mark.parametrize("allowed", WRONG)
@pytest.mark.parametrize("method", ["rank", "predict", "predict_proba", "decision_function"])
def test_what_does_not_fit_is_refused(fitted, allowed, method):
    model, test = fitted
    with pytest.raises((ValueError, TypeError), match="allowed"):
        getattr(model, method)(test, allowed=allowed)


def test_checked_ids():
    assert check_lists(np.array([], int), 3, 4).tolist() == []
    assert check_lists((), 3, 4).tolist() == []
    assert check_lists([[], [], []], 3, 4).n_pairs == 0

"""experiments/small_mlc: section 2.3 as read and the paper's systems, against slow twins."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

with study("small_mlc"):
    import lambda_net
    import paper_cut
    import rankers


READINGS = [
    paper_cut.Reading(ties=ties, place=place, least=least)
    for ties, place, least in product(("most", "fewest", "widest"), ("middle", "lower", "upper"), (0, 1))
]


def toy(n: int = 60, d: int = 5, n_labels: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, X @ rng.normal(size=(d, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0.3


# --- the threshold --------------------------------------------------------------


@pytest.mark.parametrize("how", ["shift", "softmax", "mean"])
def test_scores_sum_to_one_and_keep_their_order(how):
    scores = np.random.default_rng(0).normal(size=(20, 5)) - 3
    found = paper_cut.normalised(scores, how)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(np.argsort(found, axis=1), np.argsort(scores, axis=1))


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_targets_are_those_of_a_search_through_all_cuts(reading):
    rng = np.random.default_rng(1)
    for _ in range(100):
        n_labels = int(rng.integers(1, 6))
        scores, y = np.round(rng.random(n_labels), 1), rng.random(n_labels) < 0.4
        ranked = np.sort(scores)[::-1]
        cuts = []  # (mistakes, labels kept, upper end, lower end)
        for kept in range(reading.least, n_labels + 1):
            upper = ranked[0] * 1.2 if kept == 0 else ranked[kept - 1]
            lower = ranked[-1] if kept == n_labels else ranked[kept]
            if upper > lower or kept == n_labels:
                chosen = scores >= upper if kept else np.zeros(n_labels, bool)
                cuts.append((int(np.sum(chosen != y)), kept, upper, lower))
        least = [cut for cut in cuts if cut[0] == min(c[0] for c in cuts)]
        by = {"most": lambda c: c[1], "fewest": lambda c: -c[1], "widest": lambda c: c[2] - c[3]}
        _, _, upper, lower = max(least, key=by[reading.ties])
        expected = {"middle": (upper + lower) / 2, "lower": lower, "upper": upper}[reading.place]
        found = paper_cut.best_cuts(scores[None], y[None], reading)[0]
        assert found == pytest.approx(expected)


def test_the_cut_is_the_least_squares_fit():
    rng = np.random.default_rng(2)
    scores, Y, new = rng.normal(size=(80, 4)), rng.random((80, 4)) < 0.4, rng.normal(size=(30, 4))
    for order in ("sorted", "label"):
        reading = replace(paper_cut.READING, order=order)
        s, z = paper_cut.normalised(scores, "shift"), paper_cut.normalised(new, "shift")
        inputs = [(-np.sort(-part) if order == "sorted" else part) for part in (s, z)]
        # Scores that sum to one make one column and the constant the same: leave a column out.
        X, Z = (np.column_stack([part[:, 1:], np.ones(len(part))]) for part in inputs)
        # The worst score of a row is 0, so that it has no say where scores are sorted.
        cut = Z @ np.linalg.pinv(X) @ paper_cut.best_cuts(s, Y, reading)
        np.testing.assert_array_equal(paper_cut.label_sets(scores, Y, new, reading), z >= cut[:, None])


# --- meta-features without the row itself -----------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_described_by_all_others(sparse):
    X, Y = toy(30)
    Y[:, 3] = False
    Y[4, 3] = True  # a label of one row
    X[X < 0] = 0
    X[9] = X[2]
    given = sp.csr_matrix(X) if sparse else X
    near, centroid = rankers.MetaFeatures(given, Y, 3, "others", 0, 1).of_training_rows()
    near, centroid = near.reshape(30, 4, 9), centroid.reshape(30, 4, 2)
    pairs = Candidates.all_labels(1, 4)
    for row in range(30):
        others = np.arange(30) != row
        labels = sp.csr_matrix(Y[others], dtype=np.float32)
        view = TrainingSet(given[others], labels, np.zeros(29, np.int32)).view()
        for found, scorer in ((near, LabelNeighbors(k=3, columns="raw")), (centroid, Centroids())):
            expected = np.column_stack(list(scorer.fit(view).score(given[[row]], pairs).values()))
            kept = np.ones(4, bool)
            # How far a label without a row is follows from the longest of all rows, here with the row itself.
            kept[3] = row != 4
            np.testing.assert_allclose(found[row][kept], expected[kept], rtol=1e-4, atol=2e-3)
    longest, own = (X * X).sum(axis=1).max(), (X[4] * X[4]).sum()
    np.testing.assert_allclose(near[4, 3, :3], np.sqrt(own + longest), rtol=1e-5)
    np.testing.assert_allclose(centroid[4, 3], [np.sqrt(own + longest), 1], rtol=1e-5)


@pytest.mark.parametrize(
    "kind", [rankers.PaperListNet, rankers.PaperRankSVM, rankers.PaperSVMMAP, rankers.PaperLambdaRank]
)
def test_the_papers_systems_rank_new_rows_and_choose_once(kind):
    X, Y = toy(200, seed=3)
    model = kind(quick=True).fit(X[:120], Y[:120])
    assert set(model.chosen) == {"k", kind.name_of_strength}
    scores = model.scores(X[120:])
    relevant = scores[Y[120:]].mean() - scores[~Y[120:]].mean()
    assert relevant > 0.5 * scores.std()
    again = kind(quick=True, given=model.chosen).fit(X[:120], Y[:120])
    np.testing.assert_array_equal(again.scores(X[120:]), scores)
    sets = paper_cut.label_sets(model.training_scores(), Y[:120], scores)
    np.testing.assert_array_equal(model.decide(scores), sets)


# --- LambdaRank -------------------------------------------------------------------


def test_lambdas_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    scores, Y = rng.normal(size=(20, 6)), rng.random((20, 6)) < 0.4
    Y[:, 0], Y[:, 1] = True, False

    def ndcg(order: np.ndarray, y: np.ndarray) -> float:
        discount = 1 / np.log2(2 + np.arange(6))
        return float((y[order] * discount).sum() / discount[: y.sum()].sum())

    for s, y, found in zip(scores, Y, lambda_net.lambdas(scores, Y)):
        order, expected = np.argsort(-s), np.zeros(6)
        for i, j in product(np.flatnonzero(y), np.flatnonzero(~y)):
            swapped = order.copy()
            a, b = np.flatnonzero(order == i)[0], np.flatnonzero(order == j)[0]
            swapped[a], swapped[b] = j, i
            pull = abs(ndcg(swapped, y) - ndcg(order, y)) / (1 + np.exp(s[i] - s[j]))
            expected[i] += pull
            expected[j] -= pull
        np.testing.assert_allclose(found, expected, atol=1e-6)

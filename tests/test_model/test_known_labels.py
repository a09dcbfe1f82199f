"""Labels that a row is known to have: what they add, by every way in, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Candidates, MetaRanker, MultiObjectiveRanker, data, load, metrics
from metarank._util.progress import listening
from metarank.model import known_labels
from metarank.model.known_labels import Together, described, half_of, widened

N_TRAIN, L = 260, 120


def pairs_of_labels(n, seed):
    """Labels come in pairs, 2 j and 2 j + 1; words tell of the first of each pair alone."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(L // 2, 2, replace=False) for _ in range(n)])
    Y = np.zeros((n, L), np.float32)
    Y[np.arange(n)[:, None], 2 * pairs] = Y[np.arange(n)[:, None], 2 * pairs + 1] = 1
    X = np.zeros((n, L // 2), np.float32)
    X[np.arange(n), pairs[:, 0]] = 1
    X += (rng.random(X.shape) < 0.02) * 0.5
    return sp.csr_matrix(X), sp.csr_matrix(Y)


@pytest.fixture(scope="module")
def fitted():
    model = MetaRanker(n_jobs=1, random_state=0).fit(*pairs_of_labels(N_TRAIN, 0))
    X, Y = pairs_of_labels(80, 1)
    # Of each row the first label of the pair of which no word tells.
    told = (X > 0.9).toarray().argmax(axis=1)
    rows = [np.setdiff1d(Y.indices[Y.indptr[i] : Y.indptr[i + 1]] // 2, told[i])[0] for i in range(80)]
    return model, X, Y, [[2 * int(pair)] for pair in rows]


def test_known_labels_tell_of_the_others(fitted):
    model, X, Y, known = fitted
    rest = Y.toarray()
    rest[np.arange(len(known)), np.ravel(known)] = 0
    without, ranked = model.rank(X, k=3, exclude=known), model.rank(X, k=3, known=known)
    before, after = (metrics.evaluate(rest, of, ["R@3"])["R@3"] for of in (without, ranked))
    assert after > before + 0.15
    partner = np.ravel(known) + 1
    assert np.mean((ranked.labels == partner[:, None]).any(axis=1)) > 0.8


def test_one_answer_by_every_way_in(fitted, tmp_path):
    model, X, _, known = fitted
    ranked = model.rank(X, k=5, known=known)
    as_matrix = sp.csr_matrix((np.ones(80), (np.arange(80), np.ravel(known))), (80, L))
    model.save(tmp_path / "model")
    four = MetaRanker(n_jobs=4, random_state=0).fit(*pairs_of_labels(N_TRAIN, 0))
    for other in (model, load(tmp_path / "model"), four):
        for given in (known, as_matrix, Candidates.from_csr(as_matrix.astype(np.float32))):
            again = other.rank(X, k=5, known=given)
            np.testing.assert_array_equal(again.labels, ranked.labels)
            np.testing.assert_array_equal(again.scores, ranked.scores)
    singles = [model.rank(X[i], k=5, known=[known[i]]) for i in range(20)]
    np.testing.assert_array_equal(np.vstack([one.labels for one in singles]), ranked.labels[:20])
    proba = model.predict_proba(X, known=known)
    assert proba[np.arange(80), np.ravel(known)].sum() == 0
    best = np.take_along_axis(proba.toarray(), ranked.labels, axis=1)
    assert (np.diff(best, axis=1) <= 1e-6).all()
    kept = model.predict(X, optimize="hamming", known=known)
    assert abs(kept - (proba >= 0.5)).nnz == 0


def test_rows_without_known_labels_stay_as_they_are(fitted):
    model, X, _, known = fitted
    some = [labels if i % 2 else [] for i, labels in enumerate(known)]
    mixed, plain = model.rank(X, k=4, known=some), model.rank(X, k=4)
    np.testing.assert_array_equal(mixed.labels[::2], plain.labels[::2])
    np.testing.assert_array_equal(mixed.labels[1::2], model.rank(X, k=4, known=known).labels[1::2])
    blank = sp.csr_matrix((1, X.shape[1]), dtype=np.float32)
    found = model.rank(blank, k=2, known=[[6]])
    assert 7 in found.labels
    assert not found.without_evidence[0]


def test_limits_hold(fitted):
    model, X, _, known = fitted
    allowed = [[labels[0], labels[0] + 1, 3, 5, 9] for labels in known]
    ranked = model.rank(X, k=5, known=known, allowed=allowed)
    for row, labels, own in zip(ranked.labels, allowed, known):
        assert {*row[row >= 0].tolist()} <= {*labels} - {*own}
    own = [[0, 1, 2, 3]] * len(known)
    ranked = model.rank(X, k=5, known=known, candidates=own, exclude=[3])
    assert {*ranked.labels[ranked.labels >= 0].tolist()} <= {0, 1, 2}


def test_counts_and_columns_by_hand(monkeypatch):
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]], np.float32))
    together = Together(Y)
    assert together.counts.toarray().tolist() == [[3, 2, 0], [2, 3, 1], [0, 1, 1]]
    monkeypatch.setattr(known_labels, "_MOST_PAIRS", 6)
    assert 0 < (np.diff(Together.of(Y).Y.indptr) ** 2).sum() <= 6
    assert together.of_pairs(np.array([0, 0, 2]), np.array([1, 2, 1])).tolist() == [2, 0, 1]
    known = Candidates(np.array([0, 1]), np.array([0]), 3)
    lists, base = widened(together, Candidates(np.array([0, 1]), np.array([2]), 3), np.array([-2.0]), known)
    assert lists.labels.tolist() == [1, 2]
    assert base.tolist() == [-3, -2]
    values = described(together, lists, base, known)
    lift = np.log([(2 + 1) / (3 * 3 / 4 + 1), (0 + 1) / (3 * 1 / 4 + 1)])
    by_hand = [[-3, 1, np.log(4), 2 / 3, 2 / 3, lift[0], lift[0], 1, 1]]
    by_hand += [[-2, 0, np.log(2), 0, 0, lift[1], lift[1], 0, 1]]
    np.testing.assert_allclose(values, by_hand, rtol=1e-6)
    assert np.diff(half_of(Candidates.all_labels(2, 4), 0).indptr).tolist() == [2, 2]


def test_progress_never_falls():
    """After the ranker of a fit, in which known labels are learned; and of a fit with places."""
    told = []
    with listening(lambda stage, done: told.append((stage, done))):
        MetaRanker(n_jobs=1, random_state=0).fit(*pairs_of_labels(N_TRAIN, 0))
    stages = [stage.partition(":")[0] for stage, _ in told]
    assert "known labels" in stages
    after = [done for _, done in told[stages.index("thresholds") :]]
    told.clear()
    X, place = np.random.default_rng(0).normal(size=(260, 3)), np.tile(np.arange(1, 11), 26)
    with listening(lambda stage, done: told.append((stage, done))):
        ranker = MultiObjectiveRanker(n_rounds=5, n_jobs=1)
        ranker.fit(X, {"clicks": (X[:, 0] > 0) * (place < 5)}, [10] * 26, position=place)
    for shares in (after, [done for _, done in told]):
        assert (np.diff(shares) > -1e-9).all()


def test_what_is_refused(fitted):
    model, X, _, known = fitted
    with pytest.raises(ValueError, match=r"known: .*120|known must"):
        model.rank(X, known=[[L]] * 80)
    with pytest.raises(ValueError, match="known must be left out"):
        model.rank_points(X, known=known)
    with pytest.raises(ValueError, match="known must be left out"):
        model.explain(X[0], 3, known=[known[0]])
    quick = MetaRanker(effort="low", n_jobs=1).fit(data.make_multilabel(80, n_labels=4, seed=0))
    with pytest.raises(ValueError, match="known needs a fit with effort='medium'"):
        quick.rank(np.zeros((1, quick.n_features_in_), np.float32), known=[[0]])

"""`rank_points`: the best rows of each label, by a ranker of its own or by probability."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, load, metrics
from metarank.data import make_extreme
from metarank.model.best_points import best_by_label, row_columns
from metarank.scorers.base import columns_of
from metarank.scorers.crossfit import fitted_without, held_out_points
from metarank.scorers.source import Source
from metarank.shortlist import Parabel, XReg
from metarank.types.candidates import Candidates

KINDS = ["dense", "sparse", "texts", "blocks", "many labels", "many texts"]
LABELWISE = {**makers.QUICK, "labelwise": True}


def shortlisted(n: int = 100):
    """Rows of more labels than are all ranked, with grades."""
    rows = make_extreme(n, n_features=120, n_labels=130, labels_per_row=4, nnz_per_row=12, seed=0)
    Y = sp.csr_matrix(rows.Y, dtype=np.float32)
    Y.data = np.random.default_rng(0).integers(1, 6, Y.nnz).astype(np.float32)
    return sp.csr_matrix(rows.X), Y


def trees_and_neighbors(**params) -> MetaRanker:
    quick = {"shortlister": ["neighbors", Parabel(n_trees=1)], "n_folds": 2, "n_jobs": 1, "effort": "low"}
    return MetaRanker(**quick | {"ranker": "pointwise", "labelwise": True} | params)


@pytest.fixture(scope="module")
def graded():
    X, Y = shortlisted()
    return trees_and_neighbors().fit(X, Y), X, Y


def assert_same(ours, theirs):
    assert ours.labels.tobytes() == theirs.labels.tobytes()
    assert ours.scores.tobytes() == theirs.scores.tobytes()


@pytest.mark.parametrize("maker", KINDS)
def test_lists_hold_rows_once_best_first_and_loaded_models_give_the_same(maker, tmp_path):
    model, rows = makers.fitted(maker, **LABELWISE), makers.MAKERS[maker]()
    found = model.rank_points(rows, 5)
    n = model.encoder_.encode(rows).shape[0]
    assert found.labels.shape == found.scores.shape == (model.n_labels_, 5)
    assert (found.n_labels, found.labels.dtype, found.scores.dtype) == (n, np.int32, np.float32)
    for own, scores in zip(found.labels, found.scores):
        listed = own[own >= 0]
        assert len(set(listed.tolist())) == len(listed)
        assert (np.diff(scores[own >= 0]) <= 0).all()
        assert (own[len(listed) :] == -1).all()
    assert (found.labels[:, 0] >= 0).any()
    assert model.rank_points(rows, 10**6).labels.shape == (model.n_labels_, n)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.labelwise is True
    assert_same(loaded.rank_points(rows, 5), found)


@pytest.mark.parametrize("maker", KINDS)
def test_the_first_ranker_is_the_same(maker, tmp_path):
    """What was not asked for costs nothing, and what was asked for changes nothing else."""
    plain, both = makers.fitted(maker), makers.fitted(maker, **LABELWISE)
    rows = makers.MAKERS[maker]()
    assert plain.fitted_.point_ranker is None
    assert both.fitted_.point_ranker is not None
    assert plain.feature_columns_ == both.feature_columns_
    assert plain.rank(rows).scores.tobytes() == both.rank(rows).scores.tobytes()
    ours, theirs = (makers.saved_bytes(m, tmp_path / str(i)) for i, m in enumerate((plain, both)))
    assert not any(b'point_ranker": {' in content for content in ours.values())
    assert set(ours) <= set(theirs)


def test_threads_do_not_matter(graded, tmp_path):
    model, X, Y = graded
    others = trees_and_neighbors(n_jobs=4).fit(X, Y)
    ours, theirs = (
        makers.saved_bytes(m.set_params(n_jobs=1), tmp_path / str(i)) for i, m in enumerate((model, others))
    )
    assert ours == theirs
    assert_same(model.rank_points(X, 5), others.set_params(n_jobs=4).rank_points(X, 5))


def test_neither_chunks_nor_the_order_of_rows_matter(monkeypatch):
    X, Y = shortlisted(150)
    sources = ["neighbors", Parabel(n_trees=2), XReg(n_trees=1)]
    model = MetaRanker(shortlister=sources, n_folds=3, n_jobs=1, labelwise=True).fit(X, Y)
    whole = model.rank_points(X, 5)
    order = np.random.default_rng(0).permutation(X.shape[0])
    shuffled = model.rank_points(X[order], 5)
    # The sums of a list are in another order, so that scores may differ in the last digit.
    assert np.allclose(whole.scores, shuffled.scores, rtol=1e-4, atol=1e-5)
    back = np.where(shuffled.labels >= 0, order[shuffled.labels], -1)
    clear = np.isfinite(whole.scores).all(axis=1)
    clear[clear] = (-np.diff(whole.scores[clear], axis=1) > 1e-3).all(axis=1)
    assert clear.sum() > 20
    assert (np.where(clear[:, None], back, 0) == np.where(clear[:, None], whole.labels, 0)).all()
    monkeypatch.setattr("metarank.model.best_points.CHUNK_PAIRS", 7)
    assert_same(model.rank_points(X, 5), whole)


def test_longer_lists_have_more_candidates():
    X, Y = shortlisted()
    model = trees_and_neighbors(shortlist_size=3).fit(X, Y)
    short, long = model.rank_points(X, 3), model.rank_points(X, 40)
    assert ((long.labels >= 0).sum(axis=1) > 12).any()
    assert ((short.labels >= 0).sum(axis=1) > 0).sum() > 50


def test_scores_depend_on_the_other_points(graded):
    """That is the nature of a place within a list."""
    model, X, _ = graded
    assert not np.array_equal(model.rank_points(X, 1).scores, model.rank_points(X[:60], 1).scores)


def test_what_is_the_same_for_all_labels_of_a_row_tells_rows_apart():
    """Long rows have many labels, whatever these are: nothing that could order the labels of a row."""
    rng = np.random.default_rng(0)
    n, d, L = 300, 60, 130
    is_long = rng.random(n) < 0.2
    X, Y = np.zeros((n, d), np.float32), np.zeros((n, L), np.float32)
    for i in range(n):
        X[i, rng.choice(d, 20 if is_long[i] else 5, replace=False)] = 1
        own = rng.choice(L, 25 if is_long[i] else 2, replace=False)
        Y[i, own] = rng.integers(1, 6, len(own))
    X, Y = sp.csr_matrix(X), sp.csr_matrix(Y)
    train, test = slice(0, 200), slice(200, n)
    judged, found = sp.csr_matrix(Y[test].T), {}
    for labelwise in (True, False):
        model = trees_and_neighbors(labelwise=labelwise).fit(X[train], Y[train])
        assert any(text.startswith("labelwise: ") for text in model.choices_) == labelwise
        found[labelwise] = model.rank_points(X[test], 5)
    quality = {name: metrics.evaluate(judged, ranking, ["WP@5"])["WP@5"] for name, ranking in found.items()}
    assert is_long[test][found[True].labels].mean() > 0.8
    assert quality[True] > quality[False]


@pytest.mark.parametrize("maker", ["dense", "many labels", "texts"])
def test_without_it_the_most_probable_rows_are_listed(maker):
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    found, proba = model.rank_points(rows, 5), model.predict_proba(rows)
    proba = proba.toarray() if sp.issparse(proba) else proba
    for label in range(model.n_labels_):
        best = [i for i in np.lexsort((np.arange(len(proba)), -proba[:, label])) if proba[i, label] > 0][:5]
        assert found.labels[label, : len(best)].tolist() == best
        assert found.scores[label, : len(best)].tobytes() == proba[best, label].tobytes()


@pytest.mark.parametrize("labelwise", [False, True])
def test_limits_hold(graded, labelwise):
    X, Y = graded[1:]
    model = graded[0] if labelwise else trees_and_neighbors(labelwise=False).fit(X, Y)
    n, L = Y.shape
    rng = np.random.default_rng(0)
    excluded, allowed = rng.random((n, L)) < 0.3, rng.random((n, L)) < 0.5
    found = model.rank_points(X, 8, exclude=sp.csr_matrix(excluded), allowed=sp.csr_matrix(allowed))
    label, place = np.nonzero(found.labels >= 0)
    row = found.labels[label, place]
    assert len(row) > L
    assert not excluded[row, label].any()
    assert allowed[row, label].all()
    own = [[i % L] for i in range(n)]
    found = model.rank_points(X, 8, candidates=own)
    assert (found.labels[0][found.labels[0] >= 0] % L == 0).all()
    assert set(found.labels[0][found.labels[0] >= 0].tolist()) == set(range(0, n, L))


def test_labels_that_come_and_go():
    X, Y = shortlisted()
    model = trees_and_neighbors().fit(X, Y)
    most = int(np.argmax(np.bincount(Y.indices, minlength=Y.shape[1])))
    model.update_labels(remove=[most], add=1)
    found = model.rank_points(X, 3)
    assert found.labels.shape == (Y.shape[1] + 1, 3)
    assert (found.labels[most] == -1).all()
    more = sp.csr_matrix((np.ones(4), (np.arange(4), np.full(4, Y.shape[1]))), (4, Y.shape[1] + 1))
    model.partial_fit(X[:4], more)
    assert set(model.rank_points(X, 3).labels[-1].tolist()) & {0, 1, 2, 3}


def test_given_candidates():
    rows = makers.dense()
    given = makers.given_pairs(rows.n_rows, rows.n_labels)
    own = {"candidates": dict(given.scores), "pair_features": dict(given.features)}
    model = MetaRanker(**LABELWISE).fit(rows.X, rows.Y, **own)
    found = model.rank_points(rows.X, 60, **own)
    offered = sum(s.astype(bool) for s in given.scores.values()).toarray() > 0
    stored = np.zeros_like(offered)
    for s in given.scores.values():
        stored[np.repeat(np.arange(s.shape[0]), np.diff(s.indptr)), s.indices] = True
    for label, listed in enumerate(found.labels):
        assert set(listed[listed >= 0].tolist()) <= set(np.flatnonzero(stored[:, label]).tolist())
    with pytest.raises(ValueError, match=r"^candidates must hold those of the fit"):
        model.rank_points(rows.X, 3)


def test_sources_of_blocks_propose_points():
    rows = makers.blocks(120)
    model = trees_and_neighbors(shortlister=["neighbors", "parabel"]).fit(rows)
    names = model.fitted_.point_ranker.names_
    assert sum(name.startswith("row: sum of scores") for name in names) >= 2
    assert (model.rank_points(rows, 3).labels >= 0).all()


def test_rows_without_evidence_are_not_listed():
    model = makers.fitted("texts", **LABELWISE)
    found = model.rank_points(["sea wave bread", "zzzz", "code loop flour"], 3)
    assert 1 not in found.labels


def test_own_labels_do_not_reach_the_lists_of_points():
    """The proposals and columns of a fold's rows are those of a fit that saw none of their labels, and stay
    the same whatever these labels are."""
    X, Y = shortlisted()
    held_out = []
    for labels in (Y, None):
        data = makers.training_set(X, Y)
        inside = np.flatnonzero(data.fold == 1)
        if labels is None:
            other = Y.tolil()
            other[inside] = Y[inside[::-1]]
            data = makers.training_set(X, sp.csr_matrix(other))
        scorer = Parabel(n_trees=2, random_state=0)
        rows = np.arange(X.shape[0])
        found = held_out_points(scorer, data, 5, rows=rows, n_jobs=1, fits=None).rows(inside)
        columns = columns_of(fitted_without(1, scorer, data, 1), X[inside], found)
        proposals = fitted_without(1, scorer, data, 1).shortlist(X[inside], 9)
        totals = row_columns(X[inside], [Source(scorer, True, True)], [proposals])
        held_out.append((found, columns, totals))
    (a, *first), (b, *second) = held_out
    assert a.labels.tobytes() == b.labels.tobytes()
    for ours, theirs in zip(first, second):
        assert list(ours) == list(theirs)
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


def test_held_out_points_are_those_of_each_fold_alone():
    X, Y = shortlisted()
    data = makers.training_set(X, Y)
    rows = np.flatnonzero(data.fold != 2)
    found = held_out_points(XReg(n_trees=2, random_state=0), data, 4, rows=rows, n_jobs=1, fits=None)
    assert found.n_rows == len(rows)
    for f in (0, 1):
        inside = np.flatnonzero(data.fold[rows] == f)
        fitted = fitted_without(f, XReg(n_trees=2, random_state=0), data, 1)
        expected = fitted.shortlist_points(X[rows[inside]], 4)
        assert (found.rows(inside).transpose().labels == expected.labels).all()
        assert (found.rows(inside).transpose().indptr == expected.indptr).all()


def test_best_by_label_is_the_head_of_each_column():
    rng = np.random.default_rng(0)
    S = sp.random(30, 12, 0.4, "csr", np.float32, random_state=0)
    S.data = rng.integers(1, 5, S.nnz).astype(np.float32)  # with ties
    kept = best_by_label(Candidates.from_csr(S), 4).to_csr().toarray() > 0
    dense = S.toarray()
    for label in range(12):
        order = [i for i in np.lexsort((np.arange(30), -dense[:, label])) if dense[i, label] > 0]
        assert set(np.flatnonzero(kept[:, label])) == set(order[:4])
    bare = Candidates.all_labels(3, 2)
    assert best_by_label(bare, 1) is bare


@pytest.mark.parametrize(
    ("params", "fit", "message"),
    [
        ({"labelwise": "yes"}, {}, "labelwise must be True or False, got 'yes'"),
        ({"labelwise": 1}, {}, "labelwise must be True or False, got 1"),
        ({}, {"sample_weight": np.ones(60)}, "sample_weight must be None with labelwise=True"),
        (
            {"ranker": "auto"},
            {"Y": dict.fromkeys("ab", makers.dense().Y)},
            "labelwise must be False with several objectives",
        ),
        ({}, {"Y": np.eye(60, 70)}, "labelwise=True needs labels with relevant and other rows"),
    ],
)
def test_what_a_fit_refuses(params, fit, message):
    rows = makers.dense()
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        MetaRanker(**(LABELWISE | params)).fit(**{"X": rows.X, "Y": rows.Y} | fit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, r"^k must be a positive integer"),
        ({"X": np.ones((2, 5))}, r"X"),
        ({"exclude": [[1]]}, r"^exclude must"),
        ({"allowed": [99]}, r"^allowed must"),
        ({"pair_features": {"a": np.ones((60, 4))}}, r"^pair_features must be None"),
    ],
)
@pytest.mark.parametrize("labelwise", [False, True])
def test_what_an_answer_refuses(arguments, message, labelwise):
    model = makers.fitted("dense", **(LABELWISE if labelwise else makers.QUICK))
    with pytest.raises((ValueError, TypeError), match=message):
        model.rank_points(**{"X": makers.dense().X, **arguments})


@pytest.mark.parametrize("labelwise", [True, False])
def test_a_frame_of_points_names_labels_and_rows(labelwise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    Y = [["warm" if row[0] > 0 else "cold"] for row in X]
    model = MetaRanker(effort="low", n_folds=2, n_jobs=1, labelwise=labelwise).fit(X, Y)
    found = model.rank_points(X[:20], k=3)
    frame = found.to_frame()
    assert list(frame.columns) == ["label", "label_name", "rank", "row", "score"]
    for label, name, rank, row, score in frame.itertuples(index=False):
        assert name == model.label_names_[label]
        assert (found.labels[label, rank - 1], found.scores[label, rank - 1]) == (row, np.float32(score))

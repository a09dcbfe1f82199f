"""Candidates and features of pairs that others give: one answer by every door, and no leak."""

from __future__ import annotations

import pickle
from functools import cache

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, load, metrics
from metarank.metrics import evaluate
from metarank.model.cascade import Lists
from metarank.model.fitting.auto import FitOptions
from metarank.model.fitting.stages import TrainingLists
from metarank.scorers.neighbors.prior import PRIOR
from metarank.types.candidates import Candidates

N, NEW = 60, 12


@cache
def task() -> tuple[np.ndarray, sp.csr_matrix, dict, dict]:
    """Features, labels, candidates of two sources, of which one is good, and a feature of pairs."""
    rng = np.random.default_rng(3)
    ds = makers.dense(N, L=6)
    Y = ds.Y.toarray() > 0
    good = rng.random(Y.shape) + 0.8 * Y
    stored = rng.random(Y.shape) < 0.8
    stored[5] = False  # a row without a candidate of one source
    bad = rng.random(Y.shape)
    of_bad = rng.random(Y.shape) < 0.5
    clicks = sp.csr_matrix((rng.integers(1, 5, Y.shape) * Y * (rng.random(Y.shape) < 0.6)).astype(np.float32))
    scores = {
        "good": sp.csr_matrix(np.where(stored, good, 0)),
        "bad": sp.csr_matrix(np.where(of_bad, bad, 0)),
    }
    return ds.X, ds.Y.tocsr(), scores, {"clicks": clicks}


def some(items: dict, rows) -> dict:
    return {name: of[rows] for name, of in items.items()}


@cache
def fitted(mode: str, with_X: bool = True) -> MetaRanker:
    X, Y, scores, clicks = task()
    options = makers.QUICK | ({"shortlister": "neighbors"} if mode == "union" and with_X else {})
    model = MetaRanker(**options)
    return model.fit(X if with_X else None, Y, candidates=scores, candidates_mode=mode, pair_features=clicks)


def answers(model: MetaRanker, rows, **limits) -> dict[str, np.ndarray]:
    X, _, scores, clicks = task()
    X = X[rows] if model.n_features_in_ else None
    asked = {"candidates": some(scores, rows), "pair_features": some(clicks, rows)}
    ranking = model.rank(X, 4, **asked)
    return {
        "labels": ranking.labels,
        "scores": ranking.scores,
        "decision": model.decision_function(X, **asked),
        "proba": sp.csr_matrix(model.predict_proba(X, **asked)).toarray(),
        "sets": model.predict(X, **asked).toarray(),
    }


def assert_same(a: dict, b: dict) -> None:
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


CASES = [("only", True), ("only", False), ("union", True), ("union", False)]


@pytest.mark.parametrize(("mode", "with_X"), CASES)
def test_batches_rows_and_saved_models_change_no_byte(mode, with_X, tmp_path):
    model = fitted(mode, with_X)
    rows = np.arange(NEW)
    whole = answers(model, rows)
    parts = [answers(model, part) for part in (rows[:1], rows[1:5], rows[5:])]
    assert_same(whole, {name: np.concatenate([part[name] for part in parts]) for name in whole})
    order = np.random.default_rng(0).permutation(NEW)
    assert_same({name: values[order] for name, values in whole.items()}, answers(model, rows[order]))
    model.save(tmp_path / "M")
    for again in (load(tmp_path / "M"), pickle.loads(pickle.dumps(model))):
        assert_same(whole, answers(again, rows))
    threads = MetaRanker(**model.get_params() | {"n_jobs": 4})
    X, Y, scores, clicks = task()
    threads.fit(X if with_X else None, Y, candidates=scores, candidates_mode=mode, pair_features=clicks)
    assert_same(whole, answers(threads, rows))


@pytest.mark.parametrize(("mode", "with_X"), CASES)
def test_every_door_gives_one_answer(mode, with_X):
    model = fitted(mode, with_X)
    X, Y, scores, clicks = task()
    X = X if with_X else None
    asked = {"candidates": scores, "pair_features": clicks}
    ranking, dense = model.rank(X, 6, **asked), model.decision_function(X, **asked)
    for i in range(NEW):
        own = ranking.labels[i][ranking.labels[i] >= 0]
        np.testing.assert_array_equal(dense[i, own], ranking.scores[i][: len(own)])
    row = 3
    one = {"candidates": some(scores, [row]), "pair_features": some(clicks, [row])}
    for place in range(3):
        label = int(ranking.labels[row, place])
        told = model.explain(None if X is None else X[[row]], label, **one)
        assert told.rank == place + 1
        assert told.score == ranking.scores[row, place]
        assert told.is_candidate
    assert model.score(X, Y, **asked) == pytest.approx(
        float(np.nanmean(metrics.per_row(Y, ranking, "MAP"))), abs=1e-6
    )


def test_only_what_is_given_is_ranked():
    model, (X, _, scores, clicks) = fitted("only"), task()
    ranking = model.rank(X, 6, candidates=scores, pair_features=clicks)
    stored = (scores["good"] + scores["bad"]).toarray() != 0
    for i in range(N):
        assert set(ranking.labels[i][ranking.labels[i] >= 0]) == set(np.flatnonzero(stored[i]))
    nothing = {name: sp.csr_matrix((1, 6)) for name in scores}
    none = {"clicks": sp.csr_matrix((1, 6))}
    assert (model.rank(X[:1], 3, candidates=nothing, pair_features=none).labels == -1).all()
    assert model.predict(X[:1], candidates=nothing, pair_features=none).nnz == 0
    assert all(name in " ".join(model.choices_) for name in ("good", "bad"))
    assert [s.scorer.proposes for s in model.sources_ if s.proposes] == [True, True]
    columns = {"good: precision for label", "bad: log-probability", "all sources: log-probability"}
    assert columns | {"clicks", PRIOR} <= set(model.feature_columns_)


def test_the_good_source_decides():
    _, Y, scores, _ = task()
    model = MetaRanker(**makers.QUICK).fit(None, Y, candidates=scores)
    before = evaluate(Y, scores["good"], ["nDCG@5"])["nDCG@5"]
    after = evaluate(Y, model.rank(None, 6, candidates=scores), ["nDCG@5"])["nDCG@5"]
    assert after >= before - 0.02


def test_names_say_what_ids_say():
    X, Y, scores, _ = task()
    names = [f"n{j}" for j in range(6)]
    lists = [[names[j] for j in row] for row in map(np.flatnonzero, Y.toarray())]
    by_name = [
        [(names[j], float(of[i, j])) for j in of[[i]].indices] for of in [scores["good"]] for i in range(N)
    ]
    a = MetaRanker(**makers.QUICK).fit(X, lists, candidates={"s": by_name})
    b = MetaRanker(**makers.QUICK).fit(X, lists, candidates={"s": scores["good"]})
    ranked = [a.rank(X, candidates={"s": by_name}), b.rank(X, candidates={"s": scores["good"]})]
    np.testing.assert_array_equal(ranked[0].scores, ranked[1].scores)


def test_candidates_are_a_plain_shortlist_where_the_fit_had_none():
    X, Y, _, _ = task()
    model = MetaRanker(**makers.QUICK).fit(X, Y)
    own = [[0, 2]] * NEW
    ranking = model.rank(X[:NEW], 3, candidates=own)
    assert set(ranking.labels.ravel()) == {0, 2, -1}
    dense = model.decision_function(X[:NEW], candidates=own)
    for i in range(NEW):
        np.testing.assert_array_equal(dense[i, ranking.labels[i][:2]], ranking.scores[i][:2])
    assert set(np.flatnonzero(model.predict(X[:NEW], candidates=own).sum(axis=0))) <= {0, 2}
    assert set(np.nonzero(model.predict_proba(X[:NEW], candidates=own))[1]) == {0, 2}
    assert model.explain(X[0], 1, candidates=own[:1]).is_candidate is False
    assert 0 <= model.score(X[:NEW], Y[:NEW], candidates=own) <= 1


def test_folds_of_the_scores_become_those_of_the_fit():
    X, Y, scores, _ = task()
    fold = np.arange(N) % 3
    model = MetaRanker(**makers.QUICK).fit(X, Y, candidates=scores, folds=fold)
    assert any("those of folds" in line for line in model.choices_)
    with pytest.raises(ValueError, match="folds must have shape"):
        MetaRanker(**makers.QUICK).fit(X, Y, candidates=scores, folds=fold[:5])


def refusals() -> list:
    X, Y, scores, clicks = task()
    model, plain = fitted("only"), MetaRanker(**makers.QUICK)
    asked = {"candidates": scores, "pair_features": clicks}
    return [
        (lambda: model.rank(X), "candidates must hold those of the fit, 'good', 'bad': got none"),
        (
            lambda: model.rank(X, candidates={"good": scores["good"]}, pair_features=clicks),
            "candidates must hold those of the fit, 'good', 'bad': got ",
        ),
        (
            lambda: model.predict(X, candidates=scores | {"knn": scores["bad"]}, pair_features=clicks),
            "candidates must hold those of the fit, 'good', 'bad': got 'good', 'bad', 'knn'",
        ),
        (
            lambda: model.rank(X, candidates=scores),
            "pair_features must hold those of the fit, 'clicks': got none",
        ),
        (lambda: model.rank(None, **asked), "X is required"),
        (lambda: fitted("only", False).rank(X, **asked), "X must be None"),
        (
            lambda: model.rank(X[:5], **asked),
            r"candidates\['good'\] must have 5 rows and 6 labels, got 60 and 6",
        ),
        (lambda: model.partial_fit(X, Y), "partial_fit is not possible for a model with candidates"),
        (lambda: plain.fit(None, Y), "X is required"),
        (lambda: plain.fit(X, Y, candidates_mode="union"), "candidates_mode='union' needs candidates"),
        (
            lambda: plain.fit(X, Y, candidates=scores, candidates_mode="both"),
            "candidates_mode must be one of",
        ),
        (
            lambda: MetaRanker(shortlister="parabel").fit(
                None, Y, candidates=scores, candidates_mode="union"
            ),
            "shortlister must be 'auto' where X is None",
        ),
        (
            lambda: MetaRanker(shortlister="neighbors").fit(X, Y, candidates=scores),
            "shortlister must be 'auto' with candidates",
        ),
        (lambda: MetaRanker(features="centroids").fit(None, Y, candidates=scores), "features must be 'auto'"),
        (lambda: plain.fit(X, Y, candidates={"s": scores["good"][:, :3]}), "must have 60 rows and 6 labels"),
        (
            lambda: plain.fit(X, Y).rank(X, pair_features=clicks),
            "pair_features must be None, since the model was fitted without",
        ),
    ]


@pytest.mark.parametrize("case", range(16))
def test_refusals(case):
    act, message = refusals()[case]
    with pytest.raises(ValueError, match=message):
        act()


def test_labels_that_change():
    X, Y, scores, _ = task()
    model = MetaRanker(**makers.QUICK).fit(X, Y, candidates=scores)
    model.update_labels(add=1, remove=[2])
    wider = {name: sp.csr_matrix((of.data, of.indices, of.indptr), (N, 7)) for name, of in scores.items()}
    new = sp.csr_matrix((np.full(N, 0.9), (np.arange(N), np.full(N, 6))), (N, 7))
    ranking = model.rank(X, 7, candidates=wider | {"good": wider["good"] + new})
    assert 2 not in ranking.labels
    assert 6 in ranking.labels
    with pytest.raises(ValueError, match="must have 60 rows and 7 labels"):
        model.rank(X, candidates=scores)


def test_suggested_labels_are_given_ones():
    model, (_, Y, scores, _) = fitted("only", False), task()
    stored = (scores["good"] + scores["bad"]).toarray() != 0
    for pair in model.suggest_missing(5):
        assert stored[pair.row, pair.label]
        assert Y[pair.row, pair.label] == 0


@pytest.mark.parametrize("name", ["candidates", "pair_features"])
def test_a_cluster_refuses_what_is_given_of_pairs(name):
    pytest.importorskip("distributed")
    from metarank.distributed import DaskMetaRanker

    X, Y, scores, _ = task()
    with pytest.raises(ValueError, match=f"{name} must be None in DaskMetaRanker.fit"):
        DaskMetaRanker(None).fit(X, Y, **{name: scores})


ALONE, SCORED = [["a", "b"], ["b", "c"]] * 10, [[("a", 0.9), ("b", 0.3)], [("b", 0.8), ("c", 0.1)]] * 10
KINDS = {"labels alone": ALONE, "scores": SCORED, "a matrix": sp.csr_matrix(np.float32([[0.9, 0.3, 0]] * 20))}
OTHER = [
    ("scores", "labels alone", "candidates must hold scores, as in fit, got only labels"),
    ("labels alone", "scores", "candidates must hold only labels, best first, as in fit, got scores"),
    ("labels alone", "a matrix", "candidates must hold only labels, best first, as in fit, got scores"),
    ("a matrix", "labels alone", "candidates must hold scores, as in fit, got only labels"),
    ("a matrix", "scores", None),
    ("scores", "scores", None),
    ("labels alone", "labels alone", None),
]


@cache
def fitted_on(kind: str) -> MetaRanker:
    return MetaRanker(**makers.QUICK).fit(None, [["a"], ["b", "c"]] * 10, candidates=KINDS[kind])


@pytest.mark.parametrize(("fit", "rank", "message"), OTHER)
def test_candidates_come_with_scores_or_without_as_in_the_fit(fit, rank, message, tmp_path):
    fitted_on(fit).save(tmp_path / "M")
    for model in (fitted_on(fit), load(tmp_path / "M")):
        if message is None:
            assert model.rank(None, 2, candidates=KINDS[rank]).labels.shape == (20, 2)
            continue
        with pytest.raises(ValueError, match=message):
            model.rank(None, 2, candidates=KINDS[rank])
    assert fitted_on(fit).rank(None, 2, candidates=[[], []]).labels.tolist() == [[-1, -1]] * 2


def test_features_of_pairs_come_with_values_as_in_the_fit():
    values = [[("a", 3.0)], [("b", 2.0)]] * 10
    model = MetaRanker(**makers.QUICK)
    model.fit(None, [["a"], ["b", "c"]] * 10, candidates=SCORED, pair_features={"clicks": values})
    with pytest.raises(ValueError, match=r"pair_features\['clicks'\] must hold values, as in fit"):
        model.rank(None, 2, candidates=SCORED[:2], pair_features={"clicks": [["a"], []]})


@pytest.mark.parametrize(
    "nothing", [[[]] * 20, {"a": [[]] * 20, "b": sp.csr_matrix((20, 3))}, sp.csr_matrix((20, 3))]
)
@pytest.mark.parametrize("mode", ["only", "union"])
def test_a_fit_needs_a_candidate(nothing, mode):
    with pytest.raises(ValueError, match="candidates must hold a pair at least, got none in 20 rows"):
        MetaRanker(**makers.QUICK).fit(
            np.eye(20), [["a"], ["b", "c"]] * 10, candidates=nothing, candidates_mode=mode
        )


def test_a_table_has_no_pair_of_a_source_without_a_line():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([(i, "ab"[i % 2], s, 1.0 + i) for i in range(20) for s in ("x", "y")])
    table.columns = ["row", "label", "source", "score"]
    model = MetaRanker(**makers.QUICK).fit(np.eye(20), [["a"], ["b"]] * 10, candidates=table)
    assert model.rank(np.eye(20)[:1], 2, table[:0]).labels.tolist() == [[-1, -1]]
    assert model.rank(np.zeros((0, 20)), 2, table[:0]).labels.shape == (0, 2)
    one = model.rank(np.eye(20)[:1], 2, {"x": table[:1], "y": [[]]})
    assert model.rank(np.eye(20)[:1], 2, table[:1]).scores.tobytes() == one.scores.tobytes()
    assert one.labels[0, 0] == 0
    with pytest.raises(ValueError, match="'x', 'y': got 'x'"):
        model.rank(np.eye(20)[:1], 2, {"x": table[:1]})


def test_the_order_of_a_long_table_does_not_matter():
    pd = pytest.importorskip("pandas")
    _, Y, scores, _ = task()
    lines = [
        pd.DataFrame(
            {"row": of.tocoo().row, "label": of.tocoo().col, "source": name, "score": of.tocoo().data}
        )
        for name, of in scores.items()
    ]
    tables = pd.concat(lines), pd.concat(lines[::-1]).sample(frac=1, random_state=0)
    models = [MetaRanker(**makers.QUICK).fit(None, Y, candidates=table) for table in tables]
    assert models[0].feature_columns_ == models[1].feature_columns_
    a, b = (model.rank(None, 3, candidates=table) for model, table in zip(models, reversed(tables)))
    assert a.scores.tobytes() == b.scores.tobytes()


def test_a_source_and_a_feature_of_one_name_are_told_apart():
    X, Y, scores, clicks = task()
    told = {"candidates": {"x": scores["good"]}, "pair_features": {"x": [[0]] * N}}
    model = MetaRanker(**makers.QUICK).fit(X, Y, **told)
    assert model.rank(X, **told).labels.shape == (N, 6)
    with pytest.raises(ValueError, match=r"candidates\['x'\] must hold scores"):
        model.rank(X, **told | {"candidates": {"x": [[0]] * N}})
    both = {"y": clicks["clicks"], "y: given": clicks["clicks"]}
    with pytest.raises(ValueError, match=r"other names than columns .* 'y' and 'y: given'"):
        MetaRanker(**makers.QUICK).fit(X, Y, pair_features=both)


@pytest.mark.parametrize(("n_rows", "leaves"), [(100, 7), (250, 15)])
def test_few_given_pairs_are_ordered_by_small_trees(n_rows, leaves):
    pairs = Candidates.all_labels(n_rows, 1000)
    options = FitOptions.of(MetaRanker().get_params(), seed=0, n_jobs=1)
    rows, gains = np.arange(n_rows), np.zeros(pairs.n_pairs, np.float32)
    known = {"is_shortlisted": True, "is_given": True}
    lists = TrainingLists(rows, np.zeros(n_rows, np.int32), rows, None, Lists(pairs), gains, options, **known)
    ranker = lists.new_ranker([])
    assert ranker.candidates[0].num_leaves == leaves


def test_names_that_no_label_has_are_left_out_of_an_answer_with_a_count():
    """As of a retriever that knows more labels than the model."""
    ds = makers.texts()
    lists = [[(ds.label_names[j], 1.0 + j % 3) for j in range(ds.n_labels)] for _ in range(ds.n_rows)]
    model = MetaRanker(**makers.QUICK).fit(ds.texts, ds.Y, labels=ds.label_names, candidates=lists)
    plain = makers.fitted("texts")
    for answering, candidates in (
        (model, lists[:2]),
        (plain, [[name for name, _ in row] for row in lists[:2]]),
    ):
        new = ("tea", 3.0) if answering is model else "tea"
        with pytest.warns(
            UserWarning, match="left out 1 of .* pairs, of 1 labels that the model does not know: 'tea'"
        ):
            found = answering.rank(ds.texts[:2], 3, candidates=[[new, *candidates[0]], candidates[1]])
        wanted = answering.rank(ds.texts[:2], 3, candidates=candidates)
        assert found.scores.tobytes() == wanted.scores.tobytes()
    with pytest.raises(ValueError, match=r"must name known labels.* labels= can name more labels"):
        MetaRanker(**makers.QUICK).fit(
            ds.texts, ds.Y, labels=ds.label_names, candidates=[[("tea", 1.0)], *lists[1:]]
        )


def test_candidates_of_which_none_is_relevant_are_refused():
    X, Y, scores, _ = task()
    wrong = sp.csr_matrix(np.where(Y.toarray() > 0, 0, 1.0))
    with pytest.raises(ValueError, match=f"a relevant label of some row, got none in {N} rows"):
        MetaRanker(**makers.QUICK).fit(X, Y, candidates=wrong)
    MetaRanker(**makers.QUICK).fit(X, Y, candidates={"wrong": wrong, "good": scores["good"]})


def test_scores_by_a_model_that_has_seen_the_rows_are_suspect(recwarn):
    ds = makers.dense(150, L=6)
    rng = np.random.default_rng(0)
    truth = ds.Y.toarray() > 0
    honest, leaked = (sp.csr_matrix(rng.random(truth.shape) + by * truth) for by in (0.5, 2))
    MetaRanker(**makers.QUICK).fit(ds.X, ds.Y, candidates={"index": honest})
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"'index' have a relevant first label in 100.0% of"):
        MetaRanker(**makers.QUICK).fit(ds.X, ds.Y, candidates={"index": leaked})
    # Or is right in half of the rows, but knows labels that no other row has.
    Y = sp.hstack([ds.Y, sp.eye(150, 30)]).tocsr()
    some = (Y.toarray() > 0) * (np.arange(36) >= 6) + 0.5 * rng.random(Y.shape) + 0.4 * (Y.toarray() > 0)
    with pytest.warns(UserWarning, match="was their model trained on these rows"):
        MetaRanker(**makers.QUICK).fit(ds.X, Y, candidates={"index": sp.csr_matrix(some)})

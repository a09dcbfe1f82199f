"""Changed labels and added rows: exact parts as if fitted anew, others keep what they know, ids stay."""

from __future__ import annotations

import copy
import warnings

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import Candidates, Dataset, MetaRanker, load
from metarank.model.changes import training_rows_of
from metarank.scorers.base import LabelScorer
from metarank.scorers.names.words import NameScorer
from metarank.scorers.wrapped import KeptScorer
from metarank.types.view import TrainingSet

PARTS = ["dense", "sparse", "texts", "many labels", "many texts"]
METRICS = ("micro-f1", "macro-f1", "example-f1", "hamming", "subset-accuracy")


def fresh(maker: str, **params) -> MetaRanker:
    """A copy that may be changed: no change touches what the original holds."""
    return copy.copy(makers.fitted(maker, **params))


def names_or_ids(model: MetaRanker, ids: list[int]) -> list:
    return ids if model.label_names_ is None else [model.label_names_[i] for i in ids]


def added(model: MetaRanker, n: int = 1):
    return n if model.label_names_ is None else [f"quince {i}" for i in range(n)]


def answers(model: MetaRanker, X, n_labels: int) -> list[np.ndarray]:
    ranking = model.rank(X, k=min(6, n_labels))
    sets = [model.predict(X, optimize=metric).toarray()[:, :n_labels] for metric in METRICS]
    chances = sp.csr_matrix(model.predict_proba(X)).toarray()[:, :n_labels]
    return [ranking.labels, ranking.scores, chances, *sets]


def assert_same(a: list[np.ndarray], b: list[np.ndarray]) -> None:
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


def assert_as_fitted(model: MetaRanker, Y: sp.csr_matrix, X=None, texts=None) -> None:
    """Every exact part equals one fitted on these rows, and so do the propensities."""
    from metarank.metrics.propensity import inv_propensity

    rows, kept = training_rows_of(model.fitted_)
    X = rows if X is None else X
    np.testing.assert_array_equal(kept.toarray(), (Y > 0).toarray())
    fold = np.zeros(Y.shape[0], np.int32)
    data = TrainingSet(X, Y, fold, label_names=model.label_names_, **(texts or {}))
    quick = [s for s in [*model.scorers_, *model.shortlisters_] if s.is_quick and not s.reads_word_order]
    assert len(quick) >= 3
    pairs = Candidates.all_labels(4, Y.shape[1])
    for scorer in quick:
        again = clone(scorer).fit(data.view())
        columns, expected = scorer.score(X[:4], pairs), again.score(X[:4], pairs)
        assert columns.keys() == expected.keys()
        for name in columns:
            np.testing.assert_array_equal(columns[name], expected[name])
        if scorer.proposes:
            found, wanted = scorer.shortlist(X[:4], 9), again.shortlist(X[:4], 9)
            np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_array_equal(model.inv_propensity_, inv_propensity(Y))


def texts_of(model: MetaRanker):
    scorers = [*model.scorers_, *model.shortlisters_]
    return {s.reads_text: s.label_text_ for s in scorers if isinstance(s, NameScorer)}


@pytest.mark.parametrize("maker", PARTS)
def test_changes_equal_a_fit_of_the_parts(maker):
    model = fresh(maker)
    L = model.n_labels_
    _, before = training_rows_of(model.fitted_)
    drop, source, target = 0, 1, 2
    model.update_labels(
        add=added(model, 2),
        remove=names_or_ids(model, [drop]),
        merge=dict([names_or_ids(model, [source, target])]),
    )
    Y = before.toarray()
    Y[:, target] = np.maximum(Y[:, target], Y[:, source])
    Y[:, [drop, source]] = 0
    Y = sp.csr_matrix(np.hstack([Y, np.zeros((len(Y), 2))]).astype(np.float32))
    assert model.n_labels_ == L + 2
    assert model.removed_.tolist() == [drop, source]
    assert_as_fitted(model, Y, texts=texts_of(model))


@pytest.mark.parametrize("maker", PARTS)
def test_added_rows_equal_a_fit_of_the_parts(maker):
    model, more = (
        fresh(maker),
        makers.MAKERS[maker](n=30, seed=5) if "many" not in maker else makers.MAKERS[maker](n=10),
    )
    rows, before = training_rows_of(model.fitted_)
    model.partial_fit(more)
    X = model.encoder_.encode(more)
    stack = sp.vstack([rows, X], "csr") if sp.issparse(X) else np.vstack([rows, X])
    Y = sp.csr_matrix(sp.vstack([before, more.Y > 0], "csr"), dtype=np.float32)
    assert_as_fitted(model, Y, X=stack, texts=texts_of(model))
    assert (model.row_names_ is None) or len(model.row_names_) == Y.shape[0]
    assert model.explain(more.take(slice(0, 1)), int(more.Y.indices[0])).neighbors[0].row >= 0


@pytest.mark.parametrize("maker", PARTS)
@pytest.mark.parametrize("params", [{}, {**makers.QUICK, "shortlister": ("neighbors", "parabel")}])
def test_adding_and_removing_changes_no_answer(maker, params):
    model = fresh(maker, **params)
    X, L = makers.MAKERS[maker]().take(slice(0, 9)), model.n_labels_
    before = answers(model, X, L)
    model.update_labels(add=added(model, 3))
    model.update_labels(remove=list(range(L, L + 3)))
    assert model.n_labels_ == L + 3
    assert_same(answers(model, X, L), before)
    assert_same(answers(model.update_labels(), X, L), before)


@pytest.mark.parametrize("maker", PARTS)
def test_removed_labels_are_never_proposed(maker, tmp_path):
    model = fresh(maker, **{**makers.QUICK, "shortlister": ("neighbors", "parabel")})
    X = makers.MAKERS[maker]().take(slice(0, 9))
    first = np.unique(model.rank(X, k=1).labels).tolist()[:2]
    model.update_labels(remove=names_or_ids(model, first))
    model.save(tmp_path / "M")
    for m in (model, load(tmp_path / "M")):
        L = m.n_labels_
        same = sp.csr_matrix(np.tile(np.isin(np.arange(L), [*first, L - 1]), (9, 1)).astype(np.float32))
        for ranking in (m.rank(X, k=L), m.rank(X, k=3, allowed=same), m.rank(X, k=3, candidates=same)):
            assert not np.isin(ranking.labels, first).any()
        for parameter in ("allowed", "exclude", "candidates"):
            with pytest.raises(ValueError, match=f"{parameter} must not name a removed label"):
                m.rank(X, **{parameter: names_or_ids(m, first)})
        assert not sp.csr_matrix(m.predict_proba(X))[:, first].nnz
        assert not m.predict(X, optimize="macro-f1")[:, first].nnz
        assert not any(pair.label in first for pair in m.suggest_missing(1000))
        for label in names_or_ids(m, first):
            with pytest.raises(ValueError, match="label"):
                m.explain(X.take(slice(0, 1)), label)
            with pytest.raises(ValueError, match="remove"):
                m.update_labels(remove=[label])
    rows = makers.MAKERS[maker]()
    with pytest.raises(ValueError, match="Y must not hold removed"):
        model.partial_fit(rows)


@pytest.mark.parametrize("maker", ["texts", "many labels", "many texts"])
@pytest.mark.parametrize("shortlister", ["auto", ("neighbors", "parabel")])
def test_a_new_label_is_found_by_its_rows_and_after_loading(maker, shortlister, tmp_path):
    params = {**makers.QUICK, "shortlister": shortlister}
    model, train = fresh(maker, **params), makers.MAKERS[maker]()
    model.update_labels(add=added(model))
    new = model.n_labels_ - 1
    rows = train.take(slice(0, 6))
    X = rows.texts if rows.X is None else rows.X
    model.partial_fit(X, [[new]] * 6)
    model.partial_fit(X, [[new]] * 6)
    found = makers.candidates(model, X)
    assert np.count_nonzero(found.labels == new) == 6
    if maker == "many labels":  # names, where there are any, say all about the labels of these toy texts
        assert (model.rank(X, k=5).labels == new).any(axis=1).all()
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert_same(answers(again, X, new + 1), answers(model, X, new + 1))
    again.update_labels(remove=[new])
    model.update_labels(remove=[new])
    assert_same(answers(again, X, new + 1), answers(model, X, new + 1))


def test_a_new_label_is_found_by_its_name():
    model = fresh("many texts")
    document = "word1 word2 word250 word251"
    model.update_labels(add=["word250 word251"])
    assert model.n_labels_ - 1 in makers.candidates(model, [document]).labels
    model.update_labels(rename={"word250 word251": ("word7 word8", "word9")})
    assert model.label_names_[-1] == "word7 word8"
    names = next(s for s in model.shortlisters_ if isinstance(s, NameScorer))
    assert model.n_labels_ - 1 in names.shortlist(model.encoder_.encode(["word9 word8"]), 20).labels
    assert names.label_text_[-1].nnz >= 3
    assert names.label_text_.has_canonical_format


def test_names_of_a_bag_of_words():
    rng = np.random.default_rng(0)
    X = sp.random(60, 80, 0.05, "csr", np.float32, random_state=rng)
    words = [f"w{i}" for i in range(80)]
    train = Dataset(
        X=X,
        Y=sp.csr_matrix((rng.random((60, 5)) < 0.4).astype(np.float32)),
        label_names=[f"w{i} w{i + 1}" for i in range(5)],
        feature_names=words,
    )
    model = MetaRanker(**makers.QUICK).fit(train)
    model = MetaRanker.from_state(model.get_state())
    text = texts_of(model)["label_text"]
    assert text is not None
    model.update_labels(add={"w20": "w21 w22"})
    assert texts_of(model)["label_text"][5].indices.tolist() == [20, 21, 22]
    np.testing.assert_array_equal(texts_of(model)["label_text"][:5].toarray(), text.toarray())
    same = model.encoder_.rows_of_names(train.label_names, None)
    np.testing.assert_array_equal(same.toarray(), text.toarray())


def test_a_name_added_again_has_its_id_back():
    model = fresh("texts")
    model.update_labels(remove=["bread"]).update_labels(add=["tea", "bread"])
    assert model.label_names_ == ["the sea", "bread", "code", "tea"]
    assert model.removed_.tolist() == []
    _, Y = training_rows_of(model.fitted_)
    assert Y[:, 1].nnz == 0
    model.partial_fit(["flour and salt"], [["bread"]])
    assert training_rows_of(model.fitted_)[1][:, 1].nnz == 1


def test_merged_labels_score_by_the_maximum():
    class Fixed(LabelScorer):
        """Score of label l in row i: what it was made with."""

        def __init__(self, table):
            self.table = table

        def score(self, X, candidates, *, n_jobs=1):
            return {"s": self.table[candidates.row_of_pair, candidates.labels]}

        def shortlist(self, X, k, *, n_jobs=1):
            found = Candidates.all_labels(len(X), self.table.shape[1])
            found = Candidates(found.indptr, found.labels, found.n_labels, {"s": self.table.ravel()})
            return found.top(k)

    rng = np.random.default_rng(0)
    table = rng.normal(size=(6, 5)).astype(np.float32)
    now = np.array([0, 3, -1, 3, 4], np.int32)
    kept = KeptScorer.of(Fixed(table), now, 6)
    X = np.zeros((6, 1), np.float32)
    expected = np.full((6, 6), -np.inf, np.float32)
    for old, new in enumerate(now):
        if new >= 0:
            expected[:, new] = np.maximum(expected[:, new], table[:, old])
    known = expected.max(axis=0) > -np.inf
    expected[:, ~known] = (
        np.where(known, expected, np.inf)
        .min(axis=1)[:, None]
        .clip(max=table[:, now >= 0].min(axis=1)[:, None])
    )
    got = kept.score(X, Candidates.all_labels(6, 6))["s"].reshape(6, 6)
    np.testing.assert_array_equal(got, expected)
    some = Candidates(np.array([0, 2, 2, 3, 3, 4, 6]), np.array([1, 5, 2, 0, 3, 4]), 6)
    values = kept.score(X, some)["s"]
    assert values.tolist() == pytest.approx(
        [table[0, 0], table[0, 0], table[2, 0], table[4, 0], max(table[5, [1, 3]]), table[5, 4]]
    )
    empty = Candidates(np.zeros(7, np.int64), np.array([], np.int32), 6)
    assert kept.score(X, empty)["s"].shape == (0,)
    found = kept.shortlist(X, 5)
    assert found.labels.reshape(6, 3).tolist() == [[0, 3, 4]] * 6
    np.testing.assert_array_equal(found.scores["s"].reshape(6, 3), expected[:, [0, 3, 4]])
    twice = KeptScorer.of(kept, np.array([0, -1, 2, 0, 4, 5]), 6)
    assert twice.now.tolist() == [0, 0, -1, 0, 4]
    assert not isinstance(twice.scorer, KeptScorer)


def test_rows_permute_and_batches_agree_after_changes():
    model = fresh("many labels", **{**makers.QUICK, "shortlister": ("neighbors", "parabel")})
    test = makers.many_labels()
    model.update_labels(add=2, remove=[3], merge={5: 6}).partial_fit(
        test.X[:4], [[1200], [1200], [6], [1201]]
    )
    ranking = model.rank(test, k=5)
    order = np.random.default_rng(0).permutation(test.n_rows)
    turned = model.rank(test.take(order), k=5)
    np.testing.assert_array_equal(turned.scores, ranking.scores[order])
    np.testing.assert_array_equal(model.rank(test.X[7:8], k=5).scores, ranking.scores[7:8])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"remove": ["the moon"]}, "remove"),
        ({"remove": [3]}, "remove"),
        ({"remove": [-1]}, "remove"),
        ({"remove": "bread"}, "remove"),
        ({"remove": [1.0]}, "remove"),
        ({"remove": [True]}, "remove"),
        ({"remove": ["bread", "the sea", "code"]}, "remove"),
        ({"add": ["bread"]}, "add"),
        ({"add": ["tea", "tea"]}, "add"),
        ({"add": "tea"}, "add"),
        ({"add": [""]}, "add"),
        ({"add": [1]}, "add"),
        ({"add": [("tea", "of leaves")]}, "add must hold names"),
        ({"add": 2}, "add"),
        ({"rename": {"moon": "sun"}}, "rename"),
        ({"rename": {"bread": "code"}}, "rename"),
        ({"rename": {"bread": "x", "code": "x"}}, "rename"),
        ({"rename": {"bread": 1}}, "rename"),
        ({"rename": ["bread"]}, "rename"),
        ({"rename": {"bread": "x"}, "add": ["x"]}, "add"),
        ({"rename": {"bread": "code "}}, "rename"),
        ({"add": [" code"]}, "add"),
        ({"add": ["x", "x "]}, "add"),
        ({"add": ["\ud800"]}, "add"),
        ({"rename": {"bread": "x"}, "remove": ["bread"]}, "remove"),
        ({"merge": {"bread": "moon"}}, "merge"),
        ({"merge": {"bread": "bread"}}, "merge"),
        ({"merge": {"bread": "code", "code": "the sea"}}, "merge"),
        ({"merge": {"bread": "code"}, "remove": ["code"]}, "merge"),
        ({"merge": {"bread": "code"}, "remove": ["bread"]}, "remove"),
        ({"merge": [("bread", "code")]}, "merge"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(change, match):
    model = fresh("texts")
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=match):
        model.update_labels(**change)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("X", "Y", "match"),
    [
        (["salt"], None, "Y"),
        (["salt"], [["the moon"]], "the moon"),
        (["salt"], [[3]], "Y"),
        (["salt"], [[0], [1]], "Y"),
        (np.zeros((1, 3)), [[0]], "X"),
        (Dataset(texts=["salt"], Y=[["moon"]], label_names=["moon"]), None, "moon"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(X, Y, match):
    model = fresh("texts")
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=match):
        model.partial_fit(X, Y)
    assert vars(model) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_change_leaves_the_model_as_it_was(monkeypatch, error):
    from metarank.scorers.neighbors.prior import LabelPrior

    def stop(*args, **kwargs):
        raise error("stop")

    model = fresh("texts")
    before = dict(vars(model))
    monkeypatch.setattr(LabelPrior, "fit", stop)
    for change in (lambda: model.update_labels(remove=[0]), lambda: model.partial_fit(["salt"], [[1]])):
        with pytest.raises(error):
            change()
        assert vars(model) == before


def test_tail_classifiers_of_means_are_exact(capsys, tmp_path):
    from metarank.apps.cli import main

    features = ["neighbors", "centroids", "prior", "tail", "linear-ridge"]
    model = MetaRanker(features=features, **makers.QUICK).fit(makers.sparse())
    _, before = training_rows_of(model.fitted_)
    model.update_labels(add=1, remove=[0])
    Y = before.toarray()
    Y[:, 0] = 0
    assert_as_fitted(model, sp.csr_matrix(np.hstack([Y, np.zeros((len(Y), 1))]).astype(np.float32)))
    assert [type(s) for s in model.scorers_].count(KeptScorer) == 1
    model.save(tmp_path / "M")
    assert main(["inspect", str(tmp_path / "M")]) == 0
    page = capsys.readouterr().out
    assert "KernelRidge" in page
    assert ["removed", "labels", "1"] in [line.split() for line in page.splitlines()]


def test_renaming_and_names_of_rows():
    model = fresh("texts")
    model.update_labels(rename={"bread": "code", "code": "bread"})
    assert model.label_names_ == ["the sea", "code", "bread"]
    assert not any(isinstance(s, KeptScorer) for s in model.scorers_)
    model.partial_fit(Dataset(texts=["salt and flour"], Y=[["code"]], label_names=["code"]))
    assert model.row_names_[-1] == "salt and flour"
    assert training_rows_of(model.fitted_)[1][-1].indices.tolist() == [1]
    ranking = model.rank(["salt and flour"], k=1)
    assert ranking.label_names[ranking.labels[0, 0]] == "code"


def test_without_neighbours_there_are_no_rows_to_change():
    train = makers.sparse()
    model = MetaRanker(features=["centroids", "prior"], **makers.QUICK).fit(train)
    for change in (lambda: model.update_labels(remove=[0]), lambda: model.partial_fit(train)):
        with pytest.raises(ValueError, match="keeps no training rows"):
            change()


def test_unfitted_partial_fit_is_a_fit():
    train = makers.dense()
    model = MetaRanker(**makers.QUICK).partial_fit(train)
    np.testing.assert_array_equal(model.rank(train).scores, makers.fitted("dense").rank(train).scores)


def test_cuts_and_corrections_meet_new_labels():
    """Per-label parts of ranker, calibration and cuts, on a small set of labels that are all ranked."""
    train = makers.sparse(n=80, L=4)
    model = MetaRanker(ranker="ensemble", effort="low", n_folds=2, n_jobs=1).fit(train)
    before = answers(model, train, 4)
    model.update_labels(add=2)
    for metric in METRICS:
        assert model.predict(train, optimize=metric).shape == (80, 6)
    assert model.explain(train.take(slice(0, 1)), 5).rank >= 1
    model.update_labels(remove=[4, 5])
    assert_same(answers(model, train, 4), before)


def test_a_name_of_unknown_words_is_warned_of():
    model = fresh("many texts")
    with pytest.warns(UserWarning, match="the model knows no word of 'zorb quux'"):
        model.update_labels(add=["zorb quux"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.update_labels(add=["word1 quux"])

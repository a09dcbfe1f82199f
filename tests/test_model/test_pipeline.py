"""`MetaRanker`: the same bytes for any number of threads, split of the batch, order of rows and container."""

from __future__ import annotations

import json
from pathlib import Path

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from metarank import Dataset, MetaRanker
from metarank.model.answering import answer
from metarank.model.fitting.auto import named_scorers
from metarank.ranker.assemble import joined_columns
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.shortlist import Parabel
from metarank.thresholds.set_metrics import METRICS
from metarank.types.candidates import Candidates

FULL = {"n_folds": 2, "n_jobs": 1}
QUICK = makers.QUICK
# One model per path with all that "auto" brings; the others are quick.
MODELS = [("dense", FULL), ("sparse", FULL), ("texts", FULL), ("many labels", QUICK), ("many texts", QUICK)]
IDS = [name for name, _ in MODELS]


def parts(model: MetaRanker, rows) -> dict[str, np.ndarray]:
    """All that a model says of some rows, one array row each (sparse results made dense)."""
    out = {"scores": model.decision_function(rows)}
    ranking = model.rank(rows, k=3)
    out["rank"], out["rank scores"] = ranking.labels, ranking.scores
    proba = model.predict_proba(rows)
    out["proba"] = proba.toarray() if sp.issparse(proba) else proba
    for metric in METRICS:
        out[metric] = model.predict(rows, optimize=metric).toarray()
    return out


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name


def rows_of(ds: Dataset, rows=None):
    if ds.X is None:
        return ds.texts if rows is None else [ds.texts[i] for i in rows]
    return ds.X if rows is None else ds.X[rows]


def saved_files(model: MetaRanker, folder: Path) -> tuple[dict, dict]:
    model.save(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    files = manifest.pop("files")
    manifest["model"]["state"]["params"].pop("n_jobs")
    del manifest["digest"]
    return files, manifest


# --- the same bytes ------------------------------------------------------------


@pytest.mark.check_beyond(2)
@pytest.mark.parametrize(("maker", "params"), MODELS, ids=IDS)
def test_threads_do_not_matter(maker, params, tmp_path):
    ds = makers.MAKERS[maker]()
    one = makers.fitted(maker, **params)
    four = MetaRanker(**{**params, "n_jobs": 4}).fit(ds)
    assert_same(parts(one, rows_of(ds)), parts(four, rows_of(ds)))
    assert saved_files(one, tmp_path / "1") == saved_files(four, tmp_path / "4")


def test_same_seed_same_bytes_and_another_seed_another_model(tmp_path):
    ds = makers.dense()
    again = MetaRanker(**FULL).fit(ds)
    files, manifest = saved_files(again, tmp_path / "again")
    assert (files, manifest) == saved_files(makers.fitted("dense", **FULL), tmp_path / "first")
    other = MetaRanker(**FULL, random_state=1).fit(ds)
    assert saved_files(other, tmp_path / "other")[0] != files


def test_fitting_again_forgets_the_first_fit(tmp_path):
    model = MetaRanker(**QUICK).fit(makers.texts())
    model.fit(makers.dense())
    assert saved_files(model, tmp_path / "a") == saved_files(makers.fitted("dense"), tmp_path / "b")


@pytest.mark.parametrize(("maker", "params"), MODELS, ids=IDS)
def test_rows_are_judged_one_by_one(maker, params, monkeypatch):
    """Any split of the batch, any order and repetition of its rows, any chunk size: the same bytes a row."""
    ds, model = makers.MAKERS[maker](), makers.fitted(maker, **params)
    whole = parts(model, rows_of(ds))
    order = np.random.default_rng(0).permutation(ds.n_rows)
    order = np.append(order, order[:3])
    assert_same({n: v[order] for n, v in whole.items()}, parts(model, rows_of(ds, order)))
    for row in (0, 7, ds.n_rows - 1):
        assert_same({n: v[row : row + 1] for n, v in whole.items()}, parts(model, rows_of(ds, [row])))
    monkeypatch.setattr(answer, "CHUNK_PAIRS", 7 * model.n_labels_ if model.n_labels_ < 1000 else 700)
    assert_same(whole, parts(model, rows_of(ds)))


# --- any container -------------------------------------------------------------


def int64_indices(X) -> sp.csr_array:
    out = sp.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


CONTAINERS = {
    "ndarray": lambda X: np.asarray(X.toarray() if sp.issparse(X) else X),
    "float64, Fortran order": lambda X: np.asfortranarray(
        X.toarray() if sp.issparse(X) else X, dtype=np.float64
    ),
    "CSR": sp.csr_matrix,
    "CSC": sp.csc_matrix,
    "COO array": sp.coo_array,
    "int64 indices": int64_indices,
    "pandas": lambda X: pd.DataFrame(X.toarray() if sp.issparse(X) else X),
    "list": lambda X: (X.toarray() if sp.issparse(X) else X).tolist(),
}
LABELS = {
    "dense": lambda Y: Y.toarray(),
    "bool": lambda Y: Y.toarray() > 0,
    "CSC": sp.csc_matrix,
    "lists": lambda Y: [row.indices.tolist() for row in Y],
    "pandas": lambda Y: pd.DataFrame(Y.toarray(), columns=[f"l{j}" for j in range(Y.shape[1])]),
}


@pytest.mark.check_beyond(8)
@pytest.mark.parametrize("maker", ["dense", "sparse"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_container_of_features_does_not_matter(maker, container):
    ds = makers.MAKERS[maker]()
    X = CONTAINERS[container](ds.X)
    known = parts(makers.fitted(maker), ds.X)
    assert_same(known, parts(makers.fitted(maker), X))
    assert_same(known, parts(MetaRanker(**QUICK).fit(X, ds.Y), ds.X))


@pytest.mark.parametrize("container", LABELS)
def test_the_container_of_labels_does_not_matter(container):
    ds = makers.dense()
    model = MetaRanker(**QUICK).fit(ds.X, LABELS[container](ds.Y))
    assert_same(parts(makers.fitted("dense"), ds.X), parts(model, ds.X))


def test_inputs_are_left_as_they_were():
    for maker in ("dense", "sparse"):
        ds = makers.MAKERS[maker]()
        X, Y = ds.X.copy(), ds.Y.copy()
        for array in (
            *((X,) if maker == "dense" else (X.data, X.indices, X.indptr)),
            Y.data,
            Y.indices,
            Y.indptr,
        ):
            array.flags.writeable = False
        parts(MetaRanker(**QUICK).fit(X, Y), X)
        assert abs(X - ds.X).sum() == 0
        assert abs(Y - ds.Y).sum() == 0


# --- what must simply work -----------------------------------------------------


def fit_and_ask(X, Y, **params) -> MetaRanker:
    model = MetaRanker(**{**QUICK, **params}).fit(X, Y)
    answers = parts(model, X)
    assert np.isfinite(answers["scores"]).all()
    assert answers["proba"].min(initial=0) >= 0
    assert answers["proba"].max(initial=0) <= 1
    assert answers["scores"].shape == (len(answers["rank"]), model.n_labels_)
    for metric in METRICS:
        assert set(np.unique(answers[metric])) <= {0, 1}
    return model


@pytest.mark.check_beyond(6)
@pytest.mark.parametrize("n", range(2, 13))
def test_few_rows(n):
    rng = np.random.default_rng(n)
    Y = (rng.random((n, 3)) < 0.5).astype(int)
    Y[0] = [1, 0, 0]
    X = rng.normal(size=(n, 4))
    efforts = [{"effort": effort, "ranker": "auto"} for effort in ("low", "medium")]
    for rows in (X, sp.csr_matrix(X * (rng.random(X.shape) < 0.1))) if n == 7 else ():
        for params in efforts:
            fit_and_ask(rows, Y, **params)
    for seed, ranker in enumerate(["auto", "lambdarank", "binary", "logistic"]):
        model = fit_and_ask(X, Y, ranker=ranker, random_state=seed)
        assert model.rank(X[:1], k=100).labels.shape == (1, 3)


def every_scorer(sparse: bool) -> list:
    """All that can describe a pair, small."""
    smaller = {"extra-trees": {"n_trees": 5}}
    known = named_scorers()
    names = (
        set(known)
        - {"names", "spelling", "mentions", "name-record", "label-vectors", "two-sided"}
        - ({"rbf-svm", "rbf-ridge", "laplacian-ridge"} if sparse else set())
    )
    return [known[name](**smaller.get(name, {})) for name in sorted(names)]


@pytest.mark.check_beyond(8)
@pytest.mark.parametrize("maker", ["dense", "sparse"])
@pytest.mark.parametrize(
    "labels",
    {
        "rows without labels": lambda Y: Y * (np.arange(len(Y)) % 2 == 0)[:, None],
        "labels never seen": lambda Y: Y * [1, 0, 1, 0],
        "one label": lambda Y: Y[:, :1],
        "one label, on every row": lambda Y: np.ones((len(Y), 1)),
        "a label on every row": lambda Y: np.maximum(Y, [0, 1, 0, 0]),
        "all labels on every row": np.ones_like,
        "a label of one row": lambda Y: np.eye(len(Y))[:, :4],
        "grades": lambda Y: Y * [1, 2, 5, 0.5],
    }.items(),
    ids=lambda item: item[0],
)
def test_labels_of_all_kinds(maker, labels):
    ds = makers.MAKERS[maker](30)
    fit_and_ask(ds.X, labels[1](ds.Y.toarray()), features=every_scorer(maker == "sparse"))


def few_words(X: np.ndarray) -> np.ndarray:
    return np.tile(X, 20) * (np.arange(120) % 7 == 0)


@pytest.mark.parametrize(
    "features",
    {
        "constant": lambda X: X * 0 + 3,
        "all zero": lambda X: X * 0,
        "a constant column": lambda X: np.where(np.arange(X.shape[1]) == 1, 1e6, X),
        "duplicate rows": lambda X: X[np.arange(len(X)) // 10],
        "one column": lambda X: X[:, :1],
        "huge": lambda X: X * 1e15,
        "tiny": lambda X: X * 1e-15,
        "wide": lambda X: np.tile(X, 40),
        "empty sparse rows": lambda X: few_words(X) * (np.arange(len(X)) % 3 > 0)[:, None],
        "counts": lambda X: sp.csr_matrix(np.ceil(np.maximum(few_words(X), 0))),
        "negative and sparse": lambda X: sp.csr_matrix(few_words(X)),
    }.items(),
    ids=lambda item: item[0],
)
def test_features_of_all_kinds(features):
    ds = makers.dense(30)
    X = features[1](ds.X.astype(np.float64))
    fit_and_ask(X, ds.Y, features=every_scorer(sp.issparse(X)))


def test_classes_are_labels_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, "right", "left")
    model = fit_and_ask(X, y)
    assert model.label_names_ == ["left", "right"]
    best = model.rank(X, k=1).labels[:, 0]
    assert np.mean(np.array(model.label_names_)[best] == y) > 0.9


def test_more_labels_than_rows_through_a_shortlist():
    rng = np.random.default_rng(0)
    Y = makers._indicator([rng.integers(0, 3000, 2).tolist() for _ in range(8)] + [[2999]], 3000)
    model = fit_and_ask(rng.normal(size=(9, 5)), Y)
    assert model.shortlisters_
    assert model.n_labels_ == 3000
    proba = model.predict_proba(np.zeros((2, 5)))
    assert sp.issparse(proba)
    assert proba.shape == (2, 3000)


def test_label_trees_propose_and_describe():
    ds = makers.many_labels(120)
    model = MetaRanker(shortlister=["parabel", Parabel(n_trees=1, loss="logistic")], **makers.QUICK).fit(ds)
    whole = "Parabel trees: log-probability"
    columns = {whole, *(f"{whole}, tree {t}" for t in (1, 2, 3)), f"{whole} #2"}
    assert columns <= set(model.feature_columns_)
    assert model.scorers_[-2:] == model.shortlisters_
    found = model.shortlisters_[0].shortlist(model.encoder_.encode(ds.X), 50)
    assert set(found.rows([0]).labels) <= set(makers.candidates(model, ds.X).rows([0]).labels)
    own = MetaRanker(shortlister="xreg", features=["prior", "tail"], **makers.QUICK).fit(ds)
    assert not any(c.startswith("XReg") for c in own.feature_columns_)


def test_a_shortlister_is_fitted_once_without_each_fold(monkeypatch):
    """Its proposals and its columns for the training rows come from the same fits."""
    fits = []
    learn = Parabel._learn

    def count(self, view, *args):
        fits.append(view.n_rows)
        return learn(self, view, *args)

    monkeypatch.setattr(Parabel, "_learn", count)
    ds = makers.many_labels()
    both = MetaRanker(shortlister="parabel", **makers.QUICK).fit(ds)
    assert len(fits) == makers.QUICK["n_folds"] + 1
    apart = MetaRanker(
        shortlister="parabel",
        features=[LabelNeighbors(metrics=("cosine",)), "centroids", "prior", "votes", "parabel"],
        **makers.QUICK,
    ).fit(ds)
    assert len(fits) == 3 * (makers.QUICK["n_folds"] + 1)
    assert both.rank(ds.X, 5).scores.tobytes() == apart.rank(ds.X, 5).scores.tobytes()


@pytest.mark.parametrize("maker", ["dense", "many labels"])
def test_candidates_of_the_users_own(maker):
    ds, model = makers.MAKERS[maker](), makers.fitted(maker)
    own = [[2, 0], [], [1], [3, 1, 1]]
    ranking = model.rank(ds.X[:4], k=3, candidates=own)
    assert [sorted(v for v in row if v >= 0) for row in ranking.labels.tolist()] == [[0, 2], [], [1], [1, 3]]
    assert (ranking.labels[1] == -1).all()
    pairs = [0, 0, 2, 3, 3], [0, 2, 1, 1, 3]
    scores = sp.csr_matrix(([0.0, 5.0, 1.0, 1.0, 1.0], pairs), (4, model.n_labels_))
    # A stored zero is a candidate too; what a Candidates says of its pairs beyond naming them is not read.
    sevens = sp.csr_matrix((np.full(5, 7), pairs), (4, model.n_labels_))
    for same in (scores.astype(bool), sevens, sp.csr_array(sevens), Candidates.from_csr(scores)):
        other = model.rank(ds.X[:4], k=3, candidates=same)
        assert ranking.labels.tobytes() == other.labels.tobytes()
        assert ranking.scores.tobytes() == other.scores.tobytes()
    with pytest.raises(ValueError, match=r"candidates must be a shortlist, .* 0 and 5: .*astype\(bool\)"):
        model.rank(ds.X[:4], k=3, candidates=scores)
    alone = model.rank(ds.X[[0]], k=3, candidates=[[0, 2]])
    assert alone.scores.tobytes() == ranking.scores[:1].tobytes()
    none = model.rank(ds.X[:2], k=3, candidates=[[], []])
    assert (none.labels == -1).all()


def test_sample_weight_reaches_the_ranker():
    ds = makers.dense()
    known = parts(makers.fitted("dense"), ds.X)["scores"]
    same = MetaRanker(**QUICK).fit(ds, sample_weight=np.ones(ds.n_rows))
    np.testing.assert_allclose(same.decision_function(ds.X), known, atol=1e-6)
    weight = np.linspace(0, 2, ds.n_rows)
    other = MetaRanker(**QUICK).fit(ds, sample_weight=weight)
    assert not np.array_equal(other.decision_function(ds.X), known)


def test_rank_agrees_with_the_scores():
    ds, model = makers.dense(), makers.fitted("dense", **FULL)
    scores = model.decision_function(ds.X)
    ranking = model.rank(ds.X, k=4)
    np.testing.assert_array_equal(np.argsort(-scores, axis=1, kind="stable"), ranking.labels)
    np.testing.assert_array_equal(np.sort(scores, axis=1)[:, ::-1], ranking.scores)


def test_it_learns():
    """Half of the rows, and the other half ranked far better than by frequency."""
    ds = makers.dense(200)
    model = MetaRanker(**FULL).fit(ds.take(slice(0, 100)))
    assert model.score(ds.take(slice(100, 200))) > 0.85


def test_explanations_name_the_evidence():
    ds, model = makers.texts(), makers.fitted("texts", **FULL)
    page = model.explain(ds.texts[0], "bread")
    assert page.label_name == "bread"
    assert page.n_candidates == 3
    assert page.contributions
    assert json.loads(json.dumps(page.to_dict()))["label"] == page.label
    for neighbor in page.neighbors:
        assert ds.Y[neighbor.row, page.label] > 0
        assert neighbor.name == ds.texts[neighbor.row][:80]
    assert "bread: rank" in str(page)


def test_renamed_or_reordered_columns_are_refused():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(frame, rng.random((40, 2)) < 0.5)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    model.rank(frame)
    with pytest.raises(ValueError, match="column 0 is 'b', was 'a'"):
        model.rank(frame[["b", "a", "c"]])


def test_beside_classifiers_distances_count_within_the_list_only():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4)).astype(np.float32), rng.random((60, 3)) < 0.4
    model = MetaRanker(features=["neighbors", "linear-svm"], ranker="logistic", n_jobs=1).fit(X, Y)
    assert "linear SVM: margin" in model.feature_columns_
    nearest = "label's nearest rows: 1st L2 distance"
    assert f"{nearest} (relative)" in model.feature_columns_
    assert nearest not in model.feature_columns_
    alone = MetaRanker(features=["neighbors"], ranker="logistic", n_jobs=1).fit(X, Y)
    assert nearest in alone.feature_columns_


@pytest.mark.parametrize("kind", ["dense", "texts"])
def test_columns_that_a_model_was_not_fitted_on_do_not_reach_it(kind, monkeypatch):
    """A later version may derive more columns; models that were saved before answer as they did."""
    model, ds = makers.fitted(kind), makers.MAKERS[kind]()
    before = model.rank(ds)

    def with_one_more(columns, *rest):
        joined, of_classifiers = joined_columns(columns, *rest)
        return {"derived": next(iter(joined.values())) ** 2, **joined}, of_classifiers

    monkeypatch.setattr("metarank.model.answering.answer.joined_columns", with_one_more)
    after = model.rank(ds)
    assert before.labels.tobytes() == after.labels.tobytes()
    assert before.scores.tobytes() == after.scores.tobytes()

"""Malformed input of the Python API: a ValueError or TypeError that names the parameter, before any work."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from metarank import Dataset, MetaRanker
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.types.candidates import Candidates

X = makers.dense().X
Y = makers.dense().Y
N, D = X.shape
L = Y.shape[1]


def with_value(matrix, value, row=3, column=1) -> np.ndarray:
    out = np.array(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
    out[row, column] = value
    return out


class TooLong:
    """Stands where a stage begins: nothing may come so far."""

    def __init__(self, *args, **kwargs) -> None:
        raise AssertionError("work began before the input was checked")


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr("metarank.model.fit.TrainingSet", TooLong)


PARAMETERS = [
    ("n_folds", 1, ValueError),
    ("n_folds", 0, ValueError),
    ("n_folds", -2, ValueError),
    ("n_folds", 2.0, TypeError),
    ("n_folds", "5", TypeError),
    ("n_folds", None, TypeError),
    ("n_folds", True, TypeError),
    ("n_folds", 2**40, ValueError),
    ("n_jobs", 0, ValueError),
    ("n_jobs", 1.5, TypeError),
    ("n_jobs", "all", TypeError),
    ("random_state", -1, ValueError),
    ("random_state", 0.5, TypeError),
    ("random_state", 2**64, ValueError),
    ("random_state", np.random, TypeError),
    ("shortlist_size", 0, ValueError),
    ("shortlist_size", 10.0, TypeError),
    ("effort", "huge", ValueError),
    ("effort", 1, ValueError),
    ("effort", None, ValueError),
    ("ranker", "best", ValueError),
    ("ranker", None, TypeError),
    ("ranker", 3, TypeError),
    ("ranker", [], TypeError),
    ("threshold", "best", ValueError),
    ("threshold", 0.5, (ValueError, TypeError)),
    ("threshold", None, (ValueError, TypeError)),
    ("threshold", [], (ValueError, TypeError)),
    ("features", "best", ValueError),
    ("features", [], TypeError),
    ("features", ["prior", "best"], ValueError),
    ("features", 3, TypeError),
    ("features", None, TypeError),
    ("features", [LabelPrior], TypeError),
    ("features", [3], TypeError),
    ("shortlister", "best", ValueError),
    ("shortlister", 3, TypeError),
    ("shortlister", [], (ValueError, TypeError)),
    ("shortlister", ["neighbors", "best"], ValueError),
    ("shortlister", LabelPrior(), TypeError),
    ("label_text", "names", (ValueError, TypeError)),
    ("label_text", ["one"], ValueError),
    ("label_text", [1, 2, 3, 4], TypeError),
    ("label_text", 3, TypeError),
]


@pytest.mark.parametrize(("name", "value", "error"), PARAMETERS, ids=lambda v: repr(v)[:30])
def test_parameters(no_work, name, value, error):
    with pytest.raises(error, match=name):
        MetaRanker(**{**makers.QUICK, name: value}).fit(X, Y)


FEATURES = [
    (None, "X"),
    (3, "2D array"),
    ("a text", "X"),
    ([], "X|array"),
    (X[0], "2D array"),
    (X[None], "2D array|array"),
    (X[:0], "sample"),
    (X[:, :0], "feature"),
    (X[:1], "X"),
    (with_value(X, np.nan), "X contains NaN at row 3, column 1"),
    (with_value(X, np.inf), "X contains infinity"),
    (with_value(X, 1e300), "too large"),
    (sp.csr_matrix(with_value(X, np.nan)), "X contains NaN at row 3, column 1"),
    (X.astype(complex), "[Cc]omplex"),
    (X.astype(str), "X must hold"),
    (X.astype("datetime64[s]"), "X must hold numbers"),
    ([[1, 2], [3]], "X|rectangular"),
    ([["a", "b"]] * N, "X must hold numbers"),
    ([{"a": 1}] * N, "X|array|float"),
    (["text", 3] * (N // 2), "X"),
    ([b"bytes"] * N, "X|array"),
    ({"a": [1]}, "X|array"),
    (X[:-1], f"Y.*{N}|Y.*{N - 1}|inconsistent"),
]


@pytest.mark.parametrize(("value", "match"), FEATURES, ids=range(len(FEATURES)))
def test_features_in_fit(no_work, value, match):
    with pytest.raises((ValueError, TypeError), match=match):
        MetaRanker(**makers.QUICK).fit(value, Y)


LABELS = [
    (None, "Y|y"),
    (3, "Y"),
    ("ab", "Y"),
    ([], "Y"),
    (Y[:-1], "Y"),
    (Y[:, :0], "Y"),
    (with_value(Y, -1), "Y must hold values >= 0"),
    (with_value(Y, np.nan), "Y contains NaN"),
    (with_value(Y, np.inf), "Y contains inf"),
    (sp.csr_matrix(with_value(Y, -1)), "Y must hold values >= 0"),
    (np.zeros((N, 2, 2)), "Y"),
    ([[0], [-1]] * (N // 2), "Y must hold label ids"),
    ([[0], [0.5]] * (N // 2), "Y must hold integer label ids"),
    ([[0], ["a"]] * (N // 2), "Y must hold label names or ids"),
    ([[0], [None]] * (N // 2), "Y must hold"),
    ([[0], 1] * (N // 2), "Y must hold a list"),
    ([[True]] * N, "Y must hold label ids"),
    ([[2**70]] * N, "Y must hold label ids"),
    ([[0, 0, 1]] * N, "np.asarray"),
    ([[]] * N, "Y"),
    (0 * Y, "Y must hold a relevant label, got none in"),
    (np.linspace(0, 1, N), "Y must hold classes"),
]


@pytest.mark.parametrize(("value", "match"), LABELS, ids=range(len(LABELS)))
def test_labels_in_fit(no_work, value, match):
    with pytest.raises((ValueError, TypeError), match=match):
        MetaRanker(**makers.QUICK).fit(X, value)


@pytest.mark.parametrize(
    "weight",
    [
        np.ones(N - 1),
        np.ones((N, 1)),
        -np.ones(N),
        np.zeros(N),
        np.full(N, np.nan),
        np.full(N, np.inf),
        "heavy",
        ["a"] * N,
        1j * np.ones(N),
    ],
    ids=range(9),
)
def test_sample_weight(no_work, weight):
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        MetaRanker(**makers.QUICK).fit(X, Y, sample_weight=weight)


def test_datasets(no_work):
    ds = makers.dense()
    for call, match in (
        (lambda: MetaRanker().fit(ds, ds.Y), "Y must be left out"),
        (lambda: MetaRanker().fit(Dataset(X)), "Y"),
        (lambda: MetaRanker().fit(Dataset(texts=makers.texts().texts)), "Y"),
        (lambda: MetaRanker().fit(["a", "b"]), "Y is required"),
        (lambda: MetaRanker().fit(["", ""], [[0], [1]]), "X|texts|word|vocabulary"),
        (lambda: MetaRanker().fit(makers.texts().texts, [[0]]), "Y"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            call()


METHODS = ["rank", "decision_function", "predict_proba", "predict"]
ROWS = [
    (None, "X"),
    (X[:, :-1], "features"),
    (np.hstack([X, X]), "features"),
    (X[0], "2D array"),
    (with_value(X, np.nan), "X contains NaN"),
    (with_value(X, np.inf), "X contains infinity"),
    (["a text"], "X must hold numeric features"),
    ("a text", "X must be a list of texts"),
    (Dataset(texts=["a"]), "X must hold numeric features"),
    (X.astype(str), "X must hold"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("value", "match"), ROWS, ids=range(len(ROWS)))
def test_rows_in_prediction(method, value, match):
    with pytest.raises((ValueError, TypeError), match=match):
        getattr(makers.fitted("dense"), method)(value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [X, None, 3, "one text", ["a", 3], [3], Dataset(X)], ids=range(7))
def test_rows_for_a_model_of_texts(method, value):
    with pytest.raises((ValueError, TypeError), match="X"):
        getattr(makers.fitted("texts"), method)(value)


@pytest.mark.parametrize(
    ("k", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1.0, TypeError),
        ("3", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_k(k, error):
    with pytest.raises(error, match="k must be a positive integer"):
        makers.fitted("dense").rank(X, k=k)


CANDIDATES = [
    [[0]],
    [[L]] * N,
    [[-1]] * N,
    [["a"]] * N,
    [[0.5]] * N,
    [L],
    3,
    "all",
    sp.csr_matrix((N, L + 1)),
    sp.csr_matrix((N - 1, L)),
    sp.csr_matrix(with_value(np.ones((N, L)), np.nan)),
    sp.csr_matrix(with_value(np.ones((N, L)), 2.0)),
    sp.csr_array(with_value(np.ones((N, L), np.int64), 2)),
    Candidates.all_labels(N, L + 1),
    Candidates.all_labels(N + 1, L),
    np.ones((N, L)),
]


@pytest.mark.parametrize("value", CANDIDATES, ids=range(len(CANDIDATES)))
def test_candidates(value):
    with pytest.raises((ValueError, TypeError), match="candidates"):
        makers.fitted("dense").rank(X, candidates=value)


@pytest.mark.parametrize("metric", ["profit", "", 3, "micro-F1 ", ["hamming"]])
def test_metric_of_the_cut(metric):
    with pytest.raises((ValueError, TypeError), match="optimize"):
        makers.fitted("dense").predict(X, optimize=metric)


EXPLAIN = [
    (X[:1], L, {}, "label"),
    (X[:1], -1, {}, "label"),
    (X[:1], "sea", {}, "label"),
    (X[:1], None, {}, "label"),
    (X[:1], 0.5, {}, "label"),
    (X[:1], True, {}, "label"),
    (X[:1], [0], {}, "label"),
    (X[:2], 0, {}, "x must be one instance"),
    (X[0, :3], 0, {}, "features"),
    ("a text", 0, {}, "numeric features"),
    (with_value(X, np.nan)[3], 0, {}, "NaN"),
    (X[:1], 0, {"n_neighbors": 0}, "n_neighbors"),
    (X[:1], 0, {"n_neighbors": -1}, "n_neighbors"),
    (X[:1], 0, {"n_neighbors": 1.5}, "n_neighbors"),
]


@pytest.mark.parametrize(("x", "label", "more", "match"), EXPLAIN, ids=range(len(EXPLAIN)))
def test_explain(x, label, more, match):
    with pytest.raises((ValueError, TypeError), match=match):
        makers.fitted("dense").explain(x, label, **more)


def test_score():
    model = makers.fitted("dense")
    for labels, match in ((None, "Y|y"), (Y[:-1], "Y"), (np.ones((N, L + 1)), "Y"), (with_value(Y, -1), "Y")):
        with pytest.raises((ValueError, TypeError), match=match):
            model.score(X, labels)
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(X, Y, sample_weight=np.ones(N + 1))


@pytest.mark.parametrize("method", [*METHODS, "score", "explain", "save"])
def test_before_fit(method, tmp_path):
    more = {"score": (Y,), "explain": (0,), "save": ()}.get(method, ())
    with pytest.raises(NotFittedError, match="MetaRanker"):
        getattr(MetaRanker(), method)(tmp_path / "M" if method == "save" else X, *more)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_call_leaves_the_model_as_it_was():
    model = MetaRanker(**makers.QUICK).fit(X, Y)
    before = model.decision_function(X)
    for call in (
        lambda: model.fit(with_value(X, np.nan), Y),
        lambda: model.fit(2 * X, Y[:-1]),
        lambda: model.fit(2 * X, Y, sample_weight="heavy"),
        lambda: model.rank(X, k=0),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
        assert model.decision_function(X).tobytes() == before.tobytes()


@pytest.mark.parametrize("params", [{"threshold": "best"}, {"features": ["best"]}, {"n_folds": 1}], ids=str)
def test_other_choices_are_refused_before_any_work(no_work, params):
    with pytest.raises(ValueError, match=next(iter(params))):
        MetaRanker(**params).fit(X, Y)


class Wrong(makers.MeanFeature):
    """A scorer that gives something else than columns."""

    def __init__(self, *, feature: int = 0, gives: str = "array") -> None:
        super().__init__(feature=feature)
        self.gives = gives

    def score(self, X, candidates, *, n_jobs=1):
        (values,) = super().score(X, candidates).values()
        return {
            "array": values,
            "list": {"a": values.tolist()},
            "short": {"a": values[1:]},
            "nameless": {0: values},
            "texts": {"a": values.astype(str)},
            "nothing": None,
        }[self.gives]


@pytest.mark.parametrize(
    ("gives", "error", "got"),
    [
        ("array", TypeError, "got ndarray"),
        ("list", TypeError, "got list for 'a'"),
        ("short", ValueError, r"got shape \(\d+,\) for 'a'"),
        ("nameless", TypeError, "got the name 0"),
        ("texts", TypeError, "got ndarray for 'a'"),
        ("nothing", TypeError, "got NoneType"),
    ],
)
def test_a_scorer_that_gives_no_columns_is_named(gives, error, got):
    ds = makers.dense()
    rule = rf"^Wrong.score must return a dict of names to arrays of \d+ numbers, one a pair, {got}$"
    with pytest.raises(error, match=rule):
        MetaRanker(features=["centroids", Wrong(gives=gives)], **makers.QUICK).fit(ds)

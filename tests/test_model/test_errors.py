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
    monkeypatch.setattr("metarank.model.fitting.fit.TrainingSet", TooLong)


# Of each parameter, values that are a ValueError, and those that are a TypeError.
PARAMETERS = {
    "n_folds": ([1, 0, -2, 2**40], [2.0, "5", None, True]),
    "n_jobs": ([0], [1.5, "all"]),
    "random_state": ([-1, 2**64], [0.5, np.random]),
    "shortlist_size": ([0], [10.0]),
    "effort": (["huge", 1, None], []),
    "ranker": (["best"], [None, 3, []]),
    "threshold": (["best", 0.5, None, []], []),
    "features": (["best", [], ["prior", "best"]], [3, None, [LabelPrior], [3]]),
    "shortlister": (["best", ["neighbors", "best"], []], [3, LabelPrior()]),
    "names": ([], ["auto"]),
    "propensity_weight": ([-0.1, np.nan, np.inf], ["much", True]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(no_work, name):
    for error, values in zip((ValueError, TypeError), PARAMETERS[name]):
        for value in values:
            with pytest.raises(error, match=name):
                MetaRanker(**{**makers.QUICK, name: value}).fit(X, Y)
            with pytest.raises(error, match=name):
                MetaRanker(**{name: value}).fit(X, Y)


FEATURES = [
    (None, "X"),
    (3, "2D array"),
    ("a text", "X"),
    ([], "X|array"),
    (X[0], "2D array"),
    (X[:0], "sample"),
    (X[:, :0], "feature"),
    (X[:1], "X"),
    (with_value(X, np.nan), "X contains NaN at row 3, column 1"),
    (with_value(X, np.inf), "X contains infinity"),
    ([["a", "b"]] * N, "X must hold numbers"),
    ([{"a": 1}] * N, "X|array|float"),
    (["text", 3] * (N // 2), "X"),
    ([b"bytes"] * N, "X|array"),
    ({"a": [1]}, "X|array"),
    (X[:-1], f"Y.*{N}|Y.*{N - 1}|inconsistent"),
]


LABELS = [
    (None, "Y|y"),
    (3, "Y"),
    ("ab", "Y"),
    ([], "Y"),
    (Y[:-1], "Y"),
    (Y[:, :0], "Y"),
    (with_value(Y, -1), "Y must hold values >= 0"),
    ([[0], [0.5]] * (N // 2), "Y must hold integer label ids"),
    ([[0], ["a"]] * (N // 2), "Y must hold label names or ids"),
    ([[0], [None]] * (N // 2), "Y must hold"),
    ([[0, 0, 1]] * N, "pass scipy.sparse.csr_matrix"),
    ([[]] * N, "Y"),
    (0 * Y, "Y must hold a relevant label, got none in"),
    (np.linspace(0, 1, N), "Y must hold classes"),
]


WEIGHTS = [np.ones(N - 1), np.ones((N, 1)), -np.ones(N), np.zeros(N), np.full(N, np.nan), np.full(N, np.inf)]
WEIGHTS += ["heavy", ["a"] * N, 1j * np.ones(N)]
GIVEN = [({"X": value, "Y": Y}, match) for value, match in FEATURES]
GIVEN += [({"X": X, "Y": value}, match) for value, match in LABELS]
GIVEN += [({"X": X, "Y": Y, "sample_weight": weight}, "sample_weight") for weight in WEIGHTS]


@pytest.mark.parametrize(("given", "match"), GIVEN, ids=range(len(GIVEN)))
def test_what_is_given_in_fit(no_work, given, match):
    with pytest.raises((ValueError, TypeError), match=match):
        MetaRanker(**makers.QUICK).fit(**given)


def test_datasets(no_work):
    ds = makers.dense()
    for call, match in (
        (lambda: MetaRanker().fit(ds, ds.Y), "Y must be left out"),
        (lambda: MetaRanker().fit(Dataset(X)), "Y"),
        (lambda: MetaRanker().fit(Dataset(texts=makers.texts().texts)), "Y"),
        (lambda: MetaRanker().fit(["a", "b"]), "Y, or labels, is required"),
        (
            lambda: MetaRanker().fit(["a"], labels=["a"], groups=[0]),
            "groups must be left out where no row has",
        ),
        (lambda: MetaRanker().fit(np.eye(3), labels=["a"]), "labels must have names and X texts, or both"),
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
    (["a text"], "X must hold numbers"),
    ("a text", "X must be a list of texts"),
    (Dataset(texts=["a"]), "X must hold numbers"),
    (X.astype(str), "X must hold"),
]


NO_TEXTS = [X, None, 3, "one text", ["a", 3], [3], Dataset(X)]


@pytest.mark.parametrize("method", METHODS)
def test_rows_in_prediction(method):
    for maker, rows in (("dense", ROWS), ("texts", [(value, "X") for value in NO_TEXTS])):
        for value, match in rows:
            with pytest.raises((ValueError, TypeError), match=match):
                getattr(makers.fitted(maker), method)(value)


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


EXCLUDED = [[[0]], sp.csr_matrix((N, L + 1)), [[L]] * N, "itself"]
K = [(0, ValueError), (-1, ValueError), *((k, TypeError) for k in (1.0, "3", None, True))]
METRICS = ["profit", "", 3, "micro-F1 ", ["hamming"]]
SCORED = [None, Y[:-1], np.ones((N, L + 1)), with_value(Y, -1)]
EXPLAIN = [
    (X[:1], L, {}, "label"),
    (X[:1], -1, {}, "label"),
    (X[:1], "sea", {}, "label"),
    (X[:1], 0.5, {}, "label"),
    (X[:1], True, {}, "label"),
    (X[:1], [0], {}, "label"),
    (X[:2], 0, {}, "x must be one instance"),
    (X[:2], None, {}, "x must be one instance"),
    (X[0, :3], 0, {}, "features"),
    ("a text", 0, {}, "X must hold numbers"),
    (with_value(X, np.nan)[3], 0, {}, "NaN"),
    (X[:1], 0, {"n_neighbors": 0}, "n_neighbors"),
    (X[:1], 0, {"n_neighbors": -1}, "n_neighbors"),
    (X[:1], 0, {"n_neighbors": 1.5}, "n_neighbors"),
]


def test_arguments_of_answers():
    model = makers.fitted("dense")
    calls = [(error, "k must be a positive integer", "rank", {"k": k}) for k, error in K]
    both = (ValueError, TypeError)
    calls += [(both, "candidates", "rank", {"candidates": value}) for value in CANDIDATES]
    calls += [(both, "optimize", "predict", {"optimize": value}) for value in METRICS]
    calls += [(both, "Y|y", "score", {"Y": value}) for value in SCORED]
    calls += [(ValueError, "sample_weight", "score", {"Y": Y, "sample_weight": np.ones(N + 1)})]
    calls += [(both, "exclude", "rank", {"exclude": value}) for value in EXCLUDED]
    for error, match, method, arguments in calls:
        with pytest.raises(error, match=match):
            getattr(model, method)(X, **arguments)
    for k, error in K:
        with pytest.raises(error, match="k must be"):
            model.suggest_missing(k)
    for x, label, more, match in EXPLAIN:
        with pytest.raises(both, match=match):
            model.explain(x, label, **more)


@pytest.mark.parametrize("method", [*METHODS, "score", "explain", "save"])
def test_before_fit(method, tmp_path):
    more = {"score": (Y,), "explain": (0,), "save": ()}.get(method, ())
    with pytest.raises(NotFittedError, match="MetaRanker"):
        getattr(MetaRanker(), method)(tmp_path / "M" if method == "save" else X, *more)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_call_or_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    model = MetaRanker(**makers.QUICK).fit(X, Y)
    before = model.decision_function(X)
    for call in (
        lambda: model.fit(with_value(X, np.nan), Y),
        lambda: model.fit(2 * X, Y[:-1]),
        lambda: model.fit(2 * X, Y, sample_weight="heavy"),
        lambda: model.fit(X, Y, exclude=[list(range(L))] * N),
        lambda: model.rank(X, k=0),
        lambda: model.fit(2 * X, Y),
    ):
        monkeypatch.setattr("metarank.model.fitting.judge.LearnedThresholds.fit", interrupted)
        with pytest.raises((ValueError, TypeError, KeyboardInterrupt)):
            call()
        assert model.decision_function(X).tobytes() == before.tobytes()


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
    rule = rf"^Wrong.score must return a dict of names to arrays of \d+ numbers, one per pair, {got}$"
    with pytest.raises(error, match=rule):
        MetaRanker(features=["centroids", Wrong(gives=gives)], **makers.QUICK).fit(ds)

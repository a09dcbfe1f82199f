"""A row's own labels never reach its own training meta-features, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank.features import assemble
from metarank.model.auto import named_scorers
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.scorers.given.given_source import GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.scorers.given.pair_features import PairFeatures
from metarank.scorers.given.together import GivenTogether
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.shortlist import NeighborShortlister, Parabel, XReg
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingSet

ROWS = (0, 11, 29)
N_LABELS = 4
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "flip": lambda y: 1 - y,
    "all on": np.ones_like,
    "all off": np.zeros_like,
    "graded": lambda y: y * 3,
}


class Leaking(makers.MeanFeature):
    """Fits on every row whatever View it is given: what the checks below must catch."""

    def fit(self, view, *, n_jobs=1):
        return super().fit(view._data.view(), n_jobs=n_jobs)


SCORERS: dict[str, Callable[[], LabelScorer]] = {
    **named_scorers(),
    "user": makers.MeanFeature,
    "xreg-t": partial(XReg, relevance="inverse-propensity", tail=0.5),
    "votes-names": partial(NeighborShortlister, names=True),
    "votes-t": partial(NeighborShortlister, relevance="inverse-propensity"),
    "parabel-calibrated": partial(Parabel, calibrate=True, visitors=2),
    "ova-ridge": partial(OneVsAll, loss="ridge"),
    "given": partial(GivenScorer, given="bm25"),
    "given-together": partial(GivenTogether, given=["bm25", "knn"]),
    "given-linear": partial(GivenLinear, given=["bm25", "knn"]),
    "pair-features": partial(PairFeatures, names=("clicks",)),
    "ova-gradients": partial(OneVsAll, loss="ridge", max_size=10),
}
FEWER = {
    "extra-trees": {"n_trees": 20},
    "boosted": {"n_rounds": 10},
    "embedder": {"dim": 8, "n_epochs": 2},
}
for name, fewer in FEWER.items():
    SCORERS[name] = partial(SCORERS[name], **fewer)
SPARSE_ONLY = {
    "mentions",
    "name-record",
    "names",
    "spelling",
    "embedder",
    "votes-names",
    "given",
    "given-together",
    "given-linear",
    "pair-features",
}
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra text")
CASES = [
    pytest.param(name, layout, id=f"{name}-{layout}", marks=[NEEDS_TORCH] if name == "embedder" else [])
    for name in SCORERS
    for layout in ("dense", "sparse")
    if not (name in SPARSE_ONLY and layout == "dense")
]


def rows_and_labels(layout: str) -> tuple[Features, np.ndarray]:
    ds = makers.MAKERS[layout](40, L=N_LABELS)
    return ds.X, ds.Y.toarray()


def changed(Y: np.ndarray, row: int, change: str) -> np.ndarray:
    out = Y.copy()
    out[row] = CHANGES[change](Y[row])
    return out


def tuned(scorer: LabelScorer, data: TrainingSet) -> LabelScorer:
    """The scorer with its free parameters chosen once: the fixed configuration."""
    return scorer.tuned(data.view())


def columns_of_rows(
    scorer: LabelScorer, X: Features, Y: np.ndarray, rows: Sequence[int]
) -> dict[str, np.ndarray]:
    candidates = Candidates.all_labels(len(rows), N_LABELS)
    return held_out_columns(scorer, makers.training_set(X, sp.csr_matrix(Y)), candidates, rows=np.array(rows))


def of_row(columns: dict[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    return {name: values[row * N_LABELS : (row + 1) * N_LABELS] for name, values in columns.items()}


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert list(a) == list(b)
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_own_labels_do_not_reach_own_columns(name, layout):
    X, Y = rows_and_labels(layout)
    scorer = tuned(SCORERS[name](), makers.training_set(X, sp.csr_matrix(Y)))
    columns = columns_of_rows(scorer, X, Y, range(len(Y)))
    assert columns
    for row in ROWS:
        for change in CHANGES:
            assert_same(of_row(columns, row), columns_of_rows(scorer, X, changed(Y, row, change), [row]))


@pytest.mark.parametrize(
    "name",
    [
        *("neighbors", "votes", "centroids", "prior", "tail", "linear-ridge", "extra-trees", "xreg-t"),
        *("given", "user"),
    ],
)
def test_labels_do_reach_the_columns_of_other_rows(name):
    """The law is not kept by looking at nothing."""
    X, Y = rows_and_labels("dense")
    scorer = tuned(SCORERS[name](), makers.training_set(X, sp.csr_matrix(Y)))
    candidates = Candidates.all_labels(*Y.shape)
    before, after = (
        held_out_columns(scorer, makers.training_set(X, sp.csr_matrix(labels)), candidates)
        for labels in (Y, changed(Y, 0, "flip"))
    )
    assert any(before[c].tobytes() != after[c].tobytes() for c in before)


def test_a_leak_is_caught():
    X, Y = rows_and_labels("dense")
    with pytest.raises(AssertionError, match="mean_feature"):
        assert_same(
            columns_of_rows(Leaking(), X, Y, [0]), columns_of_rows(Leaking(), X, changed(Y, 0, "flip"), [0])
        )


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_shortcut_of_ridge_equals_fits_without_the_fold(layout):
    X, Y = rows_and_labels(layout)
    data = makers.training_set(X, sp.csr_matrix(Y))
    candidates = Candidates.all_labels(*Y.shape)
    for kernel in ("rbf", "linear"):
        scorer = tuned(SCORERS[f"{kernel}-ridge"](), data)
        shortcut = held_out_columns(scorer, data, candidates)
        for fold in range(data.n_folds):
            inside = np.flatnonzero(data.fold == fold)
            fitted = scorer.fit(data.without_fold(fold))
            plain = fitted.score(X[inside], candidates.rows(inside))
            for name in plain:
                np.testing.assert_array_equal(shortcut[name].reshape(Y.shape)[inside].ravel(), plain[name])


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_own_labels_do_not_reach_own_table(layout, n_jobs):
    """Nor do they through the standardised columns, nor through the rows sampled for the ranker."""
    X, Y = rows_and_labels(layout)
    names = ["neighbors", "votes", "centroids", "prior", "tail", "linear-svm", "user"]
    scorers = [tuned(SCORERS[n](), makers.training_set(X, sp.csr_matrix(Y))) for n in names]
    rows = np.array(sorted({*ROWS, 3, 5, 8, 21}))

    def table_rows(labels: np.ndarray, row: int) -> np.ndarray:
        data = makers.training_set(X, sp.csr_matrix(labels))
        candidates = Candidates.all_labels(len(rows), N_LABELS)
        columns: dict[str, np.ndarray] = {}
        for scorer in scorers:
            columns.update(held_out_columns(scorer, data, candidates, rows=rows, n_jobs=n_jobs))
        table = assemble(columns, candidates, n_jobs=n_jobs)
        at = int(np.flatnonzero(rows == row)[0])
        return table.values[at * N_LABELS : (at + 1) * N_LABELS]

    for row in ROWS:
        before = table_rows(Y, row)
        assert before.shape[1] > 2 * len(names)
        for change in CHANGES:
            assert before.tobytes() == table_rows(changed(Y, row, change), row).tobytes()


@pytest.mark.parametrize(("name", "layout"), [case for case in CASES if SCORERS[case.values[0]]().proposes])
def test_own_labels_do_not_reach_own_shortlist(name, layout):
    X, Y = rows_and_labels(layout)
    rows, scorer = np.arange(len(Y)), tuned(SCORERS[name](), makers.training_set(X, sp.csr_matrix(Y)))

    def proposals(labels: np.ndarray, row: int) -> dict[str, np.ndarray]:
        data = makers.training_set(X, sp.csr_matrix(labels))
        found = held_out_shortlist(scorer, data, 2, rows=rows).rows(np.array([row]))
        return {"labels": found.labels, **found.scores}

    for row in ROWS:
        before = proposals(Y, row)
        for change in CHANGES:
            assert_same(before, proposals(changed(Y, row, change), row))


def test_a_held_out_shortlist_keeps_the_order_of_its_rows():
    """Rows come back in the order asked for, whatever their folds."""
    X, Y = rows_and_labels("dense")
    data = makers.training_set(X, sp.csr_matrix(Y))
    rows = np.array([29, 0, 11, 3])
    together = held_out_shortlist(SCORERS["votes"](), data, 2, rows=rows)
    for i, row in enumerate(rows):
        alone = held_out_shortlist(SCORERS["votes"](), data, 2, rows=np.array([row]))
        assert_same(
            {"labels": alone.labels, **alone.scores},
            {"labels": together.rows(np.array([i])).labels, **together.rows(np.array([i])).scores},
        )

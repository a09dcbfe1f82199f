"""A row's own labels never reach its own training meta-features, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank.model.fitting.auto import named_scorers
from metarank.ranker.assemble import assemble
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.scorers.given.given_scorer import GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.scorers.given.pairs import GivenTogether, PairFeatures
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.shortlist import NeighborShortlister, XReg
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingSet

ROWS = (0, 29)
N_LABELS = 4
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"flip": lambda y: 1 - y, "graded": lambda y: y * 3}


class Leaking(makers.MeanFeature):
    """Fits on every row whatever TrainingView it is given: what the checks below must catch."""

    def fit(self, view, *, n_jobs=1):
        return super().fit(view._data.view(), n_jobs=n_jobs)


SCORERS: dict[str, Callable[[], LabelScorer]] = {
    **named_scorers(),
    "user": makers.MeanFeature,
    "xreg-t": partial(XReg, relevance="inverse-propensity", tail=0.5),
    "votes-names": partial(NeighborShortlister, names=True),
    "votes-t": partial(NeighborShortlister, relevance="inverse-propensity"),
    "ova-ridge": partial(OneVsAll, loss="ridge"),
    "given": partial(GivenScorer, given="bm25"),
    "given-together": partial(GivenTogether, given=["bm25", "knn"]),
    "given-linear": partial(GivenLinear, given=["bm25", "knn"]),
    "pair-features": partial(PairFeatures, names=("clicks",)),
    "ova-gradients": partial(OneVsAll, loss="ridge", max_size=10),
}
FEWER = {
    "extra-trees": {"n_trees": 10},
    **{name: {"n_trees": 2} for name in ("fastxml", "pfastxml", "pfastrexml")},
}
for name, fewer in FEWER.items():
    SCORERS[name] = partial(SCORERS[name], **fewer)
SPARSE_ONLY = {"mentions", "name-record", "names", "spelling", "votes-names"}
SPARSE_ONLY |= {"given", "given-together", "given-linear", "pair-features"}
CASES = [
    pytest.param(name, layout, id=f"{name}-{layout}")
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


def answers_of_rows(
    scorer: LabelScorer, X: Features, Y: np.ndarray, rows: Sequence[int]
) -> list[dict[str, np.ndarray]]:
    """Columns and, of a scorer that proposes, the shortlist of each row."""
    data, fits = makers.training_set(X, sp.csr_matrix(Y)), {}
    every, rows = Candidates.all_labels(len(rows), N_LABELS), np.array(rows)
    columns = held_out_columns(scorer, data, every, rows=rows, fits=fits)
    out = [
        {name: values[i * N_LABELS : (i + 1) * N_LABELS] for name, values in columns.items()}
        for i in range(len(rows))
    ]
    if scorer.proposes:
        shortlist = held_out_shortlist(scorer, data, 2, rows=rows, fits=fits)
        for i, answer in enumerate(out):
            proposed = shortlist.rows(np.array([i]))
            answer |= {"labels": proposed.labels, **{f"proposed: {n}": v for n, v in proposed.scores.items()}}
    return out


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert list(a) == list(b)
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_own_labels_do_not_reach_own_columns(name, layout):
    X, Y = rows_and_labels(layout)
    scorer = tuned(SCORERS[name](), makers.training_set(X, sp.csr_matrix(Y)))
    for row, before in zip(ROWS, answers_of_rows(scorer, X, Y, ROWS)):
        assert before
        for change in CHANGES:
            assert_same(before, answers_of_rows(scorer, X, changed(Y, row, change), [row])[0])


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
            answers_of_rows(Leaking(), X, Y, [0])[0],
            answers_of_rows(Leaking(), X, changed(Y, 0, "flip"), [0])[0],
        )


@pytest.mark.parametrize(("layout", "n_jobs"), [("dense", 1), ("sparse", 3)])
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


def test_held_out_answers_keep_the_order_of_the_rows():
    """Rows come back in the order asked for, whatever their folds."""
    X, Y = rows_and_labels("dense")
    rows, votes = [29, 0, 11, 3], SCORERS["votes"]()
    for row, together in zip(rows, answers_of_rows(votes, X, Y, rows)):
        assert_same(together, answers_of_rows(votes, X, Y, [row])[0])

"""Laws of every source: threads, batches, the order of rows, copies and saved models change no byte; held-out
columns are those of fits without the fold; what belongs to another model is refused."""

from __future__ import annotations

from functools import cache

import makers
import numpy as np
import pytest
from sklearn.base import clone
from test_leakage import CASES, SCORERS, assert_same, rows_and_labels, tuned

from metarank import load, persist
from metarank.scorers.base import HeldOutColumns, HeldOutProposals, LabelScorer, columns_of
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.types.candidates import Candidates

NEW = slice(0, 25)


@cache
def fitted(name: str, layout: str) -> tuple[LabelScorer, makers.Features]:
    """A fitted source, and rows to be answered."""
    X, Y = rows_and_labels(layout)
    data = makers.training_set(X, makers.sp.csr_matrix(Y))
    scorer = tuned(SCORERS[name](), data).fit(data.view())
    return scorer, data.read_by(scorer)[NEW]


def all_columns(scorer: LabelScorer, X: makers.Features, n_jobs: int = 1) -> dict[str, np.ndarray]:
    return columns_of(scorer, X, Candidates.all_labels(X.shape[0], 4), n_jobs=n_jobs)


def proposed(scorer: LabelScorer, X: makers.Features, n_jobs: int = 1) -> list[bytes]:
    found = scorer.shortlist(X, 2, n_jobs=n_jobs)
    assert scorer.proposes_given or (np.diff(found.indptr) <= 2).all()
    return [a.tobytes() for a in (found.indptr, found.labels, *found.scores.values())]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_a_pair_depends_on_its_row_and_label_alone(name, layout):
    scorer, X = fitted(name, layout)
    columns = all_columns(scorer, X)
    for values in columns.values():
        assert values.dtype == np.float32
        assert np.isfinite(values).all()
    assert_same(columns, all_columns(scorer, X, n_jobs=4))
    for batches in ([X[:1], X[1:]], [X[i : i + 7] for i in range(0, X.shape[0], 7)]):
        parts = [all_columns(scorer, batch) for batch in batches]
        assert_same(columns, {key: np.concatenate([part[key] for part in parts]) for key in columns})
    order = np.random.default_rng(0).permutation(X.shape[0])
    turned = all_columns(scorer, X[order])
    assert_same({key: v.reshape(-1, 4)[order].ravel() for key, v in columns.items()}, turned)
    # Of some labels only, and of none.
    some = Candidates(np.arange(X.shape[0] + 1), np.full(X.shape[0], 2, np.int32), 4)
    assert_same({key: v.reshape(-1, 4)[:, 2].copy() for key, v in columns.items()}, scorer.score(X, some))
    assert all(len(values) == 0 for values in all_columns(scorer, X[:0]).values())


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_fits_copies_and_saved_ones_are_the_same(name, layout, tmp_path):
    scorer, X = fitted(name, layout)
    columns = all_columns(scorer, X)
    X_all, Y = rows_and_labels(layout)
    view = makers.training_set(X_all, makers.sp.csr_matrix(Y)).view()
    assert_same(columns, all_columns(clone(scorer).fit(view, n_jobs=4), X))
    persist.save(scorer, tmp_path / "S")
    loaded = load(tmp_path / "S")
    assert type(loaded) is type(scorer)
    assert_same(columns, all_columns(loaded, X))
    if scorer.proposes:
        assert proposed(scorer, X) == proposed(scorer, X, n_jobs=4) == proposed(loaded, X)
        one = [scorer.shortlist(X[i : i + 1], 2) for i in range(X.shape[0])]
        assert np.concatenate([c.labels for c in one]).tobytes() == proposed(scorer, X)[1]


CLOSED = ("score_held_out", "shortlist_held_out")
# Closed forms that meet a fit without the fold up to rounding, and how near.
NEAR = {"ova-ridge": 1e-4, "ova-gradients": 1e-4, "given-linear": 2e-3}


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_held_out_columns_are_those_of_fits_without_the_fold(name, layout):
    X, Y = rows_and_labels(layout)
    data = makers.training_set(X, makers.sp.csr_matrix(Y))
    scorer = tuned(SCORERS[name](), data)
    if not isinstance(scorer, HeldOutColumns):
        return  # held out by such fits
    every = Candidates.all_labels(*Y.shape)
    shortcut = held_out_columns(scorer, data, every, n_jobs=4)
    refits = clone(scorer)
    refits.__class__ = type("ByRefits", (type(scorer),), dict.fromkeys(CLOSED, lambda *args, **kwargs: None))
    for column, values in held_out_columns(refits, data, every).items():
        np.testing.assert_allclose(shortcut[column], values, rtol=0, atol=NEAR.get(name, 0))
    if isinstance(scorer, HeldOutProposals):
        proposed = scorer.shortlist_held_out(data, 2, rows=np.arange(len(Y)))
        refitted = held_out_shortlist(refits, data, 2, rows=np.arange(len(Y)))
        assert proposed is None or (proposed.labels == refitted.labels).all()
    rows = np.array([7, 3, 31])
    some = held_out_columns(scorer, data, every.rows(rows), rows=rows)
    for column, values in some.items():
        np.testing.assert_array_equal(values.reshape(3, -1), shortcut[column].reshape(Y.shape)[rows])


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_what_belongs_to_another_model_is_refused(name, layout):
    scorer, X = fitted(name, layout)
    n, refused = X.shape[0], r"^X |^candidates|^both sets of rows"
    if name not in ("user", "pair-features"):  # they look at no list as a whole
        for candidates in (Candidates.all_labels(n, 5), Candidates.all_labels(n - 1, 4)):
            if name != "mentions" or candidates.n_labels == 5:
                with pytest.raises(ValueError, match=refused):
                    scorer.score(X, candidates)
    if name not in ("user", "prior", "mentions") and isinstance(X, (np.ndarray, makers.sp.csr_matrix)):
        with pytest.raises(ValueError, match=refused):
            scorer.score(X[:, :-1], Candidates.all_labels(n, 4))

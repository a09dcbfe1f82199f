"""Cross-fitting: held-out columns and proposals for the training rows. No other module runs folds.

Every column of a training pair comes from a scorer fitted on the view without the pair's fold. All scorers
share one fold map, so that all columns of a pair come from the same held-out view. A scorer's free parameters
(the width of a kernel, the C of an SVM) may be tuned once on all rows, by `tuned`: a row's labels can then
influence that choice, but not the row's own held-out value under it.

K refits on (K - 1) / K of the rows cost about K - 1 fits, which proposing and describing share. Scorers with
a closed form (`score_held_out`, `shortlist_held_out`) cost little more than one fit for any K. Label trees
have no closed form, and share nothing between folds: a hierarchy that has seen a row's labels makes the row's
held-out scores better than those of a new row (experiments/tried.md).

*Reported* held-out estimates need more. The column of a pair tells how many relevant rows its label has
outside the pair's fold, and so how many it has inside. A ranker that learns from columns which know the
labels of fold f can read these counts, and looks better on fold f than on new rows. So the ranker that is
judged on an outer part learns either from columns without that part (`nested_columns`), or from rows of the
same fold as the part (`inner_parts`), all described by the TrainingView without that fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from sklearn.base import clone

from metarank._util.progress import in_turn, side_by_side
from metarank._util.threads import in_threads
from metarank.scorers.base import HeldOutColumns, HeldOutProposals, LabelScorer, PointProposer, columns_of
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns
from metarank.types.view import TrainingSet, TrainingView, fold_of_rows

T = TypeVar("T")
D = TypeVar("D")
# Fits without each fold, by the number of the fold, to which new ones are added.
Fits: TypeAlias = dict[int, Any] | None

# The most outer parts: the number of fits that leave out two of them grows with the square.
_MOST_PARTS = 5
# With fewer rows, two parts leave too little to learn from.
_LEAST_ROWS = 20
# One row in so many is held apart to choose by.
_APART = 5


def held_out_columns(
    scorer: LabelScorer,
    data: TrainingSet,
    candidates: Candidates,
    *,
    rows: np.ndarray | None = None,
    n_jobs: int = 1,
    fits: Fits = None,
) -> Columns:
    """Columns (m,) of the pairs of training rows, computed as if each row were new.

    Parameters
    ----------
    scorer : unfitted LabelScorer
    data : TrainingSet
    candidates : Candidates of the training rows `rows`, in that order
    rows : int array, optional
        Training rows to describe; all by default.
    n_jobs : int
        Threads; the folds run side by side.
    fits : dict, optional
        Fits without each fold, by fold. Missing ones are added.

    Returns
    -------
    dict of name to float32 array (m,)
    """
    rows = np.arange(len(data.fold)) if rows is None else rows
    if isinstance(scorer, HeldOutColumns):
        columns = scorer.score_held_out(data, candidates, rows=rows, n_jobs=n_jobs)
        if columns is not None:
            return columns
    X = data.read_by(scorer)

    def one_fold(f: int, threads: int) -> Columns:
        inside = np.flatnonzero(data.fold[rows] == f)
        fitted = _fit_without(f, scorer, data, threads, fits)
        pairs = np.diff(candidates.indptr)[inside]
        parts = [
            columns_of(fitted, X[rows[inside[some]]], candidates.rows(inside[some]), n_jobs=threads)
            for some in chunks(pairs, data.chunk_pairs)
        ]
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)


def held_out_shortlist(
    scorer: LabelScorer, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1, fits: Fits = None
) -> Candidates:
    """The scorer's k proposals for some training rows, from fits without the row's fold.

    The fits are added to `fits`, if given, so that `held_out_columns` can use them.
    """
    if isinstance(scorer, HeldOutProposals):
        listed = scorer.shortlist_held_out(data, k, rows=rows, n_jobs=n_jobs)
        if listed is not None:
            return listed
    X = data.read_by(scorer)

    def one_fold(f: int, threads: int) -> Candidates:
        inside = np.flatnonzero(data.fold[rows] == f)
        fitted = _fit_without(f, scorer, data, threads, fits)
        parts = [
            fitted.shortlist(X[rows[inside[some]]], k, n_jobs=threads)
            for some in chunks(np.full(len(inside), k), data.chunk_pairs)
        ]
        return Candidates.stack(parts)

    return stack_folds(one_fold, data.fold[rows], n_jobs)


def held_out_points(
    scorer: PointProposer, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int, fits: Fits
) -> Candidates:
    """For each fold, the k best of its rows for each label, from a fit without the fold; by row.

    A row's place among the proposals depends on the other rows of
    its fold, and on no label of any of them.
    """
    X = data.read_by(scorer)

    def one_fold(f: int, threads: int) -> Candidates:
        inside = rows[data.fold[rows] == f]
        fitted = _fit_without(f, scorer, data, threads, fits)
        by_label: Candidates = fitted.shortlist_points(X[inside], k, n_jobs=threads)
        return by_label.transpose()

    return stack_folds(one_fold, data.fold[rows], n_jobs)


def chunks(pairs: np.ndarray, most: int) -> list[slice]:
    """Slices of rows, at least one, with at most this many pairs each or a single row."""
    ends = np.cumsum(pairs)
    chunks: list[slice] = []
    start = 0
    while start < len(pairs) or not chunks:
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        chunks.append(slice(start, end))
        start = end
    return chunks


def _fit_without(fold: int, scorer: LabelScorer, data: TrainingSet, n_jobs: int, fits: Fits) -> Any:
    fits = {} if fits is None else fits
    if fold not in fits:
        fits[fold] = fitted_without(fold, scorer, data, n_jobs)
    return fits[fold]


def fitted_without(fold: int, scorer: LabelScorer, data: TrainingSet, n_jobs: int) -> Any:
    """A copy of the scorer, fitted on the rows outside a fold."""
    return clone(scorer).fit(data.without_fold(fold), n_jobs=n_jobs)


def stack_folds(one_fold: Callable[[int, int], Candidates], fold: np.ndarray, n_jobs: int) -> Candidates:
    """Run `one_fold(f, threads)` for every fold and place its candidates at the fold's rows."""
    stacked = Candidates.stack(over_folds(one_fold, np.unique(fold), n_jobs))
    return stacked.rows(np.argsort(np.argsort(fold, kind="stable")))  # back from fold order to row order


@dataclass(frozen=True, eq=False)
class OuterPart(Generic[D]):
    """Lists a ranker is judged on, and those it learns from for that.

    Parameters
    ----------
    held_out, seen : int64 array
        Positions of lists, ascending.
    described : optional
        What the ranker sees of the pairs of the `seen` lists, fitted without the held-out rows and without
        the row's own part: the columns of each scorer, or their table. None where what all rows have is so
        already.
    """

    held_out: np.ndarray
    seen: np.ndarray
    described: D | None = None


def can_nest(data: TrainingSet) -> bool:
    """Whether there are enough rows and folds to leave out two parts."""
    return len(data.fold) >= _LEAST_ROWS and len(np.unique(data.fold)) > 2


def nested_columns(
    scorers: Sequence[LabelScorer],
    data: TrainingSet,
    candidates: Candidates,
    n_jobs: int,
    use: Callable[[OuterPart[list[dict[str, np.ndarray]]]], T],
) -> list[T]:
    """The result of `use` for each outer part: a fold or a run of folds, with the columns of all other rows.

    The ranker that is judged on a part learns from columns that know nothing of the part. The part's own rows
    keep the columns of the whole fit, whose other folds know nothing of them. Fits without two parts serve
    both parts.

    Parameters
    ----------
    scorers : unfitted LabelScorers, tuned
    data : TrainingSet
        One for which `can_nest` is true.
    candidates : Candidates of all training rows
    n_jobs : int
    use : function of an OuterPart
    """
    # The outer part of each row: its fold, or a run of folds if there are many.
    folds, place = np.unique(data.fold, return_inverse=True)
    part = (place * min(_MOST_PARTS, len(folds)) // max(1, len(folds))).astype(np.int32)
    # By scorer and the two parts left out, the smaller first.
    fits: dict[tuple[int, int, int], Any] = {}
    cheaper = [scorer.cheaper() for scorer in scorers]
    numbers = [int(p) for p in np.unique(part)]

    def without(out: int) -> T:
        seen = np.flatnonzero(part != out)
        rest, of_rest = data.part(seen, part[seen]), candidates.rows(seen)

        def columns(i: int) -> Columns:
            known = {p: fits.pop((i, p, out)) for p in numbers if (i, p, out) in fits}
            held_out = held_out_columns(cheaper[i], rest, of_rest, n_jobs=n_jobs, fits=known)
            fits.update({(i, out, p): fit for p, fit in known.items() if p > out})
            return held_out

        described = in_turn(columns, range(len(cheaper)), lambda i: type(cheaper[i]).__name__)
        return use(OuterPart(np.flatnonzero(part == out), seen, described))

    return in_turn(without, numbers, lambda out: f"without fold {out + 1} of {len(numbers)}")


def inner_parts(fold: np.ndarray, inner: np.ndarray) -> list[OuterPart[Any]]:
    """Outer parts that need no further fit. Each is an inner fold of one fold. The ranker that is judged on
    it learns from the other rows of the same fold, which the same TrainingView describes."""
    return [
        OuterPart(held_out, seen)
        for f in np.unique(fold)
        for p in np.unique(inner[fold == f])
        for held_out, seen in [
            (np.flatnonzero((fold == f) & (inner == p)), np.flatnonzero((fold == f) & (inner != p)))
        ]
    ]


def held_apart(
    view: TrainingView, seed: int, X: Any = None
) -> tuple[TrainingView, TrainingView, np.ndarray] | None:
    """What a choice is tried on: the rows to learn from, a fifth to judge by, which the seed draws, and which
    rows of the view learn, bool (n,). None of fewer than ten rows, and where one part has no labels.

    Rows of a group stay together, as do copies of a row of X where that is given.
    """
    learns = fold_of_rows(view.n_rows, _APART, seed, X, view.groups) != 0
    others, judged = view.part(np.flatnonzero(learns)), view.part(np.flatnonzero(~learns))
    enough = view.n_rows >= 2 * _APART and others.Y.nnz and judged.Y.nnz
    return (others, judged, learns) if enough else None


def scatter_folds(
    one_fold: Callable[[int, int], Columns], fold: np.ndarray, candidates: Candidates, n_jobs: int
) -> Columns:
    """Run `one_fold(f, threads)` for every fold and place its columns at the fold's pairs."""
    pair_fold = np.repeat(fold, np.diff(candidates.indptr))
    out: dict[str, np.ndarray] = {}
    lock = Lock()

    def scatter(f: int, threads: int) -> None:
        part = one_fold(f, threads)
        at = np.flatnonzero(pair_fold == f)
        for name, values in part.items():
            with lock:
                if name not in out:
                    out[name] = np.zeros(candidates.n_pairs, np.float32)
            out[name][at] = values

    over_folds(scatter, np.unique(fold), n_jobs)
    return out


def over_folds(one_fold: Callable[[int, int], T], folds: np.ndarray, n_jobs: int) -> list[T]:
    """`one_fold(f, threads)` for every fold, several at once if there are enough threads."""
    workers = max(1, min(n_jobs, len(folds)))
    threads = max(1, n_jobs // workers)
    parts = side_by_side([f"fold {number} of {len(folds)}" for number in range(1, len(folds) + 1)])

    def with_progress(f: Any, part: AbstractContextManager[None]) -> T:
        with part:
            return one_fold(int(f), threads)

    return list(in_threads(with_progress, folds, parts, n_jobs=workers))

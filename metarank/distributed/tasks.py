"""What a worker does for a fit or an answer: the functions of `metarank.model` on what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from metarank._util.progress import taking_notes
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.model.answering.answer import Answering, Request
from metarank.model.fitted import Scored
from metarank.model.fitting.sources import tuned_k
from metarank.model.fitting.stages import RankedPairs, TrainingLists, ranked
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import fitted_without
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns
from metarank.types.view import TrainingSet

# The training set that tasks of this process work on, by the name of its fit: with it stays what is built
# from it once, such as the index of its rows.
_resident: dict[str, TrainingSet] = {}
_lock = Lock()


class Noted(NamedTuple):
    """The result of a task, and what was noted on the way to it."""

    result: Any
    notes: list[str]


def on_training_set(
    work: Callable[..., Any], name: str, data: TrainingSet, n_jobs: int | None, alone: bool, *args: Any
) -> Noted:
    """``work(training set, threads, *args)``. One training set stays with the process, until `release`.

    Parameters
    ----------
    work : function of this module
    name : str
        Of the fit.
    data : TrainingSet
    n_jobs : int or None
        Threads of a task. None and negative: one, and all of the worker's for a task that is `alone`.
    alone : bool
        Whether no other task of the fit runs beside it.
    args : futures among them stand for their results
    """
    with _lock:
        if name not in _resident:
            _resident.clear()
            _resident[name] = data
        data = _resident[name]
    with single_threaded_blas(), taking_notes() as notes:
        return Noted(work(data, task_threads(n_jobs, alone=alone), *args), notes)


def release(name: str) -> None:
    """Let go of the training set; called on every worker when a fit is over."""
    with _lock:
        _resident.pop(name, None)


def task_threads(n_jobs: int | None, *, alone: bool = False) -> int:
    """Threads of a task; see `on_training_set`."""
    if n_jobs is not None and n_jobs >= 0:
        return resolve_n_jobs(n_jobs)
    if not alone:
        return 1
    from distributed import get_worker

    return max(1, int(get_worker().state.nthreads) + 1 + (-1 if n_jobs is None else n_jobs))


def hold(value: Any) -> Any:
    """A value that many tasks take; part of the graph, so that it outlives any worker."""
    return value


def k_by_validation(data: TrainingSet, n_jobs: int) -> int:
    """k of `tuned_k`."""
    return tuned_k(data, n_jobs=n_jobs)


def tuned_scorer(data: TrainingSet, n_jobs: int, scorer: LabelScorer) -> LabelScorer:
    """The scorer with its free parameters tuned."""
    return scorer.tuned(data.view(), n_jobs=n_jobs)


def fit_without_fold(data: TrainingSet, n_jobs: int, scorer: LabelScorer, fold: int) -> Any:
    """The scorer, fitted on the rows outside a fold."""
    return fitted_without(fold, scorer, data, n_jobs)


def fit_on_all(data: TrainingSet, n_jobs: int, scorer: LabelScorer) -> LabelScorer:
    """The scorer, fitted on all rows."""
    return clone(scorer).fit(data.view(), n_jobs=n_jobs)  # type: ignore[no-any-return]


def held_out(
    data: TrainingSet,
    n_jobs: int,
    work: Callable[..., Any],
    scorer: LabelScorer,
    fit: Noted | None,
    rows: np.ndarray,
    of: Any,
) -> Any:
    """What `work`, of `metarank.scorers.crossfit`, finds for some training rows of one fold.

    `fit` is without the rows' fold; None makes what the scorer needs.
    """
    fits, fold = None, int(data.fold[rows[0]])
    if fit is not None:
        fits = {fold: fit.result}
    elif scorer.is_quick:
        key = f"held-out fit of {scorer!r} fold {fold}"  # made once by each worker, instead of being sent
        fits = {fold: data.shared(key, lambda X: fitted_without(fold, scorer, data, n_jobs))}
    return work(scorer, data, of, rows=rows, n_jobs=n_jobs, fits=fits)


def rank(
    data: TrainingSet,
    n_jobs: int,
    parts: list[list[Noted]],
    places: list[list[np.ndarray]],
    lists: TrainingLists,
    scorers: list[LabelScorer],
) -> RankedPairs:
    """`ranked` on the columns of all scorers, each in parts; `places` are the rows of each part."""
    columns = [in_place(part, at, lists.described) for part, at in zip(parts, places)]
    return ranked(columns, lists, n_jobs, data, scorers)


def in_place(parts: list[Noted], places: list[np.ndarray], candidates: Candidates) -> Columns:
    """The columns (m,) of all pairs from those of some rows each."""
    columns = [part.result for part in parts]
    if len(columns) == 1:
        return columns[0]  # type: ignore[no-any-return]
    sizes = np.diff(candidates.indptr)
    out = {name: np.empty(candidates.n_pairs, values.dtype) for name, values in columns[0].items()}
    for part, rows in zip(columns, places):
        inside = np.zeros(candidates.n_rows, bool)
        inside[rows] = True
        at = np.flatnonzero(np.repeat(inside, sizes))
        for name, values in part.items():
            out[name][at] = values
    return out


def answer(answering: Answering, part: Request, k: int) -> list[Scored]:
    """The scored candidates of some rows of a request."""
    return replace(answering, n_jobs=task_threads(answering.n_jobs)).score(part, k)

"""What a worker does for a fit: the functions of `metarank.model.stages` on the training set that it
holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metarank._util.progress import taking_notes
from metarank.distributed.bytes import register_sizes
from metarank.distributed.job import Job
from metarank.distributed.results import Noted
from metarank.model.point_lists import PointLists, ranked_points
from metarank.model.stages import Columns, PairsToRank, columns_among, fitted_on_all, ranked, tuned
from metarank.model.tuned_k import tuned_k
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import (
    fitted_without,
    held_out_columns,
    held_out_points,
    held_out_shortlist,
)
from metarank.scorers.trees.tree_ensemble import TreeBlock
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, View

register_sizes()  # on every worker, which imports this file


@dataclass(frozen=True)
class QuickFit:
    """A fit of seconds: made by each worker that asks for it, instead of being sent with all its rows."""

    key: str


def hold(value: Any) -> Any:
    """A value that many tasks take; part of the graph, so that it outlives any worker."""
    return value


def k_by_validation(job: Job, data: TrainingSet, key: str) -> Noted:
    """k of `tuned_k`."""

    def make(data: TrainingSet, n_jobs: int) -> Noted:
        with taking_notes() as notes:
            return Noted(tuned_k(data, n_jobs=n_jobs), notes)

    return job.result(data, key, make, alone=True)


def tuned_params(job: Job, data: TrainingSet, key: str, scorer: Any) -> Noted:
    """The parameters that `tuned` chose: unfitted, a scorer is its parameters."""

    def make(data: TrainingSet, n_jobs: int) -> Noted:
        with taking_notes() as notes:
            before, after = (s.get_params(deep=False) for s in (scorer, tuned(scorer, data, n_jobs)))
        return Noted({name: value for name, value in after.items() if not _same(value, before[name])}, notes)

    return job.result(data, key, make, alone=True)


def fit_without_fold(job: Job, data: TrainingSet, key: str, scorer: Any, fold: int) -> Any:
    """The scorer, fitted on the rows outside a fold."""
    return job.result(data, key, lambda data, n_jobs: fitted_without(fold, scorer, data, n_jobs))


def fit_on_all(job: Job, data: TrainingSet, key: str, scorer: Any, after: Any = None) -> Any:
    """The scorer, fitted on all rows; `after` is what must be done before, and is not looked at."""
    alone = after is not None
    return job.result(data, key, lambda data, n_jobs: fitted_on_all(scorer, data, n_jobs), alone=alone)


def fit_trees(
    job: Job, data: TrainingSet, key: str, scorer: Any, fold: int | None, first: int, count: int
) -> TreeBlock:
    """Some trees of the scorer's fit on the rows outside a fold, or on all rows."""
    return job.result(
        data, key, lambda data, n_jobs: scorer.fit_trees(_view(data, fold), first, count, n_jobs=n_jobs)
    )


def fit_rest(job: Job, data: TrainingSet, key: str, scorer: Any, fold: int | None) -> dict[str, Any]:
    """What the same fit learns beside the trees."""
    return job.result(data, key, lambda data, n_jobs: scorer.fit_rest(_view(data, fold), n_jobs=n_jobs))


def join_trees(scorer: Any, blocks: list[TreeBlock], rest: dict[str, Any] | None) -> Any:
    """The fitted scorer: it takes no time and is in what is kept of its parts."""
    return scorer.joined(blocks, rest)


def propose(
    job: Job, data: TrainingSet, key: str, scorer: Any, k: int, rows: np.ndarray, fit: Any
) -> Candidates:
    """Proposals for some training rows. `fit`: without the rows' fold; None where the scorer needs none."""

    def make(data: TrainingSet, n_jobs: int) -> Candidates:
        fits = _fits(fit, scorer, data, rows, n_jobs)
        return held_out_shortlist(scorer, data, k, rows=rows, n_jobs=n_jobs, fits=fits)

    return job.result(data, key, make, alone=fit is None)


def propose_points(
    job: Job, data: TrainingSet, key: str, scorer: Any, k: int, rows: np.ndarray, fit: Any
) -> Candidates:
    """The best of the rows of a fold for each label; `fit` as for `propose`."""

    def make(data: TrainingSet, n_jobs: int) -> Candidates:
        fits = _fits(fit, scorer, data, rows, n_jobs)
        return held_out_points(scorer, data, k, rows=rows, n_jobs=n_jobs, fits=fits)

    return job.result(data, key, make)


def describe(
    job: Job, data: TrainingSet, key: str, scorer: Any, candidates: Candidates, rows: np.ndarray, fit: Any
) -> Columns:
    """Columns for the candidates of some training rows; `fit` as for `propose`."""

    def make(data: TrainingSet, n_jobs: int) -> Columns:
        fits = _fits(fit, scorer, data, rows, n_jobs)
        return held_out_columns(scorer, data, candidates, rows=rows, n_jobs=n_jobs, fits=fits)

    return job.result(data, key, make, alone=fit is None)


def rank(
    job: Job,
    data: TrainingSet,
    key: str,
    parts: list[list[Columns]],
    places: list[list[np.ndarray]],
    pairs: PairsToRank,
    scorers: list[LabelScorer],
) -> Noted:
    """`ranked` on the columns of all scorers, each in parts; `places` are the rows of each part."""

    def make(data: TrainingSet, n_jobs: int) -> Noted:
        described = pairs.candidates if pairs.described is None else pairs.described
        columns = [in_place(own, at, described) for own, at in zip(parts, places)]
        parts.clear()
        with taking_notes() as notes:
            return Noted(ranked(columns, pairs, n_jobs, data, scorers), notes)

    return job.result(data, key, make, alone=True)


def rank_points(
    job: Job,
    data: TrainingSet,
    key: str,
    parts: list[list[Columns]],
    places: list[list[np.ndarray]],
    lists: PointLists,
    described: Candidates,
) -> Noted:
    """`ranked_points`, as `rank`."""

    def make(data: TrainingSet, n_jobs: int) -> Noted:
        columns = [in_place(own, at, described) for own, at in zip(parts, places)]
        with taking_notes() as notes:
            own = columns_among(columns, described, lists.candidates)
            return Noted(ranked_points(own, lists, n_jobs), notes)

    return job.result(data, key, make, alone=True)


def in_place(parts: list[Columns], places: list[np.ndarray], candidates: Candidates) -> Columns:
    """The columns (m,) of all pairs from those of some rows each."""
    if len(parts) == 1:
        return parts[0]
    out = {name: np.zeros(candidates.n_pairs, values.dtype) for name, values in parts[0].items()}
    sizes = np.diff(candidates.indptr)
    for part, rows in zip(parts, places):
        inside = np.zeros(candidates.n_rows, bool)
        inside[rows] = True
        at = np.flatnonzero(np.repeat(inside, sizes))
        for name, values in part.items():
            out[name][at] = values
    return out


def _view(data: TrainingSet, fold: int | None) -> View:
    return data.view() if fold is None else data.without_fold(fold)


def _same(a: Any, b: Any) -> bool:
    plain = (type(None), bool, int, float, str)
    return a is b or (isinstance(a, plain) and isinstance(b, plain) and type(a) is type(b) and a == b)


def _fits(fit: Any, scorer: Any, data: TrainingSet, rows: np.ndarray, n_jobs: int) -> dict[int, Any] | None:
    """The fit without the fold of the rows, as `metarank.scorers.crossfit` looks for it."""
    if fit is None:
        return None
    fold = int(data.fold[rows[0]])
    if not isinstance(fit, QuickFit):
        return {fold: fit}
    return {fold: data.shared(f"{fit.key} fold {fold}", lambda X: fitted_without(fold, scorer, data, n_jobs))}

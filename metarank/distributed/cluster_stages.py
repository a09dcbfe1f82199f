"""`ClusterStages`: the stages of a fit as tasks of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from distributed import Client, Future, wait

from metarank._util.progress import in_turn, note
from metarank.distributed import tasks
from metarank.distributed.workers import QUIET
from metarank.model.fitting.stages import LocalStages, RankedPairs, TrainingLists
from metarank.scorers.base import HeldOutColumns, HeldOutProposals, LabelScorer, PointProposer
from metarank.scorers.crossfit import held_out_columns, held_out_points, held_out_shortlist
from metarank.scorers.source import Source, describers, with_scorers
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

# What a task of each kind finds.
_WORK = {"propose": held_out_shortlist, "propose_points": held_out_points, "describe": held_out_columns}
# Training rows to a task that proposes or describes; a part lies within one fold.
PART_ROWS = 2048


@dataclass(frozen=True, eq=False)
class DescribedParts:
    """The columns of one source on their workers: its name, the rows of each part, and its columns."""

    name: str
    rows: list[np.ndarray]
    columns: list[Future]


class ClusterStages(LocalStages):
    """Runs the stages of one fit on a cluster, by the functions of `LocalStages`, so that the result is the
    same.

    The training set goes with the graph to every worker that works on it, so that no loss of a worker loses
    it. Each fit of a source without a fold, and each on all rows, is a task. What they say of the training
    rows is a task for some 2,000 rows. Columns stay on their workers until the one that fits the ranker takes
    them.

    Parameters
    ----------
    client : distributed.Client
    data : TrainingSet
    n_jobs : int
        Threads of this process.
    task_n_jobs : int or None
        Threads of a task, see `tasks.on_training_set`.
    """

    def __init__(self, client: Client, data: TrainingSet, n_jobs: int, task_n_jobs: int | None) -> None:
        super().__init__(data, n_jobs)
        self.client = client
        self.task_n_jobs = task_n_jobs
        self.name: str = uuid4().hex
        self._futures: list[Future] = []
        self._data = self._submit(tasks.hold, data)
        self._held_out: dict[tuple[int, int], Future] = {}
        self._on_all: list[Future] = []

    def close(self) -> None:
        """However the fit ended, no task of it goes on, and no worker keeps the training set."""
        futures, self._futures, self._on_all = self._futures, [], []
        self._held_out.clear()
        with suppress(Exception):  # a scheduler that is gone has ended all, and the fit says so by itself
            for future in futures:
                future.release()
            self.client.run(tasks.release, self.name, on_error="ignore")
        tasks.release(self.name)

    def tuned_k(self) -> int:
        return int(self._result(self._task(tasks.k_by_validation, alone=True)))

    def tune(self, sources: list[Source]) -> list[Source]:
        chosen = {
            i: self._task(tasks.tuned_scorer, source.scorer, alone=True)
            for i, source in enumerate(sources)
            if type(source.scorer).tuned is not LabelScorer.tuned
        }
        tuned = {i: self._result(future) for i, future in chosen.items()}
        return [replace(source, scorer=tuned.get(i, source.scorer)) for i, source in enumerate(sources)]

    def propose(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates]:
        proposals = [
            self._in_parts("propose", i, source.scorer, isinstance(source.scorer, HeldOutProposals), rows, k)
            for i, source in enumerate(sources)
            if source.proposes
        ]
        self._begin_fits_on_all(sources)
        return [self._stacked(futures, places) for futures, places in proposals]

    def propose_points(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates | None]:
        fold = self.data.fold[rows]
        folds = [np.flatnonzero(fold == f) for f in np.unique(fold)]
        proposals = [
            self._in_parts("propose_points", i, source.scorer, False, rows, k, parts=folds)
            if isinstance(source.scorer, PointProposer)
            else None
            for i, source in enumerate(sources)
            if source.proposes
        ]
        return [None if proposal is None else self._stacked(*proposal) for proposal in proposals]

    def describe(  # type: ignore[override]
        self, sources: list[Source], candidates: Candidates, rows: np.ndarray
    ) -> list[DescribedParts]:
        """The columns of each source, which stay where they are."""
        parts = self._parts(rows)
        lists = [self._submit(tasks.hold, candidates.rows(part)) for part in parts]
        all_pairs = self._submit(tasks.hold, candidates)
        out = []
        for i, source in enumerate(sources):
            if source.describes:
                closed = isinstance(source.scorer, HeldOutColumns)
                pairs = [all_pairs] if closed else lists
                futures, places = self._in_parts(
                    "describe", i, source.scorer, closed, rows, *pairs, parts=parts
                )
                out.append(DescribedParts(source.name, places, futures))
        self._begin_fits_on_all(sources)
        in_turn(lambda own: _wait(own.columns), out, lambda own: own.name)
        return out

    def rank(self, columns: list[Any], lists: TrainingLists, sources: list[Source]) -> RankedPairs:
        self._held_out.clear()
        parts, places = [part.columns for part in columns], [part.rows for part in columns]
        future = self._task(tasks.rank, parts, places, lists, describers(sources), alone=True)
        return self._result(future)  # type: ignore[no-any-return]

    def fit_on_all(self, sources: list[Source]) -> list[Source]:
        self._begin_fits_on_all(sources)
        return with_scorers(sources, [self._result(future) for future in self._on_all])

    def _begin_fits_on_all(self, sources: list[Source]) -> None:
        """Once: workers take these fits when they have nothing else to do."""
        self._on_all = self._on_all or [
            self._task(tasks.fit_on_all, source.scorer, priority=-1) for source in sources
        ]

    def _parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """Positions in `rows` of each part."""
        fold = self.data.fold[rows]
        out = []
        for f in np.unique(fold):
            inside = np.flatnonzero(fold == f)
            out += [inside[at : at + PART_ROWS] for at in range(0, len(inside), PART_ROWS)]
        return out

    def _in_parts(
        self,
        kind: str,
        number: int,
        scorer: LabelScorer,
        closed: bool,
        rows: np.ndarray,
        *of: Any,
        parts: list[np.ndarray] | None = None,
    ) -> tuple[list[Future], list[np.ndarray]]:
        """A task of a source for each part of the rows, or one for all where the scorer needs no fits
        (`closed`), by what is given `of` each part, or of all; and the positions of each part in `rows`."""
        places = [np.arange(len(rows))] if closed else self._parts(rows) if parts is None else parts
        futures = []
        for n, part in enumerate(places):
            fit = None if closed else self._fit_without(number, scorer, int(self.data.fold[rows[part[0]]]))
            asked = _WORK[kind], scorer, fit, rows[part], of[n % len(of)]
            futures.append(self._task(tasks.held_out, *asked, alone=closed, name=kind))
        return futures, places

    def _fit_without(self, number: int, scorer: LabelScorer, fold: int) -> Future | None:
        """The fit of a source without a fold; None for a quick one, which each worker makes for itself."""
        if scorer.is_quick:
            return None
        if (number, fold) not in self._held_out:
            self._held_out[number, fold] = self._task(tasks.fit_without_fold, scorer, fold)
        return self._held_out[number, fold]

    def _stacked(self, futures: list[Future], places: list[np.ndarray]) -> Candidates:
        """The proposals for all rows from those of the parts."""
        proposals = [self._result(future) for future in futures]
        if len(proposals) == 1:
            return proposals[0]  # type: ignore[no-any-return]
        return Candidates.stack(proposals).rows(np.argsort(np.concatenate(places), kind="stable"))

    def _task(
        self,
        work: Callable[..., Any],
        *args: Any,
        alone: bool = False,
        name: str = "",
        priority: int = 0,
    ) -> Future:
        """A task on the training set."""
        shared = work, self.name, self._data, self.task_n_jobs, alone
        name = name or work.__name__
        return self._submit(tasks.on_training_set, *shared, *args, name=name, priority=priority)

    def _submit(
        self, function: Callable[..., Any], *args: Any, name: str = "hold", priority: int = 0
    ) -> Future:
        how: dict[str, Any] = {"key": f"{name}-{uuid4()}", "pure": False, "priority": priority}
        with dask.config.set(QUIET):  # the dashboard shows a task by what stands before the dash
            future = self.client.submit(function, *args, **how)
        self._futures.append(future)
        return future

    def _result(self, future: Future) -> Any:
        """What a task found; what it noted is noted here."""
        outcome = future.result()
        for text in outcome.notes:
            note(text)
        return outcome.result


def _wait(futures: list[Future]) -> None:
    """Wait for some tasks; what one of them raised is raised here."""
    wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()

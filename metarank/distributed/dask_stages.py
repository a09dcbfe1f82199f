"""`DaskStages`: the stages of a fit as tasks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import dask
import numpy as np
from joblib import hash as digest
from sklearn.base import clone

from metarank._util.progress import in_turn, note
from metarank._util.version import __version__
from metarank.distributed import tasks
from metarank.distributed.every_pair import EveryPair
from metarank.distributed.job import Job, release
from metarank.distributed.tasks import QuickFit
from metarank.distributed.workers import QUIET
from metarank.model.point_lists import PointLists
from metarank.model.stages import LocalStages, PairsToRank, RankedPairs, fitted_on_all
from metarank.ranker import Ranker
from metarank.scorers.base import LabelScorer
from metarank.scorers.source import Source, describers, with_scorers
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

# Training rows to a task that proposes or describes; a part lies within one fold. It does not depend on the
# cluster, so that results that are kept serve a cluster of another size.
PART_ROWS = 2048
# Tasks that are urgent or not by their priority alone.
_FITS = (tasks.fit_without_fold, tasks.fit_on_all, tasks.fit_trees, tasks.fit_rest)


@dataclass(frozen=True, eq=False)
class DescribedParts:
    """The columns of one source on their workers: its name, the rows of each part, its columns and their
    key."""

    name: str
    rows: list[np.ndarray]
    columns: list[Future]
    keys: list[str]


class DaskStages(LocalStages):
    """Runs the stages of one fit on a cluster: the functions are those of `LocalStages`, so the result is.

    The training set goes with the graph to the scheduler and from there to every worker that works on it, so
    that no loss of workers loses it. Fits without a fold are a task each, those of an ensemble of trees one a
    block of trees (`metarank.scorers.trees.tree_ensemble`); what they say of the training rows is one task
    for some 2,000 rows; columns stay on their workers until the one that fits the ranker takes them. Fits on
    all rows begin at once and fill the time that the others leave.

    Parameters
    ----------
    client : distributed.Client
    data : TrainingSet
    n_jobs : int
        Threads of this process.
    task_n_jobs : int or None
        Threads of a task, see `Job`.
    folder : str or None
        Where results are kept.
    every_pair : bool
        Whether the ranker is a LambdaRank that all workers fit together, see `EveryPair`.
    """

    def __init__(
        self,
        client: Client,
        data: TrainingSet,
        n_jobs: int,
        *,
        task_n_jobs: int | None,
        folder: str | None,
        every_pair: bool = False,
    ) -> None:
        super().__init__(data, n_jobs)
        self.client = client
        self.every_pair = every_pair
        self.job: Job = Job(digest([__version__, data.__getstate__()]), task_n_jobs, folder)
        self._futures: list[Future] = []
        self._data = self._submit(tasks.hold, data)
        self._held_out: dict[tuple[int, int], Any] = {}
        self._fitting: dict[int, Future] = {}
        self._described: list[np.ndarray] = []

    def close(self) -> list[str]:
        """However the fit ended, no task of it goes on, and no worker keeps the training set.

        Returns why results could not be kept, an entry a result, as far as workers are there to tell.
        """
        missed = []
        futures, self._futures = self._futures, []
        self._held_out.clear()
        self._fitting.clear()
        with suppress(Exception):  # a scheduler that is gone has ended all, and the fit says so by itself
            for future in futures:  # a cancel of all at once fails in the scheduler where a worker was lost
                future.release()
            for told in self.client.run(release, self.job.token, on_error="ignore").values():
                missed += told
        return missed + release(self.job.token)

    def tuned_k(self) -> int:
        found = self._task(tasks.k_by_validation, self._key("tune-k")).result()
        for text in found.notes:
            note(text)
        return int(found.result)

    def tune(self, sources: list[Source]) -> list[Source]:
        chosen = {
            i: self._task(
                tasks.tuned_params, self._key("tune", self._name(source.scorer)), source.scorer, at=i
            )
            for i, source in enumerate(sources)
            if source.scorer.is_tunable
        }
        found = self.client.gather(chosen)
        for i in chosen:
            for text in found[i].notes:
                note(text)
        return [
            replace(source, scorer=clone(source.scorer).set_params(**found[i].result))
            if i in found
            else source
            for i, source in enumerate(sources)
        ]

    def propose(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates]:
        parts = self._parts(rows)
        order = np.argsort(np.concatenate(parts), kind="stable")
        asked: list[list[Future]] = []
        for i, source in enumerate(sources):
            if not source.proposes:
                continue
            scorer, closed = source.scorer, source.scorer.has_held_out_proposals
            own = []
            for part in [rows] if closed else [rows[places] for places in parts]:
                key = self._key("propose", self._name(scorer), k, part)
                own.append(self._held_out_task(tasks.propose, key, i, scorer, closed, k, part))
            asked.append(own)
        for i, source in enumerate(sources):
            if not (source.scorer.is_quick or source.scorer.has_held_out_columns):
                self._fit_on_all(i, source.scorer)
        found = []
        for own in asked:
            proposals = self.client.gather(own)
            found.append(proposals[0] if len(own) == 1 else Candidates.stack(proposals).rows(order))
        return found

    def propose_points(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates | None]:
        fold = self.data.fold[rows]
        parts = [np.flatnonzero(fold == f) for f in np.unique(fold)]
        order = np.argsort(np.concatenate(parts), kind="stable")
        asked: list[list[Future]] = []
        for i, source in enumerate(sources):
            if not source.proposes:
                continue
            scorer = source.scorer
            own: list[Future] = []
            for part in [rows[places] for places in parts] if scorer.proposes_points else []:
                key = self._key("propose-points", self._name(scorer), k, part)
                own.append(self._held_out_task(tasks.propose_points, key, i, scorer, False, k, part))
            asked.append(own)
        return [Candidates.stack(self.client.gather(own)).rows(order) if own else None for own in asked]

    def describe(  # type: ignore[override]
        self, sources: list[Source], candidates: Candidates, rows: np.ndarray
    ) -> list[DescribedParts]:
        """The columns of each source, which stay where they are."""
        parts = self._described = self._parts(rows)
        everything = [np.arange(len(rows))]
        lists = [self._submit(tasks.hold, candidates.rows(part)) for part in parts]
        whole = self._submit(tasks.hold, candidates)
        out = []
        for number, source in enumerate(sources):
            if not source.describes:
                continue
            scorer, closed = source.scorer, source.scorer.has_held_out_columns
            own = DescribedParts(source.name, everything if closed else parts, [], [])
            for i, part in enumerate(own.rows):
                key = self._key("describe", self._name(scorer), rows[part], _ids(candidates.rows(part)))
                own.keys.append(key)
                asked = whole if closed else lists[i]
                own.columns.append(
                    self._held_out_task(tasks.describe, key, number, scorer, closed, asked, rows[part])
                )
            out.append(own)
            if closed and not scorer.is_quick:
                self._fit_on_all(number, scorer, after=own.columns[0])
        in_turn(lambda own: _wait(own.columns), out, lambda own: own.name)
        return out

    def rank(self, columns: list[Any], pairs: PairsToRank, sources: list[Source]) -> RankedPairs:
        if self.every_pair:
            return self._rank_every_pair(columns, pairs)
        key = self._key("rank", [own.keys for own in columns], pairs)
        parts, places = [own.columns for own in columns], [own.rows for own in columns]
        scorers = describers(sources)
        future = self._task(tasks.rank, key, parts, places, pairs, scorers)
        self._held_out.clear()
        found = future.result()
        for text in found.notes:
            note(text)
        return found.result  # type: ignore[no-any-return]

    def rank_points(self, columns: list[Any], lists: PointLists, described: Candidates) -> Ranker:
        key = self._key("rank-points", [own.keys for own in columns], lists)
        parts, places = [own.columns for own in columns], [own.rows for own in columns]
        found = self._task(tasks.rank_points, key, parts, places, lists, described).result()
        for text in found.notes:
            note(text)
        return found.result  # type: ignore[no-any-return]

    def _rank_every_pair(self, columns: list[DescribedParts], pairs: PairsToRank) -> RankedPairs:
        self._held_out.clear()
        # Workers train together: one that is still busy with something else would keep all others waiting.
        _wait(list(self._fitting.values()))
        key = self._key("rank-every-pair", [described.keys for described in columns], pairs)
        own = [described.columns for described in columns]
        return EveryPair(self.client, self._submit, self.job, own, pairs, self._described).ranked(key)

    def decided(self, name: str, inputs: Sequence[Any], make: Callable[[], T]) -> T:
        """By this process, which holds the scores; a result is kept like those of the tasks."""
        if self.job.folder is None:
            return make()
        return self.job.remembered(self._key(name, list(inputs)), make)

    def fit_on_all(self, sources: list[Source]) -> list[Source]:
        fitted: dict[int, Any] = {
            i: fitted_on_all(source.scorer, self.data, self.n_jobs)
            for i, source in enumerate(sources)
            if i not in self._fitting
        }
        fitted |= self.client.gather(self._fitting)
        return with_scorers(sources, [fitted[i] for i in range(len(sources))])

    def _parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """Positions in `rows` of each part."""
        fold = self.data.fold[rows]
        out = []
        for f in np.unique(fold):
            inside = np.flatnonzero(fold == f)
            out += [inside[at : at + PART_ROWS] for at in range(0, len(inside), PART_ROWS)]
        return out

    def _fit_without(self, number: int, scorer: LabelScorer, rows: np.ndarray) -> Any:
        """The fit of a source without the fold of some rows: a task, or for a quick one what has it made on
        the spot."""
        if scorer.is_quick:
            return QuickFit(f"held-out fit of {self._name(scorer)}")
        at = number, int(self.data.fold[rows[0]])
        if at not in self._held_out:
            blocks = scorer.blocks()
            if len(blocks) > 1:
                self._held_out[at] = self._fit_by_trees(scorer, at[1], blocks)
            else:
                key = self._key("fit", self._name(scorer), at[1])
                self._held_out[at] = self._task(tasks.fit_without_fold, key, scorer, at[1])
        return self._held_out[at]

    def _fit_on_all(self, number: int, scorer: LabelScorer, after: Future | None = None) -> None:
        if number in self._fitting:
            return
        blocks = scorer.blocks()
        # What comes after something is quick where that was, on the same worker.
        if len(blocks) > 1 and after is None:
            self._fitting[number] = self._fit_by_trees(scorer, None, blocks, priority=-1)
        else:
            key = self._key("fit-all", self._name(scorer))
            at = None if after is None else self._place(scorer)
            self._fitting[number] = self._task(tasks.fit_on_all, key, scorer, after, at=at, priority=-1)

    def _fit_by_trees(
        self, scorer: Any, fold: int | None, blocks: list[tuple[int, int]], *, priority: int = 0
    ) -> Future:
        """The fit without a fold, or on all rows, of blocks of trees: each a task, and one that joins them.

        Only the task that joins asks for the blocks, so that they are let go of when they are joined.
        """
        name, rest, parts = self._name(scorer), None, []
        if scorer.rest:  # first: it may fit trees of its own, and take the longest
            key = self._key("fit-rest", name, fold)
            rest = self._task(tasks.fit_rest, key, scorer, fold, priority=priority, passes=True)
        for block in blocks:
            key = self._key("fit-trees", name, fold, *block)
            parts.append(
                self._task(tasks.fit_trees, key, scorer, fold, *block, priority=priority, passes=True)
            )
        return self._submit(tasks.join_trees, scorer, parts, rest, priority=priority)

    def _held_out_task(
        self, task: Callable[..., Any], key: str, number: int, scorer: LabelScorer, closed: bool, *args: Any
    ) -> Future:
        """A task on some training rows, the last of `args`, with the fit without their fold, unless `closed`:
        the scorer needs none."""
        if closed:
            return self._task(task, key, scorer, *args, None, at=self._place(scorer))
        return self._task(task, key, scorer, *args, self._fit_without(number, scorer, args[-1]))

    def _task(self, task: Callable[..., Any], key: str, *args: Any, **how: Any) -> Future:
        """A task on the training set, whose result may be kept under a key; as `_submit`."""
        return self._submit(task, self.job, self._data, key, *args, **how)

    def _submit(
        self,
        task: Callable[..., Any],
        *args: Any,
        at: int | None = None,
        priority: int = 0,
        passes: bool = False,
    ) -> Future:
        """A task; those of the same number `at` would rather run on the same worker.

        The result of one that `passes` is held for those that take it only.
        """
        where: dict[str, Any] = {}
        if at is not None:
            workers = sorted(self.client.nthreads())
            if workers:
                where = {"workers": [workers[at % len(workers)]], "allow_other_workers": True}
        if task in _FITS:
            # One group, by what stands before the dash: the scheduler holds tasks of a large group back, and
            # a worker that waits for one of them begins with a less urgent one of another group.
            where["key"] = f"fit-{task.__name__}-{uuid4()}"
        with dask.config.set(QUIET):
            future = self.client.submit(task, *args, pure=False, priority=priority, **where)
        if not passes:
            self._futures.append(future)
        return future

    def _place(self, scorer: Any) -> int:
        """The number of a scorer whose tasks share what one worker has built."""
        return int(digest(self._name(scorer)), 16) % 1009

    def _name(self, scorer: LabelScorer) -> str:
        """The class of a scorer, and a digest of its parameters."""
        return f"{type(scorer).__name__}-{digest(scorer.get_params())[:12]}"

    def _key(self, stage: str, *inputs: Any) -> str:
        """A name for a result, by all that it depends on."""
        named = [str(v) for v in inputs[:1] if isinstance(v, str)]
        return "-".join([stage, *named, digest([self.job.token, *inputs])[:16]])


def _wait(futures: list[Future]) -> None:
    """Wait for some tasks; what one of them raised is raised here."""
    from distributed import wait

    wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()


def _ids(candidates: Candidates) -> list[np.ndarray]:
    return [candidates.indptr, candidates.labels]

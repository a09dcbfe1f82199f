"""LambdaRank on every candidate pair of the training rows, by `lightgbm.DaskLGBMRanker`.

The table of the pairs stays with the workers, in parts of whole rows, so that no list is ever split.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from threading import Barrier, BrokenBarrierError, Event, Thread
from time import monotonic
from traceback import clear_frames
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import lightgbm as lgb
import numpy as np
from dask.sizeof import sizeof
from lightgbm.basic import LightGBMError
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.extra import require_extra
from metarank._util.progress import note, report
from metarank.distributed.bytes import bytes_of
from metarank.distributed.job import Job
from metarank.distributed.tasks import in_place
from metarank.model.stages import Columns, PairsToRank, RankedPairs, assembled, importances_of
from metarank.ranker import BoostedRanker, RankingData, make_ranker
from metarank.ranker.boosted_ranker import MAX_LIST, NOTHING_TO_ORDER, gains_of_labels, shorten_lists
from metarank.ranker.lists import informative_lists, pairs_of_lists
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

if TYPE_CHECKING:
    from distributed import Client, Future

logger: logging.Logger = logging.getLogger("metarank.distributed")

# A fit is begun so often where workers are lost, and LightGBM's errors are these.
_ATTEMPTS = 3
_NETWORK = re.compile("socket|connect|bind", re.IGNORECASE)
# Seconds that a task of LightGBM may be without a worker.
_PATIENCE = 10.0
# Lines of a model text that tell of the cluster it was made on, and nothing of the model.
_OF_CLUSTER = re.compile(
    r"^\[(machines|num_machines|local_listen_port|time_out|num_threads): .*\]\n", re.MULTILINE
)


def check_every_pair(ranker: Any) -> None:
    """Whether a `ranker` can learn from every pair, on a cluster.

    Raises
    ------
    ValueError
        If it is no LambdaRank by LightGBM, one that stops early, or has a parameter that is out of range.
    ImportError
        If what `lightgbm.dask` needs is missing; names the extra.
    """
    if not _is_lambdarank(ranker):
        raise ValueError(
            "ranker_pairs='all' needs ranker='lambdarank', or a BoostedRanker(objective='lambdarank') that "
            f"does not stop early, got {ranker!r:.200}"
        )
    if isinstance(ranker, BoostedRanker):
        ranker._check_params()
    require_extra("dask", "pandas", "dask.array", "dask.dataframe", "lightgbm.dask")


def _is_lambdarank(ranker: Any) -> bool:
    if isinstance(ranker, str):
        return ranker == "lambdarank"
    return (
        isinstance(ranker, BoostedRanker) and ranker.objective == "lambdarank" and not ranker.early_stopping
    )


@dataclass(frozen=True, eq=False)
class PartTable:
    """The lists of some training rows on their worker, and which columns enter as they are."""

    data: RankingData
    raw: list[str] | None


sizeof.register(PartTable)(bytes_of)


class EveryPair:
    """The ranker's fits on parts of the training rows that stay on their workers.

    Parameters
    ----------
    client : distributed.Client
    submit : callable
        `DaskStages` submits a task by it.
    job : Job
    columns : list of lists of futures
        By scorer: its columns for each part, or only one future, for all rows.
    pairs : PairsToRank
    parts : list of int arrays
        Rows of `pairs.candidates` by part.
    """

    def __init__(
        self,
        client: Client,
        submit: Callable[..., Future],
        job: Job,
        columns: list[list[Future]],
        pairs: PairsToRank,
        parts: list[np.ndarray],
    ) -> None:
        self.client: Any = client
        self.submit: Callable[..., Any] = submit
        self.job: Job = job
        self.pairs: PairsToRank = pairs
        ranker = make_ranker(pairs.ranker) if isinstance(pairs.ranker, str) else clone(pairs.ranker)
        assert isinstance(ranker, BoostedRanker)
        self.ranker = ranker
        n = pairs.candidates.n_rows
        self.weight: NDArray[np.float64] = (
            np.ones(n) if pairs.weight is None else np.asarray(pairs.weight, np.float64)
        )
        self.told: NDArray[np.bool_] = informative_lists(pairs.gains, pairs.candidates.indptr, self.weight)
        sizes = np.diff(pairs.candidates.indptr)
        self.gain_of_label: np.ndarray = gains_of_labels(pairs.gains[np.repeat(self.told, sizes)])
        self.longest: int = int(min(sizes[self.told].max(initial=1), MAX_LIST))
        numbers = [i for i, rows in enumerate(parts) if sizes[rows].any()]
        self.parts: list[np.ndarray] = [parts[i] for i in numbers]
        self.tables: list[Any] = [self._table(columns, i, parts[i]) for i in numbers]

    def ranked(self, key: str) -> RankedPairs:
        """The ranker, fitted on all lists, and each pair's score from a fit without its fold.

        Parameters
        ----------
        key : str
            What fits are kept under.

        Raises
        ------
        ValueError
            If no list holds two different gains.
        """
        if not self.told.any():
            raise ValueError(NOTHING_TO_ORDER)
        names, raw = self.submit(_names_of, self.tables[0]).result()
        self.n_columns: int = len(names)
        folds = np.unique(self.pairs.fold)
        scores, places = [], []
        for i, fold in enumerate(folds):
            report(f"fold {i + 1} of {len(folds)}", i / (len(folds) + 1))
            learns = self._learning(int(fold))
            trees = self._trees(f"{key}-fold-{fold}", learns, int(fold)) if learns else None
            for rows, table in zip(self.parts, self.tables):
                own = rows[self.pairs.fold[rows] == fold]
                if len(own):
                    places.append(own)
                    scores.append(self.submit(scores_of_fold, self.job, table, trees, int(fold)))
        text = self._text(f"{key}-all", self._learning(None), None)
        found = [{"score": values} for values in self.client.gather(scores)]
        ranker = clone(self.ranker)
        ranker.model_text_, ranker.arrays_, ranker.names_ = text, BoosterArrays.from_text(text), names
        note(f"ranker: lambdarank on all {self.pairs.candidates.n_pairs} pairs of {len(self.told)} rows")
        # Pairs of the first part stand for all.
        importances = self.submit(_importances_of, ranker, self.tables[0], self.pairs.seed).result()
        held_out = in_place(found, places, self.pairs.candidates)["score"]
        return RankedPairs(ranker, held_out, names, raw, importances)

    def _table(self, columns: list[list[Future]], number: int, rows: np.ndarray) -> Future:
        """The table of a part; parts go round among the workers."""
        candidates = self.pairs.candidates
        own = [
            self.submit(columns_of_rows, futures[0], candidates.indptr, rows)
            if len(futures) == 1
            else futures[number]
            for futures in columns
        ]
        pairs = replace(
            self.pairs,
            candidates=candidates.rows(rows),
            gains=self.pairs.gains[pairs_of_lists(candidates.indptr, rows)],
            weight=self.weight[rows],
            fold=self.pairs.fold[rows],
        )
        return self.submit(table_of_part, self.job, own, pairs, at=number)

    def _learning(self, without: int | None) -> list[Future]:
        """The tables with a list to learn from outside a fold."""
        learns = self.told if without is None else self.told & (self.pairs.fold != without)
        return [table for rows, table in zip(self.parts, self.tables) if learns[rows].any()]

    def _trees(self, key: str, tables: list[Future], without: int | None) -> BoosterArrays:
        return BoosterArrays.from_text(self._text(key, tables, without))

    def _text(self, key: str, tables: list[Future], without: int | None) -> str:
        """The model text of a fit on the lists outside a fold."""
        made = self.job.remembered(key, lambda: {"text": self._boosted(tables, without)})
        return str(made["text"])

    def _boosted(self, tables: list[Future], without: int | None) -> str:
        """A fit, begun again where a worker was lost."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._boosted_once(tables, without)
            except (LightGBMError, CancelledError) as error:
                self.client.run(_leave_network, on_error="ignore")
                of_network = isinstance(error, CancelledError) or _NETWORK.search(str(error))
                if not of_network or attempt + 1 == _ATTEMPTS:
                    raise
                logger.warning("the fit of the ranker is begun again: %s", error)
        raise AssertionError  # the last attempt returns or raises

    def _boosted_once(self, tables: list[Future], without: int | None) -> str:
        import dask.array as da
        from dask.delayed import delayed
        from lightgbm import DaskLGBMRanker

        params = self.ranker.list_params(self.pairs.seed, 1, self.gain_of_label, self.longest, 0)
        for name in ("num_threads", "eval_at"):  # each worker has its own threads; nothing is evaluated
            params.pop(name)
        args = self.gain_of_label, without
        lists = [self.client.submit(lists_to_learn, table, *args, pure=False) for table in tables]

        def joined(item: int, *shape: float) -> Any:
            parts = [da.from_delayed(delayed(f)[item], (np.nan, *shape), float) for f in lists]
            return da.concatenate(parts)

        ranker = DaskLGBMRanker(client=self.client, n_estimators=self.ranker.n_rounds, **params)
        try:
            with _quiet(), _giving_up(self.client):
                ranker.fit(joined(0, self.n_columns), joined(1), sample_weight=joined(2), group=joined(3))
        except BaseException as error:
            # Its frames hold futures: as long as they live, so do their tasks.
            clear_frames(error.__traceback__)
            raise
        return _OF_CLUSTER.sub("", ranker.booster_.model_to_string())


def columns_of_rows(columns: Columns, indptr: np.ndarray, rows: np.ndarray) -> Columns:
    """The columns of the pairs of some rows, from those of all."""
    pairs = pairs_of_lists(indptr, rows)
    return {name: values[pairs] for name, values in columns.items()}


def table_of_part(job: Job, columns: list[Columns], pairs: PairsToRank) -> PartTable:
    """The lists of some rows, as `metarank.model.stages.ranked` would make them."""
    with job.at_work(None) as (_, n_jobs):
        table, raw, _ = assembled(columns, pairs, pairs.candidates, n_jobs)
    table = FeatureTable(np.ascontiguousarray(table.values, np.float32), table.names, table.candidates)
    data = RankingData(table, pairs.gains, pairs.weight, pairs.fold, pairs.seed)  # type: ignore[arg-type]
    return PartTable(data, raw)


def lists_to_learn(
    part: PartTable, gain_of_label: np.ndarray, without: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The lists of a part outside a fold that teach something.

    Returns
    -------
    values : float32 array (m, F)
    label : int64 array (m,)
        The place of each pair's gain in `gain_of_label`.
    weight : float64 array (m,)
    sizes : int64 array
        Pairs of each list.
    """
    kept = part.data.informative if without is None else part.data.informative & (part.data.fold != without)
    lists = shorten_lists(part.data.lists(kept), MAX_LIST)
    label = np.searchsorted(gain_of_label, lists.gains)
    return lists.table.values, label, np.repeat(lists.weight, lists.sizes), lists.sizes


def scores_of_fold(job: Job, part: PartTable, trees: BoosterArrays | None, fold: int) -> np.ndarray:
    """Scores of the pairs of a part within a fold, float64; 0 where there was nothing to learn from."""
    lists = part.data.lists(part.data.fold == fold)
    if trees is None:
        return np.zeros(len(lists.gains))
    with job.at_work(None) as (_, n_jobs):
        return trees.predict(lists.table.values, n_jobs=n_jobs)


def _names_of(part: PartTable) -> tuple[list[str], list[str] | None]:
    return part.data.table.names, part.raw


def _importances_of(ranker: BoostedRanker, part: PartTable, seed: int) -> np.ndarray:
    return importances_of(ranker, part.data.table, seed)


async def _leave_network(dask_worker: Any) -> None:
    """After a failure LightGBM still believes, thread by thread, that it is one of several machines."""
    n_threads = dask_worker.state.nthreads
    together = Barrier(n_threads)  # so that each thread has its turn

    def leave() -> None:
        lgb.Booster.free_network(SimpleNamespace())  # type: ignore[arg-type]  # it is about no booster
        with suppress(BrokenBarrierError):
            together.wait(5)

    executor = dask_worker.executors["default"]
    await asyncio.gather(*[asyncio.wrap_future(executor.submit(leave)) for _ in range(n_threads)])


@contextmanager
def _giving_up(client: Client) -> Iterator[None]:
    """Cancel tasks of LightGBM that cannot run: each is bound to its worker, lost or not."""
    over = Event()

    def watch() -> None:
        idle_since: dict[Any, float] = {}
        while not over.wait(_PATIENCE / 10):
            at_work = {key for keys in client.processing().values() for key in keys}
            waiting = [
                key
                for key, state in list(client.futures.items())
                if str(key).startswith("_train_part-") and state.status == "pending" and key not in at_work
            ]
            idle_since = {key: idle_since.get(key, monotonic()) for key in waiting}
            if any(monotonic() - since > _PATIENCE for since in idle_since.values()):
                client.cancel([Future(key, client) for key in waiting])
                return

    from distributed import Future

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def _quiet() -> Iterator[None]:
    """LightGBM says on standard output that it looks for ports, and warns of threads that nobody gave."""
    with redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")
        yield

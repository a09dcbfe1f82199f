"""`DaskMetaRanker`: `MetaRanker` on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Signature, signature
from typing import Any

import dask
from distributed import Client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from metarank.distributed import tasks
from metarank.distributed.cluster_stages import ClusterStages
from metarank.distributed.partitions import Partitions
from metarank.distributed.workers import QUIET, check_client
from metarank.model.answering.answer import Answering, Request
from metarank.model.estimator import MetaRanker
from metarank.model.fitted import Scored
from metarank.types.ranking import Ranking
from metarank.types.view import TrainingSet

# Rows to a task of an answer.
PART_ROWS = 4096


class DaskMetaRanker(MetaRanker):
    """`MetaRanker` whose stages run on a Dask cluster. The model and its answers are the same, to the byte.

    There is a task for each fit of a source without a fold, each part of the training rows that it describes,
    the ranker, and each fit on all rows; of an answer, for each 4,096 rows. If a worker is lost, the tasks
    whose results it held run again. Every worker in use holds the training set, or the model.

    All parameters but these are those of `MetaRanker`, and so are the attributes.

    Parameters
    ----------
    client : distributed.Client or None
        None is the current client, the last one created in this process.
    n_jobs : int or None
        Threads of a task. None and -1 give one thread to tasks that run in parallel, and all threads of the
        worker to a task that runs alone, such as the ranker. This process uses all cores.

    Examples
    --------
    >>> from distributed import Client
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(200, n_features=10, n_labels=4, seed=0)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = DaskMetaRanker(client, effort="low", n_jobs=1).fit(train).to_local()
    >>> local = MetaRanker(effort="low", n_jobs=1).fit(train)
    >>> bool((model.decision_function(train) == local.decision_function(train)).all())
    True
    """

    def __init__(self, client: Client | None = None, *args: Any, **params: Any) -> None:
        super().__init__(*args, **params)
        self.client = client

    def __sklearn_clone__(self) -> DaskMetaRanker:
        """A clone works for the same client, which cannot be copied."""
        local = clone(MetaRanker(**self._shared_params()))
        return type(self)(client=self.client, **local.get_params(deep=False))

    def _shared_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name != "client"}

    def _check_parameters(self) -> int:
        n_jobs = super()._check_parameters()
        check_client(self.client)
        return n_jobs

    @contextmanager
    def _at_work(self, data: TrainingSet, n_jobs: int) -> Iterator[ClusterStages]:
        stages = ClusterStages(check_client(self.client), data, n_jobs, self.n_jobs)
        try:
            yield stages
        finally:
            stages.close()

    def fit(self, X: Any = None, Y: Any = None, **options: Any) -> DaskMetaRanker:
        """As `MetaRanker.fit`. X may also be `Partitions` (see `read`), which workers read and this process
        joins, since a fit needs all rows. `candidates` and `pair_features` are for `MetaRanker`.
        """
        for name in ("candidates", "pair_features"):
            if options.get(name) is not None:
                raise ValueError(
                    f"{name} must be None in DaskMetaRanker.fit, whose workers read only features: fit a "
                    "MetaRanker"
                )
        super().fit(self._read(X), Y, **options)
        return self

    def rank_points(self, X: Any, k: int = 10, **options: Any) -> Ranking:
        """As `MetaRanker.rank_points`, in this process, which sees all rows; X may also be `Partitions`."""
        return self.to_local().rank_points(self._read(X), k, **options)

    def _read(self, X: Any) -> Any:
        return X.collect(check_client(self.client)) if isinstance(X, Partitions) else X

    def _score_rows(self, X: Any, *args: Any, **limits: Any) -> list[Scored]:
        return super()._score_rows(self._read(X), *args, **limits)

    def _score_request(self, answering: Answering, rows: Request, k: int) -> list[Scored]:
        """Part by part on the cluster."""
        client = check_client(self.client)
        with dask.config.set(QUIET):
            sent = client.submit(tasks.hold, answering, pure=False)  # no loss of workers loses it
            futures = [
                client.submit(tasks.answer, sent, part, k, pure=False) for part in rows.parts(PART_ROWS)
            ]
            return [scored for parts in client.gather(futures) for scored in parts]

    def to_local(self) -> MetaRanker:
        """The fitted model as an ordinary `MetaRanker` without a cluster. Arrays are shared.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(self, "ranker_")
        model = MetaRanker(**self._shared_params())
        model.fitted_, model._given_ = self.fitted_, self._given_
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save `to_local()`: `metarank.load` returns a `MetaRanker`."""
        self.to_local().save(path)


def _signature() -> Signature:
    """Of the constructor: the client, then the parameters of `MetaRanker`, as `help` shows them."""
    ours, shared = signature(DaskMetaRanker.__init__).parameters, signature(MetaRanker.__init__).parameters
    return Signature([ours["self"], ours["client"], *list(shared.values())[1:]])


DaskMetaRanker.__init__.__signature__ = _signature()  # type: ignore[attr-defined]

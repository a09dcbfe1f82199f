"""`DaskMetaRanker`: `MetaRanker` on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from metarank._util.parameters import require_seed
from metarank.distributed.dask_stages import DaskStages
from metarank.distributed.every_pair import check_every_pair
from metarank.distributed.partitions import Partitions
from metarank.distributed.prediction import over_rows, rank_points
from metarank.distributed.workers import check_client, check_folder, shared_folder
from metarank.model.estimator import MetaRanker
from metarank.model.parameters import FitOptions
from metarank.types.arrays import stacked
from metarank.types.ranking import Ranking
from metarank.types.view import TrainingSet

if TYPE_CHECKING:
    from distributed import Client

# Parameters that a local model has not; the others are those of `MetaRanker.__init__`.
_OWN = ("client", "resume", "ranker_pairs")


class DaskMetaRanker(MetaRanker):
    """`MetaRanker` whose sources and ranker are fitted on a Dask cluster. The model is the same, to the byte.

    There is a task for each fit of a scorer without a fold, each part of the training rows that it describes,
    the ranker, and each fit on all rows. Fits of tree ensembles are divided: tasks grow blocks of trees (a
    label tree, five instance trees, fifty extra-trees), one task learns what does not depend on them, such as
    the weight of tail classifiers, and one task combines them. If a worker is lost, the tasks whose results
    it held run again. Every worker in use holds the training set.

    Parameters
    ----------
    client : distributed.Client or None
        None is the current client, the latest that was created in this process.
    shortlister, features, label_text, ranker, threshold, n_folds, random_state, effort, shortlist_size, \
propensity_weight, memory_budget, label_separator, verbose, language, tune, labelwise : as for `MetaRanker`
    n_jobs : int or None
        Threads of a task. None and -1 give one thread to a task that runs beside others, and all threads of
        the worker to one that runs alone, such as the ranker. This process itself uses all cores.
    resume : path or None
        A folder that client and workers share. Results are kept there, so that a run that was interrupted,
        even by the death of the client, continues when it is started again. Results are found by their inputs
        (data, parameters, version), so a folder may serve several runs. It may be deleted afterwards. A
        warning at the end of the fit tells what could not be written.
    ranker_pairs : "sample" or "all"
        The training pairs of the ranker. "sample" is the bounded sample of a local fit, on one worker. "all"
        is every candidate pair of every training row, by `lightgbm.DaskLGBMRanker` on all workers together;
        it needs ``ranker="lambdarank"`` (or a `BoostedRanker` of that objective). Bins are then computed by
        part, so that scores differ from those of a local fit and from those with another number of workers:
        compare them by metrics. It costs one fit per fold and one more, with all threads of each worker. This
        process holds the candidates of all rows, with a gain and a score per pair. Workers connect to each
        other on ports that LightGBM chooses, without encryption, and should be otherwise idle. If one is
        lost, the current fit starts again, up to twice. `memory_budget` does not count these pairs.

    Attributes
    ----------
    As of `MetaRanker`.

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

    def __init__(
        self,
        client: Client | None = None,
        *args: Any,
        resume: Any = None,
        ranker_pairs: str = "sample",
        **params: Any,
    ) -> None:
        super().__init__(*args, **params)
        self.client = client
        self.resume = resume
        self.ranker_pairs = ranker_pairs

    def __sklearn_clone__(self) -> DaskMetaRanker:
        """A clone works for the same client, which cannot be copied."""
        local = clone(MetaRanker(**self._shared_params()))
        own = {name: getattr(self, name) for name in _OWN}
        return type(self)(**own, **local.get_params(deep=False))

    def _shared_params(self) -> dict[str, Any]:
        return {k: v for k, v in self.get_params(deep=False).items() if k not in _OWN}

    def _check_parameters(self, *, trains: bool = True) -> int:
        n_jobs = super()._check_parameters(trains=trains)
        check_client(self.client)
        if self.resume is not None and not isinstance(self.resume, (str, os.PathLike)):
            raise TypeError(f"resume must be a folder or None, got {self.resume!r}")
        if self.resume is not None:
            check_folder(self.resume, "resume")
            require_seed(self.random_state, "where results are kept to resume from")
        if self.ranker_pairs not in ("sample", "all"):
            raise ValueError(f"ranker_pairs must be 'sample' or 'all', got {self.ranker_pairs!r}")
        if self.ranker_pairs == "all":
            check_every_pair(self.ranker)
        return n_jobs

    def _options(self, seed: int, n_jobs: int) -> FitOptions:
        return replace(super()._options(seed, n_jobs), every_pair=self.ranker_pairs == "all")

    @contextmanager
    def _at_work(self, data: TrainingSet, n_jobs: int) -> Iterator[DaskStages]:
        client = check_client(self.client)
        folder = None if self.resume is None else shared_folder(self.resume, client)
        every_pair = self.ranker_pairs == "all"
        stages = DaskStages(
            client, data, n_jobs, task_n_jobs=self.n_jobs, folder=folder, every_pair=every_pair
        )
        missed: list[str] = []
        try:
            yield stages
        finally:
            missed = stages.close()
        if missed:
            warnings.warn(
                f"{len(missed)} results were not kept in {os.fspath(self.resume)}: {missed[0]}", stacklevel=5
            )

    def fit(self, X: Any, Y: Any = None, **options: Any) -> DaskMetaRanker:
        """As `MetaRanker.fit`. X may also be `Partitions` (see `read`), which workers read and this process
        joins, since a fit needs all rows. `candidates` and `pair_features` are for `MetaRanker`.
        """
        for name in ("candidates", "pair_features"):
            if options.get(name) is not None:
                raise ValueError(
                    f"{name} must be None in DaskMetaRanker.fit, whose workers read features alone: fit a "
                    "MetaRanker"
                )
        if isinstance(X, Partitions):
            X = X.collect(check_client(self.client))
        if options.get("negatives") is not None and self.ranker_pairs == "all":
            raise ValueError("negatives must be left out where ranker_pairs='all'")
        super().fit(X, Y, **options)
        return self

    def rank(self, X: Any, k: int = 10, candidates: Any = None, **options: Any) -> Ranking:
        """As `MetaRanker.rank`, on the cluster; X may also be `Partitions`.

        `metarank.distributed.rank` writes to files.
        """
        found = self._over_rows("rank", X, (k,), {"candidates": candidates, **options})
        return Ranking.concatenate(found)

    def rank_points(self, X: Any, k: int = 10, **options: Any) -> Ranking:
        """As `MetaRanker.rank_points`, on the cluster; X may also be `Partitions`.

        `metarank.distributed.rank_points` writes to files.
        """
        found = rank_points(self.to_local(), X, k, client=self.client, **options)
        assert isinstance(found, Ranking)
        return found

    def decision_function(self, X: Any, **options: Any) -> np.ndarray:
        """As `MetaRanker.decision_function`, on the cluster."""
        return np.concatenate(self._over_rows("decision_function", X, (), options))

    def predict_proba(self, X: Any, **options: Any) -> np.ndarray | sp.csr_matrix:
        """As `MetaRanker.predict_proba`, on the cluster."""
        return stacked(self._over_rows("predict_proba", X, (), options))

    def predict(self, X: Any, optimize: str | None = None, **options: Any) -> Any:
        """As `MetaRanker.predict`, on the cluster."""
        parts = self._over_rows("predict", X, (optimize,), options)
        if options.get("return_names"):
            return [names for part in parts for names in part]
        return sp.vstack(parts, format="csr")

    def _over_rows(self, method: str, X: Any, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
        return over_rows(self.to_local(), method, X, self.client, args, options)

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
    """Of the constructor: the parameters of both, by which scikit-learn and `help` know them."""
    own, shared = signature(DaskMetaRanker.__init__).parameters, signature(MetaRanker.__init__).parameters
    client, *others = (own[name] for name in _OWN)
    return Signature([own["self"], client, *list(shared.values())[1:], *others])


DaskMetaRanker.__init__.__signature__ = _signature()  # type: ignore[attr-defined]

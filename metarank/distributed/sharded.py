"""`ShardedRanker`: a model over the workers of a cluster, none of which holds all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from sklearn.utils.validation import check_is_fitted

from metarank.distributed.bytes import bytes_of
from metarank.distributed.partitions import Part
from metarank.distributed.prediction import parts_of
from metarank.distributed.shards import (
    Merged,
    Shard,
    joined_proposals,
    merged,
    resolved,
    split,
)
from metarank.distributed.tasks import hold
from metarank.distributed.workers import QUIET, check_client, task_threads
from metarank.model.answer import Answering, Described
from metarank.model.cascade import Lists
from metarank.model.estimator import MetaRanker
from metarank.model.fitted import blank_rows
from metarank.model.request import words_of_texts
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.voting import Neighbors, weighed
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.ranking import Ranking, check_k
from metarank.types.restrict import LabelLimits
from metarank.types.view import Features

if TYPE_CHECKING:
    from distributed import Client


class Head:
    """What is left of a model without the shards: the door, who counts votes, ranker and calibration."""

    def __init__(self, model: MetaRanker) -> None:
        sources = model.sources_
        self.scorers: list[LabelScorer] = [source.scorer for source in sources]
        self.shortlisters: list[int] = [i for i, source in enumerate(sources) if source.proposes]
        self.described: list[int] = [i for i, source in enumerate(sources) if source.describes]
        self.votes: dict[int, Any] = {
            i: scorer.without_rows()
            for i, scorer in enumerate(self.scorers)
            if scorer.rows_searched() is not None
        }
        self.reads_word_order: bool = model.fitted_.reads_word_order
        self.is_dense: bool = model.encoder_.layout == "dense"
        whole = model.answering()
        self.asked: Answering = replace(whole, model=replace(whole.model, sources=[]))
        self.asked.model.unknown = whole.model.unknown  # which only the sources tell

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}


class ShardedRanker:
    """A fitted model in shards, for label sets and training rows too large for one worker.

    Distances to a label's points and centroid, its frequency, name and one-vs-all weights are cut by ranges
    of labels, the search for neighbours by ranges of training rows, with an exact merge. What is not
    separable (label trees, instance trees, kernel machines, learned embeddings, approximate indexes) is
    whole, each on one worker. Answers are those of the model, to the byte.

    Parameters
    ----------
    model : fitted MetaRanker
    n_shards : int or None
        None: one a worker.
    client : distributed.Client or None
        None: the client in use.

    Attributes
    ----------
    shard_bytes : list of int
        Bytes of the arrays of each shard.
    head_bytes : int
        What every worker may hold beside a shard: ranker, calibration, propensities, labels of training rows.

    Examples
    --------
    >>> from distributed import Client
    >>> from metarank import data
    >>> train = data.make_multilabel(200, n_features=10, n_labels=6, seed=0)
    >>> model = MetaRanker(effort="low", n_jobs=1).fit(train)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     found = ShardedRanker(model, client=client).rank(train.X, k=2)
    >>> bool((found.scores == model.rank(train.X, k=2).scores).all())
    True
    """

    def __init__(
        self, model: MetaRanker, n_shards: int | None = None, *, client: Client | None = None
    ) -> None:
        if not isinstance(model, MetaRanker):
            raise TypeError(f"model must be a MetaRanker, got {type(model).__name__}")
        check_is_fitted(model, "ranker_")
        self.client: Client = check_client(client)
        # Asked of the scheduler now: what a client remembers of it may be of before the first worker came.
        workers = sorted(self.client.nthreads())
        if not workers:
            raise ValueError("client must be of a cluster with at least one worker, got none")
        count = len(workers) if n_shards is None else n_shards
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"n_shards must be a positive integer or None, got {n_shards!r}")
        if model.fitted_.given_sources or model.fitted_.given_features:
            raise ValueError(
                "model must be fitted without candidates and pair_features to be cut into shards: "
                "metarank.distributed.rank takes it whole"
            )
        self.model = model
        head = Head(model)
        self._head, shards = head, split(head.scorers, int(count), model.n_labels_)
        self.shard_bytes: list[int] = [bytes_of(shard) for shard in shards]
        self.head_bytes: int = bytes_of(head.__getstate__())
        self._where = [[workers[i % len(workers)]] for i in range(len(shards))]
        with dask.config.set(QUIET):
            self._head_future = self.client.submit(hold, head, pure=False)
            self._shards = [self._at(i, hold, shard) for i, shard in enumerate(shards)]

    def rank(
        self,
        X: Any,
        k: int = 10,
        *,
        exclude: Any = None,
        allowed: Any = None,
        propensity_weight: float | None = None,
    ) -> Ranking:
        """As `MetaRanker.rank`; X may also be `Partitions`."""
        k = check_k(k)
        weight = self.model.fitted_.checked_weight(propensity_weight)
        with dask.config.set(QUIET):
            return Ranking.concatenate(self.client.gather(self._answers(X, k, exclude, allowed, weight)))

    def _answers(self, X: Any, k: int, exclude: Any, allowed: Any, weight: float) -> list[Any]:
        """The tasks of the rankings of each part of the rows."""
        head, submit = self._head_future, self.client.submit
        answers = []
        for rows, _, options in parts_of(self.model, X, {"exclude": exclude, "allowed": allowed}):
            features = submit(_encoded, head, rows, pure=False)
            given = submit(_in_order, head, rows, pure=False)
            neighbors = {i: self._search(i, features) for i in self._head.votes}
            proposals = [
                self._at(s, _proposed, shard, head, features, given) for s, shard in enumerate(self._shards)
            ]
            lists = submit(_lists, head, features, neighbors, proposals, options, k, pure=False)
            columns = [
                self._at(s, _described, shard, head, features, given, lists)
                for s, shard in enumerate(self._shards)
            ]
            ranked = (head, features, neighbors, lists, columns, k, weight)
            answers.append(submit(_ranked, *ranked, pure=False))
        return answers

    def _search(self, i: int, features: Any) -> Any:
        """The neighbours that scorer i finds: by each shard, merged, and where need be looked at again."""
        head, submit = self._head_future, self.client.submit
        found = [self._at(s, _searched, shard, head, features, i) for s, shard in enumerate(self._shards)]
        cuts = [int(k) for k in self._head.votes[i].ks]
        together = submit(merged, found, cuts, pure=False)
        vectors = [self._at(s, _vectors, shard, together, i) for s, shard in enumerate(self._shards)]
        return submit(_resolved, head, together, features, vectors, pure=False)

    def _at(self, number: int, task: Any, *args: Any) -> Any:
        """A task where a shard is, or elsewhere once that worker is gone."""
        return self.client.submit(
            task, *args, workers=self._where[number], allow_other_workers=True, pure=False
        )


def _encoded(head: Head, rows: Any) -> Features:
    return head.asked.model.encoder.encode(rows.load() if isinstance(rows, Part) else rows)


def _in_order(head: Head, rows: Any) -> Given | None:
    """The words of the rows in their order, if a source looks at them."""
    if not head.reads_word_order:
        return None
    model = head.asked.model
    words = words_of_texts(model, rows.load() if isinstance(rows, Part) else rows)
    return Given(len(words), model.n_labels, words=words)


def _searched(shard: Shard, head: Head, X: Features, i: int) -> tuple[np.ndarray, np.ndarray]:
    return shard.rows[i].nearest(X, max(head.votes[i].ks), task_threads(head.asked.n_jobs))


def _vectors(shard: Shard, found: Merged, i: int) -> tuple[np.ndarray, Features]:
    return shard.rows[i].vectors(found.offered)


def _resolved(
    head: Head, found: Merged, X: Features, vectors: list[tuple[np.ndarray, Features]]
) -> Neighbors:
    rows, distances = resolved(found, X, vectors, task_threads(head.asked.n_jobs))
    return weighed(rows, distances, is_dense=head.is_dense)


def _proposed(shard: Shard, head: Head, X: Features, given: Given | None) -> dict[int, Candidates]:
    n_jobs = task_threads(head.asked.n_jobs)
    return shard.propose(X, head.shortlisters, head.asked.shortlist_size, n_jobs, given)


def _lists(
    head: Head,
    X: Features,
    neighbors: dict[int, Neighbors],
    proposals: list[dict[int, Candidates]],
    options: dict[str, Any],
    k: int,
) -> Lists:
    """As `MetaRanker` has them: the union of all proposals, within the limits of the request."""
    asked, model, parts = head.asked, head.asked.model, []
    n_rows, n_labels = X.shape[0], model.n_labels
    for i in head.shortlisters:
        if i in head.votes:
            n_jobs = task_threads(asked.n_jobs)
            parts.append(
                head.votes[i].shortlist(X, asked.shortlist_size, n_jobs=n_jobs, neighbors=neighbors[i])
            )
            continue
        own = [found[i] for found in proposals if i in found]
        whole = len(own) == 1 and own[0].n_labels == n_labels
        parts.append(own[0] if whole else joined_proposals(own, asked.shortlist_size, n_labels))
    limits = LabelLimits.checked(options["exclude"], options["allowed"], n_rows, model.label_table)
    found = Candidates.united(parts) if parts else Candidates.all_labels(n_rows, n_labels)
    rows = slice(0, n_rows)
    found = limits.cut(found.without_labels(model.removed), rows)
    if not parts:
        return Lists(found)
    least = max(min(k, n_labels), asked.shortlist_size)
    return asked.lists(asked.completed(found, limits, rows, least, blank_rows(X)), parts, limits)


def _described(
    shard: Shard, head: Head, X: Features, given: Given | None, lists: Lists
) -> tuple[np.ndarray, dict[int, dict[str, np.ndarray]]]:
    """Where the pairs of the shard's labels stand, and columns."""
    candidates = lists.described
    own = shard.describe(X, candidates, sorted(set(head.described)), task_threads(head.asked.n_jobs), given)
    return np.flatnonzero(shard.inside(candidates)), own


def _ranked(
    head: Head,
    X: Features,
    neighbors: dict[int, Neighbors],
    lists: Lists,
    columns: list[tuple[np.ndarray, dict[int, dict[str, np.ndarray]]]],
    k: int,
    weight: float,
) -> Ranking:
    asked, candidates, n_jobs = head.asked, lists.described, task_threads(head.asked.n_jobs)
    by_scorer = []
    for i in head.described:
        if i in head.votes:
            by_scorer.append(head.votes[i].score(X, candidates, n_jobs=n_jobs, neighbors=neighbors[i]))
            continue
        own = [(at, found[i]) for at, found in columns if i in found]
        joined: dict[str, np.ndarray] = {}
        for at, found in own:
            for name, values in found.items():
                if len(values) == candidates.n_pairs and len(own) == 1:
                    joined[name] = values
                else:
                    joined.setdefault(name, np.zeros(candidates.n_pairs, values.dtype))[at] = values
        by_scorer.append(joined)
    table = asked.assembled(by_scorer, candidates)
    scored = asked.scored_of(Described(lists, table, blank_rows(X)), weight=weight)
    return Ranking.from_scores(
        scored.candidates,
        min(k, asked.model.n_labels),
        values=scored.scores,
        label_names=asked.model.label_names,
        without_evidence=scored.blank,
    )

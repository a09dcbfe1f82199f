"""A fitted model in shards: no worker holds all labels of what is separable by label, nor all training rows.

Evidence that depends on a pair's own label alone is cut by ranges of labels: distances to a label's points
and centroid, its frequency, its name, its one-vs-all weights. The search for neighbours is cut by ranges of
training rows, and the shards' nearest are merged, as exactly as by a single search. Label trees, instance
trees, kernel machines and learned embeddings are not separable: each stays whole, on one worker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.training_rows import DenseRows, training_rows
from metarank.types.arrays import stacked
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.view import Features


@dataclass(frozen=True, eq=False)
class RowShard:
    """Some training rows, to be searched.

    Parameters
    ----------
    X : features (n, d) of the rows
    ids : int32 array (n,)
        Their numbers in the training set, ascending.
    """

    X: Features
    ids: np.ndarray

    def nearest(self, X: Features, k: int, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, distances), both (q, k), as `DenseRows.nearest` gives them of all rows."""
        rows = self.__dict__.get("_rows")
        if rows is None:
            rows = self.__dict__["_rows"] = training_rows(self.X)
        metric = "l2" if isinstance(rows, DenseRows) else "cosine"
        found, distances = rows.nearest(X, np.arange(len(self.ids), dtype=np.int32), k, metric, n_jobs)
        return np.where(found >= 0, self.ids[found], -1).astype(np.int32), distances

    def vectors(self, ids: np.ndarray) -> tuple[np.ndarray, Features]:
        """Those of some rows (ascending) that are here, and their features."""
        here = ids[np.isin(ids, self.ids)]
        return here, self.X[np.searchsorted(self.ids, here)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_rows"}


@dataclass(frozen=True, eq=False)
class Merged:
    """The nearest of several shards; for the queries `open` distances alone do not tell who is in.

    Parameters
    ----------
    rows, distances : int32 and float32 arrays (q, k)
    open : int array
    offered : int32 array
        The rows that are in question for them, ascending.
    by_query : int32 array (len(open), shards * k)
        The rows that the shards offered each of them, padded with -1.
    """

    rows: np.ndarray
    distances: np.ndarray
    open: np.ndarray
    offered: np.ndarray
    by_query: np.ndarray


def merged(found: list[tuple[np.ndarray, np.ndarray]], cuts: list[int]) -> Merged:
    """The nearest of all shards, by distance, then by row.

    A search compares in 64 bits what it returns in 32. Rows at the same distance weigh the same, so that
    their order matters only where one of them is within the nearest `cuts` and the other is not.
    """
    rows = np.concatenate([ids for ids, _ in found], axis=1)
    distances = np.concatenate([d for _, d in found], axis=1)
    away = np.where(rows >= 0, distances, np.inf)
    order = np.lexsort((rows, away), axis=1)
    rows, away = (np.take_along_axis(a, order, axis=1) for a in (rows, away))
    k = max(cuts)
    unsure = np.zeros(len(rows), bool)
    for cut in cuts:
        if cut < rows.shape[1]:
            unsure |= (away[:, cut - 1] == away[:, cut]) & (rows[:, cut] >= 0)
    at = np.flatnonzero(unsure)
    offered = np.unique(rows[at])
    kept = rows[:, :k]
    near = np.where(kept >= 0, away[:, :k], 0).astype(np.float32)
    return Merged(kept, near, at, offered[offered >= 0], rows[at])


def resolved(
    found: Merged, X: Features, vectors: list[tuple[np.ndarray, Features]], n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, distances) with the open queries searched once more, among all that was offered to them."""
    rows, distances = found.rows.copy(), found.distances.copy()
    if len(found.open) == 0:
        return rows, distances
    ids = np.concatenate([here for here, _ in vectors])
    order = np.argsort(ids)
    offers = stacked([X for _, X in vectors])
    for query, offered in zip(found.open, found.by_query):
        own = np.sort(offered[offered >= 0])
        shard = RowShard(offers[order[np.searchsorted(ids[order], own)]], own)
        near = shard.nearest(X[query : query + 1], rows.shape[1], n_jobs)
        rows[query], distances[query] = near[0][0], near[1][0]
    return rows, distances


@dataclass(frozen=True, eq=False)
class Shard:
    """What one worker holds of a model.

    Parameters
    ----------
    first, last : int
        Its range of labels.
    pieces : dict of int to scorer
        By number of the scorer: what it knows of these labels, which count from 0 there.
    whole : dict of int to scorer
        Those that are not separable, and are here.
    rows : dict of int to RowShard
        By number of the scorer that searches for neighbours.
    """

    first: int
    last: int
    pieces: dict[int, Any] = field(default_factory=dict)
    whole: dict[int, Any] = field(default_factory=dict)
    rows: dict[int, RowShard] = field(default_factory=dict)

    def propose(
        self, X: Features, numbers: list[int], k: int, n_jobs: int, given: Given | None = None
    ) -> dict[int, Candidates]:
        """The proposals of some of the scorers, in the ids of the whole model."""
        found = {
            i: self.whole[i].shortlist(given if self.whole[i].reads_given else X, k, n_jobs=n_jobs)
            for i in numbers
            if i in self.whole
        }
        for i in numbers:
            if i in self.pieces and self.last > self.first:
                own = self.pieces[i].shortlist(X, min(k, self.last - self.first), n_jobs=n_jobs)
                labels = own.labels + np.int32(self.first)
                found[i] = Candidates.of_core(own.indptr, labels, -1, own.scores)
        return found

    def describe(
        self,
        X: Features,
        candidates: Candidates,
        numbers: list[int],
        n_jobs: int,
        given: Given | None = None,
    ) -> dict[int, dict[str, np.ndarray]]:
        """Columns of the candidates: of all of them by a whole scorer, of those in the range by a piece."""
        columns = {
            i: self.whole[i].score(given if self.whole[i].reads_given else X, candidates, n_jobs=n_jobs)
            for i in numbers
            if i in self.whole
        }
        if self.last > self.first:
            own = self.within(candidates)
            columns |= {i: self.pieces[i].score(X, own, n_jobs=n_jobs) for i in numbers if i in self.pieces}
        return columns

    def inside(self, candidates: Candidates) -> np.ndarray:
        """bool (m,): pairs of labels of the range."""
        return (candidates.labels >= self.first) & (candidates.labels < self.last)

    def within(self, candidates: Candidates) -> Candidates:
        """The pairs of labels of the range, which count from 0."""
        inside = self.inside(candidates)
        before = np.concatenate([[0], np.cumsum(inside)])
        labels = candidates.labels[inside] - np.int32(self.first)
        return Candidates.of_core(before[candidates.indptr], labels, self.last - self.first, {})


def joined_proposals(parts: list[Candidates], k: int, n_labels: int) -> Candidates:
    """The k best of what the shards of one scorer propose, ties by label, as it would by itself."""
    row = np.concatenate([part.row_of_pair for part in parts])
    label = np.concatenate([part.labels for part in parts])
    order = np.lexsort((label, row))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=parts[0].n_rows))])
    name = next(iter(parts[0].scores))
    score = np.concatenate([part.scores[name] for part in parts])[order]
    return Candidates(indptr, label[order], n_labels, {name: score}).top(k)


def split(scorers: list[LabelScorer], n_shards: int, n_labels: int) -> list[Shard]:
    """The shards of some distinct fitted scorers."""
    bounds = np.linspace(0, n_labels, n_shards + 1).astype(np.int64)
    shards = [Shard(int(a), int(b)) for a, b in pairwise(bounds)]
    for i, scorer in enumerate(scorers):
        pieces = [scorer.of_labels(shard.first, shard.last) for shard in shards]
        searched = scorer.rows_searched()
        if pieces[0] is not None:
            for shard, piece in zip(shards, pieces):
                shard.pieces[i] = piece
        elif searched is not None:
            X, rows = searched
            for shard, part in zip(shards, np.array_split(rows, n_shards)):
                shard.rows[i] = RowShard(X[part], part)
        else:
            shards[i % n_shards].whole[i] = scorer
    return shards

"""`best_points`: the best points of each label, of a batch of rows that are its points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from metarank._util.threads import resolve_n_jobs
from metarank.model.answer import Answering
from metarank.model.fitted import FittedModel, blank_rows
from metarank.model.memory import parse_budget, prediction_chunk
from metarank.model.point_lists import best_by_label, names_of_proposers, points_table, row_columns
from metarank.model.request import Request
from metarank.types.candidates import Candidates
from metarank.types.ranking import PointRanking

# Labels, rows and scores of some pairs.
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def best_points(asked: Answering, request: Request, k: int) -> PointRanking:
    """The k best rows of each label: by the ranker of points, or by probability where the model has none."""
    n, n_labels = request.X.shape[0], asked.model.n_labels
    k = min(k, max(1, n))
    if asked.model.point_ranker is None:
        parts = [heads(*part, k) for part in probable_points(asked, request)]
    else:
        parts = list(_ranked_lists(asked, request, k))
    label, row, score = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return points_ranking(*rows_of_labels(label, row, score, n_labels, k), n, asked.model)


def points_ranking(rows: np.ndarray, scores: np.ndarray, n: int, model: FittedModel) -> PointRanking:
    """The rows (L, k) of n that each label lists, under its name."""
    return PointRanking(rows, scores, n, index=model.label_names)


def probable_points(asked: Answering, request: Request) -> Iterator[Pairs]:
    """All pairs with a probability above 0, chunk by chunk."""
    first = 0
    for scored in asked.scored(request):
        c, probability = scored.candidates, asked.model.probabilities(scored)
        kept = probability > 0
        yield c.labels[kept], c.row_of_pair[kept] + first, probability[kept]
        first += c.n_rows


def _ranked_lists(asked: Answering, request: Request, k: int) -> Iterator[Pairs]:
    """The pairs of some labels after the other, as many as the memory is enough for."""
    model, X, n_jobs = asked.model, request.X, resolve_n_jobs(asked.n_jobs)
    ranker = model.point_ranker
    assert ranker is not None
    found = asked.searched(X, request.given)
    proposals = asked.proposed(X, found, request.given)
    of_rows = row_columns(X, list(zip(names_of_proposers(model.sources), proposals)))
    every = _candidates(asked, request, proposals, max(k, asked.shortlist_size))
    del proposals
    counts = np.bincount(every.labels, minlength=model.n_labels)
    chunk = prediction_chunk(parse_budget(asked.memory_budget), len(ranker.names_))
    yield np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float32)
    for first, last in _ranges(counts, chunk):
        own = every.where((every.labels >= first) & (every.labels < last))
        if own.n_pairs == 0:
            continue
        order = np.argsort(own.labels, kind="stable")
        columns = asked.columns(X, own, found, request.given)
        by_label = own.transpose()
        table = points_table(columns, of_rows, own, order, by_label, model.standardizes, n_jobs)
        more = len(table.names) > len(ranker.names_) and set(ranker.names_) <= set(table.names)
        scores = asked.evidence_of(table.select(ranker.names_) if more else table, ranker)
        pairs = by_label.row_of_pair, by_label.labels.astype(np.int64), scores.astype(np.float32)
        yield heads(*pairs, k)


def _candidates(asked: Answering, request: Request, proposals: list[Candidates], k: int) -> Candidates:
    """The candidates of all labels, by row: the k best points of each by each source, or the user's own."""
    model, X, limits, own, given = asked.model, *request
    n, n_jobs = X.shape[0], resolve_n_jobs(asked.n_jobs)
    if own is None:
        proposing: list[Any] = [source.scorer for source in model.sources if source.proposes]
        parts = [
            scorer.shortlist_points(X, k, n_jobs=n_jobs).transpose()
            if scorer.proposes_points
            else best_by_label(part, k)
            for scorer, part in zip(proposing, proposals)
        ]
        own = asked.united(parts, n)
    if model.unknown is not None:
        own = own.without_labels(np.flatnonzero(model.unknown))
    blank = blank_rows(X)
    if given is not None:
        blank &= ~given.is_filled
    return limits.cut(own.where(~np.repeat(blank, np.diff(own.indptr))), slice(0, n))


def _ranges(counts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of labels with at most so many pairs each, or a single label."""
    ends, first = np.cumsum(counts), 0
    while first < len(counts):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def heads(label: np.ndarray, row: np.ndarray, score: np.ndarray, k: int) -> Pairs:
    """The k best of each label, labels ascending, the best first, ties by row."""
    order = np.lexsort((row, -score, label))
    label, row, score = label[order], row[order], score[order]
    kept = _places(label) < k
    return label[kept], row[kept], score[kept]


def rows_of_labels(
    label: np.ndarray, row: np.ndarray, score: np.ndarray, n_labels: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, scores), both (n_labels, k), of the `heads` of some pairs, padded with -1 and -inf."""
    label, row, score = heads(label, row, score, k)
    rows = np.full((n_labels, k), -1, np.int64)
    scores = np.full((n_labels, k), -np.inf, np.float32)
    place = _places(label)
    rows[label, place], scores[label, place] = row, score
    return rows, scores


def _places(label: np.ndarray) -> np.ndarray:
    """The place of each entry among those of its label, which follow one another."""
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    return np.arange(len(label)) - np.repeat(starts, np.diff(np.append(starts, len(label))))

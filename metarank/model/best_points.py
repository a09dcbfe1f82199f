"""`PointLists`: lists of points, label by label, and the ranker that learns to order them.

It mirrors the ranking of labels. There a row is a query and labels are its documents; here a label is a query
over a *batch* of rows, its points. The candidates are the best points of a label by each source, columns are
standardised within the label's list, and a ranker orders it. What is the same for all labels of a row, and so
teaches nothing where labels are ranked, now tells rows apart: how much each source expects of the row at all
(`row_columns`), as the frequency of a label does in the other direction.

In a fit each fold is a batch: the view without it describes its rows, as the view of all rows describes new
ones. A label is then a query once a fold, and nothing that differs between views, such as how many rows of a
label a TrainingView shows, can tell relevant points of a query from others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metarank._util.progress import note, taking_notes
from metarank._util.threads import resolve_n_jobs
from metarank.model.answering.answer import Answering
from metarank.model.answering.request import Request
from metarank.model.fitted import blank_rows
from metarank.model.fitting import auto
from metarank.ranker import (
    AutoRanker,
    BoostedRanker,
    LinearRanker,
    Ranker,
    RankingData,
)
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import hash_numbers
from metarank.scorers.base import PointProposer
from metarank.scorers.source import Source
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns, FeatureTable
from metarank.types.ranking import PointRanking
from metarank.types.view import CHUNK_PAIRS, Features, TrainingSet

# Keeps the draw of queries apart from those of rows and folds.
_DRAW_SHIFT = 11_000_003
# With fewer lists to learn from, trees have nothing to split.
_LISTS_FOR_TREES = 50
# Standard errors within which the first ranker is kept: lists that share points are no independent witnesses.
_TOLERANCE = 2.0


@dataclass(frozen=True, eq=False)
class PointLists:
    """The lists of points that the ranker of points learns from.

    Parameters
    ----------
    candidates : Candidates of r training rows, m pairs
        All pairs of the lists, by row.
    order : int64 array (m,)
        Positions of the pairs list by list, rows ascending.
    by_label : Candidates of q lists
        The same pairs: a list for each query of a label and a fold, of the places of its rows among the r.
    gains : float32 array (m,), list by list
    weight : float64 array (q,)
        The lists of a label weigh 1 together.
    fold : int32 array (q,)
    row_columns : dict of str to float32 array (r,)
    standardize : bool
    seed : int
    """

    candidates: Candidates
    order: np.ndarray
    by_label: Candidates
    gains: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    row_columns: Columns
    standardize: bool
    seed: int


def best_by_label(proposals: Candidates, k: int) -> Candidates:
    """Of proposals for some rows, the k rows of each label with the greatest score; ties go to the earlier
    row. Proposals without scores are all kept.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2, 3]), np.array([0, 1, 0]), 2, {"score": np.array([0.1, 0.2, 0.3])})
    >>> best_by_label(c, 1).to_csr().toarray()
    array([[0. , 0.2],
           [0.3, 0. ]], dtype=float32)
    """
    return proposals.transpose().top(k).transpose() if proposals.scores else proposals


def row_columns(X: Features, names: Sequence[str], proposals: Sequence[Candidates]) -> Columns:
    """What tells rows apart whatever the label: the sum and the maximum of the scores of each source's
    proposals for the row, and of sparse rows the number of entries. float32 (n,) each.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2, 2]), np.array([0, 1]), 2, {"score": np.array([0.25, 0.5])})
    >>> row_columns(np.zeros((2, 3)), ["trees"], [c])
    {'row_sum(trees)': array([0.75, 0.  ], dtype=float32), 'row_max(trees)': array([0.5, 0. ], dtype=float32)}
    """
    n, columns = X.shape[0], []
    for name, part in zip(names, proposals):
        if not part.scores:
            continue
        scores, filled = part.final_score, np.diff(part.indptr) > 0
        greatest = np.zeros(n, np.float32)
        if filled.any():
            greatest[filled] = np.maximum.reduceat(scores, part.indptr[:-1][filled])
        total = np.bincount(part.row_of_pair, scores, n).astype(np.float32)
        columns.append({f"row_sum({name})": total, f"row_max({name})": greatest})
    if not isinstance(X, np.ndarray):
        columns.append({"row_entries": np.diff(X.indptr).astype(np.float32)})
    return joined_columns(columns)[0]


def point_lists(
    data: TrainingSet,
    rows: np.ndarray,
    sources: Sequence[Source],
    proposals: Sequence[Candidates],
    held_out: Sequence[Candidates | None],
    *,
    excluded: Candidates | None,
    seen: np.ndarray | None,
    k: int,
    standardize: bool,
    seed: int,
) -> PointLists | None:
    """The lists of the training rows `rows`, ascending; None if no list has points to tell apart.

    Parameters
    ----------
    proposals : list of Candidates
        What each source that proposes, proposes for the rows, from fits without the row's fold.
    held_out : list of Candidates or None
        The same by its search for points, fold by fold, where it has one.
    excluded : Candidates of all training rows, or None
    seen : int64 array (K, L) or None
        Rows of each label outside each fold, without which nothing is known of it; None if some source also
        reads names or what others say.
    k : int
        Points of a label that each source proposes.
    """
    X, fold, n_labels = data.X[rows], data.fold[rows], data.Y.shape[1]
    folds, batch = np.unique(fold, return_inverse=True)
    parts = [
        given if given is not None else _best_of_each(part, batch, k)
        for part, given in zip(proposals, held_out)
    ]
    candidates = Candidates.united(parts) if parts else Candidates.all_labels(len(rows), n_labels)
    if excluded is not None:
        candidates = candidates.without(excluded.rows(rows))
    Y = data.Y[rows]
    blank = blank_rows(X)
    if data.given is not None:  # what others say of a row is evidence
        blank &= ~data.given[rows].is_filled
    has_evidence = ~np.repeat(blank, np.diff(candidates.indptr))
    query = batch[candidates.row_of_pair] * np.int64(n_labels) + candidates.labels
    # Of a query both some relevant point is to be found and another: else there is nothing to order.
    size = np.bincount(query[has_evidence], minlength=len(folds) * n_labels)
    positive = np.bincount(query[has_evidence & (candidates.values_of(Y) > 0)], minlength=len(size))
    wanted = (positive > 0) & (positive < size)
    if seen is not None:
        wanted &= (seen[folds] > 0).ravel()
    wanted = _drawn(wanted, size, seed)
    if not wanted.any():
        return None
    candidates = candidates.where(has_evidence & wanted[query])
    query = batch[candidates.row_of_pair] * np.int64(n_labels) + candidates.labels
    order = np.argsort(query, kind="stable")
    numbers, sizes = np.unique(query, return_counts=True)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    label = numbers % n_labels
    of_label = np.bincount(label, minlength=n_labels)
    by_label = Candidates(indptr, candidates.row_of_pair[order], len(rows))
    return PointLists(
        candidates,
        order,
        by_label,
        candidates.values_of(Y)[order],
        1.0 / of_label[label],
        (numbers // n_labels).astype(np.int32),
        row_columns(X, [source.name for source in sources if source.proposes], proposals)
        if standardize
        else {},
        standardize,
        seed,
    )


def _best_of_each(proposals: Candidates, batch: np.ndarray, k: int) -> Candidates:
    """`best_by_label` of the rows of each batch, without scores."""
    parts = [np.flatnonzero(batch == b) for b in np.unique(batch)]
    best = Candidates.stack([best_by_label(proposals.rows(part), k) for part in parts])
    back = best.rows(np.argsort(np.concatenate(parts), kind="stable"))
    return Candidates.united([back])


def _drawn(wanted: np.ndarray, size: np.ndarray, seed: int) -> np.ndarray:
    """The wanted queries, or as many of them, by hash, as hold `auto.POINT_PAIRS` pairs."""
    numbers = np.flatnonzero(wanted)
    numbers = numbers[np.argsort(hash_numbers(len(wanted), seed + _DRAW_SHIFT)[numbers], kind="stable")]
    most = int(np.searchsorted(np.cumsum(size[numbers]), auto.POINT_PAIRS, side="right"))
    kept = np.zeros_like(wanted)
    kept[numbers[: max(1, most)]] = True
    return kept


def ranked_points(columns: list[Columns], lists: PointLists, n_jobs: int) -> Ranker:
    """The ranker of points, fitted: the one of two that cross-validation prefers.

    `columns` are those of the sources for the pairs of `lists.candidates`.
    """
    of_lists = (lists.row_columns, lists.candidates, lists.order, lists.by_label, lists.standardize)
    table = points_table(columns, *of_lists, n_jobs)
    enough = len(lists.weight) >= _LISTS_FOR_TREES and len(np.unique(lists.fold)) > 1
    linear = LinearRanker(loss="listnet")
    ranker: Ranker = (
        AutoRanker(candidates=[linear, BoostedRanker(objective="lambdarank")], tolerance=_TOLERANCE)
        if enough
        else linear
    )
    data = RankingData.checked(table, lists.gains, lists.weight, lists.fold, lists.seed)
    with taking_notes():
        ranker.fit_lists(data, n_jobs)
    note(f"labelwise: {ranker.summary()}, from {len(lists.weight)} lists of points")
    return ranker


def points_table(
    columns: Sequence[Columns],
    of_rows: Columns,
    candidates: Candidates,
    order: np.ndarray,
    by_label: Candidates,
    standardize: bool,
    n_jobs: int,
) -> FeatureTable:
    """The table of the pairs of lists of points: the columns of the sources, and of the rows, and each
    standardised within its list.

    `order` are the positions of the pairs in `candidates`, list by list, as `by_label` has them.
    """
    row = candidates.row_of_pair
    named = joined_columns([*columns, {name: values[row] for name, values in of_rows.items()}])[0]
    return assemble(
        {name: values[order] for name, values in named.items()},
        by_label,
        standardize=standardize,
        n_jobs=n_jobs,
    )


# Labels, rows and scores of some pairs.
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def best_points(answering: Answering, request: Request, k: int) -> PointRanking:
    """The k best rows of each label: by the ranker of points, or by probability where the model has none."""
    model, n = answering.model, request.X.shape[0]
    k = min(k, max(1, n))
    lists = (
        _probable_points(answering, request)
        if model.point_ranker is None
        else _ranked_lists(answering, request, k)
    )
    parts = [_heads(*part, k) for part in lists]
    label, row, score = (np.concatenate([part[i] for part in parts]) for i in range(3))
    label, row, score = _heads(label, row, score, k)
    rows = np.full((model.n_labels, k), -1, np.int64)
    scores = np.full((model.n_labels, k), -np.inf, np.float32)
    place = _places(label)
    rows[label, place], scores[label, place] = row, score
    return PointRanking(rows, scores, n, index=model.label_names)


def _probable_points(answering: Answering, request: Request) -> Iterator[Pairs]:
    """All pairs with a probability above 0, chunk by chunk."""
    first = 0
    for scored in answering.score(request):
        c, probability = scored.candidates, answering.model.probabilities(scored)
        kept = probability > 0
        yield c.labels[kept], c.row_of_pair[kept] + first, probability[kept]
        first += c.n_rows


def _ranked_lists(answering: Answering, request: Request, k: int) -> Iterator[Pairs]:
    """The pairs of some labels after the other, about `CHUNK_PAIRS` of them at once."""
    model, X, n_jobs = answering.model, request.X, resolve_n_jobs(answering.n_jobs)
    ranker = model.point_ranker
    assert ranker is not None
    searches, proposals = answering.proposed(X, request.given)
    of_rows = row_columns(X, [source.name for source in model.sources if source.proposes], proposals)
    every = _candidates(answering, request, proposals, max(k, answering.shortlist_size))
    del proposals
    counts = np.bincount(every.labels, minlength=model.n_labels)
    yield np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.float32)
    for first, last in _ranges(counts, CHUNK_PAIRS):
        pairs = every.where((every.labels >= first) & (every.labels < last))
        if pairs.n_pairs == 0:
            continue
        order = np.argsort(pairs.labels, kind="stable")
        columns = answering.columns(X, pairs, searches, request.given)
        by_label = pairs.transpose()
        table = points_table(columns, of_rows, pairs, order, by_label, model.standardizes, n_jobs)
        scores = answering.evidence_of(
            table if table.names == ranker.names_ else table.select(ranker.names_), ranker
        )
        yield by_label.row_of_pair, by_label.labels.astype(np.int64), scores.astype(np.float32)


def _candidates(answering: Answering, request: Request, proposals: list[Candidates], k: int) -> Candidates:
    """The candidates of all labels, by row: the k best points of each by each source, or the user's own."""
    model, X, limits, candidates, given = answering.model, *request
    n, n_jobs = X.shape[0], resolve_n_jobs(answering.n_jobs)
    if candidates is None:
        proposing: list[Any] = [source.scorer for source in model.sources if source.proposes]
        parts = [
            scorer.shortlist_points(X, k, n_jobs=n_jobs).transpose()
            if isinstance(scorer, PointProposer)
            else best_by_label(part, k)
            for scorer, part in zip(proposing, proposals)
        ]
        candidates = answering.united(parts, n)
    if model.unknown is not None:
        candidates = candidates.without_labels(np.flatnonzero(model.unknown))
    blank = blank_rows(X)
    if given is not None:
        blank &= ~given.is_filled
    return limits.cut(candidates.where(~np.repeat(blank, np.diff(candidates.indptr))), slice(0, n))


def _ranges(counts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of labels with at most so many pairs each, or a single label."""
    ends, first = np.cumsum(counts), 0
    while first < len(counts):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def _heads(label: np.ndarray, row: np.ndarray, score: np.ndarray, k: int) -> Pairs:
    """The k best of each label, labels ascending, the best first, ties by row."""
    order = np.lexsort((row, -score, label))
    label, row, score = label[order], row[order], score[order]
    kept = _places(label) < k
    return label[kept], row[kept], score[kept]


def _places(label: np.ndarray) -> np.ndarray:
    """The place of each entry among those of its label, which follow one another."""
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    return np.arange(len(label)) - np.repeat(starts, np.diff(np.append(starts, len(label))))

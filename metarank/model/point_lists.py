"""`PointLists`: lists of points, label by label, and the ranker that learns to order them.

It mirrors the ranking of labels. There a row is a query and labels are its documents; here a label is a query
over a *batch* of rows, its points. The candidates are the best points of a label by each source, columns are
standardised within the label's list, and a ranker orders it. What is the same for all labels of a row, and so
teaches nothing where labels are ranked, now tells rows apart: how much each source expects of the row at all
(`row_columns`), as the frequency of a label does in the other direction.

In a fit each fold is a batch: the View without it describes its rows, as the View of all rows describes new
ones. A label is then a query once a fold, and nothing that differs between Views, such as how many rows of a
label a View shows, can tell relevant points of a query from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metarank._util.progress import note, taking_notes
from metarank.model import auto
from metarank.model.fitted import blank_rows
from metarank.ranker import (
    AutoRanker,
    BlendRanker,
    BoostedRanker,
    ListNet,
    Ranker,
    RankingData,
)
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import hash_numbers
from metarank.scorers.source import Source
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import Features, TrainingSet

Columns = dict[str, np.ndarray]
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


def row_columns(X: Features, proposals: Sequence[tuple[str, Candidates]]) -> Columns:
    """What tells rows apart whatever the label: the sum and the maximum of the scores of each source's
    proposals for the row, and of sparse rows the number of entries. float32 (n,) each.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2, 2]), np.array([0, 1]), 2, {"score": np.array([0.25, 0.5])})
    >>> row_columns(np.zeros((2, 3)), [("trees", c)])
    {'row_sum(trees)': array([0.75, 0.  ], dtype=float32), 'row_max(trees)': array([0.5, 0. ], dtype=float32)}
    """
    n, found = X.shape[0], []
    for name, part in proposals:
        if not part.scores:
            continue
        scores, filled = part.final_score, np.diff(part.indptr) > 0
        greatest = np.zeros(n, np.float32)
        if filled.any():
            greatest[filled] = np.maximum.reduceat(scores, part.indptr[:-1][filled])
        total = np.bincount(part.row_of_pair, scores, n).astype(np.float32)
        found.append({f"row_sum({name})": total, f"row_max({name})": greatest})
    if not isinstance(X, np.ndarray):
        found.append({"row_entries": np.diff(X.indptr).astype(np.float32)})
    return joined_columns(found)[0]


def names_of_proposers(sources: Sequence[Source]) -> list[str]:
    """The names of the sources that propose."""
    return [source.name for source in sources if source.proposes]


def point_lists(
    data: TrainingSet,
    rows: np.ndarray,
    sources: Sequence[Source],
    proposals: Sequence[Candidates],
    found: Sequence[Candidates | None],
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
    found : list of Candidates or None
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
    parts = [own if own is not None else _best_of_each(part, batch, k) for part, own in zip(proposals, found)]
    candidates = Candidates.united(parts) if parts else Candidates.all_labels(len(rows), n_labels)
    if excluded is not None:
        candidates = candidates.without(excluded.rows(rows))
    Y = data.Y[rows]
    blank = blank_rows(X)
    if data.given is not None:  # what others say of a row is evidence
        blank &= ~data.given[rows].is_filled
    told = ~np.repeat(blank, np.diff(candidates.indptr))
    query = batch[candidates.row_of_pair] * np.int64(n_labels) + candidates.labels
    # Of a query both some relevant point is to be found and another: else there is nothing to order.
    size = np.bincount(query[told], minlength=len(folds) * n_labels)
    positive = np.bincount(query[told & (candidates.values_of(Y) > 0)], minlength=len(size))
    wanted = (positive > 0) & (positive < size)
    if seen is not None:
        wanted &= (seen[folds] > 0).ravel()
    wanted = _drawn(wanted, size, seed)
    if not wanted.any():
        return None
    candidates = candidates.where(told & wanted[query])
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
        row_columns(X, list(zip(names_of_proposers(sources), proposals))) if standardize else {},
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
    """The ranker of points, fitted: the one of three that cross-validation prefers.

    `columns` are those of the sources for the pairs of `lists.candidates`.
    """
    of_lists = (lists.row_columns, lists.candidates, lists.order, lists.by_label, lists.standardize)
    table = points_table(columns, *of_lists, n_jobs)
    enough = len(lists.weight) >= _LISTS_FOR_TREES and len(np.unique(lists.fold)) > 1
    ranker: Ranker = AutoRanker(candidates=_rankers(), tolerance=_TOLERANCE) if enough else ListNet()
    data = RankingData.checked(table, lists.gains, lists.weight, lists.fold, lists.seed)
    with taking_notes():
        ranker.fit_lists(data, n_jobs)
    note(f"labelwise: {ranker.summary()}, from {len(lists.weight)} lists of points")
    return ranker


def _rankers() -> list[Ranker]:
    trees = BoostedRanker(objective="rank_xendcg", feature_fraction=0.3, bagging_fraction=0.7)
    return [BlendRanker(members=[ListNet(), trees]), ListNet(), BoostedRanker(objective="lambdarank")]


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

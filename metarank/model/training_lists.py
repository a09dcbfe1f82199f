"""`TrainingLists`: the rows and candidate pairs that the ranker learns from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from metarank import _core
from metarank._util.progress import note
from metarank.model import auto
from metarank.model.answer import united
from metarank.model.cascade import Cascade, Lists, can_cascade, learned_cascade, wide_enough
from metarank.model.given_sources import pairs_per_row
from metarank.model.inputs import TrainingInput
from metarank.model.parameters import FitOptions
from metarank.model.point_lists import PointLists, point_lists
from metarank.model.propensity_weight import held_out_inv_propensity, weights_of_labels
from metarank.model.stages import LocalStages, PairsToRank
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import OuterPart, can_nest, inner_parts
from metarank.scorers.source import Source, describers, labels_told_of, proposers
from metarank.types.candidates import Candidates
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.view import Features, TrainingSet, first_of_unit, fold_of_rows

# Makes the folds of the ranker independent of those of its columns, where they differ.
_FOLD_SHIFT = 3_000_017


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """The lists that the ranker learns from.

    Parameters
    ----------
    data : TrainingSet
    rows : int64 array (r,)
        Rows of `data` that the ranker learns from, ascending.
    X : features (r, d) of these rows
    fold : int32 array (r,)
        Fold of each row for the ranker.
    is_shortlisted : bool
    proposed : Lists
        The candidates of the rows, m pairs, and which of them are described and ranked.
    gains : float32 array (m,)
    rejected : bool array (m,) or None
        Pairs that a person rejected.
    cascade : Cascade or None
        What chooses those; None if all are described.
    points : PointLists or None
        Lists of points, where the best points of each label are learned too.
    """

    data: TrainingSet
    rows: np.ndarray
    X: Features
    fold: np.ndarray
    is_shortlisted: bool
    proposed: Lists
    gains: np.ndarray
    rejected: np.ndarray | None = None
    cascade: Cascade | None = None
    points: PointLists | None = None

    @property
    def described(self) -> Candidates:
        """All pairs that are described."""
        own = self.proposed.described
        return own if self.points is None else Candidates.united([own, self.points.candidates])

    @property
    def candidates(self) -> Candidates:
        return self.proposed.candidates

    @property
    def groups(self) -> np.ndarray | None:
        """Group of each row, if the rows come in groups."""
        return None if self.data.groups is None else self.data.groups[self.rows]

    @property
    def unit(self) -> np.ndarray:
        """int64 (r,): copies of a row and rows of its group have the same number."""
        return first_of_unit(len(self.rows), self.X, self.groups)


def ranked_rows(data: TrainingSet, sources: list[Source], options: FitOptions) -> np.ndarray:
    """Training rows that the ranker learns from, ascending."""
    return np.arange(len(data.fold)) if options.every_pair else sampled_rows(data, sources, options)


def sampled_rows(data: TrainingSet, sources: list[Source], options: FitOptions) -> np.ndarray:
    """Rows of as many folds as needed, within the limit on pairs: each fold costs a fit of every source
    without it."""
    n, n_folds, proposing = len(data.fold), int(data.fold.max()) + 1, len(proposers(sources))
    by_relevance = math.ceil(auto.ENOUGH_RELEVANT_PAIRS * n / max(1, data.Y.nnz))
    enough = min(auto.ENOUGH_ROWS, by_relevance)
    enough *= auto.HIGH_LEARNS_MORE if options.effort == "high" else 1
    is_low = options.effort == "low" and proposing > 0
    wanted = max(auto.LEAST_RANKED_ROWS, enough // auto.LOW_LEARNS_LESS if is_low else enough)
    # Rankers of points are judged on points that they have not seen: those of another fold.
    least = 2 if options.labelwise else 1
    share = max(least, round(wanted * n_folds / n)) / n_folds if proposing else 1
    rows = np.flatnonzero(data.fold < share * n_folds)
    if len(rows) == 0:
        rows = np.arange(n)
    per_row = pairs_per_row(data, sources, options.shortlist_size)
    budget = max(1, auto.TRAINING_PAIRS // max(1, per_row))
    budget = min(budget, wanted) if is_low else budget
    kept = rows if len(rows) <= budget else rows[drawn_rows(len(rows), budget, options.seed + 1)]
    if len(kept) < n:
        note(f"ranker: learns from {len(kept)} of {n} rows")
    return kept


def drawn_rows(n: int, wanted: int, seed: int) -> np.ndarray:
    """The `wanted` of n positions of smallest hash, ascending."""
    key = _core.fold_of_rows(n, 2**31 - 1, seed)
    return np.sort(np.argsort(key, kind="stable")[:wanted])


def training_lists(
    given: TrainingInput,
    data: TrainingSet,
    rows: np.ndarray,
    sources: list[Source],
    stages: LocalStages,
    options: FitOptions,
) -> TrainingLists:
    """The candidates of the rows that the ranker learns from, proposed by fits without the row's fold."""
    # Rows of only some folds are held out by their Views already; the ranker gets folds of its own.
    fold, X = data.fold[rows], given.X if len(rows) == given.n_rows else given.X[rows]
    if len(np.unique(fold)) < data.n_folds:
        groups = None if data.groups is None else data.groups[rows]
        fold = fold_of_rows(len(rows), options.n_folds, options.seed + _FOLD_SHIFT, X, groups)
    proposals = stages.propose(sources, rows, options.shortlist_size)
    candidates = united(proposals, len(rows), given.n_labels)
    if not proposals:
        known = candidates.without_labels(_unknown_labels(data, sources, given.labels.table))
        relevant = np.diff(data.Y[rows].indptr)
        if np.any((relevant > 0) & (np.diff(known.indptr) > relevant)):  # else nothing is left to be ordered
            candidates = known
    if given.excluded is not None:
        candidates = candidates.without(given.excluded.rows(rows))
        if candidates.n_pairs == 0:
            raise ValueError("exclude must leave at least one candidate in the training rows, it leaves none")
    gains = candidates.values_of(data.Y[rows])
    rejected = None if given.negatives is None else candidates.among(given.negatives.rows(rows))
    cut = None
    of_one_target = not given.labels.targets and not options.every_pair
    if can_cascade(sources) and of_one_target and data.Y.shape[0] >= auto.ROWS_FOR_PROPENSITY:
        weight = None if given.weight is None else given.weight[rows]
        per_row = data.Y.nnz / max(1, data.Y.shape[0])
        cut = learned_cascade(
            candidates,
            proposals,
            held_out_inv_propensity(data, rows, candidates),
            gains,
            fold=fold,
            weight=weight,
            seed=options.seed,
            survivors=max(auto.LEAST_SURVIVORS, math.ceil(auto.SURVIVORS_PER_LABEL * per_row)),
            n_jobs=options.n_jobs,
        )
    if cut is not None:
        weights = weights_of_labels(data.Y)
        Y = data.Y[rows]
        cut = wide_enough(cut, proposals, Y, inv_propensity=weights, n_jobs=options.n_jobs)
    if cut is not None:
        note(f"cascade: {cut.cascade.survivors} candidates of a row are described, by held-out rows")
    proposed, cascade = (Lists(candidates), None) if cut is None else (cut.lists, cut.cascade)
    points = None
    if options.labelwise:
        by_names = any(scorer.reads_names or scorer.reads_given for scorer in describers(sources))
        points = point_lists(
            data,
            rows,
            sources,
            proposals,
            stages.propose_points(sources, rows, options.shortlist_size),
            excluded=given.excluded,
            seen=None if by_names else rows_outside(data),
            k=options.shortlist_size,
            standardize=options.standardizes,
            seed=options.seed,
        )
        if points is None:
            raise ValueError(
                "labelwise=True needs labels with relevant and other rows among their candidates, got none"
            )
    return TrainingLists(data, rows, X, fold, bool(proposals), proposed, gains, rejected, cascade, points)


def rows_outside(data: TrainingSet) -> np.ndarray:
    """int64 (K, L): rows of each label outside each fold."""
    n_labels, per_row = data.Y.shape[1], np.diff(data.Y.indptr)
    inside = np.bincount(
        np.repeat(data.fold, per_row).astype(np.int64) * n_labels + data.Y.indices,
        minlength=data.n_folds * n_labels,
    ).reshape(data.n_folds, n_labels)
    return inside.sum(axis=0) - inside


def _unknown_labels(data: TrainingSet, sources: list[Source], table: LabelDescriptions | None) -> np.ndarray:
    """Labels without a row, where no source tells of them. They are relevant nowhere, and teach nothing of
    others; an answer does not ask the ranker for them."""
    if table is not None and table.has_relations:
        return np.zeros(0, np.int64)
    unknown = data.Y.getnnz(axis=0) == 0
    return np.flatnonzero(unknown & ~labels_told_of(sources, len(unknown), partial(_named, data)))


def _named(data: TrainingSet, scorer: LabelScorer) -> list[np.ndarray]:
    """The labels with a known word in what a source reads, by name and by other name."""
    if scorer.reads_word_order:
        return [] if data.name_forms is None else [data.name_forms.labels]
    text, others = getattr(data, scorer.source), data.other_names.get(scorer.source)
    found = [] if text is None else [np.flatnonzero(np.diff(text.indptr))]
    return found if others is None else [*found, others.label]


def pairs_to_rank(
    given: TrainingInput, lists: TrainingLists, sources: list[Source], options: FitOptions
) -> PairsToRank:
    """The training data of the ranker without the columns."""
    rows, candidates, weight = lists.rows, lists.proposed.described, given.weight
    return PairsToRank(
        options.ranker,
        given.aggregation,
        candidates,
        lists.proposed.of_described(lists.gains),
        None if weight is None else weight[rows],
        lists.fold,
        options.seed,
        is_classifier=[scorer.is_classifier for scorer in describers(sources)],
        is_shortlisted=lists.is_shortlisted,
        standardize=options.standardizes,
        targets={name: candidates.values_of(of[rows]) for name, of in given.labels.targets.items()},
        outer=_judged_on(lists, options),
        groups=lists.groups,
        rejected=None if lists.rejected is None else lists.proposed.of_described(lists.rejected),
        shown=_with_rows(lists, describers(sources)),
        relations=None if given.labels.table is None else given.labels.table.relations,
        is_given=any(scorer.proposes_given for scorer in proposers(sources)),
        effort=options.effort,
        described=None if lists.points is None else lists.described,
    )


def _judged_on(lists: TrainingLists, options: FitOptions) -> list[OuterPart[Any]] | Literal["nested"] | None:
    """The parts on which quality, calibration and cuts are learned; see `metarank.scorers.crossfit`."""
    fold = lists.data.fold[lists.rows]
    sizes = np.unique(fold, return_counts=True)[1]
    if len(sizes) < 2:  # described by one View, which knows nothing of these rows
        return None
    if nests(lists.data, len(lists.rows), lists.candidates.n_pairs, lists.is_shortlisted, options.effort):
        return "nested"
    if lists.is_shortlisted or sizes.min() < auto.LEAST_INNER_ROWS:
        return None
    inner = _inner_folds(lists, fold, options.seed + _FOLD_SHIFT)
    return None if inner is None else inner_parts(fold, inner)


def _inner_folds(lists: TrainingLists, fold: np.ndarray, seed: int) -> np.ndarray | None:
    """A division of each fold, int32 (r,); None if a fold has too few groups to be divided."""
    if lists.groups is None:
        return fold_of_rows(len(fold), auto.INNER_PARTS, seed, lists.X)
    inner, unit = np.zeros(len(fold), np.int32), lists.unit
    for f in np.unique(fold):
        own = np.flatnonzero(fold == f)
        if len(np.unique(unit[own])) < auto.INNER_PARTS:
            return None
        inner[own] = fold_of_rows(len(own), auto.INNER_PARTS, seed, groups=unit[own])
    return inner


def nests(data: TrainingSet, n_rows: int, n_pairs: int, is_shortlisted: bool, effort: str) -> bool:
    """Whether the ranker learns from all rows, with few enough pairs to describe them again."""
    most = auto.NESTED_SHORTLISTED_PAIRS if is_shortlisted else auto.NESTED_PAIRS
    if effort == "low":
        most //= auto.LOW_NESTS_LESS
    return n_rows == len(data.fold) and n_pairs <= most and can_nest(data)


def _with_rows(lists: TrainingLists, scorers: list[LabelScorer]) -> np.ndarray | None:
    """bool (m,): pairs whose label has rows outside the row's fold; None if some source also reads names
    or what others say."""
    if any(scorer.reads_names or scorer.reads_given for scorer in scorers):
        return None
    data, candidates = lists.data, lists.proposed.described
    fold = data.fold[lists.rows[candidates.row_of_pair]]
    shown: np.ndarray = rows_outside(data)[fold, candidates.labels] > 0
    return shown

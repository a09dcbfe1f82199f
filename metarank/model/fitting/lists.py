"""`training_lists`: the rows and candidate pairs that the ranker learns from."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from metarank._util.progress import note
from metarank.metrics.propensity import inv_propensity
from metarank.model.best_points import point_lists
from metarank.model.cascade import Lists, learned_cascade, united, wide_enough
from metarank.model.fitting import auto
from metarank.model.fitting.auto import FitOptions
from metarank.model.fitting.inputs import TrainingInput
from metarank.model.fitting.sources import pairs_per_row
from metarank.model.fitting.stages import LocalStages, TrainingLists
from metarank.ranker.lists import drawn
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import OuterPart, can_nest, inner_parts
from metarank.scorers.source import Source, describers, labels_told_of, proposers
from metarank.types.candidates import Candidates
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.view import Features, TrainingSet, first_of_unit, fold_of_rows

# Makes the folds of the ranker independent of those of its columns, where they differ.
_FOLD_SHIFT = 3_000_017


def ranked_rows(data: TrainingSet, sources: list[Source], options: FitOptions) -> np.ndarray:
    """Rows of as many folds as needed, within the limit on pairs: each fold costs a fit of every source
    without it."""
    n, n_folds, proposing = len(data.fold), int(data.fold.max()) + 1, len(proposers(sources))
    by_relevance = math.ceil(auto.ENOUGH_RELEVANT_PAIRS * n / max(1, data.Y.nnz))
    enough = min(auto.ENOUGH_ROWS, by_relevance)
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
    kept = rows if len(rows) <= budget else rows[drawn(len(rows), budget, options.seed + 1)]
    if len(kept) < n:
        note(f"ranker: learns from {len(kept)} of {n} rows")
    return kept


def training_lists(
    given: TrainingInput, data: TrainingSet, rows: np.ndarray, sources: list[Source], stages: LocalStages
) -> TrainingLists:
    """The candidates of the rows that the ranker learns from, proposed by fits without the row's fold."""
    fold, X, options = data.fold[rows], given.X if len(rows) == given.n_rows else given.X[rows], given.options
    groups = None if data.groups is None else data.groups[rows]
    # Rows of only some folds are held out by their views already; the ranker gets folds of its own.
    if len(np.unique(fold)) < data.n_folds:
        fold = fold_of_rows(len(rows), options.n_folds, options.seed + _FOLD_SHIFT, X, groups)
    proposals = stages.propose(sources, rows, options.shortlist_size)
    candidates = _candidates(given, data, rows, sources, proposals)
    gains = candidates.values_of(data.Y[rows])
    proposed, is_shortlisted = Lists(candidates), bool(proposals)
    is_given = any(scorer.proposes_given for scorer in proposers(sources))
    is_own = is_shortlisted and not is_given and not given.labels.targets
    if is_own and given.n_rows >= auto.ROWS_FOR_PROPENSITY:
        proposed = _filtered(given, data, rows, candidates, proposals, gains, fold)
    describing, ranked = describers(sources), proposed.described
    reads_more = any(scorer.reads_names or scorer.reads_given for scorer in describing)
    seen = None if reads_more else rows_outside(data)
    points = None
    if options.labelwise:
        held_out = stages.propose_points(sources, rows, options.shortlist_size)
        points = point_lists(data, rows, sources, proposals, held_out, given.excluded, seen, options)
    unit = first_of_unit(len(rows), X, groups)
    return TrainingLists(
        rows,
        fold,
        unit,
        groups,
        proposed,
        gains,
        options,
        weight=None if given.weight is None else given.weight[rows],
        aggregation=given.aggregation,
        is_shortlisted=is_shortlisted,
        is_given=is_given,
        targets={name: ranked.values_of(of[rows]) for name, of in given.labels.targets.items()},
        outer=_judged_on(data, rows, X, unit, candidates.n_pairs, is_shortlisted, options),
        # Pairs whose label has rows outside the row's fold.
        shown=None if seen is None else seen[data.fold[rows[ranked.row_of_pair]], ranked.labels] > 0,
        labels=given.labels.table,
        rejected=None if given.negatives is None else candidates.among(given.negatives.rows(rows)),
        points=points,
    )


def _candidates(
    given: TrainingInput, data: TrainingSet, rows: np.ndarray, sources: list[Source], lists: list[Candidates]
) -> Candidates:
    """The united proposals, or all labels of which anything is known, without those that are excluded."""
    candidates = united(lists, len(rows), given.n_labels)
    if not lists:
        known = candidates.without_labels(_unknown_labels(data, sources, given.labels.table))
        relevant = np.diff(data.Y[rows].indptr)
        if np.any((relevant > 0) & (np.diff(known.indptr) > relevant)):  # else nothing is left to be ordered
            candidates = known
    if given.excluded is not None:
        candidates = candidates.without(given.excluded.rows(rows))
        if candidates.n_pairs == 0:
            raise ValueError("exclude must leave at least one candidate in the training rows, it leaves none")
    return candidates


def _filtered(
    given: TrainingInput,
    data: TrainingSet,
    rows: np.ndarray,
    candidates: Candidates,
    proposals: list[Candidates],
    gains: np.ndarray,
    fold: np.ndarray,
) -> Lists:
    """What a cascade leaves of the candidates: all where they are no longer than is worth it."""
    n_jobs, per_row = given.options.n_jobs, data.Y.nnz / given.n_rows
    out = learned_cascade(
        candidates,
        proposals,
        held_out_inv_propensity(data, rows, candidates),
        gains,
        fold=fold,
        weight=None if given.weight is None else given.weight[rows],
        seed=given.options.seed,
        survivors=max(auto.LEAST_SURVIVORS, math.ceil(auto.SURVIVORS_PER_LABEL * per_row)),
        n_jobs=n_jobs,
    )
    if out is not None:
        weights = weights_of_labels(data.Y)
        out = wide_enough(out, proposals, data.Y[rows] > 0, inv_propensity=weights, n_jobs=n_jobs)
    if out is None or out.cascade is None:
        return Lists(candidates)
    note(f"cascade: {out.cascade.survivors} candidates per row get all meta-features, by held-out rows")
    return out


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
    text, others = getattr(data, scorer.reads_text), data.other_names.get(scorer.reads_text)
    named = [] if text is None else [np.flatnonzero(np.diff(text.indptr))]
    return named if others is None else [*named, others.label]


def _judged_on(
    data: TrainingSet,
    rows: np.ndarray,
    X: Features,
    unit: np.ndarray,
    n_pairs: int,
    is_shortlisted: bool,
    options: FitOptions,
) -> list[OuterPart[Any]] | Literal["nested"] | None:
    """The parts on which estimates, calibration and thresholds are learned; see
    `metarank.scorers.crossfit`."""
    fold = data.fold[rows]
    sizes = np.unique(fold, return_counts=True)[1]
    if len(sizes) < 2:  # described by one TrainingView, which knows nothing of these rows
        return None
    # Where the ranker learns from all rows, with few enough pairs to describe them again.
    most = auto.NESTED_SHORTLISTED_PAIRS if is_shortlisted else auto.NESTED_PAIRS
    most = most // auto.LOW_NESTS_LESS if options.effort == "low" else most
    if len(rows) == len(data.fold) and n_pairs <= most and can_nest(data):
        return "nested"
    if is_shortlisted or sizes.min() < auto.LEAST_INNER_ROWS:
        return None
    seed = options.seed + _FOLD_SHIFT
    if data.groups is None:
        return inner_parts(fold, fold_of_rows(len(fold), auto.INNER_PARTS, seed, X))
    inner = np.zeros(len(fold), np.int32)
    for f in np.unique(fold):
        of_fold = np.flatnonzero(fold == f)
        if len(np.unique(unit[of_fold])) < auto.INNER_PARTS:
            return None
        inner[of_fold] = fold_of_rows(len(of_fold), auto.INNER_PARTS, seed, groups=unit[of_fold])
    return inner_parts(fold, inner)


def weights_of_labels(Y: sp.csr_matrix) -> np.ndarray:
    """Inverse propensities of the labels, float64 (L,); all 1 with fewer than three rows."""
    return inv_propensity(Y) if Y.shape[0] >= 3 else np.ones(Y.shape[1])


def held_out_inv_propensity(data: TrainingSet, rows: np.ndarray, candidates: Candidates) -> np.ndarray:
    """Inverse propensity of the label of each pair of training rows, from the rows outside the row's fold.

    Counts that include the row itself would reveal which of two rare labels it has.

    Returns
    -------
    float64 array (m,)
    """
    out = np.empty(candidates.n_pairs)
    pair_fold = np.repeat(data.fold[rows], np.diff(candidates.indptr))
    for fold in np.unique(pair_fold):
        others = data.without_fold(int(fold))
        weight = inv_propensity(others.label_counts, n_points=others.n_rows)
        inside = pair_fold == fold
        out[inside] = weight[candidates.labels[inside]]
    return out

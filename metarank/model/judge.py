"""`judge`: cuts, the weight of rare labels and expected quality, from the held-out scores of the ranker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metarank._util.progress import as_part, note
from metarank.metrics.resampling import Interval
from metarank.model import auto
from metarank.model.held_out import held_out_quality
from metarank.model.parameters import FitOptions
from metarank.model.propensity_weight import (
    held_out_inv_propensity,
    tuned_propensity_weight,
    weights_of_labels,
)
from metarank.model.stages import LocalStages, RankedPairs
from metarank.model.training_lists import TrainingLists, drawn_rows
from metarank.thresholds import LearnedCuts
from metarank.types.missing import MissingPairs


@dataclass(frozen=True, eq=False)
class Judged:
    """The results of `judge`."""

    thresholds: LearnedCuts
    propensity_weight: float
    missing: MissingPairs
    quality: dict[str, Interval]


def judge(
    found: RankedPairs,
    lists: TrainingLists,
    stages: LocalStages,
    options: FitOptions,
    *,
    has_one_target: bool,
) -> Judged:
    """Learn calibration, cuts and the weight of rare labels, and estimate the quality on new rows."""
    data, rows, scores = lists.data, lists.rows, lists.proposed.evidence(found.scores)
    # Cuts are learned from labels that have rows.
    shown = data.shows(rows[lists.candidates.row_of_pair], lists.candidates.labels)
    with as_part("thresholds", 0.8, 0.05):
        group = lists.unit
        believed, ahead = lists.gains, lists.proposed.ahead
        if found.gains is not None:
            believed = believed.copy()
            believed[slice(None) if ahead is None else ahead] = found.gains
        thresholds = _cuts(lists, scores, believed, shown, group, stages, options)
    probabilities = thresholds.probabilities(lists.candidates, scores)
    judged = lists.gains > 0 if lists.rejected is None else (lists.gains > 0) | lists.rejected
    missing = MissingPairs.surest(lists.candidates, probabilities, judged, rows)
    weight = _weight_of_rare_labels(lists, scores, thresholds, stages, options, has_one_target)
    weighs = weight * thresholds.scores_per_logit
    return Judged(
        thresholds, weight, missing, _quality(lists, scores, shown, group, thresholds, weighs, options.n_jobs)
    )


def _cuts(
    lists: TrainingLists,
    scores: np.ndarray,
    believed: np.ndarray,
    shown: np.ndarray,
    group: np.ndarray,
    stages: LocalStages,
    options: FitOptions,
) -> LearnedCuts:
    """Calibration and cuts, from as many whole rows as the limit on pairs allows.

    `believed` are the gains (m,) with those of unjudged pairs that count as relevant.
    """
    every, fold, seed = lists.candidates, lists.fold, options.seed
    unseen = np.bincount(every.row_of_pair[~shown & (lists.gains > 0)], minlength=len(lists.rows))
    n_relevant = np.diff(lists.data.Y.indptr)[lists.rows] - unseen
    # A row whose labels were all hidden would teach that nothing is worth keeping.
    kept = np.flatnonzero((n_relevant > 0) | (unseen == 0))
    candidates, scores, gains, labelled = (
        every.where(shown),
        scores[shown],
        believed[shown],
        lists.gains[shown],
    )
    most = auto.FEWER_CUT_PAIRS if options.effort == "low" else auto.CUT_PAIRS
    if candidates.n_pairs > most:
        per_row = candidates.n_pairs / candidates.n_rows
        kept = kept[drawn_rows(len(kept), max(1, int(most / per_row)), seed + 2)]
    if len(kept) < candidates.n_rows:
        inside = np.repeat(np.isin(np.arange(candidates.n_rows), kept), np.diff(candidates.indptr))
        candidates, scores, gains = candidates.rows(kept), scores[inside], gains[inside]
        labelled, fold, group, n_relevant = labelled[inside], fold[kept], group[kept], n_relevant[kept]
    missed = n_relevant - np.bincount(candidates.row_of_pair[labelled > 0], minlength=candidates.n_rows)
    if lists.rejected is not None:  # labels that are no candidates are unlabelled as often as others
        per_labelled = np.count_nonzero(gains > 0) / (np.count_nonzero(labelled > 0) or 1)
        missed = round(int(missed.sum()) * per_labelled)
    learner, given = LearnedCuts(options.threshold), (candidates, scores, gains)
    whole = lists.groups is not None
    return stages.decided(
        "thresholds",
        (options.threshold, candidates.indptr, candidates.labels, scores, gains, fold, group, missed, seed),
        lambda: learner.fit(
            *given, fold=fold, group=group, missed=missed, seed=seed, draws_whole_groups=whole
        ),
    )


def _weight_of_rare_labels(
    lists: TrainingLists,
    scores: np.ndarray,
    thresholds: LearnedCuts,
    stages: LocalStages,
    options: FitOptions,
    has_one_target: bool,
) -> float:
    """The weight of log 1/p beside the log-odds: given, or chosen on out-of-fold scores."""
    data, rows, candidates = lists.data, lists.rows, lists.candidates
    per_unit = thresholds.scores_per_logit
    if not isinstance(options.propensity_weight, str):
        return float(options.propensity_weight)
    enough = data.Y.shape[0] >= auto.ROWS_FOR_PROPENSITY
    if not (lists.is_shortlisted and has_one_target and enough and per_unit > 0):
        return 0.0

    def choose() -> float:
        return tuned_propensity_weight(
            candidates,
            scores / per_unit,
            np.log(held_out_inv_propensity(data, rows, candidates)),
            data.Y[rows],
            inv_propensity=weights_of_labels(data.Y),
            n_jobs=options.n_jobs,
        )

    inputs = (candidates.indptr, candidates.labels, scores, per_unit, rows)
    weight = stages.decided("propensity-weight", inputs, choose)
    note(f"propensity_weight: {weight:g}, by PSP@5 and nDCG@5 of held-out rows")
    return weight


def _quality(
    lists: TrainingLists,
    scores: np.ndarray,
    shown: np.ndarray,
    group: np.ndarray,
    thresholds: LearnedCuts,
    weight: float,
    n_jobs: int,
) -> dict[str, Interval]:
    """Quality of the ranking scores, with the lean by the propensities outside the row's fold."""
    data, rows = lists.data, lists.rows
    candidates, scores, Y = lists.candidates.where(shown), scores[shown], data.Y[rows]
    if weight:
        scores = scores + weight * np.log(held_out_inv_propensity(data, rows, candidates))
    if data.hidden_in is not None:
        of_entry = np.repeat(rows, np.diff(Y.indptr))
        Y.data = Y.data * data.shows(of_entry, Y.indices)
        Y.eliminate_zeros()
    return held_out_quality(candidates, scores, Y, group, thresholds, n_jobs)

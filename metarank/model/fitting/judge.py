"""`judge`: thresholds, propensity weight and held-out estimates, from held-out scores of the ranker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from metarank._util.progress import as_part, note
from metarank.metrics import evaluate, per_row
from metarank.metrics.resampling import Interval
from metarank.model.fitted import ORDER, SETS
from metarank.model.fitting import auto
from metarank.model.fitting.lists import held_out_inv_propensity, rows_outside, weights_of_labels
from metarank.model.fitting.stages import RankedPairs, TrainingLists
from metarank.model.known_labels import KnownLabels
from metarank.ranker.lists import drawn_lists
from metarank.thresholds import LearnedThresholds
from metarank.types.candidates import Candidates
from metarank.types.suggested import MissingPairs
from metarank.types.view import TrainingSet


@dataclass(frozen=True, eq=False)
class Judged:
    """The results of `judge`."""

    thresholds: LearnedThresholds
    propensity_weight: float
    tuned_weight: float
    missing: MissingPairs
    quality: dict[str, Interval]
    known_labels: KnownLabels | None = None


def judge(ranked: RankedPairs, lists: TrainingLists, data: TrainingSet) -> Judged:
    """Learn calibration, thresholds and propensity weight, and estimate metrics on new rows."""
    rows, candidates, scores = lists.rows, lists.proposed.candidates, lists.proposed.evidence(ranked.scores)
    # Thresholds are learned from labels that have rows.
    shown = data.shows(rows[candidates.row_of_pair], candidates.labels)
    outside = rows_outside(data)
    # If all labels are those of the rows, new rows have labels that a model cannot know, nor find by name.
    by_name = lists.is_shortlisted and lists.shown is None
    are_of_rows = by_name and lists.labels is None and bool(data.Y.getnnz(axis=0).all())
    if are_of_rows:
        shown = shown & (outside[data.fold[rows[candidates.row_of_pair]], candidates.labels] > 0)
    Y = data.Y[rows]
    if data.hidden_in is not None:
        Y.data = Y.data * data.shows(np.repeat(rows, np.diff(Y.indptr)), Y.indices)
        Y.eliminate_zeros()
    with as_part("thresholds", 0.8, 0.04):
        believed, ahead = lists.gains, lists.proposed.ahead
        if ranked.gains is not None:
            believed = believed.copy()
            believed[slice(None) if ahead is None else ahead] = ranked.gains
        thresholds = _thresholds(lists, scores, believed, shown, Y)
    probabilities = thresholds.probabilities(candidates, scores)
    judged = lists.gains > 0 if lists.rejected is None else (lists.gains > 0) | lists.rejected
    missing = MissingPairs.surest(candidates, probabilities, judged, rows)
    known = None
    if lists.options.effort != "low" and not lists.targets:
        logits = thresholds.logits(candidates, scores)
        how = lists.options.seed, lists.options.n_jobs
        with as_part("known labels", 0.84, 0.01):
            known = KnownLabels.learned(data, rows, candidates, logits, *how)
    candidates, scores = candidates.where(shown), scores[shown]
    tuned = _weight_of_rare_labels(lists, candidates, scores, thresholds.scores_per_logit, data)
    asked = lists.options.propensity_weight
    weight = tuned if isinstance(asked, str) else float(asked)
    if weight:  # the boost by the propensities outside the row's fold
        rarity = np.log(held_out_inv_propensity(data, rows, candidates))
        scores = scores + weight * thresholds.scores_per_logit * rarity
    unseen = np.mean(outside[data.fold[np.repeat(rows, np.diff(Y.indptr))], Y.indices] == 0) if Y.nnz else 0.0
    missed = f"; a share of {unseen:.3f} of their labels has no row in another fold" if unseen else ""
    missed += " and counts as missed" * bool(are_of_rows and unseen)
    note(f"held-out estimates: of {len(rows)} rows{missed}; macro-F1 is over the labels of these rows")
    quality = held_out_quality(candidates, scores, Y, lists.unit, thresholds, lists.options.n_jobs)
    return Judged(thresholds, weight, tuned, missing, quality, known)


def _thresholds(
    lists: TrainingLists, scores: np.ndarray, believed: np.ndarray, shown: np.ndarray, Y: sp.csr_matrix
) -> LearnedThresholds:
    """Calibration and thresholds, from as many whole rows as the limit on pairs allows.

    `believed` are the gains (m,) with those of unjudged pairs that count as relevant, Y the relevances that
    are shown.
    """
    candidates, fold, group, options = lists.proposed.candidates, lists.fold, lists.unit, lists.options
    unseen = np.bincount(candidates.row_of_pair[~shown & (lists.gains > 0)], minlength=len(lists.rows))
    n_relevant = np.diff(Y.indptr)
    # A row whose labels were all hidden would teach that nothing is worth keeping.
    kept = np.flatnonzero((n_relevant > 0) | (unseen == 0))
    candidates, scores, gains = candidates.where(shown), scores[shown], believed[shown]
    labelled = lists.gains[shown]
    most = auto.FEWER_THRESHOLD_PAIRS if options.effort == "low" else auto.THRESHOLD_PAIRS
    of_rows = auto.LEAST_THRESHOLD_ROWS * candidates.n_pairs // candidates.n_rows
    most = max(most, min(of_rows, auto.MOST_THRESHOLD_PAIRS))
    if candidates.n_pairs > most:
        kept = kept[drawn_lists(np.diff(candidates.indptr)[kept], most, options.seed + 2)]
        note(f"thresholds: learned from {len(kept)} of {candidates.n_rows} held-out rows: {most:,} pairs")
    if len(kept) < candidates.n_rows:
        inside = np.repeat(np.isin(np.arange(candidates.n_rows), kept), np.diff(candidates.indptr))
        candidates, scores, gains = candidates.rows(kept), scores[inside], gains[inside]
        labelled, fold, group, n_relevant = labelled[inside], fold[kept], group[kept], n_relevant[kept]
    missed = n_relevant - np.bincount(candidates.row_of_pair[labelled > 0], minlength=candidates.n_rows)
    listed = np.bincount(candidates.labels[labelled > 0], minlength=candidates.n_labels)
    missed_of_label = np.bincount(Y[kept].indices, minlength=candidates.n_labels) - listed
    if lists.rejected is not None:  # labels that are no candidates are unlabelled as often as others
        per_labelled = np.count_nonzero(gains > 0) / (np.count_nonzero(labelled > 0) or 1)
        missed = round(int(missed.sum()) * per_labelled)
    return LearnedThresholds(options.threshold, in_order=True).fit(
        candidates,
        scores,
        gains,
        fold=fold,
        group=group,
        missed=missed,
        missed_of_label=missed_of_label,
        seed=options.seed,
        draws_whole_groups=lists.groups is not None,
    )


def _weight_of_rare_labels(
    lists: TrainingLists, candidates: Candidates, scores: np.ndarray, per_logit: float, data: TrainingSet
) -> float:
    """The weight of log 1/p beside the log-odds that "auto" stands for, by out-of-fold scores."""
    options = lists.options
    enough = data.Y.shape[0] >= auto.ROWS_FOR_PROPENSITY
    if not (lists.is_shortlisted and not lists.targets and enough and per_logit > 0):
        return 0.0
    weight = tuned_propensity_weight(
        candidates,
        scores / per_logit,
        np.log(held_out_inv_propensity(data, lists.rows, candidates)),
        data.Y[lists.rows] > 0,
        inv_propensity=weights_of_labels(data.Y),
        n_jobs=options.n_jobs,
    )
    called = "'auto' is" if isinstance(options.propensity_weight, str) else "not 'auto', which would be"
    note(f"propensity_weight: {called} {weight:g}, by PSP@5 and nDCG@5 of held-out rows")
    return weight


WEIGHTS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# The share of nDCG@5 that may be traded for PSP@5.
_GIVEN = 0.01


def tuned_propensity_weight(
    candidates: Candidates,
    logits: np.ndarray,
    log_inv_propensity: np.ndarray,
    relevant: sp.csr_matrix,
    *,
    inv_propensity: np.ndarray,
    n_jobs: int = 1,
) -> float:
    """The weight of greatest PSP@5 among those that cost at most 1 % of the best nDCG@5.

    Parameters
    ----------
    candidates : Candidates of n rows
    logits : float array (m,)
        Log-odds of relevance from models that did not see the rows.
    log_inv_propensity : float array (m,)
        log(1/p) of each pair's label, without the row.
    relevant : CSR (n, L) of 0 and 1
    inv_propensity : float array (L,)
        The 1/p of PSP@5.
    n_jobs : int

    Examples
    --------
    >>> pairs = Candidates.all_labels(1, 3)
    >>> Y = sp.csr_matrix(np.array([[0, 1, 0]], np.float32))
    >>> rare = np.log([1.0, 9.0, 1.0])
    >>> tuned_propensity_weight(pairs, np.array([0.3, 0.0, -9]), rare, Y, inv_propensity=np.exp(rare))
    0.15
    """
    quality = {}
    for weight in WEIGHTS:
        scores = candidates.to_csr((logits + weight * log_inv_propensity).astype(np.float32))
        quality[weight] = evaluate(
            relevant, scores, ["nDCG@5", "PSP@5"], inv_propensity=inv_propensity, n_jobs=n_jobs
        )
    least = (1 - _GIVEN) * max(of["nDCG@5"] for of in quality.values())
    good = [weight for weight, of in quality.items() if of["nDCG@5"] >= least]
    return max(good, key=lambda weight: quality[weight]["PSP@5"], default=0.0)


# Standard errors on each side of a mean in a 95 % interval.
_WIDTH = 1.959964


def held_out_quality(
    candidates: Candidates,
    scores: np.ndarray,
    Y: sp.csr_matrix,
    group: np.ndarray,
    thresholds: LearnedThresholds,
    n_jobs: int = 1,
) -> dict[str, Interval]:
    """Metrics of the order, and of the label sets if their thresholds were compared, with 95 % intervals.

    Parameters
    ----------
    candidates : Candidates of n rows
    scores : float array (m,)
        Ranking scores from rankers that did not see the row.
    Y : CSR (n, L)
        The rows' relevances, including labels that are not candidates.
    group : int array (n,)
        Rows with the same number are copies, and count as one row in the width of an interval.
    thresholds : fitted LearnedThresholds
    n_jobs : int

    Returns
    -------
    dict of str to Interval
        Means over rows, with the interval of a mean over groups. A metric without a row to count is left out.

    Examples
    --------
    >>> pairs = Candidates.all_labels(2, 2)
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [0, 1]]))
    >>> learner = LearnedThresholds().fit(pairs, np.arange(4.0), Y.toarray().ravel(), fold=np.array([0, 1]))
    >>> held_out_quality(pairs, np.array([2.0, 1, 1, 2]), Y, np.arange(2), learner)["P@1"]
    Interval(value=1.0, low=0.0, high=1.0)
    """
    ranked = candidates.to_csr(scores.astype(np.float32))
    of_rows = {name: per_row(Y, ranked, name, n_jobs=n_jobs) for name in ORDER}
    quality = {name: _mean(values, group) for name, values in of_rows.items() if not np.isnan(values).all()}
    return quality | {SETS[metric]: Interval(*values) for metric, values in thresholds.held_out_.items()}


def _mean(values: np.ndarray, group: np.ndarray) -> Interval:
    """The mean of the rows that count, with an interval from the spread of the groups' sums.

    If all values are equal, the interval contains the shares for which that happens in one of twenty samples
    (rule of three).
    """
    counted = ~np.isnan(values)
    values, group = values[counted], np.unique(group[counted], return_inverse=True)[1]
    mean = float(values.mean())
    n_groups = int(group.max()) + 1
    away = np.bincount(group, weights=values - mean)
    correction = n_groups / max(1, n_groups - 1)
    width = _WIDTH * float(np.sqrt(correction * np.sum(away**2))) / len(values)
    if not width:
        return Interval(mean, max(0.0, mean - 3 / n_groups), min(1.0, mean + 3 / n_groups))
    return Interval(mean, max(0.0, mean - width), min(1.0, mean + width))

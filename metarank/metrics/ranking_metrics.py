"""Metrics of ranked labels.

All of them take

- ``Y_true``: (n, L) array or sparse matrix of relevances >= 0; relevant means > 0;
- ``scores``: a `Ranking`, `Candidates`, or an (n, L) array or sparse matrix of scores. Labels that are
  *not listed* (not in the `Ranking`, not stored by the sparse matrix, or with score -inf) are tied
  below all others. NaN is a ValueError.

Labels are ranked by descending score. Two rules for ties, stated by each metric:

- *by label*: ties go to the smaller label id, and a label that is not listed never counts as found;
- *pessimistic*: ties count against the prediction, as in scikit-learn's `label_ranking_loss`,
  `coverage_error` and `label_ranking_average_precision_score`, with which the values agree.

Values are fractions in [0, 1] (Coverage: label positions), NaN where no row counts.
"""

from __future__ import annotations

import numpy as np

from metarank._util.elementary import log2
from metarank.metrics.inputs import Inputs
from metarank.metrics.statistics import Statistics, mean


def precision_rows(inputs: Inputs, k: int) -> Statistics:
    """Share of relevant labels among the first k, averaged over all rows: P@k.

    Divides by k even where k > L or fewer labels are listed; a row without a relevant label counts 0.
    Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["P@2"])["P@2"]
    0.5
    """
    return mean(inputs.row_sum(inputs.rank <= k) / k)


def recall_rows(inputs: Inputs, k: int) -> Statistics:
    """Share of the relevant labels found among the first k: R@k.

    Rows without a relevant label are left out. Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["R@2"])["R@2"]
    0.75
    """
    return mean(over_relevant(inputs, inputs.row_sum(inputs.rank <= k)))


def f1_rows(inputs: Inputs, k: int) -> Statistics:
    """F1 of the first k labels, averaged over all rows: F1@k, 2 hits / (k + number of relevant labels).

    Annif's ``F1@5``, except in rows with fewer than k listed labels: here k still counts, as in
    P@k. A row without a relevant label counts 0. Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (2/4 + 2/3) / 2
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["F1@2"])["F1@2"]
    0.5833333333333333
    """
    return mean(2 * inputs.row_sum(inputs.rank <= k) / (k + inputs.n_relevant))


def ndcg_rows(inputs: Inputs, k: int | None) -> Statistics:
    """Normalised discounted cumulative gain of the first k labels, or of the full list: nDCG@k, nDCG.

    Yang & Gopal (2012), eq. 7 to 9, with graded gains: the sum of ``y / log2(1 + rank)`` over the
    relevant labels of rank <= k, divided by its greatest possible value, the same sum with the
    min(k, number of relevant labels) greatest y first. Rows without a relevant label are left out.
    Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> round(evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["nDCG"])["nDCG"], 4)  # (1 + 1/2) / (1 + 1/log2(3))
    0.9197
    >>> round(evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["nDCG@2"])["nDCG@2"], 4)
    0.6131
    """
    return mean(divide(*discounted_gains(inputs, inputs.gain, inputs.best_gain, k)))


def average_precision_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Mean over rows of the average precision at the relevant labels' ranks: MAP.

    Yang & Gopal (2012), eq. 3 and 4, counting ``r(c') <= r(c)``: for each relevant label, the share of
    relevant ones among the labels with a score at least as great. Equals scikit-learn's
    `label_ranking_average_precision_score`, except that rows without a relevant label are left out.
    Ties: pessimistic.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> round(evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["MAP"])["MAP"], 4)  # (1 + 2/3) / 2
    0.8333
    """
    precision = (inputs.last - inputs.not_below) / inputs.last
    return mean(over_relevant(inputs, inputs.row_sum(precision)))


def ranking_loss_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of the pairs of a relevant and an irrelevant label that are in the wrong order: RankLoss.

    Yang & Gopal (2012), eq. 5 and 6; a tie is a wrong order, as in scikit-learn's `label_ranking_loss`.
    Rows without a relevant label are left out; a row without an irrelevant one counts 0.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["RankLoss"])["RankLoss"]
    0.5
    """
    n_pairs = inputs.n_relevant * (inputs.n_labels - inputs.n_relevant)
    return mean(over_relevant(inputs, inputs.row_sum(inputs.not_below), np.maximum(n_pairs, 1)))


def one_error_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Share of rows whose first label is irrelevant: One-error.

    Yang & Gopal (2012), eq. 17. Rows without a relevant label are left out. Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["One-error"])["One-error"]
    0.5
    """
    return mean(over_relevant(inputs, 1.0 - inputs.row_sum(inputs.rank == 1), 1.0))


def coverage_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Position of the last relevant label in the list: Coverage, from 0 to L - 1.

    Yang & Gopal (2012), eq. 18: the greatest rank of a relevant label, minus 1 (scikit-learn's
    `coverage_error` does not subtract). Rows without a relevant label are left out. Ties: pessimistic.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["Coverage"])["Coverage"]
    1.5
    """
    return mean(inputs.row_max(inputs.last) - 1.0)


def reciprocal_rank_rows(inputs: Inputs, k: int | None) -> Statistics:
    """Mean of 1 / rank of the first relevant label, 0 where it is not among the first k: MRR, MRR@k.

    Rows without a relevant label are left out. Ties by label.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 0, 1]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]], ["MRR"])["MRR"]
    0.75
    """
    return mean(inputs.row_max(np.where(within(inputs.rank, k), 1.0 / inputs.rank, 0.0)))


def reciprocal_rank_all_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Mean of 1 / rank over *all* relevant labels of a row, averaged over rows: MRR-all.

    The MRR of Jain et al. (2016), Table 1, without propensities. Rows without a relevant label are
    left out. Ties by label. A perfect ranking has a value below 1 where several labels are relevant.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> round(evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["MRR-all"])["MRR-all"], 4)  # (1 + 1/3) / 2
    0.6667
    """
    return mean(over_relevant(inputs, inputs.row_sum(1.0 / inputs.rank)))


def average_discounted_gain_rows(inputs: Inputs, k: None = None) -> Statistics:
    """Mean of 1 / log2(1 + rank) over all relevant labels of a row, averaged over rows: ADG.

    Jain et al. (2016), Table 1, without propensities. Rows without a relevant label are left out.
    Ties by label. A perfect ranking has a value below 1 where several labels are relevant.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["ADG"])["ADG"]  # (1 + 1/2) / 2
    0.75
    """
    return mean(over_relevant(inputs, inputs.row_sum(discount(inputs.rank, None))))


def first_gains(
    inputs: Inputs, gain: np.ndarray, best_gain: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """(attained, best possible) sum of the gains of each row's first k labels."""
    return inputs.row_sum(gain * (inputs.rank <= k)), inputs.row_sum(best_gain * (inputs.best_rank <= k))


def discounted_gains(
    inputs: Inputs, gain: np.ndarray, best_gain: np.ndarray, k: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(attained, best possible) sum of each row's gains, each with the discount of its rank."""
    attained = inputs.row_sum(gain * discount(inputs.rank, k))
    return attained, inputs.row_sum(best_gain * discount(inputs.best_rank, k))


def within(rank: np.ndarray, k: int | None) -> np.ndarray:
    """Whether a rank is listed at all, or among the first k."""
    return np.isfinite(rank) if k is None else rank <= k


def discount(rank: np.ndarray, k: int | None) -> np.ndarray:
    """1 / log2(1 + rank) up to rank k, then 0."""
    return np.where(within(rank, k), 1.0 / log2(1.0 + rank), 0.0)


def divide(numerator: np.ndarray, denominator: np.ndarray | float) -> np.ndarray:
    """NaN where the denominator is 0."""
    denominator = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator != 0)


def over_relevant(
    inputs: Inputs, values: np.ndarray, denominator: np.ndarray | float | None = None
) -> np.ndarray:
    """values / denominator (by default the number of relevant labels), NaN in rows without any."""
    n = inputs.n_relevant
    return np.where(n > 0, divide(values, n if denominator is None else denominator), np.nan)

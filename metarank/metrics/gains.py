"""Ranking metrics of graded relevance and of relevance weighed by inverse propensity.

``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`, relevances of any size >= 0; ties by
label.

Graded: Prabhu et al. (2020), section 3. How relevant the first k labels are, and whether they are in order.
``labelwise`` swaps points and labels (the names end in "-l"): it judges the best points of each label, and
ties go to the smaller row number. With relevances ``y * w_l`` WP@k is PSP@k, with click-through rates it is
CTR@k, with ratings Rating@k.

Propensity-scored: ``inv_propensity`` is (L,), from `metarank.metrics.propensity.inv_propensity` of the
*training* labels. The gain of a label is ``y * w_l``. C@k counts the distinct labels shown.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs
from metarank.metrics.ranking_metrics import discounted_gains, divide, first_gains
from metarank.metrics.statistics import Statistics, attained, mean


def wp_rows(inputs: Inputs, k: int) -> Statistics:
    """Relevance of the first k labels over the greatest possible: WP@k, WP-l@k.

    The relevances of the first k labels summed over *all* rows, divided by the sum of the k greatest
    relevances of each row. Ranks without a listed label add nothing.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (3 + 1) / (3 + 1 + 1)
    >>> evaluate([[3, 0, 1], [0, 1, 0]], [[0.5, 0.9, 0.1], [0.2, 0.8, 0.4]], ["WP@2"])["WP@2"]
    0.8
    """
    return attained(*first_gains(inputs, inputs.gain, inputs.best_gain, k))


def wn_rows(inputs: Inputs, k: int) -> Statistics:
    """Discounted relevance of the first k labels over the greatest possible: WN@k, WN-l@k.

    As WP@k, with each relevance times ``1 / log2(1 + rank)``. For a single row it is nDCG@k.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> round(evaluate([[3, 0, 1]], [[0.5, 0.9, 0.1]], ["WN@2"])["WN@2"], 4)  # 3/log2(3) / (3 + 1/log2(3))
    0.5213
    """
    return attained(*discounted_gains(inputs, inputs.gain, inputs.best_gain, k))


def wp_regret_rows(inputs: Inputs, k: int) -> Statistics:
    """Shortfall of the mean relevance of the first k labels from the best possible: WP-regret@k.

    Eq. 9 (there Ranking-error@k): ``(1/k) sum_{S(y, k)} y - (1/k) sum_{S(yhat, k)} y``, averaged over all
    rows, relevances as shares of `scale` (by default the greatest in `Y_true`). Lemma 3.1: for
    predictions >= 0 it is at most twice XMAD@2k.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # (3 + 1) / 2 - (0 + 3) / 2
    >>> evaluate([[3, 0, 1]], [[0.5, 0.9, 0.1]], ["WP-regret@2"], scale=1)["WP-regret@2"]
    0.5
    """
    gained, best = first_gains(inputs, inputs.gain, inputs.best_gain, k)
    return mean((best - gained) / (k * inputs.scale))


def tau_rows(inputs: Inputs, k: int) -> Statistics:
    """Share of the pairs (first-k label, relevant label) that are not in the wrong order: Tau@k, Tau-l@k.

    A pair is in the wrong order if the relevant label stands below the other and is more relevant. The
    wrong pairs are summed over all rows and divided by the number of pairs, ``min(k, L)`` times the
    number of relevant labels::

        wrong_i = sum over l in S(yhat_i, k) of |{m : y_im > y_il, rank m > rank l}|
        Tau@k   = 1 - sum_i wrong_i / sum_i min(k, L) |{m : y_im > 0}|

    The value is 1 for a perfect ranking, and 0 at k = 1 if no first label is relevant. A rank without a
    listed label counts as irrelevant.

    Notes
    -----
    The paper's text lacks the formula. This is what the authors' published evaluation program computes (it
    prints the value as "AUC", as does the paper's Table 5), with two differences: the program skips ranks
    without a listed label, which rewards short lists, and it leaves ties out. Kendall's tau counts every pair
    of labels once. Where all L labels have different relevances above 0 and k = L, wrong pairs make up
    ``(1 - tau) (L - 1) / (4 L)``.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> # both relevant labels are wrongly below the first
    >>> evaluate([[3, 0, 1]], [[0.5, 0.9, 0.1]], ["Tau@1"])["Tau@1"]
    0.0
    >>> # none is wrongly below the second: 1 - 2/4
    >>> evaluate([[3, 0, 1]], [[0.5, 0.9, 0.1]], ["Tau@2"])["Tau@2"]
    0.5
    """
    n_places = min(k, inputs.n_labels)
    wrong = np.zeros(inputs.n_rows)
    for place in range(1, n_places + 1):
        here = inputs.rank == place
        grade = np.zeros(inputs.n_rows)
        grade[inputs.row[here]] = inputs.gain[here]
        wrong += inputs.row_sum((inputs.rank > place) & (inputs.gain > grade[inputs.row]))
    n_pairs = n_places * inputs.n_relevant
    return attained(n_pairs - wrong, n_pairs)


def psp_rows(inputs: Inputs, k: int) -> Statistics:
    """Propensity-scored precision of the first k labels: PSP@k, or PSP-point@k.

    Jain et al. (2016), section 6: the gains of the first k labels summed over *all* points, divided by
    the sum of the best possible ones. `per_point` divides each point by its own best instead and
    averages over the points with a relevant label.

    Examples
    --------
    >>> Y, scores = [[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.8, 0.4]]
    >>> from metarank.metrics import evaluate
    >>> evaluate(Y, scores, ["PSP@1"], inv_propensity=[2.0, 2.0, 4.0])["PSP@1"]  # (2 + 2) / (4 + 2)
    0.6666666666666666
    >>> # (2/4 + 2/2) / 2
    >>> evaluate(Y, scores, ["PSP-point@1"], inv_propensity=[2.0, 2.0, 4.0])["PSP-point@1"]
    0.75
    """
    return attained(*_gains(inputs, k))


def psp_point_rows(inputs: Inputs, k: int) -> Statistics:
    """PSP-point@k: each row's attained gain over its own best."""
    return mean(divide(*_gains(inputs, k)))


def psndcg_rows(inputs: Inputs, k: int) -> Statistics:
    """Propensity-scored nDCG of the first k labels: PSnDCG@k, or PSnDCG-point@k.

    As PSP@k, with each gain times ``1 / log2(1 + rank)``.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1]], [[0.9, 0.5, 0.1]], ["PSnDCG@1"], inv_propensity=[2.0, 2.0, 4.0])["PSnDCG@1"]
    0.5
    """
    return attained(*_discounted_gains(inputs, k))


def psndcg_point_rows(inputs: Inputs, k: int) -> Statistics:
    """PSnDCG-point@k: each row's discounted gain over its own best."""
    return mean(divide(*_discounted_gains(inputs, k)))


def _gains(inputs: Inputs, k: int) -> tuple[np.ndarray, np.ndarray]:
    return first_gains(inputs, inputs.propensity_gain, inputs.best_propensity_gain, k)


def _discounted_gains(inputs: Inputs, k: int) -> tuple[np.ndarray, np.ndarray]:
    return discounted_gains(inputs, inputs.propensity_gain, inputs.best_propensity_gain, k)


def distinct_rows(inputs: Inputs, k: int) -> Statistics:
    """Distinct labels in all lists of k, relevant or not, over min(k n, L): C@k.

    The Coverage@k of Jain et al. (2016). Only the shape of `Y_true` is used.

    Examples
    --------
    >>> from metarank.metrics import evaluate
    >>> evaluate([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.8, 0.2, 0.4]], ["C@1"])["C@1"]
    0.5
    """
    labels = inputs.top_k(k)
    listed = labels >= 0
    indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    shown = sp.csr_matrix((np.ones(indptr[-1]), labels[listed], indptr), shape=inputs.shape)
    at_most = min(k * inputs.n_rows, inputs.n_labels) or np.nan
    return Statistics(shown, lambda sums: (sums > 0).sum(axis=1) / at_most, over_labels=True)

"""Ranking metrics of graded relevance: how relevant the first k labels are, and whether they are in order.

Prabhu et al. (2020), section 3. ``Y_true`` and ``scores`` as in `metarank.metrics.ranking_metrics`,
relevances of any size >= 0; ties by label. ``labelwise`` swaps points and labels (the names end in "-l"): it
judges the best points of each label, and ties go to the smaller row number.

With relevances ``y * w_l`` WP@k is PSP@k, with click-through rates it is CTR@k, with ratings Rating@k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank.metrics.inputs import Inputs
from metarank.metrics.ranking_metrics import discounted_gains, first_gains
from metarank.metrics.rerank import rerank_with_tail
from metarank.metrics.statistics import Statistics, attained, mean
from metarank.types.candidates import Candidates
from metarank.types.ranking import check_k


def wp_at_k(Y_true: Any, scores: Any, k: int, *, labelwise: bool = False) -> float:
    """Relevance of the first k labels over the greatest possible: WP@k, WP-l@k.

    The relevances of the first k labels summed over *all* rows, divided by the sum of the k greatest
    relevances of each row. Ranks without a listed label add nothing.

    Examples
    --------
    >>> wp_at_k([[3, 0, 1], [0, 1, 0]], [[0.5, 0.9, 0.1], [0.2, 0.8, 0.4]], k=2)  # (3 + 1) / (3 + 1 + 1)
    0.8
    """
    return wp_rows(Inputs.oriented(Y_true, scores, labelwise), check_k(k)).value


def wp_rows(inputs: Inputs, k: int) -> Statistics:
    """WP@k: attained over greatest possible relevance, summed over the rows before the division."""
    return attained(*first_gains(inputs, inputs.gain, inputs.best_gain, k))


def wn_at_k(Y_true: Any, scores: Any, k: int, *, labelwise: bool = False) -> float:
    """Discounted relevance of the first k labels over the greatest possible: WN@k, WN-l@k.

    As `wp_at_k`, with each relevance times ``1 / log2(1 + rank)``. For a single row it is nDCG@k.

    Examples
    --------
    >>> round(wn_at_k([[3, 0, 1]], [[0.5, 0.9, 0.1]], k=2), 4)  # 3/log2(3) / (3 + 1/log2(3))
    0.5213
    """
    return wn_rows(Inputs.oriented(Y_true, scores, labelwise), check_k(k)).value


def wn_rows(inputs: Inputs, k: int) -> Statistics:
    """WN@k: as WP@k, with the discount of the rank."""
    return attained(*discounted_gains(inputs, inputs.gain, inputs.best_gain, k))


def wp_regret_at_k(
    Y_true: Any, scores: Any, k: int, *, scale: float | None = None, labelwise: bool = False
) -> float:
    """Shortfall of the mean relevance of the first k labels from the best possible: WP-regret@k.

    Eq. 9 (there Ranking-error@k): ``(1/k) sum_{S(y, k)} y - (1/k) sum_{S(yhat, k)} y``, averaged over all
    rows, relevances as shares of `scale` (by default the greatest in `Y_true`). Lemma 3.1: for
    predictions >= 0 it is at most twice XMAD@2k.

    Examples
    --------
    >>> wp_regret_at_k([[3, 0, 1]], [[0.5, 0.9, 0.1]], k=2, scale=1)  # (3 + 1) / 2 - (0 + 3) / 2
    0.5
    """
    return wp_regret_rows(Inputs.oriented(Y_true, scores, labelwise, scale), check_k(k)).value


def wp_regret_rows(inputs: Inputs, k: int) -> Statistics:
    """WP-regret@k: each row's best possible less its attained relevance, over k."""
    gained, best = first_gains(inputs, inputs.gain, inputs.best_gain, k)
    return mean((best - gained) / (k * inputs.scale))


def tau_at_k(Y_true: Any, scores: Any, k: int, *, labelwise: bool = False) -> float:
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
    >>> tau_at_k([[3, 0, 1]], [[0.5, 0.9, 0.1]], k=1)  # both relevant labels are wrongly below the first
    0.0
    >>> tau_at_k([[3, 0, 1]], [[0.5, 0.9, 0.1]], k=2)  # none is wrongly below the second: 1 - 2/4
    0.5
    """
    return tau_rows(Inputs.oriented(Y_true, scores, labelwise), check_k(k)).value


def tau_rows(inputs: Inputs, k: int) -> Statistics:
    """Tau@k: the share of (first-k, relevant) pairs not in the wrong order, over all rows."""
    n_places = min(k, inputs.n_labels)
    wrong = np.zeros(inputs.n_rows)
    for place in range(1, n_places + 1):
        here = inputs.rank == place
        grade = np.zeros(inputs.n_rows)
        grade[inputs.row[here]] = inputs.gain[here]
        wrong += inputs.row_sum((inputs.rank > place) & (inputs.gain > grade[inputs.row]))
    n_pairs = n_places * inputs.n_relevant
    return attained(n_pairs - wrong, n_pairs)


def wp_rerank_at_k(
    Y_true: Any,
    candidates: Candidates,
    tail_scores: np.ndarray,
    k: int = 5,
    *,
    alpha: float = 0.8,
    labelwise: bool = False,
) -> float:
    """WP@k after re-ranking with a second score, the log-probabilities of tail classifiers: WP-rerank@k.

    The ranking is that of `metarank.rerank.rerank_with_tail`. Predicted relevances combine well with other
    evidence only if their sizes are right, not just their order.

    Examples
    --------
    >>> c = Candidates(np.array([0, 2]), np.array([0, 1]), 2, {"score": np.array([0.6, 0.5])})
    >>> wp_rerank_at_k([[0, 1]], c, np.array([-1.0, -0.1]), k=1)
    1.0
    """
    return wp_at_k(Y_true, rerank_with_tail(candidates, tail_scores, alpha), k, labelwise=labelwise)

"""The five metrics a threshold can be learned for, as functions of kept pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.algebra import times
from metarank.thresholds.costs import Costs
from metarank.thresholds.guarantees import parse_wish
from metarank.thresholds.lists import ScoredLists

METRICS = ("micro-f1", "macro-f1", "example-f1", "hamming", "subset-accuracy")


def check_metric(optimize: Any) -> str | Costs:
    """The metric, or the guarantee, in upper or lower case ("micro-F1", "Recall >= 0.9"), or costs.

    None means "micro-f1".

    Raises
    ------
    ValueError, TypeError
        If `optimize` is neither a known name nor a guarantee.

    Examples
    --------
    >>> check_metric("micro-F1"), check_metric("Recall >= 0.9")
    ('micro-f1', 'recall>=0.9')
    """
    if optimize is None:
        return METRICS[0]
    rule = (
        f"optimize must be None or one of {', '.join(METRICS)}, or a guarantee such as 'recall>=0.9' "
        f"or 'precision>=0.8', or costs {{'false_positive': 1, 'false_negative': 4}}, got {optimize!r:.80}"
    )
    costs = Costs.read(optimize)
    if costs is not None:
        return costs
    if not isinstance(optimize, str):
        raise TypeError(rule)
    wish = parse_wish(optimize)
    if wish is not None:
        return str(wish)
    if optimize.lower() not in METRICS:
        raise ValueError(rule)
    return optimize.lower()


def quality(
    metric: str, kept: np.ndarray, lists: ScoredLists, weight: np.ndarray | None = None
) -> np.ndarray:
    """The metric, greater is better, under one or several weightings of the rows.

    Parameters
    ----------
    metric : str
        Hamming loss is negated. F1 of a row is 1 where nothing is kept and nothing relevant. Macro-F1 is over
        the labels that are relevant for some row. Relevant pairs that are not candidates count as not kept;
        in macro-F1, where their labels are known.
    kept : bool array (m,)
    lists : ScoredLists
        With relevance.
    weight : float array (b, n), optional
        By default one weighting, of ones.

    Returns
    -------
    float64 array (b,)
    """
    n, n_labels = lists.n_rows, lists.candidates.n_labels
    W = np.ones((1, n)) if weight is None else weight
    hit = kept & lists.truth
    if metric == "macro-f1":
        hits, size, relevant = (_by_label(pairs, lists, weight) for pairs in (hit, kept, lists.truth))
        total = size + relevant
        occurring = np.bincount(lists.labels[lists.truth], minlength=n_labels) > 0
        if lists.missed_of_label is not None:
            total, occurring = total + lists.missed_of_label, occurring | (lists.missed_of_label > 0)
        f1 = 2 * hits / np.where(total > 0, total, 1.0)
        return f1[:, occurring].sum(axis=1) / max(1, np.count_nonzero(occurring))
    hits_of_row, kept_of_row = (np.bincount(lists.row[pairs], minlength=n) for pairs in (hit, kept))
    total_of_row = kept_of_row + lists.relevant_per_row + lists.missed_per_row
    if metric == "micro-f1":
        total = times(W, total_of_row)
        return 2 * times(W, hits_of_row) / np.where(total > 0, total, 1.0)
    wrong = total_of_row - 2 * hits_of_row
    if metric == "example-f1":
        whole = np.where(total_of_row > 0, total_of_row, 1.0)
        value = np.where(total_of_row == 0, 1.0, 2 * hits_of_row / whole)
    elif metric == "hamming":
        value = -wrong / n_labels
    else:
        value = (wrong == 0).astype(np.float64)
    return times(W, value) / np.maximum(W.sum(axis=1), 1e-12)


def _by_label(pairs: np.ndarray, lists: ScoredLists, weight: np.ndarray | None) -> np.ndarray:
    """How many of the pairs each label has, float64 (b, L)."""
    n_labels = lists.candidates.n_labels
    if weight is None:
        return np.bincount(lists.labels[pairs], minlength=n_labels)[None].astype(np.float64)
    ones = np.ones(np.count_nonzero(pairs))
    where = lists.row[pairs], lists.labels[pairs]
    return np.asarray(weight @ sp.csr_matrix((ones, where), shape=(lists.n_rows, n_labels)))

"""`JudgedInputs`: metrics on condensed lists, from which labels that nobody judged are removed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs, as_relevance, as_sets
from metarank.metrics.names import Metric
from metarank.types.candidates import Candidates
from metarank.types.checks import check_candidates
from metarank.types.ranking import Ranking, score_rows

# They count labels that are not relevant, over all labels of a row or all rows of a label.
_COUNT_THE_UNJUDGED = ("RankLoss", "AUC", "micro-AUC", "AUPRC", "Hamming", "subset-accuracy", "LabelCoverage")


class JudgedInputs:
    """The inputs of metrics with all labels removed that are neither relevant nor `judged` (Sakai 2007).

    A label moves up by the unjudged labels before it. Judged labels that are not listed stay so; where ties
    count against the prediction (MAP, Coverage, MRR-all, ADG) they stand below all judged ones that are.
    Unjudged labels are removed from label sets too. The arguments are those of `evaluate`.

    Examples
    --------
    Label 1 is unjudged, so label 2 is the second of the list and not the third:

    >>> inputs = JudgedInputs([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.6]], [[3]])
    >>> Metric("P", 2).value(inputs.of(Metric("P", 2)))
    1.0
    """

    def __init__(self, Y_true: Any, scores: Any, judged: Any, Y_pred: Any = None, **options: Any) -> None:
        Y = as_relevance(Y_true)
        pairs = check_candidates(judged, *Y.shape, name="judged").union(Candidates.from_csr(Y))
        listed = complete = None
        if scores is not None:
            listed, complete = _condensed(scores, pairs)
        if Y_pred is not None:
            known = pairs.to_csr(np.ones(pairs.n_pairs, np.float32))
            Y_pred = sp.csr_matrix(as_sets(Y_pred, Y.shape).multiply(known))
        self._listed = Inputs(Y, listed, Y_pred=Y_pred, **options)
        self._complete = Inputs(Y, complete, Y_pred=Y_pred, **options)

    def of(self, metric: Metric) -> Inputs:
        """What a metric is computed from; ValueError for one that counts labels that are not relevant."""
        definition = metric.definition
        if metric.name in _COUNT_THE_UNJUDGED or definition.labelwise or definition.needs == "relevance":
            raise ValueError(f"judged does not go with {str(metric)!r}, which counts all labels")
        return self._complete if definition.needs == "scores" else self._listed


def _condensed(scores: Any, pairs: Candidates) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The scores of the judged pairs that are listed, and of all of them, CSR (n, L)."""
    rows = score_rows(scores)
    shape = rows.shape
    if shape != (pairs.n_rows, pairs.n_labels):
        raise ValueError(
            f"scores must have the shape of Y_true, {(pairs.n_rows, pairs.n_labels)}, got {shape}"
        )
    values = np.full(pairs.n_pairs, -np.inf)
    listed = rows.scores
    if isinstance(scores, Ranking):  # its order counts, whatever the scores are
        sizes = np.diff(rows.indptr)
        listed = np.repeat(rows.indptr[:-1], sizes) - np.arange(len(rows.labels), dtype=np.float64)
    keys = np.repeat(np.arange(shape[0]), np.diff(rows.indptr)) * shape[1] + rows.labels
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], pairs.pair_keys), max(0, len(keys) - 1))
    if len(keys):
        hit = keys[order][at] == pairs.pair_keys
        values[hit] = listed[order][at[hit]]
    is_listed = ~np.isneginf(values)
    least = np.full(shape[0], np.inf)
    np.minimum.at(least, pairs.row_of_pair[is_listed], values[is_listed])
    below = np.nextafter(np.where(np.isfinite(least), least, 0.0), -np.inf)
    every = np.where(is_listed, values, below[pairs.row_of_pair])
    return pairs.where(is_listed).to_csr(values[is_listed]), pairs.to_csr(every)

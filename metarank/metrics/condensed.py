"""`JudgedInputs`: metrics on condensed lists, from which labels that nobody judged are removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metarank.metrics.inputs import Inputs
from metarank.metrics.names import Metric
from metarank.types.candidates import Candidates
from metarank.types.given import check_candidates
from metarank.types.ragged import row_of_entries
from metarank.types.ranking import Listed

# They count labels that are not relevant, over all labels of a row or all rows of a label.
_COUNT_THE_UNJUDGED = ("RankLoss", "AUC", "micro-AUC", "AUPRC", "Hamming", "subset-accuracy", "LabelCoverage")


class JudgedInputs:
    """The inputs of metrics with all labels removed that are neither relevant nor `judged` (Sakai 2007).

    A label moves up by the unjudged labels before it. Judged labels that are not listed stay so; where ties
    count against the prediction (MAP, Coverage, MRR-all, ADG) they stand below all judged ones that are.
    Unjudged labels are removed from label sets too.

    Examples
    --------
    Label 1 is unjudged, so label 2 is the second of the list and not the third:

    >>> inputs = JudgedInputs(Inputs([[1, 0, 1, 0]], [[0.9, 0.8, 0.7, 0.6]]), [[3]])
    >>> Metric("P", 2).value(inputs.of(Metric("P", 2)))
    1.0
    """

    def __init__(self, inputs: Inputs, judged: Any) -> None:
        pairs = check_candidates(judged, inputs.n_rows, inputs.n_known, name="judged")
        pairs = replace(pairs, n_labels=inputs.n_labels).union(Candidates.from_csr(inputs.Y))
        self._listed = self._complete = inputs.judged_among(pairs)
        if inputs.has_scores:
            self._listed, self._complete = (
                self._listed.with_scores(scores) for scores in _condensed(inputs, pairs)
            )

    def of(self, metric: Metric) -> Inputs:
        """What a metric is computed from; ValueError for one that counts labels that are not relevant."""
        definition = metric.definition
        if metric.name in _COUNT_THE_UNJUDGED or definition.labelwise or definition.needs == "relevance":
            raise ValueError(f"judged does not go with {str(metric)!r}, which counts all labels")
        return self._complete if definition.needs == "scores" else self._listed


def _condensed(inputs: Inputs, pairs: Candidates) -> tuple[Listed, Listed]:
    """The scores of the judged pairs that are listed, and of all of them."""
    rows = inputs.scores
    if inputs.is_ranking:  # its order counts, whatever the scores are
        place = np.arange(len(rows.labels)) - rows.indptr[row_of_entries(rows.indptr)]
        rows = rows._replace(scores=-place.astype(np.float64))
    values = rows.of_pairs(pairs.pair_keys)
    is_listed = ~np.isneginf(values)
    least = np.full(inputs.n_rows, np.inf)
    np.minimum.at(least, pairs.row_of_pair[is_listed], values[is_listed])
    below = np.nextafter(np.where(np.isfinite(least), least, 0.0), -np.inf)
    every = np.where(is_listed, values, below[pairs.row_of_pair])
    parts = pairs.where(is_listed).to_csr(values[is_listed]), pairs.to_csr(every)
    return Listed.of_csr(parts[0]), Listed.of_csr(parts[1])

"""Figure 4: which labels, by how often they occur, the propensity-scored precision comes from."""

from __future__ import annotations

import numpy as np
from borrowed import Figures, Problem
from collection import allowed, weights

from metarank import Candidates
from metarank.metrics.inputs import Inputs

_BINS = 5


def label_bins(problem: Problem) -> np.ndarray:
    """The bin of each label with a training and a test point, fifths by training points; -1 for the others.

    Labels of equal counts stay together, so that bins differ in size and some may be empty.
    """
    counts = np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    binned = (counts > 0) & (np.bincount(problem.Y_test.indices, minlength=len(counts)) > 0)
    edges = np.quantile(counts[binned], np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    return np.where(binned, np.searchsorted(np.unique(edges), counts), -1)


def contributions(problem: Problem, found: Candidates, k: int = 5) -> np.ndarray:
    """What the labels of each bin add to PSP@k; the sum over bins is PSP@k."""
    weight = weights(problem)
    inputs = Inputs(problem.Y_test, allowed(problem, found), inv_propensity=weight)
    # Labels without a training point are never proposed: their pairs gain nothing.
    bins = label_bins(problem)[problem.Y_test.indices]
    gains = weight[problem.Y_test.indices] * (inputs.rank <= k)
    best = np.concatenate([-np.sort(-weight[row.indices])[:k] for row in problem.Y_test])
    return np.bincount(bins[bins >= 0], gains[bins >= 0], minlength=_BINS) / best.sum()


def describe_bins(problem: Problem) -> list[Figures]:
    """Of each bin that is not empty: how many labels it has, of how many training points."""
    counts, bins = np.bincount(problem.Y.indices, minlength=problem.Y.shape[1]), label_bins(problem)
    return [
        {
            "bin": b,
            "labels": int((bins == b).sum()),
            "least": int(counts[bins == b].min()),
            "most": int(counts[bins == b].max()),
        }
        for b in range(_BINS)
        if (bins == b).any()
    ]

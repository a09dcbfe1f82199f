"""nDCG@10 of each query, in two conventions."""

from __future__ import annotations

import numpy as np

K = 10


def of_queries(scores: np.ndarray, y: np.ndarray, qid: np.ndarray, *, benchmark: bool = False) -> np.ndarray:
    """float64, one value a query in the order of their ids: gains 2^y - 1, discounts 1 / log2(1 + rank).

    metarank's convention: documents of equal scores share the mean of their gains, and a query without a
    relevant document is left out (NaN). That of the public benchmark of boosted trees (`benchmark`): of
    equal scores the least relevant document comes first, and a query without a relevant document counts
    1.
    """
    out = []
    for query in np.unique(qid):
        rows = qid == query
        s, gain = scores[rows], 2.0 ** y[rows] - 1
        best = _dcg(np.sort(gain)[::-1])
        if best == 0:
            out.append(1.0 if benchmark else np.nan)
            continue
        if not benchmark:
            _, tie = np.unique(s, return_inverse=True)
            gain = (np.bincount(tie, gain) / np.bincount(tie))[tie]
        out.append(_dcg(gain[np.lexsort((gain, -s))]) / best)
    return np.array(out)


def _dcg(gain: np.ndarray) -> float:
    top = gain[:K]
    return float((top / np.log2(np.arange(len(top)) + 2)).sum())

"""The lean of a ranking towards rare labels: log-odds + a log(1/p), with a tuned on held-out scores.

Jain et al. (2016) weight a hit of label l by 1/p_l, since relevant rare labels are often missing. Ranking by
expected gain is then ranking by P(l | x) / p_l. With an exponent a between 0 (accuracy) and 1, one trained
model serves both, and the choice needs no refit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from metarank.metrics import evaluate
from metarank.metrics.propensity import inv_propensity
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet

WEIGHTS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# The share of nDCG@5 that may be traded for PSP@5.
_GIVEN = 0.01


def weights_of_labels(Y: sp.csr_matrix) -> np.ndarray:
    """Inverse propensities of the labels, float64 (L,); all 1 with fewer than three rows."""
    return inv_propensity(Y) if Y.shape[0] >= 3 else np.ones(Y.shape[1])


def held_out_inv_propensity(data: TrainingSet, rows: np.ndarray, candidates: Candidates) -> np.ndarray:
    """Inverse propensity of the label of each pair of training rows, from the rows outside the row's fold.

    Counts that include the row itself would reveal which of two rare labels it has.

    Returns
    -------
    float64 array (m,)
    """
    out = np.empty(candidates.n_pairs)
    pair_fold = np.repeat(data.fold[rows], np.diff(candidates.indptr))
    for fold in np.unique(pair_fold):
        others = data.without_fold(int(fold))
        weight = inv_propensity(others.label_counts, n_points=others.n_rows)
        inside = pair_fold == fold
        out[inside] = weight[candidates.labels[inside]]
    return out


def tuned_propensity_weight(
    candidates: Candidates,
    logits: np.ndarray,
    log_inv_propensity: np.ndarray,
    Y: sp.csr_matrix,
    *,
    inv_propensity: np.ndarray,
    grid: Sequence[float] = WEIGHTS,
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
    Y : CSR (n, L)
        The rows' relevances.
    inv_propensity : float array (L,)
        The 1/p of PSP@5.
    grid : sequence of float
    n_jobs : int

    Examples
    --------
    >>> pairs = Candidates.all_labels(1, 3)
    >>> Y = sp.csr_matrix(np.array([[0, 1, 0]], np.float32))
    >>> rare = np.log([1.0, 9.0, 1.0])
    >>> tuned_propensity_weight(pairs, np.array([0.3, 0.0, -9]), rare, Y, inv_propensity=np.exp(rare))
    0.15
    """
    binary = Y.copy()
    binary.data = (Y.data > 0).astype(np.float32)
    found = []
    for weight in grid:
        scores = (logits + weight * log_inv_propensity).astype(np.float32)
        ranked = Candidates.of_core(
            candidates.indptr, candidates.labels, candidates.n_labels, {"score": scores}
        )
        values = evaluate(binary, ranked, ["nDCG@5", "PSP@5"], inv_propensity=inv_propensity, n_jobs=n_jobs)
        found.append((values["nDCG@5"], values["PSP@5"]))
    best = max(ndcg for ndcg, _ in found)
    good = [(psp, -weight) for weight, (ndcg, psp) in zip(grid, found) if ndcg >= (1 - _GIVEN) * best]
    return -max(good)[1] if good else 0.0

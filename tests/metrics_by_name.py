"""Metrics as functions of relevances and what they judge, for tests: ``by_name.ndcg(Y, scores, 5)``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.metrics import evaluate

_OF_LISTS = {"precision_at_k": "P", "recall_at_k": "R", "f1_at_k": "F1", "ndcg": "nDCG"}
_OF_LISTS |= {"mean_average_precision": "MAP", "ranking_loss": "RankLoss", "one_error": "One-error"}
_OF_LISTS |= {"coverage": "Coverage", "reciprocal_rank": "MRR", "reciprocal_rank_all": "MRR-all"}
_OF_LISTS |= {"average_discounted_gain": "ADG", "psp_at_k": "PSP", "psndcg_at_k": "PSnDCG"}
_OF_LISTS |= {
    "distinct_at_k": "C",
    "wp_at_k": "WP",
    "wn_at_k": "WN",
    "wp_regret_at_k": "WP-regret",
    "tau_at_k": "Tau",
}
_OF_LISTS |= {"xmad_at_k": "XMAD", "xrmse_at_k": "XRMSE", "regression_error_at_k": "Regression-error"}
_OF_LISTS |= {"mad": "MAD", "rmse": "RMSE", "auc": "AUC", "micro_auc": "micro-AUC", "auprc": "AUPRC"}
_OF_SETS = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "example_f1": "example-F1"}
_OF_SETS |= {
    "hamming_loss": "Hamming",
    "subset_accuracy": "subset-accuracy",
    "label_coverage": "LabelCoverage",
}
_OF_SETS |= {"hierarchical_precision": "hP", "hierarchical_recall": "hR", "hierarchical_f1": "hF"}


def __getattr__(function: str) -> Any:
    if function in _OF_SETS:
        name = _OF_SETS[function]
        return lambda Y, kept, parents=None: evaluate(Y, None, [name], Y_pred=kept, parents=parents)[name]
    if function not in _OF_LISTS:
        raise AttributeError(function)

    def value(
        Y: Any,
        scores: Any,
        k: int | None = None,
        inv_propensity: Any = None,
        *,
        per_point: bool = False,
        labelwise: bool = False,
        scale: float | None = None,
    ) -> float:
        name = f"{_OF_LISTS[function]}{'-point' * per_point}{'-l' * labelwise}{'' if k is None else f'@{k}'}"
        return evaluate(Y, scores, [name], inv_propensity=inv_propensity, scale=scale)[name]

    return value


RANKING_NAMES = ["P@1", "P@3", "R@3", "nDCG", "nDCG@3", "MAP", "RankLoss", "One-error", "Coverage", "MRR"]
RANKING_NAMES += ["MRR@2", "MRR-all", "ADG", "AUC", "micro-AUC", "PSP@3", "PSnDCG@3"]
RANKING_NAMES += ["PSP-point@3", "PSnDCG-point@3", "C@2"]


def listed_only(scores):
    """A CSR matrix that stores the finite scores, zeros included."""
    row, label = np.nonzero(scores > -np.inf)
    return sp.csr_matrix((scores[row, label], (row, label)), shape=scores.shape)

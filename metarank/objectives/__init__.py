"""Several target labels, one ranking."""

from metarank.objectives.bayes import (
    inner_weights,
    label_aggregated_scorer,
    label_spread,
    loss_aggregated_scorer,
    product_scorer,
    uniform_cost_scorer,
)
from metarank.objectives.evaluation import diff_auc, dominates, min_auc, multipartite_auc, per_label_auc

__all__ = [
    "diff_auc",
    "dominates",
    "inner_weights",
    "label_aggregated_scorer",
    "label_spread",
    "loss_aggregated_scorer",
    "min_auc",
    "multipartite_auc",
    "per_label_auc",
    "product_scorer",
    "uniform_cost_scorer",
]

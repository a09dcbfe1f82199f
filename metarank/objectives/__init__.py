"""Several targets, one ranking: aggregation of labels or of losses, and what each does to the order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank._util.modules import imported_when_used
from metarank.objectives.aggregation import Aggregation, aggregate_labels, label_spread
from metarank.objectives.bayes import (
    inner_weights,
    label_aggregated_scorer,
    loss_aggregated_scorer,
    product_scorer,
    uniform_cost_scorer,
)
from metarank.objectives.checks import Grouping, check_groups, check_targets, check_weights
from metarank.objectives.front import hypervolume, knee, non_dominated
from metarank.objectives.ndcg import ndcg_gradients
from metarank.objectives.pairwise import auc_gradients, per_label_auc

if TYPE_CHECKING:
    from collections.abc import Callable

    from metarank.objectives.diagnosis import Diagnosis, diagnose
    from metarank.objectives.fronts import ParetoFront, pareto_front
    from metarank.objectives.multi_objective import MultiObjectiveRanker

__all__ = [
    "Aggregation",
    "Diagnosis",
    "Grouping",
    "MultiObjectiveRanker",
    "ParetoFront",
    "aggregate_labels",
    "auc_gradients",
    "check_groups",
    "check_targets",
    "check_weights",
    "diagnose",
    "hypervolume",
    "inner_weights",
    "knee",
    "label_aggregated_scorer",
    "label_spread",
    "loss_aggregated_scorer",
    "ndcg_gradients",
    "non_dominated",
    "pareto_front",
    "per_label_auc",
    "product_scorer",
    "uniform_cost_scorer",
]


# What trains rankers is imported when first used.
__getattr__: Callable[[str], Any] = imported_when_used(
    __name__,
    {
        "Diagnosis": "metarank.objectives.diagnosis",
        "MultiObjectiveRanker": "metarank.objectives.multi_objective",
        "ParetoFront": "metarank.objectives.fronts",
        "diagnose": "metarank.objectives.diagnosis",
        "pareto_front": "metarank.objectives.fronts",
    },
)

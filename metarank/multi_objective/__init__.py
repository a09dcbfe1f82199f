"""`MultiObjectiveRanker`: several objectives, one ranking; `pareto_front`: their trade-offs."""

from metarank.multi_objective.pareto import ParetoFront
from metarank.multi_objective.ranker import MultiObjectiveRanker
from metarank.multi_objective.sweep import pareto_front

__all__ = ["MultiObjectiveRanker", "ParetoFront", "pareto_front"]

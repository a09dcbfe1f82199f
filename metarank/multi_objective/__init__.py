"""`MultiObjectiveRanker`: several objectives, one ranking."""

from metarank.multi_objective.ranker import MultiObjectiveRanker

__all__ = ["MultiObjectiveRanker"]

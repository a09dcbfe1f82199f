"""The public door to re-ranking with tail classifiers, Jain et al. (2016), eq. 8."""

from metarank.metrics.rerank import rerank_with_tail
from metarank.scorers.trees.tail_weight import ALPHAS, choose_alpha

__all__ = ["ALPHAS", "choose_alpha", "rerank_with_tail"]

"""Learners that order the pairs of a list: linear, boosted, both, or chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from metarank._util.parameters import check_choice
from metarank.ranker.auto_ranker import AutoRanker
from metarank.ranker.base import Ranker, cross_fit_scores
from metarank.ranker.boosted_ranker import BoostedRanker
from metarank.ranker.corrections import LabelCorrections
from metarank.ranker.ensemble import EnsembleRanker
from metarank.ranker.linear_ranker import LinearRanker
from metarank.ranker.lists import RankingData

# Several models, of more leaves and of a faster pace than one alone.
_averaged = partial(BoostedRanker, n_models=5, n_rounds=120, num_leaves=15, learning_rate=0.1)
RANKERS: dict[str, Callable[..., Ranker]] = {
    "auto": AutoRanker,
    "ensemble": EnsembleRanker,
    "lambdarank": partial(BoostedRanker, objective="lambdarank"),
    "xendcg": partial(BoostedRanker, objective="rank_xendcg"),
    "binary": partial(BoostedRanker, objective="binary"),
    "pointwise": partial(_averaged, objective="binary", max_irrelevant=50_000, share_irrelevant=0.2),
    "listwise": partial(_averaged, objective="lambdarank", hardest=30),
    "logistic": partial(LinearRanker, loss="logistic"),
    "listnet": partial(LinearRanker, loss="listnet"),
    "ranksvm": partial(LinearRanker, loss="ranksvm"),
    "svmmap": partial(LinearRanker, loss="svmmap"),
}


def make_ranker(name: str, **params: Any) -> Ranker:
    """The ranker of a name: "auto", "lambdarank", "xendcg", "binary", "pointwise", "logistic", "listnet", ...

    Examples
    --------
    >>> make_ranker("lambdarank", n_rounds=100)
    BoostedRanker(n_rounds=100)

    Raises
    ------
    ValueError
        If there is no such name.
    """
    return RANKERS[check_choice("ranker", name, list(RANKERS))](**params)


__all__ = [
    "RANKERS",
    "AutoRanker",
    "BoostedRanker",
    "EnsembleRanker",
    "LabelCorrections",
    "LinearRanker",
    "Ranker",
    "RankingData",
    "cross_fit_scores",
    "make_ranker",
]

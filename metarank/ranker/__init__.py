"""Learners that order the pairs of a list: linear, boosted, blended, or chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from metarank.ranker.auto_ranker import AutoRanker
from metarank.ranker.base import Ranker
from metarank.ranker.blend import BlendRanker
from metarank.ranker.boosted_ranker import BoostedRanker
from metarank.ranker.corrections import LabelCorrections
from metarank.ranker.ensemble import EnsembleRanker
from metarank.ranker.linear_ranker import ListNet, LogisticRanker, RankSVM
from metarank.ranker.lists import RankingData, cross_fit_scores
from metarank.ranker.listwise import ListwiseRanker
from metarank.ranker.pointwise import PointwiseRanker
from metarank.ranker.svmmap import SVMMAP

RANKERS: dict[str, Callable[..., Ranker]] = {
    "auto": AutoRanker,
    "ensemble": EnsembleRanker,
    "lambdarank": partial(BoostedRanker, objective="lambdarank"),
    "xendcg": partial(BoostedRanker, objective="rank_xendcg"),
    "binary": partial(BoostedRanker, objective="binary"),
    "pointwise": PointwiseRanker,
    "listwise": ListwiseRanker,
    "logistic": LogisticRanker,
    "listnet": ListNet,
    "ranksvm": RankSVM,
    "svmmap": SVMMAP,
    "blend": partial(BlendRanker, members=[LogisticRanker(), BoostedRanker()]),
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
    if name not in RANKERS:
        raise ValueError(f"ranker must be one of {list(RANKERS)}, got {name!r}")
    ranker: Ranker = RANKERS[name](**params)
    return ranker


__all__ = [
    "RANKERS",
    "SVMMAP",
    "AutoRanker",
    "BlendRanker",
    "BoostedRanker",
    "EnsembleRanker",
    "LabelCorrections",
    "ListNet",
    "ListwiseRanker",
    "LogisticRanker",
    "PointwiseRanker",
    "RankSVM",
    "Ranker",
    "RankingData",
    "cross_fit_scores",
    "make_ranker",
]

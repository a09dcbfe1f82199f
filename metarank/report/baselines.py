"""What each source of evidence of a model can do alone: the baselines that cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._threads import resolve_n_jobs
from metarank.ranking import Ranking
from metarank.scorers.base import Features
from metarank.scorers.names import NameScorer
from metarank.scorers.neighbors import NeighborShortlister
from metarank.scorers.prior import LabelPrior

if TYPE_CHECKING:
    from metarank.pipeline import MetaRanker

POPULARITY, NEIGHBORS, NAMES = "most frequent", "nearest neighbours", "label text alone"


def popularity(label_scores: np.ndarray, n_rows: int, k: int) -> Ranking:
    """The same k labels of greatest score for every row; ties go to the smaller label id.

    Examples
    --------
    >>> popularity(np.array([3, 9, 5]), 2, 2).labels
    array([[1, 2],
           [1, 2]], dtype=int32)
    """
    one = Ranking.from_scores(np.asarray(label_scores, np.float64)[None, :], k, n_jobs=1)
    return one.rows(np.zeros(n_rows, np.int64))


def alone(model: MetaRanker, X: Any, k: int) -> dict[str, Ranking]:
    """Rankings by those scorers of a fitted model that can propose labels by themselves.

    Parameters
    ----------
    model : fitted MetaRanker
    X : rows, as in `MetaRanker.rank`
    k : int
        Labels a row.

    Returns
    -------
    dict of name to Ranking
        Label frequency, neighbours' votes, label texts, and any other scorer with `shortlist`.
    """
    features: Features = model.encoder_.encode(X)
    n_jobs = resolve_n_jobs(model.n_jobs)
    k = min(k, model.n_labels_)
    titles = {NeighborShortlister: NEIGHBORS, NameScorer: NAMES}
    out: dict[str, Ranking] = {}
    for scorer in [*model.scorers_, *model.shortlisters_]:
        title = titles.get(type(scorer), type(scorer).__name__)
        if isinstance(scorer, LabelPrior):
            out[POPULARITY] = popularity(scorer.log_prior_, features.shape[0], k)
        elif hasattr(scorer, "shortlist") and title not in out:
            out[title] = Ranking.from_scores(scorer.shortlist(features, k, n_jobs=n_jobs), k, n_jobs=n_jobs)
    return out

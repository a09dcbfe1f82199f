"""What each source of evidence of a model can do alone: the baselines that cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.threads import resolve_n_jobs
from metarank.model.request import words_in
from metarank.types.given import Given
from metarank.types.ranking import Ranking
from metarank.types.view import Features

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker

POPULARITY = "most frequent"


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
        Label frequency, and each scorer that can propose.
    """
    features: Features = model.encoder_.encode(X)
    n_jobs = resolve_n_jobs(model.n_jobs)
    k = min(k, model.n_labels_)
    out = {POPULARITY: popularity(-model.inv_propensity_, features.shape[0], k)}
    words = words_in(model.fitted_, X)
    given = Given(features.shape[0], model.n_labels_, words=words)
    for source in model.sources_:
        scorer, title = source.scorer, source.scorer.title or source.name
        if scorer.proposes and title not in out and not scorer.proposes_given:
            read = given if scorer.reads_word_order else features
            out[title] = Ranking.from_scores(scorer.shortlist(read, k, n_jobs=n_jobs), k, n_jobs=n_jobs)
    return out

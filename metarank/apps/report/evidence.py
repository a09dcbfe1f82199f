"""What each source of a model can do alone, and what moves the model's scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from metarank._util.threads import resolve_n_jobs
from metarank.model.answering.answer import read_request, words_in
from metarank.model.answering.reasons import BOOST
from metarank.model.estimator import MetaRanker
from metarank.types.candidates import Candidates
from metarank.types.feature_table import source_of
from metarank.types.given import Given
from metarank.types.ranking import Ranking

POPULARITY = "most frequent"


def alone(model: MetaRanker, X: Any, k: int, exclude: Candidates | None = None) -> dict[str, Ranking]:
    """Rankings by label frequency, and by those scorers of a fitted model that can propose labels.

    Parameters
    ----------
    model : fitted MetaRanker
    X : rows, as in `MetaRanker.rank`
    k : int
        Labels a row.
    exclude : Candidates, optional
        Pairs to leave out.
    """
    features = model.encoder_.encode(X)
    n_jobs, n, n_labels = resolve_n_jobs(model.n_jobs), features.shape[0], model.n_labels_
    k = min(k, n_labels)
    most = k if exclude is None else k + int(np.diff(exclude.indptr).max(initial=0))

    def best(scores: Candidates) -> Ranking:
        return Ranking.from_scores(scores if exclude is None else scores.without(exclude), k, n_jobs=n_jobs)

    # The same labels for every row; ties go to the smaller id.
    frequent = Ranking.from_scores(-model.inv_propensity_[None, :].astype(np.float64), min(most, n_labels))
    out = {POPULARITY: best(_pairs(frequent.rows(np.zeros(n, np.int64))))}
    given = Given(n, n_labels, words=words_in(model.fitted_, X))
    for source in model.sources_:
        scorer, title = source.scorer, source.scorer.title or source.name
        if scorer.proposes and title not in out and not scorer.proposes_given:
            read = given if scorer.reads_word_order else features
            out[title] = best(scorer.shortlist(read, most, n_jobs=n_jobs))
    return out


class Importance(NamedTuple):
    """Mean |contribution| of each source of evidence to the score, greatest first."""

    sources: list[tuple[str, float]]
    n_pairs: int


def importance(
    model: MetaRanker, X: Any, ranking: Ranking, *, exclude: Candidates | None = None, max_rows: int = 200
) -> Importance:
    """What moves the scores of the listed labels, over evenly spaced rows of `ranking`.

    A source's share is the mean absolute value of the *sum* of its columns, as their effects may cancel. The
    rare-label boost is a separate source. `exclude` is what the ranking leaves out.
    """
    rows = np.unique(np.linspace(0, ranking.n_rows - 1, min(max_rows, ranking.n_rows)).astype(np.int64))
    request = read_request(model.fitted_, X, exclude=exclude).rows(rows)
    listed = _pairs(ranking.rows(rows))
    weight, done, parts = model.propensity_weight_, 0, []
    for lists, table, blank in model.answering().describe(request):
        candidates = lists.described
        listed_here = listed.rows(slice(done, done + candidates.n_rows))
        done += candidates.n_rows
        # Contributions cost far more than scores: of the pairs that are shown alone. The others stand on
        # frequency alone.
        of_ranker = ~model.fitted_.untold(candidates, blank)
        shown = table.pairs(np.flatnonzero(candidates.among(listed_here) & of_ranker))
        parts.append(model.ranker_.contributions(shown)[:, :-1])
        if weight:
            parts[-1] = np.column_stack([parts[-1], model.fitted_.boost_of(shown.labels, weight)])
    if not sum(map(len, parts)):
        return Importance([], 0)
    contributions = np.concatenate(parts)
    titles = [source_of(name) for name in [*model.feature_columns_, *([BOOST] if weight else [])]]
    sources = {
        title: float(np.abs(contributions[:, [t == title for t in titles]].sum(axis=1)).mean())
        for title in dict.fromkeys(titles)
    }
    return Importance(sorted(sources.items(), key=lambda pair: -pair[1]), len(contributions))


def _pairs(ranking: Ranking) -> Candidates:
    """The listed pairs with their scores."""
    scores = ranking.to_csr()
    return Candidates(scores.indptr, scores.indices, ranking.n_labels, {"": scores.data})

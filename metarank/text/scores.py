"""Scores ``q . f + b`` of query vectors and labels, and the labels with the greatest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metarank import _core
from metarank._util.elementary import logistic
from metarank.text.index import LabelIndex
from metarank.types.candidates import Candidates
from metarank.types.checks import ScoresNotFiniteError
from metarank.types.ranking import Ranking

# Queries scored at once: n x L scores are never stored where k of each are asked for.
_CHUNK_SCORES = 1 << 24
# Labels whose scores are looked at where FAISS proposes them.
_LEAST_PROPOSED = 64


def all_scores(queries: np.ndarray, vectors: np.ndarray, bias: np.ndarray, n_jobs: int) -> np.ndarray:
    """Float32 (n, L) of queries (n, E), label vectors (L, E) and biases (L,).

    Raises
    ------
    ScoresNotFiniteError
    """
    return _finite(_core.vector_scores(queries, vectors, bias, n_jobs))


def scores_of_pairs(
    queries: np.ndarray, vectors: np.ndarray, bias: np.ndarray, pairs: Candidates, n_jobs: int
) -> np.ndarray:
    """Float32 (m,): the same bytes as in `all_scores`, of some labels of each query.

    Raises
    ------
    ScoresNotFiniteError
    """
    scores = _core.vector_scores_of_pairs(queries, vectors, bias, pairs.indptr, pairs.labels, n_jobs)
    return _finite(scores)


def best_of_all(
    queries: np.ndarray,
    vectors: np.ndarray,
    bias: np.ndarray,
    k: int,
    label_names: Sequence[str] | None,
    n_jobs: int,
) -> Ranking:
    """The k labels with the greatest scores of each query."""
    step = max(1, _CHUNK_SCORES // len(vectors))
    parts = []
    for start in range(0, max(1, len(queries)), step):
        scores = all_scores(queries[start : start + step], vectors, bias, n_jobs)
        parts.append(Ranking.from_scores(scores, k, label_names=label_names, n_jobs=n_jobs))
    return Ranking.concatenate(parts)


def best_of_proposed(
    queries: np.ndarray,
    vectors: np.ndarray,
    bias: np.ndarray,
    k: int,
    label_names: Sequence[str] | None,
    n_jobs: int,
    *,
    index: LabelIndex,
) -> Ranking:
    """As `best_of_all`, among the labels that the index proposes."""
    pairs = index.propose(queries, max(_LEAST_PROPOSED, 4 * k), n_jobs)
    values = scores_of_pairs(queries, vectors, bias, pairs, n_jobs)
    return Ranking.from_scores(pairs, k, values=values, label_names=label_names, n_jobs=n_jobs)


def probabilities(scores: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-score))``, in the dtype of the scores."""
    return np.asarray(logistic(scores))


def _finite(scores: np.ndarray) -> np.ndarray:
    if scores.size and not (np.isfinite(scores.min()) and np.isfinite(scores.max())):
        raise ScoresNotFiniteError("scores must be finite: the model holds extreme values")
    return scores

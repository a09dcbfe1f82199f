"""Scores ``q . f + b`` of query vectors and labels, and the labels with the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metarank import _core
from metarank.text.index import LabelIndex
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores
from metarank.types.ranking import Ranking

# Queries scored at once: n x L scores are never stored where k of each are asked for.
_CHUNK_SCORES = 1 << 24
# Labels whose scores are looked at where FAISS proposes them.
_LEAST_PROPOSED = 64


class ScoredLabels(NamedTuple):
    """The labels of a model, as queries (n, E) are scored against them.

    Attributes
    ----------
    vectors : float32 array (L, E)
    bias : float32 array (L,)
    names : list of str or None
    """

    vectors: np.ndarray
    bias: np.ndarray
    names: Sequence[str] | None = None

    def scores(self, queries: np.ndarray, n_jobs: int) -> np.ndarray:
        """Float32 (n, L).

        Raises
        ------
        ScoresNotFiniteError
        """
        return finite_scores(_core.vector_scores(queries, self.vectors, self.bias, n_jobs))

    def scores_of_pairs(self, queries: np.ndarray, pairs: Candidates, n_jobs: int) -> np.ndarray:
        """Float32 (m,): the same bytes as in `scores`, of some labels of each query.

        Raises
        ------
        ScoresNotFiniteError
        """
        labels = self.vectors, self.bias
        return finite_scores(
            _core.vector_scores_of_pairs(queries, *labels, pairs.indptr, pairs.labels, n_jobs)
        )

    def best(self, queries: np.ndarray, k: int, n_jobs: int) -> Ranking:
        """The k labels with the greatest scores of each query."""
        step = max(1, _CHUNK_SCORES // len(self.vectors))
        parts = []
        for start in range(0, max(1, len(queries)), step):
            scores = self.scores(queries[start : start + step], n_jobs)
            parts.append(Ranking.from_scores(scores, k, label_names=self.names, n_jobs=n_jobs))
        return Ranking.concatenate(parts)

    def best_proposed(self, queries: np.ndarray, k: int, n_jobs: int, index: LabelIndex) -> Ranking:
        """As `best`, among the labels that the index proposes."""
        pairs = index.propose(queries, max(_LEAST_PROPOSED, 4 * k), n_jobs)
        values = self.scores_of_pairs(queries, pairs, n_jobs)
        return Ranking.from_scores(pairs, k, values=values, label_names=self.names, n_jobs=n_jobs)

"""The numbers behind the charts: plain functions of relevances, rankings and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank.apps.report.words import block_of
from metarank.model.explain import LEAN
from metarank.model.request import Request, words_in
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.ranking import Ranking
from metarank.types.restrict import LabelLimits
from metarank.types.view import Features

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker


def precision_and_recall(
    Y: sp.csr_matrix, ranking: Ranking, ks: Sequence[int]
) -> tuple[list[float], list[float]]:
    """P@k and R@k for each k."""
    names = [f"{kind}@{k}" for kind in ("P", "R") for k in ks]
    values = metrics.evaluate(Y, ranking, names)
    return [values[f"P@{k}"] for k in ks], [values[f"R@{k}"] for k in ks]


class Reliability(NamedTuple):
    """Calibration by bins of equal width: mean forecast, share found relevant (NaN where empty), pairs."""

    forecast: np.ndarray
    observed: np.ndarray
    counts: np.ndarray

    @property
    def error(self) -> float:
        """Mean |forecast - observed| over the pairs beyond the first bin.

        The first holds nearly all pairs, which are easy: with it every model looks calibrated.
        """
        kept = (self.counts > 0) & (np.arange(len(self.counts)) > 0)
        gaps = np.abs(self.forecast[kept] - self.observed[kept])
        return float(np.average(gaps, weights=self.counts[kept])) if kept.any() else float("nan")


def reliability_bins(relevant: np.ndarray, probability: np.ndarray, n_bins: int = 10) -> Reliability:
    """Bins of the pairs' probabilities against what they turned out to be."""
    index = np.minimum((probability * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(index, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        forecast = np.bincount(index, probability, n_bins) / counts
        observed = np.bincount(index, relevant, n_bins) / counts
    return Reliability(forecast, observed, counts)


class Importance(NamedTuple):
    """Mean |contribution| to the score: by block of evidence and by column, greatest first."""

    blocks: list[tuple[str, float]]
    columns: list[tuple[str, float]]
    n_pairs: int


def importance(
    model: MetaRanker, X: Any, ranking: Ranking, *, exclude: Candidates | None = None, max_rows: int = 200
) -> Importance:
    """What moves the scores of the listed labels, over evenly spaced rows of `ranking`.

    A block's share is the mean absolute value of the *sum* of its columns, as their effects may cancel. The
    lean towards rare labels is a block, and a column, of its own. `exclude` is what the ranking leaves out.
    """
    rows = np.unique(np.linspace(0, ranking.n_rows - 1, min(max_rows, ranking.n_rows)).astype(np.int64))
    encoded: Features = model.encoder_.encode(X)
    limits = LabelLimits(None if exclude is None else exclude.rows(rows), removed=model.removed_)
    listed = Candidates(*_ascending(ranking.rows(rows)), ranking.n_labels)
    weight, done, parts = model.propensity_weight_, 0, []
    words = words_in(model.fitted_, X)
    given = None if words is None else Given(len(rows), model.n_labels_, words=words[rows])
    for lists, table, blank in model.answering().described(Request(encoded[rows], limits, given=given)):
        candidates = lists.described
        own = listed.rows(slice(done, done + candidates.n_rows))
        done += candidates.n_rows
        # Contributions cost far more than scores: of the pairs that are shown alone.
        # The others stand on frequency alone.
        of_ranker = ~model.fitted_.untold(candidates, blank)
        shown = table.pairs(np.flatnonzero(candidates.among(own) & of_ranker))
        contributions = model.ranker_.contributions(shown)[:, :-1]
        if weight:
            contributions = np.column_stack([contributions, model.fitted_.lean_of(shown.labels, weight)])
        parts.append(contributions)
    if not sum(map(len, parts)):
        return Importance([], [], 0)
    contributions = np.concatenate(parts)
    by_column = np.abs(contributions).mean(axis=0)
    columns = [*model.feature_columns_, *([LEAN] if weight else [])]
    names = [block_of(name).title for name in columns]
    blocks = {
        title: float(np.abs(contributions[:, [n == title for n in names]].sum(axis=1)).mean())
        for title in dict.fromkeys(names)
    }
    pairs = [(name, float(v)) for name, v in zip(columns, by_column)]
    return Importance(_greatest_first(blocks.items()), _greatest_first(pairs), len(contributions))


def _ascending(ranking: Ranking) -> tuple[np.ndarray, np.ndarray]:
    labels = np.sort(np.where(ranking.labels < 0, ranking.n_labels, ranking.labels), axis=1)
    listed = labels < ranking.n_labels
    return np.concatenate([[0], np.cumsum(listed.sum(axis=1))]), labels[listed]


def _greatest_first(pairs: Any) -> list[tuple[str, float]]:
    return sorted(pairs, key=lambda pair: -pair[1])

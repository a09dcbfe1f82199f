"""A second ranker that also sees what the first one says of the row's other labels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from ideas import co_occurrence, unit

from metarank import MetaRanker
from metarank._util.elementary import logistic
from metarank.model.answering.answer import Answering
from metarank.model.answering.request import read_request
from metarank.model.fitting.stages import LocalStages
from metarank.ranker import make_ranker
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import RankingData
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking
from metarank.types.view import TrainingSet


class _Kept(LocalStages):
    """The stages of a fit, of which what the ranker learned from is kept."""

    def describe(self, sources: Any, candidates: Candidates, rows: np.ndarray) -> Any:
        self.rows = rows
        return super().describe(sources, candidates, rows)

    def rank(self, columns: Any, lists: Any, sources: Any) -> Any:
        self.kept = ([dict(of_source) for of_source in columns], lists)
        return super().rank(columns, lists, sources)


class _Watched(MetaRanker):
    @contextmanager
    def _at_work(self, data: TrainingSet, n_jobs: int) -> Iterator[LocalStages]:
        self.data, self.stages = data, _Kept(data, n_jobs)
        yield self.stages


def second_round(train: Any, X: Any) -> tuple[Ranking, float]:
    """The five best labels of new rows by two rounds, and the CPU seconds of the fit of both."""
    started = time.process_time()
    model = _Watched(n_jobs=1).fit(train)
    data, (columns, training) = model.data, model.stages.kept
    pairs, gains = training.ranked, training.proposed.of_described(training.gains)
    fitting: Any = (gains, None, training.fold, training.options.seed)
    first = make_ranker("pointwise")
    held_out = first.fit_out_of_fold(RankingData.checked(_table(columns, pairs), *fitting), 1)
    fold = data.fold[model.stages.rows]
    parts = [(np.flatnonzero(fold == f), co_occurrence(data.without_fold(int(f)))) for f in np.unique(fold)]
    told = _of_others(pairs, held_out, parts, data.label_text)
    second = make_ranker("pointwise")
    second.fit_lists(RankingData.checked(_table([*columns, told], pairs), *fitting), 1)
    cost = time.process_time() - started

    fitted = model.fitted_
    answering = Answering(fitted, model.shortlist_size, 1)
    request = read_request(fitted, X)
    searches, proposals = answering.proposed(request.X)
    described = answering.lists(
        answering.united(proposals, request.X.shape[0]), proposals, request.limits
    ).described
    own = [
        source.scorer.score(request.X, described, n_jobs=1, **searches.get(number, {}))
        for number, source in enumerate(fitted.sources)
        if source.describes
    ]
    scores = first.score(_table(own, described))
    whole = [(np.arange(described.n_rows), co_occurrence(data.view()))]
    told = _of_others(described, scores, whole, data.label_text)
    final = second.score(_table([*own, told], described))
    lean = fitted.propensity_weight * np.log(fitted.inv_propensity)[described.labels]
    return Ranking.from_scores(described, 5, values=(final + lean).astype(np.float32)), cost


def _table(columns: list[dict[str, np.ndarray]], candidates: Candidates) -> Any:
    return assemble(joined_columns(columns)[0], candidates)


def _of_others(
    candidates: Candidates,
    scores: np.ndarray,
    parts: list[tuple[np.ndarray, sp.csr_matrix]],
    label_text: sp.csr_matrix | None,
) -> dict[str, np.ndarray]:
    """Of each pair: the first score, what co-occurring labels and labels of like names say by their
    probabilities, and how much of a sum and a maximum the others have."""
    p, row = logistic(np.asarray(scores, np.float64)).astype(np.float32), candidates.row_of_pair
    matrix = candidates.to_csr(p)
    said, alike = np.zeros(len(p), np.float32), np.zeros(len(p), np.float32)
    for rows, graph in parts:
        inside = np.isin(row, rows)
        said[inside] = candidates.rows(rows).values_of(sp.csr_matrix(matrix[rows] @ graph))
    if label_text is not None:
        text = unit(label_text)
        sums = sp.csr_matrix(matrix @ text)
        for first in range(0, len(p), 20_000):
            some = slice(first, first + 20_000)
            own = text[candidates.labels[some]]
            alike[some] = np.asarray(sums[row[some]].multiply(own).sum(axis=1)).ravel()
            alike[some] -= p[some] * np.asarray(own.multiply(own).sum(axis=1)).ravel()
    best = np.zeros(candidates.n_rows, np.float32)
    np.maximum.at(best, row, p)
    total = np.asarray(matrix.sum(axis=1)).ravel().astype(np.float32)
    return {
        "first": np.asarray(scores, np.float32),
        "others_said": said,
        "others_alike": alike,
        "others_sum": total[row] - p,
        "row_best": best[row],
    }

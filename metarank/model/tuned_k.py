"""The k of `features="yang2012"`: the number of neighbours of each label that describe a pair."""

from __future__ import annotations

import numpy as np

from metarank._util.progress import note
from metarank.ranker.auto_ranker import list_quality
from metarank.ranker.linear_ranker import ListNet
from metarank.ranker.lists import RankingData, cross_fit_scores, hash_numbers
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import TrainingSet

GRID = tuple(range(10, 101, 10))
_L2 = 0.01
_MAX_PAIRS = 100_000


def tuned_k(data: TrainingSet, *, n_jobs: int = 1) -> int:
    """The k from 10 to 100 whose 3k + 2 columns let ListNet rank held-out rows best (Yang & Gopal 2012, 3.4).

    The distances to the 100 nearest points are computed once; a smaller k uses the first of them. Quality is
    measured as in `AutoRanker`, over the folds of the fit. Ties go to the smaller k.
    """
    n, n_labels = data.Y.shape
    rows = np.sort(
        np.argsort(hash_numbers(n, data.seed), kind="stable")[: max(50, _MAX_PAIRS // max(1, n_labels))]
    )
    candidates = Candidates.all_labels(len(rows), n_labels)
    near = LabelNeighbors(k=GRID[-1], columns="raw")
    columns = held_out_columns(near, data, candidates, rows=rows, n_jobs=n_jobs)
    columns |= held_out_columns(Centroids(), data, candidates, rows=rows, n_jobs=n_jobs)
    gains = data.Y[rows].toarray().astype(np.float32).ravel()
    if len(np.unique(data.fold[rows])) < 2:
        return GRID[0]

    quality = {}
    for k in GRID:
        names = [n for n in columns if "_nn" not in n or int(n.rsplit("_nn", 1)[1]) <= k]
        table = FeatureTable(np.column_stack([columns[n] for n in names]), names, candidates)
        lists = RankingData.checked(table, gains, None, data.fold[rows], data.seed)
        scores = cross_fit_scores(ListNet(l2=_L2), lists, n_jobs)
        quality[k] = float(np.sum(list_quality(scores, lists, n_jobs)))
    best = max(GRID, key=lambda k: quality[k])
    note(f"features: k = {best}, chosen by cross-validation")
    return best

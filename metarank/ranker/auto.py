"""`AutoRanker`: one ranker or a blend of two, chosen by cross-validation over lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._threads import single_threaded_blas
from metarank.ranker.base import Ranker
from metarank.ranker.blend import BlendRanker
from metarank.ranker.boosted import BoostedRanker
from metarank.ranker.linear import LinearRanker
from metarank.ranker.listnet import ListNet
from metarank.ranker.lists import RankingData, cross_fit_scores, spread_within_lists
from metarank.ranker.logistic import LogisticRanker

# With fewer lists to learn from, trees have nothing to split.
_LISTS_FOR_TREES = 50


class AutoRanker(Ranker):
    """The simplest of some rankers that is, held out, nearly as good as the best.

    Each candidate scores every list from a fit without the list's fold. Its quality is the mean
    over lists of ``(AP + nDCG + 1 - RankLoss) / 3`` (lists without a relevant pair left out;
    AP as scikit-learn's label ranking average precision). The mean of the best linear and the
    best boosted candidate, each divided by its spread within lists, competes as "blend". The first in
    order (the blend comes last) whose mean loss against the best is at most `tolerance`
    standard errors of that difference is fitted on all lists. Boosted candidates take part
    from 50 lists with different gains on.

    Parameters
    ----------
    candidates : sequence of Ranker, optional
        Simplest first; by default logistic, listnet, binary, lambdarank.
    blend : bool
        Whether the blend competes.
    tolerance : float
        In standard errors of the difference between two candidates.
    max_pairs : int
        The choice looks at whole lists drawn by hash up to so many pairs.

    Attributes
    ----------
    choice_ : str
        Name of the chosen candidate.
    ranker_ : Ranker
        The chosen one, fitted on all lists.
    quality_ : dict of str to float
        Held-out quality of each candidate.
    out_of_fold_scores_ : float64 array (m,)
        For every training pair the score of the chosen ranker fitted without the pair's fold.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.candidates import Candidates
    >>> from metarank.features.table import FeatureTable
    >>> pairs = Candidates.all_labels(20, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (20, 1)), ["nearness"], pairs)
    >>> ranker = AutoRanker().fit(table, np.tile([0, 1, 0], 20))
    >>> ranker.choice_
    'logistic'
    >>> ranker.score(table)[:3].argsort()
    array([0, 2, 1])
    """

    name = "auto"

    choice_: str
    ranker_: Ranker
    quality_: dict[str, float]
    out_of_fold_scores_: np.ndarray

    def __init__(
        self,
        *,
        candidates: Sequence[Ranker] | None = None,
        blend: bool = True,
        tolerance: float = 0.25,
        max_pairs: int = 200_000,
    ) -> None:
        self.candidates = candidates
        self.blend = blend
        self.tolerance = tolerance
        self.max_pairs = max_pairs

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        part = data.sample(self.max_pairs)
        with single_threaded_blas():
            candidates = {c.name: c for c in self._candidates(part)}
            scores = {name: cross_fit_scores(c, part, n_jobs) for name, c in candidates.items()}
            quality = {name: list_quality(s, part, n_jobs) for name, s in scores.items()}
            members = self._blended(candidates, quality)
            if members:
                parts = [scores[name] for name in members]
                scales = [spread_within_lists(s, part.indptr) for s in parts]
                blend = BlendRanker(members=[candidates[name] for name in members], scales=scales)
                candidates["blend"] = blend
                scores["blend"] = np.mean([s / scale for s, scale in zip(parts, scales)], axis=0)
                quality["blend"] = list_quality(scores["blend"], part, n_jobs)

            self.choice_ = simplest_of_the_best(quality, self.tolerance)
            chosen = candidates[self.choice_]
            held_out = scores[self.choice_] if part is data else cross_fit_scores(chosen, data, n_jobs)
            self.out_of_fold_scores_ = held_out
            self.ranker_ = clone(chosen).fit_lists(data, n_jobs)
        self.quality_ = {name: float(q.mean()) if len(q) else float("nan") for name, q in quality.items()}

    def _candidates(self, data: RankingData) -> list[Ranker]:
        candidates = self.candidates
        if candidates is None:
            boosted = [BoostedRanker(objective="binary"), BoostedRanker(objective="lambdarank")]
            candidates = [LogisticRanker(), ListNet(), *boosted]
        names = [c.name for c in candidates]
        if not names or len(set(names)) < len(names) or "blend" in names:
            raise ValueError(f"candidates must be rankers of different names other than 'blend', got {names}")
        if np.count_nonzero(data.informative) >= _LISTS_FOR_TREES:
            return list(candidates)
        return [c for c in candidates if not isinstance(c, BoostedRanker)] or [LogisticRanker()]

    def _blended(self, candidates: dict[str, Ranker], quality: dict[str, np.ndarray]) -> list[str]:
        """Names of the best linear and the best boosted candidate; none if there are not both."""
        best = []
        for kind in (LinearRanker, BoostedRanker):
            names = [name for name, c in candidates.items() if isinstance(c, kind)]
            best += [max(names, key=lambda name: quality[name].sum())] if names else []
        return best if self.blend and len(best) == 2 else []

    def _score(self, values: np.ndarray, n_jobs: int) -> np.ndarray:
        return self.ranker_._score(values, n_jobs)

    def _contributions(self, values: np.ndarray) -> np.ndarray:
        return self.ranker_._contributions(values)

    def _saved_params(self) -> dict[str, Any]:
        return {"blend": self.blend, "tolerance": self.tolerance, "max_pairs": self.max_pairs}

    def _get_fitted(self) -> dict[str, Any]:
        return {"choice": self.choice_, "quality": self.quality_, "ranker": self.ranker_.get_state()}

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        self.choice_, self.quality_ = fitted["choice"], fitted["quality"]
        self.ranker_ = Ranker.from_state(fitted["ranker"])


def list_quality(scores: np.ndarray, data: RankingData, n_jobs: int) -> np.ndarray:
    """``(AP + nDCG + 1 - RankLoss) / 3`` of each list with a relevant pair, times its relative weight."""
    ap, ndcg, rank_loss = _core.list_quality(scores, data.gains, data.indptr, n_jobs).T
    counted = ~np.isnan(ap) & (data.weight > 0)
    weight = data.weight[counted]
    return (ap + ndcg + 1.0 - rank_loss)[counted] / 3.0 * weight / (weight.mean() if len(weight) else 1.0)


def simplest_of_the_best(quality: dict[str, np.ndarray], tolerance: float) -> str:
    """The first whose mean is within `tolerance` standard errors of their difference of the best mean."""
    best = max(quality, key=lambda name: quality[name].sum())
    for name, q in quality.items():
        deficit = quality[best] - q
        if deficit.sum() <= tolerance * np.sqrt(len(q)) * deficit.std():
            return name
    return best

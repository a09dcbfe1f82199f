"""`AutoRanker`: a ranker or a blend of several, chosen by cross-validation over lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._threads import single_threaded_blas
from metarank.features.table import FeatureTable
from metarank.ranker.base import Ranker
from metarank.ranker.blend import BlendRanker
from metarank.ranker.boosted import BoostedRanker
from metarank.ranker.labelwise import LabelwiseRanker
from metarank.ranker.lists import RankingData, cross_fit_scores, spread_within_lists
from metarank.ranker.logistic import LogisticRanker
from metarank.ranker.ranksvm import RankSVM

# With fewer lists to learn from, trees have nothing to split.
_LISTS_FOR_TREES = 50
# With more labels, few have pairs enough for weights of their own.
_LABELS_FOR_LABELWISE = 1000


def default_candidates() -> list[Ranker]:
    """Averages of log-odds, which are hard to beat on small data, then their parts and other losses."""
    linear, labelwise, boosted = LogisticRanker(), LabelwiseRanker(), BoostedRanker(objective="binary")
    return [
        BlendRanker(members=[linear, boosted], scales=[1.0, 1.0]),
        BlendRanker(members=[linear, labelwise, boosted], scales=[1.0, 1.0, 1.0]),
        BlendRanker(members=[linear, labelwise], scales=[1.0, 1.0]),
        linear,
        boosted,
        RankSVM(),
        BlendRanker(members=[RankSVM(), boosted]),
        BoostedRanker(objective="lambdarank"),
    ]


class AutoRanker(Ranker):
    """Of several rankers the first that is, held out, nearly as good as the best.

    Each ranker scores every list from a fit without the list's fold. Its quality is the mean
    over lists of ``(AP + nDCG + 1 - RankLoss) / 3`` (lists without a relevant pair left out;
    AP as scikit-learn's label ranking average precision). The first candidate whose mean is at most
    `tolerance` standard errors of the difference below the best mean is fitted on all lists. Boosted
    rankers take part from 50 lists with different gains on, labelwise ones up to 1,000 labels.

    Parameters
    ----------
    candidates : sequence of Ranker, optional
        The preferred ones first; `default_candidates` by default. A member of several blends
        is fitted once.
    tolerance : float
        In standard errors of the difference between two candidates. The default is the rule of one
        standard error: the best of eight noisy means is a worse choice than the preferred one.
    max_pairs : int
        The choice, and that of the rankers' own parameters, looks at whole lists drawn by hash
        up to so many pairs.

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
    'logistic+labelwise'
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
        tolerance: float = 1.0,
        max_pairs: int = 100_000,
    ) -> None:
        self.candidates = candidates
        self.tolerance = tolerance
        self.max_pairs = max_pairs

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        part = data.sample(self.max_pairs)
        with single_threaded_blas():
            trial = CrossFit(part, n_jobs)
            candidates = {c.name: trial.settle(c) for c in self._eligible(part)}
            scores = {name: trial.scores(c) for name, c in candidates.items()}
            quality = {name: list_quality(s, part, n_jobs) for name, s in scores.items()}
            self.choice_ = first_near_the_best(quality, self.tolerance)
            chosen = candidates[self.choice_]
            held_out = scores[self.choice_] if part is data else CrossFit(data, n_jobs).scores(chosen)
            self.out_of_fold_scores_ = held_out
            self.ranker_ = clone(chosen).fit_lists(data, n_jobs)
        self.quality_ = {name: float(q.mean()) if len(q) else float("nan") for name, q in quality.items()}

    def _eligible(self, data: RankingData) -> list[Ranker]:
        candidates = default_candidates() if self.candidates is None else list(self.candidates)
        names = [c.name for c in candidates]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"candidates must be one or more rankers of different names, got {names}")
        unfit: tuple[type[Ranker], ...] = ()
        if np.count_nonzero(data.informative) < _LISTS_FOR_TREES:
            unfit += (BoostedRanker,)
        if data.table.candidates.n_labels > _LABELS_FOR_LABELWISE:
            unfit += (LabelwiseRanker,)
        fit = [c for c in candidates if not any(isinstance(part, unfit) for part in members_of(c))]
        return fit or [LogisticRanker()]

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return self.ranker_._score(table, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return self.ranker_._contributions(table)

    def _saved_params(self) -> dict[str, Any]:
        return {"tolerance": self.tolerance, "max_pairs": self.max_pairs}

    def _get_fitted(self) -> dict[str, Any]:
        return {"choice": self.choice_, "quality": self.quality_, "ranker": self.ranker_.get_state()}

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        self.choice_, self.quality_ = fitted["choice"], fitted["quality"]
        self.ranker_ = Ranker.from_state(fitted["ranker"])


def members_of(ranker: Ranker) -> list[Ranker]:
    """The members of a blend; the ranker itself otherwise."""
    return list(ranker.members) if isinstance(ranker, BlendRanker) else [ranker]


class CrossFit:
    """Held-out scores of rankers and of blends of them; each ranker is tuned and cross-fitted once."""

    def __init__(self, data: RankingData, n_jobs: int) -> None:
        self.data = data
        self.n_jobs = n_jobs
        self._settled: dict[str, Ranker] = {}
        self._scores: dict[str, np.ndarray] = {}

    def settle(self, ranker: Ranker) -> Ranker:
        """A copy with all that is chosen by cross-validation chosen, the scales of a blend included."""
        if isinstance(ranker, BlendRanker):
            members = [self.settle(member) for member in ranker.members]
            scales = ranker.scales
            if scales is None:
                scales = [spread_within_lists(self.scores(member), self.data.indptr) for member in members]
            return BlendRanker(members=members, weights=ranker.weights, scales=scales)
        if repr(ranker) not in self._settled:
            self._settled[repr(ranker)] = ranker.tuned(self.data, self.n_jobs)
        return self._settled[repr(ranker)]

    def scores(self, settled: Ranker) -> np.ndarray:
        """float64 (m,): the held-out scores of a settled ranker."""
        if isinstance(settled, BlendRanker):
            factors = settled.factors(settled.scales or [])
            return np.sum([f * self.scores(m) for f, m in zip(factors, settled.members)], axis=0)
        if repr(settled) not in self._scores:
            self._scores[repr(settled)] = cross_fit_scores(settled, self.data, self.n_jobs)
        return self._scores[repr(settled)]


def list_quality(scores: np.ndarray, data: RankingData, n_jobs: int) -> np.ndarray:
    """``(AP + nDCG + 1 - RankLoss) / 3`` of each list with a relevant pair, times its relative weight."""
    ap, ndcg, rank_loss = _core.list_quality(scores, data.gains, data.indptr, n_jobs).T
    counted = ~np.isnan(ap) & (data.weight > 0)
    weight = data.weight[counted]
    return (ap + ndcg + 1.0 - rank_loss)[counted] / 3.0 * weight / (weight.mean() if len(weight) else 1.0)


def first_near_the_best(quality: dict[str, np.ndarray], tolerance: float) -> str:
    """The first whose mean is within `tolerance` standard errors of their difference of the best mean."""
    best = max(quality, key=lambda name: quality[name].sum())
    for name, q in quality.items():
        deficit = quality[best] - q
        if deficit.sum() <= tolerance * np.sqrt(len(q)) * deficit.std():
            return name
    return best

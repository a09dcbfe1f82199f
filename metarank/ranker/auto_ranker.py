"""`AutoRanker`: one ranker among several, chosen by cross-validation over lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._util.parameters import with_parameters
from metarank._util.progress import in_turn, note
from metarank.persist.fields import Each, Number, Object, Params, Text
from metarank.persist.spec import Spec
from metarank.ranker.base import Ranker, saved_with
from metarank.ranker.boosted_ranker import BoostedRanker
from metarank.ranker.ensemble import EnsembleRanker
from metarank.ranker.linear_ranker import LinearRanker
from metarank.ranker.lists import RankingData
from metarank.types.feature_table import FeatureTable

# With fewer lists to learn from, trees have nothing to split.
_LISTS_FOR_TREES = 50


@with_parameters
class AutoRanker(Ranker):
    """The first of some rankers that is, held out, nearly as good as the best.

    Each candidate scores every list from a fit without the list's fold. Its quality is the mean
    over lists of ``(AP + nDCG + 1 - RankLoss) / 3`` (lists without a relevant pair left out;
    AP as scikit-learn's label ranking average precision). The first in order whose mean loss
    against the best is at most `tolerance` standard errors of that difference is taken: a choice
    among near equals is noise, so the first candidate should be the one to trust.

    Parameters
    ----------
    candidates : sequence of Ranker, optional
        By default the ensemble, then LambdaRank; below 50 lists with different gains, where trees
        have nothing to split, the linear "logistic" alone.
    tolerance : float
        In standard errors of the difference between two candidates.
    max_pairs : int
        The choice looks at whole lists drawn by hash up to this many pairs.
    label_columns : list of str, optional
        Passed to the ensemble.

    Attributes
    ----------
    choice_ : str
        Name of the chosen candidate.
    ranker_ : Ranker
        The chosen one, fitted on all lists.
    quality_ : dict of str to float
        Held-out measure of each candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(20, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (20, 1)), ["nearness"], pairs)
    >>> ranker = AutoRanker().fit(table, np.tile([0, 1, 0], 20))
    >>> ranker.choice_
    'logistic'
    >>> ranker.score(table)[:3].argsort()
    array([0, 2, 1])
    """

    candidates: Sequence[Ranker] | None = None
    tolerance: float = 1.0
    max_pairs: int = 150_000
    label_columns: list[str] | None = None

    name = "auto"

    saved: ClassVar[Spec] = saved_with(
        Text("choice_"),
        Each("quality_", Number("", floats="any")),
        Object("ranker_", Ranker, ("columns",)),
        params=Params(without=("candidates",)),
    )

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Choose, fit on all lists, and return the chosen ranker's held-out scores."""
        part = data.sample(self.max_pairs)
        candidates = [clone(c) for c in self._candidates(part)]
        quality: dict[str, np.ndarray] = {}
        scores: dict[str, np.ndarray] = {}
        if len(candidates) > 1:
            held_out = in_turn(lambda c: c.fit_out_of_fold(part, n_jobs), candidates, lambda c: str(c.name))
            for candidate, own in zip(candidates, held_out):
                scores[candidate.name] = own
                quality[candidate.name] = list_quality(part.placed(own), part, n_jobs)
            self.choice_: str = first_near_the_best(quality, self.tolerance)
        else:
            self.choice_ = candidates[0].name
        self.ranker_: Ranker = next(c for c in candidates if c.name == self.choice_)
        if part is not data or len(candidates) == 1:
            scores[self.choice_] = self.ranker_.fit_out_of_fold(data, n_jobs)
        self.quality_: dict[str, float] = {
            name: float(q.mean()) if len(q) else float("nan") for name, q in quality.items()
        }
        self.names_: list[str] = list(data.table.names)
        note(f"ranker: {self.summary()}")
        return scores[self.choice_]

    def summary(self) -> str:
        """The choice, and the quality of held-out lists that it was made by."""
        qualities = ", ".join(f"{name} {q:.4f}" for name, q in self.quality_.items())
        by = f" (held-out (MAP + nDCG + 1 - RankLoss) / 3: {qualities})" if qualities else ""
        return self.choice_ + by

    def _fit(self, data: RankingData, n_jobs: int) -> None:
        self.fit_out_of_fold(data, n_jobs)

    def _candidates(self, data: RankingData) -> list[Ranker]:
        if self.candidates is None:
            if np.count_nonzero(data.informative) < _LISTS_FOR_TREES or len(np.unique(data.fold)) == 1:
                return [LinearRanker(loss="logistic")]
            return [
                EnsembleRanker(label_columns=self.label_columns),
                BoostedRanker(objective="lambdarank"),
            ]
        names = [c.name for c in self.candidates]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"candidates must be rankers of different names, got {names}")
        return list(self.candidates)

    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray:
        return self.ranker_._score(table, n_jobs)

    def _contributions(self, table: FeatureTable) -> np.ndarray:
        return self.ranker_._contributions(table)


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

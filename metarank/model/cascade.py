"""`Cascade`: which candidates are worth describing, by what their sources say as they propose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.elementary import log
from metarank.metrics import evaluate
from metarank.persist.fields import Integer, Object
from metarank.persist.spec import Saved
from metarank.ranker.boosted_ranker import BoostedRanker
from metarank.ranker.lists import RankingData
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable

# The place of a pair in the list of a source that does not propose it: behind any that does.
ABSENT = 1e6
# How far the best dropped pair of a row is behind its last described one, in units of log-odds.
GAP = 1e-3
# How much of these metrics dropped pairs may cost, and how many first pairs of the small trees are looked at.
_METRICS = ("nDCG@5", "PSP@5")
_LOSS = 0.001
_FIRST = 5


class Lists(NamedTuple):
    """The candidates of some rows, and which of them are described.

    Attributes
    ----------
    candidates : Candidates of m pairs
    rough : float64 array (m,) or None
        What the cascade says of them; None where all are described.
    ahead : bool array (m,) or None
        The pairs that are described.
    cascade : Cascade or None
        What was learned from these lists.
    """

    candidates: Candidates
    rough: np.ndarray | None = None
    ahead: np.ndarray | None = None
    cascade: Cascade | None = None

    @property
    def described(self) -> Candidates:
        return self.candidates if self.ahead is None else self.candidates.where(self.ahead)

    def of_described(self, values: np.ndarray) -> np.ndarray:
        """The values (m,) of the pairs that are described."""
        return values if self.ahead is None else values[self.ahead]

    def evidence(self, of_described: np.ndarray) -> np.ndarray:
        """float64 (m,): the evidence of the described pairs, and that of the others: behind all of their row
        that are described, apart by as much as their `rough` log-odds are."""
        if self.ahead is None or self.rough is None:
            return of_described
        indptr = self.candidates.indptr
        return _core.with_pairs_behind(of_described, self.rough, self.ahead.view(np.uint8), indptr, GAP)


def united(parts: list[Candidates], n_rows: int, n_labels: int) -> Candidates:
    """The union of the proposals of all sources; all labels if no source proposes."""
    return Candidates.united(parts) if parts else Candidates.all_labels(n_rows, n_labels)


@dataclass(frozen=True, eq=False)
class Cascade(Saved):
    """Drops the candidates that come nowhere near the top, before they are described.

    Most of what is proposed never enters the first places, and a few small trees can tell which, from the
    score and the place of a pair in the proposals of each source and from how rare its label is. To describe
    these too costs all columns and the whole ranker. They stay candidates, behind those that are described,
    in the order of the small trees.

    Parameters
    ----------
    ranker : fitted BoostedRanker
        Of the columns of `proposal_table`; its scores are log-odds.
    survivors : int
        Pairs of a row that are described, those of the highest score, ties by label id.
    """

    ranker: Annotated[BoostedRanker, Object("", BoostedRanker)]
    survivors: Annotated[int, Integer("", least=1)]

    def rough(
        self, candidates: Candidates, proposals: Sequence[Candidates], inv_propensity: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """float64 (m,): the log-odds of the pairs by the small trees, from the `inv_propensity` (L,) of
        labels."""
        table = proposal_table(candidates, proposals, inv_propensity[candidates.labels], n_jobs)
        return self.ranker.score(table, n_jobs=n_jobs)

    def filtered(self, candidates: Candidates, rough: np.ndarray) -> Lists:
        """The candidates with what is said of them, of which the foremost are described."""
        return Lists(candidates, rough, foremost(candidates, rough, self.survivors), self)


def learned_cascade(
    candidates: Candidates,
    proposals: Sequence[Candidates],
    inv_propensity: np.ndarray,
    gains: np.ndarray,
    *,
    fold: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
    survivors: int,
    n_jobs: int,
) -> Lists | None:
    """Training lists, filtered by trees that did not see their row, and the cascade that filters new ones.

    They learn from proposals and inverse propensities (m,) that did not see the row either.
    Returns None where the lists are hardly longer than what would be left, or there is nothing to learn.
    Rows of even folds are judged by trees that learned from odd ones, and the reverse.
    """
    if not _shortens(candidates, survivors) or not all(part.scores for part in proposals):
        return None
    table = proposal_table(candidates, proposals, inv_propensity, n_jobs)
    data = RankingData.checked(table, gains, weight, fold, seed)
    parts = [np.flatnonzero(fold % 2 == side) for side in (0, 1)]
    learning = [data, *(data.lists(part) for part in reversed(parts))]
    if not all(len(lists.weight) and _trees().can_learn(lists) for lists in learning):
        return None
    rankers = [_trees().fit_lists(lists, n_jobs) for lists in learning]
    rough = np.zeros(candidates.n_pairs)
    for part, ranker in zip(parts, rankers[1:]):
        pairs = data.pairs_of(part)
        rough[pairs] = ranker.score(table.pairs(pairs), n_jobs=n_jobs)
    return Cascade(rankers[0], survivors).filtered(candidates, rough)


def wide_enough(
    lists: Lists,
    proposals: list[Candidates],
    relevant: sp.csr_matrix,
    inv_propensity: np.ndarray,
    n_jobs: int,
) -> Lists | None:
    """The lists with enough survivors (half as many more at a time) that hardly any pair is lost that a
    ranker would put first; None if it is better to keep all.

    Which pairs a ranker puts first is not known before they are described. But some source has most
    of them at its head, or the small trees have. The quality of a ranker that orders these heads perfectly,
    once with the pairs that are dropped and once without, may differ by a thousandth: nDCG@5 and PSP@5 of the
    rows, by what is `relevant` (n, L) and the `inv_propensity` (L,) of labels.
    """
    candidates, rough, _, cascade = lists
    assert rough is not None
    assert cascade is not None
    heads = foremost(candidates, rough, _FIRST)
    for part in proposals:
        heads |= candidates.among(part.where(foremost(part, part.final_score.astype(np.float64), 1)))
    gains = candidates.values_of(relevant)

    def quality(kept: np.ndarray) -> np.ndarray:
        ranked = candidates.to_csr(np.where(kept, gains, np.float32(-1)))
        means = evaluate(relevant, ranked, _METRICS, inv_propensity=inv_propensity, n_jobs=n_jobs)
        return np.array([means[name] for name in _METRICS])

    every = quality(heads)
    while (every - quality(heads & lists.ahead)).max() > _LOSS:
        survivors = cascade.survivors + -(-cascade.survivors // 2)
        if not _shortens(candidates, survivors):
            return None
        cascade = replace(cascade, survivors=survivors)
        lists = cascade.filtered(candidates, rough)
    return lists


# Lists must be so many times longer than what is left of them.
_WORTHWHILE = 1.25


def _shortens(candidates: Candidates, survivors: int) -> bool:
    return candidates.n_pairs > _WORTHWHILE * survivors * candidates.n_rows


def _trees() -> BoostedRanker:
    return BoostedRanker(
        objective="binary",
        n_rounds=30,
        num_leaves=15,
        learning_rate=0.15,
        feature_fraction=1.0,
        max_irrelevant=50_000,
    )


def proposal_table(
    candidates: Candidates, proposals: Sequence[Candidates], inv_propensity: np.ndarray, n_jobs: int
) -> FeatureTable:
    """For each pair, its score and its place, from 0, in the proposals of each source, and the logarithm of
    its label's inverse propensity (m,).

    A pair that a source does not propose has the source's least score in the row, and a place behind all.

    Examples
    --------
    >>> a = Candidates(np.array([0, 2]), np.array([1, 4]), 5, {"a": np.array([0.2, 0.7])})
    >>> b = Candidates(np.array([0, 1]), np.array([1]), 5, {"b": np.array([3.0])})
    >>> proposal_table(Candidates.united([a, b]), [a, b], np.ones(2), 1).values
    array([[2.e-01, 1.e+00, 3.e+00, 0.e+00, 0.e+00],
           [7.e-01, 0.e+00, 3.e+00, 1.e+06, 0.e+00]], dtype=float32)
    """
    values = _core.proposal_columns(
        [(part.indptr, part.labels, part.final_score) for part in proposals],
        candidates.indptr,
        candidates.labels,
        log(inv_propensity).astype(np.float32),
        ABSENT,
        n_jobs,
    )
    names = [f"source {i + 1}: {what}" for i in range(len(proposals)) for what in ("score", "rank")]
    names.append("label frequency: log inverse propensity")
    return FeatureTable(values, names, candidates)


def foremost(candidates: Candidates, scores: np.ndarray, k: int) -> np.ndarray:
    """bool (m,): the k pairs of each row with the highest scores, ties by label id."""
    return _core.foremost(scores, candidates.indptr, k).view(bool)

"""The stages of a fit in which scorers and ranker are fitted, as functions; `LocalStages` runs them in this
process.

Each function depends on its arguments alone, and its result for a row does not depend on the other rows. So
`metarank.distributed` can call the same functions elsewhere, on parts of the rows, and get the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.base import clone

from metarank import _core
from metarank._util.progress import as_part, in_turn, note, taking_notes
from metarank._util.threads import single_threaded_blas
from metarank.model.best_points import PointLists, ranked_points
from metarank.model.cascade import Lists
from metarank.model.fitting.auto import FitOptions, choose_ranker
from metarank.model.fitting.leaks import leaks
from metarank.model.fitting.sources import tuned_k
from metarank.model.fitting.unjudged import believed_gains
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.objectives.pair_ranker import ObjectivesRanker
from metarank.ranker import Ranker, RankingData
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import drawn
from metarank.ranker.relatives import relatives_columns, wanted_columns
from metarank.scorers.base import LabelScorer, PointProposer
from metarank.scorers.crossfit import (
    OuterPart,
    held_out_columns,
    held_out_points,
    held_out_shortlist,
    nested_columns,
)
from metarank.scorers.neighbors.prior import PRIOR
from metarank.scorers.source import Source, describers
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns, FeatureTable
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.view import TrainingSet

T = TypeVar("T")

# Pairs for the importance of columns: so many give a share to within a few percent. With low effort a fifth.
_IMPORTANCE_PAIRS = 500
_FEWER_IMPORTANCE_PAIRS = 100
# Makes their draw independent of those of folds and rows.
_IMPORTANCE_SHIFT = 5_000_011


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """The lists that the ranker learns from, without the columns of the pairs.

    Parameters
    ----------
    rows : int64 array (r,)
        Training rows that the ranker learns from, ascending.
    fold : int32 array (r,)
        Fold of each row for the ranker.
    unit : int64 array (r,)
        Copies of a row and rows of its group have the same number.
    groups : int array (r,) or None
        Group of each row.
    proposed : Lists
        The candidates of the rows, m pairs, and which of them are described and ranked.
    gains : float32 array (m,)
    options : FitOptions
    weight : float array (r,) or None
    aggregation : MultiObjectiveRanker or None
        How several objectives are ranked, instead of by the ranker of the options.
    is_shortlisted : bool
    is_given : bool
        Whether candidates were given, with scores.
    targets : dict of str to float32 array, by objective
        Gains of the ranked pairs.
    outer : list of OuterPart, "nested" or None
        The rows on which the ranker is judged: these parts, those of `crossfit.nested_columns`, or each fold.
    shown : bool array of the ranked pairs, or None
        See `RankingData`.
    labels : LabelDescriptions or None
        The table of the labels, of whose relations further columns follow.
    rejected : bool array (m,) or None
        Pairs that a person rejected, if there are any.
    points : PointLists or None
        Lists of points, where the best points of each label are learned too.
    """

    rows: np.ndarray
    fold: np.ndarray
    unit: np.ndarray
    groups: np.ndarray | None
    proposed: Lists
    gains: np.ndarray
    options: FitOptions
    weight: np.ndarray | None = None
    aggregation: MultiObjectiveRanker | None = None
    is_shortlisted: bool = False
    is_given: bool = False
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    outer: list[OuterPart[Any]] | Literal["nested"] | None = None
    shown: np.ndarray | None = None
    labels: LabelDescriptions | None = None
    rejected: np.ndarray | None = None
    points: PointLists | None = None

    @cached_property
    def ranked(self) -> Candidates:
        """The pairs that the ranker learns from."""
        return self.proposed.described

    @cached_property
    def described(self) -> Candidates:
        """All pairs that are described, those of the lists of points included."""
        return (
            self.ranked if self.points is None else Candidates.united([self.ranked, self.points.candidates])
        )

    def new_ranker(self, classifier_columns: list[str]) -> Ranker:
        """The ranker to be fitted."""
        if self.aggregation is not None:
            return ObjectivesRanker(model=self.aggregation)
        asked, effort, n_pairs = self.options.ranker, self.options.effort, self.ranked.n_pairs
        return choose_ranker(asked, n_pairs, classifier_columns, effort, self.is_shortlisted, self.is_given)


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """A fitted ranker and its scores of the training pairs.

    Parameters
    ----------
    ranker : fitted Ranker
    scores : float64 array (m,)
        Score of each pair from a fit that did not see its row. Those of labels without evidence are `placed`.
    feature_columns : list of str
    raw_columns : list of str or None
        See `metarank.ranker.assemble.assemble`.
    importances : float64 array (F,)
        The mean absolute contribution of each column to the scores of some training pairs, as a share of the
        sum; all 0 if nothing contributes.
    point_ranker : Ranker or None
        What orders the points of each label, if it was asked for.
    gains : float32 array (m,) or None
        What the ranker learned if pairs were rejected: the gains, with unjudged pairs that count as relevant.
    leaks : list of str
        Warnings of given candidates, see `metarank.model.fitting.leaks`.
    """

    ranker: Ranker
    scores: np.ndarray
    feature_columns: list[str]
    raw_columns: list[str] | None
    importances: np.ndarray
    point_ranker: Ranker | None = None
    gains: np.ndarray | None = None
    leaks: list[str] = field(default_factory=list)


def ranked(
    columns: list[Columns], lists: TrainingLists, n_jobs: int, data: TrainingSet, scorers: list[LabelScorer]
) -> RankedPairs:
    """Assemble the columns of all scorers, in their order, and fit the ranker, and that of points.

    `columns` is emptied, since memory seldom holds both it and the table. `data` and the unfitted `scorers`
    describe the rows again if the ranker is judged on nested columns.
    """
    is_classifier, options, points = [scorer.is_classifier for scorer in scorers], lists.options, None
    if lists.points is not None:
        of_points = columns_among(columns, lists.described, lists.points.candidates)
        points = ranked_points(of_points, lists.points, options.standardizes, options.seed, n_jobs)
        del of_points
    of_ranked = columns_among(columns, lists.described, lists.ranked)
    columns.clear()
    gains = lists.proposed.of_described(lists.gains)
    given = data.given.scores if data.given is not None else {}
    suspect = leaks(of_ranked, lists.ranked, data.Y, gains > 0, given) if given else []
    table, raw, classifier_columns = assembled(of_ranked, lists, lists.ranked, is_classifier, n_jobs)
    ranker = lists.new_ranker(classifier_columns)
    learned = RankingData.checked(table, gains, lists.weight, lists.fold, options.seed, lists.targets)
    # An estimate of the share of the time, right within a factor of two.
    anew = 0.5 if lists.outer == "nested" else 0.0
    with as_part("describing anew", 0.0, anew):
        outer = _outer_tables(lists, n_jobs, data, scorers)
        learned = replace(learned, groups=lists.groups, outer=outer, shown=lists.shown)
    with as_part("learning", anew, 1.0 - anew):
        ranker, scores, believed = _learned(ranker, learned, lists, n_jobs)
    most = _FEWER_IMPORTANCE_PAIRS if options.effort == "low" else _IMPORTANCE_PAIRS
    pairs = drawn(len(table.values), most, options.seed + _IMPORTANCE_SHIFT)
    sizes = np.abs(ranker.contributions(table.pairs(pairs))[:, :-1]).mean(axis=0)
    importances = sizes / (sizes.sum() or 1.0)
    return RankedPairs(ranker, scores, table.names, raw, importances, points, believed, suspect)


def columns_among(columns: Sequence[Columns], described: Candidates, wanted: Candidates) -> list[Columns]:
    """The columns of the pairs `wanted` from those of all that are `described`."""
    if described is wanted:
        return list(columns)
    at = np.searchsorted(described.pair_keys, wanted.pair_keys)
    return [{name: values[at] for name, values in of_source.items()} for of_source in columns]


def _learned(
    ranker: Ranker, data: RankingData, lists: TrainingLists, n_jobs: int
) -> tuple[Ranker, np.ndarray, np.ndarray | None]:
    """The fitted ranker, its held-out scores and, if pairs were rejected, what it learned.

    It then learns first that all pairs without a label are irrelevant, and again that some of them are not.
    """
    if lists.rejected is None:
        return ranker, data.placed(ranker.fit_out_of_fold(data, n_jobs)), None
    first = clone(ranker)
    with as_part("all unjudged irrelevant", 0.0, 0.5), taking_notes() as notes:
        scores = data.placed(first.fit_out_of_fold(data, n_jobs))
    rejected = lists.proposed.of_described(lists.rejected)
    gains = believed_gains(lists.ranked, scores, data.gains, rejected, lists.options.seed)
    if np.array_equal(gains, data.gains):
        for text in notes:
            note(text)
        return first, scores, gains
    data = replace(data, gains=gains)
    with as_part("some unjudged relevant", 0.5, 0.5):
        return ranker, data.placed(ranker.fit_out_of_fold(data, n_jobs)), gains


def _outer_tables(
    lists: TrainingLists, n_jobs: int, data: TrainingSet, scorers: Sequence[LabelScorer]
) -> tuple[OuterPart[FeatureTable], ...] | None:
    """The parts on which the ranker is judged; None means one fold after another."""
    if lists.outer != "nested":
        return None if lists.outer is None else tuple(lists.outer)
    is_classifier = [scorer.is_classifier for scorer in scorers]

    def with_table(part: OuterPart[list[Columns]]) -> OuterPart[FeatureTable]:
        assert part.described is not None
        seen = lists.ranked.rows(part.seen)
        table, *_ = assembled(part.described, lists, seen, is_classifier, n_jobs)
        return OuterPart(part.held_out, part.seen, table)

    return tuple(nested_columns(scorers, data, lists.ranked, n_jobs, with_table))


def assembled(
    columns: list[Columns], lists: TrainingLists, pairs: Candidates, is_classifier: list[bool], n_jobs: int
) -> tuple[FeatureTable, list[str] | None, list[str]]:
    """The feature table of some pairs, the columns that enter it as they are, and those of classifiers.

    `columns` is emptied. The values of a row depend on its own list alone.
    """
    named, classifier_columns = joined_columns(columns, is_classifier)
    columns.clear()
    if lists.labels is not None:
        wanted = wanted_columns(named, classifier_columns, lists.labels)
        named |= relatives_columns(wanted, named, pairs, lists.labels)
    # Classifier scores are comparable between lists; beside them, distances count within the list only.
    # With shortlists, pairs are so many and varied that raw values are informative too.
    raw = [*classifier_columns, PRIOR] if classifier_columns and not lists.is_shortlisted else None
    table = assemble(named, pairs, standardize=lists.options.standardizes, raw=raw, n_jobs=n_jobs)
    return table, raw, classifier_columns


class LocalStages:
    """Runs the stages of one fit in this process, one after another.

    Parameters
    ----------
    data : TrainingSet
    n_jobs : int
        Threads.
    """

    def __init__(self, data: TrainingSet, n_jobs: int) -> None:
        self.data = data
        self.n_jobs = n_jobs
        # Fits without each fold, by the number of the source, for sources that both propose and describe.
        self._fits: dict[int, dict[int, Any]] = {}

    def tuned_k(self) -> int:
        """The number of neighbours of each label that describe a pair if features are "yang2012"."""
        return tuned_k(self.data, n_jobs=self.n_jobs)

    def tune(self, sources: list[Source]) -> list[Source]:
        """The sources with the free parameters of each scorer tuned once on all rows, for all folds."""
        return self._with_scorers(sources, lambda scorer: scorer.tuned(self.data.view(), n_jobs=self.n_jobs))

    def fit_on_all(self, sources: list[Source]) -> list[Source]:
        """The sources with a copy of each scorer, fitted on all rows, which ranks new rows."""
        _core.release_memory()  # of the fits without a fold, which were made of many small arrays
        with single_threaded_blas():
            return self._with_scorers(
                sources, lambda scorer: clone(scorer).fit(self.data.view(), n_jobs=self.n_jobs)
            )

    def propose(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates]:
        """For each source that proposes: its k proposals for some training rows, from fits without the row's
        fold."""
        self._fits = {i: {} for i, source in enumerate(sources) if source.proposes and source.describes}
        return self._said(held_out_shortlist, {i: s for i, s in enumerate(sources) if s.proposes}, k, rows)

    def propose_points(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates | None]:
        """For each source that proposes, if it searches for points: the k best rows for each label of those
        of each fold, by fits without the fold. After `propose`, for the same rows."""

        def points(scorer: Any, *args: Any, **how: Any) -> Candidates | None:
            return held_out_points(scorer, *args, **how) if isinstance(scorer, PointProposer) else None

        return self._said(points, {i: s for i, s in enumerate(sources) if s.proposes}, k, rows)

    def describe(self, sources: list[Source], candidates: Candidates, rows: np.ndarray) -> list[Columns]:
        """For each source that describes: its columns for candidates of some training rows, as if the rows
        were new."""
        describing = {i: s for i, s in enumerate(sources) if s.describes}
        described = self._said(held_out_columns, describing, candidates, rows, last=True)
        self.data.release("held-out")
        return described

    def rank(self, columns: list[Columns], lists: TrainingLists, sources: list[Source]) -> RankedPairs:
        """`ranked`."""
        return ranked(columns, lists, self.n_jobs, self.data, describers(sources))

    def _with_scorers(
        self, sources: list[Source], changed: Callable[[LabelScorer], LabelScorer]
    ) -> list[Source]:
        return in_turn(lambda s: replace(s, scorer=changed(s.scorer)), sources, lambda s: s.name)

    def _said(
        self, work: Callable[..., T], used: dict[int, Source], of: Any, rows: np.ndarray, last: bool = False
    ) -> list[T]:
        """What `work`, of `metarank.scorers.crossfit`, finds for each source by its number. Its fits are let
        go of at `last`."""

        def of_source(i: int) -> T:
            fits = self._fits.pop(i, None) if last else self._fits.get(i)
            return work(used[i].scorer, self.data, of, rows=rows, n_jobs=self.n_jobs, fits=fits)

        return in_turn(of_source, list(used), lambda i: used[i].name)

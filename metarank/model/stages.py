"""The stages of a fit in which scorers and ranker are fitted, as functions; `LocalStages` runs them in this
process.

Each function depends on its arguments alone, and its result for a row does not depend on the other rows. So
`metarank.distributed` can call the same functions elsewhere, on parts of the rows, and get the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.base import clone

from metarank._util.progress import as_part, in_turn, note, taking_notes
from metarank._util.threads import single_threaded_blas
from metarank.model.auto import FEWER_MODELS, GIVEN_PAIRS, ranker_name
from metarank.model.point_lists import PointLists, ranked_points
from metarank.model.unjudged import believed_gains
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.objectives.pair_ranker import ObjectivesRanker
from metarank.ranker import (
    AutoRanker,
    ListwiseRanker,
    PointwiseRanker,
    Ranker,
    RankingData,
    make_ranker,
)
from metarank.ranker.assemble import assemble, joined_columns
from metarank.ranker.lists import hash_numbers
from metarank.ranker.relatives import relatives_columns, wanted_columns
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import (
    OuterPart,
    held_out_columns,
    held_out_points,
    held_out_shortlist,
    nested_columns,
)
from metarank.scorers.source import Source, describers, with_scorers
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.label_relations import LabelRelations
from metarank.types.view import TrainingSet

T = TypeVar("T")

# Pairs for the importance of columns: so many give a share to within a few percent. With low effort a fifth.
_IMPORTANCE_PAIRS = 500
_FEWER_IMPORTANCE_PAIRS = 100
# Makes their draw independent of those of folds and rows.
_IMPORTANCE_SHIFT = 5_000_011
# Columns of a scorer, by name.
Columns = dict[str, np.ndarray]


def tuned(scorer: LabelScorer, data: TrainingSet, n_jobs: int) -> LabelScorer:
    """The scorer with its free parameters tuned once on all rows, for all folds."""
    return scorer.tuned(data.view(), n_jobs=n_jobs) if scorer.is_tunable else scorer


def fitted_on_all(scorer: LabelScorer, data: TrainingSet, n_jobs: int) -> LabelScorer:
    """A copy of the scorer, fitted on all rows, which ranks new rows."""
    return clone(scorer).fit(data.view(), n_jobs=n_jobs)


@dataclass(frozen=True, eq=False)
class PairsToRank:
    """The training data of a ranker without the columns of the pairs.

    Parameters
    ----------
    ranker : str or unfitted Ranker
    aggregation : MultiObjectiveRanker or None
        How several objectives are ranked; it replaces `ranker`.
    candidates : Candidates of the training rows that are ranked, m pairs
    gains : float32 array (m,)
    weight : float array (n,) or None
    fold : int32 array (n,)
    seed : int
    is_classifier : list of bool
        For each scorer, whether its columns are classifier scores.
    is_shortlisted : bool
    standardize : bool
    targets : dict of str to float32 array (m,)
        Gains by objective.
    outer : list of OuterPart, "nested" or None
        The rows on which the ranker is judged: these parts, those of `crossfit.nested_columns`, or each fold.
    shown : bool array (m,) or None
        See `RankingData`.
    groups : int array (n,) or None
        Group of each row.
    relations : LabelRelations or None
        Relations of the labels, of which further columns follow.
    is_given : bool
        Whether candidates were given, with scores.
    rejected : bool array (m,) or None
        Pairs that a person rejected, if there are any.
    effort : str
    described : Candidates or None
        The pairs that the columns are of, where they are more than those to be ranked.
    """

    ranker: Any
    aggregation: MultiObjectiveRanker | None
    candidates: Candidates
    gains: np.ndarray
    weight: np.ndarray | None
    fold: np.ndarray
    seed: int
    is_classifier: list[bool]
    is_shortlisted: bool
    standardize: bool
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    outer: list[OuterPart[Any]] | Literal["nested"] | None = None
    shown: np.ndarray | None = None
    relations: LabelRelations | None = None
    groups: np.ndarray | None = None
    is_given: bool = False
    rejected: np.ndarray | None = None
    effort: str = "medium"
    described: Candidates | None = None

    def new_ranker(self, classifier_columns: list[str]) -> Ranker:
        """The ranker to be fitted."""
        if self.aggregation is not None:
            return ObjectivesRanker(model=self.aggregation)
        if not isinstance(self.ranker, str):
            own: Ranker = clone(self.ranker)
            return own
        name = ranker_name(
            self.ranker,
            self.candidates.n_pairs,
            is_shortlisted=self.is_shortlisted,
            is_given=self.is_given,
            effort=self.effort,
        )
        if name == "pointwise" and self.ranker == "auto" and self.effort == "low":
            return PointwiseRanker(n_models=FEWER_MODELS)
        if name == "auto" and (self.is_given or self.is_shortlisted):
            listwise = ListwiseRanker()
            if self.candidates.n_pairs < GIVEN_PAIRS:
                listwise = ListwiseRanker(num_leaves=7, n_rounds=150, learning_rate=0.05)
            return AutoRanker(candidates=[listwise, PointwiseRanker()])
        weighed = name in ("auto", "ensemble")
        return make_ranker(name, **({"label_columns": classifier_columns} if weighed else {}))


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
        See `importances_of`.
    gains : float32 array (m,) or None
        What the ranker learned if pairs were rejected: the gains, with unjudged pairs that count as relevant.
    """

    ranker: Ranker
    scores: np.ndarray
    feature_columns: list[str]
    raw_columns: list[str] | None
    importances: np.ndarray
    gains: np.ndarray | None = None


def ranked(
    columns: list[Columns], pairs: PairsToRank, n_jobs: int, data: TrainingSet, scorers: Sequence[LabelScorer]
) -> RankedPairs:
    """Assemble the columns of all scorers, in their order, and fit the ranker.

    `columns` is emptied, since memory seldom holds both it and the table. `data` and the unfitted `scorers`
    describe the rows again if the ranker is judged on nested columns.
    """
    own = columns_among(columns, pairs.described, pairs.candidates)
    columns.clear()
    table, raw, classifier_columns = assembled(own, pairs, pairs.candidates, n_jobs)
    ranker = pairs.new_ranker(classifier_columns)
    lists = RankingData.checked(table, pairs.gains, pairs.weight, pairs.fold, pairs.seed, pairs.targets)
    lists = replace(lists, groups=pairs.groups)
    # An estimate of the share of the time, right within a factor of two.
    anew = 0.5 if pairs.outer == "nested" else 0.0
    with as_part("describing anew", 0.0, anew):
        lists = replace(lists, outer=_outer_lists(pairs, n_jobs, data, scorers), shown=pairs.shown)
    with as_part("learning", anew, 1.0 - anew):
        ranker, scores, gains = _learned(ranker, lists, pairs, n_jobs)
    most = _FEWER_IMPORTANCE_PAIRS if pairs.effort == "low" else _IMPORTANCE_PAIRS
    return RankedPairs(
        ranker, scores, table.names, raw, importances_of(ranker, table, pairs.seed, most), gains
    )


def columns_among(
    columns: Sequence[Columns], described: Candidates | None, wanted: Candidates
) -> list[Columns]:
    """The columns of some pairs from those of all that are `described`; None if these are the same."""
    if described is None:
        return list(columns)
    at = np.searchsorted(described.pair_keys, wanted.pair_keys)
    return [{name: values[at] for name, values in own.items()} for own in columns]


def _learned(
    ranker: Ranker, lists: RankingData, pairs: PairsToRank, n_jobs: int
) -> tuple[Ranker, np.ndarray, np.ndarray | None]:
    """The fitted ranker, its held-out scores and, if pairs were rejected, what it learned.

    It then learns first that all pairs without a label are irrelevant, and again that some of them are not.
    """
    if pairs.rejected is None:
        return ranker, lists.placed(ranker.fit_out_of_fold(lists, n_jobs)), None
    first = clone(ranker)
    with as_part("all unjudged irrelevant", 0.0, 0.5), taking_notes() as notes:
        scores = lists.placed(first.fit_out_of_fold(lists, n_jobs))
    gains = believed_gains(pairs.candidates, scores, pairs.gains, pairs.rejected, pairs.seed)
    if np.array_equal(gains, pairs.gains):
        for text in notes:
            note(text)
        return first, scores, gains
    lists = replace(lists, gains=gains)
    with as_part("some unjudged relevant", 0.5, 0.5):
        return ranker, lists.placed(ranker.fit_out_of_fold(lists, n_jobs)), gains


def _outer_lists(
    pairs: PairsToRank, n_jobs: int, data: TrainingSet, scorers: Sequence[LabelScorer]
) -> tuple[OuterPart[FeatureTable], ...] | None:
    """The parts on which the ranker is judged; None means one fold after another."""
    if pairs.outer is None:
        return None
    if pairs.outer != "nested":
        return tuple(pairs.outer)

    def with_table(part: OuterPart[list[Columns]]) -> OuterPart[FeatureTable]:
        assert part.described is not None
        own = pairs.candidates.rows(part.seen)
        return OuterPart(part.held_out, part.seen, assembled(part.described, pairs, own, n_jobs)[0])

    return tuple(nested_columns(scorers, data, pairs.candidates, n_jobs, with_table))


def importances_of(
    ranker: Ranker, table: FeatureTable, seed: int, most: int = _IMPORTANCE_PAIRS
) -> np.ndarray:
    """float64 (F,): the mean absolute contribution of each column to the scores of at most so many training
    pairs, as a share of the sum; all 0 if nothing contributes."""
    hashed = hash_numbers(len(table.values), seed + _IMPORTANCE_SHIFT)
    drawn = np.argsort(hashed, kind="stable")[:most]
    sizes = np.abs(ranker.contributions(table.pairs(np.sort(drawn)))[:, :-1]).mean(axis=0)
    return sizes / (sizes.sum() or 1.0)


def assembled(
    columns: list[Columns], pairs: PairsToRank, candidates: Candidates, n_jobs: int
) -> tuple[FeatureTable, list[str] | None, list[str]]:
    """The feature table of some candidates, the columns that enter it as they are, and those of classifiers.

    `columns` is emptied. The values of a row depend on its own list alone.
    """
    named, classifier_columns = joined_columns(columns, pairs.is_classifier)
    columns.clear()
    if pairs.relations is not None:
        wanted = wanted_columns(named, classifier_columns, pairs.relations)
        named |= relatives_columns(wanted, named, candidates, pairs.relations)
    # Classifier scores are comparable between lists; beside them, distances count within the list only.
    # With shortlists, pairs are so many and varied that raw values are informative too.
    raw = [*classifier_columns, "prior"] if classifier_columns and not pairs.is_shortlisted else None
    table = assemble(named, candidates, standardize=pairs.standardize, raw=raw, n_jobs=n_jobs)
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
        from metarank.model.tuned_k import tuned_k

        return tuned_k(self.data, n_jobs=self.n_jobs)

    def tune(self, sources: list[Source]) -> list[Source]:
        """The sources with each scorer `tuned`."""
        return with_scorers(
            sources, in_turn(lambda s: tuned(s.scorer, self.data, self.n_jobs), sources, name_of)
        )

    def propose(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates]:
        """For each source that proposes: its k proposals for some training rows, from fits without the row's
        fold."""
        proposing = [i for i, source in enumerate(sources) if source.proposes]
        self._fits = {i: {} for i in proposing if sources[i].describes}

        def proposals(i: int) -> Candidates:
            scorer, fits = sources[i].scorer, self._fits.get(i)
            return held_out_shortlist(scorer, self.data, k, rows=rows, n_jobs=self.n_jobs, fits=fits)

        return in_turn(proposals, proposing, lambda i: sources[i].name)

    def propose_points(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates | None]:
        """For each source that proposes, if it searches for points: the k best rows for each label of those
        of each fold, by fits without the fold. After `propose`, for the same rows."""

        def proposals(i: int) -> Candidates | None:
            scorer, fits = sources[i].scorer, self._fits.get(i)
            if not scorer.proposes_points:
                return None
            return held_out_points(scorer, self.data, k, rows=rows, n_jobs=self.n_jobs, fits=fits)

        proposing = [i for i, source in enumerate(sources) if source.proposes]
        return in_turn(proposals, proposing, lambda i: sources[i].name)

    def describe(self, sources: list[Source], candidates: Candidates, rows: np.ndarray) -> list[Columns]:
        """For each source that describes: its columns for candidates of some training rows, as if the rows
        were new."""
        describing = [i for i, source in enumerate(sources) if source.describes]

        def columns_of(i: int) -> Columns:
            scorer, own = sources[i].scorer, self._fits.pop(i, None)
            return held_out_columns(scorer, self.data, candidates, rows=rows, n_jobs=self.n_jobs, fits=own)

        columns = in_turn(columns_of, describing, lambda i: sources[i].name)
        self.data.release("held-out")
        return columns

    def rank(self, columns: list[Columns], pairs: PairsToRank, sources: list[Source]) -> RankedPairs:
        """`ranked`."""
        return ranked(columns, pairs, self.n_jobs, self.data, describers(sources))

    def rank_points(self, columns: list[Columns], lists: PointLists, described: Candidates) -> Ranker:
        """`ranked_points`, from the columns of the pairs `described`, which are left as they are."""
        return ranked_points(columns_among(columns, described, lists.candidates), lists, self.n_jobs)

    def decided(self, name: str, inputs: Sequence[Any], make: Callable[[], T]) -> T:
        """The result of `make`, a decision that depends on `inputs`: cuts, or the weight of rare labels."""
        return make()

    def fit_on_all(self, sources: list[Source]) -> list[Source]:
        """The sources with each scorer `fitted_on_all`."""
        with single_threaded_blas():
            return with_scorers(
                sources, in_turn(lambda s: fitted_on_all(s.scorer, self.data, self.n_jobs), sources, name_of)
            )


def name_of(source: Source) -> str:
    """Name of a source in reports."""
    return source.name

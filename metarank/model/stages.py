"""Stages of a fit in which scorers and ranker work, as functions, and `LocalStages`, which runs them here.

Each function depends on its arguments alone, and what it says of a row on no other row that is asked for.
So it does not matter where, and on which part of the rows, it is called: a fit elsewhere
(`metarank.distributed`) calls the same functions and gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.base import clone

from metarank._util.progress import as_part, in_turn
from metarank._util.threads import single_threaded_blas
from metarank.model.auto import ranker_name
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.objectives.pair_ranker import ObjectivesRanker
from metarank.ranker import Ranker, RankingData, make_ranker
from metarank.ranker.assemble import assemble
from metarank.ranker.lists import OuterLists, hash_numbers
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import OuterPart, held_out_columns, held_out_shortlist, nested_columns
from metarank.scorers.source import Source, describers, with_scorers
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import TrainingSet

T = TypeVar("T")

# Pairs whose contributions tell the importance of columns: a share is then known to a few percent of itself.
_IMPORTANCE_PAIRS = 500
# Keeps their draw apart from those of folds and rows.
_IMPORTANCE_SHIFT = 5_000_011
# Columns of a scorer, by name.
Columns = dict[str, np.ndarray]


def tuned(scorer: LabelScorer, data: TrainingSet, n_jobs: int) -> LabelScorer:
    """The scorer with its free parameters chosen once, on all rows; they hold in every fold."""
    return scorer.tuned(data.view(), n_jobs=n_jobs) if scorer.is_tunable else scorer


def fitted_on_all(scorer: LabelScorer, data: TrainingSet, n_jobs: int) -> LabelScorer:
    """A copy of the scorer, fitted on all rows: what new rows are ranked with."""
    return clone(scorer).fit(data.view(), n_jobs=n_jobs)


@dataclass(frozen=True, eq=False)
class PairsToRank:
    """All that a ranker is fitted on but the columns of the pairs.

    Parameters
    ----------
    ranker : str or unfitted Ranker
    aggregation : MultiObjectiveRanker or None
        What several objectives are ranked by, instead.
    candidates : Candidates of the training rows that are ranked, m pairs
    gains : float32 array (m,)
    weight : float array (n,) or None
    fold : int32 array (n,)
    seed : int
    is_classifier : list of bool
        By scorer: whether its columns are scores of a classifier.
    is_shortlisted : bool
    standardize : bool
    targets : dict of str to float32 array (m,)
        Gains by objective.
    outer : list of OuterPart, "nested" or None
        What the ranker is judged on: these parts, those of `crossfit.nested_columns`, or each fold.
    shown : bool array (m,) or None
        See `RankingData`.
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
    outer: list[OuterPart] | Literal["nested"] | None = None
    shown: np.ndarray | None = None

    def new_ranker(self, classifier_columns: list[str]) -> Ranker:
        """The ranker to be fitted."""
        if self.aggregation is not None:
            return ObjectivesRanker(model=self.aggregation)
        if not isinstance(self.ranker, str):
            own: Ranker = clone(self.ranker)
            return own
        name = ranker_name(self.ranker, is_shortlisted=self.is_shortlisted)
        weighed = name in ("auto", "ensemble")
        return make_ranker(name, **({"label_columns": classifier_columns} if weighed else {}))


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """A fitted ranker and what it says of the training pairs.

    Parameters
    ----------
    ranker : fitted Ranker
    scores : float64 array (m,)
        Of each pair, from a fit that saw nothing of its row; those of labels without evidence are `placed`.
    feature_columns : list of str
    raw_columns : list of str or None
        See `metarank.ranker.assemble.assemble`.
    importances : float64 array (F,)
        See `importances_of`.
    """

    ranker: Ranker
    scores: np.ndarray
    feature_columns: list[str]
    raw_columns: list[str] | None
    importances: np.ndarray


def ranked(
    columns: list[Columns], pairs: PairsToRank, n_jobs: int, data: TrainingSet, scorers: Sequence[LabelScorer]
) -> RankedPairs:
    """Assemble the columns of all scorers, in their order, and fit the ranker.

    `columns` is emptied on the way: beside the table there is seldom room for both. `data` and the unfitted
    `scorers` describe the rows anew where the ranker is judged on nested columns.
    """
    table, raw, classifier_columns = assembled(columns, pairs, pairs.candidates, n_jobs)
    ranker = pairs.new_ranker(classifier_columns)
    lists = RankingData.checked(table, pairs.gains, pairs.weight, pairs.fold, pairs.seed, pairs.targets)
    # A share of the time that is right within a factor of two.
    anew = 0.5 if pairs.outer == "nested" else 0.0
    with as_part("describing anew", 0.0, anew):
        lists = replace(lists, outer=_outer_lists(pairs, n_jobs, data, scorers), shown=pairs.shown)
    with as_part("learning", anew, 1.0 - anew):
        scores = lists.placed(ranker.fit_out_of_fold(lists, n_jobs))
    return RankedPairs(ranker, scores, table.names, raw, importances_of(ranker, table, pairs.seed))


def _outer_lists(
    pairs: PairsToRank, n_jobs: int, data: TrainingSet, scorers: Sequence[LabelScorer]
) -> tuple[OuterLists, ...] | None:
    """What the ranker is judged on; None: one fold after another."""
    if pairs.outer is None:
        return None
    if pairs.outer != "nested":
        return tuple(OuterLists(part.held_out, part.seen) for part in pairs.outer)

    def lists_of(part: OuterPart) -> OuterLists:
        assert part.columns is not None
        own = pairs.candidates.rows(part.seen)
        return OuterLists(part.held_out, part.seen, assembled(part.columns, pairs, own, n_jobs)[0])

    return tuple(nested_columns(scorers, data, pairs.candidates, n_jobs, lists_of))


def importances_of(ranker: Ranker, table: FeatureTable, seed: int) -> np.ndarray:
    """Float64 (F,): the mean size of each column's contribution to the scores of some training pairs, as a
    share of all; 0 everywhere where nothing contributes."""
    n_pairs = len(table.values)
    drawn = np.argsort(hash_numbers(n_pairs, seed + _IMPORTANCE_SHIFT), kind="stable")[:_IMPORTANCE_PAIRS]
    sizes = np.abs(ranker.contributions(table.pairs(np.sort(drawn)))[:, :-1]).mean(axis=0)
    return sizes / (sizes.sum() or 1.0)


def assembled(
    columns: list[Columns], pairs: PairsToRank, candidates: Candidates, n_jobs: int
) -> tuple[FeatureTable, list[str] | None, list[str]]:
    """The table of some candidates, which columns enter it as they are, and which are of classifiers.

    `columns` is emptied. What is said of a row depends on its own list alone.
    """
    named, classifier_columns = joined_columns(columns, pairs.is_classifier)
    columns.clear()
    # Beside classifiers, whose scores mean the same everywhere, distances count within the list only.
    # Shortlisted pairs are many and of all kinds, so that the values themselves tell something too.
    raw = [*classifier_columns, "prior"] if classifier_columns and not pairs.is_shortlisted else None
    table = assemble(named, candidates, standardize=pairs.standardize, raw=raw, n_jobs=n_jobs)
    return table, raw, classifier_columns


def joined_columns(
    columns: Sequence[Columns], is_classifier: Sequence[bool] = ()
) -> tuple[Columns, list[str]]:
    """The columns of several scorers under distinct names, and the names of those of classifiers.

    Two scorers may both give a `name`; the later becomes `name#2`.

    Examples
    --------
    >>> a, b = {"score": np.zeros(1)}, {"score": np.ones(1)}
    >>> joined_columns([a, b], [False, True])
    ({'score': array([0.]), 'score#2': array([1.])}, ['score#2'])
    """
    joined: Columns = {}
    of_classifiers = []
    for i, own in enumerate(columns):
        for name, values in own.items():
            unique, n = name, 2
            while unique in joined:
                unique, n = f"{name}#{n}", n + 1
            joined[unique] = values
            if i < len(is_classifier) and is_classifier[i]:
                of_classifiers.append(unique)
    return joined, of_classifiers


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
        # Fits without each fold, by number of the source: one that proposes and describes is fitted once.
        self._fits: dict[int, dict[int, Any]] = {}

    def tuned_k(self) -> int:
        """How many neighbours of each label describe a pair where features are "yang2012"."""
        from metarank.model.tuned_k import tuned_k

        return tuned_k(self.data, n_jobs=self.n_jobs)

    def tune(self, sources: list[Source]) -> list[Source]:
        """The sources with each scorer `tuned`."""
        return with_scorers(
            sources, in_turn(lambda s: tuned(s.scorer, self.data, self.n_jobs), sources, name_of)
        )

    def propose(self, sources: list[Source], rows: np.ndarray, k: int) -> list[Candidates]:
        """The k proposals of each source that proposes for some training rows, from fits without the row's
        fold."""
        proposing = [i for i, source in enumerate(sources) if source.proposes]
        self._fits = {i: {} for i in proposing if sources[i].describes}

        def proposals(i: int) -> Candidates:
            scorer, fits = sources[i].scorer, self._fits.get(i)
            return held_out_shortlist(scorer, self.data, k, rows=rows, n_jobs=self.n_jobs, fits=fits)

        return in_turn(proposals, proposing, lambda i: sources[i].name)

    def describe(self, sources: list[Source], candidates: Candidates, rows: np.ndarray) -> list[Columns]:
        """The columns of each source that describes, for the candidates of some training rows, as if the rows
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

    def decided(self, name: str, inputs: Sequence[Any], make: Callable[[], T]) -> T:
        """What `make` decides by these inputs, once the pairs are ranked: cuts, or how rare labels count."""
        return make()

    def fit_on_all(self, sources: list[Source]) -> list[Source]:
        """The sources with each scorer `fitted_on_all`."""
        with single_threaded_blas():
            return with_scorers(
                sources, in_turn(lambda s: fitted_on_all(s.scorer, self.data, self.n_jobs), sources, name_of)
            )


def name_of(source: Source) -> str:
    """What a report calls the work of a source."""
    return source.name

"""`fit_model`: the order in which the stages of a model are fitted.

sources -> candidates -> meta-features -> ranker -> thresholds -> fits on all rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._util.parameters import seed_of
from metarank._util.progress import as_part, note
from metarank.data.label_text import label_phrases
from metarank.metrics.propensity import inv_propensity
from metarank.metrics.resampling import Interval
from metarank.model.answer import united
from metarank.model.auto import choose_features, choose_shortlister
from metarank.model.fitted import FittedModel
from metarank.model.held_out import held_out_quality
from metarank.model.inputs import TrainingInput
from metarank.model.memory import parse_budget, plan_fit
from metarank.model.propensity_weight import held_out_inv_propensity, tuned_propensity_weight
from metarank.model.stages import LocalStages, PairsToRank, RankedPairs
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import OuterPart, can_nest, inner_parts, n_outer_parts
from metarank.scorers.names.name_embedder import NameEmbedder
from metarank.scorers.neighbors.prior import smoothed_shares
from metarank.scorers.objective import ObjectiveScorer
from metarank.scorers.sizes import FitSizes
from metarank.scorers.source import Source, describers, proposers, sources_of
from metarank.thresholds import ThresholdLearner
from metarank.types.candidates import Candidates
from metarank.types.missing import MissingPairs
from metarank.types.view import Features, TrainingSet, fold_of_rows, hidden_labels, same_content

# The ranker's training table is held to this many pairs; beyond, rows are sampled by hash.
MAX_TRAINING_PAIRS = 2_000_000
# And that of the thresholds to this many.
MAX_CUT_PAIRS = 200_000
# With shortlists, held-out rows beyond this many add nothing that is worth the fits without their folds.
_ENOUGH_ROWS = 5_000
# Fewer rows say too little of nDCG@5 to trade it for PSP@5.
_ROWS_FOR_PROPENSITY = 100
# Up to so many pairs rows are described anew without each two folds, for the ranker to be judged.
_NESTED_PAIRS = 300_000
# Where labels are shortlisted, whose fits are the greater part of the cost, only up to so many.
_NESTED_SHORTLISTED_PAIRS = 60_000
# Beyond, the rows of a fold are divided into so many parts, if there are so many rows at least. Shortlisted
# rows are judged fold by fold there: a ranker that learned from a fold's rows alone is too much the worse.
_INNER_PARTS = 3
_LEAST_INNER_ROWS = 20
# Keeps the folds of the ranker apart from those of its columns, where they are not the same.
_FOLD_SHIFT = 3_000_017


@dataclass(frozen=True)
class FitOptions:
    """How a model is to be fitted: the parameters of `MetaRanker` that its fit reads.

    Parameters
    ----------
    shortlister, features, label_text, ranker, threshold, n_folds, effort : as of `MetaRanker`
    shortlist_size, propensity_weight, memory_budget : as of `MetaRanker`
    seed : int
    n_jobs : int
        Threads.
    every_pair : bool
        Whether the ranker learns from the pairs of all rows, wherever they are.
    """

    shortlister: Any
    features: Any
    label_text: Any
    ranker: Any
    threshold: str
    n_folds: int
    effort: str
    shortlist_size: int
    propensity_weight: float | str
    memory_budget: Any
    seed: int
    n_jobs: int
    every_pair: bool = False

    @property
    def standardizes(self) -> bool:
        """Whether columns are standardised within each list too; the features of 2012 are as they are."""
        return not (isinstance(self.features, str) and self.features == "yang2012")


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """The lists that the ranker learns from.

    Parameters
    ----------
    data : TrainingSet
    rows : int64 array (r,)
        Its rows that are ranked, ascending.
    X : features (r, d) of these rows
    fold : int32 array (r,)
        Of the ranker.
    is_shortlisted : bool
    candidates : Candidates of the rows, m pairs
    gains : float32 array (m,)
    """

    data: TrainingSet
    rows: np.ndarray
    X: Features
    fold: np.ndarray
    is_shortlisted: bool
    candidates: Candidates
    gains: np.ndarray


@dataclass(frozen=True, eq=False)
class Judged:
    """What is learned from the held-out scores of the ranker."""

    thresholds: ThresholdLearner
    propensity_weight: float
    missing: MissingPairs
    quality: dict[str, Interval]


def fit_model(
    given: TrainingInput,
    options: FitOptions,
    at_work: Callable[[TrainingSet], AbstractContextManager[LocalStages]],
) -> FittedModel:
    """Fit every stage on the training rows.

    Parameters
    ----------
    given : TrainingInput
    options : FitOptions
    at_work : function of a TrainingSet
        Gives the place where sources and ranker work, for as long as the fit lasts.

    Raises
    ------
    ValueError, TypeError
        If a parameter does not go with the data, or the fit cannot be had within the memory budget.
    """
    names, label_text = texts_of_labels(given, options)
    sources = chosen_sources(given, label_text, options)
    data = training_set(given, sources, names, label_text, options)
    rows = ranked_rows(data, sources, options)
    plan_memory(data, sources, rows, options)
    with at_work(data) as stages:
        with as_part("tuning", 0.01, 0.04):
            sources = tuned(sources, stages, options)
        with as_part("shortlisting", 0.05, 0.2):
            lists = training_lists(given, data, rows, sources, stages, options)
        with as_part("describing", 0.25, 0.35):
            columns = stages.describe(sources, lists.candidates, rows)
        with as_part("ranking", 0.6, 0.2):
            found = stages.rank(columns, pairs_to_rank(given, lists, sources, options), sources)
        judged = judge(found, lists, stages, options, has_one_target=not given.labels.targets)
        del lists
        with as_part("fitting on all rows", 0.85, 0.15):
            sources = stages.fit_on_all(sources)
    return _assembled(given, options, sources, found, judged)


def _assembled(
    given: TrainingInput, options: FitOptions, sources: list[Source], found: RankedPairs, judged: Judged
) -> FittedModel:
    labels, n = given.labels, given.n_rows
    return FittedModel(
        encoder=given.encoder,
        n_labels=given.n_labels,
        label_names=labels.names,
        label_separator=labels.separator,
        n_rows=n,
        row_names=given.row_names,
        inv_propensity=weights_of_labels(labels.Y),
        prior=smoothed_shares(np.diff((labels.Y > 0).tocsc().indptr), n).astype(np.float32),
        objective_names=list(labels.targets) or None,
        sources=sources,
        standardizes=options.standardizes,
        feature_columns=found.feature_columns,
        raw_columns=found.raw_columns,
        ranker=found.ranker,
        thresholds=judged.thresholds,
        propensity_weight=judged.propensity_weight,
        random_state=options.seed,
        missing=judged.missing,
        feature_importances=found.importances,
        held_out_quality=judged.quality,
    )


def weights_of_labels(Y: sp.csr_matrix) -> np.ndarray:
    """Inverse propensities of the labels, float64 (L,); ones of rows too few to tell."""
    return inv_propensity(Y) if Y.shape[0] >= 3 else np.ones(Y.shape[1])


# --- sources ---------------------------------------------------------------------


def texts_of_labels(
    given: TrainingInput, options: FitOptions
) -> tuple[tuple[Sequence[str] | None, Sequence[str] | None], sp.csr_matrix | None]:
    """Names and longer texts of the labels, as far as they say something, and both as rows of X's words."""
    names: Sequence[str] | None = given.labels.names
    texts = given.label_texts
    if given.labels.are_ids:  # they say nothing of the labels
        names = None if texts is None else [""] * given.n_labels
    if isinstance(options.label_text, (list, tuple)):
        texts = list(options.label_text)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"label_text must hold texts, got {options.label_text!r:.80}")
        if len(texts) != given.n_labels:
            raise ValueError(f"label_text must hold one text a label ({given.n_labels}), got {len(texts)}")
        names = names or [""] * given.n_labels
    elif options.label_text is None:
        names, texts = None, None
    rows = given.encoder.label_text(given.X, names, texts, given.words)
    if options.label_text == "learned" and rows is None:
        if given.encoder.feature_words is None:
            raise ValueError("label_text='learned' needs texts, or feature names that are words")
        missing = "label_names" if names is None else "label_names of words that occur in the texts"
        raise ValueError(f"label_text='learned' needs {missing}")
    return (names, texts), rows


def chosen_sources(
    given: TrainingInput, label_text: sp.csr_matrix | None, options: FitOptions
) -> list[Source]:
    """The unfitted sources, seeded, and once for every objective where there are several."""
    X, n_labels = given.X, given.n_labels
    shortlisters = choose_shortlister(
        options.shortlister,
        n_labels,
        label_text=label_text,
        n_rows=given.n_rows,
        n_terms=X.size if isinstance(X, np.ndarray) else int(X.nnz),
        effort=options.effort,
    )
    scorers = choose_features(
        options.features,
        X,
        n_labels,
        label_text=label_text,
        effort=options.effort,
        shortlisters=shortlisters,
    )
    sources = _seeded(sources_of(shortlisters, scorers))
    if options.label_text == "learned" and not any(isinstance(s.scorer, NameEmbedder) for s in sources):
        sources.append(Source(NameEmbedder(), proposes=bool(shortlisters), describes=True))
        note("label_text: names and what is learned of them, by NameEmbedder")
    described = describers(sources)
    sources += [
        Source(ObjectiveScorer(scorer=scorer, objective=name), proposes=False, describes=True)
        for name in given.labels.targets
        for scorer in described
        if not scorer.is_label_free and (scorer.is_quick or not shortlisters)
    ]
    return sources


def _seeded(sources: list[Source]) -> list[Source]:
    """The sources with a seed each for all their fits, where theirs is to be drawn."""
    out = []
    for source in sources:
        wanted = source.scorer.get_params(deep=False).get("random_state", 0)
        if not isinstance(wanted, Integral):
            seed = seed_of(wanted)
            source = replace(source, scorer=clone(source.scorer).set_params(random_state=seed))
            note(f"random_state of {source.name}: {seed}, drawn")
        out.append(source)
    return out


# --- training rows ---------------------------------------------------------------


def training_set(
    given: TrainingInput,
    sources: list[Source],
    texts: tuple[Sequence[str] | None, Sequence[str] | None],
    label_text: sp.csr_matrix | None,
    options: FitOptions,
) -> TrainingSet:
    """All that the sources learn from."""
    names, encoder = texts[0], given.encoder
    spelled = any(source.scorer.source == "label_spelling" for source in sources)
    # Where labels are shortlisted, many have no row outside a fold anyway.
    hiding = not proposers(sources) and any(scorer.reads_names for scorer in describers(sources))
    return TrainingSet(
        given.X,
        given.labels.Y,
        fold_of_rows(given.n_rows, options.n_folds, options.seed, given.X),
        seed=options.seed,
        label_names=given.labels.names,
        label_text=label_text,
        label_spelling=encoder.label_spelling(*texts) if spelled else None,
        label_phrases=None if names is None else label_phrases(names, texts[1]),
        words=encoder.feature_words,
        feature_scale=encoder.transform.scale,
        targets=given.labels.targets,
        hidden_in=hidden_labels(given.n_labels, options.n_folds, options.seed) if hiding else None,
    )


def ranked_rows(data: TrainingSet, sources: list[Source], options: FitOptions) -> np.ndarray:
    """Training rows that the ranker learns from, ascending."""
    return np.arange(len(data.fold)) if options.every_pair else sampled_rows(data, sources, options)


def sampled_rows(data: TrainingSet, sources: list[Source], options: FitOptions) -> np.ndarray:
    """Rows of as many folds as it takes, within the budget of pairs: each fold costs a fit of every source
    without it."""
    n, n_folds, proposing = len(data.fold), int(data.fold.max()) + 1, len(proposers(sources))
    share = -(-_ENOUGH_ROWS * n_folds // n) / n_folds if proposing else 1
    rows = np.flatnonzero(data.fold < share * n_folds)
    if len(rows) == 0:
        rows = np.arange(n)
    per_row = options.shortlist_size * proposing or int(data.Y.shape[1])
    budget = max(1, MAX_TRAINING_PAIRS // max(1, per_row))
    kept = rows if len(rows) <= budget else rows[_drawn_rows(len(rows), budget, options.seed + 1)]
    if len(kept) < n:
        note(f"ranker: learns from {len(kept)} of {n} rows")
    return kept


def _drawn_rows(n: int, wanted: int, seed: int) -> np.ndarray:
    """The `wanted` of n positions of smallest hash, ascending."""
    key = _core.fold_of_rows(n, 2**31 - 1, seed)
    return np.sort(np.argsort(key, kind="stable")[:wanted])


def plan_memory(data: TrainingSet, sources: list[Source], rows: np.ndarray, options: FitOptions) -> None:
    """Estimate the memory of the fit, and hold what can be held to the budget."""
    if options.every_pair:  # pairs that stay with the workers are no part of what this process holds
        rows = sampled_rows(data, sources, options)
    n_labels, proposing = int(data.Y.shape[1]), len(proposers(sources))
    sizes = FitSizes(
        data.X,
        data.Y,
        ranked_rows=len(rows),
        pairs_per_row=min(n_labels, options.shortlist_size * proposing) or n_labels,
        n_folds=data.n_folds,
        used_folds=len(np.unique(data.fold[rows])),
        n_jobs=options.n_jobs,
    )
    if _nests(data, len(rows), sizes.n_pairs, bool(proposing)):
        sizes = replace(sizes, n_tables=n_outer_parts(data.fold) - 1)
    plan = plan_fit(sizes, sources, parse_budget(options.memory_budget))
    data.chunk_pairs, data.keeps_products = plan.chunk_pairs, plan.keeps_products


# --- lists -----------------------------------------------------------------------


def tuned(sources: list[Source], stages: LocalStages, options: FitOptions) -> list[Source]:
    """The sources with free parameters chosen once, on all rows; they hold in every fold."""
    if not options.standardizes:
        describers(sources)[0].set_params(k=stages.tuned_k())
    return stages.tune(sources)


def training_lists(
    given: TrainingInput,
    data: TrainingSet,
    rows: np.ndarray,
    sources: list[Source],
    stages: LocalStages,
    options: FitOptions,
) -> TrainingLists:
    """The candidates of the rows that are ranked, proposed by fits without the row's fold."""
    # Held out by their views already, the rows of some folds only are divided anew.
    fold, X = data.fold[rows], given.X if len(rows) == given.n_rows else given.X[rows]
    if len(np.unique(fold)) < data.n_folds:
        fold = fold_of_rows(len(rows), options.n_folds, options.seed + _FOLD_SHIFT, X)
    proposals = stages.propose(sources, rows, options.shortlist_size)
    candidates = united(proposals, len(rows), given.n_labels)
    if given.excluded is not None:
        candidates = candidates.without(given.excluded.rows(rows))
        if candidates.n_pairs == 0:
            raise ValueError("exclude must leave at least one candidate in the training rows, it leaves none")
    gains = candidates.values_of(data.Y[rows])
    return TrainingLists(data, rows, X, fold, bool(proposals), candidates, gains)


def pairs_to_rank(
    given: TrainingInput, lists: TrainingLists, sources: list[Source], options: FitOptions
) -> PairsToRank:
    """What the ranker is fitted on beside the columns."""
    rows, candidates, weight = lists.rows, lists.candidates, given.weight
    return PairsToRank(
        options.ranker,
        given.aggregation,
        candidates,
        lists.gains,
        None if weight is None else weight[rows],
        lists.fold,
        options.seed,
        is_classifier=[scorer.is_classifier for scorer in describers(sources)],
        is_shortlisted=lists.is_shortlisted,
        standardize=options.standardizes,
        targets={name: candidates.values_of(of[rows]) for name, of in given.labels.targets.items()},
        outer=_judged_on(lists, options),
        shown=_with_rows(lists, describers(sources)),
    )


def _judged_on(lists: TrainingLists, options: FitOptions) -> list[OuterPart] | Literal["nested"] | None:
    """What held-out quality, calibration and cuts are learned on; see `metarank.scorers.crossfit`."""
    fold = lists.data.fold[lists.rows]
    sizes = np.unique(fold, return_counts=True)[1]
    if len(sizes) < 2:  # described by one View, which knows nothing of these rows
        return None
    if _nests(lists.data, len(lists.rows), lists.candidates.n_pairs, lists.is_shortlisted):
        return "nested"
    if lists.is_shortlisted or sizes.min() < _LEAST_INNER_ROWS:
        return None
    return inner_parts(fold, fold_of_rows(len(fold), _INNER_PARTS, options.seed + _FOLD_SHIFT, lists.X))


def _nests(data: TrainingSet, n_rows: int, n_pairs: int, is_shortlisted: bool) -> bool:
    """Whether all rows are ranked, and few enough pairs to describe them anew."""
    most = _NESTED_SHORTLISTED_PAIRS if is_shortlisted else _NESTED_PAIRS
    return n_rows == len(data.fold) and n_pairs <= most and can_nest(data)


def _with_rows(lists: TrainingLists, scorers: list[LabelScorer]) -> np.ndarray | None:
    """bool (m,): pairs whose label has rows outside the row's fold; None where names speak for labels too."""
    if any(scorer.reads_names for scorer in scorers):
        return None
    data, candidates = lists.data, lists.candidates
    n_labels, per_row = data.Y.shape[1], np.diff(data.Y.indptr)
    inside = np.bincount(
        np.repeat(data.fold, per_row).astype(np.int64) * n_labels + data.Y.indices,
        minlength=data.n_folds * n_labels,
    )
    total = inside.reshape(data.n_folds, n_labels).sum(axis=0)
    of_pair = data.fold[lists.rows[candidates.row_of_pair]].astype(np.int64) * n_labels + candidates.labels
    return total[candidates.labels] > inside[of_pair]


# --- what held-out scores tell ---------------------------------------------------


def judge(
    found: RankedPairs,
    lists: TrainingLists,
    stages: LocalStages,
    options: FitOptions,
    *,
    has_one_target: bool,
) -> Judged:
    """Cuts, calibration, the weight of rare labels and the quality that new rows may expect."""
    data, rows, scores = lists.data, lists.rows, found.scores
    # Cuts are for labels that have rows.
    shown = data.shows(rows[lists.candidates.row_of_pair], lists.candidates.labels)
    with as_part("thresholds", 0.8, 0.05):
        group = same_content(lists.X)
        thresholds = _cuts(lists, scores, shown, group, stages, options)
    probabilities = thresholds.probabilities(lists.candidates, scores)
    missing = MissingPairs.surest(lists.candidates, probabilities, lists.gains, rows)
    weight = _weight_of_rare_labels(lists, scores, thresholds, stages, options, has_one_target)
    weighs = weight * thresholds.scores_per_logit
    return Judged(
        thresholds, weight, missing, _quality(lists, scores, shown, group, thresholds, weighs, options.n_jobs)
    )


def _cuts(
    lists: TrainingLists,
    scores: np.ndarray,
    shown: np.ndarray,
    group: np.ndarray,
    stages: LocalStages,
    options: FitOptions,
) -> ThresholdLearner:
    """Calibration and cuts, from as many whole rows as the budget of pairs allows."""
    every, fold, seed = lists.candidates, lists.fold, options.seed
    unseen = np.bincount(every.row_of_pair[~shown & (lists.gains > 0)], minlength=len(lists.rows))
    n_relevant = np.diff(lists.data.Y.indptr)[lists.rows] - unseen
    candidates, scores, gains = every.where(shown), scores[shown], lists.gains[shown]
    if candidates.n_pairs > MAX_CUT_PAIRS:
        per_row = candidates.n_pairs / candidates.n_rows
        kept = _drawn_rows(candidates.n_rows, max(1, int(MAX_CUT_PAIRS / per_row)), seed + 2)
        inside = np.repeat(np.isin(np.arange(candidates.n_rows), kept), np.diff(candidates.indptr))
        candidates, scores, gains = candidates.rows(kept), scores[inside], gains[inside]
        fold, group, n_relevant = fold[kept], group[kept], n_relevant[kept]
    missed = int(n_relevant.sum()) - int((gains > 0).sum())
    learner, given = ThresholdLearner(options.threshold), (candidates, scores, gains)
    return stages.decided(
        "thresholds",
        (options.threshold, candidates.indptr, candidates.labels, scores, gains, fold, group, missed, seed),
        lambda: learner.fit(*given, fold=fold, group=group, missed=missed, seed=seed),
    )


def _weight_of_rare_labels(
    lists: TrainingLists,
    scores: np.ndarray,
    thresholds: ThresholdLearner,
    stages: LocalStages,
    options: FitOptions,
    has_one_target: bool,
) -> float:
    """The weight of log 1/p beside the log-odds: given, or chosen on out-of-fold scores."""
    data, rows, candidates = lists.data, lists.rows, lists.candidates
    per_unit = thresholds.scores_per_logit
    if not isinstance(options.propensity_weight, str):
        return float(options.propensity_weight)
    enough = data.Y.shape[0] >= _ROWS_FOR_PROPENSITY
    if not (lists.is_shortlisted and has_one_target and enough and per_unit > 0):
        return 0.0

    def choose() -> float:
        return tuned_propensity_weight(
            candidates,
            scores / per_unit,
            np.log(held_out_inv_propensity(data, rows, candidates)),
            data.Y[rows],
            inv_propensity=weights_of_labels(data.Y),
            n_jobs=options.n_jobs,
        )

    inputs = (candidates.indptr, candidates.labels, scores, per_unit, rows)
    weight = stages.decided("propensity-weight", inputs, choose)
    note(f"propensity_weight: {weight:g}, by PSP@5 and nDCG@5 of held-out rows")
    return weight


def _quality(
    lists: TrainingLists,
    scores: np.ndarray,
    shown: np.ndarray,
    group: np.ndarray,
    thresholds: ThresholdLearner,
    weight: float,
    n_jobs: int,
) -> dict[str, Interval]:
    """Of the ranking scores, in which rare labels weigh as the rows outside the row's fold say."""
    data, rows = lists.data, lists.rows
    candidates, scores, Y = lists.candidates.where(shown), scores[shown], data.Y[rows]
    if weight:
        scores = scores + weight * np.log(held_out_inv_propensity(data, rows, candidates))
    if data.hidden_in is not None:
        of_entry = np.repeat(rows, np.diff(Y.indptr))
        Y.data = Y.data * data.shows(of_entry, Y.indices)
        Y.eliminate_zeros()
    return held_out_quality(candidates, scores, Y, group, thresholds, n_jobs)

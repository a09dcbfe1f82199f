"""`Training`: the half of `MetaRanker` that knows the order in which its stages are fitted.

sources and features -> candidates -> meta-features -> ranker -> thresholds -> fits on all rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._parameters import seed_of
from metarank._progress import as_part, note
from metarank.candidates import Candidates
from metarank.choices import choose_features, choose_shortlister
from metarank.crossfit import OuterPart, can_nest, inner_parts, n_outer_parts
from metarank.held_out import held_out_quality
from metarank.label_table import LabelTable
from metarank.memory import FitSizes, parse_budget, plan_fit
from metarank.metrics.resampling import Interval
from metarank.missing import MissingPairs
from metarank.multi_objective import MultiObjectiveRanker
from metarank.propensity import inv_propensity
from metarank.propensity_weight import choose_propensity_weight, held_out_inv_propensity
from metarank.scorers.base import Features, LabelScorer
from metarank.scorers.name_embedder import NameEmbedder
from metarank.scorers.names import label_phrases
from metarank.scorers.objective import ObjectiveScorer
from metarank.scorers.prior import smoothed_shares
from metarank.scoring import Scoring, united
from metarank.stages import LocalStages, PairsToRank
from metarank.thresholds import ThresholdLearner
from metarank.view import TrainingSet, fold_of_rows, hidden_labels, same_content

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


class Training(Scoring):
    """Fits the stages of a model on encoded rows; what they become are its attributes."""

    ranker: Any
    threshold: str
    n_folds: int
    random_state: int
    label_text: Any
    shortlister: Any
    propensity_weight: float | str
    objective_names_: list[str] | None

    def _fit(
        self,
        X: Features,
        Y: sp.csr_matrix,
        names: Sequence[str] | None,
        are_ids: bool,
        label_texts: Sequence[str] | None,
        words: Sequence[str] | None,
        weight: np.ndarray | None,
        excluded: Candidates | None,
        targets: dict[str, sp.csr_matrix],
        aggregation: MultiObjectiveRanker | None,
        n_jobs: int,
    ) -> None:
        n, n_labels = Y.shape
        self.n_features_in_, self.n_labels_ = int(self.encoder_.n_features), int(n_labels)
        self.label_names_ = None if names is None else list(names)
        if are_ids:  # they say nothing of the labels
            names = None if label_texts is None else [""] * n_labels
        self.removed_ = np.zeros(0, np.int32)
        self.n_rows_ = n
        self.label_table_ = LabelTable(n_labels, self.label_names_)
        self.inv_propensity_ = inv_propensity(Y) if n >= 3 else np.ones(n_labels)
        self.prior_ = smoothed_shares(np.diff((Y > 0).tocsc().indptr), n).astype(np.float32)
        if isinstance(self.label_text, (list, tuple)):
            label_texts = list(self.label_text)
            if not all(isinstance(text, str) for text in label_texts):
                raise TypeError(f"label_text must hold texts, got {self.label_text!r:.80}")
            if len(label_texts) != n_labels:
                raise ValueError(
                    f"label_text must hold one text a label ({n_labels}), got {len(label_texts)}"
                )
            names = names or [""] * n_labels
        elif self.label_text is None:
            names, label_texts = None, None
        label_text = self.encoder_.label_text(X, names, label_texts, words)
        learned = self.label_text == "learned"
        if learned and label_text is None:
            if self.encoder_.feature_words is None:
                raise ValueError("label_text='learned' needs texts, or feature names that are words")
            missing = "label_names" if names is None else "label_names of words that occur in the texts"
            raise ValueError(f"label_text='learned' needs {missing}")
        shortlisters = choose_shortlister(
            self.shortlister,
            n_labels,
            label_text=label_text,
            n_rows=n,
            n_terms=X.size if isinstance(X, np.ndarray) else int(X.nnz),
            effort=self.effort,
        )
        scorers = choose_features(
            self.features,
            X,
            int(n_labels),
            label_text=label_text,
            effort=self.effort,
            shortlisters=shortlisters,
        )
        shortlisters, scorers = _seeded(shortlisters, scorers)
        if learned and not any(isinstance(s, NameEmbedder) for s in [*shortlisters, *scorers]):
            embedder = NameEmbedder()
            scorers.append(embedder)
            shortlisters += [embedder] if shortlisters else []
            note("label_text: names and what is learned of them, by NameEmbedder")
        scorers += [
            ObjectiveScorer(scorer=scorer, objective=name)
            for name in targets
            for scorer in scorers
            if not getattr(scorer, "is_label_free", False)
            and (getattr(scorer, "is_quick", False) or not shortlisters)
        ]
        spelled = any(_reads_spelling(s) for s in [*shortlisters, *scorers])
        spelling = self.encoder_.label_spelling(names, label_texts) if spelled else None
        phrases = None if names is None else label_phrases(names, label_texts)
        # Where labels are shortlisted, many have no row outside a fold anyway.
        hiding = not shortlisters and any(_reads_names(s) for s in scorers)
        data = TrainingSet(
            X,
            Y,
            fold_of_rows(n, self.n_folds, self.random_state, X),
            seed=self.random_state,
            label_names=self.label_names_,
            label_text=label_text,
            label_spelling=spelling,
            label_phrases=phrases,
            words=self.encoder_.feature_words,
            feature_scale=self.encoder_.transform.scale,
            targets=targets,
            hidden_in=hidden_labels(n_labels, self.n_folds, self.random_state) if hiding else None,
        )
        rows = self._ranked_rows(
            data.fold,
            n_labels if not shortlisters else self.shortlist_size * len(shortlisters),
            every_fold=not shortlisters,
        )
        self._plan_memory(data, shortlisters, scorers, rows, n_jobs)
        stages = self._stages(data, n_jobs)
        with as_part("settling parameters", 0.01, 0.04):
            shortlisters, scorers = self._settle(shortlisters, scorers, stages)
        # Held out by their views already, the rows of some folds only are divided anew.
        fold = data.fold[rows]
        copies = X if len(rows) == n else X[rows]
        if len(np.unique(fold)) < data.n_folds:
            fold = fold_of_rows(len(rows), self.n_folds, self.random_state + _FOLD_SHIFT, copies)
        with as_part("shortlisting", 0.05, 0.2):
            proposals = stages.propose(shortlisters, scorers, rows, self.shortlist_size)
        candidates = united(proposals, len(rows), self.n_labels_)
        if excluded is not None:
            candidates = candidates.without(excluded.rows(rows))
            if candidates.n_pairs == 0:
                raise ValueError(
                    "exclude must leave at least one candidate in the training rows, it leaves none"
                )
        gains = candidates.values_of(Y[rows])
        with as_part("describing", 0.25, 0.35):
            columns = stages.describe(scorers, candidates, rows)
        pairs = PairsToRank(
            self.ranker,
            aggregation,
            candidates,
            gains,
            None if weight is None else weight[rows],
            fold,
            self.random_state,
            is_classifier=[bool(getattr(scorer, "is_classifier", False)) for scorer in scorers],
            is_shortlisted=bool(shortlisters),
            standardize=self._standardizes,
            targets={name: candidates.values_of(of[rows]) for name, of in targets.items()},
            outer=self._judged_on(data, rows, candidates, copies, bool(shortlisters)),
            shown=_with_rows(data, rows, candidates, scorers),
        )
        with as_part("ranking", 0.6, 0.2):
            found = stages.rank(columns, pairs, scorers)
        del pairs
        self.ranker_, scores = found.ranker, found.scores
        self.feature_columns_, self.raw_columns_ = found.feature_columns, found.raw_columns
        self.feature_importances_ = found.importances
        # Cuts are for labels that have rows.
        shown = data.shows(rows[candidates.row_of_pair], candidates.labels)
        unseen = np.bincount(candidates.row_of_pair[~shown & (gains > 0)], minlength=len(rows))
        n_relevant = np.diff(Y.indptr)[rows] - unseen
        with as_part("thresholds", 0.8, 0.05):
            group = same_content(copies)
            own = candidates.where(shown), scores[shown], gains[shown]
            self._learn_cuts(*own, fold, group, n_relevant, stages)
        probabilities = self.thresholds_.probabilities(candidates, scores)
        self.missing_: MissingPairs | None = MissingPairs.surest(candidates, probabilities, gains, rows)
        self._learn_propensity_weight(candidates, scores, data, rows, bool(shortlisters), n_jobs, stages)
        self.held_out_quality_ = self._held_out_quality(
            candidates.where(shown), scores[shown], data, rows, group, n_jobs
        )
        del candidates, scores, gains
        distinct: dict[int, Any] = {id(s): s for s in [*shortlisters, *scorers]}
        with as_part("fitting on all rows", 0.85, 0.15):
            fitted = dict(zip(distinct, stages.fit_on_all(list(distinct.values()))))
        self.shortlisters_ = [fitted[id(s)] for s in shortlisters]
        self.scorers_ = [fitted[id(s)] for s in scorers]

    def _stages(self, data: TrainingSet, n_jobs: int) -> LocalStages:
        """Where scorers and ranker work."""
        return LocalStages(data, n_jobs)

    def _judged_on(
        self, data: TrainingSet, rows: np.ndarray, candidates: Candidates, X: Features, is_shortlisted: bool
    ) -> list[OuterPart] | Literal["nested"] | None:
        """What held-out quality, calibration and cuts are learned on; see `metarank.crossfit`."""
        fold = data.fold[rows]
        sizes = np.unique(fold, return_counts=True)[1]
        if len(sizes) < 2:  # described by one View, which knows nothing of these rows
            return None
        if self._nests(data, len(rows), candidates.n_pairs, is_shortlisted):
            return "nested"
        if is_shortlisted or sizes.min() < _LEAST_INNER_ROWS:
            return None
        inner = fold_of_rows(len(rows), _INNER_PARTS, self.random_state + _FOLD_SHIFT, X)
        return inner_parts(fold, inner)

    def _nests(self, data: TrainingSet, n_rows: int, n_pairs: int, is_shortlisted: bool) -> bool:
        """Whether all rows are ranked, and few enough pairs to describe them anew."""
        most = _NESTED_SHORTLISTED_PAIRS if is_shortlisted else _NESTED_PAIRS
        return n_rows == len(data.fold) and n_pairs <= most and can_nest(data)

    def _ranked_rows(self, fold: np.ndarray, per_row: int, *, every_fold: bool) -> np.ndarray:
        """Training rows that the ranker learns from, ascending."""
        return _ranked_rows(fold, per_row, self.random_state, every_fold=every_fold)

    def _learn_cuts(
        self,
        candidates: Candidates,
        scores: np.ndarray,
        gains: np.ndarray,
        fold: np.ndarray,
        group: np.ndarray,
        n_relevant: np.ndarray,
        stages: LocalStages,
    ) -> None:
        """Calibration and cuts, from as many whole rows as the budget of pairs allows."""
        if candidates.n_pairs > MAX_CUT_PAIRS:
            per_row = candidates.n_pairs / candidates.n_rows
            kept = _drawn_rows(candidates.n_rows, max(1, int(MAX_CUT_PAIRS / per_row)), self.random_state + 2)
            inside = np.repeat(np.isin(np.arange(candidates.n_rows), kept), np.diff(candidates.indptr))
            candidates, scores, gains = candidates.rows(kept), scores[inside], gains[inside]
            fold, group, n_relevant = fold[kept], group[kept], n_relevant[kept]
        missed = int(n_relevant.sum()) - int((gains > 0).sum())
        seed = self.random_state
        learner, given = ThresholdLearner(self.threshold), (candidates, scores, gains)
        self.thresholds_ = stages.decided(
            "thresholds",
            (self.threshold, candidates.indptr, candidates.labels, scores, gains, fold, group, missed, seed),
            lambda: learner.fit(*given, fold=fold, group=group, missed=missed, seed=seed),
        )

    def _learn_propensity_weight(
        self,
        candidates: Candidates,
        scores: np.ndarray,
        data: TrainingSet,
        rows: np.ndarray,
        is_shortlisted: bool,
        n_jobs: int,
        stages: LocalStages,
    ) -> None:
        """The weight of log 1/p beside the log-odds: given, or chosen on out-of-fold scores."""
        per_unit = self.thresholds_.scores_per_logit
        if not isinstance(self.propensity_weight, str):
            weight = float(self.propensity_weight)
        elif (
            is_shortlisted
            and self.objective_names_ is None
            and data.Y.shape[0] >= _ROWS_FOR_PROPENSITY
            and per_unit > 0
        ):

            def choose() -> float:
                held_out = held_out_inv_propensity(data, rows, candidates)
                return choose_propensity_weight(
                    candidates,
                    scores / per_unit,
                    np.log(held_out),
                    data.Y[rows],
                    inv_propensity=self.inv_propensity_,
                    n_jobs=n_jobs,
                )

            inputs = (candidates.indptr, candidates.labels, scores, per_unit, rows)
            weight = stages.decided("propensity-weight", inputs, choose)
            note(f"propensity_weight: {weight:g}, by PSP@5 and nDCG@5 of held-out rows")
        else:
            weight = 0.0
        self.propensity_weight_ = weight

    def _held_out_quality(
        self,
        candidates: Candidates,
        scores: np.ndarray,
        data: TrainingSet,
        rows: np.ndarray,
        group: np.ndarray,
        n_jobs: int,
    ) -> dict[str, Interval]:
        """Of the ranking scores, in which rare labels weigh as the rows outside the row's fold say."""
        weight, Y = self.propensity_weight_ * self.thresholds_.scores_per_logit, data.Y[rows]
        if weight:
            scores = scores + weight * np.log(held_out_inv_propensity(data, rows, candidates))
        if data.hidden_in is not None:
            of_entry = np.repeat(rows, np.diff(Y.indptr))
            Y.data = Y.data * data.shows(of_entry, Y.indices)
            Y.eliminate_zeros()
        return held_out_quality(candidates, scores, Y, group, self.thresholds_, n_jobs)

    def _plan_memory(
        self,
        data: TrainingSet,
        shortlisters: list[LabelScorer],
        scorers: list[LabelScorer],
        rows: np.ndarray,
        n_jobs: int,
    ) -> None:
        """Estimate the memory of the fit, and hold what can be held to the budget."""
        n_labels = int(data.Y.shape[1])
        sizes = FitSizes(
            data.X,
            data.Y,
            shortlisters,
            scorers,
            ranked_rows=len(rows),
            pairs_per_row=min(n_labels, self.shortlist_size * len(shortlisters)) or n_labels,
            n_folds=data.n_folds,
            used_folds=len(np.unique(data.fold[rows])),
            n_jobs=n_jobs,
        )
        if self._nests(data, len(rows), sizes.n_pairs, bool(shortlisters)):
            sizes = replace(sizes, n_tables=n_outer_parts(data.fold) - 1)
        plan = plan_fit(sizes, parse_budget(self.memory_budget))
        data.chunk_pairs, data.keeps_products = plan.chunk_pairs, plan.keeps_products

    def _settle(
        self, shortlisters: list[LabelScorer], scorers: list[LabelScorer], stages: LocalStages
    ) -> tuple[list[LabelScorer], list[LabelScorer]]:
        """The scorers with free parameters chosen once, on all rows; they hold in every fold."""
        if self.features == "yang2012":
            scorers[0].set_params(k=stages.choose_k())
        distinct: dict[int, Any] = {id(s): s for s in [*shortlisters, *scorers]}
        settled = dict(zip(distinct, stages.settle(list(distinct.values()))))
        return [settled[id(s)] for s in shortlisters], [settled[id(s)] for s in scorers]


def _with_rows(
    data: TrainingSet, rows: np.ndarray, candidates: Candidates, scorers: list[LabelScorer]
) -> np.ndarray | None:
    """bool (m,): pairs whose label has rows outside the row's fold; None where names speak for labels too."""
    if any(_reads_names(scorer) for scorer in scorers):
        return None
    n_labels, per_row = data.Y.shape[1], np.diff(data.Y.indptr)
    inside = np.bincount(
        np.repeat(data.fold, per_row).astype(np.int64) * n_labels + data.Y.indices,
        minlength=data.n_folds * n_labels,
    )
    total = inside.reshape(data.n_folds, n_labels).sum(axis=0)
    of_pair = data.fold[rows[candidates.row_of_pair]].astype(np.int64) * n_labels + candidates.labels
    return total[candidates.labels] > inside[of_pair]


def _seeded(*groups: list[LabelScorer]) -> list[list[LabelScorer]]:
    """The scorers with a seed each for all their fits, where theirs is to be drawn."""
    seeded: dict[int, LabelScorer] = {}
    for scorer in (s for group in groups for s in group):
        wanted = getattr(scorer, "random_state", 0)
        if id(scorer) not in seeded and not isinstance(wanted, Integral):
            seed = seed_of(wanted)
            seeded[id(scorer)] = clone(scorer).set_params(random_state=seed)
            note(f"random_state of {type(scorer).__name__}: {seed}, drawn")
    return [[seeded.get(id(s), s) for s in group] for group in groups]


def _reads_names(scorer: Any) -> bool:
    return isinstance(scorer, NameEmbedder) or bool(getattr(scorer, "is_label_free", False))


def _reads_spelling(scorer: Any) -> bool:
    return getattr(scorer, "source", None) == "label_spelling"


def _ranked_rows(fold: np.ndarray, per_row: int, seed: int, *, every_fold: bool) -> np.ndarray:
    """Training rows of the ranker: those of as many folds as it takes, within the budget of pairs.

    Each fold costs a fit of every scorer without it.
    """
    n, n_folds = len(fold), int(fold.max()) + 1
    share = 1 if every_fold else -(-_ENOUGH_ROWS * n_folds // n) / n_folds
    rows = np.flatnonzero(fold < share * n_folds)
    if len(rows) == 0:
        rows = np.arange(n)
    budget = max(1, MAX_TRAINING_PAIRS // max(1, per_row))
    kept = rows if len(rows) <= budget else rows[_drawn_rows(len(rows), budget, seed + 1)]
    if len(kept) < n:
        note(f"ranker: learns from {len(kept)} of {n} rows")
    return kept


def _drawn_rows(n: int, wanted: int, seed: int) -> np.ndarray:
    """The `wanted` of n positions of smallest hash, ascending."""
    key = _core.fold_of_rows(n, 2**31 - 1, seed)
    return np.sort(np.argsort(key, kind="stable")[:wanted])

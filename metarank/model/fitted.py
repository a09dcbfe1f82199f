"""`FittedModel`: the result of a fit, and how it scores described pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import log, log_odds
from metarank._util.parameters import check_real
from metarank.data.encoder import InputEncoder
from metarank.data.separators import check_separator
from metarank.metrics.resampling import Interval
from metarank.model.answering.plan import Plan
from metarank.model.cascade import ABSENT, GAP, Cascade
from metarank.model.known_labels import KnownLabels, Together
from metarank.objectives.pair_ranker import ObjectivesRanker
from metarank.persist.fields import (
    Array,
    Each,
    Flag,
    Ids,
    Integer,
    Known,
    List,
    Number,
    Object,
    Strings,
    Text,
)
from metarank.persist.spec import Saved, Spec
from metarank.ranker import Ranker
from metarank.ranker.assemble import joined_columns
from metarank.scorers.base import LabelScorer, planned
from metarank.scorers.neighbors.prior import smoothed_shares
from metarank.scorers.source import Source, describers, labels_told_of, proposers
from metarank.thresholds import LearnedThresholds
from metarank.thresholds.costs import Costs
from metarank.thresholds.set_metrics import METRICS
from metarank.thresholds.set_sizes import ANY_SIZE, SetSizes
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores
from metarank.types.feature_table import RELATIVE
from metarank.types.given import Given
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_table import LabelTable
from metarank.types.ragged import found_at
from metarank.types.restrict import LabelLimits
from metarank.types.suggested import MissingPairs
from metarank.types.texts import PackedStrings
from metarank.types.view import Features

# Metrics of the order. Those of label sets are in `LearnedThresholds.held_out_`.
ORDER = ("P@1", "P@5", "nDCG@5", "MAP")
SETS = dict(zip(METRICS, ("micro-F1", "macro-F1", "example-F1", "Hamming", "subset-accuracy")))


class Scored(NamedTuple):
    """The candidate pairs of some rows with their scores.

    Attributes
    ----------
    candidates : Candidates
    evidence : float64 array (m,)
        The ranker's scores, on which probabilities and thresholds are based.
    scores : float32 array (m,)
        The ranking scores, which determine the order: evidence plus the rare-label boost. They have
        the precision in which they are shown, so that no order depends on hidden digits.
    blank : bool array (n,)
        Rows without evidence.
    untold : bool array (m,)
        The pairs that are scored by the frequency of the label alone: those of blank rows, and of labels of
        which nothing is known.
    logits : float64 array (m,) or None
        Log-odds that stand in place of those that calibration makes of the evidence, by known labels.
    """

    candidates: Candidates
    evidence: np.ndarray
    scores: np.ndarray
    blank: np.ndarray
    untold: np.ndarray
    logits: np.ndarray | None = None


_INTERVAL = List("", Number(""), 3, into=lambda values: Interval(*values))


def _check_parts(known: Known) -> None:
    """ValueError if the parts of a saved model do not belong together."""
    if known.ranker.names_ != known.feature_columns:
        raise ValueError("ranker must be of the columns in feature_columns")
    if known.merged is not None:
        gone = np.isin(known.merged, known.removed)
        if not gone[:, 0].all() or gone[:, 1].any():
            raise ValueError("merged must lead from removed labels to labels that stay")


@dataclass(eq=False, kw_only=True)
class FittedModel(Saved):
    """What a fit has learned.

    Parameters
    ----------
    encoder : InputEncoder
    n_labels : int
    label_names : list of str or None
        Includes the names of removed labels.
    label_separator : str or None
    n_rows : int
        Number of training rows.
    row_names : PackedStrings or None
    inv_propensity : float64 array (L,)
    prior : float32 array (L,)
        Smoothed shares of the labels among the training rows.
    objective_names : list of str or None
    sources : list of Source
        Fitted.
    standardizes : bool
        Whether columns are standardised within each list too.
    feature_columns : list of str
    raw_columns : list of str or None
        See `metarank.ranker.assemble.assemble`.
    ranker : Ranker
    thresholds : LearnedThresholds
    propensity_weight : float
        Of the ranking by default.
    tuned_weight : float
        That of `propensity_weight="auto"`.
    random_state : int
        The seed of the fit.
    missing : MissingPairs
    feature_importances : float64 array (F,)
    held_out_quality : dict of str to Interval
    removed : int32 array
        Ids of removed labels, ascending, those included that were merged into others.
    merged : int32 array (m, 2) or None
        Removed labels, and the labels that they were merged into.
    old_names, renamed : list of str and int32 array (m,), or None
        Names that labels had before they were renamed, by which later files may call them, and their ids.
    choices : list of str
    text_columns : list of str or None
        The columns of later files that hold the texts, where they were named in the fit.
    labels : LabelDescriptions or None
        What else is known of the labels, those removed included.
    cascade : Cascade or None
        Tells which candidates are described; None if all are.
    point_ranker : Ranker or None
        What orders the points of each label; see `metarank.model.best_points`. None if it was not asked for.
    known_labels : KnownLabels or None
        What known labels of a row say of its others; None if too few training rows tell, or with low effort.

    Attributes
    ----------
    label_table : LabelTable
    """

    encoder: Annotated[InputEncoder, Object("", InputEncoder, ("d",))]
    n_labels: Annotated[int, Integer("", size="L")]
    n_rows: Annotated[int, Integer("", size="rows")]
    row_names: Annotated[PackedStrings | None, Object("", PackedStrings, {"texts": "rows"}, optional=True)]
    text_columns: Annotated[list[str] | None, Strings("", optional=True)] = None
    label_names: Annotated[list[str] | None, Strings("", "L", optional=True)]
    label_separator: Annotated[str | None, Text("", optional=True, into=check_separator)]
    inv_propensity: Annotated[np.ndarray, Array("", np.float64, ("L",), above=0)]
    objective_names: Annotated[list[str] | None, Strings("", optional=True)]
    standardizes: Annotated[bool, Flag("")]
    feature_columns: Annotated[list[str], Strings("", "columns")]
    choices: Annotated[list[str], Strings("")] = field(default_factory=list)
    raw_columns: Annotated[list[str] | None, Strings("", optional=True)]
    feature_importances: Annotated[np.ndarray, Array("", np.float64, ("columns",), least=0)]
    held_out_quality: Annotated[dict[str, Interval], Each("", _INTERVAL, (*ORDER, *SETS.values()))]
    prior: Annotated[np.ndarray, Array("", np.float32, ("L",), above=0, below=1)]
    propensity_weight: Annotated[float, Number("", 0, 10)]
    tuned_weight: Annotated[float, Number("", 0, 10)] = 0.0
    sources: Annotated[list[Source], List("", Object("", Source, ("d", "L", "rows")))]
    ranker: Annotated[Ranker, Object("", Ranker, ("columns",))]
    cascade: Annotated[Cascade | None, Object("", Cascade, optional=True)] = None
    point_ranker: Annotated[Ranker | None, Object("", Ranker, optional=True)] = None
    known_labels: Annotated[KnownLabels | None, Object("", KnownLabels, optional=True)] = None
    thresholds: Annotated[LearnedThresholds, Object("", LearnedThresholds)]
    removed: Annotated[np.ndarray, Ids("", np.int32, below="L", ascending=True)] = field(
        default_factory=lambda: np.zeros(0, np.int32)
    )
    merged: Annotated[np.ndarray | None, Ids("", np.int32, (None, 2), below="L", optional=True)] = None
    old_names: Annotated[list[str] | None, Strings("", "old", optional=True)] = None
    renamed: Annotated[np.ndarray | None, Ids("", np.int32, ("old",), below="L", optional=True)] = None
    missing: Annotated[MissingPairs, Object("", MissingPairs, ("L", "rows"))]
    labels: Annotated[LabelDescriptions | None, Object("", LabelDescriptions, ("L",), optional=True)] = None
    random_state: Annotated[int, Integer("")]

    saved: ClassVar[Spec] = Spec(check=_check_parts)

    def __post_init__(self) -> None:
        ids = None if self.labels is None else self.labels.ids
        old = dict(zip(self.old_names or (), self.renamed.tolist() if self.renamed is not None else ()))
        self.label_table: LabelTable = LabelTable(self.n_labels, self.label_names, self.removed, ids, old)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("plan", "together")}

    @cached_property
    def plan(self) -> Plan | None:
        """The compiled plan, made when first asked for; None where only the stages in Python can answer:
        all labels are ranked, or some removed, related or perhaps unknown, rows are dense, or a source or
        column is not in the core."""
        if len(self.removed) or self.unknown is not None or self.encoder.layout == "dense":
            return None
        if self.labels is not None and self.labels.has_relations:
            return None
        sources = [planned(source.scorer) for source in self.sources]
        known = [source for source in sources if source is not None]
        proposes = [i for i, source in enumerate(self.sources) if source.proposes]
        describes = [i for i, source in enumerate(self.sources) if source.describes]
        if len(known) < len(sources) or not proposes or not describes:
            return None
        none = np.zeros(0, np.float32)
        named, _ = joined_columns([dict.fromkeys(known[i].columns, none) for i in describes])
        raw = self.raw_columns if self.standardizes else None
        scaled = [j for j, name in enumerate(named) if raw is None or name in raw]
        names = [name for name in named if raw is None or name in raw]
        names += [name + RELATIVE for name in named] if self.standardizes else []
        in_core = sum(len(known[i].columns) for i in describes)
        if names != list(self.feature_columns) or len(named) > in_core:
            return None
        trees, cascade = self.ranker.trees_in_core(), self.cascade
        judge = None if cascade is None else cascade.ranker.trees_in_core()
        stages = _core.PlanStages(
            proposes=proposes,
            describes=describes,
            own=scaled,
            standardize=self.standardizes,
            survivors=0 if cascade is None else cascade.survivors,
            absent=ABSENT,
            gap=GAP,
        )
        core = _core.Plan(
            [source.core for source in known],
            [source.block for source in known],
            stages,
            None if judge is None else judge.in_core,
            log(self.inv_propensity).astype(np.float32),
            None if trees is None else trees.in_core,
        )
        return Plan(core, trees is not None, self.n_labels)

    @cached_property
    def together(self) -> Together | None:
        """Which labels training rows have together, if a source keeps these rows."""
        for source in self.sources:
            if (rows := source.scorer.training_labels() or source.scorer.block_rows()) is not None:
                return Together.of(rows[-1])
        return None

    @cached_property
    def unknown(self) -> NDArray[np.bool_] | None:
        """bool (L,): labels without a training row, where no source tells of them; None if there is none."""
        if self.shortlisters or (self.labels is not None and self.labels.has_relations):
            return None  # who is proposed, or has relatives, is known
        unknown = self.prior <= np.float32(smoothed_shares(np.zeros(1), self.n_rows)[0])
        if unknown.any():
            unknown &= ~labels_told_of(self.sources, self.n_labels, _named)
        return unknown if unknown.any() else None

    @property
    def n_features_in(self) -> int:
        return int(self.encoder.n_features)

    @property
    def shortlisters(self) -> list[LabelScorer]:
        """The scorers whose proposals are candidates; none if all labels are ranked."""
        return proposers(self.sources)

    @property
    def scorers(self) -> list[LabelScorer]:
        """The scorers whose columns describe pairs, in the order of the columns."""
        return describers(self.sources)

    @cached_property
    def given_sources(self) -> list[str]:
        """The names of the candidates that were given in the fit, which an answer needs too."""
        return [name for scorer in self.scorers for name in scorer.given_read()[0]]

    @cached_property
    def given_features(self) -> list[str]:
        """The names of the features of pairs that were given in the fit."""
        return [name for scorer in self.scorers for name in scorer.given_read()[1]]

    @cached_property
    def reads_word_order(self) -> bool:
        """Whether a source looks at the words of texts in their order."""
        return any(source.scorer.reads_word_order for source in self.sources)

    # --- scores of pairs ------------------------------------------------

    def boost_of(self, labels: np.ndarray, weight: float) -> np.ndarray:
        """The boost of each label, float64: weight x log(1/p), in units of the score."""
        boost: np.ndarray = weight * self.thresholds.scores_per_logit * self._rarity[labels]
        return boost

    @cached_property
    def _rarity(self) -> np.ndarray:
        """log(1/p) of each label, float64 (L,)."""
        return np.asarray(log(self.inv_propensity))

    def untold(self, candidates: Candidates, blank: np.ndarray) -> NDArray[np.bool_]:
        """bool (m,): the pairs of rows that are `blank` (n,), and of labels, of which nothing is known."""
        untold = np.repeat(blank, np.diff(candidates.indptr))
        return untold if self.unknown is None else untold | self.unknown[candidates.labels]

    def with_scores(
        self,
        candidates: Candidates,
        evidence: np.ndarray,
        weight: float | None = None,
        blank: np.ndarray | None = None,
    ) -> Scored:
        """Pairs with their ranking scores; `weight` None is that of the fit.

        The evidence of pairs of `blank` rows (n,), and of labels of which nothing is known, is replaced by
        the frequency of their labels.
        """
        blank = np.zeros(candidates.n_rows, bool) if blank is None else blank
        untold = self.untold(candidates, blank)
        if np.count_nonzero(untold):
            by_frequency = log_odds(self.prior[candidates.labels].astype(np.float64))
            evidence = np.where(untold, self.thresholds.scores_of(by_frequency), evidence)
        weight = self.propensity_weight if weight is None else weight
        scores = evidence if weight == 0 else evidence + self.boost_of(candidates.labels, weight)
        with np.errstate(over="ignore"):  # it is looked for
            scores = finite_scores(scores.astype(np.float32))
        return Scored(candidates, evidence, scores, blank, untold)

    def probabilities(self, scored: Scored) -> NDArray[np.float32]:
        """Calibrated probabilities of relevance of the pairs, float32 (m,), which never rise along a list by
        the evidence. Of `untold` pairs: the label's share of the training rows, as far as the list allows."""
        return self.thresholds.probabilities(scored.candidates, scored.evidence, self._known(scored))

    def kept(self, scored: Scored, metric: str | Costs, sizes: SetSizes = ANY_SIZE) -> NDArray[np.bool_]:
        """bool (m,): the pairs kept by the threshold of a metric, none that are `untold` unless the sizes of
        sets ask for more."""
        above = self.thresholds.keep(scored.candidates, scored.evidence, metric, self._known(scored))
        above &= ~scored.untold
        if not sizes:
            return above
        return sizes.hold(above, _core.list_ranks(scored.scores.astype(np.float64), scored.candidates.indptr))

    def _known(self, scored: Scored) -> np.ndarray | None:
        """The log-odds of `untold` pairs by the frequency of their labels, and those by known labels, float64
        (m,); NaN for others."""
        if not np.count_nonzero(scored.untold):
            return scored.logits
        of_label = log_odds(self.prior[scored.candidates.labels].astype(np.float64))
        return np.where(scored.untold, of_label, np.nan if scored.logits is None else scored.logits)

    def by_known_labels(
        self, scored: Scored, limits: LabelLimits, known: Candidates, weight: float, n_jobs: int = 1
    ) -> Scored:
        """Pairs corrected by labels that rows are known to have, those that these add included."""
        if self.known_labels is None or self.together is None:
            raise ValueError("known needs a model that has learned of labels that go together")
        before = self.thresholds.logits(scored.candidates, scored.evidence, self._known(scored))
        lists, logits = self.known_labels.corrected(self.together, scored.candidates, before, known, n_jobs)
        evidence = self.thresholds.scores_of(logits)
        # Where log-odds would rise along a list they are equal: what the evidence tells beyond them stays.
        at, there = found_at(scored.candidates.pair_keys, lists.pair_keys)
        at = at[there]
        evidence[there] = scored.evidence[at] + (evidence[there] - self.thresholds.scores_of(before)[at])
        kept = lists.among(limits.within(lists))
        blank = scored.blank & (np.diff(known.indptr) == 0)
        out = self.with_scores(lists.where(kept), evidence[kept], weight, blank)
        return out._replace(logits=logits[kept])

    def expected_quality(
        self, scored: Sequence[Scored], sets: sp.csr_matrix
    ) -> dict[str, NDArray[np.float32]]:
        """The precision, recall and F1 that are to be expected of label sets, float32 (n,) each."""
        parts, first = [], 0
        for s in scored:
            own = Candidates.from_csr(sets[first : first + s.candidates.n_rows])
            first += s.candidates.n_rows
            inside = s.candidates.among(own)
            parts.append(self.thresholds.expected(s.candidates, s.evidence, inside, self._known(s)))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def label_sets(
        self, scored: Sequence[Scored], metric: str | Costs, sizes: SetSizes = ANY_SIZE
    ) -> sp.csr_matrix:
        """CSR (n, L) of int8 ones: the labels `kept` of each row."""
        kept = [s.candidates.where(self.kept(s, metric, sizes)) for s in scored]
        return sp.vstack([c.to_csr(np.ones(c.n_pairs, np.int8)) for c in kept], format="csr")

    def probability_matrix(self, scored: Sequence[Scored]) -> sp.csr_matrix:
        """CSR (n, L) of the `probabilities` of all candidates."""
        return sp.vstack([s.candidates.to_csr(self.probabilities(s)) for s in scored], format="csr")

    def checked_weight(self, propensity_weight: float | str | None) -> float:
        """The requested propensity weight, that of "auto", or that of the fit."""
        if propensity_weight is None:
            return self.propensity_weight
        if isinstance(propensity_weight, str) and propensity_weight == "auto":
            return self.tuned_weight
        check_real("propensity_weight", propensity_weight, 0, 10, "a number in [0, 10], or 'auto'")
        return float(propensity_weight)

    def weighted_ranker(self, objective_weights: Any) -> Ranker:
        """The ranker, with other weights of the objectives if they are given."""
        if objective_weights is None:
            return self.ranker
        if not isinstance(self.ranker, ObjectivesRanker):
            raise ValueError("objective_weights needs a model that was fitted on several objectives")
        return self.ranker.reweighted(objective_weights)


# What a fitted model can be asked for, under these names with an underscore behind them.
LEARNED = {
    *(field.name for field in fields(FittedModel)),
    *("label_table", "n_features_in", "scorers", "shortlisters"),
}


class Learned:
    """What a fit learned: that of `fitted_` under the name without the underscore."""

    if TYPE_CHECKING:
        fitted_: FittedModel
        n_features_in_: int
        n_labels_: int
        n_rows_: int
        label_names_: list[str] | None
        label_separator_: str | None
        label_table_: LabelTable
        labels_: LabelDescriptions | None
        removed_: NDArray[np.int32]
        sources_: list[Source]
        scorers_: list[LabelScorer]
        shortlisters_: list[LabelScorer]
        feature_columns_: list[str]
        feature_importances_: NDArray[np.float64]
        held_out_quality_: dict[str, Interval]
        choices_: list[str]
        ranker_: Ranker
        thresholds_: LearnedThresholds
        inv_propensity_: NDArray[np.float64]
        random_state_: int
        propensity_weight_: float
        tuned_weight_: float
        objective_names_: list[str] | None
        encoder_: InputEncoder
        row_names_: PackedStrings | None
        text_columns_: list[str] | None
        prior_: NDArray[np.float32]
    else:

        def __getattr__(self, name: str) -> Any:
            if not name.endswith("_") or name[:-1] not in LEARNED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if "fitted_" not in vars(self):
                raise AttributeError(f"this {type(self).__name__} has no {name}: fit it first")
            return getattr(self.fitted_, name[:-1])


def blank_rows(X: Features, given: Given | None = None) -> NDArray[np.bool_]:
    """bool (n,): encoded sparse rows without an entry, such as texts without a known word, of whose pairs
    nobody else says anything either.

    Only the frequency of the labels is known for them. A dense row of zeros is a measurement like any other.
    """
    blank = np.zeros(len(X), bool) if isinstance(X, np.ndarray) else X.indptr[1:] == X.indptr[:-1]
    return blank if given is None else blank & ~given.is_filled


def _named(scorer: LabelScorer) -> list[np.ndarray]:
    """The labels with a known word, by name and by other name."""
    if scorer.reads_word_order:
        return [scorer.labels_named()]
    texts = [np.flatnonzero(np.diff(text.indptr)) for text in scorer.label_texts().values()]
    return texts + [names.label for names in scorer.other_names().values()]


def quality_lines(quality: Mapping[str, Interval]) -> list[str]:
    """One line per metric, times 100.

    Examples
    --------
    >>> quality_lines({"P@1": Interval(0.5, 0.45, 0.55)})
    ['P@1              50.0 (45.0 to 55.0)']
    """
    return [
        f"{name:<15} {100 * value:z5.1f} ({100 * low:z.1f} to {100 * high:z.1f})"
        for name, (value, low, high) in quality.items()
    ]

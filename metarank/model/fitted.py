"""`FittedModel`: what a fit has learned, and what it says of pairs that are described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._elementary import log, log_odds
from metarank._parameters import check_real
from metarank._state import Fields
from metarank._strings import PackedStrings
from metarank._validation import finite_scores
from metarank.candidates import Candidates
from metarank.data.separators import AUTO, check_separator
from metarank.encoder import InputEncoder
from metarank.held_out import quality_from, quality_state
from metarank.label_table import LabelTable
from metarank.metrics.resampling import Interval
from metarank.missing import MissingPairs
from metarank.ranker import Ranker
from metarank.ranker.objectives import ObjectivesRanker
from metarank.scorers.base import LabelScorer
from metarank.scorers.source import Source, describers, proposers, sources_of
from metarank.thresholds import ThresholdLearner
from metarank.view import Features


class Scored(NamedTuple):
    """The candidate pairs of some rows and what is said of them.

    Attributes
    ----------
    candidates : Candidates
    evidence : float64 array (m,)
        The ranker's scores; probabilities and cuts are learned from them, and read nothing else.
    scores : float32 array (m,)
        The ranking scores, by which everything is ordered: evidence, and the lean towards rare labels. As
        they are shown, so that no order hangs on digits that nobody sees.
    blank : bool array (n,)
        Rows without evidence: their pairs stand on the frequency of the labels alone.
    """

    candidates: Candidates
    evidence: np.ndarray
    scores: np.ndarray
    blank: np.ndarray

    @property
    def of_blank(self) -> np.ndarray:
        """bool (m,): the pairs of rows without evidence."""
        return np.repeat(self.blank, np.diff(self.candidates.indptr))


@dataclass(eq=False)
class FittedModel:
    """What a fit has learned.

    Parameters
    ----------
    encoder : InputEncoder
    n_labels : int
    label_names : list of str or None
        Those of removed labels included.
    label_separator : str or None
    n_rows : int or None
        Training rows; None for models of versions that did not keep it.
    row_names : PackedStrings or None
    inv_propensity : float64 array (L,)
    prior : float32 array (L,) or None
        Smoothed shares of the training rows; None for models of versions that did not keep it.
    objective_names : list of str or None
    sources : list of Source
        Fitted.
    standardizes : bool
        Whether columns are standardised within each list too.
    feature_columns : list of str
    raw_columns : list of str or None
        See `metarank.features.assemble.assemble`.
    ranker : Ranker
    thresholds : ThresholdLearner
    propensity_weight : float
    random_state : int
        The seed of the fit.
    removed : int32 array
        Ids of removed labels.
    missing : MissingPairs or None
    feature_importances : float64 array (F,) or None
    held_out_quality : dict of str to Interval, or None
    choices : list of str

    Attributes
    ----------
    label_table : LabelTable
    """

    encoder: InputEncoder
    n_labels: int
    label_names: list[str] | None
    label_separator: str | None
    n_rows: int | None
    row_names: PackedStrings | None
    inv_propensity: np.ndarray
    prior: np.ndarray | None
    objective_names: list[str] | None
    sources: list[Source]
    standardizes: bool
    feature_columns: list[str]
    raw_columns: list[str] | None
    ranker: Ranker
    thresholds: ThresholdLearner
    propensity_weight: float
    random_state: int
    removed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    missing: MissingPairs | None = None
    feature_importances: np.ndarray | None = None
    held_out_quality: dict[str, Interval] | None = None
    choices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.label_table = LabelTable(self.n_labels, self.label_names, self.removed)

    @property
    def n_features_in(self) -> int:
        return int(self.encoder.n_features)

    @property
    def shortlisters(self) -> list[LabelScorer]:
        """The scorers whose proposals are candidates; none where all labels are ranked."""
        return proposers(self.sources)

    @property
    def scorers(self) -> list[LabelScorer]:
        """The scorers whose columns describe pairs, in the order of the columns."""
        return describers(self.sources)

    # --- what is said of pairs ------------------------------------------------

    def lean_of(self, labels: np.ndarray, weight: float) -> np.ndarray:
        """What a weight adds to the score of each label, float64: weight x log(1/p), in its units."""
        lean: np.ndarray = weight * self.thresholds.scores_per_logit * log(self.inv_propensity[labels])
        return lean

    def answers_by_frequency(self, blank: np.ndarray) -> bool:
        """Whether some rows are blank and frequencies are known; saved models of earlier versions, which have
        none, answer such rows as they did then."""
        return self.prior is not None and bool(blank.any())

    def scored(
        self,
        candidates: Candidates,
        evidence: np.ndarray,
        weight: float | None = None,
        blank: np.ndarray | None = None,
    ) -> Scored:
        """Pairs with their one ranking score; None leans as far as was learned in fit.

        Pairs of `blank` rows (n,) have the evidence of their labels' frequency, whatever is given.
        """
        out = Scored(
            candidates, evidence, evidence, np.zeros(candidates.n_rows, bool) if blank is None else blank
        )
        if self.prior is not None and self.answers_by_frequency(out.blank):
            by_frequency = log_odds(self.prior[candidates.labels].astype(np.float64))
            evidence = np.where(out.of_blank, self.thresholds.scores_of(by_frequency), evidence)
        weight = self.propensity_weight if weight is None else weight
        scores = evidence if weight == 0 else evidence + self.lean_of(candidates.labels, weight)
        with np.errstate(over="ignore"):  # it is looked for
            scores = finite_scores(scores.astype(np.float32))
        return out._replace(evidence=evidence, scores=scores)

    def probabilities(self, scored: Scored) -> np.ndarray:
        """Calibrated probabilities of relevance of the pairs, float32 (m,); in rows without evidence the
        share of the training rows that have the label."""
        found = self.thresholds.probabilities(scored.candidates, scored.evidence)
        if self.prior is not None and self.answers_by_frequency(scored.blank):
            found[scored.of_blank] = self.prior[scored.candidates.labels[scored.of_blank]]
        return found

    def kept(self, scored: Scored, metric: str) -> np.ndarray:
        """bool (m,): the pairs above the cut learned for a metric; none of rows without evidence."""
        above = self.thresholds.cut(scored.candidates, scored.evidence, metric)
        return above & ~scored.of_blank if self.answers_by_frequency(scored.blank) else above

    def label_sets(self, scored: Sequence[Scored], metric: str) -> sp.csr_matrix:
        """CSR (n, L) of int8 ones: the labels `kept` of each row."""
        parts = []
        for s in scored:
            c, keep = s.candidates, self.kept(s, metric)
            row = c.row_of_pair[keep]
            indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=c.n_rows))])
            ones = np.ones(len(row), np.int8)
            parts.append(sp.csr_matrix((ones, c.labels[keep], indptr), shape=(c.n_rows, c.n_labels)))
        return sp.vstack(parts, format="csr")

    def probability_matrix(self, scored: Sequence[Scored]) -> sp.csr_matrix:
        """CSR (n, L) of the `probabilities` of all candidates."""
        return sp.vstack([s.candidates.to_csr(self.probabilities(s)) for s in scored], format="csr")

    def checked_weight(self, propensity_weight: float | None) -> float:
        """The weight of rare labels that is asked for, or that of the fit."""
        if propensity_weight is None:
            return self.propensity_weight
        check_real("propensity_weight", propensity_weight, 0, 10, "a number in [0, 10]")
        return float(propensity_weight)

    def weighted_ranker(self, objective_weights: Any) -> Ranker:
        """The ranker, with other weights of the objectives where they are given."""
        if objective_weights is None:
            return self.ranker
        if not isinstance(self.ranker, ObjectivesRanker):
            raise ValueError("objective_weights needs a model that was fitted on several objectives")
        return self.ranker.reweighted(objective_weights)

    # --- persistence ------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """What `from_state` needs."""
        return {
            "encoder": self.encoder,
            "n_labels": self.n_labels,
            "n_rows": self.n_rows,
            "label_names": self.label_names,
            "label_separator": self.label_separator,
            "row_names": self.row_names,
            "inv_propensity": self.inv_propensity,
            "objective_names": self.objective_names,
            "feature_columns": self.feature_columns,
            "choices": self.choices,
            "raw_columns": self.raw_columns,
            "feature_importances": self.feature_importances,
            "held_out_quality": quality_state(self.held_out_quality),
            "prior": self.prior,
            "propensity_weight": self.propensity_weight,
            "sources": [
                {"scorer": s.scorer, "proposes": s.proposes, "describes": s.describes} for s in self.sources
            ],
            "ranker": self.ranker.get_state(),
            "thresholds": self.thresholds.get_state(),
            "removed": self.removed,
            "missing": None if self.missing is None else self.missing.get_state(),
        }

    @classmethod
    def from_state(cls, fields: Fields, *, standardizes: bool, random_state: int) -> FittedModel:
        """The inverse of `get_state`, of a `MetaRanker`'s values."""
        L = fields.integer("n_labels")
        row_names = _packed(fields.raw("row_names"))
        named = None if row_names is None else len(row_names)
        columns = fields.strings("feature_columns")
        of_columns = (len(columns),)
        model = cls(
            encoder=fields.object("encoder", InputEncoder),
            n_labels=L,
            label_names=fields.strings("label_names", L) if fields.has("label_names") else None,
            label_separator=_separator(fields),
            n_rows=fields.integer("n_rows") if fields.has("n_rows") else named,
            row_names=row_names,
            inv_propensity=fields.array("inv_propensity", np.float64, (L,)),
            prior=fields.array("prior", np.float32, (L,)) if fields.has("prior") else None,
            objective_names=fields.strings("objective_names") if fields.has("objective_names") else None,
            sources=_sources(fields),
            standardizes=standardizes,
            feature_columns=columns,
            raw_columns=fields.strings("raw_columns") if fields.has("raw_columns") else None,
            ranker=Ranker.from_state(fields.raw("ranker")),
            thresholds=ThresholdLearner.from_state(fields.raw("thresholds")),
            propensity_weight=(
                fields.number("propensity_weight", 0, 10) if "propensity_weight" in fields else 0.0
            ),
            random_state=random_state,
            removed=(
                fields.ascending_ids("removed", np.int32, L) if "removed" in fields else np.zeros(0, np.int32)
            ),
            missing=MissingPairs.from_state(fields.raw("missing")) if fields.has("missing") else None,
            feature_importances=(
                fields.array("feature_importances", np.float64, of_columns, nonnegative=True)
                if fields.has("feature_importances")
                else None
            ),
            held_out_quality=(
                quality_from(fields.part("held_out_quality")) if fields.has("held_out_quality") else None
            ),
            choices=fields.strings("choices") if "choices" in fields else [],
        )
        model._check_agreement(fields.name)
        return model

    def _check_agreement(self, name: str) -> None:
        """ValueError unless the parts of a loaded model are of one model."""
        named, L = None if self.row_names is None else len(self.row_names), self.n_labels
        if named is not None and named != self.n_rows:
            raise ValueError(f"row_names of {name} must be {self.n_rows}, got {named}")
        if L and not self.inv_propensity.min() > 0:
            raise ValueError(f"inv_propensity of {name} must be positive")
        for source in self.sources:
            scorer = source.scorer
            for what, own, of in zip(("features", "labels"), (self.n_features_in, L), scorer.sizes()):
                if of is not None and of != own:
                    raise ValueError(f"{source.name} is of {of} {what}, the model of {own}")
            n_kept = scorer.rows_kept()
            if None not in (n_kept, self.n_rows) and n_kept != self.n_rows:
                raise ValueError(f"{source.name} keeps {n_kept} rows, the model {self.n_rows}")
        if self.prior is not None and L and not (self.prior.min() > 0 and self.prior.max() < 1):
            raise ValueError(f"prior of {name} must lie between 0 and 1")
        if self.ranker.names_ != self.feature_columns:
            raise ValueError(f"ranker of {name} must be of the columns in feature_columns")
        if self.missing is not None:
            self.missing.check_sizes(self.n_rows, L)


def blank_rows(X: Features) -> np.ndarray:
    """bool (n,): encoded rows of a sparse model that hold nothing, such as texts without a known word.

    Nothing speaks for one label or another there but how frequent it is. A dense row of zeros is a
    measurement like any other.
    """
    return np.zeros(len(X), bool) if isinstance(X, np.ndarray) else np.diff(X.indptr) == 0


def _sources(fields: Fields) -> list[Source]:
    """The list of sources; earlier files hold two lists, of those that propose and of those that describe."""
    if "sources" not in fields:
        return sources_of(fields.objects("shortlisters", LabelScorer), fields.objects("scorers", LabelScorer))
    found = [
        Source(part.object("scorer", LabelScorer), part.flag("proposes"), part.flag("describes"))
        for part in fields.parts("sources")
    ]
    for source in found:
        if source.proposes and not source.scorer.proposes:
            raise ValueError(f"{source.name} of {fields.name} must not propose: it has no shortlist")
    return found


def _separator(fields: Fields) -> str | None:
    """What parted labels in the training data; not kept in older files."""
    if "label_separator" not in fields:
        return AUTO
    return check_separator(fields.text("label_separator") if fields.has("label_separator") else None)


def _packed(names: Any) -> PackedStrings | None:
    """The names of training rows, a plain list in earlier files."""
    return PackedStrings.of(names) if isinstance(names, list) else names

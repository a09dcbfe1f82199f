"""`Explanation`: the neighbours, evidence and contributions behind the rank of a label."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metarank._util.elementary import log
from metarank._util.parameters import check_integer
from metarank._util.printable import ordinal, preformatted, printable
from metarank.model.answering.answer import Answering, Request, read_request
from metarank.model.answering.reasons import BOOST, DIGITS, Reason, told
from metarank.model.fitted import FittedModel
from metarank.scorers.names.given_vectors import LabelVectorScorer
from metarank.scorers.neighbors.prior import PRIOR
from metarank.types.candidates import Candidates
from metarank.types.view import Features

# The remark about a row without evidence.
NOTHING_KNOWN = "the model knows nothing about this row: its labels are in order of frequency"
# The number of sources on a page.
_SHOWN = 8
# The least cosine, and the largest place and share of all labels, at which a label means nearly the same.
_LEAST_COSINE, _LAST_PLACE, _NEAREST_SHARE = 0.5, 10, 0.01


def about_unknown_rows(unknown: np.ndarray) -> str:
    """`NOTHING_KNOWN` for the rows with a flag; "" if there are none.

    Examples
    --------
    >>> about_unknown_rows(np.array([True, False]))
    'the model knows nothing about 1 of 2 rows: their labels are in order of frequency'
    """
    n = int(np.count_nonzero(unknown))
    rows = f"{n} of {len(unknown)} rows"
    return f"the model knows nothing about {rows}: their labels are in order of frequency" if n else ""


@dataclass(frozen=True)
class Neighbor:
    """A training point of the label: its row, its name if texts are known, and its distance."""

    row: int
    name: str | None
    distance: float


@dataclass(frozen=True)
class Explanation:
    """The evidence for one pair (instance, label).

    ``base + sum of contributions`` is the score. `print` sums them up by source, in words.

    Attributes
    ----------
    label : int
    label_name : str or None
    rank : int
        Rank among the instance's candidates in `MetaRanker.rank`; 1 is best.
    n_candidates : int
    score : float
        The ranking score, as in `MetaRanker.rank`.
    probability : float or None
        Calibrated probability of relevance, on which thresholds are based, without rare-label boost. None
        for a model without training rows.
    neighbors : list of Neighbor
        Nearest training points with the label, nearest first.
    contributions : list of (column, value, contribution)
        What each meta-feature adds to the score, largest effect first. They include `BOOST`, whose value is
        log(1/p) of the label.
    base : float
        The base value of the score.
    propensity_weight : float
        The propensity weight in the score.
    is_candidate : bool
        Whether the label is a candidate in `MetaRanker.rank`. If not, it is described as if it were.
    without_evidence : bool
        Whether the row has no evidence: score and probability come from the label's frequency.
    nearness : (float, int, int) or None
        With an encoder: the cosine of the row and the label, its rank among all labels (1 is the nearest),
        and the number of labels.

    Examples
    --------
    >>> columns = [("neighbors: vote of 10", 0.3, 0.8), (BOOST, 1.5, 0.75)]
    >>> columns += [("label frequency: log share", -4.0, -0.2004)]
    >>> print(Explanation(0, "tea", 1, 9, 3.3496, 0.9, [], columns, base=2.0, propensity_weight=0.5))
    tea: rank 1 of 9, score 3.350, probability 0.90
      what makes up the score:
          +0.800  3 of the 10 most similar rows carry it
          +0.750  rare-label boost
          -0.200  label frequency
          +2.000  where the score starts
          =3.350
    """

    label: int
    label_name: str | None
    rank: int
    n_candidates: int
    score: float
    probability: float | None
    neighbors: list[Neighbor]
    contributions: list[tuple[str, float, float]]
    base: float = 0.0
    propensity_weight: float = 0.0
    is_candidate: bool = True
    without_evidence: bool = False
    nearness: tuple[float, int, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        name = printable(self.label_name) if self.label_name is not None else f"label {self.label}"
        p = self.probability
        said = "not a probability" if p is None else f"probability {p:.2f}"
        lines = [f"{name}: rank {self.rank} of {self.n_candidates}, score {self.score:.{DIGITS}f}, {said}"]
        if self.without_evidence:
            lines.append(f"  {NOTHING_KNOWN}")
        if not self.is_candidate:
            lines.append("  not a candidate of this row: described as if it were")
        if self.nearness is not None:
            cosine, place, n_labels = self.nearness
            last = max(1, min(_LAST_PLACE, int(_NEAREST_SHARE * n_labels)))
            is_near = cosine >= _LEAST_COSINE and place <= last
            near = "means nearly the same as its name" if is_near else "similarity of meaning"
            lines.append(f"  {near}: cosine {cosine:.2f}, {ordinal(place)} of {n_labels:,}")
        if self.neighbors:
            lines.append("  nearest training rows with this label, by distance:")
            lines += [
                f"    {p.distance:8.4f}  row {p.row}" + (f"  {printable(p.name)}" if p.name else "")
                for p in self.neighbors
            ]
        lines.append("  what makes up the score:")
        lines += [f"    {effect:+8.{DIGITS}f}  {text}" for text, effect in self.reasons(_SHOWN)]
        lines.append(f"    {f'={self.score:.{DIGITS}f}':>8}")
        return "\n".join(lines)

    def reasons(self, n: int = 3) -> list[Reason]:
        """What the score is made of, as (text, contribution).

        The n sources of evidence that moved it most, and the boost of rare labels, strongest first; then all
        others together, and where the score starts. They are rounded so that they add up to the score as it
        is printed.
        """
        name = self.neighbors[0].name if self.neighbors else None
        nearest = textwrap.shorten(name, 40, placeholder=" …") if name else ""
        return told(self.contributions, self.base, self.score, nearest, n)

    def _repr_html_(self) -> str:
        """The text of `str`, for notebooks."""
        return preformatted(str(self))


def explain_row(
    answering: Answering, x: Any, label: int | str, n_neighbors: int, **limits: Any
) -> Explanation:
    """`MetaRanker.explain`."""
    check_integer("n_neighbors", n_neighbors, 1)
    fitted = answering.model
    row = read_request(fitted, one_row(x), **limits)
    if row.n_rows != 1:
        raise ValueError(f"x must be one instance, got {row.n_rows} rows")
    if row.known is not None:
        raise ValueError("known must be left out: explanations do not cover it; use exclude")
    return _explained(answering, row, fitted.label_table.id_of(label, "label"), n_neighbors)


def one_row(x: Any) -> Any:
    """One instance as rows: a text or a vector may stand for itself."""
    if isinstance(x, str):
        return [x]
    return x[None, :] if isinstance(x, np.ndarray) and x.ndim == 1 else x


def _explained(answering: Answering, row: Request, label: int, n_neighbors: int) -> Explanation:
    """The explanation of a label id, which becomes a candidate of the row if it is none."""
    model = answering.model
    described, *_ = answering.describe(row)
    is_candidate = bool(np.any(described.table.labels == label))
    if not is_candidate:
        one = Candidates(np.array([0, 1]), np.array([label]), model.n_labels)
        if row.limits.within(one).n_pairs == 0:
            raise ValueError(
                f"label must not be ruled out by exclude or allowed, got {model.label_table.shown(label)!r}"
            )
        proposed = described.lists.candidates
        shortlist = Candidates(proposed.indptr, proposed.labels, model.n_labels).union(one)
        described, *_ = answering.describe(row._replace(own=shortlist))
    table, scored = described.table, answering.score_described(described)
    candidates, knows_nothing = scored.candidates, bool(scored.blank[0])
    of_table = int(np.searchsorted(table.labels, label))
    at = int(np.searchsorted(candidates.labels, label))
    # The order of `Ranking.from_scores`.
    rank = int(np.flatnonzero(np.lexsort((candidates.labels, -scored.scores)) == at)[0]) + 1
    score = float(scored.scores[at])
    if scored.untold[at]:
        parts = [(PRIOR, float(log(model.prior[label])), float(scored.evidence[at]))]
    else:
        shares = answering.ranker.contributions(table.pairs(np.array([of_table])))[0, :-1]
        parts = [
            (n, float(v), float(c)) for n, v, c in zip(table.names, table.values[of_table], shares) if c != 0
        ]
    boost = float(model.boost_of(candidates.labels[at : at + 1], answering.weight)[0])
    if boost != 0:
        parts.append((BOOST, float(log(model.inv_propensity[label])), boost))
    parts.sort(key=lambda part: -abs(part[2]))
    return Explanation(
        label=label,
        label_name=model.label_table.name_of(label),
        rank=rank,
        n_candidates=candidates.n_pairs,
        score=score,
        probability=float(model.probabilities(scored)[at]) if model.n_rows else None,
        neighbors=[] if knows_nothing else _neighbors(model, row.X, label, n_neighbors),
        contributions=parts,
        # The expected score of the ranker, plus the rounding error of float32.
        base=score - math.fsum(effect for _, _, effect in parts),
        propensity_weight=answering.weight,
        is_candidate=is_candidate,
        without_evidence=knows_nothing,
        nearness=_nearness(model, row.X, label),
    )


def _nearness(model: FittedModel, features: Features, label: int) -> tuple[float, int, int] | None:
    has_encoder = getattr(model.encoder, "meaning", None) is not None
    for scorer in model.scorers if has_encoder else ():
        if type(scorer) is LabelVectorScorer:
            cosines = scorer.cosines(features)[0]
            if not cosines.any():  # a blank text
                return None
            own, others = cosines[label], np.delete(cosines, model.removed)
            return float(own), 1 + int(np.sum(others > own)), len(others)
    return None


def _neighbors(model: FittedModel, features: Features, label: int, n_neighbors: int) -> list[Neighbor]:
    names = model.row_names
    for scorer in model.scorers:
        nearest = scorer.neighbors_of(features, label, n_neighbors)
        if nearest is not None:
            return [
                Neighbor(int(r), names[int(r)] if names is not None else None, float(d))
                for r, d in zip(*nearest)
            ]
    return []

"""Why a label stands where it does: neighbours, evidence, contributions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._threads import resolve_n_jobs

if TYPE_CHECKING:
    from metarank.pipeline import MetaRanker
    from metarank.scorers.base import Features


@dataclass(frozen=True)
class Neighbor:
    """A training point of the label: its row, its name where texts are known, and its distance."""

    row: int
    name: str | None
    distance: float


@dataclass(frozen=True)
class Explanation:
    """The evidence for one pair (instance, label).

    Attributes
    ----------
    label : int
    label_name : str or None
    rank : int
        Place among the instance's candidates, 1 is best.
    n_candidates : int
    score, probability : float
    neighbors : list of Neighbor
        Nearest training points that carry the label, nearest first.
    contributions : list of (column, value, contribution)
        What each meta-feature adds to the score, largest effect first.
    """

    label: int
    label_name: str | None
    rank: int
    n_candidates: int
    score: float
    probability: float
    neighbors: list[Neighbor]
    contributions: list[tuple[str, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        name = self.label_name if self.label_name is not None else f"label {self.label}"
        lines = [
            f"{name}: rank {self.rank} of {self.n_candidates}, "
            f"score {self.score:.3f}, probability {self.probability:.2f}"
        ]
        if self.neighbors:
            lines.append("  nearest training points with this label:")
            lines += [
                f"    {p.distance:8.4f}  row {p.row}" + (f"  {p.name}" if p.name else "")
                for p in self.neighbors
            ]
        if self.contributions:
            lines.append("  what moved the score:")
            width = max(len(c[0]) for c in self.contributions[:8])
            lines += [f"    {c:+8.3f}  {n:<{width}} = {v:.4g}" for n, v, c in self.contributions[:8]]
        return "\n".join(lines)


def explain_pair(model: MetaRanker, features: Features, label: int, n_neighbors: int) -> Explanation:
    """The `Explanation` of one encoded row and a label id, which becomes a candidate if it was none."""
    candidates = model.candidates_of(features)
    if label not in candidates.labels:
        labels = np.sort(np.append(candidates.labels, np.int32(label)))
        candidates = type(candidates)(np.array([0, len(labels)]), labels, candidates.n_labels)
    n_jobs = resolve_n_jobs(model.n_jobs)
    table = model.table_of(features, candidates)
    scores = model.ranker_.score(table, n_jobs=n_jobs)
    at = int(np.searchsorted(candidates.labels, label))
    order = np.lexsort((candidates.labels, -scores.astype(np.float64)))
    contributions = model.ranker_.contributions(table.pairs(np.array([at])))[0]
    by_effect = np.argsort(-np.abs(contributions[:-1]), kind="stable")
    neighbors: list[Neighbor] = []
    for scorer in model.scorers_:
        if hasattr(scorer, "neighbors_of"):
            rows, distances = scorer.neighbors_of(features, label, n_neighbors)
            names = model.row_names_
            neighbors = [
                Neighbor(int(r), names[int(r)] if names is not None else None, float(d))
                for r, d in zip(rows, distances)
            ]
            break
    return Explanation(
        label=label,
        label_name=model.label_names_[label] if model.label_names_ is not None else None,
        rank=int(np.flatnonzero(order == at)[0]) + 1,
        n_candidates=candidates.n_pairs,
        score=float(scores[at]),
        probability=float(model.thresholds_.probabilities(candidates, scores)[at]),
        neighbors=neighbors,
        contributions=[
            (table.names[j], float(table.values[at, j]), float(contributions[j]))
            for j in by_effect
            if contributions[j] != 0
        ],
    )

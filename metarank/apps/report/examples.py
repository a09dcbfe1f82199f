"""Single rows under the magnifying glass: labels found, missed and newly proposed, with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from metarank import metrics
from metarank.apps.report.words import Reason, reasons
from metarank.model.explain import NOTHING_KNOWN
from metarank.types.ranking import Ranking

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.model.relevance import Relevance
    from metarank.types.candidates import Candidates


@dataclass(frozen=True)
class Suggestion:
    """A label of one row: its place in the list, the score that gave it, and what that is made of.

    The probability, without the lean towards rare labels, is what cuts stand on.
    """

    name: str
    rank: int
    score: float
    probability: float
    reasons: list[Reason]
    note: str = ""


@dataclass(frozen=True)
class Example:
    """One row and its labels.

    Attributes
    ----------
    title, text : str
        What the row is called, and the start of its text.
    found, proposed : list of Suggestion
        Listed labels that are relevant, and those that are not.
    missed : list of (name, rank)
        Relevant labels not listed, with their place among all candidates; 0 where they are no candidate.
    note : str
        What is to be said of the row, as where the model knows nothing of it.
    """

    title: str
    text: str
    found: list[Suggestion] = field(default_factory=list)
    missed: list[tuple[str, int]] = field(default_factory=list)
    proposed: list[Suggestion] = field(default_factory=list)
    note: str = ""


def typical_rows(
    Y: sp.csr_matrix, ranking: Ranking, n: int, *, eligible: np.ndarray | None = None
) -> np.ndarray:
    """n rows at evenly spaced quantiles of nDCG@5, neither the best nor the worst; best first.

    Parameters
    ----------
    Y : CSR (m, L)
    ranking : Ranking of the m rows
    n : int
        At most so many rows, distinct.
    eligible : bool array (m,), optional
        Rows that may be shown; those without a relevant label never are.
    """
    quality = metrics.per_row(Y, ranking, "nDCG@5")
    kept = ~np.isnan(quality) if eligible is None else eligible & ~np.isnan(quality)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(-quality[rows], kind="stable")]
    if not len(rows) or n < 1:
        return rows[:0]
    positions = ((np.arange(n) + 0.5) / n * len(rows)).astype(np.int64)
    return rows[np.unique(positions)]


def _short(text: str, most: int = 90) -> str:
    """The first line, cut between words if it is long."""
    line = text.strip().partition("\n")[0].rstrip()
    return line if len(line) <= most else f"{line[: most + 1].rpartition(' ')[0].rstrip() or line[:most]} …"


def example(
    model: MetaRanker,
    dataset: Dataset,
    row: int,
    ranking: Ranking,
    relevance: Relevance,
    *,
    exclude: Candidates | None = None,
    k: int = 5,
    n_reasons: int = 3,
) -> Example:
    """The labels of one row, those among the k best with reasons.

    `ranking` is the model's own of all rows, without the pairs in `exclude`.
    """
    x = dataset.take([row])
    relevant = [int(label) for label in relevance.Y[row].indices]
    listed = [int(label) for label in ranking.labels[row] if label >= 0]

    def name(label: int) -> str:
        new = label - relevance.n_known
        return model.label_table_.called(label) if new < 0 else f"{relevance.unknown[new]} (unknown)"

    def suggestion(label: int) -> Suggestion:
        e = model.explain(x, label, exclude=None if exclude is None else exclude.rows(np.array([row])))
        return Suggestion(name(label), e.rank, e.score, e.probability, reasons(e, n_reasons))

    text = " ".join(dataset.texts[row].split()) if dataset.texts is not None else ""
    titles = dataset.titles or dataset.texts
    title = _short(titles[row]) if titles is not None else f"row {row}"
    return Example(
        title=title,
        text=text.removeprefix(title.removesuffix(" …")).strip(),
        found=[suggestion(label) for label in listed[:k] if label in relevant],
        missed=[
            (name(v), listed.index(v) + 1 if v in listed else 0) for v in relevant if v not in listed[:k]
        ],
        proposed=[suggestion(label) for label in listed[:k] if label not in relevant],
        note=NOTHING_KNOWN if ranking.without_evidence[row] else "",
    )

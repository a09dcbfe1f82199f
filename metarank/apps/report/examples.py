"""Single rows under the magnifying glass: labels found, missed and newly proposed, with reasons."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metarank import metrics
from metarank.data.dataset import Dataset
from metarank.metrics.relevance import Relevance
from metarank.model.answering.explain import NOTHING_KNOWN, Explanation
from metarank.model.estimator import MetaRanker
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking

# Labels of a row that are shown, and characters of its title.
_LISTED = 5
_TITLE = 90


class Example(NamedTuple):
    """One row and its labels.

    Attributes
    ----------
    title, text : str
        What the row is called, and the start of its text.
    found, proposed : lists of (name, Explanation)
        Listed labels that are relevant, and those that are not.
    missed : list of (name, rank)
        Relevant labels not listed, with their rank among all candidates; 0 if they are not candidates.
    note : str
        What is to be said of the row, as where the model knows nothing of it.
    """

    title: str
    text: str
    found: list[tuple[str, Explanation]]
    missed: list[tuple[str, int]]
    proposed: list[tuple[str, Explanation]]
    note: str


def typical_rows(relevance: Relevance, ranking: Ranking, n: int) -> np.ndarray:
    """At most n distinct rows at evenly spaced quantiles of nDCG@5, neither the best nor the worst; best
    first. Rows without a relevant label are never shown."""
    quality = metrics.per_row(relevance, ranking, "nDCG@5")
    rows = np.flatnonzero(~np.isnan(quality))
    rows = rows[np.argsort(-quality[rows], kind="stable")]
    if not len(rows) or n < 1:
        return rows[:0]
    return rows[np.unique(((np.arange(n) + 0.5) / n * len(rows)).astype(np.int64))]


def example(
    model: MetaRanker,
    dataset: Dataset,
    row: int,
    ranking: Ranking,
    relevance: Relevance,
    *,
    exclude: Candidates | None = None,
) -> Example:
    """The labels of one row, the best of them with reasons.

    `ranking` is the model's own of all rows, without the pairs in `exclude`.
    """
    x = dataset.take([row])
    excluded = None if exclude is None else exclude.rows(np.array([row]))
    relevant = relevance.Y[row].indices.tolist()
    listed = [int(label) for label in ranking.labels[row] if label >= 0]
    best = listed[:_LISTED]

    def name(label: int) -> str:
        new = label - relevance.n_known
        return model.label_table_.called(label) if new < 0 else f"{relevance.unknown[new]} (unknown)"

    def explained(labels: list[int]) -> list[tuple[str, Explanation]]:
        return [(name(label), model.explain(x, label, exclude=excluded)) for label in labels]

    text = " ".join(dataset.texts[row].split()) if dataset.texts is not None else ""
    titles = dataset.titles or dataset.texts
    title = f"row {row}"
    if titles is not None:
        title = titles[row].strip().partition("\n")[0].rstrip()
    if len(title) > _TITLE:
        title = f"{title[: _TITLE + 1].rsplit(' ', 1)[0].rstrip()} …"
    return Example(
        title=title,
        text=text.removeprefix(title.removesuffix(" …")).strip(),
        found=explained([label for label in best if label in relevant]),
        missed=[(name(v), listed.index(v) + 1 if v in listed else 0) for v in relevant if v not in best],
        proposed=explained([label for label in best if label not in relevant]),
        note=NOTHING_KNOWN if ranking.without_evidence[row] else "",
    )

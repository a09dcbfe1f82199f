"""Pairs (row, label) that a person should look at: labels that training rows lack, and answers in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank.persist.fields import Array, Ids, Known
from metarank.persist.spec import Saved, Spec
from metarank.types.candidates import Candidates
from metarank.types.label_table import LabelTable

# As many pairs are kept with a model.
MAX_PAIRS = 1_000


class MissingLabel(NamedTuple):
    """A training row, a label that it lacks, and the held-out probability that the label is relevant."""

    row: int
    row_name: str | None
    label: int
    label_name: str | None
    probability: float


def _check_distinct(known: Known) -> None:
    if len(set(zip(known.rows.tolist(), known.labels.tolist()))) < len(known.rows):
        raise ValueError("rows and labels of missing labels must be distinct pairs")


@dataclass(frozen=True, eq=False)
class MissingPairs(Saved):
    """Unlabelled pairs of training rows, the most probable first; ties by row, then by label.

    Parameters
    ----------
    rows : int64 array (p,)
        Rows of the training set.
    labels : int32 array (p,)
    probabilities : float32 array (p,)
        Calibrated, from scores of models that did not see the row.

    Examples
    --------
    >>> pairs = Candidates.all_labels(2, 2)
    >>> probabilities, judged = np.float32([0.9, 0.2, 0.1, 0.75]), np.array([True, False, False, False])
    >>> MissingPairs.surest(pairs, probabilities, judged, rows=np.array([4, 7])).top(1, None, None)
    [MissingLabel(row=7, row_name=None, label=1, label_name=None, probability=0.75)]
    """

    rows: Annotated[
        np.ndarray, Ids("", np.int64, ("pairs",), below=lambda known: known.sizes.get("rows", 2**31))
    ]
    labels: Annotated[np.ndarray, Ids("", np.int32, ("pairs",), below="L")]
    probabilities: Annotated[np.ndarray, Array("", np.float32, ("pairs",), least=0, most=1)]

    saved: ClassVar[Spec] = Spec(check=_check_distinct)

    @classmethod
    def surest(
        cls, candidates: Candidates, probabilities: np.ndarray, judged: np.ndarray, rows: np.ndarray
    ) -> MissingPairs:
        """The most probable of the pairs (m,) that are not `judged`. Row i of the candidates is training row
        rows[i]."""
        open_pairs = np.flatnonzero(~judged)
        row, label = rows[candidates.row_of_pair[open_pairs]], candidates.labels[open_pairs]
        order = np.lexsort((label, row, -probabilities[open_pairs]))[:MAX_PAIRS]
        return cls(row[order], label[order], probabilities[open_pairs][order])

    def top(self, k: int, row_names: Sequence[str] | None, labels: LabelTable | None) -> list[MissingLabel]:
        """The first k pairs, with names if they are known."""
        return [
            MissingLabel(
                int(row),
                None if row_names is None else row_names[row],
                int(label),
                None if labels is None else labels.name_of(label),
                float(probability),
            )
            for row, label, probability in zip(self.rows[:k], self.labels[:k], self.probabilities[:k])
        ]


GOALS = ("recall", "errors")


class ReviewPair(NamedTuple):
    """A row, a label, its probability of being relevant, and the expected gain of looking at the pair."""

    row: int
    label: int
    label_name: str | None
    probability: float
    gain: float


def check_goal(goal: Any) -> str:
    """The goal; ValueError if it is none."""
    if not isinstance(goal, str) or goal not in GOALS:
        raise ValueError(f"goal must be one of {', '.join(GOALS)}, got {goal!r:.80}")
    return goal


def review_pairs(
    probabilities: sp.csr_matrix,
    predicted: sp.csr_matrix,
    judged: sp.csr_matrix,
    k: int,
    goal: str,
    factor: np.ndarray,
    labels: LabelTable,
) -> list[ReviewPair]:
    """The k pairs of greatest expected gain, those of equal gain in order of row, then label.

    Parameters
    ----------
    probabilities : CSR (n, L)
        The candidates; only stored entries are considered.
    predicted, judged : CSR (n, L)
        Label sets, and pairs that are known already, by their stored entries.
    k : int
    goal : "recall" or "errors"
        The gain is the probability that a label is relevant and missing from the set, or that the decision of
        the set is wrong.
    factor : float array (L,)
        What a label counts.
    labels : LabelTable

    Examples
    --------
    >>> P, S = sp.csr_matrix([[0.9, 0.3, 0.2]]), sp.csr_matrix([[1, 0, 0]])
    >>> none, table = sp.csr_matrix((1, 3)), LabelTable(3)
    >>> [(p.label, round(p.gain, 2)) for p in review_pairs(P, S, none, 2, "recall", np.ones(3), table)]
    [(1, 0.3), (2, 0.2)]
    >>> [(p.label, round(p.gain, 2)) for p in review_pairs(P, S, none, 3, "errors", np.ones(3), table)]
    [(1, 0.3), (2, 0.2), (0, 0.1)]
    """
    pairs = Candidates.from_csr(probabilities)
    row, label, probability = pairs.row_of_pair, pairs.labels, pairs.final_score.astype(np.float64)
    inside, known = (pairs.among(Candidates.from_csr(of)) for of in (predicted, judged))
    gain = np.where(inside, 1 - probability if goal == "errors" else 0.0, probability) * factor[label]
    considered = np.flatnonzero(~known & (gain > 0))
    order = np.lexsort((label[considered], row[considered], -gain[considered]))
    return [
        ReviewPair(
            int(row[i]), int(label[i]), labels.name_of(int(label[i])), float(probability[i]), float(gain[i])
        )
        for i in considered[order[:k]]
    ]

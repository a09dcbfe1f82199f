"""`MissingPairs`: the most probable labels that training rows lack, by models that did not see the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

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

    rows: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray

    saved: ClassVar[Spec] = Spec(
        Ids("rows", np.int64, ("pairs",), below=lambda known: known.sizes.get("rows", 2**31)),
        Ids("labels", np.int32, ("pairs",), below="L"),
        Array("probabilities", np.float32, ("pairs",), least=0, most=1),
        check=_check_distinct,
    )

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

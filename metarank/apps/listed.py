"""The labels that a model lists for rows, as entries of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import scipy.sparse as sp

from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking


def listed(
    ranking: Ranking, table: LabelTable, probable: sp.csr_matrix | None, kept: sp.csr_matrix | None
) -> Iterator[list[dict[str, Any]]]:
    """Of each row its labels, best first: label, name, score and, as far as they are known, the label's own
    id, the probability and whether it is in the label set."""
    for row, pairs in enumerate(ranking):
        probability, above = _of_row(probable, row), _of_row(kept, row)
        yield [
            {"label": label}
            | ({} if table.own_ids is None else {"label_id": table.own_ids[label]})
            | {"name": table.shown(label), "score": score}
            | ({} if probable is None else {"probability": probability.get(label, 0.0)})
            | ({} if kept is None else {"kept": label in above})
            for label, score in pairs
        ]


def _of_row(matrix: sp.csr_matrix | None, row: int) -> dict[int, float]:
    """The stored entries of a row by label."""
    if matrix is None:
        return {}
    pairs = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return dict(zip(matrix.indices[pairs].tolist(), matrix.data[pairs].tolist()))

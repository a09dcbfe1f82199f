"""`Plan`: a fitted model's way from sparse rows to scored lists, run whole by the compiled core.

One call goes through proposals, union, cascade, columns, table and trees, row by row and without the
interpreter's lock. The stages in Python (`metarank.model.answering.answer`) give the same bytes. They answer
where a source or the model has something that the plan cannot do, and are its twin in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metarank import _core
from metarank.model.cascade import Lists
from metarank.types.arrays import Parts
from metarank.types.candidates import Candidates
from metarank.types.texts import WordRows


@dataclass(frozen=True, eq=False)
class Plan:
    """The compiled plan of a model.

    Parameters
    ----------
    core : metarank._core.Plan
    ranks : bool
        Whether it knows the model's ranker; otherwise it makes tables only.
    n_labels : int
    """

    core: _core.Plan
    ranks: bool
    n_labels: int

    def listed(
        self, rows: Parts, k: int, *, table: bool, n_jobs: int, words: WordRows | None = None
    ) -> tuple[Lists, np.ndarray]:
        """The candidates of rows of canonical CSR, k proposed by each source, and the columns of those that
        are described, float32 (pairs described, F), or what the ranker makes of all, float64 (m,). `words`
        are those of their texts, where a source looks at them.

        Raises
        ------
        ValueError
            If a score or column is not finite.
        """
        words = WordRows.of([]) if words is None else words
        indptr, labels, rough, ahead, columns, evidence = self.core.answer(
            rows, words.indptr, words.words, k, table, n_jobs
        )
        candidates = Candidates.of_core(indptr, labels, self.n_labels, {})
        is_filtered = len(ahead) and not ahead.all()
        lists = Lists(candidates, rough, ahead.view(bool)) if is_filtered else Lists(candidates)
        return lists, columns if table else evidence

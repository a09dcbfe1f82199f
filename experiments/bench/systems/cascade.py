"""The pipeline with so many candidates of a row described at least, if it has as many: `least_survivors`."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from metarank.model.answering.answer import Request
from metarank.model.fitting import auto
from metarank.types.restrict import LabelLimits
from systems import pipeline


class System(pipeline.System):
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        arguments = dict(params)
        auto.LEAST_SURVIVORS = arguments.pop("least_survivors", auto.LEAST_SURVIVORS)
        super().__init__(arguments, threads)

    def cuts(self, rows: sp.csr_matrix) -> dict[str, sp.csr_matrix]:
        return {}

    def figures(self, rows: sp.csr_matrix) -> dict[str, float]:
        """Candidates a row, and those of them that are described, over the first thousand rows."""
        rows = self.model.encoder_.encode(rows[:1000])
        request = Request(rows, LabelLimits(None, removed=self.model.removed_))
        lists = [described.lists for described in self.model.answering().describe(request)]
        return {
            "proposed": sum(part.candidates.n_pairs for part in lists) / rows.shape[0],
            "described": sum(part.described.n_pairs for part in lists) / rows.shape[0],
        }

"""A method of `systems.rivals`, by name; its settings are chosen on a tenth of the training rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

import metarank
from metarank.types.arrays import unit_rows
from systems import shortlister
from systems.rivals import KINDS
from systems.rivals.base import chosen


class System(shortlister.System):
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.threads = metarank.__version__, threads
        self.kind, self.seed = KINDS[params["estimator"]], params["random_state"]

    def train(self) -> None:
        X, Y = unit_rows(self.X.tocsr()), self.Y.tocsr()
        self.chosen = chosen(self.kind, X, Y, self.seed)
        self.model = self.kind(self.seed, **self.chosen).fit(X, Y)

    def save(self, folder: Path) -> None:
        """Its size is not compared."""

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return unit_rows(X.tocsr())

    def figures(self, rows: sp.csr_matrix) -> dict[str, Any]:
        return {"chosen": self.chosen}

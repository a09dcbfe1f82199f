"""A `shortlister` or `rival` that predicts relevances and answers with pairs.

Parabel and one-vs-all by the squared hinge know relevant or not: their answers are probabilities, margins by
a sigmoid. All others learn the grades of the set, else inverse propensities. Parameters beside theirs:

labelwise : rows are listed for labels (Algorithm 1 of Prabhu et al. 2020), `factor` its F
length : of the lists
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from made_sets import relevances
from scipy.special import expit
from sets import described

import metarank
from metarank import Candidates
from systems import rival, shortlister
from systems.rivals import KINDS

OWN = ("labelwise", "factor", "length")


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        rest = {name: value for name, value in params.items() if name not in OWN}
        self.own = {name: params[name] for name in OWN if name in params}
        self.is_rival = rest["estimator"] in KINDS
        self.is_margin = rest["estimator"] == "OneVsAll" and rest.get("loss") != "ridge"
        self.is_graded = rest["estimator"] != "Parabel" and not self.is_margin
        self.inner = (rival if self.is_rival else shortlister).System(rest, threads)
        self.train, self.save, self.prepare = self.inner.train, self.inner.save, self.inner.prepare

    def read(self, folder: Path) -> None:
        self.inner.read(folder)
        if self.is_graded and self.is_rival:
            self.inner.Y = relevances(folder)[0]
        elif self.is_graded:
            graded = described(folder).get("graded", False)
            self.inner.model.set_params(relevance="graded" if graded else "inverse-propensity")

    def predict(self, rows: sp.csr_matrix, k: int) -> Candidates:
        k, model = self.own.get("length", k), self.inner.model
        if self.own.get("labelwise"):
            return model.shortlist_points(rows, k=k, factor=self.own.get("factor", 4.0)).transpose()
        return model.shortlist(rows, k=k)

    def arrays(self, predicted: Candidates, rows: sp.csr_matrix) -> dict[str, np.ndarray]:
        unit = "relevance" if self.is_graded else "probability"
        return {"/indptr": predicted.indptr, "/labels": predicted.labels, f"/{unit}": self.values(predicted)}

    def values(self, found: Candidates) -> np.ndarray:
        """Scores in their unit; what is below 0 keeps its order just above."""
        scores = next(iter(found.scores.values()))
        if self.is_margin:
            return expit(4 * scores)
        # Scores that are never below 0 may be tiny: those of re-ranked labels are.
        return scores if scores.min(initial=0.0) >= 0 else np.maximum(scores, 1e-6 * expit(scores))

    def figures(self, rows: sp.csr_matrix) -> dict[str, Any]:
        """What was chosen; alpha is that of the points of a label where these are listed."""
        found = self.inner.figures(rows)
        if self.own.get("labelwise") and "chosen" in found:
            found["chosen"]["alpha"] = self.inner.model.alpha_points_
        return found

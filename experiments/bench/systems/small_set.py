"""A system of the small sets: `kind` is its name in `systems.small`, or "metarank"; it scores all labels.

With `meta`, it is given the concatenated meta-features of a row instead of its features (Yang & Gopal,
Fig. 2). Its answers are scores (n, L), and label sets by each rule that it is cut by.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import metarank
from metarank import MetaRanker
from metarank.data.scaling import FeatureTransform
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows
from systems.small import KINDS, cuts
from systems.small.base import Features, Scorer, held_out_scores

# Neighbours a pair in the meta-features fed to baselines.
META_K = 10
# liblinear may stop at its limit of passes at the largest C of a grid, which is seldom the one chosen.
warnings.filterwarnings("ignore", category=ConvergenceWarning)


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        self.kind, self.seed, self.meta = params["kind"], params["random_state"], params.get("meta", False)
        # Models of the other folds, which learned thresholds need, cost five further fits.
        self.held_out = params.get("held_out", True)

    def read(self, folder: Path) -> None:
        X = sp.load_npz(folder / "X.npz")
        self.dense = X.nnz > 0.5 * X.shape[0] * X.shape[1]
        self.X = self._form(X)
        self.Y = sp.load_npz(folder / "Y.npz").toarray() > 0

    def _form(self, X: sp.csr_matrix) -> Features:
        return X.toarray() if self.dense else X.tocsr()

    def train(self) -> None:
        if self.kind == "metarank":
            self.model = MetaRanker(n_jobs=1, random_state=self.seed)
            self.model.fit(self.X, sp.csr_matrix(self.Y, dtype=np.float32))
            return
        self.scale = FeatureTransform().fit(self.X)
        self.rows = self.scale.transform(self.X)
        if self.meta:
            self._describe()
        self.model = KINDS[self.kind](self.seed).fit(self.rows, self.Y)

    def _describe(self) -> None:
        """z_i of eq. 2: the meta-features of all labels side by side, scaled; training rows held out."""
        fold = fold_of_rows(len(self.Y), 5, self.seed)
        data = TrainingSet(self.rows, sp.csr_matrix(self.Y, dtype=np.float32), fold, seed=self.seed)
        self.scorers = [LabelNeighbors(k=META_K, columns="raw"), Centroids()]
        pairs = Candidates.all_labels(*self.Y.shape)
        columns = [held_out_columns(scorer, data, pairs, n_jobs=1) for scorer in self.scorers]
        for scorer in self.scorers:
            scorer.fit(data.view())
        side_by_side = self._side_by_side(columns)
        self.of_meta = FeatureTransform().fit(side_by_side)
        self.rows = self.of_meta.transform(side_by_side)

    def _side_by_side(self, columns: list[dict[str, np.ndarray]]) -> np.ndarray:
        n_labels = self.Y.shape[1]
        return np.hstack([values.reshape(-1, n_labels) for part in columns for values in part.values()])

    def save(self, folder: Path) -> None:
        if self.kind == "metarank":
            self.model.save(folder)

    def prepare(self, X: sp.csr_matrix) -> Features:
        return self._form(X)

    def predict(self, X: Features, k: int) -> np.ndarray:
        if self.kind == "metarank":
            return self.model.decision_function(X)
        rows = self.scale.transform(X)
        if self.meta:
            pairs = Candidates.all_labels(rows.shape[0], self.Y.shape[1])
            columns = [scorer.score(rows, pairs, n_jobs=1) for scorer in self.scorers]
            rows = self.of_meta.transform(self._side_by_side(columns))
        return self.model.scores(rows)

    def arrays(self, scores: np.ndarray, X: Features) -> dict[str, np.ndarray]:
        """The scores, and bool (n, L) by rule: "own", "regression", "learned METRIC"."""
        if self.kind == "metarank":
            sets = {m: self.model.predict(X, optimize=cut).toarray() > 0 for m, cut in cuts.CUTS.items()}
            return {"scores": scores, **{f"learned {metric}": found for metric, found in sets.items()}}
        own, training = self.model.decide(scores), self.model.training
        out = {"scores": scores, **({} if own is None else {"own": own})}
        if self.held_out or training is None:
            probabilities = type(self.model).cut == 0.5
            held_out = held_out_scores(self._fit_again, self.rows, self.Y, self.seed)
            sets = cuts.learned(held_out, self.Y, scores, probabilities, self.seed)
            out |= {f"learned {metric}": found for metric, found in sets.items()}
            training = held_out if training is None else training
        return out | {"regression": cuts.by_regression(training, self.Y, scores)}

    def _fit_again(self, X: Features, Y: np.ndarray) -> Scorer:
        return KINDS[self.kind](self.seed, given=self.model.chosen).fit(X, Y).scores

"""`LabelEmbedder` on raw texts: its arguments, and for how many steps of gradient descent.

Training ends after `steps`, or when the held-out tenth of the training rows has had no better nDCG@5 for
`patience_steps`; the best epoch is kept. All models read the names as texts, so that all know their subwords.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank import Ranking
from metarank.text import LabelEmbedder
from systems import texts


class System(texts.System):
    def make(self, params: dict[str, Any], threads: int) -> None:
        arguments = dict(params)
        self.steps, self.patience = arguments.pop("steps"), arguments.pop("patience_steps")
        self.model = LabelEmbedder(n_jobs=threads, **arguments)

    def train(self) -> None:
        of_epoch = max(1.0, (1 - self.model.validation_fraction) * len(self.texts) / self.model.batch_size)
        epochs, patience = (max(1, round(steps / of_epoch)) for steps in (self.steps, self.patience))
        self.model.set_params(n_epochs=epochs, patience=patience)
        self.model.fit(self.texts, self.Y, self.names, unlabelled=self.names)
        if self.added:
            self.model = self.model.add_labels(self.added)

    def predict(self, texts: list[str], k: int) -> Ranking:
        """Scores of a softmax are logarithms of shares of all labels: one cut for all rows compares them."""
        if self.model.loss != "softmax":
            return self.model.rank(texts, k=k)
        scores = self.model.decision_function(texts).astype(float)
        scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return Ranking.from_scores(scores, k, n_jobs=1)

    def figures(self, rows: list[str]) -> dict[str, float]:
        """The size, and when the best epoch came, as a share of the greatest number."""
        trained = len(self.model.history_["loss"])
        return {
            "parameters": self.model.n_parameters_,
            "best_epoch": self.model.best_epoch_ / self.model.n_epochs,
            "stopped": trained < self.model.n_epochs,
        }

"""One-vs-rest LightGBM."""

from __future__ import annotations

import numpy as np
from lightgbm import LGBMClassifier

from baselines.base import Baseline, Features, one_vs_rest


class LightGBMOneVsRest(Baseline):
    """LightGBM's classifier with its default settings, one a label; the score is the log-odds."""

    def fit(self, X: Features, Y: np.ndarray) -> LightGBMOneVsRest:
        rounds = 20 if self.quick else 100

        def fit_one(y: np.ndarray):
            model = LGBMClassifier(
                n_estimators=rounds,
                n_jobs=1,
                random_state=self.seed,
                deterministic=True,
                force_row_wise=True,
                verbose=-1,
            ).fit(X, y)
            return lambda Z: model.booster_.predict(Z, raw_score=True, num_threads=1)

        self.scores_of = one_vs_rest(fit_one, Y, self.n_jobs)
        return self

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)

"""Boosted trees a label, and forests of 500 multi-label trees."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from systems.small.base import Baseline, Features, Scorer, one_vs_rest


class LightGBMOneVsRest(Baseline):
    """LightGBM's classifier with its default settings, one a label; the score is the log-odds."""

    def fit(self, X: Features, Y: np.ndarray) -> LightGBMOneVsRest:
        settings = {"deterministic": True, "force_row_wise": True, "verbose": -1, "n_jobs": 1}

        def fit_one(y: np.ndarray) -> Scorer:
            model = LGBMClassifier(random_state=self.seed, **settings).fit(X, y)
            return lambda Z: model.booster_.predict(Z, raw_score=True, num_threads=1)

        self.scores_of = one_vs_rest(fit_one, Y)
        return self

    def scores(self, X: Features) -> np.ndarray:
        return self.scores_of(X)


class _Forest(Baseline):
    """All labels in one forest; the score is the mean share of the leaves' rows that carry the label."""

    cut = 0.5
    classifier: ClassVar[Any]

    def fit(self, X: Features, Y: np.ndarray) -> _Forest:
        self.model = self.classifier(500, n_jobs=1, random_state=self.seed).fit(X, Y)
        return self

    def scores(self, X: Features) -> np.ndarray:
        present = [list(classes) for classes in self.model.classes_]
        shares = zip(self.model.predict_proba(X), present)
        return np.column_stack(
            [p[:, found.index(True)] if True in found else np.zeros(len(p)) for p, found in shares]
        )


class ExtraTrees(_Forest):
    """scikit-learn's extremely randomised trees."""

    classifier = ExtraTreesClassifier


class RandomForest(_Forest):
    """scikit-learn's random forest."""

    classifier = RandomForestClassifier

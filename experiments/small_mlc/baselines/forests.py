"""Forests of 500 multi-label trees."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from baselines.base import Baseline, Features


class _Forest(Baseline):
    """All labels in one forest; the score is the mean share of the leaves' rows that carry the label."""

    cut = 0.5
    classifier: ClassVar[Any]

    def fit(self, X: Features, Y: np.ndarray) -> _Forest:
        trees = 50 if self.quick else 500
        self.model = self.classifier(trees, n_jobs=self.n_jobs, random_state=self.seed).fit(X, Y)
        # One core for prediction: starting threads costs a single row more than they save.
        self.model.n_jobs = 1
        return self

    def scores(self, X: Features) -> np.ndarray:
        present = [list(classes) for classes in self.model.classes_]
        return np.column_stack(
            [
                p[:, classes.index(True)] if True in classes else np.zeros(len(p))
                for p, classes in zip(self.model.predict_proba(X), present)
            ]
        )


class ExtraTrees(_Forest):
    """scikit-learn's extremely randomised trees."""

    classifier = ExtraTreesClassifier


class RandomForest(_Forest):
    """scikit-learn's random forest."""

    classifier = RandomForestClassifier

"""What scikit-learn's meta-estimators make of `MetaRanker`: they work, or say why they do not."""

from __future__ import annotations

import makers
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metarank import MetaRanker

ONE_COLUMN = "must hold all labels as a matrix"
ONE_DIMENSIONAL = "y should be a 1d array|[Mm]ultilabel|bad input shape"
# By name: the meta-estimator around a model, and the message of its refusal, None where it works.
WRAPPERS = {
    "pipeline": (lambda model: make_pipeline(StandardScaler(), model), None),
    "grid search": (lambda model: GridSearchCV(model, {"ranker": ["logistic", "listnet"]}, cv=2), None),
    "random search": (
        lambda model: RandomizedSearchCV(model, {"ranker": ["logistic", "listnet"]}, n_iter=1, cv=2),
        None,
    ),
    "one-vs-rest": (OneVsRestClassifier, ONE_COLUMN),
    "multi-output": (MultiOutputClassifier, ONE_COLUMN),
    "chain": (ClassifierChain, ONE_COLUMN),
    "calibrated": (lambda model: CalibratedClassifierCV(model, cv=2), ONE_DIMENSIONAL),
    "stacking": (lambda model: StackingClassifier([("it", model)], LogisticRegression()), ONE_DIMENSIONAL),
    "bagging": (lambda model: BaggingClassifier(model, n_estimators=2), ONE_DIMENSIONAL),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_meta_estimator_works_or_says_why_not(name):
    wrap, refusal = WRAPPERS[name]
    ds = makers.dense()
    X, Y = np.asarray(ds.X), ds.Y.toarray()
    estimator = wrap(MetaRanker(**makers.QUICK))
    if refusal is None:
        assert estimator.fit(X, Y).predict(X).shape == Y.shape
        assert 0 < getattr(estimator, "best_score_", 1) <= 1
        return
    with pytest.raises(ValueError, match=refusal):
        estimator.fit(X, Y)


@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (False, True), (0.0, 1.0)])
def test_one_column_of_two_classes_is_refused_and_names_are_not(values):
    ds = makers.dense()
    of_rows = np.arange(ds.n_rows) % 2
    with pytest.raises(ValueError, match=ONE_COLUMN):
        MetaRanker(**makers.QUICK).fit(ds.X, np.array(values)[of_rows])
    model = MetaRanker(**makers.QUICK).fit(ds.X, np.array(["no", "yes"])[of_rows])
    assert model.label_names_ == ["no", "yes"]

"""Frames and columns whose rows have the same index in another order are refused, wherever two meet."""

from __future__ import annotations

import makers
import numpy as np
import pandas as pd
import pytest

from metarank import Dataset, MetaRanker, MultiObjectiveRanker, Ranking, metrics, objectives, pareto_front
from metarank.thresholds import ThresholdLearner

RULE = r"must have its rows in the order of .*\.loc\["
DS = makers.dense()
ORDER = np.random.default_rng(0).permutation(DS.n_rows)
X = pd.DataFrame(np.asarray(DS.X), columns=[f"f{j}" for j in range(DS.n_features)]).iloc[ORDER]
Y = pd.DataFrame(DS.Y.toarray(), columns=[f"label {j}" for j in range(DS.n_labels)])


def test_a_model_is_fitted_and_judged_on_rows_in_one_order():
    with pytest.raises(ValueError, match=RULE):
        MetaRanker(**makers.QUICK).fit(X, Y)
    model = MetaRanker(**makers.QUICK).fit(X, Y.loc[X.index])
    again = MetaRanker(**makers.QUICK).fit(X, Y.loc[X.index].to_numpy())
    assert model.decision_function(X).tobytes() == again.decision_function(X).tobytes()
    for call in (model.score, model.partial_fit):
        with pytest.raises(ValueError, match=RULE):
            call(X, Y)


def test_several_objectives_and_metrics_too():
    graded = Y.iloc[:, :2]
    calls = (MultiObjectiveRanker(n_jobs=1).fit, pareto_front, Dataset)
    calls += (lambda X, Y: objectives.diagnose(Y, X=X),)
    calls += (lambda X, Y: ThresholdLearner().fit(Y.loc[X.index], Y),)
    for call in calls:
        with pytest.raises(ValueError, match=RULE):
            call(X, graded)
    with pytest.raises(ValueError, match=RULE):
        metrics.evaluate(Y.iloc[ORDER], Y, ["P@1"])


def test_columns_of_two_tables_are_matched_by_name():
    other = Y[Y.columns[::-1]]
    ranking = Ranking.from_scores(other.to_numpy(np.float32), DS.n_labels, label_names=list(other))
    for scores in (other, ranking, Y, Y.to_numpy()):
        assert metrics.evaluate(Y, scores, ["MAP"]) == {"MAP": 1.0}
        for sets in (Y, other):
            assert metrics.evaluate(Y, scores, ["P@1", "micro-F1"], Y_pred=sets)["micro-F1"] == 1.0

"""Frames and columns whose rows have the same index in another order are refused, wherever two meet."""

from __future__ import annotations

import makers
import numpy as np
import pandas as pd
import pytest

from metarank import MetaRanker, MultiObjectiveRanker, metrics, pareto_front

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
    for call in (MultiObjectiveRanker(n_jobs=1).fit, pareto_front):
        with pytest.raises(ValueError, match=RULE):
            call(X, graded)
    with pytest.raises(ValueError, match=RULE):
        metrics.evaluate(Y.iloc[ORDER], Y, ["P@1"])

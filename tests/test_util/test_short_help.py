"""`help` on an estimator: its own methods, and nothing of metadata routing, which works as ever."""

from __future__ import annotations

import pydoc
from abc import ABC, abstractmethod

import numpy as np
import pytest
import sklearn

from metarank import MetaRanker, MultiObjectiveRanker, ThresholdLearner
from metarank.ranker import BoostedRanker
from metarank.shortlist import Parabel


@pytest.mark.parametrize("cls", [MetaRanker, MultiObjectiveRanker, ThresholdLearner, Parabel, BoostedRanker])
def test_help_is_not_about_metadata_routing(cls):
    text = pydoc.plain(pydoc.render_doc(cls))
    assert " |  fit(" in text
    assert "_request(" not in text
    assert "get_metadata_routing" not in text


def test_metadata_routing_works_as_ever():
    with sklearn.config_context(enable_metadata_routing=True):
        model = MetaRanker().set_fit_request(sample_weight=True)
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True
        assert sklearn.clone(model).get_metadata_routing().fit.requests["sample_weight"] is True


def test_an_abstract_base_class_may_be_mixed_in():
    class Named(ABC):
        @abstractmethod
        def name(self): ...

    class Mine(Named, ThresholdLearner):
        def name(self):
            return "mine"

    S = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.4]])
    assert Mine().fit(S, S > 0.5).name() == "mine"

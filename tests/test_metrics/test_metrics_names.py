"""Names of metrics."""

import pytest

from metarank import metrics
from metarank.metrics import Metric


@pytest.mark.parametrize("name", [n.replace("@k", "@10") for n in metrics.known_names()])
def test_names_print_back(name):
    metric = Metric.parse(name)
    assert str(metric) == name
    assert Metric.parse(str(metric)) == metric
    assert Metric.parse(metric) is metric
    assert metric.needs in ("ranking", "scores", "relevance", "sets")
    errors = ("WP-regret", "Regression-error", "XMAD", "XRMSE", "MAD", "RMSE")
    unit = "relevance" if metric.name.removesuffix("-l") in errors else "fraction"
    assert metric.unit == ("positions" if name == "Coverage" else unit)


def test_attributes():
    losses = {n for n in metrics.known_names() if "@" not in n and not Metric.parse(n).greater_is_better}
    assert losses == {"RankLoss", "One-error", "Coverage", "Hamming", "MAD", "MAD-l", "RMSE"}
    assert not Metric.parse("XMAD-l@5").greater_is_better
    assert Metric.parse("WP@5").needs == "ranking"
    assert Metric.parse("WP-l@5").needs == "scores"
    assert Metric.parse("XMAD@5").needs == "relevance"
    assert Metric.parse("nDCG").needs == "scores"
    assert Metric.parse("nDCG@5").needs == "ranking"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg@5", "did you mean 'nDCG@5'"),
        ("RankingLoss", "did you mean 'RankLoss'"),
        ("zzzzz", "unknown metric 'zzzzz'. Known: P@k"),
        ("", "unknown metric"),
        ("P@", "unknown metric"),
        ("P@05", "unknown metric"),
        ("P@-1", "unknown metric"),
        ("P@1.5", "unknown metric"),
        ("P @1", "unknown metric"),
        ("P", "needs a k, as in 'P@5'"),
        ("P@0", "must be positive"),
        ("MAP@5", "takes no k"),
    ],
)
def test_bad_names(name, message):
    with pytest.raises(ValueError, match=message):
        Metric.parse(name)


def test_bad_types():
    with pytest.raises(TypeError, match="named by a string"):
        Metric.parse(5)
    with pytest.raises(TypeError, match="list of metrics"):
        metrics.evaluate([[1]], [[1.0]], "MAP")

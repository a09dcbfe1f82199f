"""`metarank.plot`: the numbers of the report, as matplotlib draws them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.figure import Figure  # noqa: E402

from metarank import MetaRanker, MultiObjectiveRanker, data, pareto_front, plot  # noqa: E402


@pytest.fixture(scope="module")
def parts():
    both = data.make_multilabel(150, n_features=8, n_labels=5, seed=1)
    return (
        MetaRanker(effort="low", ranker="logistic", n_jobs=1),
        both.take(slice(0, 100)),
        both.take(slice(100, 150)),
    )


@pytest.fixture(scope="module")
def numbers(parts):
    model, train, test = parts
    return plot.measure(model.fit(train), test)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def drawn(ax) -> dict[str, list[float]]:
    return {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}


@pytest.mark.parametrize(("function", "field"), [(plot.recall_by_frequency, "tail"), (plot.recall, "recall")])
def test_curves_are_those_of_the_report(numbers, ax, function, field):
    assert function(numbers, ax) is ax
    expected = {name: list(values) for name, values in getattr(numbers, field).items()}
    assert drawn(ax) == expected
    assert len({line.get_color() for line in ax.get_lines()}) == len(expected)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(expected)


def test_calibration(numbers):
    observed = numbers.reliability.observed
    shown = drawn(plot.calibration(numbers, Figure().add_subplot()))
    assert shown["forecasts"] == observed[~np.isnan(observed)].tolist()


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_front(ax, n_objectives):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X + rng.normal(size=X.shape) > 0).astype(float)[:, :n_objectives]
    ranker = MultiObjectiveRanker(n_rounds=3, n_jobs=1)
    trade_offs = pareto_front(X, Y, ranker=ranker, aggregations=["label"], n_weights=3)
    assert plot.front(trade_offs, ax) is ax
    assert "one objective alone" in drawn(ax)


def test_without_axes_a_new_figure_is_made(numbers):
    import matplotlib.pyplot as plt

    first, second = plot.recall(numbers), plot.recall(numbers)
    assert first.figure is not second.figure
    plt.close("all")


def test_what_is_missing_is_refused(ax):
    from metarank.apps.report import Report

    for function, said in (
        (plot.recall_by_frequency, "label frequency"),
        (plot.calibration, "probabilities"),
    ):
        with pytest.raises(ValueError, match=said):
            function(Report(title="Nothing"), ax)


def test_matplotlib_is_imported_when_it_draws():
    code = (
        "import sys\nfrom metarank import plot\nfrom metarank.apps.report import Report\n"
        "assert 'matplotlib' not in sys.modules\nsys.modules['matplotlib'] = None\n"
        "try:\n    plot.recall(Report(title=''))\n"
        "except ImportError as error:\n    assert 'metarank-ltr[plot]' in str(error), error\n"
        "else:\n    sys.exit(3)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

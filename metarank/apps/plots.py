"""Plots by matplotlib (extra `plot`): the charts of the HTML report, fronts, and learning curves.

Each takes numbers that were measured before, draws them into `ax` or into a new figure, and returns the Axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.extra import require_extra
from metarank._util.svg import COLOURS, SERIES
from metarank.apps.report.content import Report, measure_report
from metarank.objectives.bitmap import draw_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.objectives.pareto import ParetoFront

_MARKERS = "os^Dvp"
_LENGTH = "k (length of the list)"


def measure(model: MetaRanker, dataset: Dataset, **how: Any) -> Report:
    """The numbers of the HTML report, for the functions below.

    Parameters
    ----------
    model : fitted MetaRanker
    dataset : Dataset
        Rows as in `MetaRanker.rank`, with labels.
    **how
        `baselines`, `slices` and others of `metarank.apps.report.measure_report`.

    Examples
    --------
    >>> from metarank import MetaRanker, data, plot
    >>> both = data.make_multilabel(120, n_features=8, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
    >>> numbers = plot.measure(model, both.take(slice(80, 120)))
    >>> plot.recall_by_frequency(numbers).get_ylabel()
    'recall at 3'
    """
    return measure_report(model, dataset, **{"n_examples": 0, **how})


def recall_by_frequency(report: Report, ax: Axes | None = None) -> Axes:
    """Recall of each method over the number of training rows of the labels.

    Raises
    ------
    ValueError
        If the model does not know the frequency of its labels.
    ImportError
        If matplotlib is missing; likewise below.
    """
    if not report.bins:
        raise ValueError("report must have figures by label frequency, got none")
    names = [b.name for b in report.bins]
    return _lines(
        ax, report.tail, range(len(names)), "training rows of the label", f"recall at {report.tail_k}", names
    )


def precision(report: Report, ax: Axes | None = None) -> Axes:
    """P@k of each method over k."""
    return _lines(
        ax, report.precision, report.ks, "k (length of the list)", "share of the first k that is relevant"
    )


def recall(report: Report, ax: Axes | None = None) -> Axes:
    """R@k of each method over k."""
    return _lines(ax, report.recall, report.ks, _LENGTH, "share of the relevant found")


def precision_recall(report: Report, ax: Axes | None = None) -> Axes:
    """Precision over recall of each method, a point for each length of the lists."""
    ax = _axes(ax)
    for (name, values), style in zip(report.precision.items(), _styles()):
        ax.plot(report.recall[name], values, label=name, **style)
    return _dressed(ax, "recall of the first k labels", "precision of the first k labels", legend=True)


def calibration(report: Report, ax: Axes | None = None) -> Axes:
    """How often forecasts come true: the share found relevant over the probability forecast, by bins."""
    ax, r = _axes(ax), report.reliability
    if r is None or not r.counts.sum():
        raise ValueError("report must have probabilities, got none")
    ax.plot([0, 1], [0, 1], "--", color=COLOURS["soft"], label="exact")
    found = r.counts > 0
    ax.plot(r.forecast[found], r.observed[found], "o-", color=COLOURS["s0"], label="forecasts")
    return _dressed(ax, "probability forecast", "share found relevant", legend=True)


def front(found: ParetoFront, ax: Axes | None = None) -> Axes:
    """The trade-offs of `pareto_front`: two objectives as a plane, more as parallel coordinates."""
    ax = _axes(ax)
    draw_axes(found, ax)
    ax.legend(frameon=False)
    return ax


def learning_curve(
    model: MetaRanker,
    train: Dataset,
    test: Dataset,
    metrics: Sequence[str] = ("nDCG@5", "micro-F1"),
    *,
    shares: Sequence[float] = (0.1, 0.25, 0.5, 1.0),
    ax: Axes | None = None,
) -> Axes:
    """Metrics on test rows over the number of training rows; a copy of the model is fitted for each share.

    Parameters
    ----------
    model : MetaRanker
        Fitted or not; it is not changed.
    train, test : Dataset
        The first rows of a seeded order of `train`, so that each share holds those before it.
    metrics : names, as in `metarank.metrics.known_names`
    shares : shares of the training rows, in (0, 1]
    ax : Axes, optional

    Raises
    ------
    ValueError
        If a share is out of range, and as `MetaRanker.fit` does of too few rows.
    """
    from sklearn.base import clone

    from metarank.model.measure import Evaluation
    from metarank.model.relevance import aligned_relevance

    if not len(shares) or not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares must lie in (0, 1], got {list(shares)}")
    ax = _axes(ax)
    order = np.random.default_rng(0).permutation(train.n_rows)
    sizes = sorted({max(1, round(share * train.n_rows)) for share in shares})
    curves: dict[str, list[float]] = {name: [] for name in metrics}
    for size in sizes:
        fitted = clone(model).fit(train.take(np.sort(order[:size])))
        values = Evaluation(fitted, test, aligned_relevance(fitted, test)).values(list(metrics))
        for name in metrics:
            curves[name].append(values[name])
    return _lines(ax, curves, sizes, "training rows", "metric on the test rows")


def _axes(ax: Axes | None) -> Any:
    """The axes to draw into; new ones are those of pyplot, which a notebook shows."""
    require_extra("plot", "matplotlib")
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _lines(
    ax: Any,
    curves: Mapping[str, Sequence[float]],
    xs: Sequence[float],
    x_label: str,
    y_label: str,
    names: Sequence[str] | None = None,
) -> Any:
    ax = _axes(ax)
    for (name, values), style in zip(curves.items(), _styles()):
        ax.plot(list(xs), list(values), label=name, **style)
    if names is not None:
        ax.set_xticks(list(xs), names)
    return _dressed(ax, x_label, y_label, legend=True)


def _styles() -> Any:
    """Colours and marks of the series, those of the report."""
    return (
        {"color": COLOURS[f"s{i}"] if i < SERIES else COLOURS["rule"], "marker": mark}
        for i, mark in zip(range(10**6), cycle(_MARKERS))
    )


def _dressed(ax: Any, x_label: str, y_label: str, *, legend: bool) -> Any:
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(bottom=0)
    ax.grid(color=COLOURS["rule"])
    if legend:
        ax.legend(frameon=False)
    return ax

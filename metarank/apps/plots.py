"""Plots by matplotlib (extra `plot`): the charts of the HTML report, and fronts.

Each takes numbers that were measured before, draws them into `ax` or into a new figure, and returns the Axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, cycle, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.extra import require_extra
from metarank.apps.report.charts import COLOURS
from metarank.apps.report.content import LENGTH, SHARES, Report, measure_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.objectives.diagnosis import Diagnosis
    from metarank.objectives.fronts import ParetoFront
    from metarank.objectives.multi_objective import MultiObjectiveRanker

_MARKERS = "os^Dvp"
_INK, _SOFT, _RULE = "#1c2430", "#5a6675", "#dfe4ea"
_METRIC = {"auc": "AUC", "ndcg@10": "nDCG@10"}
_FAINT = 0.28


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


def recall(report: Report, ax: Axes | None = None) -> Axes:
    """R@k of each method over k."""
    return _lines(ax, report.recall, report.ks, LENGTH, SHARES["recall"])


def calibration(report: Report, ax: Axes | None = None) -> Axes:
    """Calibration: the share of relevant pairs over the predicted probability, by bins."""
    ax, r = _axes(ax), report.reliability
    if r is None or not r.counts.sum():
        raise ValueError("report must have probabilities, got none")
    ax.plot([0, 1], [0, 1], "--", color=_SOFT, label="exact")
    filled = r.counts > 0
    ax.plot(r.forecast[filled], r.observed[filled], "o-", color=COLOURS[0], label="forecasts")
    return _dressed(ax, "probability forecast", "share that is relevant")


def front(trade_offs: ParetoFront, ax: Axes | None = None) -> Axes:
    """The trade-offs of `pareto_front`: two objectives as a plane, more as parallel coordinates.

    Dominated models are faint; the knee and the models of single objectives are marked.
    """
    ax = _axes(ax)
    (_plane if len(trade_offs.objective_names) == 2 else _parallel)(trade_offs, ax)
    ax.legend(frameon=False)
    return ax


def examination(found: Diagnosis | MultiObjectiveRanker, ax: Axes | None = None) -> Axes:
    """The examination probability of each position, from a diagnosis or a fitted ranker.

    Raises
    ------
    ValueError
        If there were no positions.
    """
    curve = getattr(found, "position_propensity", getattr(found, "position_propensity_", None))
    if curve is None:
        raise ValueError("found must have been given position, got one without")
    return _lines(ax, {"examined": curve}, range(1, len(curve) + 1), "position", "probability, relative")


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
    return _dressed(ax, x_label, y_label)


def _styles() -> Any:
    """Colours and marks of the series, those of the report."""
    return (
        {"color": colour, "marker": mark}
        for colour, mark in zip(chain(COLOURS, repeat(_RULE)), cycle(_MARKERS))
    )


def _dressed(ax: Any, x_label: str, y_label: str) -> Any:
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(bottom=0)
    ax.grid(color=_RULE)
    ax.legend(frameon=False)
    return ax


def _plane(trade_offs: ParetoFront, ax: Any) -> None:
    points, on_front = trade_offs.points, trade_offs.on_front
    method_of = np.array(trade_offs.aggregation)
    ax.plot(*points[trade_offs.front_order()].T, "-", color=_INK, alpha=0.65, label="the front")
    for method, style in zip(trade_offs.hypervolumes, _styles()):
        of_method = method_of == method
        ax.plot(*points[of_method & on_front].T, **style, linestyle="", label=method)
        ax.plot(*points[of_method & ~on_front].T, **style, linestyle="", alpha=_FAINT)
    ax.plot(*points[trade_offs.knee], "o", markersize=13, fillstyle="none", color=_INK, label="knee")
    ax.plot(*trade_offs.alone_points.T, "x", color=_INK, label="one objective alone")
    for name, point in zip(trade_offs.objective_names, trade_offs.alone_points):
        ax.annotate(name, point, (6, 6), textcoords="offset points", parse_math=False)
    first, second = (f"{_METRIC[trade_offs.metric]} of {name}" for name in trade_offs.objective_names)
    ax.set_xlabel(first, parse_math=False)
    ax.set_ylabel(second, parse_math=False)
    ax.margins(0.12)
    ax.grid(color=_RULE)


def _parallel(trade_offs: ParetoFront, ax: Any) -> None:
    """An axis for each objective, from the least to the greatest value; a line for each model."""
    every = np.vstack([trade_offs.points, trade_offs.alone_points])
    low, high = every.min(axis=0), every.max(axis=0)
    shares = (every - low) / np.where(high > low, high - low, 1)
    styles = dict(zip(trade_offs.hypervolumes, _styles()))
    for i in np.argsort(trade_offs.on_front, kind="stable"):
        width, alpha = 4.0 if i == trade_offs.knee else 1.6, 1.0 if trade_offs.on_front[i] else _FAINT
        ax.plot(shares[i], color=styles[trade_offs.aggregation[i]]["color"], linewidth=width, alpha=alpha)
    for method, style in styles.items():
        ax.plot([], [], color=style["color"], label=method)
    for line in ax.plot(shares[len(trade_offs.points) :].T, "--", color=_INK)[:1]:
        line.set_label("one objective alone")
    ends = [f"{name}\n{a:.4f} to {b:.4f}" for name, a, b in zip(trade_offs.objective_names, low, high)]
    ax.set_xticks(range(len(low)), ends, parse_math=False)
    ax.set_yticks([])
    ax.grid(axis="x", color=_SOFT)
    ax.set_frame_on(False)
    ax.set_xlabel(f"{_METRIC[trade_offs.metric]}, an axis per objective; a line per model; the knee is broad")

"""Estimated propensities, the fitted curve and the weights that follow: Fig. 2 of Jain et al. (2016)."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from points import PropensityFit, PropensityPoints
from svg_panels import (
    LEGEND_ROW,
    Plot,
    count,
    marker,
    nice_top,
    paint,
    polyline,
    side_by_side,
    style_of,
    ticks,
)
from weights import WeightKind, label_weights

from metarank.apps.report.charts import percent
from metarank.metrics.propensity import PRESETS, inv_propensity

_STYLE = style_of(
    "propensities",
    {
        ".mark": paint("fill", "s0"),
        ".curve": "fill:none;stroke-width:1",
        ".c0": f"{paint('stroke', 's1')};stroke-width:2.6",
        ".c1": f"{paint('stroke', 's2')};stroke-dasharray:7 4",
        ".c2": f"{paint('stroke', 's3')};stroke-dasharray:2 3",
        ".c3": f"{paint('stroke', 's5')};stroke-dasharray:9 3 2 3",
        ".heuristic": "stroke-width:1.8",
    },
)


def plot_propensities(
    points: PropensityPoints,
    fit: PropensityFit | None = None,
    *,
    labels_per_bin: int = 20,
    beta: float = 0.5,
    agree_at: float = 1.0,
) -> str:
    """Propensities over label frequency, and the weights 1/p beside the popular heuristics, as SVG text.

    Left: the mean propensity of each bin, the fitted curve and, drawn thin, the curves of `PRESETS` for the
    same N. Right: the inverse of both (for a bin 1 over its mean propensity) and the heuristics N_l^-beta and
    log(N / N_l) of `label_weights`, scaled so that they agree with the fitted curve at N_l = `agree_at`. A
    bin above the axis is drawn at its upper end. Every mark shows its numbers on hover.
    """
    n = points.n_points
    bins = points.binned(labels_per_bin)
    fit = points.fit() if fit is None else fit
    notes = [
        f"{size} labels, N_l {at:.1f}: propensity {percent(p, 1)}"
        for at, p, size in zip(bins.counts, bins.propensities, bins.sizes)
    ]
    top = max(10.0, float(bins.counts.max()))
    x = np.geomspace(1.0, min(top, n - 1), 120)
    fitted = inv_propensity(x, fit.a, fit.b, n_points=n)
    fit_name = f"fit: a = {fit.a:.2f}, b = {fit.b:.2f}"

    propensity = _panel("Propensity over label frequency", "propensity p", (0.0, 1.0), top)
    keys = [("mark", "estimated"), ("curve c0", fit_name)]
    for i, (name, (a, b)) in enumerate(PRESETS.items(), start=1):
        _curve(propensity, x, 1 / inv_propensity(x, a, b, n_points=n), f"c{i}", name)
        keys.append((f"curve c{i}", f"{name}: a = {a:g}, b = {b:g}"))
    _curve(propensity, x, 1 / fitted, "c0", fit_name)
    _estimates(propensity, bins.counts, bins.propensities, notes)
    propensity.legend(keys)

    weight = _panel("Weight over label frequency", "weight 1 / p", (0.0, nice_top(1.2 * fitted.max())), top)
    at = inv_propensity(np.array([agree_at]), fit.a, fit.b, n_points=n)
    keys = [("mark", "estimated"), ("curve c0", fit_name)]
    heuristics: tuple[tuple[WeightKind, str], ...] = (
        ("power", f"N_l^-{beta:g}, scaled"),
        ("log", "log(N / N_l), scaled"),
    )
    for i, (kind, name) in enumerate(heuristics, start=1):
        scale = at / label_weights([agree_at], kind, beta=beta, n_points=n)
        ys = scale * label_weights(x, kind, beta=beta, n_points=n)
        _curve(weight, x, ys, f"c{i} heuristic", name)
        keys.append((f"curve c{i} heuristic", name))
    _curve(weight, x, fitted, "c0", fit_name)
    inverse = np.divide(1.0, bins.propensities, out=np.full(len(notes), np.inf), where=bins.propensities > 0)
    _estimates(weight, bins.counts, inverse, notes)
    weight.legend(keys)

    return side_by_side([propensity, weight], 2, _STYLE, "propensities").rstrip()


def _panel(title: str, y_label: str, y: tuple[float, float], top_count: float) -> Plot:
    x = (0.0, math.log10(top_count))
    x_label = "points N_l of the label (log scale)"
    plot = Plot(title, x_label, y_label, x, y, height=350, top=20 + 3 * LEGEND_ROW)
    plot.y_axis(ticks(*y), "{:g}".format)
    steps = (1, 2, 5) if x[1] < 2.5 else (1,)
    marks = [step * 10**power for power in range(math.floor(x[1]) + 1) for step in steps]
    plot.x_axis([math.log10(m) for m in marks if m <= top_count], lambda v: count(10**v))
    return plot


def _curve(plot: Plot, xs: np.ndarray, ys: np.ndarray, css: str, name: str) -> None:
    """A line, as far as it lies within the axes."""
    inside = ys <= plot.y[1]
    points = [(plot.px(x), plot.py(y)) for x, y in zip(np.log10(xs[inside]), ys[inside])]
    plot.add(polyline(points, f"curve {css}", name))


def _estimates(plot: Plot, counts: np.ndarray, ys: np.ndarray, notes: Sequence[str]) -> None:
    for at, y, note in zip(np.log10(counts), np.minimum(ys, plot.y[1]), notes):
        plot.add(marker(0, plot.px(at), plot.py(y), note))

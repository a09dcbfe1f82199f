"""A `ParetoFront` as a picture: two objectives as a plane, more as parallel coordinates."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from metarank._util.svg import (
    CHARACTER,
    LEGEND_ROW,
    Plot,
    cross,
    marker,
    paint,
    polyline,
    side_by_side,
    style_of,
    ticks,
)

if TYPE_CHECKING:
    from metarank.objectives.pareto import ParetoFront

_SERIES = ("s0", "s1", "s2", "s3", "s4", "s5")
_STYLE = style_of(
    "pareto",
    {
        ".named": f"{paint('fill', 'fg')};font-weight:600;paint-order:stroke;"
        f"{paint('stroke', 'bg')};stroke-width:4px",
        ".page": paint("fill", "bg"),
        ".front": f"fill:none;{paint('stroke', 'fg')};stroke-width:1.4;opacity:.65",
        ".ring": f"fill:none;{paint('stroke', 'fg')};stroke-width:1.8",
        ".single": f"{paint('stroke', 'fg')};stroke-width:2.2",
        ".path": "fill:none;stroke-width:1.6",
        **{f".mark.{s}": paint("fill", s) for s in _SERIES},
        **{f".path.{s}": paint("stroke", s) for s in _SERIES},
        ".path.knee": "stroke-width:4",
        ".path.alone": f"{paint('stroke', 'fg')};stroke-dasharray:5 4",
        ".dominated": "opacity:.28",
    },
)
METRIC = {"auc": "AUC", "ndcg@10": "nDCG@10"}
_TOP = 22 + 2 * LEGEND_ROW  # room for the legend
_WIDTH, _HEIGHT = 720, 500


def draw_front(front: ParetoFront) -> str:
    """One `<svg>` element, to be written to a file or put into an HTML page.

    Every mark shows its method, weights and metrics on hover.
    """
    plot = _plane(front) if len(front.objective_names) == 2 else _parallel(front)
    page = '<rect class="page" width="100%" height="100%"/>'
    return side_by_side([plot], 1, _STYLE + page, "pareto").rstrip()


def _plane(front: ParetoFront) -> Plot:
    """Two objectives: points, the front as a line through those that none dominates."""
    everything = np.vstack([front.points, front.alone_points])
    x, y = (_range(column) for column in everything.T)
    metric = METRIC[front.metric]
    first, second = front.objective_names
    title = f"{metric} of {first} and {second}"
    marks = ticks(*y, 8)
    left = 40 + round(CHARACTER * max(len(f"{value:g}") for value in marks))
    names = f"{metric} of {first}", f"{metric} of {second}"
    plot = Plot(title, *names, x, y, _WIDTH, _HEIGHT, left=left, top=_TOP)
    plot.y_axis(marks, "{:g}".format)
    plot.x_axis(ticks(*x, 8), "{:g}".format)
    at = np.array([[plot.px(a), plot.py(b)] for a, b in front.points])
    line = at[front.front_order()]
    plot.add(polyline(line, "front"))
    methods = list(front.hypervolumes)
    for i in dominated_first(front):
        mark = marker(methods.index(front.aggregation[i]), at[i, 0], at[i, 1], _note(front, i))
        plot.add(mark if front.on_front[i] else f'<g class="dominated">{mark}</g>')

    labels = _Labels(plot, np.vstack([at, _along(line)]))
    px, py = at[front.knee]
    plot.add(f'<circle class="ring" cx="{px:.1f}" cy="{py:.1f}" r="9"/>')
    labels.put(px, py, f"knee: {front.aggregation[front.knee]}, {_weights(front, front.knee)}")
    for name, values in zip(front.objective_names, front.alone_points):
        px, py = plot.px(values[0]), plot.py(values[1])
        plot.add(cross(px, py, f"{name} alone: {_values(front, values)}"))
        labels.put(px, py, f"{name} alone")
    shown = [("mark", method) for method in methods]
    plot.legend([*shown, ("front", "the front"), ("single", "one objective alone"), *_faint(front)])
    return plot


def _parallel(front: ParetoFront) -> Plot:
    """More objectives: an axis each, a line a model; dominated ones are faint."""
    metric = METRIC[front.metric]
    n_objectives = len(front.objective_names)
    everything = np.vstack([front.points, front.alone_points])
    ranges = [_range(column) for column in everything.T]
    width = max(_WIDTH, 80 + 170 * n_objectives)
    plot = Plot(
        f"{metric} of {', '.join(front.objective_names)}",
        f"{metric}, an axis an objective; a line a model",
        "",
        (0, n_objectives - 0.55),
        (0, 1),
        width,
        _HEIGHT,
        left=74,
        bottom=64,
        top=_TOP,
    )

    def path(values: np.ndarray) -> np.ndarray:
        shares = [(v - low) / (high - low) for v, (low, high) in zip(values, ranges)]
        return np.array([[plot.px(k), plot.py(share)] for k, share in enumerate(shares)])

    methods = list(front.hypervolumes)
    for i in dominated_first(front):
        css = f"path s{methods.index(front.aggregation[i]) % 6}"
        css += " knee" if i == front.knee else "" if front.on_front[i] else " dominated"
        plot.add(polyline(path(front.points[i]), css, _note(front, i)))
    for k, (name, (low, high)) in enumerate(zip(front.objective_names, ranges)):
        plot.segment(plot.px(k), plot.py(0), plot.px(k), plot.py(1), "axis")
        for value in ticks(low, high, 8):
            y = plot.py((value - low) / (high - low))
            plot.segment(plot.px(k) - 4, y, plot.px(k), y, "axis")
            plot.text(plot.px(k) - 7, y + 4, f"{value:g}", "named", "end")
        plot.text(plot.px(k), plot.height - plot.bottom + 20, _short(name, 22), "named")
    for k, (name, values) in enumerate(zip(front.objective_names, front.alone_points)):
        at = path(values)
        plot.add(polyline(at, "path alone", f"{name} alone: {_values(front, values)}"))
        # At the objective's own axis, opposite to its ticks; the line leaves downwards.
        room = (plot.px(k + 1) - 44 if k < n_objectives - 1 else plot.width - 12) - plot.px(k)
        text = f"{name} alone"
        text = text if CHARACTER * len(text) <= room else "alone"
        plot.text(at[k, 0] + 8, at[k, 1] - 6, text, "named", "start")
    end = path(front.points[front.knee])[-1]
    plot.text(end[0] + 10, end[1] + 9, "knee", "named", "start")
    plot.text((plot.left + plot.width - plot.right) / 2, plot.height - 12, plot.x_label, "label")
    lines = [(f"path s{i % 6}", method) for i, method in enumerate(methods)]
    plot.legend([*lines, ("path alone", "one objective alone"), *_faint(front)])
    return plot


class _Labels:
    """Puts texts beside their points, where they cover the least of what is drawn."""

    def __init__(self, plot: Plot, drawn: np.ndarray) -> None:
        self.plot, self.drawn = plot, drawn

    def put(self, px: float, py: float, text: str) -> None:
        width, height = CHARACTER * len(text), 14.0
        left, right, middle = px - 14 - width, px + 14, px - width / 2
        corners = [
            (right, py - 20), (right, py - 7), (right, py + 8), (middle, py - 28), (left, py - 20),
            (left, py - 7), (left, py + 8), (middle, py + 14), (right, py - 36), (left, py + 24),
        ]  # fmt: skip
        x, y = min(corners, key=lambda at: self._covered(at[0], at[1], width, height))
        self.plot.text(x, y + 11, text, "named", "start")
        steps = np.linspace(0, 1, 24)
        box = [[x + width * s, y + height * t] for s in steps for t in (0.0, 0.5, 1.0)]
        self.drawn = np.vstack([self.drawn, box])

    def _covered(self, x: float, y: float, width: float, height: float) -> float:
        plot = self.plot
        inside = plot.left + 2 <= x and x + width <= plot.width - 2
        inside = inside and plot.top - 12 <= y and y + height <= plot.height - plot.bottom - 2
        dx, dy = (self.drawn - [x, y]).T
        hidden = (dx > -5) & (dx < width + 5) & (dy > -4) & (dy < height + 4)
        return float(hidden.sum()) + (0 if inside else 1e6)


def _faint(front: ParetoFront) -> list[tuple[str, str]]:
    return [] if front.on_front.all() else [("", "faint: dominated")]


def _range(values: np.ndarray) -> tuple[float, float]:
    """An axis about the values, with room on both sides."""
    low, high = float(values.min()), float(values.max())
    room = 0.09 * (high - low) or 0.01
    return low - room, high + room


def dominated_first(front: ParetoFront) -> list[int]:
    """Numbers of the points in the order of drawing: what matters comes on top."""
    return sorted(range(len(front.points)), key=lambda i: (front.on_front[i], i == front.knee, -i))


def _along(line: np.ndarray) -> np.ndarray:
    """Pixels on a line, near to each other."""
    if len(line) < 2:
        return line
    return np.vstack([np.linspace(a, b, 40) for a, b in pairwise(line)])


def _note(front: ParetoFront, i: int) -> str:
    kind = "" if front.on_front[i] else ", dominated"
    return f"{front.aggregation[i]}, {_weights(front, i)}: {_values(front, front.points[i])}{kind}"


def _weights(front: ParetoFront, i: int) -> str:
    return "weights " + " / ".join(f"{w:.2g}" for w in front.weights[i])


def _values(front: ParetoFront, values: np.ndarray) -> str:
    metric = METRIC[front.metric]
    return ", ".join(f"{metric} {name} {value:.4f}" for name, value in zip(front.objective_names, values))


def _short(name: str, length: int) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"

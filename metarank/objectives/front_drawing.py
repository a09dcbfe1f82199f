"""A `ParetoFront` as a picture: two objectives as a plane, more as parallel coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from metarank._util.html import escape
from metarank._util.svg import Plot, marker, ticks

if TYPE_CHECKING:
    from metarank.objectives.pareto import ParetoFront

# Colours by name: those of the page the picture stands on, if that defines them.
COLOURS = {
    "bg": "#fff", "fg": "#1c2430", "soft": "#5a6675", "rule": "#dfe4ea",
    "s0": "#0067a5", "s1": "#c8501e", "s2": "#12805c", "s3": "#8e5ba6", "s4": "#a07400", "s5": "#4d5968",
}  # fmt: skip


def _paint(kind: str, name: str) -> str:
    """A declaration of colour; viewers that know no variables keep the first."""
    return f"{kind}:{COLOURS[name]};{kind}:var(--{name},{COLOURS[name]})"


_STYLE = "\n".join(
    [
        "<style>",
        f".pareto text{{font:12px system-ui,sans-serif;{_paint('fill', 'soft')}}}",
        f".pareto .label,.pareto .named{{{_paint('fill', 'fg')}}}",
        f".pareto .named{{font-weight:600;paint-order:stroke;{_paint('stroke', 'bg')};stroke-width:4px}}",
        f".pareto .page{{{_paint('fill', 'bg')}}}",
        f".pareto .axis{{{_paint('stroke', 'soft')}}}",
        f".pareto .grid{{{_paint('stroke', 'rule')}}}",
        f".pareto .front{{fill:none;{_paint('stroke', 'fg')};stroke-width:1.4;opacity:.65}}",
        f".pareto .ring{{fill:none;{_paint('stroke', 'fg')};stroke-width:1.8}}",
        f".pareto .single{{{_paint('stroke', 'fg')};stroke-width:2.2}}",
        ".pareto .path{fill:none;stroke-width:1.6}",
        *(
            f".pareto .mark.{s}{{{_paint('fill', s)}}}.pareto .path.{s}{{{_paint('stroke', s)}}}"
            for s in ("s0", "s1", "s2", "s3", "s4", "s5")
        ),
        ".pareto .path.knee{stroke-width:4}",
        f".pareto .path.alone{{{_paint('stroke', 'fg')};stroke-dasharray:5 4}}",
        ".pareto .dominated{opacity:.28}",
        "</style>",
    ]
)
METRIC = {"auc": "AUC", "ndcg@10": "nDCG@10"}
_CHARACTER = 6.9  # pixels, about
_LEGEND_ROWS, _LEGEND_ROW = 2, 18
_WIDTH, _HEIGHT = 720, 500


class _Panel(Plot):
    """A plot with room for the legend above the axes."""

    top = 22 + _LEGEND_ROWS * _LEGEND_ROW


def draw_front(front: ParetoFront) -> str:
    """One `<svg>` element, to be written to a file or put into an HTML page.

    Every mark shows its method, weights and metrics on hover.
    """
    plot = _plane(front) if len(front.objective_names) == 2 else _parallel(front)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pareto" viewBox="0 0 {plot.width} {plot.height}">'
        f'{_STYLE}<rect class="page" width="{plot.width}" height="{plot.height}"/>'
        f"{plot.render()}</svg>"
    )


def _plane(front: ParetoFront) -> Plot:
    """Two objectives: points, the front as a line through those that none dominates."""
    everything = np.vstack([front.points, front.alone_points])
    x, y = (_range(column) for column in everything.T)
    metric = METRIC[front.metric]
    first, second = front.objective_names
    title = f"{metric} of {first} and {second}"
    marks = ticks(*y, 8)
    left = 40 + round(_CHARACTER * max(len(_number(value)) for value in marks))
    plot = _Panel(title, f"{metric} of {first}", f"{metric} of {second}", x, y, _WIDTH, _HEIGHT, left=left)
    plot.y_axis(marks, _number)
    plot.x_axis(ticks(*x, 8), _number)
    at = np.array([[plot.px(a), plot.py(b)] for a, b in front.points])
    line = at[front.front_order()]
    plot.add(f'<polyline class="front" points="{_path(line)}"/>')
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
        plot.add(_cross(px, py, f"{name} alone: {_values(front, values)}"))
        labels.put(px, py, f"{name} alone")
    _legend(
        plot,
        methods,
        [("front", "the front"), ("single", "one objective alone"), *_faint(front)],
        lines=False,
    )
    return plot


def _parallel(front: ParetoFront) -> Plot:
    """More objectives: an axis each, a line a model; dominated ones are faint."""
    metric = METRIC[front.metric]
    n_objectives = len(front.objective_names)
    everything = np.vstack([front.points, front.alone_points])
    ranges = [_range(column) for column in everything.T]
    width = max(_WIDTH, 80 + 170 * n_objectives)
    plot = _Panel(
        f"{metric} of {', '.join(front.objective_names)}",
        f"{metric}, an axis an objective; a line a model",
        "",
        (0, n_objectives - 0.55),
        (0, 1),
        width,
        _HEIGHT,
        left=74,
        bottom=64,
    )

    def path(values: np.ndarray) -> np.ndarray:
        shares = [(v - low) / (high - low) for v, (low, high) in zip(values, ranges)]
        return np.array([[plot.px(k), plot.py(share)] for k, share in enumerate(shares)])

    methods = list(front.hypervolumes)
    for i in dominated_first(front):
        css = f"path s{methods.index(front.aggregation[i]) % 6}"
        css += " knee" if i == front.knee else "" if front.on_front[i] else " dominated"
        plot.add(_line(path(front.points[i]), css, _note(front, i)))
    for k, (name, (low, high)) in enumerate(zip(front.objective_names, ranges)):
        plot.segment(plot.px(k), plot.py(0), plot.px(k), plot.py(1), "axis")
        for value in ticks(low, high, 8):
            y = plot.py((value - low) / (high - low))
            plot.segment(plot.px(k) - 4, y, plot.px(k), y, "axis")
            plot.text(plot.px(k) - 7, y + 4, _number(value), "named", "end")
        plot.text(plot.px(k), plot.height - plot.bottom + 20, _short(name, 22), "named")
    for k, (name, values) in enumerate(zip(front.objective_names, front.alone_points)):
        at = path(values)
        plot.add(_line(at, "path alone", f"{name} alone: {_values(front, values)}"))
        # At the objective's own axis, opposite to its ticks; the line leaves downwards.
        room = (plot.px(k + 1) - 44 if k < n_objectives - 1 else plot.width - 12) - plot.px(k)
        text = f"{name} alone"
        text = text if _CHARACTER * len(text) <= room else "alone"
        plot.text(at[k, 0] + 8, at[k, 1] - 6, text, "named", "start")
    end = path(front.points[front.knee])[-1]
    plot.text(end[0] + 10, end[1] + 9, "knee", "named", "start")
    plot.text((plot.left + plot.width - plot.right) / 2, plot.height - 12, plot.x_label, "label")
    _legend(plot, methods, [("path alone", "one objective alone"), *_faint(front)], lines=True)
    return plot


class _Labels:
    """Puts texts beside their points, where they cover the least of what is drawn."""

    def __init__(self, plot: Plot, drawn: np.ndarray) -> None:
        self.plot, self.drawn = plot, drawn

    def put(self, px: float, py: float, text: str) -> None:
        width, height = _CHARACTER * len(text), 14.0
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


def _legend(plot: Plot, methods: Sequence[str], others: Sequence[tuple[str, str]], *, lines: bool) -> None:
    """Methods, then other marks by their class, in rows above the axes."""
    entries = [(f"path s{i % 6}" if lines else "mark", name) for i, name in enumerate(methods)]
    x, y = float(plot.left), 16.0
    for i, (css, name) in enumerate([*entries, *others]):
        width = 48 + _CHARACTER * len(name)
        if x + width > plot.width and x > plot.left:
            x, y = float(plot.left), y + _LEGEND_ROW
        if css == "mark":
            plot.add(marker(i, x + 12, y))
        elif css == "single":
            plot.add(_cross(x + 12, y, name))
        elif css:
            plot.add(_line(np.array([[x, y], [x + 24, y]]), css, name))
        plot.text(x + (30 if css else 0), y + 4, name, anchor="start")
        x += width


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


def _path(points: np.ndarray) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _line(points: np.ndarray, css: str, note: str) -> str:
    return f'<polyline class="{css}" points="{_path(points)}"><title>{escape(note)}</title></polyline>'


def _cross(x: float, y: float, note: str) -> str:
    arms = " ".join(f"M{x - d:.1f},{y - e:.1f}L{x + d:.1f},{y + e:.1f}" for d, e in ((5, 5), (5, -5)))
    return f'<path class="single" d="{arms}"><title>{escape(note)}</title></path>'


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


def _number(value: float) -> str:
    return f"{value:g}"

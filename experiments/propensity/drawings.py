"""The figures, as SVG text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from borrowed import Figures
from simulation import JUDGED

sys.path.append(str(Path(__file__).parents[1]))

from svg_panels import Plot, count, marker, nice_top, side_by_side, ticks

from metarank.apps.report.charts import percent
from metarank.metrics.propensity import inv_propensity

_COLOURS = ("#0067a5", "#c8501e", "#12805c", "#8e5ba6", "#a8861b", "#4d5968")
_STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#5a6675}.label{fill:#1c2430}.axis{stroke:#5a6675}"
    ".grid{stroke:#dfe4ea}.line{fill:none;stroke-width:1.8}.diagonal{stroke:#9aa5b1;stroke-dasharray:4 3}"
    + "".join(f".line.s{i}{{stroke:{c}}}.mark.s{i},.fill.s{i}{{fill:{c}}}" for i, c in enumerate(_COLOURS))
    + "</style>"
)
_LINE_HEIGHT = 16


@dataclass
class _Panel(Plot):
    """A plot with its heading and the names of its series above the axes."""

    left: int = 72  # room for "10.0 %" beside the name of the axis

    top: int = 28 + 2 * _LINE_HEIGHT

    def head(self, heading: str, names: Sequence[str]) -> None:
        self.text(self.left, 14, heading, "label", "start")
        width = (self.width - self.left - self.right) / max(1, min(3, len(names)))
        for i, name in enumerate(names):
            x, y = self.left + (i % 3) * width, 32 + (i // 3) * _LINE_HEIGHT
            self.add(marker(i, x + 4, y - 4))
            self.text(x + 14, y, name, anchor="start")


def simulation_figure(
    counts: np.ndarray, n_points: int, estimates: list[Figures], training: list[Figures], wrong: list[Figures]
) -> str:
    """The four panels of Fig. 3."""
    panels = [
        _curves(counts, n_points, estimates),
        _estimates(estimates),
        _training(estimates, training),
        _wrong(wrong),
    ]
    return side_by_side(panels, 2, _STYLE)


def contribution_figure(sets: Mapping[str, tuple[list[Figures], dict[str, np.ndarray]]], k: int = 5) -> str:
    """A panel of Fig. 4 a set: what labels add to PSP@k, by their frequency."""
    panels = []
    for name, (bins, systems) in sets.items():
        highest = max(float(values.max()) for values in systems.values())
        plot = _Panel(
            name, "training points of the label", f"part of PSP@{k}", (0, len(bins)), (0, nice_top(highest))
        )
        plot.head(name, list(systems))
        plot.y_axis(ticks(0, plot.y[1]), lambda v: percent(v, 1))
        width = 0.8 / len(systems)
        for i, (system, values) in enumerate(systems.items()):
            for at, b in enumerate(bins):
                start, value = at + 0.1 + i * width, float(values[b["bin"]])
                note = f"{system}, {span(b)} points: {percent(value, 2)}"
                plot.bar(start, start + 0.9 * width, value, f"fill s{i}", note)
        plot.x_names([at + 0.5 for at in range(len(bins))], [span(b) for b in bins])
        panels.append(plot)
    return side_by_side(panels, 2, _STYLE)


def span(b: Figures) -> str:
    """The training points of a bin's labels."""
    return f"{b['least']}" if b["least"] == b["most"] else f"{b['least']} to {b['most']:,}"


def _curves(counts: np.ndarray, n_points: int, estimates: list[Figures]) -> _Panel:
    top = float(counts.max())
    x = np.geomspace(1, top, 60)
    plot = _Panel(
        "Propensity curves", "points of the label (log scale)", "propensity", (0, np.log10(top)), (0, 1)
    )
    rows = _one_a_curve(estimates)
    plot.head("(a) curves: A, share of labels missing", [f"{_a(r)}: {percent(r['missing'])}" for r in rows])
    plot.y_axis(ticks(0, 1), lambda v: f"{v:g}")
    plot.x_axis([np.log10(m) for m in (1, 10, 100, 1000, 10_000) if m <= top], lambda v: count(10**v))
    for i, row in enumerate(rows):
        p = 1 / inv_propensity(x, *row["curve"], n_points=n_points)
        path = " ".join(f"{plot.px(a):.1f},{plot.py(b):.1f}" for a, b in zip(np.log10(x), p))
        plot.add(f'<polyline class="line s{i}" points="{path}"><title>{escape(_a(row))}</title></polyline>')
        plot.add(marker(i, plot.px(np.log10(x[-1])), plot.py(p[-1])))
    return plot


def _estimates(estimates: list[Figures]) -> _Panel:
    rows = [row for row in estimates if row["metric"] == JUDGED]
    series = {name: [row[name] for row in rows] for name in ("complete", "plain", "unbiased")}
    names = ("complete labels", "plain", "unbiased")
    return _lines(f"(b) {JUDGED} of FastXML, on what is left", [r["missing"] for r in rows], names, series)


def _training(estimates: list[Figures], training: list[Figures]) -> _Panel:
    missing = [row["missing"] for row in _one_a_curve(estimates)]
    series = {name: [float(np.mean(row[name])) for row in training] for name in ("FastXML", "PfastXML")}
    return _lines(f"(c) {JUDGED} on complete labels", missing, tuple(series), series)


def _lines(
    heading: str, xs: list[float], names: Sequence[str], series: Mapping[str, Sequence[float]]
) -> _Panel:
    lowest, highest = (f(v for ys in series.values() for v in ys) for f in (min, max))
    room = 0.1 * (highest - lowest)
    y = (lowest - room, highest + room)
    plot = _Panel(heading, "labels missing", JUDGED, (min(xs) - 0.03, max(xs) + 0.03), y)
    plot.head(heading, names)
    plot.y_axis(ticks(*plot.y), lambda v: percent(v, 1))
    plot.x_axis(ticks(*plot.x), percent)
    for i, (name, ys) in enumerate(zip(names, series.values())):
        plot.line(xs, ys, i, [f"{name}, {percent(x)} missing: {percent(v, 2)}" for x, v in zip(xs, ys)])
    return plot


def _wrong(rows: list[Figures]) -> _Panel:
    means = [float(np.mean(row[JUDGED])) for row in rows]
    none = means[0]
    room = 0.15 * (max(means) - min(means)) or 0.01
    x = (min(means) - room, max(means) + room)
    plot = _Panel("Wrong curves", f"{JUDGED} on complete labels", "", x, (len(rows), 0), left=170)
    plot.head("(d) propensities that PfastXML is trained with", [])
    plot.x_axis(ticks(*x), lambda v: percent(v, 1))
    plot.segment(plot.px(none), plot.top, plot.px(none), plot.height - plot.bottom, "diagonal")
    for i, (row, mean) in enumerate(zip(rows, means)):
        name = row["propensities"]
        plot.text(plot.left - 8, plot.py(i + 0.5) + 4, name, anchor="end")
        plot.add(marker(i < 2, plot.px(mean), plot.py(i + 0.5), f"{name}: {percent(mean, 2)}"))
    return plot


def _one_a_curve(estimates: list[Figures]) -> list[Figures]:
    return [row for row in estimates if row["metric"] == JUDGED]


def _a(row: Figures) -> str:
    return f"A = {row['curve'][0]:g}"

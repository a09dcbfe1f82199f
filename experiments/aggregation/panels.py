"""SVG figures: panels side by side, each a plot with its heading and the names of its series above it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from svg_panels import Plot, marker, side_by_side, ticks

__all__ = ["STYLE", "Panel", "lines", "side_by_side"]


_COLOURS = ("#0067a5", "#c8501e", "#12805c", "#8e5ba6", "#a8861b", "#4d5968")
STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#5a6675}.label{fill:#1c2430}.axis{stroke:#5a6675}"
    ".grid{stroke:#dfe4ea}.line{fill:none;stroke-width:1.8}.diagonal{stroke:#9aa5b1;stroke-dasharray:4 3}"
    ".node{fill:#fff;stroke:#1c2430}.arrow{stroke:#5a6675;stroke-width:1.6;marker-end:url(#head)}"
    ".arrow.decided{stroke:#c8501e}"
    + "".join(f".line.s{i}{{stroke:{c}}}.mark.s{i},.fill.s{i}{{fill:{c}}}" for i, c in enumerate(_COLOURS))
    + "</style><defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
    "orient='auto'><path d='M0 0L8 4L0 8z' fill='#5a6675'/></marker></defs>"
)


@dataclass
class Panel(Plot):
    """A plot with its heading and the names of its series above the axes."""

    width: int = 440
    height: int = 300
    left: int = 64

    top: int = 46

    def head(self, heading: str, names: Sequence[str] = ()) -> None:
        self.text(self.left, 14, heading, "label", "start")
        step = (self.width - self.left - self.right) / max(1, len(names))
        for i, name in enumerate(names):
            self.add(marker(i, self.left + i * step + 4, 28))
            self.text(self.left + i * step + 14, 32, name, anchor="start")


def plain(value: float) -> str:
    return f"{value:g}"


def lines(
    heading: str,
    x_label: str,
    y_label: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x_ticks: Sequence[float] | None = None,
    show_x: Callable[[float], str] = plain,
    show_y: Callable[[float], str] = plain,
    y: tuple[float, float] | None = None,
    errors: Mapping[str, Sequence[float]] | None = None,
) -> Panel:
    """One line a series; whiskers of one standard error where there are errors."""
    values = [v for ys in series.values() for v in ys]
    room = 0.08 * ((max(values) - min(values)) or 1.0)
    span = y or (min(values) - room, max(values) + room)
    wide = 0.04 * (max(xs) - min(xs))
    panel = Panel(heading, x_label, y_label, (min(xs) - wide, max(xs) + wide), span)
    panel.head(heading, list(series))
    panel.y_axis(ticks(*panel.y), show_y)
    panel.x_axis(x_ticks if x_ticks is not None else ticks(min(xs), max(xs)), show_x)
    for i, (name, ys) in enumerate(series.items()):
        for x, v, e in zip(xs, ys, (errors or {}).get(name, [])):
            panel.segment(panel.px(x), panel.py(v - e), panel.px(x), panel.py(v + e), f"line s{i}")
        panel.line(xs, ys, i, [f"{name}, {x_label} {show_x(x)}: {v:.4f}" for x, v in zip(xs, ys)])
    return panel

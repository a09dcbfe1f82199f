"""Figures as SVG text: panels side by side, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

COLOURS = ("#0067a5", "#c8501e", "#12805c", "#8e5ba6")
_MARKERS = ("o", "s", "^", "D")
# What draws one panel, on axes.
Panel = Callable[[Any], None]


def side_by_side(panels: Sequence[Panel], columns: int) -> str:
    """Panels in rows of `columns`, as one SVG document, the same bytes for the same panels."""
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "metarank"}):
        figure = Figure(figsize=(4.4 * columns, 3 * rows), layout="constrained")
        for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).flat, panels):
            panel(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def lines(
    heading: str,
    x_label: str,
    y_label: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x_base: int | None = None,
    errors: Mapping[str, Sequence[float]] | None = None,
) -> Panel:
    """One line a series; whiskers of one standard error where there are errors, a log scale of `x_base`."""

    def draw(axes: Any) -> None:
        for (name, ys), colour, mark in zip(series.items(), COLOURS, _MARKERS):
            axes.errorbar(xs, ys, yerr=(errors or {}).get(name), label=name, color=colour, marker=mark)
        axes.set(title=heading, xlabel=x_label, ylabel=y_label)
        if x_base is not None:
            axes.set_xscale("log", base=x_base)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

    return draw

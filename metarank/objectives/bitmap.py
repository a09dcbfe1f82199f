"""The picture of a `ParetoFront` by matplotlib (extra `plot`), for PNG and PDF."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np

from metarank._util.extra import require_extra
from metarank._util.svg import COLOURS
from metarank.objectives.front_drawing import METRIC, dominated_first

if TYPE_CHECKING:
    from metarank.objectives.pareto import ParetoFront

_MARKERS = "os^Dvp"
# No dates, so that the same front gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}}


def write_bitmap(front: ParetoFront, file: IO[bytes], kind: str) -> None:
    """Write what `draw_front` shows as `kind`, "png" or "pdf".

    Raises
    ------
    ImportError
        Where matplotlib is missing; the message names the extra.
    """
    require_extra("plot", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(7.2, 0.8 + 1.7 * len(front.objective_names)), 5.0), layout="constrained")
    FigureCanvasAgg(figure)  # not pyplot, whose figures and backend are the program's own
    axes = figure.add_subplot()
    draw_axes(front, axes)
    figure.legend(loc="outside upper left", ncols=4, frameon=False)
    figure.savefig(file, format=kind, dpi=150, metadata=_METADATA[kind])


def draw_axes(front: ParetoFront, axes: Any) -> None:
    """Draw what `draw_front` shows into the Axes of matplotlib."""
    (_plane if len(front.objective_names) == 2 else _parallel)(front, axes)


def _plane(front: ParetoFront, axes: Any) -> None:
    """Two objectives: points, the front as a line, the knee and each objective alone."""
    axes.plot(*front.points[front.front_order()].T, "-", color=COLOURS["fg"], alpha=0.65, label="the front")
    of, shown = np.array(front.aggregation), np.array(front.on_front)
    for i, method in enumerate(front.hypervolumes):
        style = {"marker": _MARKERS[i % 6], "linestyle": "", "color": COLOURS[f"s{i % 6}"]}
        axes.plot(*front.points[(of == method) & shown].T, **style, label=method)
        axes.plot(*front.points[(of == method) & ~shown].T, **style, alpha=0.28)
    knee = front.points[front.knee]
    axes.plot(*knee, "o", markersize=13, fillstyle="none", color=COLOURS["fg"])
    axes.plot(*front.alone_points.T, "x", color=COLOURS["fg"], label="one objective alone")
    middle = np.vstack([front.points, front.alone_points]).mean(axis=0)[0]
    named = [("knee", knee), *zip((f"{name} alone" for name in front.objective_names), front.alone_points)]
    for text, point in named:  # on the side away from the frame, and from the front where that falls
        left = point[0] > middle
        place = {"xytext": (-9, -16) if left else (9, 7), "textcoords": "offset points"}
        axes.annotate(text, point, **place, ha="right" if left else "left", weight="bold", parse_math=False)
    first, second = (f"{METRIC[front.metric]} of {name}" for name in front.objective_names)
    axes.set_xlabel(first, parse_math=False)
    axes.set_ylabel(second, parse_math=False)
    axes.margins(0.12)
    axes.grid(color=COLOURS["rule"])


def _parallel(front: ParetoFront, axes: Any) -> None:
    """More objectives: an axis each, a line a model; dominated ones are faint, the knee is broad."""
    everything = np.vstack([front.points, front.alone_points])
    low, width = everything.min(axis=0), np.ptp(everything, axis=0)
    share = (everything - low) / np.where(width > 0, width, 1)
    places, methods = np.arange(share.shape[1]), list(front.hypervolumes)
    named: set[str] = set()
    for i in dominated_first(front):
        method = front.aggregation[i]
        broad = 4 if i == front.knee else 1.6
        label = None if method in named or not front.on_front[i] else method
        named |= {label} if label else set()
        colour = COLOURS[f"s{methods.index(method) % 6}"]
        alpha = 1 if front.on_front[i] else 0.28
        axes.plot(places, share[i], color=colour, linewidth=broad, alpha=alpha, label=label)
    for j, values in enumerate(share[len(front.points) :]):
        label = None if j else "one objective alone"
        axes.plot(places, values, "--", color=COLOURS["fg"], linewidth=1.6, label=label)
    for j in places:
        axes.axvline(j, color=COLOURS["soft"], linewidth=1)
        for value, y in ((low[j], 0), (low[j] + width[j], 1)):
            axes.annotate(f"{value:.4f}", (j, y), (-5, 4), textcoords="offset points", ha="right")
    axes.set_xticks(places, front.objective_names, parse_math=False)
    axes.set_yticks([])
    axes.set_frame_on(False)
    axes.set_xlabel(f"{METRIC[front.metric]}, an axis an objective; a line a model; the knee is broad")
    axes.set_xlim(-0.5, len(places) - 0.5)

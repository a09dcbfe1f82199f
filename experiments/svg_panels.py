"""Panels of figures as SVG text, for the studies whose pages hold them.

A `Plot` maps data to the pixels of one chart and collects its marks. Every mark carries its
numbers as a `<title>`, which browsers show on hover and screen readers read out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from metarank.apps.report import charts
from metarank.apps.report.charts import DASHES, series_class

# Colours by name: those of the page the picture stands on, if that defines them.
COLOURS = {"bg": "#fff", "fg": "#1c2430", "soft": "#5a6675", "rule": "#dfe4ea"} | {
    f"s{i}": colour for i, colour in enumerate(charts.COLOURS)
}
CHARACTER = 6.9  # pixels of a letter, about
LEGEND_ROW = 18

# Series are told apart by colour, dash and marker, so that no single one of them is needed.
MARKERS = ("circle", "square", "triangle", "diamond", "circle", "square")


def count(value: float) -> str:
    """A number of things, with commas.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers from `low` to `high`, steps of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> ticks(0, 0.87)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    >>> ticks(0, 0)
    [0.0]
    """
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [float(low)]
    raw = span / max(n, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def nice_top(value: float) -> float:
    """The axis end for data up to `value`: the next tick, at least a tenth, at most 1 for fractions."""
    if not value > 0:
        return 1.0
    step = ticks(0, value)[1] if len(ticks(0, value)) > 1 else value
    top = math.ceil(value / step - 1e-9) * step
    return min(top, 1.0) if value <= 1 else top


@dataclass
class Plot:
    """One chart of `width` x `height` pixels; data ranges `x` and `y`.

    Parameters
    ----------
    title : str
        What one sees, read out by screen readers; the page shows it above.
    x_label, y_label : str
    x, y : (low, high)
    left : int
        Pixels for the labels of the y axis.
    """

    title: str
    x_label: str
    y_label: str
    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 520
    height: int = 300
    left: int = 56
    bottom: int = 46
    top: int = 12
    _marks: list[str] = field(default_factory=list)

    right = 22

    def px(self, x: float) -> float:
        """Pixel column of a data value."""
        low, high = self.x
        return self.left + (x - low) / ((high - low) or 1) * (self.width - self.left - self.right)

    def py(self, y: float) -> float:
        """Pixel row of a data value."""
        low, high = self.y
        return (
            self.height
            - self.bottom
            - (y - low) / ((high - low) or 1) * (self.height - self.top - self.bottom)
        )

    def add(self, mark: str) -> None:
        """Any SVG element."""
        self._marks.append(mark)

    def text(self, px: float, py: float, text: str, css: str = "tick", anchor: str = "middle") -> None:
        """Text at pixels."""
        self.add(
            f'<text class="{css}" x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def segment(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        """A straight line between two points in pixels."""
        self.add(f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def x_axis(self, values: Sequence[float], show: Callable[[float], str]) -> None:
        """The horizontal axis with its ticks and label."""
        foot = self.height - self.bottom
        self.segment(self.left, foot, self.width - self.right, foot, "axis")
        for v in values:
            self.segment(self.px(v), foot, self.px(v), foot + 4, "axis")
            self.text(self.px(v), foot + 17, show(v))
        self._x_title()

    def x_names(self, centres: Sequence[float], names: Sequence[str]) -> None:
        """The horizontal axis of categories."""
        foot = self.height - self.bottom
        self.segment(self.left, foot, self.width - self.right, foot, "axis")
        rows = self.rows_of_names(names)
        for i, (c, name) in enumerate(zip(centres, names)):
            self.text(self.px(c), foot + 17 + 14 * (i % rows), name)
        self._x_title()

    def rows_of_names(self, names: Sequence[str]) -> int:
        """Rows in which the names below the axis stand, so that none covers its neighbour."""
        room = (self.width - self.left - self.right) / max(len(names), 1)
        return 1 + (CHARACTER * max(map(len, names), default=0) + 4 > room)

    def _x_title(self) -> None:
        # Below the middle of the axis, as far as larger letters, those of a telephone, have room there.
        half = 0.6 * CHARACTER * len(self.x_label)
        middle = min((self.left + self.width - self.right) / 2, self.width - half)
        self.text(middle, self.height - 8, self.x_label, "label")

    def y_axis(self, values: Sequence[float], show: Callable[[float], str]) -> None:
        """Grid lines with their values, and the label."""
        for v in values:
            self.segment(self.left, self.py(v), self.width - self.right, self.py(v), "grid")
            self.text(self.left - 8, self.py(v) + 4, show(v), anchor="end")
        middle = (self.top + self.height - self.bottom) / 2
        self.add(
            f'<text class="label" transform="translate(14 {middle:.1f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y_label)}</text>'
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], series: int, notes: Sequence[str]) -> None:
        """A line with a marker and a note at each point; points with NaN are left out."""
        points = [(self.px(x), self.py(y), note) for x, y, note in zip(xs, ys, notes) if not math.isnan(y)]
        dash = DASHES[series % len(DASHES)]
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(polyline([point[:2] for point in points], f"line {series_class(series)}", style=style))
        for x, y, note in points:
            self.add(marker(series, x, y, note))

    def bar(self, x0: float, x1: float, y: float, css: str, note: str) -> None:
        """A vertical bar from the foot to y, between two data columns."""
        if math.isnan(y):
            return
        a, b, t = self.px(x0), self.px(x1), self.py(y)
        h = max(0.0, self.py(self.y[0]) - t)
        self.add(
            f'<rect class="{css}" x="{a:.1f}" y="{t:.1f}" width="{max(0.5, b - a):.1f}" height="{h:.1f}">'
            f"{_titled(note)}</rect>"
        )

    def legend(self, entries: Sequence[tuple[str, str]]) -> None:
        """Marks by their classes, each with its name, in rows above the axes: for that `top` leaves room.

        The class "mark" is the marker of the series with the number of the entry, "single" a cross, "" no
        mark, any other a line.
        """
        x, y = float(self.left), 16.0
        for i, (css, name) in enumerate(entries):
            width = 48 + CHARACTER * len(name)
            if x + width > self.width and x > self.left:
                x, y = float(self.left), y + LEGEND_ROW
            if css == "mark":
                self.add(marker(i, x + 12, y))
            elif css == "single":
                self.add(cross(x + 12, y, name))
            elif css:
                self.add(polyline([(x, y), (x + 24, y)], css))
            self.text(x + (30 if css else 0), y + 4, name, anchor="start")
            x += width

    def render(self) -> str:
        """The `<svg>` element."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(self.title)}">'
            + "".join(self._marks)
            + "</svg>"
        )


def marker(series: int, x: float, y: float, note: str = "") -> str:
    """The marker of a series at pixels."""
    css, kind = f"mark {series_class(series)}", MARKERS[series % len(MARKERS)]
    title = _titled(note)
    if kind == "circle":
        return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="3.4">{title}</circle>'
    if kind == "square":
        return f'<rect class="{css}" x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6">{title}</rect>'
    r = 4.2
    corners = {
        "triangle": ((0, -r), (r, r * 0.8), (-r, r * 0.8)),
        "diamond": ((0, -r), (r, 0), (0, r), (-r, 0)),
    }[kind]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{css}" points="{points}">{title}</polygon>'


def polyline(points: Iterable[Sequence[float]], css: str, note: str = "", style: str = "") -> str:
    """A line through pixels."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    start = f'<polyline class="{css}" points="{path}"{style}'
    return f"{start}>{_titled(note)}</polyline>" if note else f"{start}/>"


def cross(x: float, y: float, note: str) -> str:
    """A cross at pixels, of class "single"."""
    arms = " ".join(f"M{x - d:.1f},{y - e:.1f}L{x + d:.1f},{y + e:.1f}" for d, e in ((5, 5), (5, -5)))
    return f'<path class="single" d="{arms}">{_titled(note)}</path>'


def _titled(note: str) -> str:
    return f"<title>{escape(note)}</title>" if note else ""


def paint(kind: str, name: str) -> str:
    """A declaration of colour; viewers that know no variables keep the first."""
    return f"{kind}:{COLOURS[name]};{kind}:var(--{name},{COLOURS[name]})"


def style_of(css: str, rules: Mapping[str, str]) -> str:
    """The <style> of a picture of class `css`: of its texts and axes, and further rules by selector."""
    common = {
        "text": f"font:12px system-ui,sans-serif;{paint('fill', 'soft')}",
        ".label": paint("fill", "fg"),
        ".axis": paint("stroke", "soft"),
        ".grid": paint("stroke", "rule"),
    }
    lines = [f".{css} {selector}{{{rule}}}" for selector, rule in (common | dict(rules)).items()]
    return "\n".join(["<style>", *lines, "</style>"])


def side_by_side(panels: Sequence[Plot], columns: int, style: str, css: str = "") -> str:
    """Charts in rows of `columns`, as one SVG document of class `css`; `style` is its <style> element."""
    width, height = max(p.width for p in panels), max(p.height for p in panels)
    n_rows = -(-len(panels) // columns)
    placed = "".join(
        f'<svg x="{(i % columns) * width}" y="{(i // columns) * height}" width="{p.width}" '
        f'height="{p.height}">{p.render()}</svg>'
        for i, p in enumerate(panels)
    )
    named = f' class="{css}"' if css else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{named} '
        f'viewBox="0 0 {min(columns, len(panels)) * width} {n_rows * height}">{style}{placed}</svg>\n'
    )

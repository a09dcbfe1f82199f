"""Where the marks of the report's charts stand; the page's template draws them as SVG.

Every mark carries its numbers as a `<title>`, which browsers show on hover and screen readers read out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# The colours of series, as the page's style has them in the light; what comes after them is grey.
COLOURS = ("#0067a5", "#c8501e", "#12805c", "#8e5ba6", "#a07400", "#4d5968",
           "#c2417f", "#00899b", "#7a4527", "#6b8a00", "#4543c4")  # fmt: skip
# Lines are told apart by dash as well as by colour.
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "1 5")
# Pixels: a telephone shows them at three quarters of their size.
LEFT, RIGHT, TOP, FOOT = 68, 398, 12, 254
WIDTH, HEIGHT = 420, 312
_CHARACTER = 8.9  # pixels of a digit in the type for telephones, about


def series_class(i: int) -> str:
    """The class of the i-th series: no two have one colour, beyond the last colour all are grey."""
    return f"s{i}" if i < len(COLOURS) else "rest"


def percent(value: float, digits: int = 0) -> str:
    """A fraction as a person reads it: "42 %"; "–" for NaN.

    Examples
    --------
    >>> percent(0.4167), percent(0.4167, 1), percent(float("nan"))
    ('42 %', '41.7 %', '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def ticks(top: float, n: int = 5) -> list[float]:
    """At most n + 1 round numbers from 0 to `top`, steps of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> ticks(0.87)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    power = 10.0 ** math.floor(math.log10(top / n))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= top / n * 0.999)
    return [round(i * step, 12) for i in range(math.floor(top / step + 1e-9) + 1)]


def line_chart(
    x_label: str,
    y_label: str,
    x_ticks: Mapping[float, str],
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    counts: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Fractions over numbers, in pixels: names of ticks with where they stand, and for each series the marks
    of its line; NaN is left out.

    `counts` are of shares that forecasts of `xs` came to: marks grow with them, and a diagonal shows where
    forecasts are exact.
    """
    low, high = min(x_ticks), max(x_ticks)
    largest = max((y for ys in series.values() for y in ys if y > 0), default=1.0)
    step = ticks(largest)[1]
    top = 1.0 if counts is not None else min(1.0, math.ceil(largest / step - 1e-9) * step)

    def px(x: float) -> float:
        return LEFT + (x - low) / ((high - low) or 1) * (RIGHT - LEFT)

    def py(y: float) -> float:
        return FOOT - y / top * (FOOT - TOP)

    radii = np.full(len(xs), 3.4) if counts is None else 2.5 + np.log10(1 + np.asarray(counts))
    sizes = [""] * len(xs) if counts is None else [f", {count:,} pairs" for count in counts]
    lines = [
        [
            (px(x), py(y), radius, f"{name}, {x_ticks.get(x) or percent(x, 1)}: {percent(y, 1)}{size}")
            for x, y, radius, size in zip(xs, ys, radii.tolist(), sizes)
            if not math.isnan(y)
        ]
        for name, ys in series.items()
    ]
    # Names stay inside the chart; if two of them would touch, they alternate between two rows.
    halves = [_CHARACTER * len(name) / 2 for name in x_ticks.values()]
    at = [min(px(x), WIDTH - half) for x, half in zip(x_ticks, halves)]
    rows = 1 + any(at[i] + halves[i] + 4 > at[i + 1] - halves[i + 1] for i in range(len(at) - 1))
    return {
        "x_label": x_label,
        "y_label": y_label,
        "x_ticks": [
            (x, FOOT + 20 + 15 * (i % rows), name) for i, (x, name) in enumerate(zip(at, x_ticks.values()))
        ],
        "y_ticks": [(py(y), percent(y)) for y in ticks(top)],
        "lines": lines,
        "has_diagonal": counts is not None,
    }

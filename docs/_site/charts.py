"""Charts of the tables on the pages of experiments, and the look that all charts of the documentation share.

A chart names its numbers in its description, so that a test sees whether the page has changed since.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
# Colours that differ for all eyes and on light and dark ground, and a mark for those who see none.
COLOURS = ["#d55e00", "#009e73", "#0080c8", "#cc79a7", "#b8860b", "#7f7f7f", "#56b4e9"]
MARKS = "*DosPv^"
# Stands for the colour of the text around a chart.
INK = "#010203"
STYLE = "<style>svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"


class Asked(NamedTuple):
    page: str
    headings: list[str]
    rows: dict[str, str]  # what to show of each name in the first column
    x: str
    y: str


SETS = ["LLMs4Subjects-dev-en", "CiteULike-t-tags", "Wikispeedia-Links", "LastFM-ArtistTags"]
SYSTEMS = {
    "metarank": "metarank",
    "metarank, no label names": "metarank, no label names",
    "Parabel": "Parabel of metarank",
    "PECOS, 3 trees": "PECOS, 3 trees",
    "PECOS, one-vs-all": "PECOS, one-vs-all",
    "omikuji, 3 trees": "omikuji, 3 trees",
}
COOKING = "cooking_stackexchange-titles"
MEANING = {
    "metarank, MiniLM": "metarank, MiniLM",
    "metarank": "metarank",
    "LinearSVC of words and letters": "LinearSVC",
    "MiniLM, logistic regression": "MiniLM, logistic regression",
}
CHARTS = {
    "ndcg-time": Asked("thousands.md", SETS, SYSTEMS, "train s", "nDCG@5"),
    "meaning": Asked("meaning.md", [f"{COOKING}-300", f"{COOKING}-3000"], MEANING, "fit s", "nDCG@5"),
}
UNITS = {"train s": "CPU seconds of training", "fit s": "CPU seconds of fit"}


def tables(text: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """(heading, rows) of each table of a page."""
    heading, rows, columns = "", [], None
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if columns is None:
                columns = cells
            elif not all(cell and not cell.strip("-:") for cell in cells):
                rows.append(dict(zip(columns, cells)))
        else:
            if columns is not None:
                yield heading, rows
                rows, columns = [], None
            heading = line.lstrip("# ") if line.startswith("#") else heading


def points(asked: Asked, heading: str) -> dict[str, tuple[float, float]]:
    """The points of the table under a heading, by the name to show.

    Raises
    ------
    ValueError
        If the page has no such table, or the table not all rows.
    """
    for under, rows in tables((EXPERIMENTS / asked.page).read_text(encoding="utf-8")):
        if under == heading and rows and {asked.x, asked.y} <= set(rows[0]):
            by_name = {next(iter(row.values())): row for row in rows}
            if set(asked.rows) <= set(by_name):
                return {
                    shown: (number(by_name[name][asked.x]), number(by_name[name][asked.y]))
                    for name, shown in asked.rows.items()
                }
    raise ValueError(
        f"{asked.page} has no table under {heading!r} with {asked.x}, {asked.y}, {[*asked.rows]}"
    )


def number(cell: str) -> float:
    """ "0.286 (0.285)", "~0.3" and "**0.8**" are their first number."""
    return float(re.sub(r"[*,~]", "", cell).split(" ")[0])


def described(asked: Asked) -> str:
    """All that a chart shows, in words."""
    parts = [
        f"{heading}: "
        + "; ".join(f"{shown} {x:g}, {y:g}" for shown, (x, y) in points(asked, heading).items())
        for heading in asked.headings
    ]
    return f"{asked.y} against {UNITS[asked.x]}, from {asked.page}. " + ". ".join(parts)


def scatter(asked: Asked) -> str:
    """The chart as SVG: a panel for each heading, one key for all."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    n = len(asked.headings)
    figure, panels = subplots(asked.page + asked.x, 2 * -(-n // 2), n)
    for axes, heading in zip(panels, asked.headings):
        axes.set_xscale("log")
        for (shown, (x, y)), colour, mark in zip(points(asked, heading).items(), COLOURS, MARKS):
            size = 11 if mark == "*" else 7
            axes.plot(x, y, mark, color=colour, markersize=size, label=shown, linestyle="")
        axes.margins(0.12)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        low, high = axes.get_xlim()
        if high / low < 30:
            axes.set_xticks([v * 10**e for e in range(-4, 5) for v in (1, 2, 5) if low <= v * 10**e <= high])
        axes.set_title(heading, fontsize=9)
        axes.set_xlabel(UNITS[asked.x])
        axes.set_ylabel(asked.y)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return written(figure, described(asked))


def subplots(salt: str, n_places: int, n: int) -> tuple[Any, list[Any]]:
    """A figure with n panels in two columns (one, for one), in the colour of the text around it."""
    import matplotlib
    from matplotlib.figure import Figure

    inked = dict.fromkeys(
        ("text.color", "xtick.color", "ytick.color", "axes.labelcolor", "axes.edgecolor"), INK
    )
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 9, **inked})
    n_columns = min(2, n)
    n_lines = max(1, n_places // 2)
    figure = Figure(figsize=(3.3 * n_columns if n > 1 else 4.6, 2.4 * n_lines + 0.6), layout="constrained")
    panels = [figure.add_subplot(n_lines, n_columns, i + 1) for i in range(n)]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.patch.set_visible(False)
        axes.grid(alpha=0.15, color=INK)
        axes.set_axisbelow(True)
    return figure, panels


def written(figure: Any, title: str) -> str:
    """A figure of matplotlib as SVG, which takes the reader's light or dark."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    # A font that every machine has, in place of the one that the drawing was measured with.
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font: \1 system-ui, sans-serif", text)
    # Coordinates to a hundredth, which no eye sees.
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", text)
    head, _, body = text.partition(">")
    return f"{head}>\n<title>{html.escape(title)}</title>{STYLE}{body}"

"""Charts that a page takes from the pages of experiments when the site is built.

A comment on a line of its own asks for one:

    <!-- scatter page="..." headings="a, b" rows="..." x="train s" y="nDCG@5" -->

`rows` are names in the first column, each with the name to show before "=". What the page does not have is an
error, but for rows that some of several headings lack. Tables of pages are excerpts, which stand in the text.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
ASKED = re.compile(r"^<!-- scatter (.+?) -->$", re.MULTILINE)
# Colours that differ for all eyes and on light and dark ground, and a mark for those who see none.
COLOURS = ["#d55e00", "#009e73", "#0080c8", "#cc79a7", "#b8860b", "#7f7f7f", "#56b4e9"]
MARKS = {"*": "★", "D": "◆", "o": "●", "s": "■", "^": "▲", "v": "▼", "P": "✚"}
# Stands for the colour of the text around a chart.
INK = "#010203"


class Asked(NamedTuple):
    page: str
    headings: list[str]
    rows: dict[str, str]  # what to show of each name in the first column
    x: str
    y: str


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


def read(comment: re.Match[str]) -> Asked:
    given = dict(re.findall(r'(\w+)="([^"]*)"', comment[1]))
    listed = {
        name: [part.strip() for part in given.get(name, "").split(",") if part.strip()] for name in given
    }
    rows = {}
    for entry in re.split(r";\s*", given["rows"]):
        shown, _, name = entry.partition("=")
        rows[name or shown] = shown
    return Asked(given["page"], listed["headings"], rows, given["x"], given["y"])


Rows = list[tuple[str, dict[str, str]]]
Look = dict[str, tuple[str, str]]  # colour and mark of each row


def found(asked: Asked, heading: str) -> Rows:
    """The rows that are asked for of the table under a heading, each with the name to show."""
    wanted = [asked.x, asked.y]
    for under, rows in tables((EXPERIMENTS / asked.page).read_text(encoding="utf-8")):
        if under == heading and rows and set(wanted) <= set(rows[0]):
            there = [
                (shown, row)
                for name, shown in asked.rows.items()
                for row in rows
                if next(iter(row.values())) == name
            ]
            if there:
                return there
    raise ValueError(
        f"{asked.page} has no table under {heading!r} with {wanted} and one of {list(asked.rows)}"
    )


def number(cell: str) -> float:
    """ "0.286 (0.285)", "~0.3" and "**0.8**" are their first number."""
    return float(re.sub(r"[*,~]", "", cell).split(" ")[0])


def drawn(text: str) -> str:
    """A page with what its comments ask for in their places."""
    return ASKED.sub(lambda match: made(read(match)), text)


def made(asked: Asked) -> str:
    rows = {heading: found(asked, heading) for heading in asked.headings}
    missing = set(asked.rows.values()) - {shown for there in rows.values() for shown, _ in there}
    if missing:
        raise ValueError(f"{asked.page} has no rows for {sorted(missing)} under {asked.headings}")
    return chart(asked, rows)


def chart(asked: Asked, rows: dict[str, Rows]) -> str:
    """A small drawing for each heading, which stand beside each other as far as there is room."""
    look = dict(zip(asked.rows.values(), zip(COLOURS, MARKS)))
    drawings = {heading: scatter(asked, heading, there, look) for heading, there in rows.items()}
    panels = "".join(
        f"<figure>{drawing}<figcaption>{html.escape(heading)}</figcaption></figure>"
        for heading, drawing in drawings.items()
    )
    key = " ".join(
        f'<span><span style="color:{colour}">{MARKS[mark]}</span> {html.escape(shown)}</span>'
        for shown, (colour, mark) in look.items()
    )
    source = f"From [{asked.page}](../experiments/{asked.page}).\n{{ .source }}"
    return f'<div class="chart"><p class="key">{key}</p>{panels}</div>\n\n{source}'


def panel(title: str):
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": title,
            "font.size": 9,
            **{
                f"{part}.color": INK for part in ("text", "xtick", "ytick")
            },
            "axes.labelcolor": INK,
            "axes.edgecolor": INK,
        }
    )  # fmt: skip
    figure = Figure(figsize=(3.4, 2.5), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.patch.set_visible(False)
    axes.grid(alpha=0.15, color=INK)
    axes.set_axisbelow(True)
    return figure, axes


def written(figure, described: str) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor").replace("\n", " ")
    # A font that the site has, in place of the one that the drawing was measured with.
    text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(described)}" ', 1)


def scatter(asked: Asked, heading: str, rows: Rows, look: Look) -> str:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = panel(f"{asked.page} {heading} {asked.x} {asked.y}")
    axes.set_xscale("log")
    told = []
    for shown, row in rows:
        x, y = number(row[asked.x]), number(row[asked.y])
        colour, mark = look[shown]
        axes.plot(x, y, mark, color=colour, markersize=11 if mark == "*" else 7)
        told.append(f"{shown} {x:g}, {y:g}")
    axes.margins(0.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = axes.get_xlim()
    if high / low > 30:
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xticks([v * 10**e for e in range(-4, 5) for v in (1, 2, 5) if low <= v * 10**e <= high])
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(asked.x)
    axes.set_ylabel(asked.y)
    return written(figure, f"{heading}: {asked.x} and {asked.y}: " + "; ".join(told))

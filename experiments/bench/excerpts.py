"""Tables of pages in README.md and docs/: each stands between comments, the first of which says what it is.

    <!-- excerpt: small_sets.md | In short | MAP, micro-F1 -->
    ...
    <!-- end of excerpt -->

is the first table under a heading of a page, with its unnamed columns and those that are named; "*" stands
for all columns. `In short; Times` takes the tables under several headings one below the other. A fourth part,
`| metarank; omikuji`, takes some rows alone, by their first cells.
"""

from __future__ import annotations

import re
from pathlib import Path

import page_parts

BLOCK = re.compile(r"(<!-- excerpt: (.+?) -->\n).*?(<!-- end of excerpt -->)", re.DOTALL)


def filled(text: str, folder: Path) -> str:
    """A document with its excerpts as the pages in a folder have them now.

    Raises
    ------
    ValueError
        If a page has no such heading or column.
    """

    def block(match: re.Match[str]) -> str:
        page, headings, columns, *rows = (part.strip() for part in match[2].split("|"))
        text = (folder / page).read_text()
        wanted = [name.strip() for name in columns.split(",")]
        only = [name.strip() for name in rows[0].split(";")] if rows else None
        found = {name.strip(): excerpt(text, name.strip(), wanted, only) for name in headings.split(";")}
        (head, *told), *_ = found.values()
        if len(found) > 1:
            head = ["set", *head]
            told = [
                [name if i == 0 else "", *row]
                for name, (_, *rows) in found.items()
                for i, row in enumerate(rows)
            ]
        return f"{match[1]}\n{page_parts.table(head, told)}\n\n{match[3]}"

    return BLOCK.sub(block, text)


def excerpt(page: str, heading: str, columns: list[str], only: list[str] | None = None) -> list[list[str]]:
    """The head and the rows of the first table under a heading, some columns and rows of it."""
    _, found, rest = page.partition(f"\n## {heading}\n")
    below = rest.partition("\n## ")[0].partition("\n|")
    lines = (below[1] + below[2]).strip().partition("\n\n")[0].splitlines()
    if not found or not lines:
        raise ValueError(f"the page has no table under {heading!r}")
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    columns = head if columns == ["*"] else columns
    if missing := set(columns) - set(head):
        raise ValueError(f"the table under {heading!r} has no column {', '.join(sorted(missing))}")
    kept = [i for i, name in enumerate(head) if name in columns or i == 0 or not name]
    if missing := set(only or ()) - {row[0] for row in rows}:
        raise ValueError(f"the table under {heading!r} has no row {', '.join(sorted(missing))}")
    chosen = rows if only is None else [row for name in only for row in rows if row[0] == name]
    return [[row[i] for i in kept] for row in (head, *chosen)]

"""Tables of pages in README.md and docs/: each stands between comments, the first of which says what it is.

    <!-- excerpt: small_sets.md | In short | MAP, micro-F1 -->
    ...
    <!-- end of excerpt -->

is the first table under a heading of a page, with its unnamed columns and those that are named.
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
        page, heading, columns = (part.strip() for part in match[2].split("|"))
        found = excerpt((folder / page).read_text(), heading, [name.strip() for name in columns.split(",")])
        return f"{match[1]}\n{found}\n\n{match[3]}"

    return BLOCK.sub(block, text)


def excerpt(page: str, heading: str, columns: list[str]) -> str:
    """Some columns of the first table under a heading."""
    _, found, rest = page.partition(f"\n## {heading}\n")
    below = rest.partition("\n## ")[0].partition("\n|")
    lines = (below[1] + below[2]).strip().partition("\n\n")[0].splitlines()
    if not found or not lines:
        raise ValueError(f"the page has no table under {heading!r}")
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    if missing := set(columns) - set(head):
        raise ValueError(f"the table under {heading!r} has no column {', '.join(sorted(missing))}")
    kept = [i for i, name in enumerate(head) if name in columns or i == 0 or not name]
    return page_parts.table([head[i] for i in kept], ([row[i] for i in kept] for row in rows))

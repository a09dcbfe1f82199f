"""What a notebook shows of a result: small HTML of what its text says."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from metarank._util.printable import printable

_CELL = "text-align:left;vertical-align:top;padding:2px 10px"


def preformatted(text: str) -> str:
    """A page of text as it is.

    Examples
    --------
    >>> preformatted("a < b")
    '<pre style="line-height:1.3">a &lt; b</pre>'
    """
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Rows under a head, with a line of text below.

    Examples
    --------
    >>> "<td" in table(["row"], [["<b>"]]), "<b>" in table(["row"], [["<b>"]])
    (True, False)
    """
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    note = f"<p>{escape(caption)}</p>" if caption else ""
    return f"<div><table>{''.join(lines)}</table>{note}</div>"


def _row(tag: str, cells: Sequence[Any]) -> str:
    inner = "".join(f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def escape(text: str) -> str:
    r"""Text within markup, of HTML or SVG: nothing is taken for it, and no character is one that XML bars.

    Examples
    --------
    >>> escape("a < b\x1b")
    'a &lt; b\\u001b'
    """
    return html.escape(printable(text, keep="\n"))

"""Text for a terminal, of which none is obeyed, and small HTML for notebooks; tables in both."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

# Control characters, line and paragraph separators, what turns the direction of text, and halves of pairs.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CELL = "text-align:left;vertical-align:top;padding:2px 10px"


def printable(text: str, keep: str = "") -> str:
    r"""The text, with `\u....` in the place of each character that a terminal would obey rather than show.

    Line ends and tabs are among them, unless they are in `keep`. Within JSON the text means the same.

    Examples
    --------
    >>> printable("a\x1b[31m b\n")
    'a\\u001b[31m b\\u000a'
    >>> printable("größer\n", keep="\n")
    'größer\n'
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}", text)


def first_few(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, for a message.

    Examples
    --------
    >>> first_few(["sea", "sun", "salt", "sand", "shell"])
    "'sea', 'sun', 'salt' and 2 more"
    """
    shown = ", ".join(f"{name!r:.60}" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def ordinal(n: int) -> str:
    """A place as it is read.

    Examples
    --------
    >>> [ordinal(n) for n in (1, 2, 3, 11, 1022)]
    ['1st', '2nd', '3rd', '11th', '1,022nd']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def plain_table(head: Sequence[Any], rows: Sequence[Sequence[Any]], *, rule: bool = False) -> str:
    """Columns under a head, two blanks between: the first left, the others right; `rule` draws a line below.

    Examples
    --------
    >>> print(plain_table(["metric", "value"], [["AUC", 0.75]], rule=True))
    metric  value
    ------  -----
    AUC      0.75
    """
    cells = [[printable(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    if rule:
        cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
        for row in cells
    )


def preformatted(text: str) -> str:
    """A page of text as it is, in HTML.

    Examples
    --------
    >>> preformatted("a < b")
    '<pre style="line-height:1.3">a &lt; b</pre>'
    """
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


def html_table(head: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Rows under a head, with a line of text below, in HTML.

    Examples
    --------
    >>> "<td" in html_table(["row"], [["<b>"]]), "<b>" in html_table(["row"], [["<b>"]])
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

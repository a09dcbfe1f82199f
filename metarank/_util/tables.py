"""Tables for a terminal, and for pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metarank._util.printable import printable


def frame_of(columns: dict[str, Any]) -> Any:
    """A pandas.DataFrame of columns by name, or the dict itself where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return columns
    return pd.DataFrame(columns)


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

"""Excel files (`.xlsx`), by openpyxl: the first sheet as a table, whose first row names the columns."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from metarank._util.extra import require_extra
from metarank._util.json import first_repeated


def read_xlsx(raw: bytes) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of the first sheet by name, and the line of each row; rows without a value are not rows,
    formulas have the values that were last computed.

    Raises
    ------
    ValueError
        If a column with values has no name, or two have one.
    """
    require_extra("data", "openpyxl")
    from openpyxl import load_workbook

    sheet = load_workbook(io.BytesIO(raw), read_only=True, data_only=True).worksheets[0]
    rows = [(line, row) for line, row in enumerate(sheet.iter_rows(values_only=True), 1) if any(_held(row))]
    header = ["" if cell is None else str(cell).strip() for cell in rows[0][1]] if rows else []
    if (twice := first_repeated(filter(None, header))) is not None:
        raise ValueError(f"columns must have distinct names, got {twice!r} twice in the header")
    columns = dict(zip(header, map(list, zip(*(row for _, row in rows[1:])))))
    if any(_held(columns.pop("", ()))):
        raise ValueError("columns must have names in the first row of the sheet, one with values has none")
    return columns or {name: [] for name in filter(None, header)}, [line for line, _ in rows[1:]]


def _held(cells: Iterable[Any]) -> list[bool]:
    return [cell is not None and cell != "" for cell in cells]

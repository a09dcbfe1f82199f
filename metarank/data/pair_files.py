"""Long tables of pairs: CSV, TSV, JSON lines and Parquet with the columns row, label, score and source."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from metarank.data.tables import listed, read_file
from metarank.types.given import LABEL, ROW, SCORE, SOURCE, PairTable


def read_candidates(path: str | os.PathLike[str]) -> PairTable:
    """Scored pairs of a file, for `candidates=` and `pair_features=` of `MetaRanker`.

    Parameters
    ----------
    path : CSV, TSV, JSON lines or Parquet, plain or compressed
        Each line is a pair. Columns: row (its position in the data, from 0), label (id or name), score, and
        source, the name of what proposed the pair; without it, all pairs are of one source. The logger
        "metarank.data" names columns that are left out.

    Returns
    -------
    PairTable

    Raises
    ------
    ValueError
        If a column is missing, or a row is not an integer >= 0, a score no number, a label or source empty.
        The message names the file, the column and the line, or the row of Parquet.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "found.csv"
    >>> _ = path.write_text("row,label,source,score\\n0,tea,bm25,2.5\\n1,wine,bm25,0.5\\n")
    >>> pairs = read_candidates(path)
    >>> pairs.row, pairs.label, pairs.score
    (array([0, 1]), ['tea', 'wine'], array([2.5, 0.5]))
    """
    table = read_file(path)
    for name in (ROW, LABEL, SCORE):
        if name not in table.columns:
            raise ValueError(
                f"{path} must have the columns row, label and score, got {listed(table.columns)}"
            )
    table.left_out(name for name in table.columns if name not in (ROW, LABEL, SCORE, SOURCE))
    cells = {name: table.cells(name) for name in (ROW, LABEL, SCORE, SOURCE) if name in table.columns}
    read = {name: [_READ[name](cell) for cell in column] for name, column in cells.items()}
    for name, column in read.items():
        if (wrong := next((i for i, value in enumerate(column) if value is None), None)) is not None:
            where, rule = f"{path}, {table.where(wrong)}", _RULES.get(name, "not be empty")
            raise ValueError(f"{where}: {name} must {rule}, got {cells[name][wrong]!r:.80}")
    row, score = np.array(read[ROW], np.int64), np.array(read[SCORE], np.float64)
    return PairTable(row, read[LABEL], score, read.get(SOURCE), written=True)


def _position(cell: Any) -> int | None:
    text = str(cell).strip()
    is_place = not isinstance(cell, bool) and text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if is_place else None


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _label(cell: Any) -> Any:
    return (cell.strip() or None) if isinstance(cell, str) else cell


_READ: dict[str, Any] = {
    ROW: _position,
    LABEL: _label,
    SCORE: _number,
    SOURCE: lambda cell: None if cell is None else str(cell).strip() or None,
}
_RULES = {ROW: "be a position >= 0", SCORE: "be a number"}

"""Long tables of pairs: CSV, TSV, JSON lines and Parquet with the columns row, label, score and source."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from metarank.data.column_names import left_out, listed
from metarank.data.label_files import table_of
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
        If a column is missing, or a row is no integer >= 0, a score no number, a label or source empty. The
        message names the file, the column and the line, or the row of Parquet.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "found.csv"
    >>> _ = path.write_text("row,label,source,score\\n0,tea,bm25,2.5\\n1,wine,bm25,0.5\\n")
    >>> pairs = read_candidates(path)
    >>> pairs.row, pairs.label, pairs.score
    (array([0, 1]), ['tea', 'wine'], array([2.5, 0.5]))
    """
    table, where = table_of(path)
    for name in (ROW, LABEL, SCORE):
        if name not in table:
            raise ValueError(f"{path} must have the columns row, label and score, got {listed(table)}")
    left_out(path, [name for name in table if name not in (ROW, LABEL, SCORE, SOURCE)])
    row = np.array([_position(cell, f"{path}, {where(i)}") for i, cell in enumerate(table[ROW])], np.int64)
    score = [_number(cell, f"{path}, {where(i)}") for i, cell in enumerate(table[SCORE])]
    for name in (LABEL, SOURCE):
        for i, cell in enumerate(table.get(name, ())):
            if cell is None or not str(cell).strip():
                raise ValueError(f"{path}, {where(i)}: {name} must not be empty")
    source = [str(cell).strip() for cell in table[SOURCE]] if SOURCE in table else None
    label = [cell.strip() if isinstance(cell, str) else cell for cell in table[LABEL]]
    return PairTable(row, label, np.array(score, np.float64), source, written=True)


def _position(cell: Any, where: str) -> int:
    text = str(cell).strip()
    if isinstance(cell, bool) or not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError(f"{where}: row must be a position >= 0, got {cell!r:.80}")
    return int(text)


def _number(cell: Any, where: str) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: score must be a number, got {cell!r:.80}") from None

"""Columns of numbers by name, from CSV, TSV, Parquet and svmlight files with graded targets."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from metarank.data.blocks import number_of
from metarank.data.compressed import PathLike, read_bytes
from metarank.data.tables import Table, listed, naming, read_file

# Columns of a svmlight file beside its features, which go by their numbers.
GRADE, QUERY = "grade", "qid"

_SVMLIGHT = re.compile(rb"\s*[-+.\deE]+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?$")
_YES_NO = {"yes": 1.0, "no": 0.0}


@dataclass(frozen=True, eq=False)
class Columns:
    """Named columns of a file.

    Attributes
    ----------
    path : str
    names : list of str
        All columns, in the order of the file.
    numeric : dict of str to int
        The columns of numbers, in the order of the file, and the place of each in `values`.
    values : float64 array or CSC matrix (n, d)
        Numbers; NaN where there was none. A svmlight file is sparse.
    wrong : dict of str to str
        For each column that does not hold numbers, what it holds: the first text, its type, or queries.
    query : str or None
        The column of ids that was asked for, or svmlight's `qid`.
    ids : array (n,) or None
        What that column holds: integers where all are, else strings.
    """

    path: str
    names: list[str]
    numeric: dict[str, int]
    values: np.ndarray | sp.csc_matrix
    wrong: dict[str, str]
    query: str | None = None
    ids: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    def numbers(self, name: str, option: str) -> np.ndarray:
        """One column, float64 (n,); `option` is who asks, for the message.

        Raises
        ------
        ValueError
            If there is no such column, it does not hold numbers, or lacks one in some row.
        """
        if name in self.wrong:
            raise ValueError(
                f"{self.path}: {option} must name columns of numbers, {name!r} holds {self.wrong[name]}"
            )
        self._check(name in self.numeric, name, option)
        column = self.values[:, [self.numeric[name]]]
        values = (column if isinstance(column, np.ndarray) else column.toarray()).ravel()
        if np.isnan(values).any():
            raise ValueError(
                f"{self.path}: the column {name!r} has no number at row {np.isnan(values).argmax()}"
            )
        return values

    def matrix(self, names: Sequence[str], option: str) -> np.ndarray | sp.csr_matrix:
        """Several columns, float32 (n, d); CSR where the file is sparse.

        Raises
        ------
        ValueError
            As `numbers`. A feature that no row of a sparse file has is 0.
        """
        if isinstance(self.values, np.ndarray):
            return np.column_stack([self.numbers(name, option) for name in names]).astype(np.float32)
        for name in names:
            self._check(name in self.numeric or name.isdigit(), name, option)
        # What no row of the file has stands in a column of zeros behind the others.
        filled = sp.hstack([self.values, sp.csc_matrix((self.n_rows, 1))], "csc")
        return sp.csr_matrix(filled[:, [self.numeric.get(name, -1) for name in names]], dtype=np.float32)

    def _check(self, is_known: bool, name: str, option: str) -> None:
        if not is_known:
            raise ValueError(f"{self.path}: {option} must be among {listed(self.names)}, got {name!r}")


def read_columns(path: PathLike, ids: str | None = None) -> Columns:
    """Read a table of numbers, plain or compressed (gz, xz, bz2, zst); "-" is standard input.

    Parquet and svmlight text (LETOR: `2 qid:7 1:0.5 2:0.1 # a note`) are recognised by their content, any
    other table as `metarank.data.tables.read_file` does. The words yes and true are read as 1, no and false
    as 0. The columns of a svmlight file are "grade", "qid" where it has queries, and the features by their
    numbers.

    Parameters
    ----------
    path : path of a file
    ids : str or None
        A column to keep as it is, such as the queries; it need not hold numbers.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, not UTF-8, has no rows, a line with a wrong number of fields (the line is
        named), or names that are empty or repeated; or if it has no column `ids`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("query,age,job,clicks\\nq1,31,cook,0\\nq2,,smith,1\\n")
    >>> columns = read_columns(path, ids="query")
    >>> columns.numeric, columns.wrong["job"], columns.ids.tolist(), columns.numbers("clicks", "target")
    ({'age': 0, 'clicks': 1}, "'cook' at row 0", ['q1', 'q2'], array([0., 1.]))
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    content = read_bytes(path)
    with naming(path):
        if _SVMLIGHT.match(_first_line(content)):
            columns = _svmlight(path, content, ids)
        else:
            columns = _of_table(read_file(path, content), ids)
        if columns.n_rows == 0:
            raise ValueError("the file has no rows")
        if ids is not None and columns.ids is None:
            raise ValueError(f"the column of queries must be among {listed(columns.names)}, got {ids!r}")
    return columns


def _of_table(table: Table, ids: str | None) -> Columns:
    found: dict[str, np.ndarray] = {}
    wrong: dict[str, str] = {}
    if "" in table.columns:
        raise ValueError(f"every column must have a name, column {list(table.columns).index('')} has none")
    for name, cells in table.columns.items():
        if name == ids:
            wrong[name] = "queries"
        elif table.is_typed_number(name):
            found[name] = table.array(name)
        elif hasattr(cells, "type"):
            wrong[name] = f"the type {cells.type}"
        else:
            try:
                found[name] = _numbers_of(["" if cell is None else str(cell) for cell in cells])
            except ValueError as error:
                wrong[name] = str(error)
    values = np.reshape([*found.values()], (len(found), table.n_rows)).T
    places = {name: place for place, name in enumerate(found)}
    columns = Columns(table.name, list(table.columns), places, values, wrong)
    return columns if ids not in table.columns else replace(columns, query=ids, ids=_ids(table, ids))


def _ids(table: Table, column: str) -> np.ndarray:
    """The cells of a column, each of which must hold something: integers where all are, else strings."""
    cells = table.cells(column)
    empty = next((i for i, cell in enumerate(cells) if cell is None or not str(cell).strip()), None)
    if empty is not None:
        raise ValueError(f"the column {column!r} is empty at row {empty}: every row must have its query")
    texts = np.array([str(cell) for cell in cells])
    try:
        return texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts


def _numbers_of(cells: Sequence[str]) -> np.ndarray:
    """The numbers in cells of text, NaN where a cell is blank; ValueError tells the first that is neither."""
    with suppress(ValueError):
        return np.array(cells, np.float64)
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        word = cell.strip().lower()
        try:
            values[i] = _YES_NO[word] if word in _YES_NO else number_of(cell)
        except ValueError:
            raise ValueError(f"{cell!r} at row {i}") from None
    return values


def _svmlight(path: Path, content: bytes, ids: str | None) -> Columns:
    from sklearn.datasets import load_svmlight_file

    try:
        X, grades, queries = load_svmlight_file(
            io.BytesIO(content), dtype=np.float32, zero_based=True, query_id=True
        )
    except OverflowError as error:
        raise ValueError(f"a feature or a query has too large a number: {error}") from None
    own = [QUERY] if b"qid:" in _first_line(content) else []
    if own and len(queries) != len(grades):
        raise ValueError("every line must have its qid: or none")
    # Features mostly count from 1: where no row has a feature 0, there is none.
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    features = [str(j) for j in range(first, X.shape[1])]
    query = ids if ids is not None else next(iter(own), None)
    kept = queries.astype(np.int64) if query in own else None
    if query in features:
        kept = X[:, [int(query)]].toarray().ravel()
    return Columns(
        path=str(path),
        names=[GRADE, *own, *features],
        numeric={name: place for place, name in enumerate([GRADE, *features])},
        values=sp.hstack([sp.csc_matrix(grades[:, None]), X[:, first:]], "csc"),
        wrong=dict.fromkeys(own, "queries"),
        query=query,
        ids=kept,
    )


def _first_line(content: bytes) -> bytes:
    """The first line that is not blank and no comment."""
    lines = (line.rstrip() for line in io.BytesIO(content) if not line.lstrip().startswith(b"#"))
    return next(filter(None, lines), b"")

"""Columns of numbers by name, from CSV, TSV, Parquet and svmlight files with graded targets."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from metarank.data.blocks import number_of
from metarank.data.compressed import PARQUET_MAGIC, PathLike, decode, read_bytes
from metarank.data.tables import Table, listed, naming, read_csv, read_file

# Columns of a svmlight file beside its features, which go by their numbers.
GRADE, QUERY = "grade", "qid"

_DELIMITERS = (",", "\t", ";")
_SVMLIGHT = re.compile(rb"\s*[-+.\deE]+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?$")
_YES_NO = {"yes": 1.0, "no": 0.0}


@dataclass(frozen=True, eq=False)
class Columns:
    """Named columns of a file.

    Attributes
    ----------
    path : str
    n_rows : int
    names : list of str
        All columns, in the order of the file.
    dense : dict of str to float64 array (n,)
        Numbers; NaN where there was none.
    wrong : dict of str to str
        For each column that does not hold numbers, what it holds: the first text, its type, or queries.
    ids : array (n,) or None
        The column of ids that was asked for, or svmlight's `qid`: integers where all are, else strings.
    query : str or None
        The name of that column.
    sparse : CSR matrix, or None
        The features of a svmlight file, a column a name of `sparse_names`.
    sparse_names : list of str
    """

    path: str
    n_rows: int
    names: list[str]
    dense: dict[str, np.ndarray]
    wrong: dict[str, str] = field(default_factory=dict)
    ids: np.ndarray | None = None
    query: str | None = None
    sparse: sp.csr_matrix | None = None
    sparse_names: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> list[str]:
        """The columns of numbers, in the order of the file."""
        return [name for name in self.names if name not in self.wrong]

    def numbers(self, name: str, option: str) -> np.ndarray:
        """One column, float64 (n,); `option` is who asks, for the message.

        Raises
        ------
        ValueError
            If there is no such column, it does not hold numbers, or lacks one in some row.
        """
        if name in self.dense:
            values = self.dense[name]
        elif self.sparse is not None and name in self.sparse_names:
            column = self.sparse[:, [self.sparse_names.index(name)]]
            values = column.toarray().ravel().astype(np.float64)
        elif name in self.wrong:
            raise ValueError(
                f"{self.path}: {option} must name columns of numbers, {name!r} holds {self.wrong[name]}"
            )
        else:
            raise ValueError(f"{self.path}: {option} must be among {listed(self.names)}, got {name!r}")
        if np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise ValueError(f"{self.path}: the column {name!r} has no number at row {row}")
        return values

    def matrix(self, names: Sequence[str], option: str) -> np.ndarray | sp.csr_matrix:
        """Several columns, float32 (n, d); CSR where the file is sparse.

        Raises
        ------
        ValueError
            As `numbers`. A feature that no row of a sparse file has is 0.
        """
        if self.sparse is None or any(name in self.dense for name in names):
            return np.column_stack([self.numbers(name, option) for name in names]).astype(np.float32)
        place = {name: j for j, name in enumerate(self.sparse_names)}
        for name in names:
            if name not in place and not name.isdigit():
                raise ValueError(f"{self.path}: {option} must be among {listed(self.names)}, got {name!r}")
        # What no row of the file has stands in a column of zeros behind the others.
        none = sp.csr_matrix((self.n_rows, 1), dtype=self.sparse.dtype)
        return sp.csr_matrix(
            sp.hstack([self.sparse, none], "csr")[:, [place.get(n, len(place)) for n in names]]
        )


def read_columns(path: PathLike, ids: str | None = None) -> Columns:
    """Read a table of numbers, plain or compressed (gz, xz, bz2, zst); "-" is standard input.

    Parquet and svmlight text (LETOR: `2 qid:7 1:0.5 2:0.1 # a note`) are recognised by their content. Any
    other file is read as a CSV with a header, separated by tabs, semicolons or commas, whichever the header
    has most of. The words yes and true are read as 1, no and false as 0. The columns of a svmlight file are
    "grade", "qid" where it has queries, and the features by their numbers.

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
    (['age', 'clicks'], "'cook' at row 0", ['q1', 'q2'], array([0., 1.]))
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    content = read_bytes(path)
    with naming(path):
        if _SVMLIGHT.match(_first_line(content)):
            columns = _svmlight(path, content, ids)
        else:
            columns = _of_table(_table(path, content), ids)
        if columns.n_rows == 0:
            raise ValueError("the file has no rows")
        if ids is not None and columns.ids is None:
            raise ValueError(f"the column of queries must be among {listed(columns.names)}, got {ids!r}")
    return columns


def _table(path: Path, content: bytes) -> Table:
    if content.startswith(PARQUET_MAGIC):
        return read_file(path, content)
    text = decode(content, path)
    if text.lstrip()[:1] in ("{", "[", "@", "%"):
        raise ValueError("expected CSV, TSV, Parquet or svmlight text, found JSON or ARFF")
    head = next((line for line in io.StringIO(text) if line.strip()), "")
    if not head:
        raise ValueError("the file is empty")
    return read_csv(text, max(_DELIMITERS, key=head.count), str(path))


def _of_table(table: Table, ids: str | None) -> Columns:
    dense: dict[str, np.ndarray] = {}
    wrong: dict[str, str] = {}
    if "" in table.columns:
        raise ValueError(f"every column must have a name, column {list(table.columns).index('')} has none")
    for name, cells in table.columns.items():
        if name == ids:
            wrong[name] = "queries"
        elif table.is_typed_number(name):
            dense[name] = table.array(name)
        elif hasattr(cells, "type"):
            wrong[name] = f"the type {cells.type}"
        else:
            dense[name], strange = _numbers_of(cells)
            if strange is not None:
                wrong[name] = f"{cells[strange]!r} at row {strange}"
                del dense[name]
    columns = Columns(table.name, table.n_rows, list(table.columns), dense, wrong)
    if ids not in table.columns:
        return columns
    kept = table.cells(ids)
    empty = next((i for i, value in enumerate(kept) if value is None or not str(value).strip()), None)
    if empty is not None:
        raise ValueError(f"the column {ids!r} is empty at row {empty}: every row must have its query")
    texts = np.array([str(value) for value in kept])
    try:
        return replace(columns, ids=texts.astype(np.int64), query=ids)
    except (ValueError, OverflowError):
        return replace(columns, ids=texts, query=ids)


def _numbers_of(cells: Sequence[str]) -> tuple[np.ndarray, int | None]:
    """The numbers in cells of text, NaN where a cell is blank; and the place of the first that is neither."""
    try:
        return np.array(cells, np.float64), None
    except ValueError:
        values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        word = cell.strip().lower()
        try:
            values[i] = _YES_NO[word] if word in _YES_NO else number_of(cell)
        except ValueError:
            return values, i
    return values, None


def _svmlight(path: Path, content: bytes, ids: str | None) -> Columns:
    from sklearn.datasets import load_svmlight_file

    has_queries = b"qid:" in _first_line(content)
    try:
        X, grades, queries = load_svmlight_file(
            io.BytesIO(content), dtype=np.float32, zero_based=True, query_id=True
        )
    except OverflowError as error:
        raise ValueError(f"a feature or a query has too large a number: {error}") from None
    if has_queries and len(queries) != len(grades):
        raise ValueError("every line must have its qid: or none")
    # Features mostly count from 1: where no row has a feature 0, there is none.
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    features = [str(j) for j in range(first, X.shape[1])]
    query = ids if ids is not None else QUERY if has_queries else None
    names = [GRADE, *([QUERY] if has_queries else []), *features]
    kept = None
    if query == QUERY and has_queries:
        kept = queries.astype(np.int64)
    elif query in features:
        kept = X[:, [int(query)]].toarray().ravel()
    return Columns(
        path=str(path),
        n_rows=len(grades),
        names=names,
        dense={GRADE: grades.astype(np.float64)},
        wrong={QUERY: "queries"} if has_queries else {},
        ids=kept,
        query=query,
        sparse=sp.csr_matrix(X[:, first:]),
        sparse_names=features,
    )


def _first_line(content: bytes) -> bytes:
    """The first line that is not blank and no comment."""
    for line in io.BytesIO(content):
        if line.strip() and not line.lstrip().startswith(b"#"):
            return line.rstrip()
    return b""

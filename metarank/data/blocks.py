"""`Blocks`: the parts of an instance (texts, vectors, numbers, categories, sparse features), by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.json import first_repeated, parse_json
from metarank.types.block_columns import CATEGORIES, KINDS, NUMBERS
from metarank.types.checks import check_features, check_writable
from metarank.types.containers import (
    NUMBER,
    as_list,
    is_missing,
    is_number_type,
    library_of,
    no_numbers,
    table_columns,
    type_name,
)

_WORD = re.compile(r"\w\w")
# Texts as which a column of whole numbers is written where some are missing, and truth values by polars.
_WHOLE, _TRUTH = re.compile(r"(0|-?[1-9][0-9]*)\.0+"), {"true": "True", "false": "False"}
# A column of texts holds categories if so few values, of so few words, repeat in so many rows.
_MOST_CATEGORIES, _LEAST_REPEATS, _MOST_WORDS = 100, 10, 3
_VECTOR = (list, tuple, np.ndarray)

Where = Callable[[int], str]
_ROW: Where = "row {}".format


class Blocks(Mapping[str, Any]):
    """Named parts of n instances, each with one entry per row.

    Parameters
    ----------
    parts : mapping of name to data
        Data by kind: "text": list of n str; "vector": float32 array (n, d); "numbers": float32 array (n, d),
        NaN where a number is missing; "categories": object array (n, d) of str, None where missing; "sparse":
        float32 CSR (n, d). `Blocks.of` makes them from other forms.
    kinds : mapping of name to kind
    columns : mapping of name to list of str
        Names of the columns of blocks of numbers and categories.

    Examples
    --------
    >>> blocks = Blocks.of({"title": ["red wine", "green tea"], "price": [3.5, None]})
    >>> blocks
    Blocks(2 rows; title: text, price: numbers)
    >>> blocks.take([1])["price"]
    array([[nan]], dtype=float32)
    """

    def __init__(
        self,
        parts: Mapping[str, Any],
        kinds: Mapping[str, str],
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.parts: dict[str, Any] = dict(parts)
        self.kinds: dict[str, str] = {name: kinds[name] for name in parts}
        known = {} if columns is None else columns
        self.columns: dict[str, list[str]] = {name: list(known[name]) for name in parts if name in known}
        lengths = {name: _n_rows(part) for name, part in parts.items()}
        self.n_rows: int = int(next(iter(lengths.values()), 0))
        if other := next((name for name, n in lengths.items() if n != self.n_rows), None):
            raise ValueError(
                f"the blocks of X must have as many rows: {next(iter(lengths))!r} has {self.n_rows}, "
                f"{other!r} has {lengths[other]}"
            )

    @classmethod
    def of(cls, X: Any, kinds: Mapping[str, str] | None = None) -> Blocks:
        """Blocks from a dict of names to data, or from a table whose columns are typed.

        Parameters
        ----------
        X : dict or table of pandas, polars or Arrow
            Entries of a dict: a list or column of n texts; a vector of n numbers; an array, table or sparse
            matrix (n, d). Of a table, a column of texts is a block, and so is a column of lists of numbers
            (a vector); all columns of numbers are the block "numbers", all categories "categories".
        kinds : dict of name to "text", "vector", "numbers", "categories" or "sparse"
            Kinds of blocks, or of columns of a table, that differ from these rules. Such a column is a
            separate block.

        Notes
        -----
        A dense array (n, d) in a dict is a vector, one column is a number. Texts are categories if at most
        100 different values of at most three words occur ten times each on average, if none has a word of two
        letters, or if the type of the column says so.

        Raises
        ------
        ValueError, TypeError
            If blocks have different numbers of rows, a value is infinite, a vector holds NaN, or a block is
            of no such kind. The message names the block.
        """
        if isinstance(X, Blocks):
            return X
        given, kinds = _by_name(X), dict(kinds or {})
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"X must have blocks with texts as names, got {name!r:.80}")
            check_writable(name, "the names of blocks in X")
        for name, kind in kinds.items():
            if name not in given:
                raise ValueError(f"kinds must be of blocks of X, {', '.join(given)}, got {name!r}")
            if kind not in KINDS:
                raise ValueError(f"kinds must be of {', '.join(KINDS)}, got {kind!r} for {name!r}")
        if not given:
            raise ValueError("X must have at least one block, got none")
        by_name = given if isinstance(X, Mapping) else kinds
        return grouped(
            given, {name: kinds.get(name) or _kind_of(name, given[name]) for name in given}, by_name
        )

    @classmethod
    def like(
        cls,
        X: Any,
        kinds: Mapping[str, str],
        columns: Mapping[str, Sequence[str]],
        optional: Collection[str] = (),
    ) -> Blocks:
        """The blocks of new rows, read as those of a model.

        Parameters
        ----------
        X : dict, table or Blocks
            In `Blocks`, columns of numbers and categories may be in other blocks, as in a file.
        kinds : mapping of name to kind
        columns : mapping of name to list of str
            The columns of blocks of numbers and categories.
        optional : collection of str
            Blocks that may be missing.

        Raises
        ------
        ValueError, TypeError
            If a block or column is missing, unknown, or does not fit its kind.
        """
        if isinstance(X, Blocks) and (X.kinds, X.columns) == (kinds, columns):
            return X
        given = _by_name(X, f"X must be a dict of the blocks {', '.join(kinds)}, or a data frame, as in fit")
        groups: dict[str, list[str]] = {}
        for name in kinds:
            wanted = list(columns.get(name, ()))
            keys = [name] if name in given or not wanted else wanted
            if name in optional and not any(key in given for key in keys):
                continue
            if missing := [key for key in keys if key not in given]:
                what = "block" if keys == [name] else "column"
                raise ValueError(
                    f"X must have the {what} {missing[0]!r}, as in fit; it has {', '.join(given)}"
                )
            groups[name] = keys
        read = {key for keys in groups.values() for key in keys}
        if unread := [name for name in given if name not in read]:
            raise ValueError(
                f"X must have no other block than in fit ({', '.join(kinds)}), got {unread[0]!r}: "
                "leave it out"
            )
        out = _of_groups(given, groups, kinds)
        for name, names in out.columns.items():
            wanted = list(columns.get(name, ()))
            has_names = hasattr(given[groups[name][0]], "columns")
            if names != wanted if has_names else len(names) != len(wanted):
                raise ValueError(
                    f"the block {name!r} of X must have the columns {', '.join(wanted)}, as in fit; got "
                    f"{', '.join(names)}"
                )
        return cls(out.parts, kinds, columns)

    def take(self, rows: Any) -> Blocks:
        """Some rows (ids, slice or mask), in the given order."""
        at = np.arange(self.n_rows)[rows]
        parts = {
            name: [part[i] for i in at] if isinstance(part, list) else part[at]
            for name, part in self.parts.items()
        }
        return Blocks(parts, self.kinds, self.columns)

    @property
    def text_names(self) -> list[str]:
        """The names of the blocks of texts."""
        return [name for name, kind in self.kinds.items() if kind == "text"]

    @property
    def texts(self) -> list[str] | None:
        """The texts of each row, joined; None without a block of texts."""
        names = self.text_names
        return [" ".join(row) for row in zip(*(self.parts[name] for name in names))] if names else None

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, blocks)."""
        return self.n_rows, len(self.parts)

    def __getitem__(self, name: str) -> Any:
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"Blocks({self.n_rows} rows; {', '.join(f'{n}: {k}' for n, k in self.kinds.items())})"


def grouped(
    given: Mapping[str, Any], kinds: Mapping[str, str], named: Collection[str] = (), where: Where = _ROW
) -> Blocks:
    """Columns as blocks: one of all numbers, one of all categories, except the columns `named`.

    A block of several columns has the position of its first one. `where` names a row in messages.
    """
    groups: dict[str, list[str]] = {}
    of: dict[str, str] = {}
    for name, kind in kinds.items():
        block = kind if kind in (NUMBERS, CATEGORIES) and name not in named else name
        if of.setdefault(block, kind) != kind:
            raise ValueError(f"X must have no column {block!r} that is not of {block}: rename it")
        groups.setdefault(block, []).append(name)
    return _of_groups(given, groups, of, where)


def _of_groups(
    given: Mapping[str, Any], groups: Mapping[str, list[str]], kinds: Mapping[str, str], where: Where = _ROW
) -> Blocks:
    """Blocks of these kinds, each of one or several entries."""
    parts: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    for block, members in groups.items():
        read = [part_of(kinds[block], name, given[name], where) for name in members]
        parts[block] = read[0][0] if len(read) == 1 else np.concatenate([part for part, _ in read], axis=1)
        if kinds[block] in (NUMBERS, CATEGORIES):
            columns[block] = [name for _, names in read for name in names]
    return Blocks(parts, kinds, columns)


def holds_blocks(X: Any) -> bool:
    """Whether X is `Blocks`, a dict, or a data frame with a column that is not numeric."""
    if isinstance(X, np.ndarray) or sp.issparse(X):  # a sparse matrix may be a dict too
        return False
    if isinstance(X, Mapping):
        return True
    return any(no_numbers(column) is not None for _, column in table_columns(X) or ())


def _by_name(X: Any, rule: str = "X must be a dict of blocks or a data frame") -> dict[str, Any]:
    """The entries of a dict, the columns of a table, or the blocks and columns in `Blocks`."""
    if isinstance(X, Blocks):
        single = {c: X[name][:, j] for name, own in X.columns.items() for j, c in enumerate(own)}
        return single | {name: part for name, part in X.items() if name not in X.columns}
    if isinstance(X, Mapping):
        return dict(X)
    library_of(X, "X")
    columns = table_columns(X)
    if columns is None:
        raise TypeError(f"{rule}, got {type(X).__name__}")
    twice = first_repeated([name for name, _ in columns])
    if twice is not None:
        raise ValueError(f"X must have distinct column names, got {twice!r} twice")
    return dict(columns)


def _n_rows(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _kind_of(name: str, data: Any) -> str:
    """What a block is by its values."""
    if sp.issparse(data):
        return "sparse"
    if hasattr(data, "columns") and not isinstance(data, Mapping):
        return NUMBERS
    if type_name(data).lower().startswith(("category", "categorical", "enum", "dictionary")):
        return CATEGORIES
    if getattr(data, "ndim", 1) == 2:
        return "vector"
    if is_number_type(data):
        return NUMBERS
    _check_rows(f"the block {name!r} of X", data)
    values = as_list(data)
    first = next((v for v in values if not is_missing(v)), None)
    if isinstance(first, str):
        return CATEGORIES if _are_categories(values) else "text"
    if isinstance(first, _VECTOR):
        return "vector"
    if first is None or isinstance(first, NUMBER):
        return NUMBERS
    raise TypeError(
        f"the block {name!r} of X must hold texts, numbers, vectors or categories, got "
        f"{type(first).__name__}: leave it out"
    )


def _are_categories(values: Sequence[Any]) -> bool:
    different = {v for v in values if isinstance(v, str)}
    if not any(_WORD.search(v) for v in different):
        return True
    few = len(different) <= min(_MOST_CATEGORIES, len(values) // _LEAST_REPEATS)
    return few and all(len(v.split()) <= _MOST_WORDS for v in different)


def part_of(kind: str, name: str, data: Any, where: Where = _ROW) -> tuple[Any, list[str]]:
    """The data of a block in the form of its kind, and the names of its columns.

    Cells of text are read too: numbers, vectors as JSON or with blanks between their numbers.
    """
    called = f"the block {name!r} of X"
    _check_rows(called, data)
    flat = getattr(data, "ndim", 1) == 1 and not hasattr(data, "columns")
    if kind == "sparse":
        return check_features(data, layout="sparse", min_rows=0, name=called), []
    if kind == "text":
        return _cells(data, _text, called, "a text per row", where), []
    if kind == "vector":
        if flat:
            rows = _cells(data, vector_of, called, "a vector per row", where)
            wrong = next((i for i, row in enumerate(rows) if len(row) != len(rows[0])), None)
            if wrong is not None:
                raise ValueError(
                    f"{called} must hold vectors of one width, got {len(rows[0])} and {len(rows[wrong])} "
                    f"numbers, at {where(0)} and {where(wrong)}"
                )
            data = np.array(rows, np.float64) if rows else np.zeros((0, 1))
        hint = f"vectors have no missing numbers: data.Blocks.of(X, {{{name!r}: 'numbers'}})"
        return check_features(data, layout="dense", min_rows=0, name=called, nan_hint=hint), []
    columns = _columns_in(name, data, called)
    if kind == CATEGORIES:
        rule = "texts or integers"
        cells = [_cells(column, category_of, called, rule, where) for column in columns.values()]
        shape = len(cells), len(cells[0]) if cells else 0
        return np.array(cells, object).reshape(shape).T, list(columns)
    if not isinstance(data, np.ndarray) or data.ndim == 1:
        read = [
            column
            if isinstance(column, np.ndarray) and column.dtype.kind in "biuf"
            else np.array(_cells(column, number_of, called, "numbers", where), np.float64)
            for column in columns.values()
        ]
        data = np.column_stack(read)
    return check_features(data, layout="dense", min_rows=0, name=called, allow_nan=True), list(columns)


def _cells(data: Any, read: Callable[[Any], Any], called: str, rule: str, where: Where) -> list[Any]:
    """The cells of a column, each as it is read; TypeError names the first that is no such cell."""
    out = []
    for i, cell in enumerate(as_list(data)):
        try:
            out.append(read(cell))
        except (TypeError, ValueError, OverflowError):
            hint = "; kind 'categories' takes both" if rule == "numbers" and isinstance(cell, str) else ""
            raise TypeError(f"{called} must hold {rule}, got {cell!r:.80} at {where(i)}{hint}") from None
    return out


def _text(cell: Any) -> str:
    if not (isinstance(cell, str) or is_missing(cell)):
        raise TypeError
    return cell if isinstance(cell, str) else ""


def vector_of(cell: Any) -> list[float]:
    """The numbers of a cell: a list, in a text as JSON or with blanks between them."""
    if isinstance(cell, str):
        cell = parse_json(cell) if cell.lstrip().startswith("[") else [float(x) for x in cell.split()]
    if not isinstance(cell, _VECTOR) or not len(cell):
        raise TypeError
    return [float("nan") if number is None else float(number) for number in cell]


def number_of(cell: Any) -> float:
    """The number in a cell, also as text; NaN where the cell is empty.

    Examples
    --------
    >>> number_of(" 2.5"), number_of(""), number_of(True), number_of("False")
    (2.5, nan, 1.0, 0.0)
    """
    if is_missing(cell):
        return float("nan")
    if isinstance(cell, str):
        text = cell.strip().lower()
        return float(text == "true") if text in _TRUTH else float(text or "nan")
    if not isinstance(cell, NUMBER):
        raise TypeError(f"expected a number, got {cell!r:.80}")
    return float(cell)


def category_of(value: Any) -> str | None:
    """The category in a cell; None if it is empty.

    Whole numbers are the same category in any type, as are truth values, which are not numbers.

    Raises
    ------
    TypeError
        If it is neither a text nor a whole number.

    Examples
    --------
    >>> [category_of(value) for value in (7, 7.0, "7", "7.0", " 7 ", True, "true", "07", "")]
    ['7', '7', '7', '7', '7', 'True', 'True', '07', None]
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        number = _WHOLE.fullmatch(text)
        return number[1] if number else _TRUTH.get(text, text or None)
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return str(value)
    if isinstance(value, (float, np.floating, Decimal)) and float(value).is_integer():
        return str(int(value))
    raise TypeError(f"texts or integers, got {value!r:.80}")


def _check_rows(called: str, data: Any) -> None:
    """TypeError unless it has an entry per row."""
    flat = hasattr(data, "__len__") and not isinstance(data, (str, bytes, Mapping, Set))
    if not (flat or sp.issparse(data)) or getattr(data, "ndim", 1) == 0:
        raise TypeError(f"{called} must hold one entry per row, got {data!r:.80}")
    if getattr(data, "ndim", 1) > 2:
        raise ValueError(f"{called} must have shape (n, d), got {data.shape}")


def _columns_in(name: str, data: Any, called: str) -> dict[str, Any]:
    """The columns of a block of numbers or categories by name."""
    table = table_columns(data)
    if table is not None:
        return dict(table)
    rows = data if getattr(data, "ndim", 1) == 2 else as_list(data)
    if isinstance(rows, np.ndarray) or (len(rows) and isinstance(rows[0], _VECTOR)):
        if len({len(row) if isinstance(row, _VECTOR) else -1 for row in rows}) > 1:
            raise ValueError(f"{called} must hold as many entries in each row")
        columns = rows.T if isinstance(rows, np.ndarray) else zip(*rows)
        return {f"{name} {j}": column for j, column in enumerate(columns)}
    return {name: data}

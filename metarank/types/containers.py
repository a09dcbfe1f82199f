"""Tables and columns of pandas, polars and Arrow, none of which need be installed, as arrays and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

# Types of columns, as pandas, polars and Arrow write them.
_NUMBERS = re.compile(r"^(sparse\[)?(u?int|float|double|half|bool|decimal|complex)")
# What a number is; truth values are integers.
NUMBER = (int, float, np.number, np.bool_, Decimal)


def check_columns(table: Any, name: str, what: str, hint: str) -> None:
    """ValueError naming the first column of a table that holds no numbers."""
    of_pandas = library_of(table, name) == "pandas" and hasattr(table, "columns")
    if of_pandas and all(isinstance(dtype, np.dtype) and dtype.kind in "biufc" for dtype in table.dtypes):
        return
    for column, values in table_columns(table) or ():
        if kind := no_numbers(values):
            kind = "text" if re.match("(large_)?(str|utf8)", kind.lower()) else kind
            raise ValueError(f"{name} must hold {what}, got {kind} in column {column!r}{hint.format(column)}")


def no_numbers(column: Any) -> str | None:
    """The type of a column that holds anything but numbers, or of the first such value among any objects."""
    kind = type_name(column)
    if kind != "object":
        return None if is_number_type(column) else kind
    return next((type(v).__name__ for v in column if not (is_missing(v) or isinstance(v, NUMBER))), None)


def table_columns(table: Any) -> list[tuple[str, Any]] | None:
    """(name, column) of a table of pandas, polars or Arrow; None of anything else."""
    module = type(table).__module__.partition(".")[0]
    if module == "pandas" and hasattr(table, "columns"):
        return [(str(c), table.iloc[:, j]) for j, c in enumerate(table.columns)]
    if module == "polars" and hasattr(table, "get_columns"):
        return [(c.name, c) for c in table.get_columns()]
    if module == "pyarrow" and hasattr(table, "column_names"):
        return list(zip(table.column_names, table.columns))
    return None


def type_name(column: Any) -> str:
    """The type of a column's values, as its library writes it; "" where the container has none."""
    return str(getattr(column, "dtype", getattr(column, "type", "")))


def is_number_type(column: Any) -> bool:
    """Whether the type of a column says that it holds numbers or booleans."""
    return bool(_NUMBERS.search(type_name(column).lower()))


def as_array(table: Any) -> np.ndarray:
    """A table or array-like as an ndarray; missing values become NaN."""
    if isinstance(table, np.ndarray):
        return table
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        has_own = not all(isinstance(dtype, np.dtype) for dtype in table.dtypes)  # types of pandas itself
        if has_own and all(getattr(dtype, "kind", "O") in "biuf" for dtype in table.dtypes):
            return np.asarray(table.to_numpy(np.float64, na_value=np.nan))
    if hasattr(table, "to_numpy"):
        return np.asarray(table.to_numpy())
    try:
        return np.asarray(table)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"expected a rectangular array: {error}") from None


def library_of(values: Any, name: str) -> str:
    """The package a container is of; TypeError for a polars LazyFrame, which has no rows yet."""
    module = type(values).__module__.partition(".")[0]
    if module == "polars" and type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} must hold rows, got a polars LazyFrame: pass its collect()")
    return module


def as_list(values: Any) -> Any:
    """A column or an array as a list; anything else as it is."""
    give = next((name for name in ("to_pylist", "to_list", "tolist") if hasattr(values, name)), None)
    return values if give is None else getattr(values, give)()


def plain_column(values: Any, name: str) -> Any:
    """A column of pandas, polars or Arrow as an array of numbers, or a list with None where nothing is there.

    Anything else is given back as it is. Nulls among lists or numbers become empty lists, those among texts
    None.

    Raises
    ------
    TypeError
        If it holds dates or times, or is a polars LazyFrame, which has no rows yet.
    """
    module = library_of(values, name)
    if hasattr(values, "columns") or sp.issparse(values):
        return values
    dtype = getattr(values, "dtype", getattr(values, "type", None))
    if module in ("pandas", "polars", "pyarrow") and any(w in str(dtype).lower() for w in ("date", "time")):
        raise TypeError(f"{name} must hold labels, got a column of {dtype}")
    if module == "pandas" and getattr(values, "ndim", 0) == 1:
        if getattr(values, "nlevels", 1) > 1:
            raise TypeError(f"{name} must hold one label per row or a list of them, got a MultiIndex")
        whole = not values.isna().any() and getattr(dtype, "kind", "O") in "biuf"
        kind = getattr(dtype, "kind", "O")
        values = values.to_numpy(bool if kind == "b" else f"{kind}8") if whole else values.tolist()
    elif module in ("polars", "pyarrow") or (isinstance(values, np.ndarray) and values.dtype == object):
        values = values if getattr(values, "ndim", 1) > 1 else as_list(values)
    if isinstance(values, list) and any(map(is_missing, values)):
        floats = all(is_missing(v) or isinstance(v, (float, np.floating)) for v in values)
        values = values if floats else [None if is_missing(v) else v for v in values]
        if any(map(is_row, values)):
            values = [[] if v is None else v for v in values]
        elif values and not any(isinstance(v, str) for v in values if v is not None):
            values = [[] if v is None else [v] for v in values]
    return values


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for no value."""
    return (
        value is None
        or (isinstance(value, (float, np.floating)) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def is_row(row: Any) -> bool:
    """Whether it is a list of labels, of whatever container, rather than one."""
    if isinstance(row, np.ndarray):
        return row.ndim > 0
    return isinstance(row, Iterable) and not isinstance(row, (str, bytes, Mapping))

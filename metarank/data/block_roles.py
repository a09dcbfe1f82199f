"""`BlockRoles`: which columns of a table are blocks of an instance, and how they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from metarank._util.json import parse_json
from metarank.data.column_names import check_among, joined_texts, logger, shown
from metarank.types.blocks import CATEGORIES, NUMBERS, Blocks, category_of

# A column name, several, or several in one text with commas between them; None where they are not named.
Names = str | Sequence[str] | None


@dataclass(frozen=True)
class BlockRoles:
    """Columns of a table that are blocks.

    Parameters
    ----------
    text_columns : str or sequence of str, optional
        Each column is a block of texts of its own.
    vector_columns : str or sequence of str, optional
        Each column is a block of dense vectors: a list of numbers in each cell, in a text as JSON or with
        blanks between them.
    number_columns : str or sequence of str, optional
        Together they are the block "numbers"; a missing number is NaN. None takes every column of numbers
        that is nothing else, [] none.
    category_columns : str or sequence of str, optional
        Together they are the block "categories".
    """

    text_columns: Names = None
    vector_columns: Names = None
    number_columns: Names = None
    category_columns: Names = None

    def __bool__(self) -> bool:
        """Whether any of them is given: then X is blocks."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    def among(self, present: Sequence[str]) -> dict[str, list[str] | None]:
        """The columns by kind of block, None for numbers that are not named.

        Raises
        ------
        ValueError
            If a column is not there, or is named twice.
        """
        kinds = ("text", "vector", NUMBERS, CATEGORIES)
        out: dict[str, list[str] | None] = {}
        taken: dict[str, str] = {}
        for kind, field in zip(kinds, fields(self)):
            named = columns_named(getattr(self, field.name), present)
            check_among(named or (), present, field.name)
            for column in named or ():
                if column in taken:
                    raise ValueError(
                        f"a column is one block, got {column!r} for {taken[column]} and {field.name}"
                    )
                taken[column] = field.name
            out[kind] = named if named is not None or kind == NUMBERS else []
        return out


def columns_named(wanted: Names, present: Collection[str]) -> list[str] | None:
    """Names of columns as a list: "a,b" are two, unless a column has that name.

    Examples
    --------
    >>> columns_named("title, body", ["title", "body"]), columns_named("a,b", ["a,b"])
    (['title', 'body'], ['a,b'])
    """
    if wanted is None:
        return None
    if not isinstance(wanted, str):
        return list(wanted)
    return [wanted] if wanted in present else [name for part in wanted.split(",") if (name := part.strip())]


def read_blocks(
    roles: BlockRoles,
    present: Sequence[str],
    values: Callable[[str, str], Any],
    *,
    holds_numbers: Callable[[str], bool],
    used: Collection[str],
    where: Callable[[int], str],
    name: object = "",
) -> Blocks:
    """The blocks of a table; one of several columns comes where the first of them stands.

    Parameters
    ----------
    roles : BlockRoles
    present : sequence of str
        All columns, in their order.
    values : function of a column and the kind of its block
        Its cells, a list or an array; those of categories a list.
    holds_numbers : function of a column
        Whether it holds numbers alone; of the columns that are nothing else, if `number_columns` is None.
    used : collection of str
        Columns that are no blocks, such as that of the labels.
    where : function of a row
        How a message names it.
    name : object
        How the log names the table.

    Raises
    ------
    ValueError
        If a column is missing, is named twice or holds something else; the message names column and row.
    """
    kinds = roles.among(present)
    both = next((c for kind in kinds.values() for c in kind or () if c in used), None)
    if both is not None:
        raise ValueError(f"a column of labels is no block, got {both!r} for both")
    named = {column: kind for kind, columns in kinds.items() for column in columns or ()}
    if kinds[NUMBERS] is None:
        found = [c for c in present if c not in named and c not in used and holds_numbers(c)]
        named |= dict.fromkeys(found, NUMBERS)
        if found:
            logger.info("%s: columns of numbers, one block: %s", name or "the table", shown(found))
    parts: dict[str, list[tuple[str, Any]]] = {}
    kind_of: dict[str, str] = {}
    for column in filter(named.__contains__, present):
        kind = named[column]
        block = kind if kind in (NUMBERS, CATEGORIES) else column
        if kind_of.setdefault(block, kind) != kind:
            raise ValueError(f"the column {block!r} must have another name: that is the block of all {block}")
        parts.setdefault(block, []).append((column, _READERS[kind](values(column, kind), column, where)))
    if not parts:
        raise ValueError("blocks must have at least one column, got none")
    several = [block for block, kind in kind_of.items() if kind in (NUMBERS, CATEGORIES)]
    joined = {block: own[0][1] for block, own in parts.items()}
    joined |= {block: np.column_stack([part for _, part in parts[block]]) for block in several}
    return Blocks(joined, kind_of, {block: [column for column, _ in parts[block]] for block in several})


def _texts(cells: Sequence[Any], column: str, where: Callable[[int], str]) -> list[str]:
    return joined_texts({column: cells}, where, parameter="text_columns")


def _vectors(cells: Any, column: str, where: Callable[[int], str]) -> np.ndarray:
    """float32 (n, d); ValueError names the first cell that is no vector of the width of the first."""
    if isinstance(cells, np.ndarray) and cells.ndim == 2:
        with np.errstate(over="ignore"):  # it is looked for
            vectors = cells.astype(np.float32)
    else:
        rows = [_vector(cell) for cell in cells]
        for i, row in enumerate(rows):
            rule = None if row is not None else f"a vector a row, got {cells[i]!r:.60}"
            if row is not None and len(row) != len(rows[0] or ()):
                rule = f"vectors of one width, got {len(row)} numbers after {len(rows[0] or ())}"
            if rule is not None:
                raise ValueError(f"vector_columns must hold {rule} in {column!r} at {where(i)}")
        with np.errstate(over="ignore"):
            vectors = np.array(rows, np.float32).reshape(len(rows), -1)
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"vector_columns must hold finite numbers below 3.4e38 in {column!r} at {where(int(wrong[0]))}"
        )
    return vectors


def _vector(cell: Any) -> list[float] | None:
    """The numbers of a cell; None where it is no vector."""
    if isinstance(cell, str):
        try:
            cell = parse_json(cell) if cell.lstrip().startswith("[") else [float(x) for x in cell.split()]
        except (ValueError, json.JSONDecodeError):
            return None
    if not isinstance(cell, list | tuple | np.ndarray) or not len(cell):
        return None
    numbers = [value for value in cell if isinstance(value, int | float | np.number)]
    return [float(value) for value in numbers] if len(numbers) == len(cell) else None


def _numbers(cells: Any, column: str, where: Callable[[int], str]) -> np.ndarray:
    """float32 (n,), NaN where there is none; ValueError names the first cell that is no finite number."""
    if isinstance(cells, np.ndarray):
        numbers = cells.astype(np.float64)
    else:
        numbers = np.full(len(cells), np.nan)
        for i, cell in enumerate(cells):
            number = number_of(cell)
            if number is None:
                raise ValueError(
                    f"number_columns must hold numbers, got {cell!r:.60} in {column!r} at {where(i)}"
                )
            numbers[i] = number
    with np.errstate(over="ignore"):
        out = numbers.astype(np.float32)
    wrong = np.flatnonzero(np.isinf(out))
    if len(wrong):
        i = int(wrong[0])
        said = f"got {numbers[i]} in {column!r} at {where(i)}"
        raise ValueError(f"number_columns must hold finite numbers below 3.4e38, {said}")
    return out


def number_of(cell: Any) -> float | None:
    """The number in a cell, also as text; NaN where the cell is empty, None where it holds something else.

    Examples
    --------
    >>> number_of(" 2.5"), number_of(""), number_of(True), number_of("False"), number_of("tea")
    (2.5, nan, 1.0, 0.0, None)
    """
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return float("nan")
    if isinstance(cell, str) and cell.strip().lower() in ("true", "false"):
        return float(cell.strip().lower() == "true")
    if not isinstance(cell, str | int | float | np.number | np.bool_):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _categories(cells: Sequence[Any], column: str, where: Callable[[int], str]) -> np.ndarray:
    """Object array (n,) of str; None where a cell is empty."""
    out = np.empty(len(cells), object)
    for i, cell in enumerate(cells):
        try:
            out[i] = category_of(cell)
        except TypeError as error:
            raise ValueError(f"category_columns must hold {error} in {column!r} at {where(i)}") from None
    return out


_READERS: Mapping[str, Callable[[Any, str, Callable[[int], str]], Any]] = {
    "text": _texts,
    "vector": _vectors,
    NUMBERS: _numbers,
    CATEGORIES: _categories,
}

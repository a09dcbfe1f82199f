"""Columns of a table by name: how messages list them, and texts of several columns as one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from metarank._util.callers import outside
from metarank._util.printable import first_few

logger: logging.Logger = logging.getLogger("metarank.data")
_elsewhere: ContextVar[frozenset[str]] = ContextVar("metarank_read_elsewhere", default=frozenset())


class NoColumn(ValueError):
    """A table lacks a column.

    Attributes
    ----------
    column : str
    """

    def __init__(self, said: str, column: str) -> None:
        super().__init__(said)
        self.column = column


def of_file(error: Exception, path: object) -> ValueError:
    """The error of one line that names the file."""
    said = f"{path}: {' '.join(str(error).split())}"
    return NoColumn(said, error.column) if isinstance(error, NoColumn) else ValueError(said)


def shown(columns: Sequence[str]) -> str:
    """Names of columns, a few at most.

    Examples
    --------
    >>> shown(["id", "price"])
    "'id', 'price'"
    """
    return first_few(columns, 6)


def listed(columns: Iterable[str]) -> str:
    """Names of columns as a list, a dozen at most.

    Examples
    --------
    >>> listed(["id", "price"])
    "['id', 'price']"
    """
    names = list(columns)
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{names[:12]}{more}"


@contextmanager
def read_elsewhere(columns: Iterable[str]) -> Iterator[None]:
    """Inside the block, `left_out` does not tell of these columns."""
    token = _elsewhere.set(frozenset(columns))
    try:
        yield
    finally:
        _elsewhere.reset(token)


def left_out(name: object, columns: Sequence[str]) -> None:
    """Warn of columns that are not read, in one line."""
    columns = [column for column in columns if column not in _elsewhere.get()]
    if columns:
        plural = "s"[: len(columns) > 1]
        said = f"{name}: left out {len(columns)} column{plural}: {shown(columns)}"
        warnings.warn(said, stacklevel=outside())


def check_among(columns: Iterable[str], present: Collection[str], parameter: str) -> None:
    """`NoColumn` where one of the columns that a parameter names is not there."""
    for column in columns:
        if column not in present:
            raise NoColumn(f"{parameter} must be among {listed(present)}, got {column!r}", column)


def joined_texts(
    columns: Mapping[str, Sequence[Any]], where: Callable[[int], str], *, parameter: str = "text_column"
) -> list[str]:
    """The texts of a row in several columns as one, by line breaks; nulls count as empty.

    Raises
    ------
    ValueError
        If one is no text; the message names the column and, by `where`, the row.

    Examples
    --------
    >>> joined_texts({"title": ["Tea", None], "body": ["Hot.", "Red."]}, "row {}".format)
    ['Tea\\nHot.', 'Red.']
    """
    for column, values in columns.items():
        wrong = next((i for i, v in enumerate(values) if v is not None and not isinstance(v, str)), None)
        if wrong is not None:
            raise ValueError(
                f"{parameter} must hold text, got {type(values[wrong]).__name__} in {column!r} at "
                f"{where(wrong)}"
            )
    return ["\n".join(value for value in row if value) for row in zip(*columns.values())]


def check_other_columns(
    texts: Sequence[str], labels: Sequence[str], parameter: str = "labels_column"
) -> None:
    """ValueError where a column of text is one of labels too."""
    both = next((column for column in texts if column in labels), None)
    if both is not None:
        raise ValueError(f"text_column and {parameter} must differ, got {both!r} for both")

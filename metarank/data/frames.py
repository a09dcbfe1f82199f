"""Tables as a `Dataset`: which columns are labels, texts, numbers and blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metarank.data.blocks import Blocks, grouped, number_of
from metarank.data.dataset import Dataset
from metarank.data.separators import AUTO, check_separator, split_column
from metarank.data.tables import (
    Names,
    Table,
    as_table,
    check_among,
    columns_named,
    joined_texts,
    listed,
    logger,
    shown,
)
from metarank.types.block_columns import CATEGORIES, NUMBERS
from metarank.types.checks import check_names_as_ids

TEXT_COLUMNS = ("title", "text", "body")
LABELS_COLUMNS = ("labels", "label", "tags", "topics")
# The kinds of block, by the parameters that name their columns.
BLOCKS = {"text_columns": "text", "vector_columns": "vector", "number_columns": NUMBERS,
           "category_columns": CATEGORIES}  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what; the parameters of `from_frame`."""

    label_columns: Names = None
    labels_column: str | None = None
    text_column: Names = None
    feature_columns: Sequence[str] | None = None
    label_separator: str | None = AUTO
    text_columns: Names = None
    vector_columns: Names = None
    number_columns: Names = None
    category_columns: Names = None

    def __post_init__(self) -> None:
        check_separator(self.label_separator)
        if self.text_column and self.of_blocks:
            raise ValueError(
                f"with blocks, give text_columns instead of text_column, got {self.text_column!r}"
            )
        if self.feature_columns and self.of_blocks:
            raise ValueError(
                "with blocks, give number_columns instead of feature_columns, got "
                f"{list(self.feature_columns)!r:.60}"
            )
        if self.label_columns is not None and self.labels_column is not None:
            raise ValueError("label_columns and labels_column exclude each other, got both")

    @property
    def of_blocks(self) -> bool:
        """Whether columns are named that are blocks: then X is blocks."""
        return any(getattr(self, parameter) is not None for parameter in BLOCKS)

    @property
    def labels(self) -> list[str]:
        """The columns of labels, of either kind."""
        named = columns_named(self.label_columns, ()) or []
        return named + ([] if self.labels_column is None else [self.labels_column])

    def kinds(self, table: Table) -> dict[str, str]:
        """The kind of block of each column that is named as one, in the order of the table.

        Raises
        ------
        ValueError
            If a column is not there, is named twice, or holds labels.
        """
        taken: dict[str, str] = dict.fromkeys(self.labels, "labels")
        for parameter in BLOCKS:
            named = columns_named(getattr(self, parameter), table.columns) or []
            check_among(named, table.columns, parameter)
            for column in named:
                if taken.setdefault(column, parameter) != parameter:
                    raise ValueError(
                        f"a column must be in one block, got {column!r} for {taken[column]} and {parameter}"
                    )
        return {c: BLOCKS[taken[c]] for c in table.columns if taken.get(c) in BLOCKS}

    def with_usual(self, table: Table) -> Roles:
        """With the columns of labels and of text that are not named, by their usual names.

        Raises
        ------
        ValueError
            If there is neither text nor numbers.
        """
        found = self
        texts = columns_named(self.text_column, table.columns)
        if not self.labels:
            used = {*(texts or ()), *self.kinds(table)}
            usual = next((c for c in LABELS_COLUMNS if c in table.columns and c not in used), None)
            found = replace(found, labels_column=usual)
        if texts is None and not self.feature_columns and not self.of_blocks:
            present = [c for c in table.columns if c not in found.labels]
            texts = [c for c in TEXT_COLUMNS if c in present and table.holds_text(c)]
            if not texts and not any(map(table.is_typed_number, present)):
                raise ValueError(
                    f"no column of numbers or of text was found among {listed(table.columns)}: give "
                    "text_column or number_columns"
                )
        return replace(found, text_column=texts)


def from_frame(
    frame: Any,
    *,
    label_columns: Sequence[str] | None = None,
    labels_column: str | None = None,
    text_column: str | Sequence[str] | None = None,
    feature_columns: Sequence[str] | None = None,
    label_separator: str | None = AUTO,
    name: str = "",
    text_columns: Names = None,
    vector_columns: Names = None,
    number_columns: Names = None,
    category_columns: Names = None,
) -> Dataset:
    """A table of pandas, polars or Arrow as a `Dataset`.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table, or anything with the Arrow stream interface
    label_columns : sequence of str or None
        Columns of relevances, one per label (0 and 1, or grades); their names become the label names.
    labels_column : str or None
        One column with each row's labels: lists of names or of integer ids, texts of one or several names, or
        one id per row. A null is a row without labels.
    text_column : str, sequence of str or None
        Columns of text, joined by a line break; nulls count as empty.
    feature_columns : sequence of str or None
        Numeric or boolean columns that make X; None takes all such columns not used otherwise. With a
        `text_column`, [] leaves the numbers out; for both, make blocks.
    label_separator : str or None
        Separator of the names in one text of `labels_column`: any text, "whitespace", "list", "<>", None for
        one name per cell, or "auto", decided once from the whole column: see `metarank.data.separators`.
    name : str
    text_columns, vector_columns : str, sequence of str or None
        Columns that are separate blocks: texts; vectors, as a list of numbers in each cell, in texts as JSON
        or separated by blanks. With any block, X is `Blocks`, and `text_column` and `feature_columns` are not
        given.
    number_columns, category_columns : str, sequence of str or None
        Columns that together are the block "numbers", where a missing number is NaN, or "categories". With
        other blocks, `number_columns=None` takes all other columns of numbers, [] none.

    Raises
    ------
    TypeError
        If `frame` is not a table.
    ValueError
        If both kinds of label columns are given, if there are both texts and numbers, if one column is both
        text and labels, if a column is missing (the message lists those present) or has the wrong type, or if
        a feature is null, NaN or infinite.

    Notes
    -----
    A warning names columns that are left out, in one line.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.5, 2.0], "tags": [["red"], ["red", "round"]]})
    >>> from_frame(frame, labels_column="tags")
    Dataset('': 2 rows, 1 features (dense), 2 labels, 1.50 labels per row)
    """
    roles = Roles(label_columns, labels_column, text_column, feature_columns, label_separator,
                  text_columns, vector_columns, number_columns, category_columns)  # fmt: skip
    return dataset_of(as_table(frame, name or "the table"), roles, name)


def dataset_of(table: Table, roles: Roles, name: str, *, usual: bool = False, tell: bool = True) -> Dataset:
    """The data set of a table.

    `usual` looks for columns that are not named by their usual names, `tell` warns of those left out.
    """
    is_named = roles.text_column is not None
    roles = roles.with_usual(table) if usual else roles
    labels, features = roles.labels, roles.feature_columns
    texts = columns_named(roles.text_column, table.columns) or []
    parameter = "labels_column" if roles.label_columns is None else "label_columns"
    check_among(texts, table.columns, "text_column")
    check_among(labels, table.columns, parameter)
    check_among(features or (), table.columns, "feature_columns")
    if both := next((column for column in texts if column in labels), None):
        raise ValueError(f"text_column and {parameter} must differ, got {both!r} for both")
    if roles.of_blocks:
        features = []
    elif features is None:
        features = [c for c in table.columns if c not in {*texts, *labels} and table.is_typed_number(c)]
    if texts and features:
        raise ValueError(
            f"X must be texts or numbers, got text_column {shown(texts)} and numbers in {shown(features)}: "
            "text_columns makes blocks of both, feature_columns=[] (or --text-column) drops numbers, "
            "text_column=[] texts"
        )
    X: Any = _matrix(table, features, "feature_columns") if features else None
    read = {*texts, *labels, *features}
    if roles.of_blocks:
        X = _blocks(table, roles)
        read.update(column for block in X for column in X.columns.get(block, [block]))
    if tell:
        table.left_out(c for c in table.columns if c not in read)
    Y: Any = None
    separator = roles.label_separator
    if roles.label_columns is not None:
        check_names_as_ids(labels, parameter)
        Y = _matrix(table, labels, parameter)
    elif labels:
        Y, separator = split_column(
            table.cells(labels[0]), separator, column=f"{table.name}, column {labels[0]!r}", where=table.where
        )
    return Dataset(
        X=X,
        Y=Y,
        label_names=None if roles.label_columns is None else labels,
        feature_names=list(features) or None,
        texts=joined_texts({c: table.cells(c) for c in texts}, table.where) if texts else None,
        name=name,
        label_separator=separator,
        text_columns=texts if texts and is_named else None,
    )


def _blocks(table: Table, roles: Roles) -> Blocks:
    """The blocks of a table."""
    kinds = roles.kinds(table)
    if roles.number_columns is None:
        more = [c for c in table.columns if c not in {*kinds, *roles.labels} and table.holds_numbers(c)]
        if more:
            logger.info("%s: columns of numbers, one block: %s", table.name, shown(more))
        kinds = {c: kinds.get(c, NUMBERS) for c in table.columns if c in kinds or c in more}
    if not kinds:
        raise ValueError("blocks must have at least one column, got none")
    data = {c: table.cells(c) if kind == CATEGORIES else table.array(c) for c, kind in kinds.items()}
    return grouped(data, kinds, where=table.where)


def _matrix(table: Table, columns: Iterable[str], parameter: str) -> np.ndarray:
    """float64 (n, columns); nulls become NaN, which `Dataset` refuses by row and column."""
    columns = list(columns)
    wrong = next((c for c in columns if not table.holds_numbers(c)), None)
    if wrong is not None:
        of = getattr(table.columns[wrong], "type", "text")
        raise ValueError(f"{parameter} must be numeric or boolean, got {wrong!r} of type {of}")
    arrays = (table.array(c) for c in columns)
    return np.column_stack(
        [array if isinstance(array, np.ndarray) else list(map(number_of, array)) for array in arrays]
    )

"""Parquet files and pandas, polars or Arrow tables as a `Dataset`, and back.

Every table becomes an Arrow table first; pyarrow is imported here only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.extra import require_extra
from metarank._util.files import whole_file
from metarank._util.json import parse_json
from metarank.data.block_roles import BlockRoles, Names, read_blocks
from metarank.data.column_names import (
    check_among,
    check_other_columns,
    joined_texts,
    left_out,
    listed,
    of_file,
    shown,
)
from metarank.data.dataset import Dataset
from metarank.data.parquet import read_table
from metarank.data.separators import AUTO, check_separator, cut_column
from metarank.data.text import TEXT_COLUMNS, check_one_kind
from metarank.data.xc import PathLike
from metarank.types.blocks import CATEGORIES, NUMBERS, Blocks
from metarank.types.checks import check_names_as_ids
from metarank.types.label_descriptions import LabelDescriptions

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_KEY = b"metarank"
# Columns of `to_parquet`; `read_parquet` knows a file of its own by the metadata.
INDICES, VALUES, LABELS, GRADES, TEXT = "x_indices", "x_values", "labels", "grades", "text"
TITLES = "titles"
# Of a data set, what stands in the metadata.
ABOUT = "name n_features n_labels label_names label_names_are_ids label_separator feature_names label_texts"


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what; the parameters of `from_frame`."""

    label_columns: Sequence[str] | None = None
    labels_column: str | None = None
    text_column: str | Sequence[str] | None = None
    feature_columns: Sequence[str] | None = None
    label_separator: str | None = AUTO
    text_is_usual: bool = False  # not named, but found by its usual names
    blocks: BlockRoles = field(default_factory=BlockRoles)

    def __post_init__(self) -> None:
        check_separator(self.label_separator)
        check_one_kind(self.text_column, self.blocks)
        if self.feature_columns and self.blocks:
            raise ValueError(
                "feature_columns makes one matrix of its columns: with blocks, number_columns names those of "
                f"the block of numbers, got feature_columns={list(self.feature_columns)!r:.60} too"
            )
        if self.label_columns is not None and self.labels_column is not None:
            raise ValueError("label_columns and labels_column exclude each other, got both")

    @property
    def labels(self) -> list[str]:
        """The columns of labels, of either kind."""
        return list(self.label_columns or ()) + ([] if self.labels_column is None else [self.labels_column])

    @property
    def texts(self) -> list[str] | None:
        """The columns of text; None where they were not named."""
        if self.text_column is None:
            return None
        return [self.text_column] if isinstance(self.text_column, str) else list(self.text_column)


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
        Columns of relevances, one a label (0 and 1, or grades); their names become the label names.
    labels_column : str or None
        One column with each row's labels: lists of names or of integer ids, texts of one or several names, or
        one id a row. A null is a row without labels.
    text_column : str, sequence of str or None
        Columns of text, joined by a line break; nulls count as empty.
    feature_columns : sequence of str or None
        Numeric or boolean columns that make X; None takes all such columns not used otherwise. Beside a
        `text_column`, [] leaves the numbers out; for both, make blocks of them.
    label_separator : str or None
        Separator of the names in one text of `labels_column`: any text, "whitespace", "json", None for one
        name a cell, or "auto", decided once from the whole column: see `metarank.data.separators`.
    name : str
    text_columns, vector_columns, number_columns, category_columns : str, sequence of str or None
        Columns that are blocks, see `metarank.data.block_roles.BlockRoles`. If any is given, X is `Blocks`,
        `text_column` and `feature_columns` are not given, and the columns of numbers are a block unless
        `number_columns` tells otherwise.

    Raises
    ------
    TypeError
        If `frame` is not a table.
    ValueError
        If both kinds of label columns are given, if texts stand beside numbers, if one column is both text
        and labels, if a column is missing (the message lists those present) or has the wrong type, or if a
        feature is null, NaN or infinite.

    Notes
    -----
    The logger "metarank.data" names columns that are left out, in one line.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.5, 2.0], "tags": [["red"], ["red", "round"]]})
    >>> from_frame(frame, labels_column="tags")
    Dataset('': 2 rows, 1 features (dense), 2 labels, 1.50 labels a row)
    """
    blocks = BlockRoles(text_columns, vector_columns, number_columns, category_columns)
    roles = Roles(label_columns, labels_column, text_column, feature_columns, label_separator, blocks=blocks)
    return _dataset(to_arrow(frame), roles, name)


def _dataset(table: pa.Table, roles: Roles, name: str, *, tell: bool = True) -> Dataset:
    kinds = dict(zip(table.column_names, table.schema.types))
    labels, texts, features = roles.labels, roles.texts or [], roles.feature_columns
    parameter = "labels_column" if roles.label_columns is None else "label_columns"
    check_among(texts, kinds, "text_column")
    check_among(labels, kinds, parameter)
    check_among(features or (), kinds, "feature_columns")
    check_other_columns(texts, labels, parameter)
    if roles.blocks:
        features = []
    elif features is None:
        features = [c for c, kind in kinds.items() if c not in {*texts, *labels} and is_number(kind)]
    if texts and features:
        raise ValueError(
            f"a model reads texts or numbers, got text_column {shown(texts)} beside numbers in "
            f"{shown(features)}: text_columns makes blocks of both, feature_columns=[] leaves out the "
            "numbers (as text_column does where `load` or --text-column has it), text_column=[] the text"
        )
    X: Any = _matrix(table, features, "feature_columns") if features else None
    read = {*texts, *labels, *features}
    if roles.blocks:
        X = _blocks(table, roles.blocks, labels, name)
        read.update(column for block in X for column in X.columns.get(block, [block]))
    if tell:
        left_out(name or "the table", [c for c in kinds if c not in read])
    Y, separator = _labels(table, roles, parameter)
    return Dataset(
        X=X,
        Y=Y,
        label_names=None if roles.label_columns is None else labels,
        feature_names=list(features) or None,
        texts=joined_texts({c: table.column(c).to_pylist() for c in texts}, "row {}".format)
        if texts
        else None,
        name=name,
        label_separator=separator,
        text_columns=texts if texts and not roles.text_is_usual else None,
    )


def _labels(table: pa.Table, roles: Roles, parameter: str) -> tuple[Any, str | None]:
    """The labels of a table, and the separator that was found."""
    labels, separator = roles.labels, roles.label_separator
    if roles.label_columns is not None:
        check_names_as_ids(labels, parameter)
        return _matrix(table, labels, parameter), separator
    if not labels:
        return None, separator
    return cut_column(
        table.column(labels[0]).to_pylist(),
        separator,
        column=f"column {labels[0]!r}",
        where=lambda i: f"column {labels[0]!r}, row {i}",
    )


def _blocks(table: pa.Table, roles: BlockRoles, labels: Sequence[str], name: str) -> Blocks:
    """The blocks of a table."""
    types = dict(zip(table.column_names, table.schema.types))
    return read_blocks(
        roles,
        table.column_names,
        lambda column, kind: _cells(table.column(column), exact=kind == CATEGORIES),
        holds_numbers=lambda column: is_number(types[column]),
        used=labels,
        where="row {}".format,
        name=name,
    )


def _cells(column: Any, *, exact: bool) -> Any:
    """The cells of a column: numbers as float64 with NaN for nulls, vectors of one width as a matrix; all as
    they are if `exact`."""
    if exact:
        return column.to_pylist()
    if is_number(column.type):
        return column.cast("float64", safe=False).to_numpy()
    return _as_matrix(column) if _is_list(column.type) else column.to_pylist()


def _as_matrix(column: Any) -> Any:
    """Lists of numbers of one length, without nulls, as an array (n, d); other lists as they are."""
    import pyarrow.compute as pc

    lists = column.combine_chunks()
    values = pc.list_flatten(lists)
    widths = pc.unique(pc.list_value_length(lists))
    if len(widths) != 1 or not widths[0].as_py() or not is_number(values.type) or values.null_count:
        return column.to_pylist()
    return np.asarray(values.cast("float64", safe=False).to_numpy()).reshape(-1, widths[0].as_py())


def read_parquet(
    path: PathLike | IO[bytes],
    *,
    label_columns: Sequence[str] | None = None,
    labels_column: str | None = None,
    text_column: str | Sequence[str] | None = None,
    feature_columns: Sequence[str] | None = None,
    label_separator: str | None = AUTO,
    name: str | None = None,
    text_columns: Names = None,
    vector_columns: Names = None,
    number_columns: Names = None,
    category_columns: Names = None,
) -> Dataset:
    """Read a Parquet file. One written by `to_parquet` is restored; others are read like `from_frame`.

    Without `label_columns` and `labels_column` the column "labels", if present, gives the labels. Without
    `text_column` the columns "title", "text" and "body" that hold text are joined, as in
    `metarank.data.text.read_table`; `text_column=[]` reads none.

    Raises
    ------
    ValueError
        If the file is not Parquet, if its values would take more than 256 MiB and more than a thousand
        times its bytes (see `metarank.data.guard`), if `from_frame` refuses the table, or if it has no
        column of numbers or text. The message names the file.
    """
    if isinstance(path, (str, os.PathLike)):
        path = Path(path)
        name = path.stem if name is None else name
    with damage_named(path if isinstance(path, Path) else name):
        blocks = BlockRoles(text_columns, vector_columns, number_columns, category_columns)
        roles = Roles(
            label_columns, labels_column, text_column, feature_columns, label_separator, blocks=blocks
        )
        return dataset_of_table(read_table(path), roles, name or "")


@contextmanager
def damage_named(path: object) -> Iterator[None]:
    """What a damaged or odd Parquet file makes Arrow raise becomes a ValueError of one line that names it."""
    import pyarrow as pa

    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise of_file(error, path) from None
    except OSError as error:
        if error.errno is not None:  # of the file system, not of what is in the file
            raise
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


def dataset_of_table(table: pa.Table, roles: Roles, name: str = "", *, tell: bool = True) -> Dataset:
    """What `read_parquet` makes of the content of a file, or of some of its row groups."""
    own = (table.schema.metadata or {}).get(METADATA_KEY)
    if own is not None:
        return _restore(table, parse_json(own), name)
    unlabelled = roles.label_columns is None and roles.labels_column is None
    blocks = [c for columns in roles.blocks.among(table.column_names).values() for c in columns or ()]
    if unlabelled and LABELS in table.column_names and LABELS not in (*(roles.texts or ()), *blocks):
        roles = replace(roles, labels_column=LABELS)
    if roles.texts is None and not roles.feature_columns and not roles.blocks:
        used = {*roles.labels, *(roles.feature_columns or ())}
        texts = [c for c in TEXT_COLUMNS if c not in used and _is_text(table, c)]
        numbers = any(is_number(field.type) for field in table.schema if field.name not in used)
        if not (texts or numbers):
            raise ValueError(
                f"no column of numbers or of text was found among {listed(table.column_names)}: "
                "name those of the text with text_column"
            )
        roles = replace(roles, text_column=texts, text_is_usual=True)
    return _dataset(table, roles, name, tell=tell)


def to_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write a `Dataset` so that `read_parquet` restores it.

    Dense X becomes a float column for each feature, sparse X the list columns ``x_indices`` and ``x_values``.
    Of `Blocks`, each is a column ``block:NAME``: texts, lists of numbers, or the two list columns of sparse
    features; numbers and categories are columns ``block:NAME:COLUMN``.
    Labels become the list column ``labels`` of ids, with ``grades`` where they are graded; texts the column
    ``text``, titles the column ``titles``. The file's metadata hold label names, label texts and the table of
    labels. The file is written whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.parquet"
    >>> to_parquet(Dataset([[1, 0], [0, 1]], [["a"], ["a", "b"]], name="toy"), path)
    >>> read_parquet(path)
    Dataset('toy': 2 rows, 2 features (dense), 2 labels, 1.50 labels a row)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    if isinstance(dataset.X, Blocks):
        columns |= _block_columns(dataset.X)
    elif sp.issparse(dataset.X):
        columns[INDICES] = _list_column(dataset.X.indptr, dataset.X.indices)
        columns[VALUES] = _list_column(dataset.X.indptr, dataset.X.data)
    elif dataset.X is not None:
        columns |= {f"x_{j}": pa.array(column) for j, column in enumerate(np.ascontiguousarray(dataset.X.T))}
    columns[LABELS] = _list_column(dataset.Y.indptr, dataset.Y.indices)
    if dataset.is_graded:
        columns[GRADES] = _list_column(dataset.Y.indptr, dataset.Y.data)
    if dataset.texts is not None:
        columns[TEXT] = pa.array(dataset.texts, pa.string())
    if dataset.titles is not None:
        columns[TITLES] = pa.array(dataset.titles, pa.string())
    about: dict[str, Any] = {"version": 1} | {name: getattr(dataset, name) for name in ABOUT.split()}
    if dataset.labels is not None:
        known = dataset.labels.columns()
        vectors = {"vectors": [row.tolist() for row in known["vectors"]]} if "vectors" in known else {}
        about["labels"] = known | vectors
    if isinstance(dataset.X, Blocks):
        about |= {"version": 2, "blocks": _about_blocks(dataset.X)}  # which readers of version 1 do not know
    table = pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(about).encode()})
    with whole_file(path, "wb") as f:
        pq.write_table(table, f)


def _restore(table: pa.Table, about: dict[str, Any], name: str) -> Dataset:
    if about["version"] not in (1, 2):
        raise ValueError(f"the file is of version {about['version']}, this metarank reads versions 1 and 2")
    X: Any = None
    if about.get("blocks"):
        X = _restored_blocks(table, about["blocks"])
    elif INDICES in table.column_names:
        X = _csr(table, INDICES, VALUES, about["n_features"])
    elif about["n_features"]:
        X = _matrix(table, [f"x_{j}" for j in range(about["n_features"])], "the file's features")
    texts, titles = (
        table.column(column).to_pylist() if column in table.column_names else None
        for column in (TEXT, TITLES)
    )
    return Dataset(
        X=X,
        Y=_csr(table, LABELS, GRADES if GRADES in table.column_names else None, about["n_labels"]),
        label_names=about["label_names"],
        feature_names=about["feature_names"],
        label_texts=about["label_texts"],
        texts=texts if X is None else None,
        titles=texts if X is not None and titles is None else titles,  # as earlier versions wrote titles
        name=about["name"] or name,
        label_separator=about.get("label_separator", AUTO),
        label_names_are_ids=bool(about.get("label_names_are_ids", False)),
        labels=LabelDescriptions(**about["labels"]) if "labels" in about else None,
    )


def _block_columns(blocks: Blocks) -> dict[str, Any]:
    """The columns of a file for blocks."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, kind in blocks.kinds.items():
        part, place = blocks[name], f"block:{name}"
        if kind == "text":
            columns[place] = pa.array(part, pa.string())
        elif kind == "vector":
            indptr = np.arange(part.shape[0] + 1) * part.shape[1]
            columns[place] = _list_column(indptr, np.ascontiguousarray(part).ravel())
        elif kind == "sparse":
            columns[f"{place}:{INDICES}"] = _list_column(part.indptr, part.indices)
            columns[f"{place}:{VALUES}"] = _list_column(part.indptr, part.data)
        else:
            type_ = pa.float32() if kind == NUMBERS else pa.string()
            for column, values in zip(blocks.columns[name], part.T):
                columns[f"{place}:{column}"] = pa.array(np.ascontiguousarray(values), type_)
    return columns


def _about_blocks(blocks: Blocks) -> list[dict[str, Any]]:
    """What the metadata of a file say of its blocks."""
    return [
        {"name": name, "kind": kind, "columns": blocks.columns.get(name)}
        | ({"width": int(blocks[name].shape[1])} if kind in ("vector", "sparse") else {})
        for name, kind in blocks.kinds.items()
    ]


def _restored_blocks(table: pa.Table, about: list[dict[str, Any]]) -> Blocks:
    """The blocks of a file; ValueError or KeyError where it lacks one."""
    parts: dict[str, Any] = {}
    for block in about:
        place, kind = f"block:{block['name']}", block["kind"]
        if kind == "text":
            parts[block["name"]] = joined_texts({place: table.column(place).to_pylist()}, "row {}".format)
        elif kind == "vector":
            vectors = _as_matrix(table.column(place))
            parts[block["name"]] = np.asarray(vectors, np.float32).reshape(table.num_rows, block["width"])
        elif kind == "sparse":
            parts[block["name"]] = _csr(table, f"{place}:{INDICES}", f"{place}:{VALUES}", block["width"])
        elif kind == NUMBERS:
            parts[block["name"]] = _matrix(table, [f"{place}:{c}" for c in block["columns"]], place)
        else:
            found = [table.column(f"{place}:{c}").to_pylist() for c in block["columns"]]
            parts[block["name"]] = np.array(found, object).T.reshape(table.num_rows, len(found))
    columns = {block["name"]: block["columns"] for block in about if block["columns"]}
    return Blocks(parts, {block["name"]: block["kind"] for block in about}, columns)


def to_arrow(frame: Any) -> pa.Table:
    """A table of pandas, polars or Arrow as an Arrow table; TypeError for anything else."""
    require_extra("data", "pyarrow")
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
        return pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise TypeError(f"frame must be a pandas, polars or Arrow table, got {type(frame).__name__}")


def _is_text(table: pa.Table, column: str) -> bool:
    import pyarrow.types as types

    if column not in table.column_names:
        return False
    type_ = table.schema.field(column).type
    if types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(types.is_string(type_) or types.is_large_string(type_))


def _is_list(type_: pa.DataType) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_))


def is_number(type_: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds numbers: integers, floats or booleans."""
    import pyarrow.types as types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_))


def _matrix(table: pa.Table, columns: Sequence[str], parameter: str) -> np.ndarray:
    """float32 (n, len(columns)); nulls become NaN, which `Dataset` refuses by row and column."""
    out = np.empty((table.num_rows, len(columns)), np.float32)
    for j, column in enumerate(columns):
        values = table.column(column)
        if not is_number(values.type):
            raise ValueError(f"{parameter} must be numeric or boolean, got {column!r} of type {values.type}")
        out[:, j] = values.cast("float64", safe=False).to_numpy()
    return out


def _list_column(indptr: np.ndarray, values: np.ndarray) -> pa.LargeListArray:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(pa.array(indptr.astype(np.int64)), pa.array(values))


def _csr(table: pa.Table, indices: str, values: str | None, width: int) -> sp.csr_matrix:
    ids = table.column(indices).combine_chunks()
    if ids.null_count or ids.flatten().null_count:
        raise ValueError(f"column {indices!r} must hold lists of ids without nulls")
    indptr = np.concatenate([[0], np.cumsum(ids.value_lengths().to_numpy(zero_copy_only=False))])
    columns = ids.flatten().to_numpy(zero_copy_only=False)
    data = np.ones(len(columns), np.float32)
    if values is not None:
        data = table.column(values).combine_chunks().flatten().to_numpy(zero_copy_only=False)
    if len(data) != len(columns) or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise ValueError(f"column {indices!r} must hold ids in [0, {width}), one for each of {values!r}")
    return sp.csr_matrix((data, columns, indptr.astype(np.int64)), shape=(table.num_rows, width))

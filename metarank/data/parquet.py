"""A `Dataset` as a Parquet file, and back. A file of others is a table, see `metarank.data.frames`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.files import whole_file
from metarank.data.blocks import Blocks
from metarank.data.compressed import PathLike
from metarank.data.dataset import Dataset
from metarank.data.frames import Roles, dataset_of
from metarank.data.tables import of_arrow
from metarank.types.label_descriptions import LabelDescriptions

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"metarank"  # of what a file of `to_parquet` says of itself
_X, _BLOCK, _LABELS = "x", "block:", "labels"
_TEXTS = ("texts", "titles")
_ABOUT = ("name", "label_names", "label_names_are_ids", "label_separator", "feature_names", "label_texts")


def to_parquet(dataset: Dataset, path: PathLike) -> None:
    """Write a `Dataset` so that `metarank.data.load` restores it.

    X is a column of lists of numbers, or, if sparse, two columns of lists: positions and values. The same
    holds for each block of `Blocks`, and for the labels. Texts and titles are columns of text. The file's
    metadata hold names, widths and the table of labels. The file is written whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from metarank import data
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.parquet"
    >>> to_parquet(Dataset([[1, 0], [0, 1]], [["a"], ["a", "b"]], name="toy"), path)
    >>> data.load(path)
    Dataset('toy': 2 rows, 2 features (dense), 2 labels, 1.50 labels per row)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = dataset.X
    parts: dict[str, Any] = {_LABELS: dataset.Y}
    if isinstance(X, Blocks):
        parts |= {f"{_BLOCK}{name}": part for name, part in X.items()}
    elif X is not None:
        parts[_X] = X
    parts |= {name: getattr(dataset, name) for name in _TEXTS if getattr(dataset, name) is not None}
    about: dict[str, Any] = {"version": 0} | {name: getattr(dataset, name) for name in _ABOUT}
    about["widths"] = {name: part.shape[1] for name, part in parts.items() if not isinstance(part, list)}
    if isinstance(X, Blocks):
        about["blocks"] = {"kinds": X.kinds, "columns": X.columns}
    if dataset.labels is not None:
        known = dataset.labels.columns()
        vectors = {"vectors": [row.tolist() for row in known["vectors"]]} if "vectors" in known else {}
        about["labels"] = known | vectors
    columns = {column: cells for name, part in parts.items() for column, cells in _columns_of(name, part)}
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about).encode()})
    with whole_file(path, "wb") as f:
        pq.write_table(table, f)


def dataset_of_arrow(table: pa.Table, roles: Roles, name: str, path: str, *, tell: bool = True) -> Dataset:
    """What a file of Parquet holds, or some of its row groups: a data set that was written, or a table."""
    written = (table.schema.metadata or {}).get(_KEY)
    if written is None:
        return dataset_of(of_arrow(table, path), roles, name, usual=True, tell=tell)
    about = json.loads(written)
    if about["version"] != 0:
        raise ValueError(f"the file is of version {about['version']}, this metarank reads version 0")
    parts = {part: _part_of(table, part, width) for part, width in about["widths"].items()}
    texts = {part: table.column(part).to_pylist() for part in table.column_names if part in _TEXTS}
    X = parts.get(_X)
    if "blocks" in about:
        given = {name: f"{_BLOCK}{name}" for name in about["blocks"]["kinds"]}
        X = Blocks(
            {name: parts[at] if at in parts else table.column(at).to_pylist() for name, at in given.items()},
            **about["blocks"],
        )
    return Dataset(
        X=X,
        Y=parts[_LABELS],
        **{field: about[field] for field in _ABOUT} | {"name": about["name"] or name},
        **texts,
        labels=LabelDescriptions(**about["labels"]) if "labels" in about else None,
    )


def _columns_of(name: str, part: Any) -> list[tuple[str, Any]]:
    """The columns of a file for texts or a matrix."""
    import pyarrow as pa

    def lists(indptr: np.ndarray, values: np.ndarray) -> Any:
        type_ = pa.string() if values.dtype == object else None
        return pa.LargeListArray.from_arrays(pa.array(indptr.astype(np.int64)), pa.array(values, type_))

    if isinstance(part, list):
        return [(name, pa.array(part, pa.string()))]
    if sp.issparse(part):
        return [
            (f"{name}:ids", lists(part.indptr, part.indices)),
            (f"{name}:values", lists(part.indptr, part.data)),
        ]
    return [(name, lists(np.arange(part.shape[0] + 1) * part.shape[1], np.ascontiguousarray(part).ravel()))]


def _part_of(table: pa.Table, name: str, width: int) -> Any:
    """The matrix of the columns of a file."""
    shape = (table.num_rows, width)
    if name in table.column_names:
        return _values(table, name).reshape(shape)
    ids, values = _values(table, f"{name}:ids"), _values(table, f"{name}:values")
    lengths = table.column(f"{name}:ids").combine_chunks().value_lengths()
    indptr = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int64)
    out = sp.csr_matrix((values, ids, indptr), shape=shape)
    out.check_format(full_check=True)
    return out


def _values(table: pa.Table, name: str) -> np.ndarray:
    """The values of a column of lists, one after the other."""
    return np.asarray(table.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False))

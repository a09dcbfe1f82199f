"""`InstanceReader`: instances of requests, as the rows that a model takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from fastapi import HTTPException
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from metarank.apps.serve.schema import refusal
from metarank.data.block_encoder import BlocksEncoder, EncodedBlock, needed_blocks
from metarank.model.estimator import MetaRanker
from metarank.types.block_columns import CATEGORIES, NUMBERS

Rows: TypeAlias = "list[str] | np.ndarray | sp.csr_matrix | dict[str, Any]"

_LARGEST = float(np.finfo(np.float32).max)
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)]


class InstanceReader:
    """What a model takes, and how instances in JSON become that.

    A model of texts takes a text; a model of features an object {feature: value} or a list of numbers; a
    model of blocks an object {block: value}, in which numbers and categories go by the names of their
    columns.

    Parameters
    ----------
    model : fitted MetaRanker
    """

    def __init__(self, model: MetaRanker) -> None:
        encoder = model.encoder_
        self.n_features: int = model.n_features_in_
        self.feature_names: list[str] | None = encoder.names or encoder.words
        self._columns = {name: j for j, name in reversed(list(enumerate(self.feature_names or [])))}
        self.blocks: dict[str, EncodedBlock] = _by_key(needed_blocks(encoder))
        self.kind: Literal["text", "features", "blocks"] = "features"
        expected: Any = _vector_of(self.n_features)
        if encoder.takes_texts:
            self.kind, expected = "text", str
        elif isinstance(encoder, BlocksEncoder):
            known = _by_key([part for part in encoder.parts if not part.is_joint])
            # By aliases: a block may have any name, an attribute of a model may not.
            fields: dict[str, Any] = {
                f"block_{i}": (_type_of(part), Field(... if key in self.blocks else None, alias=key))
                for i, (key, part) in enumerate(known.items())
            }
            self.kind, strict = "blocks", ConfigDict(extra="forbid", strict=True)
            expected = create_model("Instance", __config__=strict, **fields)
        self._dense: TypeAdapter[Any] = TypeAdapter(expected)
        self._sparse: TypeAdapter[Any] = TypeAdapter(dict[str, _Number])

    def read(self, instances: Sequence[Any], field: str) -> Rows:
        """The instances of a request, from its `field` "instance" or "instances".

        Raises
        ------
        HTTPException
            422 where an instance is not of the model's kind or width, has a feature that the model does not
            know, or a number that is NaN, infinite or too large for 32 bits.
        """
        is_sparse = self.kind == "features" and isinstance(instances[0], dict)
        for i, instance in enumerate(instances):
            try:
                (self._sparse if is_sparse else self._dense).validate_python(instance, strict=True)
            except ValidationError as error:
                raise refusal(error, [field, i] if field == "instances" else [field]) from None
        if is_sparse:
            return _sparse_rows(instances, self.n_features, self._columns, field)
        if self.kind == "features":
            return np.array(instances, np.float64)
        if self.kind == "text":
            return list(instances)
        return {key: self._block(key, [row[key] for row in instances], field) for key in self.blocks}

    def _block(self, key: str, values: list[Any], field: str) -> Any:
        part = self.blocks[key]
        if part.kind == "sparse":
            return _sparse_rows(values, part.encoder.n_features, {}, f"{field}[{key!r}]")
        return np.array(values, np.float32) if part.kind == "vector" else values


def _by_key(parts: Sequence[EncodedBlock]) -> dict[str, EncodedBlock]:
    """Blocks by the keys of an instance: their names, or those of their columns."""
    return {key: part for part in parts for key in part.columns or [part.name]}


def _vector_of(width: int) -> Any:
    return Annotated[list[_Number], Field(min_length=width, max_length=width)]


def _type_of(part: EncodedBlock) -> Any:
    """The type of a value of a block."""
    if part.kind == "vector":
        return _vector_of(part.encoder.n_features)
    if part.kind == "sparse":
        return dict[str, _Number]
    types: Mapping[str, Any] = {
        NUMBERS: _Number | None,
        CATEGORIES: Annotated[Any, AfterValidator(_category)],
    }
    return types.get(part.kind, str | None)


def _category(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise ValueError("must be a text or an integer, or null")
    return value


def _sparse_rows(
    instances: Sequence[dict[str, float]], width: int, names: Mapping[str, int], field: str
) -> sp.csr_matrix:
    """Rows of objects {feature: value}, whose keys are names of features or numbers of columns."""
    columns: list[int] = []
    indptr = [0]
    for values in instances:
        row = [_column_of(key, width, names, field) for key in values]
        if len(set(row)) < len(row):
            raise HTTPException(422, f"{field} must name each feature once")
        columns += row
        indptr.append(len(columns))
    data = np.array([value for values in instances for value in values.values()], np.float64)
    rows = sp.csr_matrix((data, np.array(columns, np.int32), indptr), shape=(len(instances), width))
    rows.sort_indices()
    return rows


def _column_of(key: str, width: int, names: Mapping[str, int], field: str) -> int:
    if key in names:
        return names[key]
    if key.isascii() and key.isdigit() and len(key) < 12 and int(key) < width:
        return int(key)
    known = "names of features" if names else f"numbers of features in [0, {width})"
    raise HTTPException(422, f"{field} must have {known} for keys, got {key[:60]!r}")

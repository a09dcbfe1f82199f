"""`BlockReader`: instances in JSON, objects of block name and value, as the `Blocks` that a model takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.apps.serve.errors import invalid
from metarank.data.block_encoder import EncodedBlock
from metarank.types.blocks import CATEGORIES, NUMBERS, Blocks, category_of

_LARGEST = float(np.finfo(np.float32).max)
# What a value of a block is, for messages.
_RULES = {
    "text": "a text, or null",
    "vector": "a list of numbers",
    "sparse": "an object {number of a feature: value}",
    NUMBERS: "a number, or null",
    CATEGORIES: "a text or an integer, or null",
}


class BlockReader:
    """What a model of blocks takes.

    A block of texts, of vectors or of sparse features is a value under the block's name; numbers and
    categories are a value under the name of each of their columns, or a list of them under the block's.

    Parameters
    ----------
    parts : sequence of EncodedBlock
        The blocks that a row must have.
    optional : sequence of EncodedBlock
        Blocks that the model knows and does not use: they are checked where they are given.
    max_text : int
        Characters of a text at most.
    """

    def __init__(
        self, parts: Sequence[EncodedBlock], optional: Sequence[EncodedBlock], max_text: int
    ) -> None:
        self.parts: list[EncodedBlock] = list(parts)
        self.known: list[EncodedBlock] = [*parts, *optional]
        self.max_text = max_text
        self.kinds: dict[str, str] = _kinds(parts)
        self.optional: dict[str, str] = _kinds(optional)

    def read(self, instances: Sequence[Any], field: str) -> Blocks:
        """The instances of a request.

        Raises
        ------
        Refused
            422 where an instance is no object, lacks a block or has one more, or a value is not of the
            block's kind, too long, of another width, or too large for 32 bits.
        """
        rows: list[dict[str, Any]] = []
        for i, given in enumerate(instances):
            where = f"{field}[{i}]" if field == "instances" else field
            instance = self._by_column(given) if isinstance(given, dict) else given
            rows.append(instance)
            if not isinstance(instance, dict):
                known = ", ".join(self.kinds)
                raise invalid(field, f"{where} must be an object with the blocks of this model: {known}")
            for name, value in instance.items():
                if name not in self.kinds and name not in self.optional:
                    known = ", ".join(self.kinds)
                    raise invalid(field, f"{where} must have no block but {known}, got {name[:60]!r}")
                self._check(name, value, f"{where}[{name[:60]!r}]", field)
            for name in self.kinds:
                if name not in instance:
                    raise invalid(field, f"{where} must have the block {name!r}")
        parts = {part.name: self._joined(part, rows) for part in self.parts}
        columns = {part.name: part.columns for part in self.parts if part.kind in (NUMBERS, CATEGORIES)}
        return Blocks(parts, {part.name: part.kind for part in self.parts}, columns)

    def _by_column(self, instance: dict[str, Any]) -> dict[str, Any]:
        """Numbers and categories that a list gives under the name of their block, each under its own."""
        for part in self.known:
            values = instance.get(part.name)
            several = part.kind in (NUMBERS, CATEGORIES)
            if several and isinstance(values, list) and len(values) == len(part.columns):
                rest = {name: value for name, value in instance.items() if name != part.name}
                instance = rest | dict(zip(part.columns, values))
        return instance

    def _check(self, name: str, value: Any, where: str, field: str) -> None:
        """Refuses a value that is not of its block's kind, too long or too large."""
        kind = self.kinds.get(name) or self.optional[name]
        numbers: list[Any] = []
        if kind in ("vector", "sparse"):
            fits = isinstance(value, list if kind == "vector" else dict)
            numbers = (value if kind == "vector" else list(value.values())) if fits else []
            fits = fits and all(isinstance(number, int | float) for number in numbers)
        elif kind == NUMBERS:
            numbers = [] if value is None else [value]
            fits = value is None or isinstance(value, int | float)
        elif kind == CATEGORIES:
            fits = value is None or isinstance(value, str | int)
            fits = fits or (isinstance(value, float) and value.is_integer())
        else:
            fits = value is None or isinstance(value, str)
        if not fits:
            raise invalid(field, f"{where} must be {_RULES[kind]}, since the block is one of {kind}")
        if any(not abs(number) <= _LARGEST for number in numbers):
            raise invalid(field, f"{where} must hold finite numbers of at most {_LARGEST:.1e}")
        if isinstance(value, str) and len(value) > self.max_text:
            raise invalid(field, f"{where} must have at most {self.max_text} characters, got {len(value)}")
        width = next((part.encoder.n_features for part in self.known if part.name == name), 0)
        if kind == "vector" and len(value) != width:
            raise invalid(field, f"{where} must have {width} values, got {len(value)}")
        if kind == "sparse" and not all(_is_id(key, width) for key in value):
            raise invalid(field, f"{where} must have numbers of features in [0, {width}) for keys")
        if kind == "sparse" and len(set(map(int, value))) < len(value):
            raise invalid(field, f"{where} must name each feature once")

    def _joined(self, part: EncodedBlock, instances: Sequence[dict[str, Any]]) -> Any:
        """The values of a block, one a row."""
        if part.kind in (NUMBERS, CATEGORIES):
            of: Callable[[Any], Any] = _number if part.kind == NUMBERS else category_of
            rows = [[of(instance[column]) for column in part.columns] for instance in instances]
            return np.array(rows, np.float32 if part.kind == NUMBERS else object)
        values = [instance[part.name] for instance in instances]
        if part.kind == "vector":
            return np.array(values, np.float32)
        if part.kind != "sparse":
            return [value or "" for value in values]
        indptr = np.cumsum([0, *map(len, values)])
        indices = np.array([int(key) for row in values for key in row], np.int32)
        data = np.array([value for row in values for value in row.values()], np.float32)
        out = sp.csr_matrix((data, indices, indptr), shape=(len(values), part.encoder.n_features))
        out.sort_indices()
        return out


def _kinds(parts: Sequence[EncodedBlock]) -> dict[str, str]:
    """The kind of each key of an instance."""
    return {
        name: part.kind
        for part in parts
        for name in (part.columns if part.kind in (NUMBERS, CATEGORIES) else [part.name])
    }


def _is_id(key: str, n: int) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 12 and int(key) < n


def _number(value: float | None) -> float:
    return np.nan if value is None else value

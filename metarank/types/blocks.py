"""`Blocks`: the parts of an instance (texts, vectors, numbers, categories, sparse features), by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.json import first_repeated
from metarank._util.languages import check_language
from metarank.types.checks import check_features, check_writable
from metarank.types.containers import (
    as_list,
    is_missing,
    is_number_type,
    library_of,
    table_columns,
    type_name,
)

KINDS = ("text", "vector", "numbers", "categories", "sparse")
# The block of all columns of numbers of a table, and that of its categories.
NUMBERS, CATEGORIES = "numbers", "categories"

_WORD = re.compile(r"\w\w")
# Texts as which a column of whole numbers is written where some are missing, and truth values by polars.
_WHOLE, _TRUTH = re.compile(r"(0|-?[1-9][0-9]*)\.0+"), {"true": "True", "false": "False"}
# A column of texts holds categories if so few values, of so few words, repeat in so many rows.
_MOST_CATEGORIES, _LEAST_REPEATS, _MOST_WORDS = 100, 10, 3


@dataclass(frozen=True)
class Block:
    """What a block is, where "auto" would take it for something else.

    Parameters
    ----------
    kind : "auto", "text", "vector", "numbers", "categories" or "sparse"
    language : str or None
        The language of a text block, "en" or "english": its words are stemmed, and stop words left out; see
        `metarank.data.vectorizer.TextVectorizer`.

    Examples
    --------
    >>> Block("text")
    Block(kind='text', language=None)
    """

    kind: str = "auto"
    language: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("auto", *KINDS):
            raise ValueError(f"kind must be 'auto' or one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.language is not None and self.kind not in ("auto", "text"):
            raise ValueError(f"language is of blocks of text, got {self.language!r} for {self.kind!r}")
        check_language(self.language, auto=False)


def check_blocks(blocks: Any) -> dict[str, Block | None]:
    """The parameter `blocks` of a model as a dict of names to `Block`, None for a block to be left out.

    Raises
    ------
    TypeError, ValueError
        If it is neither "auto" nor a dict of names to kinds, `Block` objects or None.
    """
    if isinstance(blocks, str) and blocks == "auto":
        return {}
    if not isinstance(blocks, Mapping):
        raise TypeError(f"blocks must be 'auto' or a dict of names to kinds, got {blocks!r:.80}")
    out: dict[str, Block | None] = {}
    for name, wanted in blocks.items():
        if not isinstance(name, str):
            raise TypeError(f"blocks must have texts as names, got {name!r:.80}")
        if wanted is not None and not isinstance(wanted, (str, Block)):
            raise TypeError(f"blocks must hold kinds, Block objects or None, got {wanted!r:.80} for {name!r}")
        try:
            out[name] = Block(wanted) if isinstance(wanted, str) else wanted
        except ValueError as error:
            raise ValueError(f"blocks: {error} for {name!r}") from None
    return out


class Blocks(Mapping[str, Any]):
    """Named parts of n instances, each with one entry a row.

    Parameters
    ----------
    parts : mapping of name to data
        Data by kind: "text": list of n str; "vector": float32 array (n, d); "numbers": float32 array (n, d),
        NaN where a number is missing; "categories": object array (n, d) of str, None where missing; "sparse":
        float32 CSR (n, d). See `Blocks.of`, which makes them from what users have.
    kinds : mapping of name to one of `KINDS`
    columns : mapping of name to list of str
        Names of the columns of blocks of numbers and categories.

    Attributes
    ----------
    left_out : list of str
        Blocks or columns that `of` was told to leave out.

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
        self.kinds: dict[str, str] = dict(kinds)
        self.columns: dict[str, list[str]] = {name: list(of) for name, of in (columns or {}).items()}
        self.left_out: list[str] = []
        self.n_rows: int = _equal_length(self.parts)

    @classmethod
    def of(cls, X: Any, wanted: Mapping[str, Block | None] | None = None) -> Blocks:
        """Blocks from a dict of names to data, or from a table whose columns are typed.

        Parameters
        ----------
        X : dict or table of pandas, polars or Arrow
            Entries of a dict: a list or column of n texts; a vector of n numbers; an array, table or sparse
            matrix (n, d). Of a table, a column of texts is a block, and so is a column of lists of numbers
            (a vector); all columns of numbers are the block "numbers", all categories "categories".
        wanted : dict of name to `Block` or None
            What blocks, or columns of a table, are where this rule errs; None leaves one out. A column for
            which it is given is a block of its own.

        Notes
        -----
        A dense array (n, d) in a dict is a vector, one column is a number. Texts are categories if at most
        100 different values of at most three words occur ten times each on average, if none has a word of two
        letters, or if the type of the column says so.

        Raises
        ------
        ValueError, TypeError
            If blocks have different numbers of rows, a value is infinite, a vector holds NaN, or a block is
            none of these kinds. The message names the block.
        """
        if isinstance(X, Blocks):
            return X.chosen(wanted or {})
        wanted = wanted or {}
        is_dict = isinstance(X, Mapping)
        library_of(X, "X")
        given = dict(X) if is_dict else _columns_by_name(X)
        if given is None:
            raise TypeError(f"X must be a dict of blocks or a data frame, got {type(X).__name__}")
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"X must have blocks with texts as names, got {name!r:.80}")
            check_writable(name, "the names of blocks in X")
        unknown = [name for name in wanted if name not in given and name not in (NUMBERS, CATEGORIES)]
        if unknown:
            raise ValueError(f"blocks must be among those of X, {', '.join(given)}, got {unknown[0]!r}")
        if not given:
            raise ValueError("X must have at least one block, got none")
        out = _from_dict(given, wanted) if is_dict else _from_table(given, wanted)
        if not out.parts:
            raise ValueError("blocks must leave at least one block of X, it leaves none")
        used = {*out.parts, *(name for of in out.columns.values() for name in of)}
        out.left_out = [name for name in given if name not in used]
        return out

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
        kinds : mapping of name to kind
        columns : mapping of name to list of str
            The columns of blocks of numbers and categories.
        optional : collection of str
            Blocks and columns that may be missing. Those of `kinds` are read where they are given.

        Raises
        ------
        ValueError, TypeError
            If a block or column is missing, there is one more, or one does not suit its kind.
        """
        if isinstance(X, Blocks):
            return X._as(kinds, columns, optional)
        given = dict(X) if isinstance(X, Mapping) else _columns_by_name(X)
        if not given:
            raise TypeError(
                f"X must be a dict of the blocks {', '.join(kinds)}, or a data frame, as in fit; got "
                f"{type(X).__name__}"
            )
        parts: dict[str, Any] = {}
        read: set[str] = set(optional)
        for name, kind in kinds.items():
            wanted = list(columns.get(name, ()))
            if name in optional and not any(given_name in given for given_name in (name, *wanted)):
                continue
            if name in given or not wanted:
                read.add(name)
                parts[name], named = _part(name, _entry(given, name, "block"), kind)
                if hasattr(given[name], "columns") and kind in (NUMBERS, CATEGORIES):
                    _check_columns(name, named, wanted)
            else:
                read.update(wanted)
                found = [_part(column, _entry(given, column, "column"), kind)[0] for column in wanted]
                parts[name] = np.concatenate(found, axis=1)
        _check_no_more(given, read, kinds)
        return cls(parts, {name: kinds[name] for name in parts}, columns)

    def _as(
        self, kinds: Mapping[str, str], columns: Mapping[str, Sequence[str]], optional: Collection[str]
    ) -> Blocks:
        """These blocks, if they are those of a model."""
        used = [name for name in kinds if name in self.parts or name not in optional]
        for name in used:
            _entry(self.parts, name, "block")
            if self.kinds[name] != kinds[name]:
                # A column of texts may look like categories where rows are few, and the reverse.
                return Blocks.like(dict(self._plain()), kinds, columns, optional)
            _check_columns(name, self.columns.get(name, ()), columns.get(name, ()))
        _check_no_more(self.parts, {*kinds, *optional}, kinds)
        return self.only(used)

    def _plain(self) -> Iterator[tuple[str, Any]]:
        """Names and data, categories of one column as a list."""
        for name, part in self.parts.items():
            yield name, part[:, 0].tolist() if self.kinds[name] == CATEGORIES else part

    def chosen(self, wanted: Mapping[str, Block | None]) -> Blocks:
        """Without the blocks for which `wanted` has None; ValueError if it asks for another kind."""
        for name, block in wanted.items():
            if name not in self.parts:
                raise ValueError(f"blocks must be among those of X, {', '.join(self.parts)}, got {name!r}")
            if block is not None and block.kind not in ("auto", self.kinds[name]):
                raise ValueError(
                    f"blocks: {name!r} was read as {self.kinds[name]}, and cannot be {block.kind!r}"
                )
        kept = [name for name in self.parts if wanted.get(name, _ANY) is not None]
        if len(kept) == len(self.parts):
            return self
        out = self.only(kept)
        out.left_out = [name for name in self.parts if name not in kept]
        return out

    def only(self, names: Sequence[str]) -> Blocks:
        """Some of the blocks, in the order of `names`."""
        return Blocks(
            {name: self.parts[name] for name in names},
            {name: self.kinds[name] for name in names},
            {name: self.columns[name] for name in names if name in self.columns},
        )

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
    def first_texts(self) -> list[str] | None:
        """The first block of texts, which names rows for display."""
        names = self.text_names
        return self.parts[names[0]] if names else None

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


_ANY = Block()


def _columns_by_name(table: Any) -> dict[str, Any] | None:
    """The columns of a table; None of anything else. ValueError if two of them share a name."""
    columns = table_columns(table)
    twice = None if columns is None else first_repeated([name for name, _ in columns])
    if twice is not None:
        raise ValueError(f"X must have columns with names of their own, {twice!r} occurs twice")
    return None if columns is None else dict(columns)


def _entry(given: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in given:
        raise ValueError(f"X must have the {what} {name!r}, as in fit; it has {', '.join(given)}")
    return given[name]


def _check_columns(name: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    if list(found) != list(wanted):
        raise ValueError(
            f"the block {name!r} of X must have the columns {', '.join(wanted)}, as in fit; got "
            f"{', '.join(found)}"
        )


def _check_no_more(given: Iterable[str], read: Collection[str], kinds: Iterable[str]) -> None:
    more = [name for name in given if name not in read]
    if more:
        raise ValueError(
            f"X must have no other block than in fit ({', '.join(kinds)}), got {more[0]!r}: leave it out"
        )


def holds_blocks(X: Any) -> bool:
    """Whether X is `Blocks`, a dict, or a data frame with a column that is not of numbers."""
    if isinstance(X, np.ndarray) or sp.issparse(X):  # a sparse matrix may be a dict too
        return False
    if isinstance(X, (Blocks, Mapping)):
        return True
    columns = table_columns(X)
    return any(not (is_number_type(c) or _holds_numbers(c)) for _, c in columns or ())


def _holds_numbers(column: Any) -> bool:
    """Whether a column of any Python objects holds numbers alone."""
    return type_name(column) == "object" and all(
        is_missing(v) or isinstance(v, (int, float, np.number, np.bool_)) or _is_decimal(v) for v in column
    )


def _equal_length(parts: Mapping[str, Any]) -> int:
    """The number of rows that all parts have."""
    lengths = {name: part.shape[0] if hasattr(part, "shape") else len(part) for name, part in parts.items()}
    for (first, n_first), (name, n) in pairwise(lengths.items()):
        if n != n_first:
            raise ValueError(
                f"the blocks of X must have one entry a row: {first!r} has {n_first}, {name!r} has {n}"
            )
    return int(next(iter(lengths.values()), 0))


def _from_dict(given: Mapping[str, Any], wanted: Mapping[str, Block | None]) -> Blocks:
    parts: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    for name, data in given.items():
        if wanted.get(name, _ANY) is None:
            continue
        kind = getattr(wanted.get(name), "kind", "auto")
        kinds[name] = kind if kind != "auto" else _kind_of(name, data)
        parts[name], named = _part(name, data, kinds[name])
        if named:
            columns[name] = named
    return Blocks(parts, kinds, columns)


def _from_table(given: Mapping[str, Any], wanted: Mapping[str, Block | None]) -> Blocks:
    """Columns that stand together in a block come where the first of them stands."""
    groups: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for name, column in given.items():
        block = wanted.get(name, _ANY)
        if block is None:
            continue
        kind = block.kind if block.kind != "auto" else _kind_of(name, column)
        own = name in wanted or kind not in (NUMBERS, CATEGORIES)
        group = name if own else kind
        if wanted.get(group, _ANY) is None:
            continue
        if not own and group in given:
            raise ValueError(f"X must have no column {group!r} that is not of {group}: rename it")
        groups.setdefault(group, []).append(name)
        kinds[group] = kind
    parts: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    for group, names in groups.items():
        found = [_part(name, given[name], kinds[group])[0] for name in names]
        parts[group] = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        if kinds[group] in (NUMBERS, CATEGORIES):
            columns[group] = names
    return Blocks(parts, kinds, columns)


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
    found = next((v for v in values if not is_missing(v)), None)
    if isinstance(found, str):
        return CATEGORIES if _are_categories(values) else "text"
    if isinstance(found, (list, tuple, np.ndarray)):
        return "vector"
    if found is None or isinstance(found, (bool, int, float, np.number, np.bool_)) or _is_decimal(found):
        return NUMBERS
    raise TypeError(
        f"the block {name!r} of X must hold texts, numbers, vectors or categories, got "
        f"{type(found).__name__}: leave it out with blocks={{{name!r}: None}}"
    )


def _are_categories(values: Sequence[Any]) -> bool:
    different = {v for v in values if isinstance(v, str)}
    if not any(_WORD.search(v) for v in different):
        return True
    few = len(different) <= min(_MOST_CATEGORIES, len(values) // _LEAST_REPEATS)
    return few and all(len(v.split()) <= _MOST_WORDS for v in different)


def _part(name: str, data: Any, kind: str) -> tuple[Any, list[str]]:
    """The data of a block in the form of its kind, and the names of its columns."""
    called = f"the block {name!r} of X"
    if kind == "text":
        return _texts(called, data), []
    _check_rows(called, data)
    if kind == CATEGORIES:
        categories = _categories(called, data)
        return categories, _column_names(name, data, categories.shape[1])
    if kind == "sparse":
        return check_features(data, layout="sparse", min_rows=0, name=called), []
    if kind == NUMBERS:
        values = data
        if not hasattr(data, "columns") and getattr(data, "ndim", 1) == 1:
            values = np.array([np.nan if is_missing(v) else v for v in as_list(data)], object)
            if values.ndim == 1:
                several = next(
                    (i for i, v in enumerate(values) if isinstance(v, (list, tuple, np.ndarray))), None
                )
                if several is not None:
                    got = f"{values[several]!r:.80} at row {several}"
                    raise ValueError(f"{called} must hold a number a row, or as many in each, got {got}")
                text = next((i for i, v in enumerate(values) if isinstance(v, str)), None)
                if text is not None:
                    raise ValueError(
                        f"{called} must hold numbers, got text, {values[text]!r:.80} at row {text}; "
                        f"blocks={{{name!r}: 'categories'}} takes both"
                    )
                values = values.reshape(-1, 1)
        numbers = check_features(values, layout="dense", min_rows=0, name=called, allow_nan=True)
        return numbers, _column_names(name, data, numbers.shape[1])
    if getattr(data, "ndim", 1) == 1 and not sp.issparse(data):
        data = as_list(data)
        none = next((i for i, v in enumerate(data) if not hasattr(v, "__len__") or isinstance(v, str)), None)
        if none is not None:
            raise ValueError(f"{called} must hold a vector a row, got {data[none]!r:.80} at row {none}")
        other = next((i for i, v in enumerate(data) if len(v) != len(data[0])), None)
        if other is not None:
            raise ValueError(
                f"{called} must hold vectors of one width, got {len(data[0])} numbers at row 0 and "
                f"{len(data[other])} at row {other}"
            )
        data = np.array([list(v) for v in data], object) if data else np.zeros((0, 1))
    hint = f"numbers that may be missing are no vector: blocks={{{name!r}: 'numbers'}}"
    return check_features(data, layout="dense", min_rows=0, name=called, nan_hint=hint), []


def _check_rows(called: str, data: Any) -> None:
    """TypeError unless it has an entry a row."""
    flat = hasattr(data, "__len__") and not isinstance(data, (str, bytes, Mapping, Set))
    if not flat or getattr(data, "ndim", 1) == 0:
        raise TypeError(f"{called} must hold one entry a row, got {data!r:.80}")
    if getattr(data, "ndim", 1) > 2:
        raise ValueError(f"{called} must have shape (n, d), got {data.shape}")


def _column_names(name: str, data: Any, n: int) -> list[str]:
    """Names of the n columns of a block of numbers or categories."""
    of_table = table_columns(data)
    if of_table is not None:
        return [column for column, _ in of_table]
    return [name] if n == 1 and getattr(data, "ndim", 1) == 1 else [f"{name} {j}" for j in range(n)]


def _texts(called: str, data: Any) -> list[str]:
    out = []
    values = as_list(data)
    if isinstance(values, str):
        raise TypeError(f"{called} must be a list of texts, not one text: pass [{values[:40]!r}]")
    for row, text in enumerate(values):
        if is_missing(text):
            text = ""
        if not isinstance(text, str):
            raise TypeError(f"{called} must hold a text a row, got {text!r:.80} at row {row}")
        out.append(text)
    return out


def _categories(called: str, data: Any) -> np.ndarray:
    """Object array (n, d) of str; None where nothing is there."""
    given = table_columns(data) if hasattr(data, "columns") else None
    if given is not None:
        columns = [as_list(column) for _, column in given]
    elif getattr(data, "ndim", 1) == 2:
        columns = [list(column) for column in np.asarray(data, object).T]
    else:
        columns = [as_list(data)]
    out = np.empty((len(columns[0]) if columns else 0, len(columns)), object)
    for j, values in enumerate(columns):
        for i, value in enumerate(values):
            try:
                out[i, j] = category_of(value)
            except TypeError as error:
                raise TypeError(f"{called} must hold {error} at row {i}") from None
    return out


def category_of(value: Any) -> str | None:
    """The category in a cell; None where nothing is there.

    A whole number is the same category however it is stored, and so is a truth value, which is no number.

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
        whole = _WHOLE.fullmatch(text)
        return whole[1] if whole else _TRUTH.get(text, text or None)
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return str(value)
    if (isinstance(value, (float, np.floating)) or _is_decimal(value)) and float(value).is_integer():
        return str(int(value))
    raise TypeError(f"texts or integers, got {value!r:.80}")


def _is_decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"

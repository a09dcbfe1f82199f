"""`BlocksEncoder`: the blocks of an instance become one matrix, each on a scale of its own.

A block of texts is encoded as a model of texts alone encodes them, a block of sparse features likewise. Of
several blocks of texts, "title" and "body", one more block, "title + body", has the words of all of them,
since a word says much the same wherever it stands. With an encoder of texts, the block "meaning" has the
vectors of all texts of a row. The rows of every block have unit length on average, times the weight of the
block, which a fit learns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank._util.modules import outside
from metarank.data.blocks import Blocks, holds_blocks
from metarank.data.dataset import Dataset
from metarank.data.encoder import InputEncoder, texts_of
from metarank.data.meaning import Encoder
from metarank.data.scaling import FeatureTransform, inverse_spread
from metarank.data.tables import logger
from metarank.data.vectorizer import TextVectorizer, count_terms
from metarank.persist.fields import Array, Declared, Ids, Known, List, Number, Object, Strings, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.block_columns import CATEGORIES, KINDS, NUMBERS, BlockColumns, side_by_side
from metarank.types.candidates import canonical_csr
from metarank.types.checks import Layout
from metarank.types.containers import table_columns
from metarank.types.view import Features

# Between the names of text fields, in the name of the block of all their words.
_JOIN = " + "
# The block of the vectors that an encoder gives to the texts of a row, which it reads one below the other.
MEANING, _BELOW = "meaning", "\n"
# A weight that a saved model may have.
_MOST_WEIGHT = 1e6
# A warning of unknown categories is given from so many rows.
_MANY_ROWS = 10


class NumbersEncoder(Saved):
    """Columns of numbers, each with mean 0 and variance 1, and a 1 where a number is missing.

    A missing number is the mean. Columns that had none in training have no flag of their own.

    Attributes
    ----------
    mean, scale : float32 array (d,)
    missing : int32 array
        Columns with a flag, ascending; the flags follow the numbers.

    Examples
    --------
    >>> NumbersEncoder().fit_encode(np.float32([[1, 5], [3, np.nan]]))
    array([[-1.,  0.,  0.],
           [ 1.,  0.,  1.]], dtype=float32)
    """

    mean: Annotated[np.ndarray, Array("", np.float32, ("columns",))]
    scale: Annotated[np.ndarray, Array("", np.float32, ("columns",), above=0)]
    missing: Annotated[np.ndarray, Ids("", np.int32, below="columns", ascending=True)]

    @property
    def n_features(self) -> int:
        return len(self.mean) + len(self.missing)

    def fit_encode(self, X: np.ndarray) -> np.ndarray:
        """Learn means and spreads of float32 X (n, d), NaN where a number is missing; return the features."""
        known = ~np.isnan(X)
        n = np.maximum(known.sum(axis=0), 1)
        values = np.where(known, X, 0).astype(np.float64)
        mean = values.sum(axis=0) / n
        spread = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(axis=0) / n)
        self.mean = mean.astype(np.float32)
        self.scale = inverse_spread(spread, values).astype(np.float32)
        self.missing = np.flatnonzero(~known.all(axis=0)).astype(np.int32)
        return self.encode(X)

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Features of new rows, float32 (n, d + flags)."""
        unknown = np.isnan(X)
        with np.errstate(over="ignore"):
            numbers = np.where(unknown, np.float32(0), (X - self.mean) * self.scale)
        return np.concatenate([numbers, unknown[:, self.missing].astype(np.float32)], axis=1)


class CategoriesEncoder(Saved):
    """A 1 for each category of a row; categories that `fit` did not meet have none.

    Attributes
    ----------
    categories : list of list of str
        The known categories of each column, in code point order.

    Examples
    --------
    >>> encoder = CategoriesEncoder()
    >>> encoder.fit_encode(np.array([["red"], ["blue"]], object)).toarray()
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """

    categories: Annotated[list[list[str]], List("", Strings(""))]

    @property
    def n_features(self) -> int:
        return sum(map(len, self.categories))

    def fit_encode(self, X: np.ndarray) -> sp.csr_matrix:
        """Learn the categories of an object array (n, d) of str or None; return the features."""
        self.categories = [sorted({value for value in column if value is not None}) for column in X.T]
        return self.encode(X)

    def encode(self, X: np.ndarray) -> sp.csr_matrix:
        """Features of new rows, float32 CSR (n, categories)."""
        cells = [(column, value) for column, known in enumerate(self.categories) for value in known]
        place = {cell: j for j, cell in enumerate(cells)}
        return count_terms((enumerate(row) for row in X), place, len(cells)).astype(np.float32)


@dataclass(eq=False)
class EncodedBlock(Saved):
    """A block of a model: what it is, and how its data become features.

    Attributes
    ----------
    name, kind : str
    columns : list of str
        Names of the columns of blocks of numbers and categories; of a block that is made of the texts of
        several fields, their words or their meaning, the fields.
    encoder : InputEncoder, NumbersEncoder or CategoriesEncoder
    weight : float
        Factor of the features; 0 where the block is left out.
    length : float
        Factor that makes rows of unit length on average.
    """

    name: Annotated[str, Text("")]
    kind: Annotated[str, Text("", KINDS)]
    columns: Annotated[list[str], Strings("")]
    weight: Annotated[float, Number("", 0, _MOST_WEIGHT)] = 1.0
    length: Annotated[float, Number("", 0, float(np.finfo(np.float32).max))] = 1.0
    encoder: Annotated[Any, Object("", Saved)] = None

    def fit_encode(self, data: Any, alone: bool, language: str | None) -> Features:
        """Learn the encoding; return the features, on the scale of a model of this block alone if `alone`."""
        if self.kind == CATEGORIES:
            self.encoder = CategoriesEncoder()
        elif self.kind == NUMBERS and not (alone and np.isfinite(data).all()):
            self.encoder = NumbersEncoder()
        else:
            self.encoder = InputEncoder(language)
        try:
            if self.kind == "vector" and not alone:
                features: Features = self.encoder.fit_as_they_are(data)
            else:
                features = self.encoder.fit_encode(data)
        except (ValueError, TypeError) as error:
            raise type(error)(f"the block {self.name!r} of X: {error}") from None
        if not alone and self.kind in ("vector", NUMBERS, CATEGORIES):
            values = features if isinstance(features, np.ndarray) else features.data
            squares = float(np.sum(values.astype(np.float64) ** 2)) / max(1, features.shape[0])
            self.length = float(np.float32(1 / np.sqrt(squares))) if squares > 0 else 1.0
        return self._scaled(features)

    def example(self) -> Any:
        """One row of the block."""
        if self.kind == CATEGORIES:
            return np.array([[(known or [None])[0] for known in self.encoder.categories]], object)
        if isinstance(self.encoder, NumbersEncoder):
            return self.encoder.mean[None, :]
        row = self.encoder.example()
        return sp.csr_matrix(row) if self.kind == "sparse" else row

    def encode(self, data: Any) -> Features:
        """Features of new rows."""
        try:
            features = self.encoder.encode(data)
        except (ValueError, TypeError) as error:
            raise type(error)(f"the block {self.name!r} of X: {error}") from None
        if isinstance(self.encoder, CategoriesEncoder):
            for column, values, known in zip(self.columns, data.T, map(set, self.encoder.categories)):
                _tell_of_unseen(column, sum(v is not None and v not in known for v in values), len(data))
        return self._scaled(features)

    @property
    def is_joint(self) -> bool:
        """Whether it joins the texts of several fields."""
        return self.kind == "text" and bool(self.columns)

    @property
    def is_made(self) -> bool:
        """Whether it is made of the texts of other blocks, rather than given."""
        return self.kind in ("text", "vector") and bool(self.columns)

    def data_in(self, blocks: Blocks, meaning: Encoder | None = None, alone: bool = False) -> Any:
        """The data of the block, texts encoded with one another or `alone`."""
        if not self.is_made:
            return blocks[self.name]
        between = " " if self.is_joint else _BELOW
        texts = [between.join(texts) for texts in zip(*(blocks[name] for name in self.columns))]
        if self.is_joint:
            return texts
        assert meaning is not None
        return meaning.encode(texts, alone=alone)

    @property
    def is_dense(self) -> bool:
        """Whether the features of the block alone are dense."""
        return self.kind != CATEGORIES and getattr(self.encoder, "layout", "dense") == "dense"

    @property
    def words(self) -> list[str] | None:
        """The words that the features stand for."""
        return self.encoder.feature_words if isinstance(self.encoder, InputEncoder) else None

    def _scaled(self, features: Features) -> Features:
        return scaled(scaled(features, self.length), self.weight)


def _tell_of_unseen(column: str, n: int, n_rows: int) -> None:
    """Log that n rows have categories which are not known, and warn where they are more than half of many."""
    message = f"{n} of {n_rows} rows have a value of {column!r} that was not seen in fit"
    if n:
        logger.info("%s", message)
    if n_rows >= _MANY_ROWS and 2 * n > n_rows:
        warnings.warn(message, stacklevel=outside())


def scaled(features: Features, factor: float) -> Features:
    """Features times a factor; sparse ones must be canonical."""
    if factor == 1 or isinstance(features, np.ndarray):
        return features if factor == 1 else features * np.float32(factor)
    data = features.data * np.float32(factor)
    return canonical_csr(data, features.indices, features.indptr, features.shape)


def _check_parts(known: Known) -> None:
    names = [part.name for part in known.parts]
    if len(set(names)) < len(names):
        raise ValueError(f"parts must have distinct names, got {names}")
    if known.n_features != sum(part.encoder.n_features for part in known.parts if part.weight > 0):
        raise ValueError(f"n_features must be that of the parts, got {known.n_features}")


class BlocksEncoder(InputEncoder):
    """The encoder of a model of blocks.

    Parameters
    ----------
    language : str or None
        Of all blocks of texts.
    meaning : Encoder or None
        Gives texts their vectors.

    Attributes
    ----------
    parts : list of EncodedBlock
        All blocks of the fit, those that are of no use too. Vectors come last.
    """

    parts: list[EncodedBlock]
    meaning: Encoder | None = None

    saved: ClassVar[Spec] = Spec(
        Declared("n_features", size="d"),
        List("parts", Object("", EncodedBlock)),
        Object("meaning", Encoder, optional=True),
        check=_check_parts,
    )

    def __init__(self, language: str | None = None, meaning: Encoder | None = None) -> None:
        super().__init__(language)
        self.meaning = meaning

    def fit_encode(self, X: Blocks) -> Features:
        """Learn the encoding; all blocks weigh the same.

        Raises
        ------
        ValueError, TypeError
            If a block has nothing to learn from, such as texts without words.
        """
        self.parts = [EncodedBlock(name, kind, X.columns.get(name, [])) for name, kind in X.kinds.items()]
        fields = X.text_names
        if len(fields) > 1:
            self._make(EncodedBlock(_JOIN.join(fields), "text", fields), "all blocks of texts are")
        if self.meaning is not None:
            encoded = self.meaning.fields or fields
            if not encoded or (unknown := sorted(set(encoded) - set(fields))):
                got = f"no text field {unknown[0]!r}" if encoded else "none"
                raise ValueError(
                    f"encoder needs texts in X, which has {', '.join(fields) or 'none'}, got {got}"
                )
            self._make(EncodedBlock(MEANING, "vector", encoded), "the vectors of texts are")
        self.parts.sort(key=lambda part: part.kind == "vector")
        alone = len(self.parts) == 1
        return self._joined(
            [part.fit_encode(part.data_in(X, self.meaning), alone, self.language) for part in self.parts]
        )

    def _make(self, part: EncodedBlock, called: str) -> None:
        if any(part.name == other.name for other in self.parts):
            raise ValueError(f"X must have no block {part.name!r}, as {called} called: rename it")
        self.parts.append(part)

    def encode(self, X: Any) -> Features:
        """Features of new rows: a dict, data frame, Blocks or Dataset with the blocks of the fit.

        Blocks of no use may be missing. What a model of one block takes may also be given without its name.

        Raises
        ------
        ValueError, TypeError
            If a block is missing, there is one more, or the values break the rule of their kind.
        """
        given = _rows_in(X)
        only = self.parts[0] if len(self.parts) == 1 else None
        if self.takes_texts and (texts := texts_of(X)) is not None:
            given = {self._own[0].name: texts}
        elif self.takes_texts and isinstance(X, (list, tuple)) and not X:
            return sp.csr_matrix((0, self.n_features), dtype=np.float32)
        elif only is not None and not holds_blocks(given):
            if not only.columns:
                return only.encode(given)
            if table_columns(given) is None:
                given = {only.name: given}
        blocks = self.read(given)
        if blocks.n_rows == 0:  # lists of no vectors tell no width
            empty = np.zeros((0, self.n_features), np.float32)
            return empty if self.layout == "dense" else sp.csr_matrix(empty)
        given = [part.data_in(blocks, self.meaning, alone=True) for part in self.used]
        return side_by_side([part.encode(data) for part, data in zip(self.used, given)])

    def read(self, X: Any) -> Blocks:
        """A dict, data frame or Blocks of new rows as the blocks of the fit; raises as `encode`."""
        needed = {part.name for part in self.needed}
        return Blocks.like(
            X,
            {part.name: part.kind for part in self._own},
            {part.name: part.columns for part in self._own if part.columns},
            [part.name for part in self._own if part.name not in needed],
        )

    def example(self) -> Blocks:
        """A row as `encode` takes it, of words, categories and features that the model knows."""
        return Blocks(
            {part.name: part.example() for part in self._own},
            {part.name: part.kind for part in self._own},
            {part.name: part.columns for part in self._own if part.columns},
        )

    def reweighed(self, X: Features, weights: Mapping[str, float]) -> Features:
        """Give the blocks other weights, 0 leaves one out; return the features of rows X anew."""
        features = [columns.of(X) for columns in self.columns]
        out = []
        for part, rows in zip(self.used, features):
            part.weight = float(np.float32(weights[part.name]))
            if part.weight > 0:
                out.append(scaled(rows, part.weight))
        return self._joined(out)

    @property
    def _own(self) -> list[EncodedBlock]:
        """The blocks that rows have."""
        return [part for part in self.parts if not part.is_made]

    @property
    def takes_texts(self) -> bool:
        """Whether rows are given as texts alone."""
        return self.meaning is not None and [part.kind for part in self._own] == ["text"]

    def load_meaning(self, given: Any) -> None:
        """Load the encoder of texts, or take the one given, with a warning if it is not that of the fit."""
        assert self.meaning is not None
        self.meaning = self.meaning if given is None else self.meaning.using(given)
        try:
            self.meaning.load()
        except (ImportError, ValueError) as error:
            warnings.warn(f"this model cannot answer: {error}", stacklevel=outside())

    @property
    def word_reader(self) -> TextVectorizer | None:
        """See `InputEncoder.word_reader`: that of the texts of all fields."""
        part = self._texts
        return None if part is None else part.encoder.vectorizer

    def texts_in(self, X: Any) -> list[str]:
        """See `InputEncoder.texts_in`."""
        texts = None if holds_blocks(X := _rows_in(X)) else texts_of(X)
        return list(self._texts.data_in(self.read(X))) if texts is None and self._texts else texts or []

    @property
    def _texts(self) -> EncodedBlock | None:
        """The block of all texts, if it is used."""
        texts = [part for part in self.used if part.kind == "text"]
        whole = texts if len(texts) == 1 else [part for part in texts if part.is_joint]
        return whole[0] if whole else None

    @property
    def used(self) -> list[EncodedBlock]:
        """The blocks that are not left out."""
        return [part for part in self.parts if part.weight > 0]

    @property
    def needed(self) -> list[EncodedBlock]:
        """The blocks that every new row must have: those that are used, by themselves or joined."""
        names = {name for part in self.used for name in (part.columns if part.is_made else [part.name])}
        return [part for part in self._own if part.name in names]

    @property
    def blocks(self) -> list[BlockColumns]:
        """The columns of the features by block; empty unless there are several."""
        return self.columns if len(self.used) > 1 else []

    @property
    def joined_fields(self) -> list[str]:
        """The blocks of texts whose words another block joins."""
        return [name for part in self.used if part.is_joint for name in part.columns]

    @property
    def columns(self) -> list[BlockColumns]:
        """The columns of the features, by block."""
        ends = accumulate((part.encoder.n_features for part in self.used), initial=0)
        return [
            BlockColumns(part.name, part.kind, start, stop, part.is_dense, part.words)
            for part, (start, stop) in zip(self.used, pairwise(ends))
        ]

    def with_words_of(self, names: Iterable[str], features: Features) -> Features:
        """See `InputEncoder.with_words_of`; of every block of texts."""
        names, columns = list(names), self.columns
        return self._joined(
            [
                part.encoder.with_words_of(names, own.of(features))
                if part.kind == "text"
                else own.of(features)
                for part, own in zip(self.used, columns)
            ]
        )

    def rows_of_names(self, names: Sequence[str], texts: Sequence[str | None] | None) -> sp.csr_matrix:
        """See `InputEncoder.rows_of_names`; empty in blocks without words."""
        return self._of_labels(len(names), lambda encoder: encoder.rows_of_names(names, texts))

    def rows_of_spellings(self, names: Sequence[str], texts: Sequence[str | None] | None) -> sp.csr_matrix:
        """See `InputEncoder.rows_of_spellings`; empty in blocks without words."""
        return self._of_labels(len(names), lambda encoder: encoder.rows_of_spellings(names, texts))

    def _of_labels(self, n: int, rows_of: Callable[[InputEncoder], sp.csr_matrix]) -> sp.csr_matrix:
        parts = [
            sp.csr_matrix((n, part.encoder.n_features), dtype=np.float32)
            if part.words is None
            else rows_of(part.encoder)
            for part in self.used
        ]
        return sp.csr_matrix(side_by_side(parts))

    @property
    def feature_words(self) -> list[str] | None:
        """The words that the features stand for, "" where they are none; None without a block of words."""
        if all(part.words is None for part in self.used):
            return None
        return [word for part in self.used for word in part.words or [""] * part.encoder.n_features]

    def _joined(self, features: Sequence[Features]) -> Features:
        out = side_by_side(features)
        self.n_features: int = int(out.shape[1])
        self._restored()
        return out

    def _restored(self) -> None:
        self.layout: Layout = "dense" if all(part.is_dense for part in self.used) else "sparse"
        alone = self.used[0].encoder if len(self.used) == 1 else None
        self.transform: FeatureTransform = (
            alone.transform if isinstance(alone, InputEncoder) else FeatureTransform()
        )


def _rows_in(X: Any) -> Any:
    """The features of a Dataset that has some; anything else as it is."""
    return X.X if isinstance(X, Dataset) and X.X is not None else X


def needed_blocks(encoder: InputEncoder) -> list[EncodedBlock]:
    """The blocks that every new row must have; none where a model is not of blocks."""
    return encoder.needed if isinstance(encoder, BlocksEncoder) and not encoder.takes_texts else []

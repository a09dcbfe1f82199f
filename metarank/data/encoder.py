"""`InputEncoder`: turns X in any form into the features of the scorers.

It is fitted once and saved with the model, so that a new instance (a row of
numbers, a data frame, or a text a person typed) is encoded in the same way as
the training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank.data.dataset import MISSING, Dataset
from metarank.data.scaling import FeatureTransform, idf_of
from metarank.data.spelling import SpellingIndex
from metarank.data.vectorizer import TextVectorizer
from metarank.persist.fields import Array, Declared, Known, Object, Strings, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import canonical_csr
from metarank.types.checks import Layout, check_features, check_savable_width, check_writable
from metarank.types.containers import as_list, library_of
from metarank.types.view import Features


def _check_layout(known: Known) -> None:
    """ValueError where features of the layout are not brought to a scale in this way."""
    kind, layout = known.transform.kind, known.layout
    if kind != "none" and (kind == "scale") != (layout == "dense"):
        raise ValueError(f"{layout} features are not transformed by {kind!r}")
    if known.vectorizer is not None and layout != "sparse":
        raise ValueError("vectorizer must give sparse features")
    if (known.words is None) != (known.idf is None):
        raise ValueError("words and idf must be known together")


class InputEncoder(Saved):
    """The input of a fitted model: texts or tables in, scaled float32 features out.

    Parameters
    ----------
    language : str or None
        As in `TextVectorizer`, for texts.

    Attributes
    ----------
    vectorizer : TextVectorizer or None
        Set if the model was trained on raw texts.
    layout : "dense" or "sparse"
        Layout of the training features, and of new rows.
    n_features : int
    names : list of str or None
        Column names, if the training features were a data frame with named columns.
    transform : FeatureTransform
    words, idf : list of str and float32 array (d,), or None
        The words of the features, and their weights in label texts, if the features are bags of words.
    """

    n_features: Annotated[int, Declared("", size="d")] = 0
    layout: Annotated[Layout, Text("", ("dense", "sparse"))] = "dense"
    transform: Annotated[FeatureTransform, Object("", FeatureTransform, ("d",))]
    vectorizer: Annotated[TextVectorizer | None, Object("", TextVectorizer, ("d",), optional=True)] = None
    names: Annotated[list[str] | None, Strings("", "d", optional=True)] = None
    words: Annotated[list[str] | None, Strings("", "d", optional=True)] = None
    idf: Annotated[np.ndarray | None, Array("", np.float32, ("d",), optional=True)] = None

    saved: ClassVar[Spec] = Spec(check=_check_layout)

    def __init__(self, language: str | None = None) -> None:
        self.language = language

    def fit_encode(self, X: Any) -> Features:
        """Learn the encoding from training input and return its features."""
        if texts := texts_of(X):
            if not any(text.strip() for text in texts):
                raise ValueError(f"X must hold texts with words, got {len(texts)} empty ones")
            self.vectorizer = TextVectorizer(language=self.language)
            features: Features = self.vectorizer.fit_transform(texts)
            self.transform = FeatureTransform()  # the vectoriser's rows are weighted and of unit length
        else:
            self.vectorizer = None
            given = X.X if isinstance(X, Dataset) else X
            checked = check_features(given, nan_hint=MISSING)
            self.names = _column_names(X)
            for column in self.names or ():
                check_writable(column, "the columns of X")
            check_savable_width(checked, keeps_rows=True)
            self.transform = FeatureTransform().fit(checked)
            features = self.transform.transform(checked)
            if not isinstance(features, np.ndarray):  # what was given may be overwritten later
                features.indices, features.indptr = features.indices.copy(), features.indptr.copy()
        self.layout = "sparse" if sp.issparse(features) else "dense"
        self.n_features = int(features.shape[1])
        return features

    def with_words_of(self, names: Iterable[str], features: Features) -> Features:
        """The features of the training rows, where they are those of texts with columns also for words that
        stand in these names of labels alone: a new text may have them."""
        if self.vectorizer is None or isinstance(features, np.ndarray):
            return features
        now = self.vectorizer.add_terms(names, features.shape[0])
        self.n_features = len(self.vectorizer.vocabulary_)
        shape = (features.shape[0], self.n_features)
        return canonical_csr(features.data, now[features.indices], features.indptr, shape)

    def fit_as_they_are(self, X: np.ndarray) -> np.ndarray:
        """Learn to take dense features as they are, since their directions and lengths mean something."""
        self.transform, self.layout, self.n_features = FeatureTransform(), "dense", int(X.shape[1])
        check_savable_width(X, keeps_rows=True)
        return np.array(X, np.float32)

    def encode(self, X: Any) -> Features:
        """Features of new rows.

        Raises
        ------
        ValueError, TypeError
            If X has another width than the training features, holds NaN or infinity,
            or is text but the model was trained on numbers (or the reverse).
        """
        texts = None if isinstance(X, sp.csr_matrix) else texts_of(X)
        if self.vectorizer is not None:
            if texts is None and _is_empty(X):
                texts = []
            if texts is None:
                raise TypeError(
                    "X must be a list of texts or a Dataset with texts, as in training, got "
                    f"{type(X).__name__}"
                )
            return self.vectorizer.transform(texts)
        if texts or (isinstance(X, Dataset) and X.X is None):
            raise TypeError("X must hold numbers, as in training, got texts")
        X = X.X if isinstance(X, Dataset) else X
        for i, (name, known) in enumerate(zip(_column_names(X) or (), self.names or ())):
            if name != known:
                raise ValueError(
                    f"X must have the columns of fit, in their order: column {i} is {name!r}, was {known!r}"
                )
        if not hasattr(X, "shape") and _is_empty(X):
            X = np.zeros((0, self.n_features), np.float32)
        features = check_features(X, n_features=self.n_features, layout=self.layout, min_rows=0)
        return self.transform.transform(features)

    def example(self) -> Any:
        """A row as `encode` takes it, of words or features that the model knows."""
        if self.vectorizer is not None:
            return [" ".join(self.vectorizer.vocabulary_[:8])]
        row = np.zeros((1, self.n_features), np.float32)
        row[0, :8] = 1
        return row

    def label_text(
        self,
        features: Features,
        names: Sequence[str] | None,
        texts: Sequence[str] | None,
        words: Sequence[str] | None,
    ) -> sp.csr_matrix | None:
        """The labels' names (and longer texts) as rows of the feature space, CSR (L, d); None where unknown.

        `words` are the names of the features, used where the model was trained on a bag of words.
        """
        if names is not None and words and not isinstance(features, np.ndarray) and self.vectorizer is None:
            self.words, self.idf = list(words), idf_of(features)
        matrix = None if names is None else self.rows_of_names(names, texts)
        return None if matrix is None or matrix.nnz == 0 else matrix

    def rows_of_names(self, names: Sequence[str], texts: Sequence[str | None] | None) -> sp.csr_matrix:
        """Labels' names, and texts where there are any, as rows of the feature space; empty where unknown."""
        reader = self._reader
        if reader is None:
            return sp.csr_matrix((len(names), self.n_features), dtype=np.float32)
        return reader.transform(label_phrases(names, texts))

    def rows_of_spellings(self, names: Sequence[str], texts: Sequence[str | None] | None) -> sp.csr_matrix:
        """Labels as the words spelled like those of their names; of their texts where there is no name."""
        written = [name or text or "" for name, text in zip(names, texts or [None] * len(names))]
        return self._spelling.transform(written)

    @property
    def takes_texts(self) -> bool:
        """Whether rows are given as texts alone."""
        return self.vectorizer is not None

    @property
    def word_reader(self) -> TextVectorizer | None:
        """What reads the words of the rows' texts; None where rows have no texts."""
        return self.vectorizer

    def texts_in(self, X: Any) -> list[str]:
        """The texts of new rows that the `word_reader` reads."""
        return texts_of(X) or []

    @property
    def blocks(self) -> list[BlockColumns]:
        """The columns of the features by block; empty unless there are several."""
        return []

    @property
    def joined_fields(self) -> list[str]:
        """The blocks of texts whose words another block joins."""
        return []

    @property
    def feature_words(self) -> list[str] | None:
        """The words that the features stand for; None where they are unknown."""
        return self.words if self.vectorizer is None else self.vectorizer.vocabulary_

    @property
    def _reader(self) -> TextVectorizer | None:
        """What makes features of texts; None where it is unknown what features stand for."""
        if self.vectorizer is None and self.words is not None and self.idf is not None:
            return TextVectorizer.of_words(self.words, self.idf)
        return self.vectorizer

    @cached_property
    def _spelling(self) -> SpellingIndex:
        reader = self._reader or TextVectorizer.of_words([], np.zeros(0))
        return SpellingIndex(reader.vocabulary_, reader.idf_, reader=self.vectorizer)


def label_phrases(label_names: Sequence[str], label_texts: Sequence[str | None] | None = None) -> list[str]:
    """What is written of each label: its name, and its longer text, which may begin with the name.

    Examples
    --------
    >>> label_phrases(["tea", "wine"], ["Tea is a drink", "made of grapes"])
    ['Tea is a drink', 'wine made of grapes']
    """
    if label_texts is None:
        return list(label_names)
    both = [(str(name), str(text or "")) for name, text in zip(label_names, label_texts)]
    return [
        text if text.casefold().startswith(name.casefold()) else f"{name} {text}".rstrip()
        for name, text in both
    ]


def label_text_of(dataset: Dataset, X: sp.csr_matrix) -> sp.csr_matrix | None:
    """The labels of a data set as rows of the words that its columns, canonical CSR X, stand for, CSR (L, d);
    None where it has no names of labels or features, or none of their words is known."""
    names, words = dataset.label_names, dataset.feature_names
    if names is None or words is None or dataset.label_names_are_ids:
        return None
    reader = TextVectorizer.of_words(words, idf_of(X))
    text = reader.transform(label_phrases(names, dataset.label_texts))
    return text if text.nnz else None


def _column_names(X: Any) -> list[str] | None:
    """The names of a data frame's columns, if all are strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _is_empty(X: Any) -> bool:
    """Whether X is a list, array or column of no rows."""
    return not hasattr(X, "columns") and hasattr(X, "__len__") and getattr(X, "shape", (len(X),))[0] == 0


def texts_of(X: Any) -> list[str] | None:
    """The raw texts in X: strings in a sequence, array or series, or a Dataset of texts."""
    if isinstance(X, Dataset):
        return list(X.texts) if X.X is None and X.texts is not None else None
    if isinstance(X, str):
        raise TypeError(f"X must be a list of texts, not one text: pass [{X[:40]!r}]")
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind not in "OUT":
        return None
    of_columns = library_of(X, "X") in ("pandas", "polars", "pyarrow") and not hasattr(X, "columns")
    if of_columns or getattr(X, "ndim", None) == 1:
        X = as_list(X)
    if isinstance(X, Sequence) and any(isinstance(row, Mapping) for row in X):
        raise TypeError("X must hold rows of numbers or texts, got a dict: pass a data frame, or its texts")
    if isinstance(X, Sequence) and any(isinstance(text, str) for text in X):
        for row, text in enumerate(X):
            if not isinstance(text, str):
                raise TypeError(f"X must hold a text per row, got {text!r} at row {row}")
        return list(X)
    return None

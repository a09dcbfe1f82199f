"""`TextVectorizer`: TF-IDF rows of texts.

scikit-learn counts the terms of training texts. Those of new texts are counted here: a single text takes
45 microseconds, and 520 in `TfidfVectorizer`. The analyzer is metarank's, since those of scikit-learn do not
split identifiers.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from metarank._util.languages import AUTO, LANGUAGES, check_language
from metarank._util.parameters import with_parameters
from metarank.data.language import detected_language, stems_of
from metarank.data.scaling import idf_of, ltc, smooth_idf
from metarank.data.tokens import signed_names, words_of
from metarank.data.word_order import word_rows
from metarank.persist.fields import Array, Flag, Integer, Strings, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.candidates import canonical_csr
from metarank.types.texts import WordRows

T = TypeVar("T", bound=Hashable)

# train_test_split -> train, test, split; HTTPServerError -> HTTP, Server, Error; conv2d -> conv, 2, d.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


# Words in a row that a vectoriser, a saved one too, may take for a term; and `min_df`.
_LONGEST_RUN, _MOST_TEXTS = 1000, 2**31 - 1


@with_parameters
class TextVectorizer(Saved, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """TF-IDF rows of texts, "ltc": ``(1 + ln tf) * idf``, then unit length.

    ``idf(t) = ln((1 + n) / (1 + df(t))) + 1`` over the n texts of `fit` (scikit-learn's smooth idf).

    Parameters
    ----------
    min_df : int, default 1
        Terms that occur in fewer texts are left out.
    split_identifiers : bool, default True
        A word written like ``train_test_split`` or ``CountVectorizer`` also counts as its parts of at
        least two characters; a word with letters outside ASCII is split at underscores only.
    word_ngrams : int, default 1
        2 adds pairs of neighbouring words, and so on (identifier parts are not paired).
    language : str or None
        Words are stemmed in this language (Snowball, by PyStemmer): "bridges" counts as "bridge". "english"
        or "en", and others of `metarank._util.languages.LANGUAGES`. "auto" detects the language of the texts
        of `fit` by their most frequent words. None does not stem. With a language, its stop words are left
        out (`metarank.data.language.stop_words`).

    Attributes
    ----------
    vocabulary_ : list of str
        Terms in code point order; their positions are the columns.
    idf_ : float32 array (d,)
    language_ : str or None
        The language, by its Snowball name; None if words are not stemmed.

    Notes
    -----
    `metarank.data.tokens` defines a word, for any script. Words unknown to `fit` are ignored; a text
    without known words is an empty row. A row depends on its own text only.

    Examples
    --------
    >>> v = TextVectorizer().fit(["fit the KMeans model", "the train_test_split function"])
    >>> v.vocabulary_
    ['fit', 'function', 'kmeans', 'means', 'model', 'split', 'test', 'the', 'train', 'train_test_split']
    >>> v.transform(["how to split and test"]).indices
    array([5, 6], dtype=int32)
    """

    saved: ClassVar[Spec] = Spec(
        Integer("min_df", 1, _MOST_TEXTS),
        Flag("split_identifiers"),
        Integer("word_ngrams", 1, _LONGEST_RUN),
        Text("language", (AUTO, *LANGUAGES, *LANGUAGES.values()), optional=True),
        Text("language_", tuple(LANGUAGES.values()), key="stems", optional=True),
        Strings("vocabulary_", "d"),
        Array("idf_", np.float32, ("d",)),
    )

    min_df: int = 1
    split_identifiers: bool = True
    word_ngrams: int = 1
    language: str | None = None

    @classmethod
    def of_words(cls, words: Sequence[str], idf: np.ndarray) -> TextVectorizer:
        """One whose columns are features that stand for words, each of which weighs its `idf`.

        Words are compared in lower case; of equal ones the first counts. Those of several words, with blanks
        between them, match neighbouring words.

        Examples
        --------
        >>> reader = TextVectorizer.of_words(["the", "web", "design"], np.ones(3))
        >>> reader.transform(["Web_design", "tea"]).toarray().round(2)
        array([[0.  , 0.71, 0.71],
               [0.  , 0.  , 0.  ]], dtype=float32)
        """
        known = [str(word).casefold() for word in words]
        longest = 1 + max((word.count(" ") for word in known), default=0)
        out = cls(word_ngrams=min(longest, 3))
        out._set(known, np.asarray(idf, np.float32))
        return out

    def fit(self, texts: Iterable[str], y: object = None) -> TextVectorizer:
        """Learn vocabulary and idf. Returns self.

        Raises
        ------
        TypeError
            If `texts` is one string, or an entry is not a string.
        ValueError
            If a parameter is out of range, or no term reaches `min_df`.
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> sp.csr_matrix:
        """`fit`, and return the rows of the same texts; the texts are read once."""
        from sklearn.feature_extraction.text import CountVectorizer

        self._check_parameters()
        texts = list(checked_texts(texts))
        self.language_ = check_language(self.language)
        if self.language_ == AUTO:
            self.language_ = language_of(texts)
        counter = CountVectorizer(analyzer=self.terms, min_df=self.min_df, dtype=np.float64)
        try:
            counts = counter.fit_transform(texts)
        except ValueError:
            raise ValueError(
                f"texts must share words: none is in min_df={self.min_df} of the {len(texts)} texts"
            ) from None
        counts.sort_indices()
        self._set(sorted(counter.vocabulary_), idf_of(counts))
        return ltc(counts, self.idf_)

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """float32 CSR (n, d), canonical, rows of unit length or empty.

        Raises
        ------
        TypeError
            If `texts` is one string, or an entry is not a string.
        """
        if not hasattr(self, "vocabulary_"):
            raise NotFittedError("this TextVectorizer is not fitted; call fit first")
        counts = count_terms(map(self.terms, checked_texts(texts)), self._column, len(self.idf_))
        return ltc(counts, self.idf_)

    def terms(self, text: str) -> list[str]:
        """The terms of one text, in the vocabulary or not, each as often as it occurs."""
        written = words_of(text)
        words = [word.casefold() for word in written]
        terms = words + [name.casefold() for name in signed_names(text)]
        if self.split_identifiers:
            # A word of small letters alone, as most are, holds nothing to split.
            for word in [word for word, low in zip(written, words) if low != word or not word.isalpha()]:
                parts = _PART.findall(word) if word.isascii() else word.split("_")
                if parts != [word]:
                    terms += [part.casefold() for part in parts if len(part) > 1]
        run = words
        language = self.language_ if hasattr(self, "language_") else check_language(self.language, auto=False)
        if language is not None:
            stems = stems_of(language)
            terms = [stems[term] for term in terms]
            run = terms[: len(words)]
        for n in range(2, self.word_ngrams + 1):
            terms += [" ".join(run[i : i + n]) for i in range(len(run) - n + 1)]
        return terms

    def in_order(self, texts: Iterable[str]) -> WordRows:
        """The words of texts in their order, known or not, by the language."""
        return word_rows(texts, self.language_)

    def add_terms(self, texts: Iterable[str], n_texts: int) -> np.ndarray:
        """Take terms of other texts into the vocabulary, as terms that none of the `n_texts` of `fit` holds.

        So words that only names of labels have are known in new texts.

        Returns
        -------
        int32 array (d before,)
            The present column of each earlier one; they keep their order.
        """
        known = self._column
        more = {term for text in checked_texts(texts) for term in self.terms(text)} - known.keys() - {""}
        vocabulary = sorted([*self.vocabulary_, *more])
        now = np.flatnonzero([term not in more for term in vocabulary]).astype(np.int32)
        idf = np.full(len(vocabulary), smooth_idf(np.zeros(1), n_texts)[0], np.float32)
        idf[now] = self.idf_
        self._set(vocabulary, idf)
        return now

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """The vocabulary as an object array."""
        return np.array(self.vocabulary_, dtype=object)

    def _set(self, vocabulary: list[str], idf: np.ndarray) -> None:
        self._column = {term: j for j, term in reversed(list(enumerate(vocabulary)))}
        self.vocabulary_ = vocabulary
        self.idf_ = idf

    def _check_parameters(self) -> None:
        for name, most in (("min_df", _MOST_TEXTS), ("word_ngrams", _LONGEST_RUN)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
                raise ValueError(f"{name} must be a positive integer, at most {most}, got {value!r}")
        check_language(self.language)

    def _restored(self) -> None:
        self._check_parameters()
        if self.language != AUTO and self.language_ != check_language(self.language):
            raise ValueError(f"language_ must be that of language={self.language!r}, got {self.language_!r}")
        self._set(self.vocabulary_, self.idf_)
        if len(self._column) != len(self.vocabulary_):
            raise ValueError(
                f"vocabulary must hold distinct terms, got {len(self._column)} of {len(self.vocabulary_)}"
            )


def checked_texts(texts: Iterable[str]) -> Iterator[str]:
    """The texts one by one; TypeError if they are one string, or one is not a text."""
    if isinstance(texts, str | bytes):
        raise TypeError("texts must be a sequence of strings, got one string; wrap it in a list")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{position}] must be a string, got {type(text).__name__}")
        yield text


def language_of(texts: Iterable[str]) -> str | None:
    """The language of texts, by `metarank.data.language.detected_language`; None if it is not clear.

    Examples
    --------
    >>> language_of(["Die Geschichte der Brücke", "Das Haus in der Stadt und auf dem Land"])
    'german'
    """
    return detected_language((word.casefold() for word in words_of(text)) for text in texts)


def count_terms(documents: Iterable[Iterable[T]], column: Mapping[T, int], width: int) -> sp.csr_matrix:
    """float64 CSR (n, width), canonical: how often each term that has a column occurs in each document."""
    indptr, indices, counts = array("i", [0]), array("i"), array("d")
    for terms in documents:
        times = Counter([column[term] for term in terms if term in column])
        own = sorted(times)
        indices.extend(own)
        counts.extend([times[j] for j in own])
        indptr.append(len(indices))
    return canonical_csr(counts, indices, indptr, (len(indptr) - 1, width), np.float64)

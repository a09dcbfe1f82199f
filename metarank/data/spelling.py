"""`SpellingIndex`: words of the vocabulary that are spelled like a given word, inflected or compounded.

"subjects" is spelled like "subject", "Bodenerosion" like "Erosion". A label name often has another form of a
word than the document, and may hold no word of the vocabulary at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank.data.scaling import idf_of, smooth_idf
from metarank.data.vectorizer import TextVectorizer, count_terms

# Characters of a run, and words that are compared at once.
_RUN = 4
_WORDS_AT_ONCE = 512
# Neither several words nor names with signs.
_WORD = re.compile(r"[^\s+#.-]{3,}")


class SpellingIndex:
    """Words by the runs of four characters they hold, their ends marked.

    Two words are as similar as the cosine of their runs, each of weight ``smooth_idf`` over the vocabulary (a
    run that no word has weighs as one that one word has, and more); words of fewer than three characters are
    left out.

    Parameters
    ----------
    words : sequence of str (d,)
        The vocabulary, in lower case; entries that are not words are never found.
    weights : float array (d,)
        What a word weighs in a text, its idf.
    least : float in (0, 1]
        Words less similar are not alike.
    reader : TextVectorizer, optional
        Who splits texts into words, a fitted one.

    Examples
    --------
    >>> index = SpellingIndex(["subject", "erosion", "object"], np.ones(3))
    >>> index.transform(["Subjects and erosions"]).toarray().round(2)
    array([[0.7 , 0.71, 0.  ]], dtype=float32)
    """

    def __init__(
        self,
        words: Sequence[str],
        weights: np.ndarray,
        *,
        least: float = 0.5,
        reader: TextVectorizer | None = None,
    ) -> None:
        self.least = least
        self.reader: TextVectorizer = TextVectorizer(
            split_identifiers=reader is not None and reader.split_identifiers,
            language=None if reader is None else reader.language_,
        )
        self.weights: NDArray[np.float64] = np.asarray(weights, np.float64)
        runs = [_runs(word) if _WORD.fullmatch(word) else [] for word in words]
        self._column = {run: j for j, run in enumerate(sorted({run for of in runs for run in of}))}
        held = self._held(runs)
        self._idf = idf_of(held).astype(np.float64)
        self._unknown = float(smooth_idf(np.zeros(1), len(runs))[0])
        unit = _scaled(held, np.sqrt(held @ self._idf**2), self._idf)
        self._words_of = sp.csr_matrix(unit.T)  # by run: the words that hold it

    def _held(self, runs: list[list[str]]) -> sp.csr_matrix:
        """1 where a word holds a run of the vocabulary."""
        held = count_terms(runs, self._column, len(self._column))
        held.data[:] = 1
        return held

    def similar(self, words: Sequence[str]) -> sp.csr_matrix:
        """float64 CSR (len(words), d): similarity to each word of the vocabulary, from `least` up."""
        parts = []
        for start in range(0, len(words), _WORDS_AT_ONCE):
            runs = [_runs(word) for word in words[start : start + _WORDS_AT_ONCE]]
            held = self._held(runs)
            n_unknown = np.array([len({run for run in of if run not in self._column}) for of in runs])
            norm = np.sqrt(held @ self._idf**2 + n_unknown * self._unknown**2)
            alike = sp.csr_matrix(_scaled(held, norm, self._idf) @ self._words_of)
            alike.data[alike.data < self.least] = 0
            alike.eliminate_zeros()
            parts.append(alike)
        out = sp.vstack(parts, "csr") if parts else sp.csr_matrix((0, len(self.weights)))
        out.sort_indices()
        return out

    def transform(self, texts: Sequence[str]) -> sp.csr_matrix:
        """float32 CSR (n, d), rows of unit length: the words like those of each text.

        A word of the vocabulary weighs its idf times its similarity to the words of the text, summed over the
        distinct ones; a text without a word like a known one has an empty row.
        """
        words_of = [sorted({w for w in self.reader.terms(text) if _WORD.fullmatch(w)}) for text in texts]
        distinct = sorted({word for words in words_of for word in words})
        column = {word: j for j, word in enumerate(distinct)}
        rows = count_terms(words_of, column, len(distinct)) @ self.similar(distinct)
        rows = sp.csr_matrix(rows)
        rows.sort_indices()
        out = _scaled(rows, np.sqrt(rows.power(2) @ self.weights**2), self.weights).astype(np.float32)
        out.has_canonical_format = True
        return out


def _runs(word: str) -> list[str]:
    marked = f"^{word}$"
    return [marked[i : i + _RUN] for i in range(len(marked) - _RUN + 1)]


def _scaled(rows: sp.csr_matrix, norm: np.ndarray, weights: np.ndarray) -> sp.csr_matrix:
    """The rows times the weights of their columns, divided by their norms."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    out = rows.copy()
    out.data = rows.data * weights[rows.indices] / norm[row]
    return out

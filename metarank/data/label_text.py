"""Names and longer texts of labels, as rows of the features' words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from metarank.data.dataset import Dataset
from metarank.data.vectorizer import TextVectorizer, count_terms, ltc, smooth_idf


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
    idf = smooth_idf(np.bincount(X.indices, minlength=X.shape[1]), X.shape[0])
    text = label_text_matrix(names, dataset.label_texts, feature_names=words, idf=idf)
    return text if text.nnz else None


def label_text_matrix(
    label_names: Sequence[str],
    label_texts: Sequence[str] | None = None,
    *,
    vectorizer: TextVectorizer | None = None,
    feature_names: Sequence[str] | None = None,
    idf: np.ndarray | None = None,
) -> sp.csr_matrix:
    """The labels' names and texts as rows in the feature space of X.

    Parameters
    ----------
    label_names : sequence of str (L)
    label_texts : sequence of str (L) or None
        Longer descriptions; the name counts as part of the text, unless the text begins with it.
    vectorizer : TextVectorizer or None
        The one that made X; the rows are its TF-IDF rows.
    feature_names : sequence of str (d) or None
        The words the columns of X stand for, where there is no vectorizer. Compared in lower case; of equal
        ones the first counts. Names of several words, by spaces, match neighbouring words.
    idf : float array (d,) or None
        Weight of each word with `feature_names`; None means 1 (see `smooth_idf`).

    Returns
    -------
    csr_matrix (L, d)
        float32, canonical, rows of unit length; a label without a known word has an empty row.

    Examples
    --------
    >>> label_text_matrix(["Web_design", "tea"], feature_names=["the", "web", "design"]).toarray().round(2)
    array([[0.  , 0.71, 0.71],
           [0.  , 0.  , 0.  ]], dtype=float32)
    """
    texts = label_phrases(label_names, label_texts)
    if vectorizer is not None:
        return vectorizer.transform(texts)
    words = [str(name).lower() for name in feature_names or ()]
    weights = np.ones(len(words), np.float32) if idf is None else np.asarray(idf, np.float32)
    column = {word: j for j, word in reversed(list(enumerate(words)))}
    longest = 1 + max((word.count(" ") for word in words), default=0)
    reader = TextVectorizer(word_ngrams=min(longest, 3))
    return ltc(count_terms(map(reader.terms, texts), column, len(words)), weights)

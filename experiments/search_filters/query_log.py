"""A query log made from product titles: what people type, and which attributes they then click.

Like the log of the paper it has duplicates, queries of one to four words, one or two clicks each, and labels
by a power law. It is made, and so says how models learn, not how people search.
"""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp
from titles import Titles

SEARCHES = 1_000_000
_MOST_WORDS = 4
_TWO_CLICKS = 0.4
# The first filters of a page get most clicks.
_POSITION = 0.7


def query_log(titles: Titles, searches: int = SEARCHES, seed: int = 0) -> Titles:
    """So many searches: a fragment of a title drawn at random, with one or two of the title's attributes.

    Titles are drawn by a power law; of a title's attributes, more frequent ones stand first, those that the
    fragment names before them, and the one in place j (from 0) is clicked with a chance proportional to
    ``_POSITION**j``.
    """
    rng = np.random.default_rng(seed)
    words = [text.split() for text in titles.texts]
    popularity = rng.permutation(len(words)) + 1.0
    popularity = (1 / popularity**0.6) * np.array([len(w) > 0 for w in words])
    drawn = rng.choice(len(words), searches, p=popularity / popularity.sum())
    frequency = np.bincount(titles.Y.indices, minlength=titles.Y.shape[1])
    in_order = [
        own[np.argsort(-frequency[own], kind="stable")]
        for own in np.split(titles.Y.indices, titles.Y.indptr[1:-1])
    ]
    named = [set(name.lower().split()) for name in titles.names]
    texts, rows, clicked = [], [], []
    n_words = rng.integers(1, _MOST_WORDS + 1, searches)
    starts, two = rng.random(searches), rng.random(searches) < _TWO_CLICKS
    luck = rng.random((searches, 2))
    for i, title in enumerate(drawn):
        length = min(n_words[i], len(words[title]))
        start = int(starts[i] * (len(words[title]) - length + 1))
        fragment = words[title][start : start + length]
        texts.append(" ".join(fragment))
        typed = {word.lower() for word in fragment}
        own = sorted(in_order[title].tolist(), key=lambda label: not named[label] & typed)
        for click in range(min(1 + two[i], len(own))):
            chance = np.cumsum(_POSITION ** np.arange(len(own)))
            at = int(np.searchsorted(chance, luck[i, click] * chance[-1]))
            rows.append(i)
            clicked.append(own.pop(min(at, len(own) - 1)))
    Y = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, clicked)), (searches, titles.Y.shape[1]))
    Y.sum_duplicates()
    Y.sort_indices()
    return Titles("query log", texts, Y, titles.names, np.full(searches, -1, np.int32))


def digest_of(log: Titles) -> str:
    """The first 12 digits of the sha256 of the log's texts."""
    return hashlib.sha256("\n".join(log.texts).encode()).hexdigest()[:12]

"""The language of texts: stems of words (Snowball, by PyStemmer), stop words, and which language it is.

"bridges" and "bridge" have one stem, so that a document meets the label's name in another form. Stop words
are the commonest words without content of their own, about thirty a language; others are left to their idf.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# Words that tell the language: so many are read, so large a share of them must be stop words of it, and so
# large a share of the texts must be of it.
_WORDS_READ, _LEAST_SHARE, _LEAST_TEXTS = 20_000, 0.1, 0.75
# Stems that are kept, and the longest word of which one is kept.
_MOST_STEMS, _LONGEST_KEPT = 200_000, 40


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, by its Snowball name; for some there are none.

    Examples
    --------
    >>> "the" in stop_words("english"), len(stop_words("tamil"))
    (True, 0)
    """
    return frozenset(_listed().get(language, "").casefold().split())


@cache
def _listed() -> dict[str, str]:
    """The stop words by language, each list as one text."""
    listed: dict[str, str] = json.loads(Path(__file__).with_name("stop_words.json").read_text("utf-8"))
    return listed


class Stems(dict[str, str]):
    """The stems of words of a language, each computed once; any number of threads may read it.

    A word is given as it is compared, in lower case. A stop word has the stem "".

    Parameters
    ----------
    language : str
        A name of `metarank._util.languages.LANGUAGES`.

    Examples
    --------
    >>> stems = Stems("english")
    >>> [stems[word] for word in ["bridges", "bridge", "bridging", "the"]]
    ['bridg', 'bridg', 'bridg', '']
    """

    def __init__(self, language: str) -> None:
        super().__init__(dict.fromkeys(stop_words(language), ""))
        self._language = language
        self._own = threading.local()  # a stemmer is not to be shared by threads

    def __missing__(self, word: str) -> str:
        stemmer = getattr(self._own, "stemmer", None)
        if stemmer is None:
            from Stemmer import Stemmer

            # The stems are kept here: its own memory is made anew for each thread.
            stemmer = self._own.stemmer = Stemmer(self._language, 0)
        stem: str = stemmer.stemWord(word)
        if len(self) < _MOST_STEMS and len(word) <= _LONGEST_KEPT:
            self[word] = stem
        return stem


# The stems of a language, the same object in each call.
stems_of = cache(Stems)


def detected_language(texts: Iterable[Iterable[str]]) -> str | None:
    """The language whose stop words texts hold, each given as its words, folded; None if it is not clear.

    Of the first 20,000 words, a tenth must be stop words of that language, and of the texts with any stop
    word three in four must have as many of that language as of any other. Languages without a list of stop
    words here are never found.

    Examples
    --------
    >>> detected_language(["the history of the bridges in the south of france".split()])
    'english'
    >>> detected_language([["kmeans", "bridge"]]) is None
    True
    """
    languages = _languages()
    n_words, n_texts = 0, 0
    held, told = Counter[str](), Counter[str]()
    for words in texts:
        words = list(words)
        n_words += len(words)
        counts = Counter(language for word in words for language in languages.get(word, ()))
        held += counts
        if counts:
            n_texts += 1
            most = max(counts.values())
            told.update(language for language, count in counts.items() if count == most)
        if n_words >= _WORDS_READ:
            break
    # Of equal ones the language with more stop words in all.
    best = max(told, key=lambda language: (told[language], held[language]), default=None)
    if best is None or held[best] < _LEAST_SHARE * n_words or told[best] < _LEAST_TEXTS * n_texts:
        return None
    also = [other for other in told if (told[other], held[other]) == (told[best], held[best])]
    return best if len(also) == 1 else None


@cache
def _languages() -> dict[str, list[str]]:
    """The languages of which a word is a stop word."""
    out: dict[str, list[str]] = {}
    for language in _listed():
        for word in stop_words(language):
            out.setdefault(word, []).append(language)
    return out

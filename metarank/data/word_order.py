"""Texts and names of labels as words in the order they are written in: see `metarank.types.texts`."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b

import numpy as np

from metarank.data.language import stems_of
from metarank.data.tokens import words_in_order
from metarank.types.texts import NAME, OTHER_NAME, PART, NameForms, WordRows

# What qualifies a name: Mercury (planet), Kern <Informatik>.
_QUALIFIER = re.compile(r"\s*(?:\([^()]*\)|<[^<>]*>|\[[^\[\]]*\])")
# Words of names that are looked for; longer names are found by their beginning alone.
_LONGEST = 12
# Words whose numbers are kept, and the longest of them.
_KEPT, _LONGEST_KEPT = 1 << 18, 40


def word_rows(texts: Iterable[str], language: str | None) -> WordRows:
    """The words of texts in lower case, as numbers that any process gives them; in a language their stems,
    without stop words."""
    number = numbers_of(language)
    ends, words = array("q", [0]), array("q")
    for text in texts:
        words.extend(filter(None, map(number.__getitem__, words_in_order(text))))
        ends.append(len(words))
    return WordRows(np.array(ends, np.int64), np.array(words, np.int64))


class Numbers(dict[str, int]):
    """The number of each word in lower case, that of its stem in a language; 0 for a stop word."""

    def __init__(self, language: str | None) -> None:
        super().__init__()
        self._stems = None if language is None else stems_of(language)

    def __missing__(self, word: str) -> int:
        stem = word if self._stems is None else self._stems[word]
        hashed = blake2b(stem.encode(), digest_size=8).digest()
        number = int.from_bytes(hashed, "little", signed=True) if stem else 0
        if len(self) < _KEPT and len(word) <= _LONGEST_KEPT:
            self[word] = number
        return number


# The numbers of words in a language, the same object in each call.
numbers_of = cache(Numbers)


def name_forms(
    names: Sequence[str], others: Sequence[Sequence[str]] | None, language: str | None
) -> NameForms:
    """The ways in which labels with these names and alternative names are written in texts.

    A name of the form "Kant, Immanuel" is also written "Immanuel Kant"; one with a qualifier in brackets,
    "Mercury (planet)", also without it, as a part.

    Examples
    --------
    >>> forms = name_forms(["Mercury (planet)", ""], [[], ["Kant, Immanuel"]], None)
    >>> forms.labels.tolist(), forms.kinds.tolist(), np.diff(forms.words.indptr).tolist()
    ([0, 0, 1, 1], [2, 0, 1, 1], [2, 1, 2, 2])
    """
    number = numbers_of(language)
    rows: list[list[int]] = []
    labels: list[int] = []
    kinds: list[int] = []
    for label, name in enumerate(names):
        seen: set[tuple[int, ...]] = set()
        written = [(NAME, name)] if name.strip() else []
        written += [(OTHER_NAME, other) for other in (others[label] if others is not None else ())]
        for kind, form in [pair for own in written for pair in _forms(*own)]:
            row = [n for word in words_in_order(form) if (n := number[word])][:_LONGEST]
            if row and tuple(row) not in seen:
                seen.add(tuple(row))
                rows.append(row)
                labels.append(label)
                kinds.append(kind)
    return NameForms(WordRows.of(rows), np.array(labels, np.int32), np.array(kinds, np.int32))


def _forms(kind: int, name: str) -> list[tuple[int, str]]:
    """A name, and the other ways in which it is written."""
    out = [(kind, name)]
    bare = _QUALIFIER.sub("", name)
    if bare.count(",") == 1:
        last, first = bare.split(",")
        out.append((kind if bare == name else PART, f"{first} {last}"))
    if bare != name and bare.strip():
        out.append((PART, bare))
    return out

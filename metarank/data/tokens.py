"""What a word is, in the texts of any script: one rule for columns, for names in texts, and for spellings.

A word is a run of letters with their marks, digits and underscores. Texts are put into Unicode's form NFKC,
which makes full-width letters plain, and words are compared by case folding, in which "Straße" is "STRASSE".
Chinese, Japanese, Thai, Lao, Khmer and Burmese have no blanks between words: there, each two neighbouring
characters with their marks are a word. A name with signs (C++, C#, .NET, node.js, x86-64) is a word as well
as its parts.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise

_WORD = re.compile(r"\w\w+")
_ANY_WORD = re.compile(r"(?<![\w.])\.\w+|\w+(?:\+\+|#)?")
_NAME = re.compile(r"(?<![\w.])\.\w\w+|(?<!\w)\w++(?:(?:[.-]\w+)+(?:\+\+|#)?|\+\+|#)")
# Scripts without blanks between words: Thai and Lao, Burmese, Khmer, Tai, Japanese syllables, Han.
_SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
)
_SPACELESS += "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"


def words_of(text: str) -> list[str]:
    """The words of at least two characters as they are written, in Unicode's normal form.

    Examples
    --------
    >>> words_of("I write C in किताब"), words_of("機械学習")
    (['write', 'in', 'किताब'], ['機械', '械学', '学習'])
    """
    if text.isascii():
        return _WORD.findall(text)
    return _of_any_script(unicodedata.normalize("NFKC", text), 0)


def signed_names(text: str) -> list[str]:
    """The names with signs within or behind them, as they are written.

    Examples
    --------
    >>> signed_names("C++, C# and .NET with node.js on x86-64. A well.")
    ['C++', 'C#', '.NET', 'node.js', 'x86-64']
    """
    # Few parts of a text hold a sign: others are words, or end in a point or comma.
    signed = [p for p in text.split() if not p.isalnum() and (p[-1] == "#" or not p[:-1].isalnum())]
    return _NAME.findall(" ".join(signed))


def words_in_order(text: str) -> list[str]:
    """All words, those of one character too (vitamin C is not C++), folded.

    Examples
    --------
    >>> words_in_order("Vitamin C, in C++ and .NET")
    ['vitamin', 'c', 'in', 'c++', 'and', '.net']
    """
    if text.isascii():
        return _ANY_WORD.findall(text.lower())
    return _of_any_script(unicodedata.normalize("NFKC", text).casefold(), 1)


def _of_any_script(text: str, which: int) -> list[str]:
    """The words of a text in NFKC, by the pattern of `_patterns` for any script."""
    *patterns, spaceless, clusters = _patterns()
    out = []
    for word in patterns[which].findall(text):
        if word.isascii() or not spaceless.search(word):
            out.append(word)
            continue
        for i, part in enumerate(spaceless.split(word)):
            if i % 2:
                single = clusters.findall(part)
                out += [first + second for first, second in pairwise(single)] or single
            elif len(part) > 1 or (which and part):
                out.append(part)
    return out


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Patterns of words (of two characters, of any), of a run without blanks, of a character with marks."""
    marks = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)).startswith("M")]
    held = set(map(ord, marks))
    starts = [mark for mark in marks if ord(mark) - 1 not in held]
    ends = [mark for mark in marks if ord(mark) + 1 not in held]
    M = "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in zip(starts, ends))
    rest = rf"[\w{M}\u200c\u200d]"
    return (
        re.compile(rf"\w{rest}+|[{_SPACELESS}]"),
        re.compile(rf"(?<![\w.])\.\w{rest}*|\w{rest}*(?:\+\+|#)?"),
        re.compile(rf"([{_SPACELESS}](?:(?=[{_SPACELESS}{M}]){rest})*)"),
        re.compile(rf"[^{M}][{M}]*"),
    )

"""Which part of a long text is read: its head, or a sample of its sentences."""

from __future__ import annotations

import re

_PART = re.compile(r"(head|sample):([1-9]\d{2,9})", re.ASCII)

# A sentence, a line, or where neither ends within 500 characters, a piece that ends at a blank if it can.
_UNIT = re.compile(r"\s*(?:.{1,500}?(?:[.!?…]+(?=\s)|\n|$)|.{1,500}(?=\s)|.{1,500})", re.DOTALL)


def check_text_part(text_part: object) -> tuple[str, int] | None:
    """The kind and the number of characters of a part; None is all of a text.

    Raises
    ------
    ValueError
        If it is no text such as "head:20000" or "sample:20000", of 100 characters at least.

    Examples
    --------
    >>> check_text_part("head:20000")
    ('head', 20000)
    """
    if text_part is None:
        return None
    match = _PART.fullmatch(text_part) if isinstance(text_part, str) else None
    if match is None:
        raise ValueError(
            f"text_part must be None, 'head:N' or 'sample:N' with N >= 100 characters, got {text_part!r:.80}"
        )
    return match[1], int(match[2])


def shortened(text: str, text_part: str | None) -> str:
    """The part of a text that is read; the text itself if it is short enough.

    Parameters
    ----------
    text : str
    text_part : str or None
        "head:N": the first N characters, less a word that is cut. "sample:N": the first sentence and others
        spread evenly over the text, N characters at most. None: all. The same text gives the same part, in
        time linear in its length.

    Raises
    ------
    ValueError
        As `check_text_part`.

    Examples
    --------
    >>> shortened("sea and sun. " * 20, "head:100")[-20:]
    'sea and sun. sea and'
    """
    part = check_text_part(text_part)
    if part is None or len(text) <= part[1]:
        return text
    kind, size = part
    return _head(text, size) if kind == "head" else _sample(text, size)


def _head(text: str, size: int) -> str:
    head = text[:size]
    if text[size].isspace():
        return head
    # A text without a blank, as in Chinese, is cut where it must be.
    return head.rstrip() if head[-1].isspace() else head.rsplit(None, 1)[0] or head


def _sample(text: str, size: int) -> str:
    """Sentences as the characters that may be read become enough for the next one, spread evenly."""
    share = size / len(text)
    chosen: list[str] = []
    saved, left = None, size
    for unit in _UNIT.finditer(text):
        sentence = unit[0]
        saved = float(len(sentence)) if saved is None else saved + len(sentence) * share
        if saved >= len(sentence):
            saved -= len(sentence)
            if len(sentence) > left:
                break
            left -= len(sentence)
            chosen.append(sentence)
    return "".join(chosen) or _head(text, size)

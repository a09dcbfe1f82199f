"""JSON of files and requests, of which nothing is known before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises
    ------
    json.JSONDecodeError
        A ValueError, also where lists and objects stand deeper in one another than can be followed, and where
        an object has a key twice, one of whose values would be dropped.

    Examples
    --------
    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json('{"a": 1, "a": 3}')
    Traceback (most recent call last):
    json.decoder.JSONDecodeError: repeated key 'a': line 1 column 10 (char 9)
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_name = dict(pairs)
        if len(by_name) < len(pairs):
            raise _repeated(str(first_repeated(name for name, _ in pairs)), text)
        return by_name

    try:
        return json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise json.JSONDecodeError("nested too deep", "", 0) from None


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that another before it equals.

    Examples
    --------
    >>> first_repeated(["a", "b", "a", "b"])
    'a'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _repeated(key: str, text: str | bytes) -> json.JSONDecodeError:
    """Where the key stands for the second time, if it is written there as JSON usually is."""
    document = text if isinstance(text, str) else text.decode("utf-8", "replace")
    written = json.dumps(key, ensure_ascii=False)
    first = document.find(written)
    return json.JSONDecodeError(
        f"repeated key {key[:60]!r}", document, max(0, document.find(written, first + 1))
    )

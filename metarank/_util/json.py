"""JSON of requests, of which nothing is known before."""

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
    json.decoder.JSONDecodeError: repeated key 'a': line 1 column 1 (char 0)
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_name = dict(pairs)
        if len(by_name) < len(pairs):
            twice = first_repeated(name for name, _ in pairs)
            raise json.JSONDecodeError(f"repeated key {twice!r:.60}", "", 0)
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

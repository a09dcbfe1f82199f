"""JSON of files, of which nothing is known before."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises
    ------
    json.JSONDecodeError
        A ValueError, also where lists and objects stand deeper in one another than can be followed.

    Examples
    --------
    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deep", "", 0) from None

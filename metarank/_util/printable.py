"""Text from outside as a terminal may be given it."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Control characters, line and paragraph separators, what turns the direction of text, and halves of pairs.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, keep: str = "") -> str:
    r"""The text, with `\u....` in the place of each character that a terminal would obey rather than show.

    Line ends and tabs are among them, unless they are in `keep`. Within JSON the text means the same.

    Examples
    --------
    >>> printable("a\x1b[31m b\n")
    'a\\u001b[31m b\\u000a'
    >>> printable("größer\n", keep="\n")
    'größer\n'
    """
    return _UNSAFE.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text)


def first_few(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, for a message.

    Examples
    --------
    >>> first_few(["sea", "sun", "salt", "sand", "shell"])
    "'sea', 'sun', 'salt' and 2 more"
    """
    shown = ", ".join(f"{name!r:.60}" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")

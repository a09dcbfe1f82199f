"""Model cards: what a model knows of itself and what only a person can say, as Markdown or as HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from metarank._util.printable import printable
from metarank._util.version import __version__

# The card in a model's folder. It is no part of the model: a person may edit it, and `load` does not read it.
README = "README.md"
# What `save` replaces in an edited card.
_WRITTEN = re.compile(rb"<!-- written by metarank.*<!-- end of what metarank wrote -->", re.DOTALL)
_MARKUP = re.compile(r"[\\`*<>\[\]|]|(?<!\w)_|_(?!\w)")


def rendered(*, html: bool = False, **content: Any) -> str:
    """The card: Markdown with the metadata that the Hugging Face hub reads, or a page of HTML.

    Examples
    --------
    >>> card = rendered(name="Toy", tags=[], facts={"features": "<b>"})
    >>> print(card[card.index("| features") :].splitlines()[0])
    | features | \\<b\\> |
    """
    from jinja2 import Environment, PackageLoader

    def text(value: object) -> str:
        plain = printable(" ".join(str(value).split()))
        return plain if html else _MARKUP.sub(r"\\\g<0>", plain)

    loader = PackageLoader("metarank.persist", "")
    pages = Environment(loader=loader, autoescape=html, trim_blocks=True, lstrip_blocks=True)
    pages.filters["text"] = text
    to = pages.get_template(f"card.{'html' if html else 'md'}.j2").module
    card = pages.get_template("card.j2").render(to=to, version=__version__, **content)
    return re.sub("\n{3,}", "\n\n", card.strip() + "\n")


def is_card(path: Path) -> bool:
    """Whether a path is that of a model's card."""
    return path.name == README and path.is_file() and not path.is_symlink()


def with_words_of(earlier: Path, card: str) -> bytes:
    """A new card for the place of an earlier one, if there is one: what a person wrote there stays."""
    written = _WRITTEN.search(new := card.encode())
    if written is None or not is_card(earlier):
        return new
    return _WRITTEN.sub(lambda _: written[0], earlier.read_bytes())

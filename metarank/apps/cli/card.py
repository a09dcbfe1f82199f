"""Write the model card of a saved model: what it is, what to expect of it, its limits."""

from __future__ import annotations

import argparse

from metarank.apps.cli._options import add_options
from metarank.apps.cli._printing import writing

_OPTIONS = """
model
--html      a page of HTML (default: Markdown, as in README.md of the model's folder)
--out FILE  file to write (default: standard output)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS, out="-")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.persist import load

    card = load(args.model).card(html=args.html)
    with writing(args.out) as out:
        out.write(card)

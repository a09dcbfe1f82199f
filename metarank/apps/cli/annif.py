"""Run a command of Annif, with metarank's backend (extra ``annif``)."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "rest",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="a command of Annif with its options: metarank annif train p corpus.tsv; --help lists them",
    )


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.annif import main

    if code := main(args.rest):
        raise SystemExit(code)

"""Measure a model on a labelled file and write a page that a person would look at, as one HTML file."""

from __future__ import annotations

import argparse

from metarank.apps.cli._labelled import add_labelled_options, check_page, read_labelled, write_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "--out", default="report.html", metavar="FILE", help="page to write (default report.html)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_labelled_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    check_page(args.out, "--out")
    write_page(args.out, args, read_labelled(args), quiet=args.quiet)
    print(args.out)

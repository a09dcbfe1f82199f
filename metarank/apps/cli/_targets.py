"""What the commands about several targets share: naming columns, reading them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from metarank._util.json import first_repeated
from metarank.apps.cli._common import check_exists

if TYPE_CHECKING:
    from metarank.data.columns import Columns

FILE_HELP = (
    "CSV, TSV or Parquet with named columns, or svmlight/LETOR text (.gz, .xz, .bz2, .zst too); "
    "- is standard input"
)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """FILE, its targets and its queries."""
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument(
        "--targets",
        required=True,
        metavar="NAMES",
        help="comma-separated columns of grades >= 0 (in LETOR text: grade, and features by number)",
    )
    parser.add_argument(
        "--query",
        metavar="COLUMN",
        help="column of the query: rows are ranked, and compared, within queries (of LETOR text: qid)",
    )
    parser.add_argument(
        "--propensities",
        metavar="NUMBERS",
        help="comma-separated, one a target: with what probability a relevant row was seen to be, where some "
        "are missing (1 for none); results are then of the complete targets",
    )


def names_of(text: str | None, option: str) -> list[str]:
    """The names in "a,b"."""
    names = [name.strip() for name in (text or "").split(",")] if text is not None else []
    if text is not None and not all(names):
        raise ValueError(f"{option} must be comma-separated names, got {text!r}")
    twice = first_repeated(names)
    if twice is not None:
        raise ValueError(f"{option} must name every column once, got {twice!r} twice")
    return names


def numbers_of(text: str | None, option: str) -> list[float] | None:
    """The numbers in "2,1"."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be comma-separated numbers, got {text!r}") from None


def propensities_of(args: argparse.Namespace, targets: list[str]) -> list[float] | None:
    """The numbers of --propensities, one a target."""
    found = numbers_of(args.propensities, "--propensities")
    if found is not None and (len(found) != len(targets) or not all(0 < p <= 1 for p in found)):
        raise ValueError(
            f"--propensities must be {len(targets)} numbers in (0, 1], one a target, got {args.propensities}"
        )
    return found


def read(path: str, query: str | None) -> Columns:
    """The file of a command."""
    from metarank.data.columns import read_columns

    check_exists(path)
    return read_columns(path, query)


def columns_of(columns: Columns, names: list[str], option: str) -> dict[str, np.ndarray]:
    """Some columns by name."""
    return {name: columns.numbers(name, option) for name in names}

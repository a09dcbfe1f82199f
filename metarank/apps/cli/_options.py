"""The options that several commands have, declared once: a command picks them by name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to {2**31 - 1}, got {text!r}")
    return int(text)


def _jobs(text: str) -> int:
    from metarank._util.threads import resolve_n_jobs

    try:
        return resolve_n_jobs(int(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a positive integer, or negative to leave cores free, got {text!r}"
        ) from None


def positive(text: str) -> int:
    """A number of things, at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 10:
        raise argparse.ArgumentTypeError(f"must be a number in [0, 10], got {text!r}")
    return weight


def weight_or_auto(text: str) -> float | str:
    """A propensity weight that is learned, or given."""
    return text if text == "auto" else _weight(text)


LIST_FORMAT = (
    "text file, line i = labels of row i, ids or names separated by commas; "
    'a name with a comma stands in "quotes"; an empty line means no label'
)

OPTIONS: dict[str, dict[str, Any]] = {
    "--jobs": {"type": _jobs, "metavar": "N", "help": "threads (default: all cores; -2: all but one)"},
    "--seed": {"type": _seed, "default": 0, "metavar": "N", "help": "seed of all that is drawn (default 0)"},
    "--json": {"action": "store_true", "help": "print JSON"},
    "--quiet": {"action": "store_true", "help": "no progress"},
    "--top": {"type": positive, "metavar": "K"},
    # A model, and rows for it.
    "model": {"metavar": "DIR", "help": "folder of the model"},
    "input": {
        "metavar": "INPUT",
        "nargs": "?",
        "help": "data file, or - for standard input; omit it with --text",
    },
    "--text": {"action": "append", "metavar": "TEXT", "help": "a text instead of INPUT"},
    "test": {"metavar": "TEST", "help": "labelled data file, or - for standard input"},
    "--slices": {
        "metavar": "NAMES",
        "help": "figures apart for the rows of each value of these columns of TEST, separated by commas; of "
        'many values dates by year or month, numbers by ranges; "label frequency" is for labels by their '
        "number of training rows",
    },
    "--propensity-weight": {
        "type": _weight,
        "metavar": "A",
        "help": "boost of rare labels in the ranking, in [0, 10] (default: as learned in training)",
    },
    # How a file is read.
    "--text-column": {"metavar": "NAME", "help": "text column of a CSV, TSV, JSONL or Parquet file"},
    "--text-columns": {
        "metavar": "NAMES",
        "help": "columns of texts, each a block of its own, separated by commas",
    },
    "--vector-columns": {
        "metavar": "NAMES",
        "help": "columns of vectors, each a block: JSON lists, or blanks between the numbers",
    },
    "--number-columns": {
        "metavar": "NAMES",
        "help": "columns of numbers, one block (default: beside other blocks, all there are)",
    },
    "--category-columns": {"metavar": "NAMES", "help": "columns of categories, one block"},
    "--labels-column": {"metavar": "NAME", "help": "label column of such a file"},
    "--label-separator": {
        "metavar": "SEP",
        "help": "separator of the labels in one cell: any text, whitespace, json, none (one label per cell), "
        "or auto, which decides from the whole column (default: that of the model, or auto)",
    },
    "--one-based": {"action": "store_true", "help": "feature ids of an svmlight file start at 1"},
    # What others say of pairs of a row and a label.
    "--candidates": {
        "metavar": "FILE",
        "help": "scored candidates: CSV, TSV, JSONL or Parquet with the columns row (from 0), label, score "
        "and, for several sources, source",
    },
    "--pair-features": {
        "metavar": "FILE",
        "help": "more about pairs, which proposes none: the same columns, with names of features for sources",
    },
    # Several targets.
    "file": {
        "metavar": "FILE",
        "help": "CSV, TSV or Parquet with named columns, or svmlight/LETOR text (.gz, .xz, .bz2, .zst too); "
        "- is standard input",
    },
    "--targets": {
        "required": True,
        "metavar": "NAMES",
        "help": "comma-separated columns of grades >= 0 (in LETOR text: grade, and features by number)",
    },
    "--query": {
        "metavar": "COLUMN",
        "help": "column of the query: rows are ranked, and compared, within queries (of LETOR text: qid)",
    },
}
# Columns of a table that hold what a model reads.
COLUMNS = ("--text-column", "--text-columns", "--vector-columns", "--number-columns", "--category-columns")
READING = (*COLUMNS, "--labels-column", "--label-separator", "--one-based")
PAIRS = ("--candidates", "--pair-features")


def add_options(parser: Any, *names: str, **changed: Any) -> None:
    """Add options of `OPTIONS` to a parser or a group; `changed` says what is otherwise for a command."""
    for name in names:
        parser.add_argument(name, **OPTIONS[name] | changed)


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever reads a data file."""
    add_options(parser.add_argument_group("reading"), *READING)


def add_asking_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever asks a model about the rows of a data file."""
    add_options(parser, "--propensity-weight", "--jobs")
    add_reading_options(parser)


def add_pair_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever asks a model about pairs that others found."""
    group = parser.add_argument_group("candidates of others")
    plain = f"; for a model that was trained without, a shortlist to be ranked: {LIST_FORMAT}"
    add_options(group, "--candidates", help=OPTIONS["--candidates"]["help"] + plain)
    add_options(group, "--pair-features")


def completed(action: argparse.Action, words: Iterable[str]) -> None:
    """Words that a shell proposes for the value of an option which takes others too."""
    known = tuple(words)
    action.completer = lambda **_: known  # type: ignore[attr-defined]

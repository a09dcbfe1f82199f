"""Options of commands, declared as help shows them; those that several commands have, once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
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


def _declared(text: str) -> Iterator[tuple[list[str], str]]:
    """What each entry of a text names, and what it says of that; see `add_options`."""
    for entry in re.split(r"\n+(?! )", text.strip()):
        names, *meaning = re.split(r"\s{2,}", entry)
        yield names.split(), " ".join(meaning)


_SHARED = """
--jobs N                  threads (default: all cores; -2: all but one)
--seed N                  seed of all that is drawn (default 0)
--json                    print JSON
--quiet                   no progress
model DIR                 folder of the model
input INPUT               data file, or - for standard input; omit it with --text
--text TEXT ...           a text instead of INPUT
test TEST                 labelled data file, or - for standard input
--slices NAMES            figures apart for the rows of each value of these columns of TEST, separated by
                          commas; of many values dates by year or month, numbers by ranges; "label
                          frequency" is for labels by their number of training rows
--propensity-weight A     boost of rare labels in the ranking, in [0, 10], or auto, which training learned
                          (default: that of the model)
--text-column NAME        text column of a CSV, TSV, JSONL or Parquet file
--text-columns NAMES      columns of texts, each a block of its own, separated by commas
--vector-columns NAMES    columns of vectors, each a block: JSON lists, or blanks between the numbers
--number-columns NAMES    columns of numbers, one block (default: beside other blocks, all there are)
--category-columns NAMES  columns of categories, one block
--labels-column NAME      label column of such a file
--label-columns NAMES     columns of 0 and 1, or grades, each a label, separated by commas
--label-separator SEP     separator of the labels in one cell: any text, whitespace, list, <> (each label in
                          angle brackets), none (one label per cell), or auto, which decides from the whole
                          column (default: that of the model, or auto)
--encoding NAME           encoding of such a file's text, such as latin-1 (default: utf-8)
--one-based               feature ids of an svmlight file start at 1
--candidates FILE         scored candidates: CSV, TSV, JSONL or Parquet with the columns row (from 0),
                          label, score and, for several sources, source
--pair-features FILE      more about pairs, which proposes none: the same columns, with names of features
                          for sources
file FILE                 CSV, TSV or Parquet with named columns, or svmlight/LETOR text (.gz, .xz, .bz2,
                          .zst too); - is standard input
--targets NAMES           comma-separated columns of grades >= 0 (in LETOR text: grade, and features by
                          number)
--query COLUMN            column of the query: rows are ranked, and compared, within queries (of LETOR
                          text: qid)
"""
SHARED: dict[str, tuple[list[str], str]] = {names[0]: (names, what) for names, what in _declared(_SHARED)}
# Columns of a table that hold what a model reads.
COLUMNS = ("--text-column", "--text-columns", "--vector-columns", "--number-columns", "--category-columns")
# Of whatever reads a data file, and of what asks a model about pairs that others found.
READING: str = f"""
[reading]
{" ".join(COLUMNS)} --labels-column --label-columns --label-separator --encoding --one-based
"""
PAIRS: str = f"""
[candidates of others]
--candidates FILE  {SHARED["--candidates"][1]}; for a model that was trained without, a shortlist to be
                   ranked: {LIST_FORMAT}
--pair-features
"""
# What else argparse is told of an option, whichever command has it.
_TOLD: dict[str, dict[str, Any]] = {
    "--jobs": {"type": _jobs},
    "--seed": {"type": _seed, "default": 0},
    "--top": {"type": positive},
    "--at-most": {"type": positive},
    "--at-least": {"type": positive},
    "--propensity-weight": {"type": weight_or_auto},
    "--targets": {"required": True},
    "input": {"nargs": "?"},
}


def add_options(parser: Any, text: str, **told: Any) -> None:
    """Add options to a parser.

    An entry of the text declares one as help shows it: its name and what its value is called, then, after two
    blanks at least, what it means, which goes on in indented lines. One without a value is a flag; one with
    several takes so many; one with "..." may be repeated. An entry without a meaning names options of
    `SHARED`; one in brackets is the title of a group of those that follow, and may describe it.

    Beside the text `add_argument` is told, by option, either a dict of arguments, `words` for a shell to
    propose among them, or a default, whose type is that of the values.
    """
    group = parser
    for names, what in _declared(text):
        if names[0].startswith("["):
            group = parser.add_argument_group(" ".join(names)[1:-1], what or None)
            continue
        for (name, *values), means in [(names, what)] if what else map(SHARED.__getitem__, names):
            own = told.get(name.removeprefix("--").replace("-", "_"), {})
            default = {} if isinstance(own, dict) else {"type": type(own), "default": own}
            how = default | _TOLD.get(name, {}) | (own if isinstance(own, dict) else {})
            words = how.pop("words", None)
            if values[-1:] == ["..."]:
                how["action"] = "append"
                values.pop()
            if len(values) > 1:
                how |= {"nargs": len(values), "metavar": tuple(values)}
            elif values:
                how["metavar"] = values[0]
            elif name.startswith("--") and "choices" not in how:
                how["action"] = "store_true"
            action = group.add_argument(name, help=means, **how)
            if words is not None:
                action.completer = lambda known=tuple(words), **_: known

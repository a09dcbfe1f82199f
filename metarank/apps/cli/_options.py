"""Options of commands, declared as help shows them; shared options once."""

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


def weight_or_auto(text: str) -> float | str:
    """A propensity weight: a number, or "auto"."""
    if text == "auto":
        return text
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 10:
        raise argparse.ArgumentTypeError(f"must be a number in [0, 10], got {text!r}")
    return weight


LIST_FORMAT = (
    "text file, line i = labels of row i, ids or names separated by commas; "
    'put a name with a comma in "quotes"; an empty line means no label'
)


def _declared(text: str) -> Iterator[tuple[list[str], str]]:
    """The names of each entry of a text, and its meaning; see `add_options`."""
    for entry in re.split(r"\n+(?! )", text.strip()):
        names, *meaning = re.split(r"\s{2,}", entry)
        yield names.split(), " ".join(meaning)


_SHARED = """
--jobs N                  threads (default: all cores; -2: all but one)
--seed N                  random seed (default 0)
--json                    print JSON
--quiet                   no progress
model DIR                 folder of the model
input INPUT               data file, or - for standard input; omit it with --text
--text TEXT ...           a text instead of INPUT
test TEST                 labelled data file, or - for standard input
--slices NAMES            also measure the rows of each value of these columns of TEST, separated by commas;
                          many dates are grouped by year or month, many numbers by range; "label frequency"
                          groups labels by their number of training rows
--propensity-weight A     rare-label boost of the ranking, in [0, 10], or auto for the weight learned in
                          training (default: that of the model)
--text-column NAME        text column of a CSV, TSV, JSONL or Parquet file; several, separated by commas, are
                          joined
--text-columns NAMES      columns of texts, each a separate block, separated by commas
--vector-columns NAMES    columns of vectors, each a block: JSON lists, or numbers separated by blanks
--number-columns NAMES    columns of numbers, one block (default: if there are other blocks, all columns of
                          numbers)
--category-columns NAMES  columns of categories, one block
--labels-column NAME      label column of such a file
--label-columns NAMES     columns of 0 and 1, or grades, each a label, separated by commas
--label-separator SEP     separator of the labels in one cell: any text, whitespace, list, <> (each label in
                          angle brackets), none (one label per cell), or auto, which looks at the whole
                          column (default: that of the model, or auto)
--encoding NAME           encoding of such a file's text, such as latin-1 (default: utf-8)
--one-based               feature ids of an svmlight file start at 1
--candidates FILE         scored candidates: CSV, TSV, JSONL or Parquet with the columns row (from 0),
                          label, score and, for several sources, source
--pair-features FILE      more features of pairs, which are not candidates: the same columns, with feature
                          names as sources
file FILE                 CSV, TSV or Parquet with named columns, or svmlight/LETOR text (.gz, .xz, .bz2,
                          .zst too); - is standard input
--targets NAMES           comma-separated columns of grades >= 0 (in LETOR text: grade, and features by
                          number)
--query COLUMN            column of the query: rows are ranked and compared within queries (LETOR text: qid)
"""
SHARED: dict[str, tuple[list[str], str]] = {names[0]: (names, what) for names, what in _declared(_SHARED)}
# Columns of a table that hold what a model reads.
COLUMNS = ("--text-column", "--text-columns", "--vector-columns", "--number-columns", "--category-columns")
# Options of commands that read a data file, and of those that take candidates from elsewhere.
READING: str = f"""
[reading]
{" ".join(COLUMNS)} --labels-column --label-columns --label-separator --encoding --one-based
"""
PAIRS: str = f"""
[your own candidates]
--candidates FILE  {SHARED["--candidates"][1]}; for a model trained without candidates, a shortlist to
                   rank: {LIST_FORMAT}
--pair-features
"""
# More arguments of argparse for an option of any command.
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


def add_options(parser: Any, text: str, **how: Any) -> None:
    """Add options to a parser.

    An entry of the text declares one as help shows it: its name and what its value is called, then, after two
    blanks at least, what it means, which goes on in indented lines. One without a value is a flag; one with
    several takes so many; one with "..." may be repeated. An entry without a meaning names options of
    `SHARED`; one in brackets is the title of a group of those that follow, and may describe it.

    `how` gives `add_argument` more, by option: either a dict of arguments, `words` for a shell to
    propose among them, or a default, whose type is that of the values.
    """
    group = parser
    for names, what in _declared(text):
        if names[0].startswith("["):
            group = parser.add_argument_group(" ".join(names)[1:-1], what or None)
            continue
        for (name, *values), means in [(names, what)] if what else map(SHARED.__getitem__, names):
            own = how.get(name.removeprefix("--").replace("-", "_"), {})
            default = {} if isinstance(own, dict) else {"type": type(own), "default": own}
            more = default | _TOLD.get(name, {}) | (own if isinstance(own, dict) else {})
            words = more.pop("words", None)
            if values[-1:] == ["..."]:
                more["action"] = "append"
                values.pop()
            if len(values) > 1:
                more |= {"nargs": len(values), "metavar": tuple(values)}
            elif values:
                more["metavar"] = values[0]
            elif name.startswith("--") and "choices" not in more:
                more["action"] = "store_true"
            action = group.add_argument(name, help=means, **more)
            if words is not None:
                action.completer = lambda known=tuple(words), **_: known

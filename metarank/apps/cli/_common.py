"""What the commands share: reading input, progress, tables, writing files whole."""

from __future__ import annotations

import argparse
import errno
import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from metarank._util.files import whole_file
from metarank._util.tables import plain_table
from metarank.apps.cli._terminal import InOptions, unguarded

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker


MODEL_HELP = "folder of the model; --model DIR anywhere is the same"
# Options that name columns of text or of blocks.
_COLUMNS = ("text_column", "text_columns", "vector_columns", "number_columns", "category_columns")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever reads a data file."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--text-column", metavar="NAME", help="text column of a CSV, TSV, JSONL or Parquet file"
    )
    for option, what in (
        ("--text-columns", "columns of texts, each a block of its own, separated by commas"),
        ("--vector-columns", "columns of vectors, each a block: JSON lists, or blanks between the numbers"),
        ("--number-columns", "columns of numbers, one block (default: beside other blocks, all there are)"),
        ("--category-columns", "columns of categories, one block"),
    ):
        group.add_argument(option, metavar="NAMES", help=what)
    group.add_argument("--labels-column", metavar="NAME", help="label column of such a file")
    group.add_argument(
        "--label-separator",
        metavar="SEP",
        help="separator of the labels in one cell: any text, whitespace, json, none (one label per cell), or "
        "auto, which decides from the whole column (default: that of the model, or auto)",
    )
    group.add_argument("--one-based", action="store_true", help="feature ids of an svmlight file start at 1")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options of whatever asks a model about rows; see `load_model` and `read_dataset`."""
    add_weight_option(parser)
    add_jobs_option(parser)
    add_reading_options(parser)


def add_weight_option(parser: argparse.ArgumentParser) -> None:
    """The lean of every command that ranks; see `load_model`."""
    parser.add_argument(
        "--propensity-weight",
        type=_weight,
        default=None,
        metavar="A",
        help="lean of the ranking towards rare labels, in [0, 10] (default: as learned in training)",
    )


def add_rows_options(parser: argparse.ArgumentParser, text_help: str) -> None:
    """DIR, and rows: of a file or typed; see `check_rows`."""
    parser.add_argument("model", metavar="DIR", help=MODEL_HELP)
    parser.add_argument(
        "input", metavar="INPUT", nargs="?", help="data file, or - for standard input; omit it with --text"
    )
    parser.add_argument("--text", action="append", metavar="TEXT", help=text_help)


def check_rows(args: argparse.Namespace) -> None:
    """Refuses both or neither of INPUT and --text, and no label to list."""
    if (args.input is None) == (args.text is None):
        raise ValueError("give either INPUT or --text")
    check_top(args.top)


def check_top(top: int | None) -> None:
    """Refuses no label to list."""
    if top is not None and top < 1:
        raise ValueError(f"--top must be positive, got {top}")


def check_exists(path: str, said: str = "no such file") -> None:
    """Refuses a file that is not there; "-" is standard input."""
    if path != "-" and not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, said, path)


def completed(action: argparse.Action, words: Iterable[str]) -> None:
    """Words that a shell proposes for the value of an option which takes others too."""
    action.words = tuple(words)  # type: ignore[attr-defined]


def add_jobs_option(parser: argparse.ArgumentParser) -> None:
    """The one budget of threads."""
    parser.add_argument(
        "--jobs", type=_jobs, default=None, metavar="N", help="threads (default: all cores; -2: all but one)"
    )


def add_seed_option(
    parser: argparse.ArgumentParser, help: str = "seed of all that is drawn (default 0)"
) -> None:
    """The seed of all that is drawn."""
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help=help)


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


def weight_or_auto(text: str) -> float | str:
    """A lean of the ranking that is learned, or given."""
    return text if text == "auto" else _weight(text)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 10:
        raise argparse.ArgumentTypeError(f"must be a number in [0, 10], got {text!r}")
    return weight


def read_dataset(path: str, args: argparse.Namespace, model: MetaRanker | None = None) -> Dataset:
    """The data file of a command; rows for a model get the width of its training rows."""
    from metarank import data
    from metarank.apps.model_blocks import columns_of, needed_blocks, under_names_of
    from metarank.data.column_names import NoColumn, listed
    from metarank.data.readers import NoTable
    from metarank.data.xc import has_header

    check_exists(path)
    sizes: dict[str, Any] = {}
    columns = _columns_asked(args)
    is_asked = bool(columns)
    parts = [] if model is None or is_asked else needed_blocks(model.encoder_)
    if model is not None and not is_asked:
        columns = columns_of(parts) if parts else {"text_column": model.text_columns_}
    if model is not None and model.encoder_.vectorizer is None and not parts:
        sizes["n_features"] = model.n_features_in_
        # A header may speak of other labels, or of none where rows are only to be ranked.
        if os.path.isfile(path) and not has_header(path):
            sizes["n_labels"] = model.n_labels_
    separator: str | None = model.label_separator_ if model is not None else "auto"
    if args.label_separator is not None:
        separator = None if args.label_separator == "none" else args.label_separator
    options: dict[str, Any] = {
        **columns,
        "labels_column": args.labels_column,
        "label_separator": separator,
        "zero_based": not args.one_based,
        "n_jobs": getattr(args, "jobs", None),
    }
    with logging_to_stderr("metarank.data", InOptions(args.options)):
        try:
            dataset = data.load(path, **sizes, **options)
        except ValueError as error:
            if isinstance(error, NoColumn) and model is not None and not is_asked:
                raise ValueError(
                    f"{path} lacks the column {error.column!r} of the model, which reads "
                    f"{listed(c for own in columns.values() for c in own or ())}"
                ) from None
            if isinstance(error, NoTable) and model is not None and model.encoder_.vectorizer is not None:
                typed = "; or give texts by --text" if hasattr(args, "text") else ""
                raise ValueError(
                    f"{error}: no file of texts, which the model needs; these are CSV or TSV with a column "
                    f"of text, JSON lines and Parquet (--text-column names the column){typed}"
                ) from None
            if sizes.pop("n_labels", None) is None:
                raise
            try:  # its ids may be beyond those of the model: labels that it never met
                dataset = data.load(path, **sizes, **options)
            except ValueError:
                raise error from None
    if parts and hasattr(dataset.X, "kinds") and set(dataset.X) != {part.name for part in parts}:
        dataset = replace(dataset, X=under_names_of(parts, dataset.X))
    if model is not None and args.label_separator is not None:  # as asked for, whatever the model's is
        dataset = replace(dataset, label_separator="auto")
    if dataset.n_rows == 0:
        raise ValueError(f"{path} holds no rows")
    return dataset


def check_has_labels(dataset: Dataset, path: str) -> None:
    """Refuses rows without any label, most often of a table whose column of labels is called otherwise."""
    from metarank.data.text import LABELS_COLUMNS

    if dataset.n_labels == 0:
        raise ValueError(
            f"{path} holds no labels: --labels-column names those of a table that has them in none of the "
            f"columns {', '.join(LABELS_COLUMNS)}"
        )


def _columns_asked(args: argparse.Namespace) -> dict[str, Any]:
    """The columns of text and of blocks that a command names; "" is none."""
    asked = {name: getattr(args, name) for name in _COLUMNS}
    return {name: [] if value == "" else value for name, value in asked.items() if value is not None}


def load_model(path: str, args: argparse.Namespace) -> MetaRanker:
    """The model folder of a command, verified; it ranks with the lean that the command asks for."""
    from metarank.apps.model_blocks import needed_blocks
    from metarank.model.estimator import MetaRanker
    from metarank.persist import load

    model = load(path)
    if not isinstance(model, MetaRanker):
        raise ValueError(
            f"{path} must hold a MetaRanker, got a {type(model).__name__}: "
            "use it from Python, metarank.load(path).shortlist(X)"
        )
    if args.jobs is not None:
        model.n_jobs = args.jobs
    parts = needed_blocks(model.encoder_)
    if getattr(args, "text", None) is not None and [part.kind for part in parts] not in ([], ["text"]):
        names = ", ".join(column for part in parts for column in part.columns or [part.name])
        raise ValueError(f"--text is for models of one text; this one takes the blocks {names}: give INPUT")
    if getattr(args, "propensity_weight", None) is not None:
        model.propensity_weight_ = args.propensity_weight
    return model


def showing_progress(quiet: bool = False) -> AbstractContextManager[None]:
    """Show the library's progress reports on stderr."""
    from metarank._util.progress import showing_progress

    # The line moves the cursor; what it names is made printable there.
    stream = None if sys.stderr is None else unguarded(sys.stderr)
    return nullcontext() if quiet else showing_progress(stream)


@contextmanager
def logging_to_stderr(name: str, form: logging.Formatter | None = None) -> Iterator[None]:
    """Show what a part of the library says, such as what readers of data left out, a line each on stderr."""
    logger, handler = logging.getLogger(name), logging.StreamHandler(sys.stderr)
    handler.setFormatter(form)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before[1]
        logger.setLevel(before[0])


@contextmanager
def writing(path: str, mode: str = "w") -> Iterator[IO]:
    """A file that appears whole or not at all; "-" is standard output, for text.

    Data for a program, in a file or a pipe, are as they are; a terminal is given what it can show.
    """
    if path == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed: name a file with --out")
        yield sys.stdout if sys.stdout.isatty() else unguarded(sys.stdout)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "--out must name a file, not a folder", path)
    with whole_file(path, mode) as f:
        yield f


def print_page(text: str) -> None:
    """Print lines; on a terminal those that are too long for it are wrapped, as `wrapped` does."""
    if sys.stdout is not None and sys.stdout.isatty():
        text = wrapped(text, shutil.get_terminal_size().columns)
    print(text)


def wrapped(text: str, width: int) -> str:
    """Long lines as several, below the start of what they say; rows of tables stay as they are.

    Examples
    --------
    >>> print(wrapped("choices   all of the labels are ranked", 24))
    choices   all of the
              labels are
              ranked
    """
    lines = []
    for line in text.split("\n"):
        gaps = [gap.end() for gap in re.finditer(r"(?<=\S) {2,}(?=\S)", line)]
        start = gaps[0] if gaps and gaps[0] < 30 else len(line) - len(line.lstrip())
        if len(line) <= width or len(gaps) > 1 or width - start < 10:
            lines.append(line)
            continue
        more = textwrap.wrap(line[start:], width - start, break_long_words=False, break_on_hyphens=False)
        lines += [line[:start] + more[0], *(" " * start + part for part in more[1:])]
    return "\n".join(lines)


# A plain table: first column left, the others right, the head underlined.
table = partial(plain_table, rule=True)


def print_json(value: Any) -> None:
    """A value as JSON on standard output, names as they are."""
    print(json.dumps(value, indent=1, ensure_ascii=False))

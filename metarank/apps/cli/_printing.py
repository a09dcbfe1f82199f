"""What the commands print and write: progress, messages, tables, predictions. Terminal codes in it are
escaped."""

from __future__ import annotations

import argparse
import csv
import errno
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import IO, Any

from metarank._util.files import whole_file
from metarank._util.printable import plain_table, printable

# A plain table: first column left, the others right, the head underlined.
table = partial(plain_table, rule=True)


def show(as_json: bool, value: Any, text: Any) -> None:
    """An answer on standard output: a value as JSON, names as they are, or a text that says the same."""
    print(json.dumps(value, indent=1, ensure_ascii=False) if as_json else text)


# --- streams ----------------------------------------------------------------------


class GuardedStream:
    """A text stream that escapes terminal codes; otherwise the stream itself."""

    def __init__(self, stream: IO[str]) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        self.unguarded.write(printable(text, keep="\n\t"))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


@contextmanager
def guarded_output() -> Iterator[None]:
    """Standard output and error as `GuardedStream`s."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (s if s is None else GuardedStream(s) for s in before)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unguarded(stream: IO[str]) -> IO[str]:
    """The stream itself, for text that is safe."""
    return stream.unguarded if isinstance(stream, GuardedStream) else stream


@contextmanager
def writing(path: str, mode: str = "w") -> Iterator[IO]:
    """A file that appears whole or not at all; "-" is standard output, for text.

    Data for a program, in a file or a pipe, are as they are; a terminal is given what it can show.
    """
    if path == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed: give a file with --out")
        yield sys.stdout if sys.stdout.isatty() else unguarded(sys.stdout)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "--out must name a file, not a folder", path)
    with whole_file(path, mode) as f:
        yield f


def headings(rows: Any, ids: list[Any] | None, first: int = 0) -> list[str]:
    """What stands above each row: a text of the command line, where there are several; of a file the row's
    number, counted from `first`, its id, and the start of its title or text."""
    if isinstance(rows, list):
        return rows if len(rows) > 1 else [""]
    ids = [None] * rows.n_rows if ids is None else ids
    numbers = [f"row {i}" + ("" if row_id is None else f" ({row_id})") for i, row_id in enumerate(ids, first)]
    names = titles_of(rows)
    return numbers if names is None else [f"{n}: {name}" for n, name in zip(numbers, names)]


def titles_of(rows: Any) -> Sequence[str] | None:
    """The start of the title or text of each row of a Dataset, if it has some."""
    from metarank.data.blocks import Blocks
    from metarank.model.fitting.inputs import row_names

    return row_names(rows, None, rows.X if isinstance(rows.X, Blocks) else None)


# --- what the library says --------------------------------------------------------

# Parameters whose option has another name; a number of things, n_things, is so many by --things.
_OPTIONS = {"random_state": "seed", "qid": "query", "zero_based": "one_based"}
# Arguments that name a file of rows.
_ROWS = ("train", "input", "test", "file")
_QUOTED = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def options_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The option of each parameter that has one, by the parameter's name."""
    options: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                options |= options_of(sub)
        elif action.option_strings:
            options |= dict.fromkeys((action.dest, f"n_{action.dest}"), action.option_strings[-1])
        elif action.dest in _ROWS:
            options |= {"X": str(action.metavar), "Y": f"the labels of {action.metavar}"}
    return options | {name: options[dest] for name, dest in _OPTIONS.items() if dest in options}


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library as one of the command line: parameters are called by their options.

    Names of several words are taken for parameters wherever they stand, others where the message begins with
    them or gives them a value; what stands in quotes is left as it is.

    Examples
    --------
    >>> options = {"n_folds": "--folds", "ranker": "--ranker"}
    >>> in_options("n_folds must be at least 2, got 1", options)
    '--folds must be at least 2, got 1'
    >>> in_options("n_folds=2 needs ranker='lambdarank', no other ranker", options)
    '--folds 2 needs --ranker lambdarank, no other ranker'
    """

    def named(match: re.Match[str]) -> str:
        return options[match[0]]

    if not options:
        return message
    one = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
    message = re.sub(
        rf"(?<![\w./=-])({one})=['\"]?([\w.-]+)['\"]?", lambda m: f"{options[m[1]]} {m[2]}", message
    )
    message = re.sub(rf"^(?:{one})(?= (?:must|needs|holds|is|goes|has) )", named, message)
    message = re.sub(r"^(--[\w-]+ must be )None or ", r"\1", message)  # None is an option left out
    several = "|".join(re.escape(name) for name in options if "_" in name)
    if several:
        parts = _QUOTED.split(message)
        alone = rf"(?<![\w./=-])(?:{several})(?![\w/=-]|\.\w)"
        parts[::2] = [re.sub(alone, named, part) for part in parts[::2]]
        message = "".join(parts)
    return message


@contextmanager
def warnings_in_a_line(options: Mapping[str, str]) -> Iterator[None]:
    """Warnings without the line of code that gives them."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = in_options(" ".join(str(message).split()), options)
        print(f"metarank: warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def notes_of_readers(options: Mapping[str, str]) -> Iterator[None]:
    """Show what readers of data say, such as what they left out, a line each on stderr."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print(f"metarank: {in_options(record.getMessage(), options)}", file=sys.stderr)

    logger, handler = logging.getLogger("metarank.data"), Lines()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def showing_progress(quiet: bool = False) -> AbstractContextManager[None]:
    """Show the library's progress reports on stderr."""
    from metarank._util.progress import showing_progress

    # The line moves the cursor; what it names is made printable there.
    stream = None if sys.stderr is None else unguarded(sys.stderr)
    return nullcontext() if quiet else showing_progress(stream)


# --- files of predictions ---------------------------------------------------------

FORMATS = ("txt", "csv", "tsv", "json", "jsonl", "parquet")
# What a format of binary files needs.
BINARY = {"parquet": "pyarrow"}
ENDINGS = f".{', .'.join(FORMATS)}"


def format_of(path: str, asked: str | None) -> str:
    """What is to be written to `--out PATH` with `--format FORMAT`, before any work.

    A name without an ending and standard output ("-") take any format, text by default.

    Raises
    ------
    ValueError
        If the ending is unknown or contradicts the format, or a binary one is to go to standard output.

    Examples
    --------
    >>> format_of("top.csv", None), format_of("-", "jsonl")
    ('csv', 'jsonl')
    """
    ending = os.path.splitext(path)[1][1:].lower()
    if ending and ending not in FORMATS:
        raise ValueError(f"--out must end in one of {ENDINGS}, got {path!r}")
    if ending and asked not in (None, ending):
        raise ValueError(f"--format {asked} contradicts --out {path}: leave one out")
    form = ending or asked or "txt"
    if form in BINARY:
        if path == "-":
            raise ValueError(f"--format {form} needs a file: give one with --out")
        from metarank._util.extra import require_extra

        require_extra("data", BINARY[form])
    return form


def write_records(out: IO, form: str, records: Iterable[dict[str, Any]], names: Sequence[str]) -> None:
    """Records of rows in any format but text.

    ``{"row": i, "without_evidence": bool, "labels": [{"label": id, "name": name, "score": score}, ...]}``.

    A record may have an "id", a label a "probability". csv, tsv and Parquet hold a line for each
    label, with its rank from 1 and the columns `names`; json is one list, jsonl a record a line.
    """
    if form in ("json", "jsonl"):
        start, between, end = ("", "\n", "\n") if form == "jsonl" else ("[\n", ",\n", "\n]\n")
        out.write(start)
        for i, record in enumerate(records):
            out.write(f"{between if i else ''}{printable(json.dumps(record, ensure_ascii=False))}")
        out.write(end)
        return
    pairs = ({**r, **entry, "rank": rank} for r in records for rank, entry in enumerate(r["labels"], 1))
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"row": pa.int64(), "rank": pa.int32(), "label": pa.int32(), "name": pa.string()}
        types["label_id"] = pa.string()
        types |= {"score": pa.float32(), "probability": pa.float32(), "without_evidence": pa.bool_()}
        columns = list(zip(*([pair[name] for name in names] for pair in pairs))) or [()] * len(names)
        arrays = [pa.array(column, types.get(name)) for name, column in zip(names, columns)]
        pq.write_table(pa.table(arrays, names=list(names)), out)
        return
    writer = csv.writer(out, delimiter="\t" if form == "tsv" else ",", lineterminator="\n")
    writer.writerow(names)
    shown: dict[str, Any] = {"without_evidence": int}
    shown |= dict.fromkeys(("score", "probability", "gain"), "{:.6g}".format)
    if isinstance(out, GuardedStream):  # a terminal: a name is no line of its own
        shown |= dict.fromkeys(("name", "label_name", "row_name"), printable)
    for pair in pairs:
        writer.writerow([shown[name](pair[name]) if name in shown else pair[name] for name in names])

"""What the commands say: nothing that a terminal obeys, and options in the place of parameters."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from metarank._util.printable import printable

# Parameters whose option has another name.
_OPTIONS = {
    "n_folds": "folds",
    "n_features": "features",
    "n_jobs": "jobs",
    "n_labels": "labels",
    "n_rounds": "rounds",
    "n_weights": "weights",
    "random_state": "seed",
    "label_gain": "gain",
    "qid": "query",
    "address": "dask_scheduler",
    "n_workers": "local_cluster",
    "zero_based": "one_based",
}
# Arguments that name a file of rows.
_ROWS = ("train", "input", "test", "file")
_QUOTED = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


class GuardedStream:
    """A text stream whose lines hold nothing that a terminal obeys; all else is the stream's own."""

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
    """The stream itself, for what is no text from outside."""
    return stream.unguarded if isinstance(stream, GuardedStream) else stream


def options_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The option of each parameter that has one, by the parameter's name."""
    found: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                found |= options_of(sub)
        elif action.option_strings:
            found[action.dest] = action.option_strings[-1]
        elif action.dest in _ROWS:
            found |= {"X": str(action.metavar), "Y": f"the labels of {action.metavar}"}
    return found | {name: found[dest] for name, dest in _OPTIONS.items() if dest in found}


class InOptions(logging.Formatter):
    """Log lines of the library as lines of the command line."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__()
        self.options = options

    def format(self, record: logging.LogRecord) -> str:
        return f"metarank: {in_options(record.getMessage(), self.options)}"


@contextmanager
def warnings_in_a_line(options: Mapping[str, str]) -> Iterator[None]:
    """Warnings without the line of code that gives them."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        said = in_options(" ".join(str(message).split()), options)
        print(f"metarank: warning: {said}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library as one of the command line: parameters are called by their options.

    Names of several words are taken for parameters wherever they stand, others where the message begins with
    them or gives them a value; what stands in quotes is left as it is.

    Examples
    --------
    >>> options = {"n_folds": "--folds", "ranker": "--ranker", "ranker_pairs": "--ranker-pairs"}
    >>> in_options("n_folds must be at least 2, got 1", options)
    '--folds must be at least 2, got 1'
    >>> in_options("ranker_pairs='all' needs ranker='lambdarank', no other ranker", options)
    '--ranker-pairs all needs --ranker lambdarank, no other ranker'
    """

    def with_value(found: re.Match[str]) -> str:
        return f"{options[found[1]]} {found[2]}"

    def named(found: re.Match[str]) -> str:
        return options[found[0]]

    if not options:
        return message
    one = "|".join(sorted(map(re.escape, options), key=len, reverse=True))
    alone = r"(?<![\w./=-])(?:{})(?![\w/=-]|\.\w)"
    message = re.sub(rf"(?<![\w./=-])({one})=['\"]?([\w.-]+)['\"]?", with_value, message)
    message = re.sub(rf"^(?:{one})(?= (?:must|needs|holds|is|goes|has) )", named, message)
    message = re.sub(r"^(--[\w-]+ must be )None or ", r"\1", message)  # None is an option left out
    several = "|".join(re.escape(name) for name in options if "_" in name)
    if several:
        parts = _QUOTED.split(message)
        parts[::2] = [re.sub(alone.format(several), named, part) for part in parts[::2]]
        message = "".join(parts)
    return message

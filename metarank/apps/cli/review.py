"""List the pairs of row and label that a person should check first."""

from __future__ import annotations

import argparse
import csv
from typing import Any

from metarank._util.printable import printable
from metarank.apps.cli._options import READING, add_options
from metarank.apps.cli._printing import GuardedStream, writing
from metarank.types.suggested import GOALS, MissingLabel, ReviewPair

_OPTIONS = """
model DIR          folder of the model
input INPUT        data file; pairs that it labels count as checked. Without INPUT: labels that training rows
                   probably lack
--top K            pairs to list, over all rows (default 10)
--goal GOAL        what to look for: recall (default), labels that the label sets miss; errors, decisions of
                   the sets that are wrong
--optimize METRIC  the label sets' thresholds, as in `metarank predict` (default micro-f1)
--out FILE         CSV file to write (default: standard output)
--jobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from metarank.thresholds.set_metrics import METRICS

    known = {"optimize": {"words": METRICS}, "goal": {"choices": GOALS}}
    add_options(parser, _OPTIONS + READING, top=10, out="-", **known)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, load_model, read_dataset

    asked: dict[str, Any] = {"goal": args.goal, "optimize": args.optimize}
    asked = {name: value for name, value in asked.items() if value is not None}
    if args.input is None and asked:
        raise ValueError(f"--{next(iter(asked))} needs INPUT: leave it out")
    check_exists(args.input)
    with writing(args.out) as out:
        model = load_model(args)
        pairs: list[Any] = (
            model.suggest_missing(args.top)
            if args.input is None
            else model.review_queue(read_dataset(args.input, args, model), args.top, **asked)
        )
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow((MissingLabel if args.input is None else ReviewPair)._fields)
        shown: dict[type, Any] = {float: "{:.6g}".format}
        if isinstance(out, GuardedStream):  # a terminal: a name is no line of its own
            shown[str] = printable
        lines.writerows([shown.get(type(cell), lambda cell: cell)(cell) for cell in pair] for pair in pairs)

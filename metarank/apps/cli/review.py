"""List the pairs of row and label that a person should check first."""

from __future__ import annotations

import argparse
from typing import Any

from metarank.apps.cli._options import READING, add_options
from metarank.apps.cli._printing import titles_of, write_records, writing
from metarank.types.suggested import GOALS

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
_COLUMNS = ["row", "id", "row_name", "label", "label_id", "label_name", "probability", "gain"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from metarank.thresholds.set_metrics import METRICS

    known = {"optimize": {"words": METRICS}, "goal": {"choices": GOALS}}
    add_options(parser, _OPTIONS + READING, top=10, out="-", **known)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, load_model, read_dataset, row_ids
    from metarank.data.tables import read_elsewhere

    asked: dict[str, Any] = {"goal": args.goal, "optimize": args.optimize}
    asked = {name: value for name, value in asked.items() if value is not None}
    if args.input is None and asked:
        raise ValueError(f"--{next(iter(asked))} needs INPUT, rows to look at")
    check_exists(args.input)
    with writing(args.out) as out:
        model = load_model(args)
        own_ids: Any = model.label_table_.own_ids
        pairs: Any
        ids: Any = None
        titles: Any = None
        if args.input is None:
            pairs = model.suggest_missing(args.top)
        else:
            with read_elsewhere(["id"]):
                rows = read_dataset(args.input, args, model)
            ids, titles = row_ids(args.input, rows, args), titles_of(rows)
            pairs = model.review_queue(rows, args.top, **asked)
        records: list[dict[str, Any]] = [pair._asdict() for pair in pairs]
        beside = (("id", "row", ids), ("row_name", "row", titles), ("label_id", "label", own_ids))
        for column, of, values in beside:
            for record in records if values is not None else ():
                record[column] = values[record[of]]
        columns = [column for column in _COLUMNS if not records or column in records[0]]
        write_records(out, "csv", [{"labels": records}], columns)

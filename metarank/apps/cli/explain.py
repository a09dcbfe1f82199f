"""Show why labels are ranked where they are, for one row."""

from __future__ import annotations

import argparse
from typing import Any

from metarank._util.printable import printable
from metarank.apps.cli._options import PAIRS, READING, add_options
from metarank.apps.cli._printing import headings, show

_OPTIONS = """
model input --text
--row I            row of INPUT, counted from 0 (default 0)
--label LABEL ...  id or name (default: the top labels)
--top K            labels to explain (default 3)
--json --propensity-weight --jobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS + PAIRS + READING, row={"type": int}, top=3)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_rows, label_ids, load_model, pairs_for, read_dataset

    check_rows(args)
    if args.text is not None and len(args.text) > 1:
        raise ValueError(f"--text must be given once, got {len(args.text)} texts: explain one at a time")
    if args.text is not None and args.row is not None:
        raise ValueError("--row needs INPUT: leave it out with --text")
    model = load_model(args)
    row: Any
    heading = ""
    if args.text is not None:
        row, pairs = args.text, pairs_for(model, args, 1)
    else:
        dataset = read_dataset(args.input, args, model)
        index = args.row or 0
        if not 0 <= index < dataset.n_rows:
            raise ValueError(f"--row must lie in [0, {dataset.n_rows}), got {index}")
        row, pairs = dataset.take([index]), pairs_for(model, args, dataset.n_rows, index)
        heading = printable(headings(row, None, index)[0]) + "\n"
    labels = label_ids(model, args.label or (), "--label")
    labels = labels or [int(v) for v in model.rank(row, k=args.top, **pairs).labels[0] if v >= 0]
    pages = [model.explain(row, label, **pairs) for label in labels]
    show(args.json, [page.to_dict() for page in pages], heading + "\n\n".join(map(str, pages)))

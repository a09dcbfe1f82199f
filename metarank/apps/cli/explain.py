"""Show why labels stand where they do for one row."""

from __future__ import annotations

import argparse
from typing import Any

from metarank.apps.cli._common import (
    add_model_options,
    add_rows_options,
    check_rows,
    load_model,
    print_json,
    print_page,
    read_dataset,
)
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, pairs_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_rows_options(parser, "a text to explain")
    parser.add_argument(
        "--row", type=int, default=None, metavar="I", help="row of INPUT, counted from 0 (default 0)"
    )
    parser.add_argument(
        "--label", action="append", metavar="LABEL", help="id or name (default: the top labels)"
    )
    parser.add_argument("--top", type=int, default=3, metavar="K", help="labels to explain (default 3)")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    add_pair_options(parser)
    add_model_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    check_rows(args)
    check_pair_options(args)
    if args.text is not None and len(args.text) > 1:
        raise ValueError(f"--text must be given once, one text is explained at a time: got {len(args.text)}")
    if args.text is not None and args.row is not None:
        raise ValueError("--row is a row of INPUT: leave it out with --text")
    model = load_model(args.model, args)
    row: Any
    if args.text is not None:
        row, pairs = args.text, pairs_for(model, args, 1)
    else:
        dataset = read_dataset(args.input, args, model)
        index = args.row or 0
        if not 0 <= index < dataset.n_rows:
            raise ValueError(f"--row must lie in [0, {dataset.n_rows}), got {index}")
        row, pairs = dataset.take([index]), pairs_for(model, args, dataset.n_rows, index)
    labels = [model.label_table_.id_of_text(text, "--label") for text in args.label or ()]
    labels = labels or [int(v) for v in model.rank(row, k=args.top, **pairs).labels[0] if v >= 0]
    pages = [model.explain(row, label, **pairs) for label in labels]
    if args.json:
        print_json([p.to_dict() for p in pages])
    else:
        print_page("\n\n".join(str(p) for p in pages))

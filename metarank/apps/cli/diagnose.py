"""Show what several targets mean for one ranking, and how scores serve them."""

from __future__ import annotations

import argparse

from metarank.apps.cli._common import check_top, print_json, print_page
from metarank.apps.cli._targets import (
    add_target_options,
    columns_of,
    names_of,
    numbers_of,
    propensities_of,
    read,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_target_options(parser)
    parser.add_argument("--scores", metavar="NAMES", help="comma-separated columns of scores to judge")
    parser.add_argument(
        "--weights", metavar="NUMBERS", help="comma-separated weights of the targets (default: equal)"
    )
    parser.add_argument("--top", type=int, default=10, metavar="K", help="K of nDCG@K (default 10)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.objectives import check_weights, diagnose

    check_top(args.top)
    targets, scores = names_of(args.targets, "--targets"), names_of(args.scores, "--scores")
    weights = numbers_of(args.weights, "--weights")
    check_weights(weights, len(targets), name="--weights")
    columns = read(args.file, args.query)
    found = diagnose(
        columns_of(columns, targets, "--targets"),
        columns_of(columns, scores, "--scores") or None,
        weights=weights,
        qid=columns.ids,
        k=args.top,
        propensities=propensities_of(args, targets),
    )
    if args.json:
        print_json(found.to_dict())
    else:
        print_page(str(found))

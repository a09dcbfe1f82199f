"""Measure a model on a labelled file."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._common import table
from metarank.apps.cli._labelled import add_labelled_options, check_page, read_labelled, write_page
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, pairs_for

if TYPE_CHECKING:
    from metarank.model.measure import SliceFigures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "--metrics",
        metavar="NAMES",
        help="comma-separated names, such as P@5,PSP@5,micro-F1 (default: the usual ones for such a model)",
    )
    parser.add_argument(
        "--intervals", action="store_true", help="95 %% bootstrap confidence intervals, of all rows"
    )
    parser.add_argument("--report", metavar="FILE", help="write a report too, as one HTML file")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object, with fractions in [0, 1]",
    )
    add_labelled_options(parser, '; "label frequency" is for labels by their number of training rows')
    add_pair_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.metrics import Metric
    from metarank.model.measure import Evaluation

    names = None if args.metrics is None else [n.strip() for n in args.metrics.split(",") if n.strip()]
    if names == []:
        raise ValueError(f"--metrics must name at least one metric, got {args.metrics!r}")
    for name in names or []:
        Metric.parse(name)
    if args.report is not None:
        check_page(args.report, "--report")
    check_pair_options(args)
    if args.report is not None and (args.candidates is not None or args.pair_features is not None):
        raise ValueError("--report goes without --candidates and --pair-features")
    labelled = read_labelled(args)
    model, dataset, relevance, columns = labelled
    pairs = pairs_for(model, args, dataset.n_rows)
    evaluation = Evaluation(model, dataset, relevance, **pairs)
    if args.report is None and evaluation.unknown_rows:  # else the report warns of them
        print(f"metarank: {evaluation.unknown_rows}", file=sys.stderr)
    names = names or evaluation.default_names()
    values = evaluation.values(names, intervals=args.intervals)
    slices = evaluation.by_slices(names, columns)
    if args.report is not None:
        write_page(args.report, args, labelled, quiet=args.json)
    if args.json:
        # JSON has no NaN: a metric without a row to count is null.
        facts: dict[str, Any] = {
            "propensity_weight": model.propensity_weight_,
            "unknown_labels": len(relevance.unknown),
            "unknown_pairs": relevance.n_unknown_pairs,
            "removed_labels": len(relevance.removed),
            "removed_pairs": relevance.n_removed_pairs,
        }
        if slices:
            facts["slices"] = {
                of: {part.name: part.size | _without_nan(part.values) for part in parts}
                for of, parts in slices.items()
            }
        print(json.dumps(_without_nan(values) | facts, indent=1, ensure_ascii=False))
        return
    rows = []
    for name, value in values.items():
        shown, interval = Metric.parse(name).shown, []
        if args.intervals:
            value, low, high = value
            interval = [f"{shown(low)} to {shown(high)}"]
        rows.append([name, shown(value), *interval])
    print(table(["metric", "value", "95 % interval"][: 2 + args.intervals], rows))
    for of, parts in slices.items():
        print(f"\n{_slices(of, parts)}")
    # How far the lists that were measured lean towards rare labels.
    print(f"propensity weight of the lists: {model.propensity_weight_:g} (cuts and probabilities have none)")


def _slices(of: str, parts: list[SliceFigures]) -> str:
    """A table of the figures by slice."""
    from metarank.metrics import Metric

    if not parts:
        return f"{of}: no relevant label"
    sizes, names = list(parts[0].size), list(parts[0].values)
    rows = [
        [part.name, *part.size.values(), *(Metric.parse(name).shown(part.values[name]) for name in names)]
        for part in parts
    ]
    return table([of, *sizes, *names], rows)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return [_without_nan(v) for v in value]
    return None if value != value else value

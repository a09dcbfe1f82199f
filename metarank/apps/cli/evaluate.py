"""Measure a model on a labelled file."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._options import PAIRS, READING, add_options
from metarank.apps.cli._printing import show, table

if TYPE_CHECKING:
    from metarank.model.answering.measure import SliceFigures

_OPTIONS = """
--metrics NAMES    comma-separated names, such as P@5,PSP@5,micro-F1 (default: depends on the model)
--optimize METRIC  measure these label sets, as in `metarank predict`, also precision and recall (default: the
                   sets of each metric)
--intervals        95 %% bootstrap confidence intervals over all rows
--json             print one JSON object, with fractions in [0, 1]
model test --slices --propensity-weight --jobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS + READING + PAIRS)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, pairs_for, read_labelled
    from metarank.metrics import Metric
    from metarank.model.answering.measure import SETS, Evaluation
    from metarank.thresholds.set_metrics import check_metric

    names = None if args.metrics is None else [n.strip() for n in args.metrics.split(",") if n.strip()]
    if names == []:
        raise ValueError(f"--metrics must name at least one metric, got {args.metrics!r}")
    for name in names or []:
        Metric.parse(name)
    check_metric(args.optimize)
    check_exists(args.candidates, args.pair_features)
    model, dataset, relevance, columns = read_labelled(args)
    pairs = pairs_for(model, args, dataset.n_rows)
    evaluation = Evaluation(model, dataset, relevance, optimize=args.optimize, **pairs)
    if evaluation.unknown_rows:
        print(f"metarank: {evaluation.unknown_rows}", file=sys.stderr)
    of_sets = ["example-precision", "example-recall"] * (args.optimize is not None)
    names = [*dict.fromkeys([*(names or evaluation.default_names()), *of_sets])]
    values = evaluation.values(names, intervals=args.intervals)
    slices = evaluation.by_slices(names, columns)
    # JSON has no NaN: a metric without a row to count is null.
    facts: dict[str, Any] = _without_nan(values) | {
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
    through = evaluation.surest_rows() if {*SETS} & {*names} else {}
    if through:
        facts["surest_rows"] = {
            share: {"rows": int(share[:-1]) / 100, "expected_f1": forecast, "f1": true}
            for share, (forecast, true) in through.items()
        }
    rows = [[name, *_cells(name, value)] for name, value in values.items()]
    text = table(["metric", "value", "95 % interval"][: 2 + args.intervals], rows)
    for of, parts in slices.items():
        text += f"\n\n{_slices(of, parts)}"
    if through:
        surest = [[share, *(f"{100 * value:.1f}" for value in of)] for share, of in through.items()]
        text += f"\n\n{table(['surest rows', 'F1 expected', 'F1'], surest)}"
    if model.propensity_weight_:
        text += f"\nrare-label boost in the lists: propensity weight {model.propensity_weight_:g}"
    show(args.json, facts, text)


def _cells(name: str, value: Any) -> list[str]:
    """A value of a metric, and its interval if it has one."""
    from metarank.metrics import Metric

    shown = Metric.parse(name).shown
    if not isinstance(value, tuple):
        return [shown(value)]
    value, low, high = value
    return [shown(value), f"{shown(low)} to {shown(high)}"]


def _slices(of: str, parts: list[SliceFigures]) -> str:
    """A table of the figures by slice."""
    if not parts:
        return f"{of}: no relevant label"
    rows = [
        [part.name, *part.size.values(), *(_cells(*figure)[0] for figure in part.values.items())]
        for part in parts
    ]
    return table([of, *parts[0].size, *parts[0].values], rows)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return [_without_nan(v) for v in value]
    return None if value != value else value

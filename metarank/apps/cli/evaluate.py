"""Measure a model on a labelled file."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from metarank.apps.cli._common import add_model_options, load_model, read_dataset, showing_progress, table
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, pairs_for

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker

HELP = "measure a model on a labelled file"

# The eight of Yang & Gopal, then those of extreme classification.
FULL_LIST = ["MAP", "RankLoss", "nDCG", "One-error", "Coverage"]
SETS = ["micro-F1", "macro-F1", "Hamming"]
# Where the model has a table of labels with parents.
HIERARCHICAL = ["hP", "hR", "hF"]
TOP = ["P@1", "P@3", "P@5", "nDCG@5", "R@10", "PSP@5"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", metavar="DIR", help="folder of the model")
    parser.add_argument("test", metavar="TEST", help="labelled data file, or - for standard input")
    parser.add_argument(
        "--metrics", metavar="NAMES", help="comma-separated names, such as P@5,PSP@5,micro-F1"
    )
    parser.add_argument("--intervals", action="store_true", help="95 %% bootstrap confidence intervals")
    parser.add_argument("--report", metavar="FILE", help="write a report, as one HTML file")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object, with fractions in [0, 1]",
    )
    add_pair_options(parser)
    add_model_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.metrics import Metric
    from metarank.model.measure import evaluate_model
    from metarank.model.relevance import aligned_relevance

    names = None if args.metrics is None else [n.strip() for n in args.metrics.split(",") if n.strip()]
    if names == []:
        raise ValueError(f"--metrics must name at least one metric, got {args.metrics!r}")
    for name in names or []:
        Metric.parse(name)
    if args.report is not None and Path(args.report).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--report must end in .html or .htm, got {args.report!r}")
    if args.report is not None and not Path(args.report).parent.is_dir():
        raise FileNotFoundError(2, "no such folder to write the report to", str(Path(args.report).parent))
    check_pair_options(args)
    if args.report is not None and (args.candidates is not None or args.pair_features is not None):
        raise ValueError("--report goes without --candidates and --pair-features")
    model = load_model(args.model, args)
    dataset = read_dataset(args.test, args, model)
    dataset = _with_all_labels(dataset, model)
    relevance = aligned_relevance(model, dataset)
    if relevance.Y.nnz == relevance.n_unknown_pairs + relevance.n_removed_pairs:
        raise ValueError(f"{args.test} holds no relevant label of this model: there is nothing to measure")
    if relevance.said:
        print(f"metarank: {relevance.said}", file=sys.stderr)
    if names is None:
        above = HIERARCHICAL if relevance.parents(model) is not None else []
        names = ([] if model.shortlisters_ else [*FULL_LIST]) + SETS + above + TOP
    pairs = pairs_for(model, args, dataset.n_rows)
    values = evaluate_model(model, dataset, relevance, names, intervals=args.intervals, **pairs)
    if args.report is not None:
        from metarank.apps.report import evaluation_report

        with showing_progress(quiet=args.json):
            evaluation_report(model, dataset, args.report)
    if args.json:
        # JSON has no NaN: a metric without a row to count is null.
        facts = {
            "propensity_weight": model.propensity_weight_,
            "unknown_labels": len(relevance.unknown),
            "unknown_pairs": relevance.n_unknown_pairs,
            "removed_labels": len(relevance.removed),
            "removed_pairs": relevance.n_removed_pairs,
        }
        print(json.dumps({name: _without_nan(value) for name, value in values.items()} | facts, indent=1))
        return
    rows = []
    for name, value in values.items():
        shown, interval = Metric.parse(name).shown, []
        if args.intervals:
            value, low, high = value
            interval = [f"{shown(low)} to {shown(high)}"]
        rows.append([name, shown(value), *interval])
    print(table(["metric", "value", "95 % interval"][: 2 + args.intervals], rows))
    # How far the lists that were measured lean towards rare labels.
    print(f"propensity weight of the lists: {model.propensity_weight_:g} (cuts and probabilities have none)")


def _with_all_labels(dataset: Dataset, model: MetaRanker) -> Dataset:
    """The data set; of a file without names, whose highest ids have no row, with columns for them."""
    missing = model.n_labels_ - dataset.n_labels
    if dataset.label_names is not None or missing <= 0:
        return dataset
    empty = sp.csr_matrix((dataset.n_rows, missing), dtype=dataset.Y.dtype)
    return replace(dataset, Y=sp.hstack([dataset.Y, empty], format="csr"), label_texts=None)


def _without_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_without_nan(v) for v in value]
    return None if value != value else value

"""Train a model on a data file and save it to a folder."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metarank.cli._common import add_jobs_option, add_reading_options, read_dataset, showing_progress

HELP = "train a model on a data file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options; their defaults are those of MetaRanker."""
    from metarank.choices import EFFORTS

    parser.add_argument(
        "train",
        metavar="TRAIN",
        help="XC-repository text, svmlight multilabel (.gz and .xz too), ARFF, CSV, TSV, JSONL or Parquet",
    )
    parser.add_argument("--model", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--effort", choices=EFFORTS, default="medium")
    parser.add_argument("--ranker", default="auto", metavar="NAME")
    parser.add_argument(
        "--features", default="auto", metavar="NAMES", help="auto, yang2012, or names, commas between"
    )
    parser.add_argument(
        "--shortlister",
        default="auto",
        metavar="NAMES",
        help="auto, none, or names, commas between: neighbors, names, parabel, xreg, fastxml, "
        "pfastxml, pfastrexml, one-vs-all",
    )
    parser.add_argument("--threshold", default="auto", metavar="NAME")
    parser.add_argument("--folds", type=int, default=5, metavar="K")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--memory-budget",
        default=None,
        metavar="SIZE",
        help="most memory to use, such as 4GiB: says what the fit will take before it starts",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--verbose", action="store_true", help="say what was chosen, and why")
    add_jobs_option(parser)
    add_reading_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank import MetaRanker
    from metarank.memory import parse_budget
    from metarank.persist import check_target

    check_target(args.model)
    if args.verbose:
        logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)
    parse_budget(args.memory_budget)
    features = args.features if args.features in ("auto", "yang2012") else args.features.split(",")
    model = MetaRanker(
        shortlister=_shortlister(args.shortlister),
        features=features,
        ranker=args.ranker,
        threshold=args.threshold,
        n_folds=args.folds,
        n_jobs=args.jobs,
        random_state=args.seed,
        effort=args.effort,
        memory_budget=args.memory_budget,
    )
    started = time.monotonic()
    dataset = read_dataset(args.train, args)
    with showing_progress(args.quiet or args.verbose), _saying_memory(args):
        model.fit(dataset)
    model.save(args.model)
    size = sum(f.stat().st_size for f in Path(args.model).iterdir())
    print(
        f"{args.model}: {dataset.n_rows} rows, {model.n_features_in_} features, {model.n_labels_} labels, "
        f"{len(model.feature_columns_)} meta-features, trained in {time.monotonic() - started:.1f} s, "
        f"{size / 2**20:.1f} MiB"
    )


@contextmanager
def _saying_memory(args: argparse.Namespace) -> Iterator[None]:
    """Show the estimate of memory on a line of its own, where a budget is given."""
    logger = logging.getLogger("metarank.memory")
    before, handler = logger.level, logging.StreamHandler(sys.stderr)
    if args.memory_budget is None or args.verbose:
        yield
        return
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _shortlister(names: str) -> str | list[str] | None:
    if names == "none":
        return None
    return names.split(",") if "," in names else names

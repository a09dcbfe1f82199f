"""Train a model on a data file and save it to a folder."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metarank._util.registry import SOURCES
from metarank.apps.cli._common import (
    add_jobs_option,
    add_reading_options,
    add_seed_option,
    check_exists,
    check_has_labels,
    completed,
    logging_to_stderr,
    print_page,
    read_dataset,
    showing_progress,
    weight_or_auto,
)
from metarank.apps.cli._row_columns import add_row_column_options, columns_asked, row_columns
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, read_pairs

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker


# Of the held-out quality, what a line has room for.
_TOLD = ("P@1", "nDCG@5", "micro-F1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options; their defaults are those of MetaRanker."""
    from metarank.model.auto import EFFORTS
    from metarank.ranker import RANKERS
    from metarank.thresholds.learned_cuts import THRESHOLDS

    parser.add_argument(
        "train",
        metavar="TRAIN",
        help="training data: XC-repository text, multilabel svmlight, ARFF, CSV, TSV, JSONL (also .gz, .xz, "
        ".bz2, .zst) or Parquet; - for standard input",
    )
    parser.add_argument("--model", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="table of labels: CSV, TSV, JSONL or Parquet with the columns id, name, alternative_names, "
        "description, parents, related, vector, or some of them",
    )
    parser.add_argument(
        "--vocab",
        metavar="FILE",
        help="vocabulary of the labels, instead of --labels: SKOS in Turtle, RDF/XML or JSON-LD, or the TSV "
        "or CSV of Annif; rows without a label are left out",
    )
    parser.add_argument(
        "--vocab-language",
        metavar="LANG",
        help="language of the names in --vocab, such as en (default: that of --language)",
    )
    parser.add_argument(
        "--effort", choices=EFFORTS, default="medium", help="how many sources to try (default medium)"
    )
    ranker = parser.add_argument(
        "--ranker",
        default="auto",
        metavar="NAME",
        help=f"what orders the labels: auto (default), {', '.join(n for n in RANKERS if n != 'auto')}",
    )
    completed(ranker, RANKERS)
    features = parser.add_argument(
        "--features",
        default="auto",
        metavar="NAMES",
        help="what describes a pair: auto (default), yang2012, or comma-separated names: "
        + ", ".join(SOURCES),
    )
    completed(features, ("auto", "yang2012", *SOURCES))
    proposers = [entry.asked_as for entry in SOURCES.values() if entry.asked_as]
    shortlister = parser.add_argument(
        "--shortlister",
        default="auto",
        metavar="NAMES",
        help="what proposes candidates: auto (default), none (rank all labels), or comma-separated names: "
        + ", ".join(proposers),
    )
    completed(shortlister, ("auto", "none", *proposers))
    threshold = parser.add_argument(
        "--threshold",
        default="auto",
        metavar="NAME",
        help="family of cuts: auto (default), instance, label, half-f1, global, top-k, budget or expected-f1",
    )
    completed(threshold, THRESHOLDS)
    parser.add_argument(
        "--propensity-weight",
        type=weight_or_auto,
        default="auto",
        metavar="A",
        help="lean of the ranking towards rare labels, in [0, 10], or auto (default): 0 where all labels are "
        "ranked, else learned; predict, evaluate and serve may take another one",
    )
    parser.add_argument(
        "--text-part",
        metavar="PART",
        help="the part of each text that is read, here and later: head:20000 for its first 20,000 "
        "characters, sample:20000 for sentences spread evenly over it (default: all)",
    )
    parser.add_argument(
        "--language",
        metavar="NAME",
        help="compare words by their stems: english, en, ..., or auto (default: words as they are)",
    )
    parser.add_argument(
        "--tune",
        type=int,
        default=0,
        metavar="N",
        help="settings of each label tree and one-vs-all to try on held-out rows (default 0: the defaults)",
    )
    add_row_column_options(parser)
    parser.add_argument("--folds", type=int, default=5, metavar="K", help="cross-fitting folds (default 5)")
    add_seed_option(parser)
    parser.add_argument(
        "--memory-budget",
        default=None,
        metavar="SIZE",
        help="limit on memory, such as 4GiB, or auto; the estimate is printed before work starts",
    )
    said = parser.add_mutually_exclusive_group()
    said.add_argument("--quiet", action="store_true", help="no progress")
    said.add_argument("--verbose", action="store_true", help="print the choices of the fit and their reasons")
    add_jobs_option(parser)
    add_reading_options(parser)
    add_pair_options(parser, trains=True)
    group = parser.add_argument_group("cluster", description="Needs the extra dask. The model is the same.")
    where = group.add_mutually_exclusive_group()
    where.add_argument("--dask-scheduler", metavar="ADDRESS", help="train on a Dask cluster, tcp://host:8786")
    where.add_argument(
        "--local-cluster", type=int, metavar="N", help="train with N worker processes on this machine"
    )
    group.add_argument(
        "--resume",
        metavar="FOLDER",
        help="keep results in a folder that all workers see, and continue from them when started again",
    )
    group.add_argument(
        "--ranker-pairs",
        choices=("sample", "all"),
        default="sample",
        help="sample, or all: --ranker lambdarank learns from every pair, on all workers, and the model then "
        "differs (default sample)",
    )


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank import MetaRanker
    from metarank.data import read_labels, read_vocabulary
    from metarank.data.column_names import read_elsewhere
    from metarank.persist import check_target

    _check_cluster(args)
    check_pair_options(args)
    for path in (args.labels, args.vocab):
        if path is not None:
            check_exists(path)
    if args.labels is not None and args.vocab is not None:
        raise ValueError("give either --labels or --vocab")
    if args.vocab_language is not None and args.vocab is None:
        raise ValueError("--vocab-language goes with --vocab")
    check_target(args.model)
    if args.verbose:
        logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)
    features = args.features if args.features in ("auto", "yang2012") else args.features.split(",")
    params = dict(
        shortlister=_shortlister(args.shortlister),
        features=features,
        ranker=args.ranker,
        threshold=args.threshold,
        n_folds=args.folds,
        n_jobs=args.jobs,
        random_state=args.seed,
        effort=args.effort,
        memory_budget=args.memory_budget,
        language=args.language,
        text_part=args.text_part,
        tune=args.tune,
        propensity_weight=args.propensity_weight,
    )
    MetaRanker(**params)._check_parameters()  # before the data are read, which may take long
    started = time.monotonic()
    labels = None if args.labels is None else read_labels(args.labels)
    if args.vocab is not None:
        labels = read_vocabulary(args.vocab, _vocabulary_language(args))
    with read_elsewhere(columns_asked(args).values()):
        dataset = read_dataset(args.train, args)
    check_has_labels(dataset, args.train)
    if dataset.Y.nnz == 0:
        raise ValueError(f"{args.train} holds no relevant label in {dataset.n_rows} rows")
    if args.vocab is not None:
        dataset = _labelled(dataset, args.train)
    with logging_to_stderr("metarank.data"):
        of_rows = row_columns(args, dataset)
    says_memory = args.memory_budget is not None and not args.verbose
    memory = logging_to_stderr("metarank.memory") if says_memory else nullcontext()
    with showing_progress(args.quiet or args.verbose), memory, _unfitted(args, params) as model:
        model.fit(dataset, labels=labels, **_pairs(args), **of_rows)
    model.save(args.model)
    size = sum(f.stat().st_size for f in Path(args.model).iterdir())
    print_page(
        f"{args.model}: {dataset.n_rows} rows, {model.n_features_in_} features, {model.n_labels_} labels, "
        f"{len(model.feature_columns_)} meta-features, trained in {time.monotonic() - started:.1f} s, "
        f"{size / 2**20:.1f} MiB"
    )
    from metarank.model.held_out import quality_lines

    told = {name: model.held_out_quality_[name] for name in _TOLD if name in model.held_out_quality_}
    print_page("held out: " + "; ".join(" ".join(line.split()) for line in quality_lines(told)))


def _pairs(args: argparse.Namespace) -> dict[str, Any]:
    """What the files say of pairs, as arguments of a fit."""
    if args.candidates is None and args.pair_features is None and args.candidates_mode == "only":
        return {}
    return {
        "candidates": read_pairs(args.candidates),
        "candidates_mode": args.candidates_mode,
        "pair_features": read_pairs(args.pair_features),
    }


def _check_cluster(args: argparse.Namespace) -> None:
    if args.dask_scheduler is None and args.local_cluster is None:
        for option, given in (
            ("--resume", args.resume is not None),
            ("--ranker-pairs all", args.ranker_pairs == "all"),
        ):
            if given:
                raise ValueError(f"{option} goes with --local-cluster or --dask-scheduler")
    if args.ranker_pairs == "all" and args.ranker != "lambdarank":
        raise ValueError(f"--ranker-pairs all goes with --ranker lambdarank, got --ranker {args.ranker}")
    if args.local_cluster is not None and args.local_cluster < 1:
        raise ValueError(f"--local-cluster must be positive, got {args.local_cluster}")
    if args.dask_scheduler is not None or args.resume is not None:
        from metarank.distributed.workers import check_address, check_folder

        if args.dask_scheduler is not None:
            check_address(args.dask_scheduler, "--dask-scheduler")
        if args.resume is not None:
            check_folder(args.resume, "--resume")


@contextmanager
def _unfitted(args: argparse.Namespace, params: dict[str, Any]) -> Iterator[MetaRanker]:
    """The model to be fitted: here, or on a cluster for as long as that lasts."""
    if args.dask_scheduler is None and args.local_cluster is None:
        from metarank import MetaRanker

        yield MetaRanker(**params)
        return
    from metarank.distributed import DaskMetaRanker, connected

    cluster = connected(args.dask_scheduler, n_workers=args.local_cluster, n_jobs=args.jobs)
    with cluster as client:
        yield DaskMetaRanker(client, resume=args.resume, ranker_pairs=args.ranker_pairs, **params)


def _shortlister(names: str) -> str | list[str] | None:
    if names == "none":
        return None
    return names.split(",") if "," in names else names


def _vocabulary_language(args: argparse.Namespace) -> str | None:
    """The language of the names, by the code that vocabularies have for it."""
    from metarank._util.languages import AUTO, LANGUAGES

    if args.vocab_language is not None or args.language in (None, AUTO):
        asked: str | None = args.vocab_language
        return asked
    codes = {name: code for code, name in LANGUAGES.items()}
    return codes.get(args.language.lower(), args.language)


def _labelled(dataset: Dataset, path: str) -> Dataset:
    """The rows that have a label; the others teach that nothing fits."""
    import numpy as np

    rows = np.flatnonzero(np.diff(dataset.Y.indptr))
    if len(rows) == dataset.n_rows:
        return dataset
    print(f"metarank: {path}: left out {dataset.n_rows - len(rows)} rows without a label", file=sys.stderr)
    return dataset.take(rows)

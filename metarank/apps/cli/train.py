"""Train a model on a data file and save it to a folder."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metarank._util.registry import SOURCES
from metarank.apps.cli._options import READING, add_options, weight_or_auto
from metarank.apps.cli._printing import showing_progress

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset

# The held-out estimates that are printed.
_SHOWN = ("P@1", "nDCG@5", "micro-F1")

_OPTIONS = """
train TRAIN              training data: CSV, TSV, JSONL, ARFF, svmlight or XC-repository text (also .gz, .xz,
                         .bz2, .zst), or Parquet; - for standard input; without TRAIN, labels of --labels or
                         --vocab are ranked by name, and with --encoder by meaning
--model DIR              folder to write
--overwrite              replace an existing model without asking
--groups-column NAME     column of a table: rows with the same value stay in one fold
--negatives-column NAME  column of a table: rejected labels, written like those of --labels-column
--effort                 how many sources to use (default medium)
--propensity-weight A    rare-label boost of the ranking, in [0, 10] (default 0: by probability), or auto,
                         which is learned; predict, evaluate and serve can use another one
--language NAME          stem words: english, en, ...; auto (default): in the language of the texts, if it is
                         clear; none: no stemming
--encoder NAME           also compare texts by meaning: a name or path that sentence-transformers or
                         model2vec loads
--folds K                cross-fitting folds (default 5)
--seed --quiet --jobs
"""
# One of them at most.
_LABELS = """
--labels FILE  table of labels: CSV, TSV, JSONL or Parquet with the columns id, name, alternative_names,
               description, parents, related, vector, or some of these
--vocab FILE   vocabulary of the labels, instead of --labels: SKOS in Turtle, RDF/XML or JSON-LD, or the TSV
               or CSV of Annif, with names in the language of --language; rows without labels are left out
"""
_PAIRS = """
[your own candidates]
--candidates --pair-features
--candidates-mode  only: rank these candidates (default); union: also those of the model's shortlisters
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options; their defaults are those of MetaRanker."""
    from metarank.model.fitting.auto import EFFORTS
    from metarank.ranker import RANKERS
    from metarank.thresholds.learned_thresholds import THRESHOLDS

    add_options(
        parser,
        _OPTIONS + READING + _PAIRS,
        train={"nargs": "?"},
        model={"required": True},
        language="auto",
        effort={"choices": EFFORTS, "default": "medium"},
        propensity_weight={"type": weight_or_auto, "default": 0.0},
        folds=5,
        candidates_mode={"choices": ("only", "union"), "default": "only"},
    )
    add_options(parser.add_mutually_exclusive_group(), _LABELS)
    proposers = [entry.asked_as for entry in SOURCES.values() if entry.asked_as]
    for name, what, words in (
        ("ranker", "what orders the labels", RANKERS),
        ("features", "what describes a pair, names separated by commas", ("yang2012", *SOURCES)),
        ("shortlister", "what proposes candidates, names separated by commas; none: rank all labels",
         ("none", *proposers)),
        ("threshold", "family of thresholds", THRESHOLDS),
    ):  # fmt: skip
        others = [word for word in words if word != "auto"]
        meaning = f"{what}: {', '.join(['auto (default)', *others])}"
        how = {"default": "auto", "words": ["auto", *others]}
        add_options(parser, f"--{name} NAME  {meaning}", **{name: how})


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank import MetaRanker
    from metarank.apps.cli._reading import check_exists, check_may_write, read_pairs
    from metarank.data import read_labels, read_vocabulary
    from metarank.model.fitted import quality_lines

    check_exists(args.candidates, args.pair_features, args.labels, args.vocab)
    check_may_write(args.model, args.overwrite)
    model = MetaRanker(
        shortlister=None if args.shortlister == "none" else _names(args.shortlister),
        features=args.features if args.features in ("auto", "yang2012") else args.features.split(","),
        ranker=args.ranker,
        threshold=args.threshold,
        n_folds=args.folds,
        n_jobs=args.jobs,
        random_state=args.seed,
        effort=args.effort,
        encoder=args.encoder,
        language=None if args.language == "none" else args.language,
        propensity_weight=args.propensity_weight,
    )
    model._check_parameters()  # before the data are read, which may take long
    started = time.monotonic()
    labels = None if args.labels is None else read_labels(args.labels)
    if args.vocab is not None:
        labels = read_vocabulary(args.vocab, _language_of_names(args.language))
        args.options["labels"] = "--vocab"  # in messages
    if args.train is None and labels is None:
        raise ValueError("give TRAIN, or --labels or --vocab to rank labels without training rows")
    dataset, limits = _rows(args)
    if args.candidates is not None or args.pair_features is not None or args.candidates_mode != "only":
        limits |= {
            "candidates": read_pairs(args.candidates),
            "candidates_mode": args.candidates_mode,
            "pair_features": read_pairs(args.pair_features),
        }
    with showing_progress(args.quiet):
        model.fit(dataset, labels=labels, **limits)
    model.save(args.model)
    size = sum(f.stat().st_size for f in Path(args.model).iterdir())
    print(
        f"{args.model}: {model.n_rows_} rows, {model.n_features_in_} features, {model.n_labels_} labels, "
        f"{len(model.feature_columns_)} meta-features, trained in {time.monotonic() - started:.1f} s, "
        f"{size / 2**20:.1f} MiB"
    )
    quality = {name: model.held_out_quality_[name] for name in _SHOWN if name in model.held_out_quality_}
    held_out = "; ".join(" ".join(line.split()) for line in quality_lines(quality))
    print(f"held out: {held_out}" if model.n_rows_ else "no training rows: scores are not probabilities")
    print(*(choice for choice in model.choices_ if choice.startswith("held-out estimates: ")), sep="\n")


def _rows(args: argparse.Namespace) -> tuple[Dataset | None, dict[str, Any]]:
    """The rows of TRAIN and what its columns hold; options about TRAIN need it."""
    from metarank.apps.cli._reading import check_has_labels, read_dataset, row_columns
    from metarank.data.tables import read_elsewhere

    if args.train is None:
        for option in (*READING.split()[1:], "--groups-column", "--negatives-column"):
            if getattr(args, option[2:].replace("-", "_")):
                raise ValueError(f"{option} needs TRAIN")
        return None, {}
    with read_elsewhere(filter(None, (args.groups_column, args.negatives_column))):
        dataset = read_dataset(args.train, args)
    check_has_labels(dataset, args.train)
    dataset = dataset if args.vocab is None else _labelled(dataset, args.train)
    return dataset, row_columns(args, dataset)


def _names(text: str) -> str | list[str]:
    return text.split(",") if "," in text else text


def _language_of_names(language: str | None) -> str | None:
    """The language of the texts as a code of vocabularies; None if not given."""
    from metarank._util.languages import AUTO, LANGUAGES

    if language in (None, "none", AUTO):
        return None
    codes = {name: code for code, name in LANGUAGES.items()}
    return codes.get(language.lower(), language)


def _labelled(dataset: Dataset, path: str) -> Dataset:
    """The rows that have labels; others would train the model to propose none."""
    import numpy as np

    rows = np.flatnonzero(np.diff(dataset.Y.indptr))
    if len(rows) == dataset.n_rows:
        return dataset
    print(f"metarank: {path}: left out {dataset.n_rows - len(rows)} rows without labels", file=sys.stderr)
    return dataset.take(rows)

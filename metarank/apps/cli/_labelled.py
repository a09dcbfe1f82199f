"""What `evaluate` and `report` share: a model, a labelled file, and slices of it by its columns."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import scipy.sparse as sp

from metarank.apps.cli._common import (
    MODEL_HELP,
    add_model_options,
    check_has_labels,
    load_model,
    read_dataset,
    showing_progress,
)

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.model.relevance import Relevance


class Labelled(NamedTuple):
    """Rows with labels, for a model; `slices` holds a value a row of each column that is asked for."""

    model: MetaRanker
    dataset: Dataset
    relevance: Relevance
    slices: dict[str, list[str]]


def add_labelled_options(parser: argparse.ArgumentParser, more: str = "") -> None:
    """DIR, TEST and --slices."""
    parser.add_argument("model", metavar="DIR", help=MODEL_HELP)
    parser.add_argument("test", metavar="TEST", help="labelled data file, or - for standard input")
    parser.add_argument(
        "--slices",
        metavar="NAMES",
        help="figures apart for the rows of each value of these columns of TEST, separated by commas; of "
        f"many values dates by year or month, numbers by ranges{more}",
    )
    add_model_options(parser)


def read_labelled(args: argparse.Namespace) -> Labelled:
    """The model and the rows of a command; says what labels count as missed."""
    from metarank.data.column_names import read_elsewhere
    from metarank.metrics.slices import LABEL_FREQUENCY
    from metarank.model.relevance import aligned_relevance

    asked = [name.strip() for name in (args.slices or "").split(",")] if args.slices is not None else []
    if not all(asked):
        raise ValueError(f"--slices must be comma-separated names, got {args.slices!r}")
    columns = [name for name in asked if name != LABEL_FREQUENCY]
    if columns and args.test == "-":
        raise ValueError("--slices needs a file, since standard input is read once")
    model = load_model(args.model, args)
    with read_elsewhere(columns):
        dataset = read_dataset(args.test, args, model)
    check_has_labels(dataset, args.test)
    dataset = _with_all_labels(dataset, model)
    slices: dict[str, Any] = _columns(args.test, columns, dataset.n_rows) if columns else {}
    relevance = aligned_relevance(model, dataset)
    if relevance.Y.nnz == relevance.n_unknown_pairs + relevance.n_removed_pairs:
        raise ValueError(f"{args.test} holds no relevant label of this model: there is nothing to measure")
    if relevance.said:
        print(f"metarank: {relevance.said}", file=sys.stderr)
    return Labelled(model, dataset, relevance, {name: slices.get(name, []) for name in asked})


def check_page(path: str, option: str) -> None:
    """Refuses what no page can be written to, before any work."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{option} must end in .html or .htm, got {path!r}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(2, "no such folder to write the report to", str(Path(path).parent))


def write_page(path: str, args: argparse.Namespace, labelled: Labelled, *, quiet: bool = False) -> None:
    """Measure the model and write the report."""
    from metarank.apps.report import evaluation_report
    from metarank.metrics.slices import LABEL_FREQUENCY

    # By label frequency the page shows figures in any case.
    columns = {name: values for name, values in labelled.slices.items() if name != LABEL_FREQUENCY}
    with showing_progress(quiet):
        evaluation_report(
            labelled.model,
            labelled.dataset,
            path,
            slices=columns,
            model_folder=args.model,
            data_file=args.test,
        )


def _columns(path: str, names: list[str], n_rows: int) -> dict[str, list[str]]:
    """The values of columns of a file, as few slices each."""
    from metarank.data.column_names import check_among
    from metarank.data.label_files import columns_of
    from metarank.metrics.slices import few_values

    table = columns_of(path)
    check_among(names, table, "--slices")
    if len(table[names[0]]) != n_rows:
        raise ValueError(f"--slices must have a value a row, {n_rows}, got {len(table[names[0]])} in {path}")
    return {name: few_values(table[name]) for name in names}


def _with_all_labels(dataset: Dataset, model: MetaRanker) -> Dataset:
    """The data set; of a file without names, whose highest ids have no row, with columns for them."""
    missing = model.n_labels_ - dataset.n_labels
    if dataset.label_names is not None or missing <= 0:
        return dataset
    empty = sp.csr_matrix((dataset.n_rows, missing), dtype=dataset.Y.dtype)
    return replace(dataset, Y=sp.hstack([dataset.Y, empty], format="csr"), label_texts=None)

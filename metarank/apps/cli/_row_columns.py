"""Columns of a training file that say more of its rows: their group, and labels that a person rejected."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from metarank.data.column_names import check_among
from metarank.data.dataset import Dataset
from metarank.data.label_files import columns_of
from metarank.data.separators import cut_column
from metarank.data.text import LABELS_COLUMNS
from metarank.types.blocks import Blocks

logger: logging.Logger = logging.getLogger("metarank.data")


def add_row_column_options(parser: argparse.ArgumentParser) -> None:
    """--groups-column and --negatives-column."""
    parser.add_argument(
        "--groups-column",
        metavar="NAME",
        help="column of a table: rows of the same value stay together in every fold",
    )
    parser.add_argument(
        "--negatives-column",
        metavar="NAME",
        help="column of a table: labels that a person rejected, written as those of --labels-column",
    )


def columns_asked(args: argparse.Namespace) -> dict[str, str]:
    """The columns that are asked for, by option."""
    wanted = {"--groups-column": args.groups_column, "--negatives-column": args.negatives_column}
    return {option: name for option, name in wanted.items() if name is not None}


def row_columns(args: argparse.Namespace, dataset: Dataset) -> dict[str, Any]:
    """`groups` and `negatives` of a fit, as far as the options ask for them.

    Raises
    ------
    ValueError
        If the file is standard input, which is read once, or lacks a column, or a column is a feature too.
    """
    wanted = columns_asked(args)
    if not wanted:
        return {}
    if args.train == "-":
        raise ValueError(f"{next(iter(wanted))} needs a file, since standard input is read once")
    table = columns_of(args.train)
    features = set(dataset.feature_names or ())
    if isinstance(dataset.X, Blocks):
        features.update(column for block in dataset.X for column in dataset.X.columns.get(block, [block]))
    for option, name in wanted.items():
        check_among([name], table, option)
        if name in features:
            raise ValueError(f"{option} must not be a feature, got {name!r}: name the features' columns")
        if option == "--negatives-column" and name == _labels_column(args, table):
            raise ValueError(f"{option} must be another column than that of the labels, got {name!r}")
    found: dict[str, Any] = {}
    if args.groups_column is not None:
        found["groups"] = [None if cell == "" else cell for cell in table[args.groups_column]]
    if args.negatives_column is not None:
        found["negatives"] = _known(table[args.negatives_column], args, dataset)
    return found


def _labels_column(args: argparse.Namespace, table: dict[str, Any]) -> str | None:
    """The column that the labels are read from."""
    if args.labels_column is not None:
        return str(args.labels_column)
    return next((column for column in LABELS_COLUMNS if column in table), None)


def _known(cells: list[Any], args: argparse.Namespace, dataset: Dataset) -> list[list[Any]]:
    """The rejected labels of each row, without those that no row has."""
    column = f"{args.train}, column {args.negatives_column!r}"
    separator = dataset.label_separator if args.label_separator in (None, "auto") else args.label_separator
    separator = None if args.label_separator == "none" else separator
    rows, _ = cut_column(cells, separator, column=column, where="row {}".format)
    if dataset.label_names is None or args.labels is not None:
        return rows
    names = set(dataset.label_names)
    known = [[str(label) for label in row if str(label) in names] for row in rows]
    n_unknown = sum(map(len, rows)) - sum(map(len, known))
    if n_unknown and not any(known):
        row = next(i for i, labels in enumerate(rows) if labels)
        raise ValueError(
            f"--negatives-column must hold labels that some row has, got none in column "
            f"{args.negatives_column!r}: the first is {str(rows[row][0])!r:.80} at row {row}"
        )
    if n_unknown:
        logger.warning("%s: left out %d labels that no row has", column, n_unknown)
    return known

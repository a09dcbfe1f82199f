"""How the files of a command become what the library takes: models, rows, pairs, columns, targets."""

from __future__ import annotations

import argparse
import csv
import errno
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import data
from metarank.apps.cli._options import COLUMNS
from metarank.apps.cli._printing import notes_of_readers
from metarank.data import tables
from metarank.data.block_encoder import EncodedBlock, needed_blocks
from metarank.data.blocks import Blocks
from metarank.data.columns import Columns, read_columns
from metarank.data.dataset import Dataset
from metarank.data.frames import BLOCKS, LABELS_COLUMNS
from metarank.data.pair_files import read_candidates
from metarank.data.separators import split_column
from metarank.metrics.relevance import Relevance
from metarank.metrics.slices import LABEL_FREQUENCY, few_values
from metarank.model.answering.measure import aligned_relevance
from metarank.model.estimator import MetaRanker
from metarank.persist import load
from metarank.types.given import read_given
from metarank.types.label_table import LabelTable


def check_exists(*paths: str | None, message: str = "no such file") -> None:
    """Refuses a file that is not there, before any work; "-" is standard input, None an option left out."""
    for path in paths:
        if path not in (None, "-") and not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, message, path)


def names_of(text: str | None, option: str) -> list[str]:
    """The names in "a,b"."""
    names = [name.strip() for name in text.split(",")] if text is not None else []
    if not all(names):
        raise ValueError(f"{option} must be comma-separated names, got {text!r}")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option} must name each column once, got {name!r} twice")
    return names


def numbers_of(text: str | None, option: str) -> list[float] | None:
    """The numbers in "2,1"."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be comma-separated numbers, got {text!r}") from None


# --- a model and rows for it ------------------------------------------------------


def check_rows(args: argparse.Namespace) -> None:
    """Refuses both or neither of INPUT and --text, and files of pairs that are not there."""
    if (args.input is None) == (args.text is None):
        raise ValueError("give either INPUT or --text")
    check_exists(args.candidates, args.pair_features)


def load_model(args: argparse.Namespace) -> MetaRanker:
    """The model folder of a command, verified; it ranks with the propensity weight of the command."""
    model = load(args.model)
    if not isinstance(model, MetaRanker):
        raise ValueError(
            f"{args.model} must hold a MetaRanker, got a {type(model).__name__}: "
            "load it in Python with metarank.load(path)"
        )
    if getattr(args, "jobs", None) is not None:
        model.n_jobs = args.jobs
    parts = needed_blocks(model.encoder_)
    if getattr(args, "text", None) is not None and [part.kind for part in parts] not in ([], ["text"]):
        names = ", ".join(column for part in parts for column in part.columns or [part.name])
        raise ValueError(f"--text needs a model of one text; this one takes the blocks {names}: give INPUT")
    if getattr(args, "propensity_weight", None) is not None:
        model.fitted_.propensity_weight = model.fitted_.checked_weight(args.propensity_weight)
    return model


def check_may_write(folder: str, overwrite: bool) -> None:
    """Refuse a folder that no model can be written to, and one with a model, unless a person says yes."""
    from metarank.persist import check_target

    target = check_target(folder)
    if overwrite or not target.is_dir() or not any(target.iterdir()):
        return
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if asks:
        print(f"{folder} holds a model. Replace it? [y/N] ", end="", file=sys.stderr, flush=True)
    if not asks or sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError(f"{folder} holds a model: --overwrite replaces it")


def read_dataset(path: str, args: argparse.Namespace, model: MetaRanker | None = None) -> Dataset:
    """The data file of a command; rows for a model get the width of its training rows, and its labels where
    they are ids."""
    check_exists(path)
    options = {option[2:].replace("-", "_") for option in COLUMNS}
    columns: dict[str, Any] = {o: getattr(args, o) or [] for o in options if getattr(args, o) is not None}
    separator = args.label_separator
    parts: list[Any] = []
    if model is not None:
        if not columns:
            parts = needed_blocks(model.encoder_)
            columns |= _columns_of(parts) if parts else {"text_column": model.text_columns_}
        if not parts and not model.encoder_.takes_texts:
            columns["n_features"] = model.n_features_in_
        separator = model.label_separator_ if separator is None else separator
    elif separator is None:
        separator = "auto"
    with notes_of_readers(args.options):
        dataset = data.load(
            path,
            **columns,
            labels_column=args.labels_column,
            label_columns=args.label_columns,
            encoding=args.encoding or "utf-8",
            label_separator=None if separator == "none" else separator,
            zero_based=not args.one_based,
            n_jobs=getattr(args, "jobs", None),
        )
    if dataset.n_rows == 0:
        raise ValueError(f"{path} holds no rows")
    if model is None:
        return dataset
    changes: dict[str, Any] = {}
    if args.label_separator is not None:  # as asked for, whatever the model's is
        changes["label_separator"] = "auto"
    missing = model.n_labels_ - dataset.n_labels
    if dataset.label_names is None and missing > 0:  # the highest ids have no row
        empty = sp.csr_matrix((dataset.n_rows, missing), dtype=dataset.Y.dtype)
        changes |= {"Y": sp.hstack([dataset.Y, empty], format="csr"), "label_texts": None}
    return replace(dataset, **changes) if changes else dataset


def _columns_of(parts: Sequence[EncodedBlock]) -> dict[str, list[str]]:
    """The columns of a table that hold blocks, as `metarank.data.load` takes them.

    Raises
    ------
    ValueError
        If a block is sparse.
    """
    sparse = next((part.name for part in parts if part.kind == "sparse"), None)
    if sparse is not None:
        raise ValueError(f"the block {sparse!r} is sparse: write the rows with metarank.data.to_parquet")
    return {
        option: [c for part in parts if part.kind == kind for c in part.columns or [part.name]]
        for option, kind in BLOCKS.items()
    }


def without_labels(path: str) -> str:
    """What to say of rows without any label; most often their column has another name."""
    return f"{path} holds no labels: give --labels-column, if it is none of {', '.join(LABELS_COLUMNS)}"


def check_has_labels(dataset: Dataset, path: str) -> None:
    """Refuses rows without any label."""
    if dataset.Y.nnz == 0:
        raise ValueError(without_labels(path))


# --- columns of a table that are read beside the rows -----------------------------


def columns_beside(path: str, wanted: dict[str, list[str]], encoding: str | None) -> dict[str, list[Any]]:
    """The cells of a file by column, if it has those of each option."""
    if path == "-":
        raise ValueError(f"{next(iter(wanted))} needs a file: standard input can be read only once")
    table = tables.columns_of(path, encoding)
    for option, names in wanted.items():
        tables.check_among(names, table, option)
    return table


def features_of(dataset: Dataset) -> set[str]:
    """The columns of numbers and of blocks that a model learns from."""
    names = set(dataset.feature_names or ())
    if isinstance(dataset.X, Blocks):
        names.update(column for block in dataset.X for column in dataset.X.columns.get(block, [block]))
    return names


def row_ids(path: str, dataset: Dataset, args: argparse.Namespace) -> list[Any] | None:
    """The column "id" of INPUT, if it is a table that has one and nothing else reads it."""
    from metarank.data.compressed import COMPRESSED
    from metarank.data.readers import TABLES

    if args.labels_column == "id":
        return None
    stem, ending = os.path.splitext(path.lower())
    ending = os.path.splitext(stem)[1] if ending in COMPRESSED else ending
    ids = (
        tables.columns_of(path, args.encoding).get("id") if ending in (*TABLES, ".parquet", ".xlsx") else None
    )
    if ids is None or "id" in features_of(dataset) | {*(dataset.text_columns or ())}:
        return None
    numbers = all(isinstance(i, int) and not isinstance(i, bool) for i in ids)
    return ids if numbers else [None if i is None or i == "" else str(i) for i in ids]


def row_columns(args: argparse.Namespace, dataset: Dataset) -> dict[str, Any]:
    """`groups` and `negatives` of a fit, as far as --groups-column and --negatives-column ask for them."""
    wanted = {"--groups-column": args.groups_column, "--negatives-column": args.negatives_column}
    wanted = {option: name for option, name in wanted.items() if name is not None}
    if not wanted:
        return {}
    table = columns_beside(args.train, {option: [name] for option, name in wanted.items()}, args.encoding)
    for option, name in wanted.items():
        if name in features_of(dataset):
            raise ValueError(f"{option} must not be a feature, got {name!r}: name the features' columns")
    arguments: dict[str, Any] = {}
    if args.groups_column is not None:
        arguments["groups"] = [None if cell == "" else cell for cell in table[args.groups_column]]
    if args.negatives_column is not None:
        column = f"{args.train}, column {args.negatives_column!r}"
        with notes_of_readers(args.options):
            arguments["negatives"] = _known_labels(table[args.negatives_column], column, args, dataset)
    return arguments


def _known_labels(cells: list[Any], column: str, args: argparse.Namespace, dataset: Dataset) -> list[Any]:
    """The rejected labels of each row, without those that no row has."""
    rows, _ = split_column(cells, dataset.label_separator, column=column, where="row {}".format)
    if dataset.label_names is None or args.labels is not None:
        return rows
    names = set(dataset.label_names)
    known = [[str(label) for label in row if str(label) in names] for row in rows]
    if n_unknown := sum(map(len, rows)) - sum(map(len, known)):
        tables.logger.warning("%s: left out %d labels without rows", column, n_unknown)
    return known


def read_labelled(
    args: argparse.Namespace,
) -> tuple[MetaRanker, Dataset, Relevance, dict[str, list[str]]]:
    """The model, TEST and --slices of a command; says what labels count as missed."""
    slice_names = names_of(args.slices, "--slices")
    columns = [name for name in slice_names if name != LABEL_FREQUENCY]
    table = columns_beside(args.test, {"--slices": columns}, args.encoding) if columns else {}
    model = load_model(args)
    with tables.read_elsewhere(columns):
        dataset = read_dataset(args.test, args, model)
    check_has_labels(dataset, args.test)
    relevance = aligned_relevance(model.fitted_, dataset)
    if relevance.Y.nnz == relevance.n_unknown_pairs + relevance.n_removed_pairs:
        raise ValueError(f"{args.test} holds no relevant label that the model knows: nothing can be measured")
    if relevance.said:
        print(f"metarank: {relevance.said}", file=sys.stderr)
    slices = {name: few_values(table[name]) if name in columns else [] for name in slice_names}
    return model, dataset, relevance, slices


# --- pairs of a row and a label ---------------------------------------------------


def read_pairs(path: str | None) -> Any:
    """The pairs of a file; None without one."""
    return None if path is None else read_candidates(path)


def pairs_for(
    model: MetaRanker, args: argparse.Namespace, n_rows: int, row: int | None = None
) -> dict[str, Any]:
    """What the files say of the pairs of all rows, or of one, as arguments of the methods that answer."""
    fitted, table = model.fitted_, model.label_table_
    out: dict[str, Any] = {}
    of_rows = slice(None) if row is None else [row]
    plain = args.candidates is not None and not fitted.given_sources
    if plain:
        lists = read_label_lists(args.candidates, table, n_rows, option="--candidates")
        out["candidates"] = lists[of_rows]
    candidates = None if plain else read_pairs(args.candidates)
    sources, features = fitted.given_sources, fitted.given_features
    pairs = read_pairs(args.pair_features)
    given = read_given(candidates, pairs, n_rows, table, sources, features, lenient=bool(sources or features))
    return out if given is None else out | given[of_rows].as_arguments()


def read_label_lists(
    path: str, table: LabelTable, n_rows: int, *, option: str, one_for_all: bool = False
) -> sp.csr_matrix:
    """The labels of each row from a file, CSR (n, L) of ones.

    A name of the model's labels is read as such even if it is a number; with `one_for_all` a file of a single
    line holds for every row.

    Raises
    ------
    ValueError
        If lines are not as many as rows, or hold what is not a label of the model, or the name of several;
        option and line are named.
    OSError
        If the file cannot be read.
    """
    lists: list[list[int]] = []
    try:
        with open(path, encoding="utf-8-sig") as f:
            for number, line in enumerate(f, 1):
                words = next(csv.reader([line.strip()], skipinitialspace=True, strict=True), [])
                where = f"{option}, line {number}"
                lists.append([table.id_of_text(word.strip(), where) for word in words])
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option}, line {len(lists) + 1}: {error}") from None
    if one_for_all and len(lists) == 1:
        lists = lists * n_rows
    if len(lists) != n_rows:
        raise ValueError(f"{option} must have {n_rows} lines, one per row, got {len(lists)} in {path}")
    pairs = [(row, label) for row, labels in enumerate(lists) for label in labels]
    row, label = np.array(pairs, np.int64).reshape(-1, 2).T
    return sp.csr_matrix((np.ones(len(pairs), np.float32), (row, label)), shape=(n_rows, table.n_labels))


def label_ids(model: MetaRanker, labels: Iterable[str], option: str) -> list[int]:
    """The ids of labels that an option names."""
    return [model.label_table_.id_of_text(label, option) for label in labels]


# --- several targets --------------------------------------------------------------


def read_targets(args: argparse.Namespace) -> tuple[Columns, dict[str, np.ndarray], list[str]]:
    """The columns of FILE, its targets by name, and the names of the features that are asked for."""
    targets, features = names_of(args.targets, "--targets"), names_of(args.features, "--features")
    shared: Any = next((name for name in features if name in targets), None)
    if shared is not None:
        raise ValueError(f"--features must not be targets (data leakage), got {shared!r}")
    check_exists(args.file)
    columns = read_columns(args.file, args.query)
    return columns, {name: columns.numbers(name, "--targets") for name in targets}, features

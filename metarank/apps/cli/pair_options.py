"""Files of candidates and of features of pairs, for the commands that ask a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._common import check_exists
from metarank.apps.cli.label_lists import FORMAT, read_label_lists

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker

TABLE = (
    "CSV, TSV, JSONL or Parquet with the columns row (from 0), label, score and, for several sources, source"
)


def add_pair_options(parser: argparse.ArgumentParser, *, trains: bool = False) -> None:
    """--candidates and --pair-features; of a training also --candidates-mode."""
    group = parser.add_argument_group("candidates of others")
    plain = "" if trains else f"; for a model that was trained without, a shortlist to be ranked: {FORMAT}"
    group.add_argument("--candidates", metavar="FILE", help=f"scored candidates: {TABLE}{plain}")
    group.add_argument(
        "--pair-features",
        metavar="FILE",
        help="more about pairs, which proposes none: the same columns, with names of features for sources",
    )
    if trains:
        group.add_argument(
            "--candidates-mode",
            choices=("only", "union"),
            default="only",
            help="only: rank the candidates alone; union: also what the model's own shortlisters find "
            "(default only)",
        )


def check_pair_options(args: argparse.Namespace) -> None:
    """Refuses files that are not there, before any work."""
    for path in (args.candidates, args.pair_features):
        if path is not None:
            check_exists(path)


def read_pairs(path: str | None) -> Any:
    """The pairs of a file; None without one."""
    from metarank.data.pair_files import read_candidates

    return None if path is None else read_candidates(path)


def pairs_for(
    model: MetaRanker, args: argparse.Namespace, n_rows: int, row: int | None = None
) -> dict[str, Any]:
    """What the files say of the pairs of all rows, or of one, as arguments of the methods that answer."""
    from metarank.types.given import read_given

    fitted, table = model.fitted_, model.label_table_
    out: dict[str, Any] = {}
    of_rows = slice(None) if row is None else [row]
    plain = args.candidates is not None and not fitted.given_sources
    if plain:
        own = read_label_lists(args.candidates, table, n_rows, option="--candidates")
        out["candidates"] = own[of_rows]
    candidates = None if plain else read_pairs(args.candidates)
    sources, features = fitted.given_sources, fitted.given_features
    given = read_given(candidates, read_pairs(args.pair_features), n_rows, table, sources, features)
    return out if given is None else out | given[of_rows].as_arguments()

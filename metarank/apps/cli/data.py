"""List, get or make data sets."""

from __future__ import annotations

import argparse
import os
import sys

from metarank.apps.cli._options import add_options
from metarank.apps.cli._printing import table

_SIZES = {"rows": 15_000, "features": 5_000, "labels": 4_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="named data sets and where they are")
    get = actions.add_parser("get", help="where a named data set is")
    add_options(get, "name  name of the data set, as `metarank data list` shows it")
    for action in (listing, get):
        add_options(action, "--data-dir DIR  folder of the data sets (default: $METARANK_DATA)")
    make = actions.add_parser("make", help="make a data set: pydocs or synthetic")
    kinds = {"choices": ("pydocs", "synthetic")}
    add_options(make, "name  which data set\n--out DIR  folder to write (default: the name)", name=kinds)
    for name, size in _SIZES.items():
        add_options(make, f"--{name} N  synthetic: {name} (default {size})", **{name: {"type": int}})
    add_options(make, "--seed")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank import data

    if args.action == "list":
        records = data.list_datasets(data_dir=args.data_dir)
        if not records:
            where = args.data_dir or os.environ.get("METARANK_DATA") or "no folder"
            print(f"metarank: none found, in {where}: --data-dir or METARANK_DATA names it", file=sys.stderr)
        print(table(["name", "task", "where"], [[r.name, r.task, r.path] for r in records]))
    elif args.action == "get":
        print(data.get(args.name, data_dir=args.data_dir))
    else:
        from metarank.data.make import make_files

        sizes = {name: getattr(args, name) for name in _SIZES if getattr(args, name) is not None}
        if sizes and args.name != "synthetic":
            raise ValueError(f"--{next(iter(sizes))} needs synthetic data: the size of {args.name} is fixed")
        for path in make_files(args.name, args.out or args.name, **(_SIZES | sizes), seed=args.seed):
            print(path)

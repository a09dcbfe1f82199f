"""List, find or make data sets."""

from __future__ import annotations

import argparse

from metarank.cli._common import table

HELP = "list, find or make data sets"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="named data sets and where they are")
    listing.add_argument("--data-dir", metavar="DIR", help="default: $METARANK_DATA")
    get = actions.add_parser("get", help="where a named data set is")
    get.add_argument("name")
    get.add_argument("--data-dir", metavar="DIR")
    make = actions.add_parser("make", help="make a data set: pydocs or synthetic")
    make.add_argument("name", choices=("pydocs", "synthetic"))
    make.add_argument("--out", metavar="DIR", default=None, help="folder to write (default: the name)")
    make.add_argument("--rows", type=int, default=15_000, help="synthetic: rows (default 15000)")
    make.add_argument("--features", type=int, default=5_000, help="synthetic: features (default 5000)")
    make.add_argument("--labels", type=int, default=4_000, help="synthetic: labels (default 4000)")
    make.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank import data

    if args.action == "list":
        records = data.list_datasets(data_dir=args.data_dir)
        rows = [
            [r.name, r.task, r.n_train, r.n_test, r.n_features, r.n_labels, r.path or "-"] for r in records
        ]
        print(table(["name", "task", "train", "test", "features", "labels", "where"], rows))
    elif args.action == "get":
        print(data.get(args.name, data_dir=args.data_dir))
    else:
        from metarank.data.make import make_files

        for path in make_files(
            args.name,
            args.out or args.name,
            rows=args.rows,
            features=args.features,
            labels=args.labels,
            seed=args.seed,
        ):
            print(path)

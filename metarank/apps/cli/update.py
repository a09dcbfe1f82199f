"""Change the labels of a model, or add rows to it, without a new fit."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from metarank.apps.cli._common import (
    add_jobs_option,
    add_reading_options,
    check_exists,
    load_model,
    read_dataset,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", metavar="DIR", help="folder of the model")
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the changed model (default: it replaces the model)"
    )
    group = parser.add_argument_group(
        "labels (`MetaRanker.update_labels`)",
        "LABEL is a name, or an id where no name is so; all changes speak of the labels before them",
    )
    group.add_argument("--add", action="append", metavar="NAME", help="a new label; may be repeated")
    group.add_argument(
        "--add-labels", metavar="FILE", help="new labels of a table, read as by --labels of `metarank train`"
    )
    group.add_argument("--remove", action="append", metavar="LABEL", help="may be repeated")
    for option, second, what in (
        ("--rename", "NAME", "give a label another name"),
        ("--merge", "INTO", "make the rows of a label those of another one, and remove it"),
    ):
        group.add_argument(
            option, action="append", nargs=2, metavar=("LABEL", second), help=f"{what}; may be repeated"
        )
    parser.add_argument(
        "--rows",
        metavar="FILE",
        help="labelled rows to add after that (`MetaRanker.partial_fit`): neighbours, centroids and priors "
        "take them in, trees, classifiers, ranker and cuts do not change",
    )
    add_jobs_option(parser)
    add_reading_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.data import read_labels
    from metarank.persist import check_target

    asked = (args.add, args.add_labels, args.remove, args.rename, args.merge)
    if args.rows is None and all(one is None for one in asked):
        raise ValueError("give --rows, --add, --add-labels, --remove, --rename or --merge")
    if args.add is not None and args.add_labels is not None:
        raise ValueError("give either --add or --add-labels")
    for path in (args.add_labels, args.rows):
        if path is not None:
            check_exists(path)
    out = args.model if args.out is None else args.out
    check_target(out)
    jobs, args.jobs = args.jobs, None
    model = load_model(args.model, args)
    saved, args.jobs = model.n_jobs, jobs
    model.n_jobs = jobs
    before = model.n_labels_
    table = model.label_table_

    def ids(labels: Iterable[str], option: str) -> list[int]:
        return [table.id_of_text(label, option) for label in labels]

    changes: dict[str, Any] = {"add": args.add}
    if args.add_labels is not None:
        changes["add"] = read_labels(args.add_labels)
    if args.remove is not None:
        changes["remove"] = ids(args.remove, "--remove")
    if args.rename is not None:
        old, new = zip(*args.rename)
        changes["rename"] = dict(zip(ids(old, "--rename"), new))
    if args.merge is not None:
        old, new = zip(*args.merge)
        changes["merge"] = dict(zip(ids(old, "--merge"), ids(new, "--merge")))
    if any(change is not None for change in changes.values()):
        model.update_labels(**changes)
    n_rows = 0
    if args.rows is not None:
        rows = read_dataset(args.rows, args, model)
        if rows.Y.nnz == 0:
            raise ValueError(f"{args.rows} holds no label in {rows.n_rows} rows")
        model.partial_fit(rows)
        n_rows = rows.n_rows
    model.n_jobs = saved
    model.save(out)
    done = [_counted(n_rows, "row", "added"), _counted(model.n_labels_ - before, "label", "added")]
    for what in ("remove", "rename", "merge"):
        done.append(_counted(len(getattr(args, what) or ()), "label", f"{what.removesuffix('e')}ed"))
    print(f"{out}: {', '.join(filter(None, done))}")


def _counted(n: int, what: str, done: str) -> str:
    """What was done to how many; "" of none.

    Examples
    --------
    >>> _counted(1, "label", "renamed"), _counted(2, "row", "added")
    ('1 label renamed', '2 rows added')
    """
    return f"{n} {what}{'s' * (n > 1)} {done}" if n else ""

"""Change the labels of a model, or add rows to it, without a new fit."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.printable import first_few
from metarank.apps.cli._options import READING, add_options

if TYPE_CHECKING:
    from metarank import Dataset, MetaRanker

# What is done to labels, and its word.
_CHANGES = {"add": "added", "remove": "removed", "rename": "renamed", "merge": "merged"}

_OPTIONS = """
model
--out DIR    folder for the changed model (default: it replaces the model)
--rows FILE  labelled rows to add after that (`MetaRanker.partial_fit`): neighbours, centroids and priors
             change; trees, classifiers, ranker and thresholds do not. A model without training rows is fitted
             on them, and a few rows may rank worse than names alone
--add-new    add labels of these rows that are new to the model
[labels (`MetaRanker.update_labels`)]  LABEL is a name, or an id if no name matches; all changes refer to the
                                       labels before the update
--add NAME ...           a new label; may be repeated
--add-labels FILE        new labels of a table, as for `metarank train --labels`
--remove LABEL ...       may be repeated
--rename LABEL NAME ...  rename a label; may be repeated
--merge LABEL INTO ...   move the rows of a label to another one, and remove it; may be repeated
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS + READING)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, label_ids, load_model, read_dataset
    from metarank.data import read_labels
    from metarank.persist import check_target

    if args.add is not None and args.add_labels is not None:
        raise ValueError("give either --add or --add-labels")
    check_exists(args.add_labels, args.rows)
    out = args.out or args.model
    check_target(out)
    model = load_model(args)
    before = model.n_labels_
    changes: dict[str, Any] = {"add": args.add}
    if args.add_labels is not None:
        args.options["add"] = "--add-labels"  # in messages
        changes["add"] = read_labels(args.add_labels)
    if args.remove is not None:
        changes["remove"] = label_ids(model, args.remove, "--remove")
    if args.rename is not None:
        old, new = zip(*args.rename)
        changes["rename"] = dict(zip(label_ids(model, old, "--rename"), new))
    if args.merge is not None:
        old, new = zip(*args.merge)
        changes["merge"] = dict(zip(label_ids(model, old, "--merge"), label_ids(model, new, "--merge")))
    changes = {name: change for name, change in changes.items() if change is not None}
    if args.rows is None and not changes:
        raise ValueError("give --rows, --add, --add-labels, --remove, --rename or --merge")
    if changes:
        model.update_labels(**changes)
    done = []
    if args.rows is not None:
        rows = read_dataset(args.rows, args, model)
        if rows.Y.nnz == 0:
            raise ValueError(f"{args.rows} holds no label in {rows.n_rows} rows")
        unknown = _unknown(model, rows)
        if unknown and not args.add_new:
            raise ValueError(
                f"{args.rows} holds {_counted(len(unknown), 'label', 'that the model does not know')}: "
                f"{first_few(unknown)}; --add-new adds them"
            )
        if unknown and model.n_rows_:  # without rows, a fit of these has their labels too
            model.update_labels(add=unknown)
            if model.label_table_.own_ids is not None:
                print(f"metarank: new labels without a name: {first_few(unknown)}", file=sys.stderr)
        model.partial_fit(rows)
        done.append(_counted(rows.n_rows, "row", "added"))
    model.save(out)
    counts = {name: len(change) for name, change in changes.items()} | {"add": model.n_labels_ - before}
    done += [_counted(counts[name], "label", word) for name, word in _CHANGES.items() if counts.get(name)]
    print(f"{out}: {', '.join(done)}")


def _unknown(model: MetaRanker, rows: Dataset) -> list[str]:
    """The labels of some rows, by name, that a model does not have."""
    names = rows.label_names or []
    return [names[j] for j in np.unique(rows.Y.indices) if names and names[j] not in model.label_table_]


def _counted(n: int, what: str, done: str) -> str:
    """What was done to how many.

    Examples
    --------
    >>> _counted(1, "label", "renamed"), _counted(2, "row", "added")
    ('1 label renamed', '2 rows added')
    """
    return f"{n} {what}{'s' * (n > 1)} {done}"

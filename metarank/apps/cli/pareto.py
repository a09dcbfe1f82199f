"""Train for many weights of several targets and show which trade-offs can be had."""

from __future__ import annotations

import argparse
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._common import (
    add_jobs_option,
    add_seed_option,
    print_json,
    print_page,
    showing_progress,
    writing,
)
from metarank.apps.cli._targets import add_target_options, columns_of, names_of, propensities_of, read

if TYPE_CHECKING:
    from metarank.data.columns import Columns
    from metarank.objectives.pareto import ParetoFront


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_target_options(parser)
    parser.add_argument(
        "--features",
        metavar="NAMES",
        help="comma-separated columns to learn from (default: all numeric ones that are not targets)",
    )
    parser.add_argument(
        "--eval", metavar="FILE", help="rows to measure on (default: a quarter of FILE, held out)"
    )
    parser.add_argument(
        "--aggregations",
        default="label,loss",
        metavar="NAMES",
        help="comma-separated: label, loss, product, plug-in-label, plug-in-loss, chebyshev (default "
        "label,loss)",
    )
    parser.add_argument(
        "--model",
        choices=("linear", "lightgbm", "auto"),
        default="lightgbm",
        help="kind of model (default lightgbm); auto decides by cross-validation, for a blend too",
    )
    parser.add_argument(
        "--metric",
        choices=("auto", "auc", "ndcg"),
        default="auto",
        help="auto (default) is ndcg within queries, else auc",
    )
    parser.add_argument(
        "--gain",
        choices=("exponential", "linear"),
        default="exponential",
        help="gain of a grade y in nDCG: exponential (default) is 2^y - 1, linear is y",
    )
    parser.add_argument(
        "--weights", type=int, default=11, metavar="N", help="weights of the targets to try (default 11)"
    )
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="boosting rounds (default 100)")
    add_seed_option(parser)
    parser.add_argument("--out", metavar="DIR", help="folder to write front.json and front.svg to")
    parser.add_argument(
        "--save",
        metavar="DIR",
        help="folder to save a model of the front to, for metarank.load and predict(X)",
    )
    parser.add_argument(
        "--choose",
        default="knee",
        metavar="POINT",
        help="which model to save: knee (default), or the number of a point in front.json, counted from 0",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_jobs_option(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.objectives.multi_objective import MultiObjectiveRanker
    from metarank.objectives.weight_sweep import pareto_front
    from metarank.persist import check_target

    for option, value, least in (("--rounds", args.rounds, 1), ("--weights", args.weights, 2)):
        if value < least:
            raise ValueError(f"{option} must be at least {least}, got {value}")
    targets = names_of(args.targets, "--targets")
    aggregations = names_of(args.aggregations, "--aggregations")
    wanted = names_of(args.features, "--features")
    propensities = propensities_of(args, targets)
    shared = next((name for name in wanted if name in targets), None)
    if shared is not None:
        raise ValueError(f"--features must not be targets, got {shared!r}: the model would read the answer")
    if args.out is not None:
        _check_folder(args.out)
    if args.choose != "knee" and not (args.choose.isascii() and args.choose.isdigit()):
        raise ValueError(f"--choose must be knee or the number of a point, got {args.choose!r}")
    if args.save is None and args.choose != "knee":
        raise ValueError("--choose goes with --save")
    if args.save is not None:
        check_target(args.save)
    ranker = MultiObjectiveRanker(
        model=args.model,
        metric=args.metric,
        label_gain="linear" if args.gain == "linear" else None,
        n_rounds=args.rounds,
        random_state=args.seed,
        n_jobs=args.jobs,
    )
    columns = read(args.file, args.query)
    if args.metric == "ndcg" and columns.ids is None:
        raise ValueError("--metric ndcg is defined within queries: name their column with --query")
    features, left_out = _features(args.file, columns, targets, wanted)

    def rows(columns: Columns) -> tuple[Any, Any]:
        return columns.matrix(features, "--features"), columns_of(columns, targets, "--targets")

    X, Y = rows(columns)
    measured: dict[str, Any] = {}
    if args.eval is not None:
        held_out = read(args.eval, args.query)
        measured = {"eval_set": rows(held_out), "eval_qid": held_out.ids, "eval_propensities": propensities}
    how = {"aggregations": aggregations, "n_weights": args.weights, "qid": columns.ids}
    how["propensities"] = propensities
    with showing_progress(quiet=args.quiet or args.json):
        front = pareto_front(X, Y, ranker=ranker, **how, **measured)
    chosen = front.knee if args.choose == "knee" else int(args.choose)
    if chosen >= len(front.points):
        raise ValueError(f"--choose must be below {len(front.points)}, the number of points, got {chosen}")
    if args.save is not None:
        front.models[chosen].save(args.save)
    _show(args, front, features, left_out)
    if args.save is not None and not args.json:
        weights = " / ".join(f"{weight:.3g}" for weight in front.weights[chosen])
        print(f"\nsaved: {args.save}, point {chosen}: {front.aggregation[chosen]}, weights {weights}")


def _features(
    path: str, columns: Columns, targets: list[str], wanted: list[str]
) -> tuple[list[str], list[str]]:
    """Columns to learn from, and those beside the targets that hold no numbers."""
    columns_of(columns, targets, "--targets")
    if columns.n_rows < 2:
        raise ValueError(f"{path}: there must be at least 2 rows, got {columns.n_rows}")
    if wanted:
        return wanted, []
    taken = {*targets, columns.query}
    features = [name for name in columns.numeric if name not in taken]
    if not features:
        raise ValueError(f"{path}: no column of numbers is left to learn from beside the targets")
    return features, [name for name in columns.wrong if name not in taken]


def _show(args: argparse.Namespace, front: ParetoFront, features: list[str], left_out: list[str]) -> None:
    """Write the front to the folder of --out, and print it."""
    found = {"features": features, "left_out": left_out, **front.to_dict()}
    places: list[Path] = []
    if args.out is not None:
        folder = Path(args.out)
        folder.mkdir(parents=True, exist_ok=True)
        places = [folder / "front.json", folder / "front.svg"]
        with writing(str(places[0])) as f:
            f.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        front.plot(places[1])
    if args.json:
        print_json(found)
        return
    shown = ", ".join(features[:12]) + (", ..." if len(features) > 12 else "")
    unused = f"; left out, not numbers: {', '.join(left_out)}" if left_out else ""
    print_page(f"{len(features)} features ({shown}){unused}")
    print_page(str(front))
    if places:
        print(f"\nwritten: {places[0]}, {places[1]}")


def _check_folder(path: str) -> None:
    """Refuse what no folder can be written to, before any work."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, "--out must name a folder", path)
    above = Path(path).absolute()
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "cannot write to the folder", str(above))

"""Train with many weights of several targets and show the possible trade-offs."""

from __future__ import annotations

import argparse
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from metarank._util.extra import require_extra
from metarank._util.files import can_be_written
from metarank.apps.cli._options import add_options
from metarank.apps.cli._printing import show, showing_progress, writing

if TYPE_CHECKING:
    from metarank.objectives.fronts import ParetoFront

_OPTIONS = """
file --targets --query --json
--features NAMES        comma-separated feature columns (default: all numeric ones except the targets)
--propensities NUMBERS  comma-separated, one per target: the probability that a relevant row is labelled, if
                        labels are missing (1: none are); results are then AUCs of the complete targets
--weights N             number of weights to try (default 11)
--rounds N              boosting rounds (default 100)
--out DIR               folder to write front.json and front.svg to
--save DIR              folder for the model at the knee of the front, for metarank.load and predict(X)
--overwrite             replace an existing model without asking
--seed --quiet --jobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS, weights=11, rounds=100)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_may_write, numbers_of, read_targets
    from metarank.objectives.fronts import pareto_front
    from metarank.objectives.multi_objective import MultiObjectiveRanker

    propensities = numbers_of(args.propensities, "--propensities")
    if args.out is not None:
        require_extra("plot", "matplotlib")
        if os.path.lexists(args.out) and not os.path.isdir(args.out):
            raise NotADirectoryError(errno.ENOTDIR, "--out must name a folder", args.out)
        can_be_written(Path(args.out) / "front.json")
    if args.save is not None:
        check_may_write(args.save, args.overwrite)
    columns, targets, features = read_targets(args)
    left_out: list[str] = []
    if not features:
        taken = {*targets, columns.query}
        features = [name for name in columns.numeric if name not in taken]
        left_out = [name for name in columns.wrong if name not in taken]
        if not features:
            raise ValueError(f"{args.file}: there are no columns of numbers except the targets")
    ranker = MultiObjectiveRanker(n_rounds=args.rounds, random_state=args.seed, n_jobs=args.jobs)
    if propensities is not None:  # nDCG has no form for missing labels
        ranker.metric = "auc"
    X = columns.matrix(features, "--features")
    with showing_progress(quiet=args.quiet or args.json):
        front = pareto_front(
            X,
            targets,
            ranker=ranker,
            n_weights=args.weights,
            qid=columns.ids,
            propensities=propensities,
            feature_names=features,
        )
    if args.save is not None:
        front.models[front.knee].save(args.save)
    content = {"features": features, "left_out": left_out, **front.to_dict()}
    if args.out is not None:
        _write(Path(args.out), front, content)
    shown = ", ".join(features[:12]) + (", ..." if len(features) > 12 else "")
    unused = f"; left out, not numbers: {', '.join(left_out)}" if left_out else ""
    text = f"{len(features)} features ({shown}){unused}\n{front}"
    if args.out is not None:
        text += f"\n\nwritten: {Path(args.out) / 'front.json'}, {Path(args.out) / 'front.svg'}"
    if args.save is not None:
        text += f"\n\nsaved: {args.save}, the knee, point {front.knee}"
    show(args.json, content, text)


def _write(folder: Path, front: ParetoFront, content: dict[str, object]) -> None:
    """The front as JSON, and its picture as SVG; the same bytes of the same front."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from metarank.apps import plots

    folder.mkdir(parents=True, exist_ok=True)
    with writing(str(folder / "front.json")) as f:
        f.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    width = max(7.2, 0.8 + 1.7 * len(front.objective_names))
    figure = Figure(figsize=(width, 5.0), layout="constrained")
    plots.front(front, figure.add_subplot())
    picture = writing(str(folder / "front.svg"), "wb")
    with mpl.rc_context({"svg.hashsalt": "metarank", "svg.fonttype": "none"}), picture as f:
        figure.savefig(f, format="svg", metadata={"Date": None})

"""Compare several targets of one ranking."""

from __future__ import annotations

import argparse

from metarank.apps.cli._options import add_options
from metarank.apps.cli._printing import show

_OPTIONS = """
file --targets --query --json
--features NAMES   comma-separated feature columns: compare label and loss aggregation by cross-validation
--weights NUMBERS  comma-separated weights of the targets (default: equal)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, _OPTIONS)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import numbers_of, read_targets
    from metarank.objectives import diagnose

    weights = numbers_of(args.weights, "--weights")
    columns, targets, features = read_targets(args)
    X = columns.matrix(features, "--features") if features else None
    diagnosis = diagnose(targets, weights=weights, X=X, qid=columns.ids)
    show(args.json, diagnosis.to_dict(), diagnosis)

"""Describe a model folder or a data file."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from metarank.cli._common import add_reading_options, read_dataset, table

if TYPE_CHECKING:
    from metarank.pipeline import MetaRanker

HELP = "describe a model folder or a data file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("path", metavar="DIR|FILE")
    add_reading_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    if not os.path.exists(args.path):
        raise FileNotFoundError(2, "no such file or folder", args.path)
    print(_model_page(args.path) if os.path.isdir(args.path) else _data_page(args))


def _model_page(path: str) -> str:
    from metarank.persist import load, read_manifest
    from metarank.pipeline import MetaRanker

    manifest = read_manifest(path)
    model: Any = load(path, verify=False)
    facts = [
        ["format version", manifest["format_version"]],
        ["written by", f"metarank {manifest['metarank_version']}"],
        ["features", model.n_features_in_],
        ["labels", model.n_labels_],
        *(_stages(model) if isinstance(model, MetaRanker) else _parameters(model)),
    ]
    lines = [f"{name:<15} {value}" for name, value in facts]
    sizes = sorted(((e["bytes"], n) for n, e in manifest["files"].items()), reverse=True)
    total = sum(b for b, _ in sizes)
    lines.append(f"{'size':<15} {total / 2**20:.2f} MiB in {len(sizes)} files; the largest:")
    lines += [f"  {b / 2**20:8.2f} MiB  {n}" for b, n in sizes[:8]]
    return "\n".join(lines)


def _stages(model: MetaRanker) -> list[list[Any]]:
    return [
        ["layout", model.encoder_.layout],
        *([["removed labels", len(model.removed_)]] if len(model.removed_) else []),
        ["shortlisters", _names(model.shortlisters_) or "none: all labels"],
        ["scorers", _names(model.scorers_)],
        ["meta-features", len(model.feature_columns_)],
        ["ranker", model.ranker_.summary()],
        ["cuts", model.thresholds_.summary()],
    ]


def _names(scorers: list[Any]) -> str:
    """Their classes; of one kept since labels have changed, that of the scorer itself."""
    from metarank.scorers.kept import KeptScorer

    return ", ".join(type(s.scorer if isinstance(s, KeptScorer) else s).__name__ for s in scorers)


def _parameters(scorer: Any) -> list[list[Any]]:
    return [
        ["scorer", type(scorer).__name__],
        *([k, v] for k, v in scorer.get_params().items() if v is not None),
    ]


def _data_page(args: argparse.Namespace) -> str:
    dataset = read_dataset(args.path, args)
    return table(["what", "value"], [[k, v] for k, v in dataset.summary().items()])

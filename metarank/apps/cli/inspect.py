"""Describe a model folder or a data file."""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._options import READING, add_options
from metarank.apps.cli._printing import show, table

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, f"path DIR|FILE  folder of a model, or data file\n--json{READING}")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, read_dataset
    from metarank.data.corpus import is_corpus_folder

    check_exists(args.path, message="no such file or folder")
    if not os.path.isdir(args.path) or is_corpus_folder(Path(args.path)):
        summary = read_dataset(args.path, args).summary()
        show(args.json, summary, table(["what", "value"], list(summary.items())))
        return
    facts = _model(args.path)
    lines = [
        f"{'' if i else name:<16} {line}"
        for name, value in facts.items()
        for i, line in enumerate(value if isinstance(value, list) else [value])
    ]
    show(args.json, {name.replace(" ", "_"): value for name, value in facts.items()}, "\n".join(lines))


def _model(path: str) -> dict[str, Any]:
    """The facts of a model by name; lists of those of which there may be several."""
    from metarank.model.estimator import MetaRanker
    from metarank.persist import load, read_manifest

    manifest = read_manifest(path)
    model: Any = load(path, verify=False)
    facts = {
        "format version": manifest["format_version"],
        "written by": f"metarank {manifest['metarank_version']}",
        "digest": manifest["digest"],
        "features": model.n_features_in_,
    }
    objectives = getattr(model, "objective_names_", None)
    if objectives is not None:
        facts["objectives"] = ", ".join(objectives)
    else:
        facts["labels"] = model.n_labels_ - len(getattr(model, "removed_", ()))
    facts |= _stages(model) if isinstance(model, MetaRanker) else _parameters(model)
    if choices := getattr(model, "choices_", []):
        facts["choices"] = list(choices)
    files = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    if isinstance(model, MetaRanker):
        facts["size by source"] = _sizes([source.name for source in model.fitted_.sources], files)
    return facts | {"size": f"{sum(files.values()) / 2**20:.2f} MiB in {len(files)} files"}


def _sizes(sources: list[str], files: dict[str, int]) -> list[str]:
    """The size of each source's files, largest first; a shared file counts for its first source."""
    sizes: Counter[str] = Counter()
    for file, size in files.items():
        of_source = re.match(r"model\.fitted\.sources\.(\d+)\.", file)
        sizes["the rest" if of_source is None else sources[int(of_source[1])]] += size
    return [f"{name} {size / 2**20:.2f} MiB" for name, size in sizes.most_common()]


def _stages(model: MetaRanker) -> dict[str, Any]:
    from metarank.model.fitted import quality_lines

    facts: dict[str, Any] = {
        "blocks": [line.removeprefix("block ") for line in model.choices_ if line.startswith("block ")],
        "layout": model.encoder_.layout,
        "removed labels": len(model.removed_) or None,
        "label table": None if model.labels_ is None else str(model.labels_),
        "shortlisters": ", ".join(s.shown_as for s in model.shortlisters_) or "none: all labels",
        "scorers": ", ".join(s.shown_as for s in model.scorers_),
        "meta-features": len(model.feature_columns_),
        "ranker": model.ranker_.summary(),
        "thresholds": model.thresholds_.summary(),
        "held out": list(quality_lines(getattr(model, "held_out_quality_", {}))),
    }
    return {name: value for name, value in facts.items() if value not in (None, [])}


def _parameters(scorer: Any) -> dict[str, Any]:
    facts = {"scorer": getattr(scorer, "shown_as", type(scorer).__name__)}
    return facts | {k: v for k, v in scorer.get_params().items() if v is not None}

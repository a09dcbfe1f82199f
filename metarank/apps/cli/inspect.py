"""Describe a model folder or a data file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from metarank.apps.cli._options import READING, add_options
from metarank.apps.cli._printing import show, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_options(parser, f"path DIR|FILE  folder of a model, or data file\n--json{READING}")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import check_exists, read_dataset, without_labels
    from metarank.data.corpus import is_corpus_folder

    check_exists(args.path, message="no such file or folder")
    if not os.path.isdir(args.path) or is_corpus_folder(Path(args.path)):
        dataset = read_dataset(args.path, args)
        if dataset.Y.nnz == 0:
            print(f"metarank: {without_labels(args.path)}", file=sys.stderr)
        summary = dataset.summary()
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
    from metarank.model.fitted import quality_lines
    from metarank.persist import load, read_manifest

    manifest = read_manifest(path)
    model: Any = load(path, verify=False)
    facts = {
        "format version": manifest["format_version"],
        "written by": f"metarank {manifest['metarank_version']}",
        "digest": manifest["digest"],
        **model._facts(),
    }
    files = {name: entry["bytes"] for name, entry in manifest["files"].items()}
    if isinstance(model, MetaRanker):
        facts |= {
            "held out": list(quality_lines(model.held_out_quality_)),
            "choices": list(model.choices_),
            "size by source": _sizes([source.name for source in model.fitted_.sources], files),
        }
    return facts | {"size": f"{sum(files.values()) / 2**20:.2f} MiB in {len(files)} files"}


def _sizes(sources: list[str], files: dict[str, int]) -> list[str]:
    """The size of each source's files, largest first; a shared file counts for its first source."""
    sizes: Counter[str] = Counter()
    for file, size in files.items():
        of_source = re.match(r"model\.fitted\.sources\.(\d+)\.", file)
        sizes["the rest" if of_source is None else sources[int(of_source[1])]] += size
    return [f"{name} {size / 2**20:.2f} MiB" for name, size in sizes.most_common()]

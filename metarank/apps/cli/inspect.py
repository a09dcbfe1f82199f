"""Describe a model folder or a data file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metarank.apps.cli._common import (
    add_reading_options,
    check_exists,
    print_json,
    print_page,
    read_dataset,
    table,
)

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker
    from metarank.scorers.base import LabelScorer


# Facts of which there may be several, also where there is one.
_SEVERAL = ("blocks", "held_out", "choices")
_PARTS = {
    "encoder": "encoder",
    "ranker": "ranker",
    "thresholds": "thresholds",
    "label_names": "names of labels",
    "labels": "table of labels",
    "row_names": "names of rows",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("path", metavar="DIR|FILE", help="folder of a model, data file, or vocabulary")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_reading_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.data.corpus import is_corpus
    from metarank.data.vocabulary import vocabulary_summary

    check_exists(args.path, "no such file or folder")
    if not os.path.isdir(args.path) or is_corpus(Path(args.path)):
        known = vocabulary_summary(args.path)
        found = read_dataset(args.path, args).summary() if known is None else known
        if args.json:
            print_json(found)
        else:
            print(table(["what", "value"], [[k, v] for k, v in found.items()]))
        return
    facts, parts = _model(args.path)
    if not args.json:
        lines = [f"{name:<15} {value}" for name, value in facts]
        rows = [[part, f"{size / 2**20:.2f}", count] for part, size, count in parts]
        print_page("\n".join([*lines, "", table(["part", "MiB", "files"], rows)]))
        return
    said: dict[str, Any] = {}
    key = ""
    for name, value in facts:
        key = name.replace(" ", "_") or key
        said[key] = [*said[key], value] if not name else [value] if key in _SEVERAL else value
    said["parts"] = [dict(zip(("part", "bytes", "files"), part)) for part in parts]
    print_json(said)


def _model(path: str) -> tuple[list[list[Any]], list[list[Any]]]:
    """[name, value] of each fact, further values without name; [part, bytes, files] of each part."""
    from metarank.model.estimator import MetaRanker
    from metarank.persist import load, read_manifest

    manifest = read_manifest(path)
    model: Any = load(path, verify=False)
    facts = [
        ["format version", manifest["format_version"]],
        ["written by", f"metarank {manifest['metarank_version']}"],
        ["digest", manifest["digest"]],
        ["features", model.n_features_in_],
        *_labels(model),
        *(_stages(model) if isinstance(model, MetaRanker) else _parameters(model)),
    ]
    choices = getattr(model, "choices_", [])
    facts += [["" if i else "choices", text] for i, text in enumerate(choices)]
    return facts, _sizes(manifest)


def _labels(model: Any) -> list[list[Any]]:
    """The number of labels, or the objectives of a ranker of several."""
    names = getattr(model, "objective_names_", None)
    if names is not None:
        return [["objectives", ", ".join(names)]]
    return [["labels", model.n_labels_ - len(getattr(model, "removed_", ()))]]


def _sizes(manifest: dict[str, Any]) -> list[list[Any]]:
    """[part, bytes, files] of each part of a saved model, largest first, and of the whole.

    Parts are the encoder, every scorer, the ranker and the thresholds; what several of them hold, such as
    the training rows, is a part of its own.
    """
    owners: dict[str, set[str]] = {}
    for part, value in _parts(manifest["model"]):
        for name in _files_in(value):
            owners.setdefault(name, set()).add(part)
    sizes: dict[str, list[int]] = {}
    for name, entry in manifest["files"].items():
        of = owners.get(name, {"the rest"})
        found = sizes.setdefault(next(iter(of)) if len(of) == 1 else "shared by several", [0, 0])
        found[0] += entry["bytes"]
        found[1] += 1
    largest_first = sorted(sizes.items(), key=lambda item: (-item[1][0], item[0]))
    rows: list[list[Any]] = [[part, *of] for part, of in largest_first]
    return [*rows, ["total", sum(row[1] for row in rows), len(manifest["files"])]]


def _parts(model: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The named parts of a model's tree in the manifest. A scorer that also proposes labels is one part."""
    if model["__object__"] != "MetaRanker":
        yield from model["state"].items()
        return
    for key, value in model["state"].items():
        if key == "sources":
            yield from ((source["scorer"]["__object__"], source) for source in value)
        elif key in ("shortlisters", "scorers"):  # two lists, in earlier files
            yield from ((scorer["__object__"], scorer) for scorer in value)
        else:
            yield _PARTS.get(key, "the rest"), value


def _files_in(value: Any) -> Iterator[str]:
    """The files that a part of the tree names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("__array__", "__text__", "__strings__"):
                yield inner
            else:
                yield from _files_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _files_in(inner)


def _stages(model: MetaRanker) -> list[list[Any]]:
    from metarank.model.held_out import quality_lines

    held_out = quality_lines(getattr(model, "held_out_quality_", {}))
    return [
        *(["" if i else "blocks", line] for i, line in enumerate(_blocks(model))),
        ["layout", model.encoder_.layout],
        *([["removed labels", len(model.removed_)]] if len(model.removed_) else []),
        *([["label table", str(model.labels_)]] if model.labels_ is not None else []),
        ["shortlisters", _names(model.shortlisters_) or "none: all labels"],
        ["scorers", _names(model.scorers_)],
        ["meta-features", len(model.feature_columns_)],
        ["ranker", model.ranker_.summary()],
        ["cuts", model.thresholds_.summary()],
        *(["" if i else "held out", text] for i, text in enumerate(held_out)),
    ]


def _blocks(model: MetaRanker) -> list[str]:
    """A line about each block of X, if there are any."""
    return [line.removeprefix("block ") for line in model.choices_ if line.startswith("block ")]


def _names(scorers: list[LabelScorer]) -> str:
    return ", ".join(scorer.shown_as for scorer in scorers)


def _parameters(scorer: Any) -> list[list[Any]]:
    return [
        ["scorer", getattr(scorer, "shown_as", type(scorer).__name__)],
        *([k, v] for k, v in scorer.get_params().items() if v is not None),
    ]

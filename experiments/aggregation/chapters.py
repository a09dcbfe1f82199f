"""Runs the chapters of a page, keeps each in cache/, and writes the page from what is kept."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.append(str(_HERE.parent))

from chapter import Chapter, NotHereError, Settings  # noqa: E402
from page import digest_of_sources, write  # noqa: E402
from whole_page import WholePage  # noqa: E402


def add_chapter_options(parser: argparse.ArgumentParser, chapters: Sequence[str]) -> None:
    """What `write_page` reads beside the options of a whole page."""
    parser.add_argument("--only", default=",".join(chapters), help=f"among {', '.join(chapters)}")
    parser.add_argument("--data", type=Path, default=_data_folder(), help="default: $METARANK_DATA")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=25, help="resamplings of a banking rate")
    parser.add_argument("--quick", action="store_true", help="everything in seconds, as a trial of the code")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")


def write_page(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    chapters: Sequence[str],
    titles: Mapping[str, str],
    title: str,
    findings: str,
) -> None:
    """Run the chapters that --only names, and write all that are kept."""
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(chapters):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(chapters)}")
    settings = Settings(options.data, options.seed, options.trials, options.quick)
    whole = WholePage(options, parser, ("seed", "trials", "quick"))
    options.cache.mkdir(parents=True, exist_ok=True)

    for name in chosen:
        started, sources = time.perf_counter(), digest_of_sources()
        try:
            chapter = importlib.import_module(name).chapter(settings)
        except NotHereError as absent:
            chapter = Chapter(titles.get(name, name), f"Left out: {absent}.")
        record = asdict(chapter) | {
            "seconds": time.perf_counter() - started,
            "sources": sources,
            "settings": {"seed": settings.seed, "trials": settings.trials, "quick": settings.quick},
        }
        (options.cache / f"{name}.json").write_text(json.dumps(record, indent=1))
        print(f"{name}: {record['seconds']:.0f} s", file=sys.stderr)
    records = {}
    for name in chapters:
        kept = options.cache / f"{name}.json"
        if kept.exists():
            records[name] = json.loads(kept.read_text())
            for file, drawing in records[name]["figures"].items():
                (whole.folder / file).write_text(drawing)
    if any(record["settings"]["quick"] for record in records.values()) and not whole.narrowed:
        whole.narrowed.append("--quick, kept from before")
    whole.write(write(records, title, _HERE / findings))


def _data_folder() -> Path:
    return Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))

"""Loss or label aggregation: the tables, figures and examples of the paper, on data, by theory and by force.

python experiments/aggregation/run.py [--out results.md] [--only banking,enumeration] [--quick]

Each chapter is kept in cache/ when it is done; --only runs some and takes the others from there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

# Before anything brings an OpenMP runtime: its idle threads must sleep, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]
sys.path.append(str(_HERE.parent))

from chapter import Chapter, NotHereError, Settings  # noqa: E402
from page import digest_of_sources, write  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402

# With the titles of those that are left out where their data is not there.
CHAPTERS = {
    "banking": "Banking: Table 3 and Figure 3",
    "bayes_curves": "",
    "enumeration": "",
    "synthetic_training": "",
    "counterexample": "",
    "growth": "",
    "letor": "MQ2008",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, _HERE / "results.md")
    data = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    parser.add_argument("--only", default=",".join(CHAPTERS), help=f"among {', '.join(CHAPTERS)}")
    parser.add_argument("--data", type=Path, default=data, help="default: $METARANK_DATA")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=25, help="resamplings of a banking rate")
    parser.add_argument("--quick", action="store_true", help="everything in seconds, as a trial of the code")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(CHAPTERS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(CHAPTERS)}")
    settings = Settings(options.data, options.seed, options.trials, options.quick)
    whole = WholePage(options, parser, ("seed", "trials", "quick"))
    options.cache.mkdir(parents=True, exist_ok=True)

    for name in chosen:
        started, sources = time.perf_counter(), digest_of_sources()
        try:
            chapter = importlib.import_module(name).chapter(settings)
        except NotHereError as absent:
            chapter = Chapter(CHAPTERS[name], f"Left out: {absent}.")
        record = asdict(chapter) | {
            "seconds": time.perf_counter() - started,
            "sources": sources,
            "settings": {"seed": settings.seed, "trials": settings.trials, "quick": settings.quick},
        }
        (options.cache / f"{name}.json").write_text(json.dumps(record, indent=1))
        print(f"{name}: {record['seconds']:.0f} s", file=sys.stderr)
    records = {}
    for name in CHAPTERS:
        kept = options.cache / f"{name}.json"
        if kept.exists():
            records[name] = json.loads(kept.read_text())
            for file, drawing in records[name]["figures"].items():
                (whole.folder / file).write_text(drawing)
    if any(record["settings"]["quick"] for record in records.values()) and not whole.narrowed:
        whole.narrowed.append("--quick, kept from before")
    whole.write(write(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())

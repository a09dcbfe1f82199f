"""The pipeline beside the best of its parts alone: the ridge over all labels, and XReg-t.

python experiments/extreme/alone.py [--sets LLMs4Subjects-dev-en] [--kept]

Writes alone.md. Runs are those of run.py and kept with them; what is kept is not measured again.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from borrowed_runs import Laboratory, environments
from report import Measured, by_set, chapters
from run import Study
from sets import available

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
SETS = ("pydocs", "LLMs4Subjects-dev-en", "LastFM-ArtistTags", "CiteULike-t-tags", "Wikispeedia-Links")
GROUPS = ("alone", "pipeline", "names")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help="names or folders")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a run may take")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    add_options(parser, _HERE / "alone.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets",))
    options.cache.mkdir(parents=True, exist_ok=True)
    core = None if options.core < 0 else options.core
    laboratory = Laboratory(options.cache, environments.DEFAULT_FOLDER, core, options.timeout)
    study = Study(laboratory, only=[] if options.kept else ["*"], again=[])
    sets = available(options.sets.split(","), options.cache)
    whole.write(page([study.measure(dataset, GROUPS) for dataset in sets]))
    return 0


def page(sets: Sequence[Measured]) -> str:
    parts = [
        "# The pipeline beside the best of its parts alone",
        'Written by `python experiments/extreme/alone.py`. `OneVsAll(loss="ridge")` and XReg-t, '
        '`XReg(relevance="inverse-propensity", normalize="label", tail="auto")`, in the same runs as the '
        "pipeline, judged as in "
        "[results.md](results.md), which explains the columns and has the peers. Other work ran beside it: "
        "times are not to be quoted.",
        "## Is the pipeline better?",
    ]
    judged = {
        measured.dataset.name: [
            v for v in measured.verdicts() if re.search(r"(above|below) metarank ", v.claim)
        ]
        for measured in sets
    }
    return "\n\n".join([*parts, *by_set(judged), *chapters(sets)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())

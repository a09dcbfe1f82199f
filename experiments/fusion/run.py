"""Candidates of others: fusing the scores of subject indexers, and re-ranking what retrievers propose.

python experiments/fusion/run.py [--sets yso-en,mq2008,LLMs4Subjects-dev-en,CiteULike-t-tags] [--cache FOLDER]

omikuji and PECOS run in the environments that `experiments/shortlist_speed/environments.py` makes; without
them they are left out with a message.

No setting of metarank is chosen on a test part: all are the defaults. Results are kept, by set and retriever:
an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Times are those of one thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

sys.path.append(str(Path(__file__).resolve().parent.parent))

import retrievers  # noqa: E402
from letor import compared  # noqa: E402
from page import write_page  # noqa: E402
from pages import log  # noqa: E402
from reranking import reranked  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402
from yso import fused  # noqa: E402

import metarank  # noqa: E402

_HERE = Path(__file__).parent
FUSION, LETOR = "yso-en", "mq2008"
RERANKED = ("LLMs4Subjects-dev-en", "CiteULike-t-tags")
SEED = 0


def kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is kept under a path, or made and kept now."""
    if not path.exists():
        started = time.monotonic()
        found = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1))
        log(f"{path.stem}: {time.monotonic() - started:.0f} s")
    return json.loads(path.read_text())


def main(arguments: list[str] | None = None) -> int:
    every = (FUSION, LETOR, *RERANKED)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(every), help=f"among {', '.join(every)}")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument("--environments", type=Path, default=retrievers.DEFAULT_FOLDER, help="of the peers")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    retrievers.ENVIRONMENTS_FOLDER = options.environments
    wanted = options.sets.split(",")
    if unknown := set(wanted) - set(every):
        parser.error(f"--sets must be among {', '.join(every)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets",))
    fusion, letor, tables = None, None, {}
    for name in wanted:
        try:
            if name == FUSION:
                fusion = kept(options.cache / f"{name}.json", lambda: fused(SEED))
                continue
            if name == LETOR:
                letor = kept(options.cache / f"{name}.json", lambda: compared(SEED))
                continue
            tables[name] = {}
            for retriever in retrievers.RETRIEVERS:
                if why := retrievers.missing(retriever):
                    log(f"{retriever} is left out: {why}")
                    continue
                path = options.cache / f"{name}-{retriever.replace(' ', '-')}.json"
                tables[name][retriever] = kept(path, partial(reranked, name, retriever, SEED))
        except FileNotFoundError as error:
            log(f"{name} is left out: {error}")
    whole.write(write_page(fusion, letor, tables, SEED, metarank.__version__))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Neighbours: HNSW and IVF-PQ beside the exact search, and votes by inverse propensity.

python experiments/neighbors/run.py [--sizes 25000,100000] [--sets CiteULike-t-tags]

Only the training parts of the sets are read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import indexes
import votes
from neighbor_tables import write

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, indexes.SIZES)), help="rows of the made sets")
    parser.add_argument("--sets", default=",".join(votes.SETS), help="named sets")
    add_options(parser, Path(__file__).with_name("results.md"))
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sizes", "sets"))
    of_votes = {}
    for name in filter(None, options.sets.split(",")):
        try:
            data = votes.load(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        of_votes[name] = (*data.Y.shape, votes.measure(data))
    of_indexes = [f for n in filter(None, options.sizes.split(",")) for f in indexes.measure(int(n))]
    whole.write(write(of_indexes, of_votes))
    return 0


if __name__ == "__main__":
    sys.exit(main())

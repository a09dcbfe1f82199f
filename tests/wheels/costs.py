"""What metarank and each library it needs cost, in MB and in time to import, as a table.

    python tests/wheels/costs.py

Sizes are those of the files that pip installed. Times are processor time beyond a bare interpreter, the least
of five processes; a library is imported with what it imports itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

MODULES = {
    "numpy": "numpy",
    "scipy": "scipy.sparse",
    "scikit-learn": "sklearn.base",
    "lightgbm": "lightgbm",
    "faiss-cpu": "faiss",
    "threadpoolctl": "threadpoolctl",
    "tqdm": "tqdm.auto",
    "metarank-ltr": "metarank",
}


def megabytes(distribution: str) -> float:
    if distribution == "metarank-ltr":
        import metarank

        files = [p for p in Path(metarank.__file__).parent.rglob("*") if "__pycache__" not in p.parts]
    else:
        files = [Path(str(file.locate())) for file in metadata.files(distribution) or ()]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def seconds(code: str) -> float:
    def once() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    return min(once() for _ in range(5))


def main() -> None:
    bare = seconds("pass")
    print("| library | MB | import, ms |\n| --- | ---: | ---: |")
    for distribution, module in MODULES.items():
        took = seconds(f"import {module}") - bare
        print(f"| {distribution} | {megabytes(distribution):.1f} | {1000 * took:.0f} |", flush=True)
    took = seconds("from metarank import MetaRanker") - bare
    print(f"| `from metarank import MetaRanker` | | {1000 * took:.0f} |")


if __name__ == "__main__":
    main()

"""README's first example, and ten lines from a data frame to a ranking, with metarank as it was installed.

python tests/wheels/examples.py readme     needs no more than the wheel brings
python tests/wheels/examples.py frame      needs pandas
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FRAME = """
import pandas as pd
from metarank import MetaRanker

rows = [(f"a {colour} {shape}, number {n}", [colour, shape])
        for n in range(20) for colour in ("red", "green", "blue") for shape in ("circle", "square")]
frame = pd.DataFrame(rows, columns=["text", "labels"])
train = frame[:100]
model = MetaRanker(effort="low").fit(train["text"], train["labels"])
ranking = model.rank(frame["text"][100:], k=2)
print(ranking.to_frame())
"""


def first_example() -> str:
    """The first Python block of README."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]


def main(which: str) -> None:
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(first_example() if which == "readme" else FRAME, names)
        os.chdir("/")  # Windows keeps a folder that is in use
    if which == "frame":
        expected = [set(labels) for _, labels in names["rows"][100:]]
        assert [set(ranked) for ranked in names["ranking"].names] == expected


if __name__ == "__main__":
    main(sys.argv[1])

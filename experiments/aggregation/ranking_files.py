"""Ranking files as LETOR and MSLR have them: `grade qid:q 1:v 2:v ... # comment`, plain or compressed."""

from __future__ import annotations

import gzip
import io
import lzma
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

_OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def opened(path: Path) -> TextIO:
    """The text of a file, plain, .xz or .gz."""
    if path.suffix in _OPENERS:
        return io.TextIOWrapper(_OPENERS[path.suffix](path), "utf-8")
    return path.open(encoding="utf-8")


def read(path: Path, n_features: int, most: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X float32 (n, d), grades float64 (n,), query ids int64 (n,); features that are not there are 0.

    Of the first `most` lines, or of all.

    Raises
    ------
    ValueError
        A line without a query, or with a feature outside of 1 to `n_features`; the line is named.
    """
    grades, queries, rows = [], [], []
    with opened(path) as lines:
        for number, line in enumerate(islice(lines, most), 1):
            parts = line.partition("#")[0].split()
            if not parts:
                continue
            if len(parts) < 2 or not parts[1].startswith("qid:"):
                raise ValueError(
                    f"{path}, line {number}: must start with a grade and qid:, got {line[:40]!r}"
                )
            row = np.zeros(n_features, np.float32)
            for part in parts[2:]:
                feature, _, value = part.partition(":")
                if not 1 <= int(feature) <= n_features:
                    raise ValueError(f"{path}, line {number}: feature {feature} is not in 1 to {n_features}")
                row[int(feature) - 1] = float(value)
            grades.append(float(parts[0]))
            queries.append(int(parts[1][4:]))
            rows.append(row)
    return np.array(rows).reshape(-1, n_features), np.array(grades), np.array(queries, np.int64)

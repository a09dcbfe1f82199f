"""The sets: MQ2008, LightGBM's own ranking example, and two that are made."""

from __future__ import annotations

import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "aggregation"))

from ranking_files import read

SPLITS, DRAWS = 5, 2
MADE_QUERIES, MADE_TEST, MADE_SIZE, MADE_COLUMNS = 1700, 300, 10, 20


class Queries(NamedTuple):
    """Documents with grades and the numbers of their queries."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray

    def some(self, ids: np.ndarray) -> Queries:
        rows = np.isin(self.qid, ids)
        return Queries(self.X[rows], self.y[rows], self.qid[rows])


def joined(parts: list[Queries]) -> Queries:
    return Queries(*(np.concatenate(of) for of in zip(*parts)))


def mq_files(data: Path) -> list[Path]:
    return [data / "ltr" / "mq2008" / f"S{i}.txt.xz" for i in range(1, 6)]


def mq_parts(data: Path) -> list[Queries]:
    """S1 to S5."""
    return [Queries(*read(path, 46)) for path in mq_files(data)]


def mq2008(data: Path) -> list[tuple[Queries, Queries]]:
    """The five folds of LETOR: three parts to train, one to test; the validation part is unused here."""
    parts = mq_parts(data)
    return [(joined([parts[(f + i) % 5] for i in range(3)]), parts[(f + 4) % 5]) for f in range(SPLITS)]


def example_files(data: Path) -> list[Path]:
    return [data / "ltr" / "lightgbm_lambdarank" / f"rank.{part}.xz" for part in ("train", "test")]


def lightgbm_example(data: Path) -> list[tuple[Queries, Queries]]:
    """The 251 queries of both its parts, in five folds by chance."""
    parts, first = [], 0
    for path in example_files(data):
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
        X = np.zeros((len(lines), 300), np.float32)
        for row, line in enumerate(lines):
            for entry in line.split()[1:]:
                column, value = entry.split(":")
                X[row, int(column) - 1] = float(value)
        sizes = np.array(
            path.with_suffix("").with_suffix(path.with_suffix("").suffix + ".query").read_text().split()
        )
        qid = np.repeat(np.arange(first, first + len(sizes)), sizes.astype(int))
        parts.append(Queries(X, np.array([float(line.split()[0]) for line in lines]), qid))
        first += len(sizes)
    every = joined(parts)
    fold = np.random.default_rng(0).permutation(first) % SPLITS
    ids = np.arange(first)
    return [(every.some(ids[fold != f]), every.some(ids[fold == f])) for f in range(SPLITS)]


def made(crossed: float, seed: int) -> tuple[Queries, Queries]:
    """Grades 0 to 4 by a sum of six of twenty columns and, times `crossed`, by products of pairs of others.

    A grade is the number of thresholds below the signal plus noise, of four fifths of its deviation; a query
    moves all of its documents' signals together.
    """
    rng = np.random.default_rng([seed, 5])
    n = (MADE_QUERIES + MADE_TEST) * MADE_SIZE
    qid = np.repeat(np.arange(MADE_QUERIES + MADE_TEST), MADE_SIZE)
    X = rng.normal(size=(n, MADE_COLUMNS)).astype(np.float32)
    straight = X[:, :6] @ np.array([1, -0.8, 0.6, 0.5, -0.4, 0.3])
    products = X[:, 6] * X[:, 7] - X[:, 8] * X[:, 9] + np.abs(X[:, 10])
    signal = straight + crossed * (products - products.mean()) + 0.5 * rng.normal(size=qid[-1] + 1)[qid]
    signal = signal / signal.std() + 0.8 * rng.normal(size=n)
    y = (signal[:, None] > [0.5, 1.0, 1.6, 2.2]).sum(axis=1).astype(float)
    every = Queries(X, y, qid)
    ids = np.arange(MADE_QUERIES + MADE_TEST)
    return every.some(ids[:MADE_QUERIES]), every.some(ids[MADE_QUERIES:])


SETS: dict[str, Callable[[Path], list[tuple[Queries, Queries]]]] = {
    "MQ2008": mq2008,
    "LightGBM's example": lightgbm_example,
    "made, linear": lambda data: [made(0.0, seed) for seed in range(DRAWS)],
    "made, with products of columns": lambda data: [made(3.0, seed) for seed in range(DRAWS)],
}

"""The UCI Bank Marketing set (bank-full): numeric features, and mortgage and loan as two targets."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chapter import present

from metarank.data.compressed import read_bytes

NUMERIC = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
TARGETS = ("housing", "loan")
LABELS = ("mortgage", "loan")
RATES = (0.05, 0.10, 0.20, 0.50, 0.80, 0.90, 0.95)
TEST_SHARE = 0.2


def load(data: Path) -> tuple[np.ndarray, np.ndarray, Path]:
    """X float64 (45211, 7), Y float64 (45211, 2), and the file."""
    path = present(data / "ltr" / "bank_marketing" / "bank-full.csv")
    rows = list(csv.DictReader(read_bytes(path).decode().splitlines()))
    X = np.array([[float(row[name]) for name in NUMERIC] for row in rows])
    Y = np.array([[float(row[name] == "yes") for name in TARGETS] for row in rows])
    return X, Y, path


@dataclass(frozen=True)
class Trial:
    """Training and held-out rows, both with the same rate of mortgages."""

    train: np.ndarray
    test: np.ndarray


def resample(Y: np.ndarray, rate: float, seed: int, number: int) -> Trial:
    """The held-out fifth is set aside first; then either part loses rows at random until the rate is met.

    No row is drawn twice, so none is on both sides, and as many as possible are kept.
    """
    rng = np.random.default_rng([seed, round(1000 * rate), number])
    rows = rng.permutation(len(Y))
    cut = round(TEST_SHARE * len(Y))
    return Trial(_at_rate(Y, rows[cut:], rate), _at_rate(Y, rows[:cut], rate))


def _at_rate(Y: np.ndarray, rows: np.ndarray, rate: float) -> np.ndarray:
    with_mortgage, without = rows[Y[rows, 0] == 1], rows[Y[rows, 0] == 0]
    size = min(len(with_mortgage) / rate, len(without) / (1 - rate))
    return np.concatenate([with_mortgage[: int(size * rate)], without[: int(size * (1 - rate))]])


Scaling = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / deviation, (test - mean) / deviation


def clipped(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = standardised(train, test)
    return np.clip(a, -3, 3), np.clip(b, -3, 3)


def winsorised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.quantile(train, [0.01, 0.99], axis=0)
    return standardised(np.clip(train, low, high), np.clip(test, low, high))


def signed_log(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return standardised(*(np.sign(X) * np.log1p(np.abs(X)) for X in (train, test)))


def quantiles(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ordered = np.sort(train, axis=0)

    def place(X: np.ndarray) -> np.ndarray:
        sides = [
            np.column_stack([np.searchsorted(o, x, side) for o, x in zip(ordered.T, X.T)])
            for side in ("left", "right")
        ]
        return (sides[0] + sides[1]) / (2 * len(train))

    return standardised(place(train), place(test))


SCALINGS: dict[str, Scaling] = {
    "standardised": standardised,
    "standardised, clipped at 3 deviations": clipped,
    "clipped at the 1st and 99th percentile, standardised": winsorised,
    "sign(x) log(1 + abs(x)), standardised": signed_log,
    "quantiles": quantiles,
}

"""Table 3 and Fig. 3: mortgage and loan of Bank Marketing, a linear model, mortgages resampled."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import metarank
from metarank.data.compressed import raw_bytes, read_bytes
from metarank.objectives import auc_gradients, per_label_auc

NUMERIC = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
TARGETS = ("housing", "loan")
COLUMNS = ("AUC mortgage", "AUC loan", "Diff AUC", "Min AUC")
LABEL, LOSS = "label aggregation", "loss aggregation"
OBJECTIVES = ("mortgage alone", "loan alone", LABEL, LOSS)
RATES = (0.05, 0.10, 0.20, 0.50, 0.80, 0.90, 0.95)
TRIALS = 25
CLIPPED, QUANTILES = "clipped", "quantiles"
TEST_SHARE = 0.2


def make(data: Path, folder: Path) -> dict[str, Any]:
    """All rows of bank-full.csv: X (45211, 7), Y (45211, 2)."""
    path = data / "ltr" / "bank_marketing" / "bank-full.csv.xz"
    rows = list(csv.DictReader(read_bytes(path).decode().splitlines()))
    X = np.array([[float(row[name]) for name in NUMERIC] for row in rows])
    Y = np.array([[float(row[name] == "yes") for name in TARGETS] for row in rows])
    np.savez(folder / "bank.npz", X=X, Y=Y)
    return {"checksum": hashlib.sha256(raw_bytes(path)).hexdigest(), "n": len(X)}


def resample(Y: np.ndarray, rate: float, seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows: the latter are set aside first; then either part loses rows at random until
    the rate is met. No row is drawn twice, and as many as possible are kept."""
    rng = np.random.default_rng([seed, round(1000 * rate), number])
    rows = rng.permutation(len(Y))
    cut = round(TEST_SHARE * len(Y))
    return _at_rate(Y, rows[cut:], rate), _at_rate(Y, rows[:cut], rate)


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


def quantiles(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ordered = np.sort(train, axis=0)

    def place(X: np.ndarray) -> np.ndarray:
        pairs = list(zip(ordered.T, X.T))
        below, upto = (
            np.column_stack([np.searchsorted(o, x, side) for o, x in pairs]) for side in ("left", "right")
        )
        return (below + upto) / (2 * len(train))

    return standardised(place(train), place(test))


SCALINGS: dict[str, Scaling] = {CLIPPED: clipped, QUANTILES: quantiles}
# A weighted sum of mean pairwise losses, each against one target.
Parts = list[tuple[float, np.ndarray]]


def parts_of(objective: str, Y: np.ndarray) -> Parts:
    """What is minimised: one label's loss, that of the labels' sum, or the mean of the labels' losses."""
    if objective == LABEL:
        return [(1.0, Y.sum(axis=1))]
    if objective == LOSS:
        return [(0.5, Y[:, 0]), (0.5, Y[:, 1])]
    return [(1.0, Y[:, OBJECTIVES.index(objective)])]


def fit_linear(X: np.ndarray, parts: Parts) -> np.ndarray:
    """Weights (d,) that minimise the logistic surrogate of 1 - AUC, costs |y - y'|; L-BFGS, to the end."""

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        found = [auc_gradients(X @ w, target, n_jobs=1)[:2] for _, target in parts]
        value = sum(weight * each[0] for (weight, _), each in zip(parts, found))
        return value, X.T @ sum(weight * each[1] for (weight, _), each in zip(parts, found))

    options = {"maxiter": 200, "gtol": 1e-5}
    return minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=options).x


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]
        self.trials = params.get("trials", TRIALS)

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(rates, trials, columns) of each objective; by quantiles "quantiles: OBJECTIVE"."""
        with np.load(folder / "bank.npz") as file:
            self.X, self.Y = file["X"], file["Y"]
        others = self.measured(QUANTILES)
        return {}, self.measured(CLIPPED) | {f"{QUANTILES}: {k}": v for k, v in others.items()}

    def measured(self, scaling: str) -> dict[str, np.ndarray]:
        """All objectives see the same rows."""
        out = {name: np.empty((len(RATES), self.trials, len(COLUMNS))) for name in OBJECTIVES}
        for r, rate in enumerate(RATES):
            for t in range(self.trials):
                rows, held_out = resample(self.Y, rate, self.seed, t)
                train, test = SCALINGS[scaling](self.X[rows], self.X[held_out])
                for name in OBJECTIVES:
                    w = fit_linear(train, parts_of(name, self.Y[rows]))
                    areas = per_label_auc(test @ w, self.Y[held_out])
                    out[name][r, t] = [*areas, abs(areas[0] - areas[1]), areas.min()]
        return out

"""What formulas say, without training: Fig. 2 and 6, Proposition 5.3, Corollary C.2."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import metarank
from metarank.objectives import (
    label_aggregated_scorer,
    loss_aggregated_scorer,
    non_dominated,
    uniform_cost_scorer,
)

SLOPES = (5.0, 20.0, 100.0, 1000.0)
SHARES = tuple(i / 20 for i in range(1, 20))
ETA = np.array([[0.6, 0.88], [0.5, 1.0], [0.0, 0.6], [0.12, 0.5]])
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256)
POINTS, DRAWS = 200, 10
# eta_k(x) keeps off 0 and 1, as Corollary C.2 asks.
LOW, HIGH = 0.1, 0.9


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        bayes = np.array([curve(slope, SHARES) for slope in SLOPES])
        return {"counterexample": counterexample()}, {"bayes": bayes, "growth": growth(self.seed)}


# --- Bayes-optimal scorers ------------------------------------------------------


def grid(n: int) -> np.ndarray:
    """Midpoints of n x n equal cells of [-1, 1]^2: its uniform distribution."""
    middle = (np.arange(n) + 0.5) / n * 2 - 1
    return np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)


def eta_of(x: np.ndarray, slope: float, shift: float) -> np.ndarray:
    """eta_1 = sigmoid(slope x_1), eta_2 = sigmoid(slope (x_2 - shift))."""
    return np.column_stack([expit(slope * x[:, 0]), expit(slope * (x[:, 1] - shift))])


def shift_of(x: np.ndarray, slope: float, share: float) -> float:
    """The shift with which eta_2 has the mean `share`."""
    return float(brentq(lambda b: expit(slope * (x[:, 1] - b)).mean() - share, -4, 4, xtol=1e-12))


def expected_auc(scores: np.ndarray, eta: np.ndarray) -> float:
    """P(s > s' | y = 1, y' = 0) + P(s = s' | ...) / 2, over points of equal mass."""
    # Scores that are equal but for rounding are ties.
    level = np.unique(np.round(scores, 12), return_inverse=True)[1]
    positive, negative = np.bincount(level, eta), np.bincount(level, 1 - eta)
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / (positive.sum() * negative.sum()))


def curve(slope: float, shares: tuple[float, ...], n: int = 300) -> np.ndarray:
    """(shares, 2, 2): AUC of both labels by the optimal scorers of label and of loss aggregation."""
    x, out = grid(n), np.empty((len(shares), 2, 2))
    for i, share in enumerate(shares):
        eta = eta_of(x, slope, shift_of(x, slope, share))
        both = label_aggregated_scorer(eta), loss_aggregated_scorer(eta, eta.mean(axis=0))
        out[i] = [[expected_auc(scores, column) for column in eta.T] for scores in both]
    return out


# --- Proposition 5.3: with uniform costs, the best by the sum of labels can be dominated ------------


def counterexample() -> list[dict[str, Any]]:
    """For uniform and difference costs: the best of all orders with ties, the formula's, its AUCs by label,
    and the orders that dominate it."""
    pairs, orders, rows = preferences(ETA), weak_orders(len(ETA)), []
    for cost, scorer in (("uniform", uniform_cost_scorer), ("difference", label_aggregated_scorer)):
        scores = scorer(ETA)
        best = max(auc(pairs[cost], order) for order in orders)
        mine = [auc(pairs[label], scores) for label in ("y1", "y2")]
        above = [
            named(order)
            for order in orders
            if not non_dominated([mine, [auc(pairs["y1"], order), auc(pairs["y2"], order)]], 1e-12)[0]
        ]
        optima = [named(order) for order in orders if auc(pairs[cost], order) > best - 1e-12]
        row = {"cost": cost, "best": optima, "formula": named(scores), "AUC": mine, "dominated by": above}
        rows.append(row | {"orders": len(orders)})
    return rows


def weak_orders(n: int) -> np.ndarray:
    """All orders of n rows with ties, as levels 0 to m - 1, each once: (75, 4) of four rows."""
    levels = product(range(n), repeat=n)
    return np.array([row for row in levels if set(row) == set(range(max(row) + 1))])


def auc(better: np.ndarray, scores: np.ndarray) -> float:
    """Population AUC: better[i, j] is the weight of row i being the better one of (i, j)."""
    right = (scores[:, None] > scores) + (scores[:, None] == scores) / 2
    return float((better * right).sum() / better.sum())


def preferences(eta: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of pairs for each label, and for the sum with uniform and with difference costs; labels are
    independent given x, rows have equal mass."""
    a, b = eta.T
    mass = np.column_stack([(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b])
    grades = np.array([0, 1, 1, 2])
    gap = np.maximum(grades[:, None] - grades, 0)
    return {
        "y1": np.outer(a, 1 - a),
        "y2": np.outer(b, 1 - b),
        "uniform": mass @ (gap > 0) @ mass.T,
        "difference": mass @ gap @ mass.T,
    }


def named(scores: np.ndarray) -> str:
    """ "0 > 1 = 2" for scores whose greatest is row 0's."""
    rows = [[str(i) for i in np.flatnonzero(scores == level)] for level in np.unique(scores)[::-1]]
    return " > ".join(" = ".join(row) for row in rows)


# --- Corollary C.2: with uniform costs, sum_k eta_k falls short of the best by O(1 / sqrt K) --------


def growth(seed: int) -> np.ndarray:
    """(draws, K) shortfalls."""
    gaps = np.empty((DRAWS, len(COUNTS)))
    for d, (c, n_labels) in product(range(DRAWS), enumerate(COUNTS)):
        eta = adverse(POINTS, n_labels, np.random.default_rng([seed, 6, 1, d, n_labels]))
        gaps[d, c] = shortfall(eta, label_aggregated_scorer(eta))
    return gaps


def shortfall(eta: np.ndarray, scores: np.ndarray) -> float:
    """What the scores' AUC falls short of the best order of each single pair, which no scorer can beat."""
    mass = sums(eta)
    won = mass @ (np.cumsum(mass, axis=1) - mass).T  # that the first row's sum is the greater one
    upper = scores[:, None] > scores
    right = np.where(upper, won, np.where(upper.T, won.T, (won + won.T) / 2))
    stake = np.triu(won + won.T, 1).sum()
    return float((np.triu(np.maximum(won, won.T), 1).sum() - np.triu(right, 1).sum()) / stake)


def sums(eta: np.ndarray) -> np.ndarray:
    """(n, K + 1): distribution of the sum of each row's labels, independent given x."""
    mass = np.zeros((len(eta), eta.shape[1] + 1))
    mass[:, 0] = 1
    for p in eta.T:
        mass[:, 1:] = mass[:, 1:] * (1 - p)[:, None] + mass[:, :-1] * p[:, None]
        mass[:, 0] *= 1 - p
    return mass


def adverse(n: int, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of eta within .05 of K / 2, distributions of opposite skewness: an order by the sum errs often.

    A share of a row's labels has eta = .9 and the others one lower value, or the reverse of both.
    """
    sure = rng.integers(0, int(0.45 * n_labels) + 1, n)[:, None]
    total = n_labels / 2 + rng.uniform(-0.05, 0.05, n)[:, None]
    eta = np.where(np.arange(n_labels) < sure, HIGH, (total - HIGH * sure) / (n_labels - sure))
    mirrored = rng.random(n) < 0.5
    return np.where(mirrored[:, None], 1 - eta, eta)

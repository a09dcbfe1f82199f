"""Proposition 5.3: with uniform costs the best ranking by the sum of labels can be dominated."""

from __future__ import annotations

from itertools import product

import numpy as np
from chapter import Chapter, Settings, table

from metarank.objectives import label_aggregated_scorer, non_dominated, uniform_cost_scorer

ETA = np.array([[0.6, 0.88], [0.5, 1.0], [0.0, 0.6], [0.12, 0.5]])
STATED = {"0 > 1 > 2 > 3": (0.7860, 0.7533), "1 > 0 > 3 > 2": (0.7919, 0.7599)}


def weak_orders(n: int) -> np.ndarray:
    """All orders of n rows with ties, as levels 0 to m - 1, each once: (75, 4) of four rows."""
    levels = np.array(list(product(range(n), repeat=n)))
    dense = [row for row in levels if set(row) == set(range(row.max() + 1))]
    return np.array(dense)


def auc(better: np.ndarray, scores: np.ndarray) -> float:
    """Population AUC: better[i, j] is the weight of row i being the better one of (i, j)."""
    right = (scores[:, None] > scores) + (scores[:, None] == scores) / 2
    return float((better * right).sum() / better.sum())


def preferences(eta: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of pairs for each label, and for the sum with uniform and with difference costs.

    Labels are independent given x; rows have equal mass.
    """
    grades = np.array([0, 1, 1, 2])
    none, first, second, both = _joint(eta)
    mass = np.column_stack([none, first, second, both])
    gap = np.maximum(grades[:, None] - grades, 0)
    return {
        "y1": np.outer(eta[:, 0], 1 - eta[:, 0]),
        "y2": np.outer(eta[:, 1], 1 - eta[:, 1]),
        "uniform": mass @ (gap > 0) @ mass.T,
        "difference": mass @ gap @ mass.T,
    }


def _joint(eta: np.ndarray) -> tuple[np.ndarray, ...]:
    a, b = eta.T
    return (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b


def named(scores: np.ndarray) -> str:
    """ "0 > 1 = 2" for scores whose greatest is row 0's."""
    rows = [[str(i) for i in np.flatnonzero(scores == level)] for level in np.unique(scores)[::-1]]
    return " > ".join(" = ".join(row) for row in rows)


def chapter(settings: Settings) -> Chapter:
    out = Chapter("A dominated optimum (Proposition 5.3)")
    pairs = preferences(ETA)
    orders = weak_orders(len(ETA))
    best = {cost: max(auc(pairs[cost], order) for order in orders) for cost in ("uniform", "difference")}
    optima = {
        cost: [order for order in orders if auc(pairs[cost], order) > best[cost] - 1e-12] for cost in best
    }
    rows = []
    for cost, scores in (
        ("uniform", uniform_cost_scorer(ETA)),
        ("difference", label_aggregated_scorer(ETA)),
    ):
        mine = [auc(pairs["y1"], scores), auc(pairs["y2"], scores)]
        above = [
            named(order)
            for order in orders
            if not non_dominated([mine, [auc(pairs["y1"], order), auc(pairs["y2"], order)]], 1e-12)[0]
        ]
        found = ", ".join(named(order) for order in optima[cost])
        areas = [f"{value:.4f}" for value in mine]
        rows.append([cost, found, named(scores), *areas, "; ".join(above) or "none"])
        reached = auc(pairs[cost], scores) > best[cost] - 1e-12
        out.claim(f"{cost} costs: the formula reaches the best of all {len(orders)} orders", reached)
        kind = "dominated" if cost == "uniform" else "not dominated"
        out.claim(f"{cost} costs: the optimum is {kind}", bool(above) == (cost == "uniform"))
    for name, stated in STATED.items():
        scores = np.empty(len(ETA))
        scores[[int(i) for i in name.split(" > ")]] = np.arange(len(ETA))[::-1]
        mine = (auc(pairs["y1"], scores), auc(pairs["y2"], scores))
        out.claim(f"{name}: AUCs {stated[0]:.4f} and {stated[1]:.4f}", np.allclose(mine, stated, atol=5e-5))
    out.text = (
        "Four rows of equal mass, labels independent given x, eta_1 = (.6, .5, 0, .12), eta_2 = (.88, 1, .6, "
        f".5). All {len(orders)} orders with ties are tried; the paper's own example has six rows, whose "
        "numbers its text has lost.\n\n"
        + table(["costs", "best of all orders", "the formula's", "AUC y1", "AUC y2", "dominated by"], rows)
    )
    return out

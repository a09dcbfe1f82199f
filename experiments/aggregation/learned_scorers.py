"""Do boosted trees that are trained on an objective come to rank by its Bayes-optimal formula?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from chapter import Chapter, Settings, table
from scipy.special import expit
from scipy.stats import spearmanr

from metarank import MultiObjectiveRanker
from metarank.objectives import (
    Aggregation,
    label_aggregated_scorer,
    loss_aggregated_scorer,
    product_scorer,
    uniform_cost_scorer,
)

_ROWS, _TEST = 200_000, 20_000
SLOPE, SHIFT = 3.0, 0.8
WEIGHTS = [1.0, 3.0]
TREES = {"num_leaves": 15, "min_data_in_leaf": 500}
PARAMETERS = {"metric": "auc", "n_rounds": 100, "params": TREES, "n_jobs": 1}
CASES: dict[str, tuple[dict, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "loss aggregation (5.2)": ({"aggregation": "loss"}, loss_aggregated_scorer),
    "loss aggregation, a = (1, 3)": (
        {"aggregation": "loss", "weights": WEIGHTS},
        lambda eta, pi: loss_aggregated_scorer(eta, pi, WEIGHTS),
    ),
    "sum, difference costs (5.4)": ({"aggregation": "label"}, lambda eta, pi: label_aggregated_scorer(eta)),
    "sum, w = (1, 3) (D.2)": (
        {"aggregation": "label", "weights": WEIGHTS},
        lambda eta, pi: label_aggregated_scorer(eta, WEIGHTS),
    ),
    "sum, uniform costs": (
        {"aggregation": Aggregation("label", cost="uniform")},
        lambda eta, pi: uniform_cost_scorer(eta),
    ),
    "product": ({"aggregation": "product"}, lambda eta, pi: product_scorer(eta)),
}


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x uniform on [-1, 1]^2, two labels independent given x, and their probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2)).astype(np.float32).astype(float)
    eta = expit(SLOPE * (x - [0.0, SHIFT]))
    return x, (rng.random((n, 2)) < eta).astype(float), eta


def chapter(settings: Settings) -> Chapter:
    X, Y, eta = draw(20_000 if settings.quick else _ROWS, settings.seed)
    X_test, _, eta_test = draw(_TEST, settings.seed + 1)
    pi = eta.mean(axis=0)
    formulas = {name: formula(eta_test, pi) for name, (_, formula) in CASES.items()}
    out = Chapter("Boosted trees against the Bayes-optimal formulas")
    rows = []
    for name, (parameters, _) in CASES.items():
        rounds = 20 if settings.quick else PARAMETERS["n_rounds"]
        ranker = MultiObjectiveRanker(model="lightgbm", **PARAMETERS | {"n_rounds": rounds} | parameters)
        scores = ranker.fit(X, Y).predict(X_test)
        found = {other: float(spearmanr(scores, values).statistic) for other, values in formulas.items()}
        out.claim(f"{name}: rank correlation {found[name]:.4f} above 0.98", found[name] > 0.98)
        rows.append([name, *(f"**{v:.4f}**" if other == name else f"{v:.4f}" for other, v in found.items())])
    out.text = (
        f"{len(X):,} rows, x uniform on [-1, 1]^2, eta_1 = sigmoid({SLOPE:g} x_1), eta_2 = sigmoid({SLOPE:g} "
        "(x_2 - "
        f"{SHIFT:g})), labels drawn independently given x, pi = ({pi[0]:.2f}, {pi[1]:.2f}). "
        f"`MultiObjectiveRanker`, {PARAMETERS['n_rounds']} rounds of {TREES['num_leaves']} leaves of at "
        "least "
        f"{TREES['min_data_in_leaf']} rows. Spearman's correlation of its scores on {_TEST:,} fresh "
        "points with "
        "each formula's:\n\n" + table(["trained on", *CASES], rows)
    )
    return out

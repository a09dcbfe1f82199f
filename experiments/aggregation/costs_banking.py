"""What the cost of pairs changes on the banking set: a linear model trained with each."""

from __future__ import annotations

import numpy as np
from bank_data import RATES, SCALINGS, load, resample
from banking import COLUMNS, figures
from chapter import Chapter, Settings, checksum, table, with_error
from pair_costs import FAMILIES
from scipy.optimize import minimize

from metarank.objectives import auc_gradients

_TRIALS = 10
# Chosen by single-label models, see banking.py.
SCALING = "standardised, clipped at 3 deviations"
_LEFT_OUT = ("difference capped at 2",)  # of three grades the difference itself


def fit(X: np.ndarray, target: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Weights (d,) that minimise the logistic surrogate over all pairs; L-BFGS, to the end."""
    rows = {grade: target == grade for grade in range(len(cost))}
    parts = [
        (cost[a, b] * rows[a].sum() * rows[b].sum(), rows[a] | rows[b])
        for a, b in zip(*np.nonzero(np.tril(cost, -1)))
        if rows[a].any() and rows[b].any()
    ]
    total = sum(share for share, _ in parts)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient, scores = 0.0, np.zeros(len(X)), X @ w
        for share, of in parts:  # any two grades are a binary label
            part, slope, _ = auc_gradients(scores[of], target[of], cost="uniform", n_jobs=1)
            value += share / total * part
            gradient[of] += share / total * slope
        return value, X.T @ gradient

    options = {"maxiter": 200, "gtol": 1e-5}
    return minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=options).x


def chapter(settings: Settings) -> Chapter:
    X, Y, path = load(settings.data)
    trials = 2 if settings.quick else min(_TRIALS, settings.trials)
    if settings.quick:
        X, Y = X[::20], Y[::20]
    names = [name for name in FAMILIES if name not in _LEFT_OUT]
    found = {name: np.empty((len(RATES), trials, len(COLUMNS))) for name in names}
    for r, rate in enumerate(RATES):
        for t in range(trials):
            rows = resample(Y, rate, settings.seed, t)
            train, test = SCALINGS[SCALING](X[rows.train], X[rows.test])
            target = Y[rows.train].sum(axis=1)
            shares = np.bincount(target.astype(int), minlength=3) / len(target)
            for name in names:
                matrix = FAMILIES[name][1](shares)
                found[name][r, t] = figures(test @ fit(train, target, matrix), Y[rows.test])
    out = Chapter("Costs of pairs on the banking set", inputs=[checksum(path)])
    base = found["difference"][:, :, 3].ravel()
    rows, gains = [], {}
    for name, values in found.items():
        flat = values.reshape(-1, len(COLUMNS))
        apart = flat[:, 3] - base
        gains[name] = apart
        told = "" if name == "difference" else with_error(apart, 4)
        rows.append([name, *(with_error(column) for column in flat.T), told])
    for name, apart in gains.items():
        if name != "difference":
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            out.claim(
                f"{name}: Min AUC above difference costs' beyond two standard errors",
                apart.mean() > 2 * error,
            )
    by_rate = [
        [f"{100 * rate:.0f} %", *(f"{found[name][r, :, 3].mean():.3f}" for name in names)]
        for r, rate in enumerate(RATES)
    ]
    out.text = (
        f"As Table 3 of the paper: the sum of mortgage and loan, {len(RATES)} rates of mortgages, {trials} "
        f"resamplings each, features {SCALING}. The last column is the paired gain in Min AUC over "
        "difference "
        "costs. Costs that hang on the shares of the grades take those of the training rows.\n\n"
        + table(["cost", *COLUMNS, "gain in Min"], rows)
        + "\n\nMin AUC by rate of mortgages:\n\n"
        + table(["mortgages", *names], by_rate)
    )
    return out

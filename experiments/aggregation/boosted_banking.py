"""Table 3 with boosted trees in the place of the linear model."""

from __future__ import annotations

import numpy as np
from bank_data import RATES, load, resample
from banking import COLUMNS, LABEL, LOSS, OBJECTIVES, figures, main_table, rate_table
from chapter import Chapter, Settings, checksum, with_error

from metarank import MultiObjectiveRanker

_TRIALS = 5
TREES = {"num_leaves": 15, "min_data_in_leaf": 50}
PARAMETERS = {"metric": "auc", "n_rounds": 50, "params": TREES, "n_jobs": 1}
_AGGREGATION = {LABEL: "label", LOSS: "loss"}


def scores_of(objective: str, X: np.ndarray, Y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Trained on one label, or on both by an aggregation with equal weights."""
    targets = Y if objective in _AGGREGATION else Y[:, [OBJECTIVES.index(objective)]]
    ranker = MultiObjectiveRanker(_AGGREGATION.get(objective, "label"), "lightgbm", **PARAMETERS)
    return ranker.fit(X, targets).predict(X_test)


def chapter(settings: Settings) -> Chapter:
    X, Y, path = load(settings.data)
    trials = 1 if settings.quick else min(_TRIALS, settings.trials)
    if settings.quick:
        X, Y = X[::10], Y[::10]
    found = {name: np.empty((len(RATES), trials, len(COLUMNS))) for name in OBJECTIVES}
    for r, rate in enumerate(RATES):
        for t in range(trials):
            rows = resample(Y, rate, settings.seed, t)
            for name in OBJECTIVES:
                scores = scores_of(name, X[rows.train], Y[rows.train], X[rows.test])
                found[name][r, t] = figures(scores, Y[rows.test])
    out = Chapter("Banking with boosted trees", inputs=[checksum(path)])
    apart = (found[LABEL] - found[LOSS])[:, :, 2:].reshape(-1, 2)
    for column, what, sign in zip(apart.T, ("Diff AUC is smaller", "Min AUC is greater"), (-1, 1)):
        error = column.std(ddof=1) / np.sqrt(len(column))
        out.claim(
            f"{what} for label aggregation, beyond two standard errors ({with_error(column, 4)} on the same "
            "rows)",
            sign * column.mean() > 2 * error,
        )
    for k, name in enumerate(OBJECTIVES[:2]):
        best = max(OBJECTIVES, key=lambda how: found[how][:, :, k].mean())
        out.claim(f"{COLUMNS[k]} is greatest where it alone is trained", best == name)
    out.text = (
        f'As above, with `MultiObjectiveRanker(model="lightgbm")`, {trials} resamplings a rate, the features '
        f"as they are, {PARAMETERS['n_rounds']} rounds of {TREES['num_leaves']} leaves of at least "
        f"{TREES['min_data_in_leaf']} rows, none of it tuned. The paper's rows are its linear "
        "model's.\n\n" + main_table(found) + "\n\n" + rate_table(found)
    )
    return out

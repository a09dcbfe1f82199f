"""Why loss aggregation is the more even one between 20 and 80 % of mortgages, and how sure that is."""

from __future__ import annotations

import numpy as np
from bank_data import RATES, clipped, load, resample
from banking import LABEL, LOSS, Parts, fit_linear, parts_of
from chapter import Chapter, Settings, checksum, table
from loan_row import TENTH
from scipy.stats import t as student

from metarank.objectives import per_label_auc

# Weight of the loan's eta relative to the mortgage's.
RATIOS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_TRIALS, _FEW, _DRAWS = 25, 3, 25


def weighted(Y: np.ndarray, ratio: float) -> Parts:
    """Loss aggregation whose optimum is ``eta_1 + ratio * eta_2``: weights pi (1 - pi) and ratio times "
    "that."""
    spread = Y.mean(axis=0) * (1 - Y.mean(axis=0))
    weights = spread * [1.0, ratio]
    return [(float(a), Y[:, k]) for k, a in enumerate(weights / weights.sum())]


def gaps(
    X: np.ndarray, Y: np.ndarray, rate: float, seed: int, number: int, how: list[Parts] | None = None
) -> np.ndarray:
    """(models, 2): AUCs of models trained by `how`, or of label and of loss aggregation."""
    rows = resample(Y, rate, seed, number)
    train, test = clipped(X[rows.train], X[rows.test])
    y = Y[rows.train]
    parts = [parts_of(name, y) for name in (LABEL, LOSS)] if how is None else [weighted(y, r) for r in RATIOS]
    return np.array([per_label_auc(test @ fit_linear(train, part), Y[rows.test]) for part in parts])


def even(areas: np.ndarray) -> float:
    """The ratio at which both AUCs are equal, by interpolation in its logarithm; the bound where it is "
    "beyond."""
    apart = areas[:, 0] - areas[:, 1]
    below = np.flatnonzero((apart[:-1] > 0) & (apart[1:] <= 0))
    if not len(below):
        return RATIOS[-1] if apart[-1] > 0 else RATIOS[0]
    i = int(below[0])
    share = apart[i] / (apart[i] - apart[i + 1])
    return float(np.exp((1 - share) * np.log(RATIOS[i]) + share * np.log(RATIOS[i + 1])))


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():+.4f} [{values.mean() - half:+.4f}, {values.mean() + half:+.4f}]"


def diff(areas: np.ndarray) -> np.ndarray:
    """Diff AUC of label less that of loss aggregation."""
    gap = np.abs(areas[..., 0] - areas[..., 1])
    return np.asarray(gap[..., 0] - gap[..., 1])


def chapter(settings: Settings) -> Chapter:
    X, Y, path = load(settings.data)
    trials, few, draws = (2, 1, 2) if settings.quick else (min(_TRIALS, settings.trials), _FEW, _DRAWS)
    if settings.quick:
        X, Y = X[::10], Y[::10]
    rows, agree, evens, whole, small = [], [], [], [], []
    for rate in RATES:
        both = np.array([gaps(X, Y, rate, settings.seed, t) for t in range(trials)])
        path_of = np.mean([gaps(X, Y, rate, settings.seed, t, [[]]) for t in range(few)], axis=0)
        tenths = []
        for d in range(draws):
            some = np.random.default_rng([settings.seed, 26, d]).permutation(len(X))[:TENTH]
            tenths.append(gaps(X[some], Y[some], rate, settings.seed, d))
        at = resample(Y, rate, settings.seed, 0).train
        pi = Y[at].mean(axis=0)
        by_loss = pi[0] * (1 - pi[0]) / (pi[1] * (1 - pi[1]))
        balanced = even(path_of)
        evens.append(balanced)
        nearer = "label" if abs(np.log(balanced)) < abs(np.log(balanced / by_loss)) else "loss"
        measured = diff(both)
        agree.append((measured.mean() < 0) == (nearer == "label"))
        whole.append(measured)
        small.append(diff(np.array(tenths)))
        rows.append([
            f"{100 * rate:.0f} %", f"{by_loss:.2f}", f"{balanced:.2f}", nearer,
            interval(measured), interval(small[-1]),
        ])  # fmt: skip
    out = Chapter("Why the order turns between 20 and 80 %", inputs=[checksum(path)])
    out.claim(
        "the aggregation whose weight of the loan is nearer to the even one has the smaller Diff AUC "
        f"({sum(agree)} of "
        f"{len(agree)} rates)",
        all(agree),
    )
    out.claim(
        f"the loan has to count more than once for even AUCs at all rates (least: {min(evens):.2f})",
        min(evens) > 1,
    )
    every, tenth = np.concatenate(whole), np.concatenate(small)
    extreme = np.concatenate([whole[i] for i in (0, 1, -2, -1)])
    middle = np.concatenate(whole[2:5])
    for what, values, sign in (
        ("over all rates label aggregation is the more even one", every, -1),
        ("at 5, 10, 90 and 95 % too", extreme, -1),
        ("from 20 to 80 % loss aggregation is", middle, 1),
    ):
        error = values.std(ddof=1) / np.sqrt(len(values))
        out.claim(f"{what}, beyond two standard errors: {interval(values)}", sign * values.mean() > 2 * error)
    out.text = (
        "With equal weights loss aggregation ranks by eta_1 / v_1 + eta_2 / v_2, v = pi (1 - pi) "
        "(Proposition "
        "5.2): the "
        "loan counts v_1 / v_2 times as much as the mortgage. With label aggregation it counts once "
        "(Proposition "
        "5.4). "
        "The loan's share is .16 whatever the rate of mortgages, so v_1 / v_2 is above 1 from 16 to 84 % of "
        "mortgages and below "
        "outside. The loan is the harder label at all rates, and has to count more than once for even AUCs: "
        "*even* is the weight with which both "
        f"are equal, by models trained with {len(RATIOS)} weights, {few} resamplings a rate. So whoever "
        "gives "
        "the "
        "loan more weight is the more even one: loss aggregation in the middle, label aggregation at the "
        "ends. "
        "Label less loss: Diff AUC of either on the same rows, mean and "
        f"95 % interval of {trials} resamplings of the whole file, and of {draws} random draws of "
        f"{TENTH:,} of "
        "its rows.\n\n"
        + table(
            ["mortgages", "loan's weight, loss", "even", "nearer", "label less loss, whole file", "a tenth"],
            rows,
        )
        + f"\n\nOver all rates: {interval(every)} on the whole file, {interval(tenth)} on tenths. What "
        "Table 3 "
        "shows is an average over rates in which the ends outnumber the middle, four to three."
    )
    return out

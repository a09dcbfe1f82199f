"""Figures 2 and 6: the Bayes-optimal scorers of two labels, one of which grows more skewed."""

from __future__ import annotations

import numpy as np
from chapter import Chapter, Settings, table
from panels import lines, side_by_side
from scipy.optimize import brentq
from scipy.special import expit

from metarank.objectives import label_aggregated_scorer, loss_aggregated_scorer

SLOPES = (5.0, 20.0, 100.0, 1000.0)
SHARES = tuple(i / 20 for i in range(1, 20))
_GRID = 300
LABEL, LOSS = "label aggregation", "loss aggregation"
# Shares from here on are called skewed.
_SKEWED = 0.3


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


def curve(slope: float, shares: tuple[float, ...], n: int) -> list[dict[str, float]]:
    """One record a share of the second label: its shift, and both AUCs of both scorers."""
    x = grid(n)
    out = []
    for share in shares:
        shift = shift_of(x, slope, share)
        eta = eta_of(x, slope, shift)
        record = {"share": share, "shift": shift}
        for name, scores in (
            (LABEL, label_aggregated_scorer(eta)),
            (LOSS, loss_aggregated_scorer(eta, eta.mean(axis=0))),
        ):
            areas = [expected_auc(scores, column) for column in eta.T]
            record |= {f"{name} {k + 1}": area for k, area in enumerate(areas)}
            record[f"{name} diff"] = abs(areas[0] - areas[1])
            record[f"{name} min"] = min(areas)
        out.append(record)
    return out


def chapter(settings: Settings) -> Chapter:
    n, shares = (60, SHARES[::3]) if settings.quick else (_GRID, SHARES)
    curves = {slope: curve(slope, shares, n) for slope in SLOPES}
    out = Chapter("Bayes-optimal scorers on synthetic data (Figures 2 and 6)")
    out.figures = {"bayes_diff.svg": _diff_figure(curves), "bayes_auc.svg": _auc_figure(curves)}
    for slope, records in curves.items():
        wider = [r[f"{LOSS} diff"] >= r[f"{LABEL} diff"] - 1e-9 for r in records]
        out.claim(
            f"slope {slope:g}: Diff AUC of loss aggregation at least that of label aggregation for most "
            "shares "
            f"({sum(wider)} of {len(wider)})",
            sum(wider) > len(wider) / 2,
        )
    skewed = [
        np.mean([r[f"{LOSS} diff"] for r in records if min(r["share"], 1 - r["share"]) < _SKEWED])
        for records in curves.values()
    ]
    told = ", ".join(f"{value:.3f}" for value in skewed)
    out.claim(
        "the nearer to deterministic, the greater loss aggregation's Diff AUC (mean over shares below "
        f"{_SKEWED:g} "
        f"or above {1 - _SKEWED:g}, by slope: {told})",
        all(np.diff(skewed) > 0),
    )
    even = [r for records in curves.values() for r in records if r["share"] == 0.5]
    if even:
        out.claim(
            "both labels balanced: the two scorers have the same AUCs",
            all(abs(r[f"{LOSS} diff"] - r[f"{LABEL} diff"]) < 1e-6 for r in even),
        )
    rows = [
        [f"{slope:g}", f"{r['share']:g}", f"{r['shift']:.3f}"]
        + [f"{r[f'{how} {what}']:.3f}" for what in ("1", "2", "diff") for how in (LABEL, LOSS)]
        for slope, records in curves.items()
        for r in records
    ]
    out.text = (
        "x is uniform on [-1, 1]^2 (midpoints of a "
        f"{n} x {n} grid), eta_1(x) = sigmoid(a x_1) with pi_1 = 1/2, eta_2(x) = sigmoid(a (x_2 - b)). The "
        "paper's "
        f"slopes and shifts are lost: here a is {', '.join(f'{s:g}' for s in SLOPES)}, and b follows from "
        "pi_2 (see the table). AUCs are expectations, no labels are drawn. For deterministic and independent "
        "labels "
        "the two gaps are |1/8 - p(1 - p)/2| and p(1 - p) at pi_2 = p: loss aggregation's is the greater one "
        "for p "
        "between .092 and .908. Where labels are noisy it is the other way round: dividing by pi_2(1 - pi_2) "
        "then "
        "makes up for how little a rare label's eta varies, and evens the AUCs out.\n\n"
        "![Figure 2](bayes_diff.svg)\n\n![Figure 6](bayes_auc.svg)\n\n"
        "<details><summary>All figures, with the shifts</summary>\n\n"
        + table(
            ["a", "pi_2", "b"]
            + [f"{what}, {how.split()[0]}" for what in ("AUC 1", "AUC 2", "Diff") for how in (LABEL, LOSS)],
            rows,
        )
        + "\n\n</details>"
    )
    return out


def _diff_figure(curves: dict[float, list[dict[str, float]]]) -> str:
    panels = []
    for slope, records in curves.items():
        shares = [r["share"] for r in records]
        series = {how: [r[f"{how} diff"] for r in records] for how in (LABEL, LOSS)}
        panels.append(lines(f"slope {slope:g}", "pi_2", "Diff AUC", shares, series))
    return side_by_side(panels, 2)


def _auc_figure(curves: dict[float, list[dict[str, float]]]) -> str:
    panels = []
    for slope, records in curves.items():
        shares = [r["share"] for r in records]
        series = {
            f"y{k}, {how.split()[0]}": [r[f"{how} {k}"] for r in records]
            for k in (1, 2)
            for how in (LABEL, LOSS)
        }
        panels.append(lines(f"slope {slope:g}", "pi_2", "AUC", shares, series))
    return side_by_side(panels, 2)

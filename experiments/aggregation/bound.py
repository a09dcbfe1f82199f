"""Theorem C.1, made explicit: what the order by sum_k eta_k may fall short of the optimum, uniform costs."""

from __future__ import annotations

import numpy as np
from chapter import Chapter, Settings, table, with_error
from growth import COUNTS, KINDS, shortfall
from panels import STYLE, lines, side_by_side
from scipy.special import ive

from metarank.objectives import label_aggregated_scorer

# Of Berry and Esseen's inequality for summands of different distributions (Shevtsova, 2010).
CONSTANT = 0.56
_POINTS, _DRAWS, _RANDOM = 200, 10, 3000
_KEEPS_OFF = 0.1  # eta of both kinds of growth.py is in [.1, .9]


def pairs(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair of different points: variance of the difference of their sums, and summed third moments.

    A label with eta = p adds p (1 - p) to the one and p (1 - p) (p^2 + (1 - p)^2) to the other.
    """
    spread = eta * (1 - eta)
    third = (spread * (eta**2 + (1 - eta) ** 2)).sum(axis=1)
    variance = spread.sum(axis=1)
    i, j = np.triu_indices(len(eta), 1)
    return variance[i] + variance[j], third[i] + third[j]


def bound(eta: np.ndarray) -> float:
    """At most how much AUC the scorer sum_k eta_k loses against any other: points of equal mass.

    Berry and Esseen bring the sums' difference D within e = .56 sum rho / V^1.5 of a normal distribution, by
    which the point of the greater sum of eta wins at least half of the time; so a pair in the wrong order
    loses at most 2 e. P(D = 0) <= exp(-V) I_0(V), the integral of the bound exp(-V (1 - cos t)) of D's
    characteristic function, so the pairs at stake are at least 1 - E exp(-V) I_0(V).
    """
    variance, third = pairs(eta)
    return float(2 * CONSTANT * (third / variance**1.5).mean() / (1 - ive(0, variance).mean()))


def rate_bound(n_labels: int, keeps_off: float) -> float:
    """Corollary C.2 with its constant: the greatest `bound` where every eta is in [d, 1 - d]."""
    least = 2 * n_labels * keeps_off * (1 - keeps_off)
    return float(2 * CONSTANT * (1 - 2 * keeps_off * (1 - keeps_off)) / np.sqrt(least) / (1 - ive(0, least)))


def random_eta(rng: np.random.Generator) -> np.ndarray:
    """Points and labels of any number, eta of Beta distributions from two-valued to narrow."""
    n, n_labels = rng.integers(2, 30), rng.integers(1, 100)
    a, b = np.exp(rng.uniform(-2, 3, 2))
    eta = np.clip(rng.beta(a, b, (n, n_labels)), 1e-6, 1 - 1e-6)
    if rng.random() < 0.5:  # sums that are all but equal, where an order by the sum may err
        eta = np.clip(eta + (eta.sum(axis=1).mean() - eta.sum(axis=1))[:, None] / n_labels, 1e-6, 1 - 1e-6)
    return eta


def chapter(settings: Settings) -> Chapter:
    n, draws, n_random = (40, 2, 100) if settings.quick else (_POINTS, _DRAWS, _RANDOM)
    out = Chapter("The explicit bound of Theorem C.1")
    found = []
    for d in range(n_random):
        eta = random_eta(np.random.default_rng([settings.seed, 21, d]))
        found.append((shortfall(eta, label_aggregated_scorer(eta)), bound(eta)))
    lost, most = np.array(found).T
    telling = most < 0.5
    out.claim(
        f"the bound holds for all of {n_random:,} random distributions of 2 to 29 points and 1 to 99 labels",
        (lost <= most + 1e-12).all(),
    )
    table_rows = []
    means: dict[str, list[float]] = {}
    holds = True
    for kind, make in KINDS.items():
        gaps, bounds = np.empty((draws, len(COUNTS))), np.empty((draws, len(COUNTS)))
        for d in range(draws):
            for c, n_labels in enumerate(COUNTS):
                eta = make(n, n_labels, np.random.default_rng([settings.seed, 22, d, n_labels]))
                gaps[d, c], bounds[d, c] = shortfall(eta, label_aggregated_scorer(eta)), bound(eta)
        holds &= bool((gaps <= bounds).all())
        means[f"{kind}: shortfall"], means[f"{kind}: bound"] = (
            v.mean(axis=0).tolist() for v in (gaps, bounds)
        )
        for c, n_labels in enumerate(COUNTS):
            gap, top = gaps[:, c], bounds[:, c].mean()
            loose = f"{top / gap.mean():,.0f}" if gap.mean() > 1e-9 else "-"
            cells = [
                with_error(1e4 * gap, 3),
                f"{1e4 * top:.0f}",
                loose,
                f"{1e4 * rate_bound(n_labels, _KEEPS_OFF):.0f}",
            ]
            table_rows.append([kind, str(n_labels), *cells])
    out.claim("it holds for the distributions of Corollary C.2's chapter", holds)
    slope = np.polyfit(np.log(COUNTS[3:]), np.log(means["adverse: bound"][3:]), 1)[0]
    out.claim(
        f"adverse: the bound falls at the rate of Corollary C.2, as K^{slope:.2f}", -0.6 <= slope <= -0.4
    )
    shown = {name: np.log10(np.maximum(values[1:], 1e-8)).tolist() for name, values in means.items()}
    out.figures = {"bound.svg": _figure(shown)}
    out.text = (
        "Uniform costs, labels independent given x, sums S of the labels, pairs of different points of "
        "equal mass. With V = sum_k eta_k (1 - eta_k) + "
        "eta'_k (1 - "
        "eta'_k) the variance of S - S' at points x, x' and R = sum_k rho_k + rho'_k, rho = eta (1 - eta) "
        "(eta^2 + (1 - "
        "eta)^2), its third absolute moments:\n\n"
        "> max AUC - AUC(sum_k eta_k) <= 2 C E[R / V^1.5] / P(S != S'), and P(S != S') >= 1 - E[exp(-V) "
        "I_0(V)]\n\n"
        f"with C = {CONSTANT:g}, the constant of Berry and Esseen's inequality for summands of different "
        "distributions "
        "(Shevtsova, 2010). The steps are those of the paper's proof (a normal distribution in the place "
        "of S - S', "
        "the "
        "inequality, a bound of P(S = S') by the characteristic function); the paper's formulas and its "
        "constant are "
        "lost in the text at hand, so the constants are those of this derivation. Where all eta are in [d, "
        "1 - "
        "d], it is at most 2 C (1 - 2 d (1 - d)) / sqrt(v) / (1 - exp(-v) I_0(v)) with v = 2 K d (1 - d): "
        "Corollary "
        "C.2 "
        "with its constant.\n\n"
        f"Of {n_random:,} random distributions, {telling.sum():,} have a bound below .5, which says "
        "anything; in these "
        f"the shortfall is {1e4 * lost[telling].mean():.2f}e-4 on average and "
        f"{1e4 * lost[telling].max():.0f}e-4 at most, "
        f"the bound {1e4 * most[telling].mean():.0f}e-4, and the least ratio of bound to shortfall is "
        f"{(most[telling] / np.maximum(lost[telling], 1e-300)).min():.0f}.\n\n"
        f"The distributions of Corollary C.2's chapter ({n} points, {draws} draws, eta in [{_KEEPS_OFF:g}, "
        f"{1 - _KEEPS_OFF:g}]); all but the ratio times 10^4:\n\n"
        + table(
            ["eta", "K", "shortfall", "bound", "bound / shortfall", "Corollary C.2, explicit"], table_rows
        )
        + "\n\n![Bound and shortfall](bound.svg)"
    )
    return out


def _figure(series: dict[str, list[float]]) -> str:
    panels = []
    for kind in KINDS:
        shown = {name.split(": ")[1]: values for name, values in series.items() if name.startswith(kind)}
        shown["Corollary C.2"] = [float(np.log10(rate_bound(k, _KEEPS_OFF))) for k in COUNTS[1:]]
        panels.append(lines(
            f"{kind}: shortfall of sum_k eta_k and its bounds", "K (log scale)", "log10",
            np.log2(COUNTS[1:]).tolist(), shown,
            x_ticks=np.log2(COUNTS[1:]).tolist(), show_x=lambda v: f"{2**v:g}",
        ))  # fmt: skip
    return side_by_side(panels, 2, STYLE)

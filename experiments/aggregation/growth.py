"""Corollary C.2: with uniform costs, the sum of eta_k falls short of the optimum by O(1 / sqrt K) at most."""

from __future__ import annotations

import numpy as np
from chapter import Chapter, Settings, table, with_error
from panels import lines, side_by_side

from metarank.objectives import label_aggregated_scorer, uniform_cost_scorer

COUNTS = (2, 4, 8, 16, 32, 64, 128, 256)
_POINTS, _DRAWS = 200, 10
# eta_k(x) keeps off 0 and 1, as the corollary asks.
_LOW, _HIGH = 0.1, 0.9


def sums(eta: np.ndarray) -> np.ndarray:
    """(n, K + 1): distribution of the sum of each row's labels, independent given x."""
    n, n_labels = eta.shape
    mass = np.zeros((n, n_labels + 1))
    mass[:, 0] = 1
    for p in eta.T:
        mass[:, 1:] = mass[:, 1:] * (1 - p)[:, None] + mass[:, :-1] * p[:, None]
        mass[:, 0] *= 1 - p
    return mass


def greater(mass: np.ndarray) -> np.ndarray:
    """(n, n): probability that the first row's sum is the greater one."""
    below = np.cumsum(mass, axis=1) - mass
    return mass @ below.T


def shortfall(eta: np.ndarray, scores: np.ndarray) -> float:
    """What the scores' AUC falls short of the best order of each single pair, which no scorer can beat."""
    won = greater(sums(eta))
    stake = np.triu(won + won.T, 1).sum()
    right = np.where(
        scores[:, None] > scores, won, np.where(scores[:, None] < scores, won.T, (won + won.T) / 2)
    )
    return float((np.triu(np.maximum(won, won.T), 1).sum() - np.triu(right, 1).sum()) / stake)


def scattered(n: int, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """eta_k(x) uniform in [.1, .9]."""
    return rng.uniform(_LOW, _HIGH, (n, n_labels))


def adverse(n: int, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of eta within .05 of K / 2, distributions of opposite skewness: an order by the sum errs often.

    A share of a row's labels has eta = .9 and the others one lower value, or the reverse of both.
    """
    sure = rng.integers(0, int(0.45 * n_labels) + 1, n)[:, None]
    total = n_labels / 2 + rng.uniform(-0.05, 0.05, n)[:, None]
    eta = np.where(np.arange(n_labels) < sure, _HIGH, (total - _HIGH * sure) / (n_labels - sure))
    mirrored = rng.random(n) < 0.5
    return np.where(mirrored[:, None], 1 - eta, eta)


KINDS = {"scattered": scattered, "adverse": adverse}


def chapter(settings: Settings) -> Chapter:
    n, draws = (40, 3) if settings.quick else (_POINTS, _DRAWS)
    gaps = {kind: np.empty((draws, len(COUNTS))) for kind in KINDS}
    closed_form = []
    for i, (kind, make) in enumerate(KINDS.items()):
        for d in range(draws):
            for c, n_labels in enumerate(COUNTS):
                eta = make(n, n_labels, np.random.default_rng([settings.seed, 6, i, d, n_labels]))
                gaps[kind][d, c] = shortfall(eta, label_aggregated_scorer(eta))
                if n_labels == 2:
                    closed_form.append(shortfall(eta, uniform_cost_scorer(eta)))
    mean = {kind: values.mean(axis=0) for kind, values in gaps.items()}
    out = Chapter("Many labels, uniform costs (Corollary C.2)")
    for kind, values in mean.items():
        scaled = values * np.sqrt(COUNTS)
        out.claim(
            f"{kind}: sqrt K times the shortfall is bounded: from K = 8 on at most "
            f"{1e4 * scaled[2:].max():.2f}e-4, "
            f"{1e4 * scaled[-1]:.2f}e-4 at K = {COUNTS[-1]}",
            scaled[-1] <= scaled[2:].max() and scaled[2:].max() <= 2 * scaled[2],
        )
    late = np.polyfit(np.log(COUNTS[3:]), np.log(mean["adverse"][3:]), 1)[0]
    out.claim(
        f"adverse: the rate is attained, the shortfall falls as K^{late:.2f} from K = 16 on",
        -0.6 <= late <= -0.4,
    )
    out.claim("K = 2: the closed form attains the bound", max(closed_form) < 1e-12)
    # K = 2 is left out: what is exactly zero has no logarithm.
    shown = {kind: np.log10(np.maximum(values[1:], 1e-12)).tolist() for kind, values in mean.items()}
    shown["K^-1/2"] = np.log10(mean["adverse"][2] * np.sqrt(COUNTS[2] / np.array(COUNTS[1:]))).tolist()
    out.figures = {"growth.svg": _figure(shown)}
    rows = [
        [str(k)] + [with_error(1e4 * gaps[kind][:, c] * f, 3) for kind in KINDS for f in (1, np.sqrt(k))]
        for c, k in enumerate(COUNTS)
    ]
    out.text = (
        f"{n} points of equal mass, labels independent given x, {draws} draws. *Scattered*: eta_k(x) uniform "
        "in "
        f"[{_LOW:g}, {_HIGH:g}]. *Adverse*: the sums of eta differ by at most .1 between points, but the "
        "sums of "
        "labels have opposite skewness. The AUC of the sum of labels with uniform costs, of the scorer sum_k "
        "eta_k, "
        "against a bound that no scorer can beat: every pair of points in its own better order. The "
        "distributions of "
        "sums are exact; all figures are times 10^4.\n\n"
        + table(
            ["K", *(f"{kind}{times}" for kind in KINDS for times in (": shortfall", ", times sqrt K"))], rows
        )
        + "\n\n![Shortfall](growth.svg)"
    )
    return out


def _figure(series: dict[str, list[float]]) -> str:
    panel = lines(
        "Shortfall of sum_k eta_k: at most O(1 / sqrt K)",
        "K",
        "log10 of the shortfall",
        COUNTS[1:],
        series,
        x_base=2,
    )
    return side_by_side([panel], 1)

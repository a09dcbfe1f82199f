"""Costs beyond difference and uniform: which keep condition (2), regrets, and what they do to AUCs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from bayes_curves import eta_of, expected_auc, grid, shift_of
from chapter import Chapter, Settings, table
from growth import sums

_POINTS, _DRAWS = 6, 300
_GRADES = (3, 4, 6)
_SLOPES, _SHARES = (5.0, 20.0), (0.05, 0.1, 0.3)
_GRID = 150

# Of the shares of the grades: a cost of each pair of them.
Family = Callable[[np.ndarray], np.ndarray]


def scale_costs(scale: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """``(s_y - s_y') w_y w_y'`` of grades y > y': the costs of condition (2)."""
    w = np.ones(len(scale)) if weights is None else weights
    return np.tril((scale[:, None] - scale) * np.outer(w, w), -1)


def pair_cost_scorer(shares: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """B / (B + T), the optimal order for costs that keep condition (2); ValueError for others (Lemma 2.4)."""
    costs = np.tril(cost, -1)
    least, most = costs[:, 0], costs[-1]
    by_scale = (np.outer(least, most) - np.outer(most, least)) / costs[-1, 0]
    if (np.abs(np.tril(by_scale - costs, -1)) > 1e-9 * costs.max()).any():
        raise ValueError("cost must keep condition (2): there is no closed form")
    below, above = shares @ least, shares @ most
    total = below + above
    return np.where(total > 0, below / np.where(total > 0, total, 1.0), 0.5)


def power(p: float) -> Family:
    return lambda shares: np.abs(np.subtract.outer(*[np.arange(float(len(shares)))] * 2)) ** p


def capped(most: float) -> Family:
    return lambda shares: np.minimum(power(1)(shares), most)


def grades(shares: np.ndarray) -> np.ndarray:
    return np.arange(float(len(shares)))


def mid_ranks(shares: np.ndarray) -> np.ndarray:
    """The share of rows below a grade, and half of those of it."""
    return np.cumsum(shares) - shares / 2


FAMILIES: dict[str, tuple[str, Family]] = {
    "difference": ("y - y'", power(1)),
    "uniform": ("1", lambda shares: np.ones((len(shares), len(shares)))),
    "squares of grades": ("y^2 - y'^2", lambda shares: scale_costs(grades(shares) ** 2)),
    "gains": ("2^y - 2^y'", lambda shares: scale_costs(2 ** grades(shares))),
    "ranks": ("share of rows between", lambda shares: scale_costs(mid_ranks(shares))),
    "product": ("(y - y') (y + 1) (y' + 1)", lambda shares: scale_costs(grades(shares), grades(shares) + 1)),
    "inverse shares": ("(y - y') / (n_y n_y')", lambda shares: scale_costs(grades(shares), 1 / shares)),
    "root of the difference": ("(y - y')^1/2", power(0.5)),
    "squared difference": ("(y - y')^2", power(2)),
    "difference capped at 2": ("min(y - y', 2)", capped(2)),
}


def regrets(shares: np.ndarray, cost: np.ndarray, scorers: list[np.ndarray]) -> list[float]:
    """What each scorer's expected AUC falls short of the best of all orders of the points."""
    n = len(shares)
    won = shares @ np.tril(cost, -1) @ shares.T
    orders = np.array(list(permutations(range(n))), float)
    above = orders[:, :, None] > orders[:, None, :]
    best = (above * won).sum(axis=(1, 2)).max()
    value = [(won * ((s[:, None] > s) + (s[:, None] == s) / 2)).sum() for s in scorers]
    off_diagonal = np.trace(won) / 2  # a point beside itself: one half for any order
    return [max(0.0, float((best + off_diagonal - v) / won.sum())) for v in value]


def closed_form(shares: np.ndarray, cost: np.ndarray) -> np.ndarray | None:
    try:
        return pair_cost_scorer(shares, cost)
    except ValueError:
        return None


def by_ends(shares: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """B / (B + T), the closed form where there is one, of any costs."""
    below, above = shares @ cost[:, 0], shares @ cost[-1]
    return np.asarray(below / (below + above))


def draw(n_labels: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Distributions of the sum of labels at each point, of any joint distribution, and its shares."""
    joint = rng.dirichlet(np.full(2**n_labels, 0.5), _POINTS)
    number = np.array([bin(i).count("1") for i in range(2**n_labels)])
    of_sum = np.column_stack([joint[:, number == g].sum(axis=1) for g in range(n_labels + 1)])
    return of_sum, of_sum.mean(axis=0)


def theory(draws: int, seed: int) -> tuple[list[list[str]], list[tuple[str, bool]]]:
    rows, claims = [], []
    for name, (told, family) in FAMILIES.items():
        row, zero = [name, told], True
        for n_grades in _GRADES:
            found = []
            for d in range(draws):
                shares, of_grades = draw(n_grades - 1, np.random.default_rng([seed, 20, n_grades, d]))
                cost = family(of_grades)
                own, expected = closed_form(shares, cost), shares @ np.arange(n_grades)
                other = by_ends(shares, np.tril(cost, -1)) if own is None else own
                found.append(regrets(shares, cost, [other, expected]))
            values = 1e4 * np.array(found)
            has_form = own is not None
            zero &= not has_form or values[:, 0].max() < 1e-6
            told_form = "yes" if has_form else f"no: {values[:, 0].mean():.2f} ({values[:, 0].max():.0f})"
            row += [told_form, f"{values[:, 1].mean():.2f} ({values[:, 1].max():.0f})"]
        rows.append(row)
        if row[2] == "yes":
            which = [str(g) for g, kept in zip(_GRADES, row[2::2]) if kept == "yes"]
            claims.append(
                (f"{name}, {', '.join(which)} grades: the closed form is the best of all orders", bool(zero))
            )
    return rows, claims


def synthetic(n: int) -> list[list[str]]:
    """AUC of either label, Diff and Min of the Bayes-optimal scorers of each cost, two labels."""
    rows = []
    x = grid(n)
    for slope in _SLOPES:
        for share in _SHARES:
            eta = eta_of(x, slope, shift_of(x, slope, share))
            shares = sums(eta)
            for name, (_, family) in FAMILIES.items():
                if name == "difference capped at 2":  # of three grades the difference itself
                    continue
                scores = pair_cost_scorer(shares, family(shares.mean(axis=0)))
                areas = [expected_auc(scores, column) for column in eta.T]
                figures = (*areas, abs(areas[0] - areas[1]), min(areas))
                rows.append([f"{slope:g}", f"{share:g}", name, *(f"{v:.3f}" for v in figures)])
    return rows


def chapter(settings: Settings) -> Chapter:
    draws, n = (5, 40) if settings.quick else (_DRAWS, _GRID)
    rows, claims = theory(draws, settings.seed)
    out = Chapter("Costs of pairs: condition (2), regret, synthetic data", claims=claims)
    made = synthetic(n)
    cases = [[f"{a:g}", f"{b:g}"] for a in _SLOPES for b in _SHARES]
    names = list(dict.fromkeys(row[2] for row in made))
    least = [
        [name, *(next(r[-1] for r in made if r[:3] == [*case, name]) for case in cases)] for name in names
    ]
    of = {row[0]: np.array(row[1:], float) for row in least}
    gains = {name: of[name] - of["difference"] for name in names}
    best = max(gains, key=lambda name: gains[name].mean())
    out.claim(
        f"synthetic data: {best}, the cost of the greatest mean of Min AUC, is above difference costs in all "
        f"{len(cases)} cases (by {gains[best].min():.3f} to {gains[best].max():.3f})",
        gains[best].min() > 0,
    )
    head = ["cost", "of grades y > y'"]
    head += [f"{what}, {g} grades" for g in _GRADES for what in ("(2)", "by the expected sum")]
    out.text = (
        "Condition (2) of the paper, from Uematsu and Lee (2015), asks that c(y, y') = (s_y - s_y') w_y "
        "w_y'; the "
        "formulas are lost in the text at hand, and this is the form that the proof of Lemma 2.4 uses. "
        "Then x belongs "
        "above x' where sum_y w_y s_y P(y | x) / sum_y w_y P(y | x) is greater: these are difference costs "
        "of grades "
        "s_y, over rows weighted by w_y. The condition says that the antisymmetric matrix of costs has "
        "rank 2, so it "
        "can be read off its first and last rows: with m the greatest grade, c(m, 0) c(y, y') = c(y, 0) "
        "c(m, y') - "
        "c(m, y) c(y', 0) for all y > y', and B / T with B(x) = sum_y c(y, 0) P(y | x), T(x) = sum_y c(m, "
        "y) P(y | x) "
        "is the optimal order (`pair_cost_scorer`). Of three grades (two labels) every cost keeps it. Of "
        "the grades "
        "0 to 3 a power p of the difference would need 4^p - 3^p = 1, which p = 1 alone solves.\n\n"
        f"{draws} draws of {_POINTS} points of equal mass with any joint distribution of two, three and "
        "five labels; "
        "all 720 orders tried. *(2)*: whether there is a closed form, and where there is none the regret "
        "of B / T all "
        "the same; then the regret of a scorer that ranks by the expected sum of labels, as is optimal for "
        "difference "
        "costs. Regrets are means (and the greatest) of the draws, times 10^4 of the cost-weighted AUC.\n\n"
        + table(head, rows)
        + "\n\nWhat the costs change: two labels independent given x, uniform on [-1, 1]^2, eta_1 = "
        "sigmoid(a "
        "x_1), eta_2 = sigmoid(a (x_2 - b)), b chosen for pi_2; AUCs are expectations, of the optimal "
        "scorer of "
        "each cost. Min AUC:\n\n"
        + table(["cost", *(f"a = {a:g}, pi_2 = {b:g}" for a in _SLOPES for b in _SHARES)], least)
        + "\n\n"
        + "<details><summary>All figures</summary>\n\n"
        + table(["a", "pi_2", "cost", "AUC 1", "AUC 2", "Diff", "Min"], made)
        + "\n\n</details>"
    )
    return out

"""Figures 1 and 5: the best scorers of deterministic labels, by trying all of them (Appendix G.1)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from chapter import Chapter, Settings, table
from panels import COLOURS, Panel, side_by_side

N_ROWS = 10
MOST_DISAGREEING = 6
# Rows with both labels have score 3, rows with none 0, and the others any of these.
SCORES = (0, 1, 2, 3)
WEIGHTS = (1, 2, 3, 4)
DRAWS = 200


@dataclass(frozen=True)
class Sample:
    """Rows with two binary labels, and all hypotheses about them."""

    labels: np.ndarray
    disagreeing: np.ndarray
    hypotheses: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> Sample:
        disagreeing = np.flatnonzero(labels[:, 0] != labels[:, 1])
        choices = np.array(list(product(SCORES, repeat=len(disagreeing))), dtype=np.int64)
        hypotheses = np.tile(3 * labels[:, 0], (len(choices), 1))
        hypotheses[:, disagreeing] = choices
        return cls(labels, disagreeing, hypotheses)

    def assigned(self) -> np.ndarray:
        """(hypotheses, disagreeing rows): their scores."""
        return self.hypotheses[:, self.disagreeing]

    def pairs(self, grade: np.ndarray) -> int:
        return int((grade[:, None] > grade).sum())

    def twice_won(self, grade: np.ndarray, cost: np.ndarray | None = None) -> np.ndarray:
        """Twice the cost-weighted number of pairs in the right order, a tie one half: exact integers."""
        upper, lower = np.nonzero(grade[:, None] > grade)
        weight = np.ones(len(upper), np.int64) if cost is None else cost[upper, lower]
        gap = self.hypotheses[:, upper] - self.hypotheses[:, lower]
        return ((np.sign(gap) + 1) * weight).sum(axis=1)

    def label_aggregated(self, how: str, cost: str) -> np.ndarray:
        grade = self.labels.sum(axis=1) if how == "sum" else self.labels.prod(axis=1)
        return self.twice_won(grade, None if cost == "uniform" else np.abs(grade[:, None] - grade))

    def loss_aggregated(self, a: tuple[int, int]) -> np.ndarray:
        """a_1 AUC_1 + a_2 AUC_2, times twice the product of the numbers of pairs: exact integers."""
        p = [self.pairs(self.labels[:, k]) for k in range(2)]
        won = [self.twice_won(self.labels[:, k]) for k in range(2)]
        return a[0] * p[1] * won[0] + a[1] * p[0] * won[1]


def draw(rng: np.random.Generator) -> Sample:
    """A sample of a Gaussian with a random covariance, cut at zero, that has rows of all four kinds."""
    while True:
        root = rng.uniform(-1, 1, (2, 2))
        labels = (rng.multivariate_normal([0, 0], root @ root.T, N_ROWS) > 0).astype(np.int64)
        kinds = set(map(tuple, labels.tolist()))
        if len(kinds) == 4 and (labels[:, 0] != labels[:, 1]).sum() <= MOST_DISAGREEING:
            return Sample.of(labels)


def maximisers(sample: Sample, objective: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in sample.assigned()[objective == objective.max()].tolist()}


def expected(sample: Sample, kind: str) -> set[tuple[int, ...]]:
    """What Appendix G.1 says the maximisers are, as scores of the disagreeing rows."""
    first = sample.labels[sample.disagreeing, 0] == 1
    if kind == "product":  # (a) anywhere below the rows with both
        return set(product((0, 1, 2), repeat=len(first)))
    if kind == "first dictates":  # (b)
        return {tuple(np.where(first, 2, 1).tolist())}
    if kind == "second dictates":  # (c)
        return {tuple(np.where(first, 1, 2).tolist())}
    return set(product((1, 2), repeat=len(first)))  # (d) any relation, between none and both


def equal_weights(sample: Sample) -> tuple[int, int]:
    """Integer a_1, a_2 with equal inner weights: proportional to the numbers of pairs."""
    p = [sample.pairs(sample.labels[:, k]) for k in range(2)]
    return p[0] // gcd(*p), p[1] // gcd(*p)


def kind_of(sample: Sample, a: tuple[int, int]) -> str:
    """Which inner weight a_k / (pi_k (1 - pi_k)) is greater."""
    p = [sample.pairs(sample.labels[:, k]) for k in range(2)]
    left, right = a[0] * p[1], a[1] * p[0]
    return "first dictates" if left > right else "second dictates" if left < right else "equal"


def chapter(settings: Settings) -> Chapter:
    rng = np.random.default_rng([settings.seed, 1])
    claims = {
        "product": "(a) the product leaves disagreeing rows anywhere below those with both labels",
        "first dictates": "(b) loss aggregation, alpha_1 > alpha_2: one assignment, the first decides",
        "second dictates": "(c) loss aggregation, alpha_1 < alpha_2: one assignment, the second decides",
        "equal": "(d) loss aggregation, alpha_1 = alpha_2: any order between the two, as for the sum",
        "sum": "(d) the sum, uniform and difference costs: any order between the two",
    }
    tried, held = dict.fromkeys(claims, 0), dict.fromkeys(claims, 0)
    contained = 0
    n_draws = 10 if settings.quick else DRAWS
    for _ in range(n_draws):
        sample = draw(rng)
        found = [("product", sample.label_aggregated("product", "uniform"))]
        found += [("sum", sample.label_aggregated("sum", cost)) for cost in ("uniform", "difference")]
        found += [
            (kind_of(sample, a), sample.loss_aggregated(a))
            for a in (*product(WEIGHTS, WEIGHTS), equal_weights(sample))
        ]
        for kind, objective in found:
            tried[kind] += 1
            held[kind] += maximisers(sample, objective) == expected(sample, kind)
        best = maximisers(sample, found[0][1])
        contained += maximisers(sample, found[1][1]) <= best
    out = Chapter("All scorers of deterministic labels (Figures 1 and 5)")
    for kind, what in claims.items():
        out.claim(f"{what} (in all of {tried[kind]:,} cases, exactly)", 0 < tried[kind] == held[kind])
    out.claim("Lemma 6.3: whatever maximises the sum's AUC maximises the product's", contained == n_draws)
    rows = [[what, f"{tried[kind]:,}", f"{held[kind]:,}"] for kind, what in claims.items()]
    out.figures = {"enumeration.svg": _drawing(draw(np.random.default_rng([settings.seed, 2])))}
    out.text = (
        f"{n_draws} samples of {N_ROWS} rows of a centred Gaussian (root of the covariance uniform in "
        "[-1, 1]), cut at zero, that have rows of all four kinds and at most "
        f"{MOST_DISAGREEING} whose labels disagree. Rows with both labels get score 3, rows with none 0, the "
        "disagreeing ones every combination of 0, 1, 2, 3. The weights a_1, a_2 are all pairs of "
        f"{', '.join(map(str, WEIGHTS))}, and those with equal inner weights. Objectives are compared as "
        "integers, without rounding.\n\n"
        + table(["claim", "cases", "hold"], rows)
        + "\n\n![Maximisers](enumeration.svg)\n\nAbove, which kind of row each objective puts above which "
        "(Figure 1; orange: decided by weights). Below, the scores that maximisers give to the disagreeing "
        "rows of one sample (Figure 5): any combination of the marked ones."
    )
    return out


_NODES = {"11": (0.5, 0.9), "10": (0.2, 0.5), "01": (0.8, 0.5), "00": (0.5, 0.1)}
_ARROWS = {
    "alpha_1 > alpha_2": (("00", "01"), ("01", "10"), ("10", "11")),
    "alpha_1 < alpha_2": (("00", "10"), ("10", "01"), ("01", "11")),
    "sum, or equal alpha": (("00", "10"), ("00", "01"), ("10", "11"), ("01", "11")),
    "product": (("00", "11"), ("10", "11"), ("01", "11")),
}


def _drawing(sample: Sample) -> str:
    order = np.argsort(-sample.labels[sample.disagreeing, 0], kind="stable")
    names = ["".join(map(str, sample.labels[sample.disagreeing[i]])) for i in order]
    # Weights far apart, so that the first, or the second, dictates.
    objectives = (
        sample.loss_aggregated((1000, 1)),
        sample.loss_aggregated((1, 1000)),
        sample.label_aggregated("sum", "uniform"),
        sample.label_aggregated("product", "uniform"),
    )
    panels = [_partial_order(title, arrows) for title, arrows in _ARROWS.items()]
    for title, objective in zip(_ARROWS, objectives):
        found = np.array(sorted(maximisers(sample, objective)))
        panels.append(_maximisers(title, names, found[:, order]))
    return side_by_side(panels, 4)


def _partial_order(title: str, arrows: tuple[tuple[str, str], ...]) -> Panel:
    def draw(axes: Any) -> None:
        axes.set(title=title, xlim=(0, 1), ylim=(0, 1))
        axes.axis("off")
        for low, high in arrows:
            colour = COLOURS[1] if {low, high} == {"01", "10"} else "black"
            arrow = {"arrowstyle": "->", "color": colour, "shrinkA": 14, "shrinkB": 14}
            axes.annotate("", _NODES[high], _NODES[low], arrowprops=arrow)
        for name, place in _NODES.items():
            axes.text(*place, name, ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white"})

    return draw


def _maximisers(title: str, names: list[str], found: np.ndarray) -> Panel:
    def draw(axes: Any) -> None:
        axes.set(title=f"{title}: {len(found)} maximiser{'s' * (len(found) > 1)}", ylabel="score")
        axes.set_yticks(SCORES)
        axes.set_xticks(range(len(names)), names)
        axes.set_xlabel("labels of the disagreeing rows")
        for i, name in enumerate(names):
            scores = np.unique(found[:, i])
            axes.plot([i] * len(scores), scores, "o", color=COLOURS[int(name == "01")])

    return draw

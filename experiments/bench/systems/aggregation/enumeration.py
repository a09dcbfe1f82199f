"""Fig. 1 and 5: the best scorers of deterministic labels, by trying all of them (Appendix G.1)."""

from __future__ import annotations

from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

import metarank

N_ROWS, MOST_DISAGREEING, DRAWS = 10, 6, 200
# Rows with both labels have score 3, rows with none 0, and the others any of these.
SCORES = (0, 1, 2, 3)
WEIGHTS = (1, 2, 3, 4)
KINDS = ("product", "first dictates", "second dictates", "equal", "sum")


class Sample:
    """Rows with two binary labels, and all hypotheses about them: (hypotheses, rows) of scores."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels
        self.disagreeing = np.flatnonzero(labels[:, 0] != labels[:, 1])
        choices = np.array(list(product(SCORES, repeat=len(self.disagreeing))))
        self.hypotheses = np.tile(3 * labels[:, 0], (len(choices), 1))
        self.hypotheses[:, self.disagreeing] = choices
        self.pairs = [int((y[:, None] > y).sum()) for y in labels.T]

    def twice_won(self, grade: np.ndarray, cost: str = "uniform") -> np.ndarray:
        """Twice the cost-weighted number of pairs in the right order, a tie one half: exact integers."""
        upper, lower = np.nonzero(grade[:, None] > grade)
        weight = grade[upper] - grade[lower] if cost == "difference" else 1
        gap = self.hypotheses[:, upper] - self.hypotheses[:, lower]
        return ((np.sign(gap) + 1) * weight).sum(axis=1)

    def loss_aggregated(self, a: tuple[int, int]) -> np.ndarray:
        """a_1 AUC_1 + a_2 AUC_2, times twice the product of the numbers of pairs: exact integers."""
        won = [self.twice_won(y) for y in self.labels.T]
        return a[0] * self.pairs[1] * won[0] + a[1] * self.pairs[0] * won[1]

    def equal_weights(self) -> tuple[int, int]:
        """Integer a_1, a_2 with equal inner weights: proportional to the numbers of pairs."""
        common = gcd(*self.pairs)
        return self.pairs[0] // common, self.pairs[1] // common

    def kind_of(self, a: tuple[int, int]) -> str:
        """Which inner weight a_k / (pi_k (1 - pi_k)) is greater."""
        left, right = a[0] * self.pairs[1], a[1] * self.pairs[0]
        return "first dictates" if left > right else "second dictates" if left < right else "equal"

    def maximisers(self, objective: np.ndarray) -> set[tuple[int, ...]]:
        """Scores of the disagreeing rows."""
        best = self.hypotheses[objective == objective.max()]
        return {tuple(row) for row in best[:, self.disagreeing].tolist()}

    def expected(self, kind: str) -> set[tuple[int, ...]]:
        """What Appendix G.1 says the maximisers are."""
        first = self.labels[self.disagreeing, 0] == 1
        if kind == "product":  # (a) anywhere below the rows with both
            return set(product((0, 1, 2), repeat=len(first)))
        if kind == "first dictates":  # (b)
            return {tuple(np.where(first, 2, 1).tolist())}
        if kind == "second dictates":  # (c)
            return {tuple(np.where(first, 1, 2).tolist())}
        return set(product((1, 2), repeat=len(first)))  # (d) any relation, between none and both


def draw(rng: np.random.Generator) -> Sample:
    """A sample of a Gaussian with a random covariance, cut at zero, that has rows of all four kinds."""
    while True:
        root = rng.uniform(-1, 1, (2, 2))
        labels = (rng.multivariate_normal([0, 0], root @ root.T, N_ROWS) > 0).astype(np.int64)
        kinds = set(map(tuple, labels.tolist()))
        if len(kinds) == 4 and (labels[:, 0] != labels[:, 1]).sum() <= MOST_DISAGREEING:
            return Sample(labels)


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]
        self.draws = params.get("draws", DRAWS)

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """[cases, cases that come out as stated] by kind of objective, and of Lemma 6.3."""
        rng, counts = np.random.default_rng([self.seed, 1]), {kind: [0, 0] for kind in (*KINDS, "lemma")}
        for _ in range(self.draws):
            sample = draw(rng)
            total, both = sample.labels.sum(axis=1), sample.labels.prod(axis=1)
            found = [("product", sample.twice_won(both))]
            found += [("sum", sample.twice_won(total, cost)) for cost in ("uniform", "difference")]
            for a in (*product(WEIGHTS, WEIGHTS), sample.equal_weights()):
                found.append((sample.kind_of(a), sample.loss_aggregated(a)))
            for kind, objective in found:
                counts[kind][0] += 1
                counts[kind][1] += sample.maximisers(objective) == sample.expected(kind)
            counts["lemma"][0] += 1
            counts["lemma"][1] += sample.maximisers(found[1][1]) <= sample.maximisers(found[0][1])
        return {"counts": counts}, {}

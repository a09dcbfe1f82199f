"""MQ2008: relevance, and a second target drawn from what the page looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import metarank
from metarank import MultiObjectiveRanker
from metarank.objectives import check_groups
from metarank.objectives.watch import Metrics

NAMES = ["relevance", "engagement"]
AGGREGATION = {"label aggregation": "label", "loss aggregation": "loss"}
OBJECTIVES = ("relevance alone", "engagement alone", *AGGREGATION)
TREES = {"num_leaves": 7, "min_data_in_leaf": 50}
ROUNDS = 60
# PageRank, in-links, slashes in the address, length of the address, from 1 (LETOR 4.0).
_PAGERANK, _INLINKS, _SLASHES, _LENGTH = 41, 42, 44, 45


def engagement(X: np.ndarray, grades: np.ndarray, seed: int) -> np.ndarray:
    """A binary label that well-linked pages with short addresses have, relevant ones a little more often.

    P(1 | x) = sigmoid(-2.2 + 1.5 z + 0.5 [grade > 0]); z is the mean of PageRank, in-links, 1 - slashes and
    1 - length of the address (features 41, 42, 44, 45, scaled to [0, 1] within queries by LETOR), centred
    and divided by its standard deviation over all rows.
    """
    z = X[:, _PAGERANK - 1] + X[:, _INLINKS - 1] - X[:, _SLASHES - 1] - X[:, _LENGTH - 1]
    z = (z - z.mean()) / z.std()
    chance = expit(-2.2 + 1.5 * z.astype(float) + 0.5 * (grades > 0))
    return (np.random.default_rng([seed, 8]).random(len(X)) < chance).astype(float)


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed, self.threads = metarank.__version__, params["random_state"], threads

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(folds, 6) by objective: nDCG@10 of both targets and their difference, AUC likewise."""
        with np.load(folder / "rows.npz") as file:
            self.X, grades, self.queries, part = (file[key] for key in ("X", "grades", "queries", "part"))
        self.Y = np.column_stack([grades, engagement(self.X, grades, self.seed)])
        found = {name: np.empty((5, 6)) for name in OBJECTIVES}
        for fold in range(5):
            train = np.flatnonzero(np.isin(part, [(fold + i) % 5 for i in range(3)]))
            test = np.flatnonzero(part == (fold + 4) % 5)
            grouping = check_groups(len(test), qid=self.queries[test])
            metrics = Metrics(self.Y[test], grouping, NAMES, label_gain="linear")
            for name in OBJECTIVES:
                areas, gains = metrics.measure(self.scores(name, train, test)).T
                found[name][fold] = [*gains, abs(gains[0] - gains[1]), *areas, abs(areas[0] - areas[1])]
        return {}, found

    def scores(self, name: str, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        Y = self.Y[train]
        targets = Y if name in AGGREGATION else Y[:, [OBJECTIVES.index(name)]]
        ranker = MultiObjectiveRanker(
            AGGREGATION.get(name, "label"), metric="ndcg", n_rounds=ROUNDS, params=TREES, n_jobs=self.threads
        )
        return ranker.fit(self.X[train], targets, qid=self.queries[train]).predict(self.X[test])

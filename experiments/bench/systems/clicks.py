"""Rankings learned from clicks of simulated users on MQ2008; nDCG@10 of true relevance on held-out queries.

A linear policy, of one query in a hundred, shows ten documents of each query, so often, in an order with some
noise. A user looks at a place with probability place ** -eta and clicks what attracts (a tenth of what is
irrelevant, too); one of the kind "cascade" looks further with the odds of that, and stops after a click.

`learner` : "lightgbm" or "xgboost", with `debiased` by its own means, or "metarank", with other `params`;
with `graded` it learns the grades of a tenth of the queries, too, and AUCs within queries are told of both.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SHOWN, SEEDS, ROUNDS = 10, 10, 120
TREES = {"learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 20}


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        params = dict(params)
        self.learner, self.debiased = params.pop("learner"), params.pop("debiased", False)
        self.graded = params.pop("graded", False)
        params.pop("random_state", None)
        self.params, self.threads, self.version = params, threads, version(self.distribution)

    @property
    def distribution(self) -> str:
        return "metarank-ltr" if self.learner == "metarank" else self.learner

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        told, rows = json.loads((folder / "set.json").read_text()), np.load(folder / "rows.npz")
        X, grades, part = rows["X"], rows["grades"], rows["part"]
        train, test = part < 3, part == 4
        queries, values = rows["queries"], []
        known = np.where(queries % 10 == 0, grades, 0)[train] if self.graded else None
        for seed in range(SEEDS):
            log = logged(X[train], grades[train], queries[train], told["users"], seed)
            scores = getattr(self, self.learner)(X[train], *log, known)(X[test])
            value = [ndcg(scores, grades[test], queries[test])]
            if self.graded:
                clicks = np.random.default_rng(seed).random(test.sum()) < attraction(grades[test])
                value += [auc(scores, of, queries[test]) for of in (grades[test] > 0, clicks)]
            values.append(value)
        names = ["nDCG@10", "AUC of relevance", "AUC of clicks"]
        figures = {name: list(of) for name, of in zip(names, np.transpose(values).tolist())}
        return figures, {"values": np.array(values)}

    def lightgbm(self, X: Any, row: Any, click: Any, place: Any, sizes: Any, grades: Any) -> Any:
        import lightgbm

        position = {"position": place} if self.debiased else {}
        train = lightgbm.Dataset(X[row], click, group=sizes, **position)
        fixed = {"objective": "lambdarank", "verbose": -1, "num_threads": self.threads, "deterministic": True}
        return lightgbm.train(TREES | fixed | {"force_row_wise": True}, train, ROUNDS).predict

    def xgboost(self, X: Any, row: Any, click: Any, place: Any, sizes: Any, grades: Any) -> Any:
        import xgboost

        how = {
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": SHOWN,
            "tree_method": "hist",
        }
        how |= {"objective": "rank:ndcg", "eta": 0.05, "max_depth": 5, "nthread": self.threads}
        how |= {"lambdarank_unbiased": self.debiased}
        train = xgboost.DMatrix(X[row], click, group=sizes)
        model = xgboost.train(how, train, ROUNDS)
        return lambda new: model.predict(xgboost.DMatrix(new))

    def metarank(self, X: Any, row: Any, click: Any, place: Any, sizes: Any, grades: Any) -> Any:
        from metarank import MultiObjectiveRanker

        position = place if self.debiased else None
        ranker = MultiObjectiveRanker(n_jobs=self.threads, **self.params)
        Y = {"clicks": click} | ({} if grades is None else {"relevance": grades[row]})
        return ranker.fit(X[row], Y, sizes, position=position).predict


def logged(
    X: np.ndarray, grades: np.ndarray, queries: np.ndarray, users: dict[str, Any], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows that were shown, whether they were clicked, places from 1, and the sizes of lists with a click."""
    rng = np.random.default_rng(seed)
    start = np.flatnonzero(np.r_[True, queries[1:] != queries[:-1]])
    ends = np.append(start[1:], len(queries))
    few = rng.choice(len(start), max(4, len(start) // 100), replace=False)
    of_few = np.concatenate([np.arange(start[i], ends[i]) for i in few])
    design = np.column_stack([np.ones(len(X)), X])
    policy = design @ np.linalg.lstsq(design[of_few], grades[of_few], rcond=None)[0]
    attracts, noise = attraction(grades), 0.1 * policy.std()
    parts = []
    for first, end in zip(start, ends):
        for _ in range(users["times"]):
            order = np.argsort(-(policy[first:end] + noise * rng.gumbel(size=end - first)))[:SHOWN]
            row, place = first + order, np.arange(1, len(order) + 1)
            click = rng.random(len(row)) < attracts[row]
            if users["kind"] == "cascade":
                on = rng.random(len(row)) < np.append(1.0, (place[:-1] / place[1:]) ** users["eta"])
                looks = np.cumprod(on & np.append(True, ~click[:-1])).astype(bool)
            else:
                looks = rng.random(len(row)) < place ** -float(users["eta"])
            if (click & looks).any():
                parts.append((row, (click & looks).astype(int), place))
    sizes = np.array([len(row) for row, *_ in parts])
    return (*(np.concatenate(of) for of in zip(*parts)), sizes)  # type: ignore[return-value]


def attraction(grades: np.ndarray) -> np.ndarray:
    """The probability that a document is clicked where somebody looks at it."""
    return 0.1 + 0.9 * (2.0**grades - 1) / 3


def auc(scores: np.ndarray, relevant: np.ndarray, queries: np.ndarray) -> float:
    """The share of pairs of a query in the right order, ties as half; the mean over queries that have any."""
    values = []
    for query in np.unique(queries):
        own = queries == query
        above = scores[own & relevant][:, None] - scores[own & ~relevant]
        if above.size:
            values.append(((above > 0) + 0.5 * (above == 0)).mean())
    return float(np.mean(values))


def ndcg(scores: np.ndarray, grades: np.ndarray, queries: np.ndarray) -> float:
    """The mean nDCG@10 of queries with a relevant document, ties in the order of the file."""
    discount, values = 1 / np.log2(np.arange(2, SHOWN + 2)), []
    for query in np.unique(queries):
        gain = 2.0 ** grades[queries == query] - 1
        if gain.max() > 0:
            lists = gain[np.argsort(-scores[queries == query], kind="stable")], np.sort(gain)[::-1]
            got, best = ((of[:SHOWN] * discount[: len(of)]).sum() for of in lists)
            values.append(got / best)
    return float(np.mean(values))

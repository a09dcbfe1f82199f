"""MQ2008 in the convention of a public benchmark of boosted trees, beside LightGBM's LambdaRank, tuned."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from judging import of_queries
from ranking_sets import Queries, joined, mq_parts

from metarank import MultiObjectiveRanker

# github.com/catboost/catboost, catboost/benchmarks/ranking/Readme.md: mean NDCG@10 of Fold1.
PUBLISHED = {
    "CatBoost 0.11.1, RMSE": 0.830443,
    "CatBoost 0.11.1, YetiRank": 0.828799,
    "XGBoost 0.80": 0.822891,
    "LightGBM 2.2.1": 0.822661,
}
OBJECTIVES = {"LightGBM LambdaRank": "lambdarank", "LightGBM regression": "regression"}
GRID = {"num_leaves": (4, 8, 15, 31), "learning_rate": (0.03, 0.1), "min_data_in_leaf": (20,)}
ROUNDS, STEP = 400, 20
_BASE = {"num_threads": 1, "verbose": -1, "seed": 0, "deterministic": True, "force_row_wise": True}


def value(scores: np.ndarray, of: Queries) -> float:
    return float(of_queries(scores, of.y, of.qid, benchmark=True).mean())


def measured(data: Path, quick: bool) -> dict[str, list[float]]:
    """By row of the table a value for each fold, Fold1 first."""
    parts = mq_parts(data)
    out: dict[str, list[float]] = {}
    for fold in range(1 if quick else 5):
        train = joined([parts[(fold + i) % 5] for i in range(3)])
        valid, test = parts[(fold + 3) % 5], parts[(fold + 4) % 5]
        for name, found in _of_fold(train, valid, test, quick).items():
            out.setdefault(name, []).append(found)
        print(f"benchmark, fold {fold + 1}", file=sys.stderr, flush=True)
    return out


def _of_fold(train: Queries, valid: Queries, test: Queries, quick: bool) -> dict[str, float]:
    out: dict[str, float] = {}
    both = joined([train, valid])
    for name, objective in OBJECTIVES.items():
        default = _BASE | {"objective": objective}
        out[f"{name}, 100 rounds, not tuned"] = value(_booster(default, train, 100).predict(test.X), test)
        best, best_on_test, chosen = -1.0, -1.0, (default, 100)
        for setting in itertools.product(*GRID.values()):
            params = default | dict(zip(GRID, setting))
            booster = _booster(params, train, 40 if quick else ROUNDS)
            scores = [np.zeros(len(part.y)) for part in (valid, test)]
            for rounds in range(STEP, booster.current_iteration() + 1, STEP):
                some = {"start_iteration": rounds - STEP, "num_iteration": STEP}
                scores = [s + booster.predict(part.X, **some) for s, part in zip(scores, (valid, test))]
                on_valid, on_test = value(scores[0], valid), value(scores[1], test)
                best_on_test = max(best_on_test, on_test)
                if on_valid > best:
                    best, chosen, at_best = on_valid, (params, rounds), on_test
            if quick:
                break
        out[f"{name}, tuned on the validation part"] = at_best
        out[f"{name}, the same learned from four parts"] = value(
            _booster(chosen[0], both, chosen[1]).predict(test.X), test
        )
        out[f"{name}, rounds and settings best on the test part"] = best_on_test
    for model in ("linear", "lightgbm", "auto"):
        settings: dict[str, Any] = {"model": model, "n_jobs": 1}
        if quick:
            settings["n_rounds"] = 5
        for told, rows in (("three parts", train), ("four parts", both)):
            ranker = MultiObjectiveRanker(**settings).fit(rows.X, rows.y, qid=rows.qid)
            out[f"metarank {model}, learned from {told}"] = value(ranker.predict(test.X), test)
    return out


def _booster(params: dict[str, Any], rows: Queries, rounds: int) -> lgb.Booster:
    order = np.argsort(rows.qid, kind="stable")
    sizes = np.unique(rows.qid, return_counts=True)[1]
    data = lgb.Dataset(rows.X[order], rows.y[order], group=sizes, params=params, free_raw_data=False)
    return lgb.train(params, data, rounds)

"""One cell of run.py: fit on one set with one seed, answer, and print cost and quality as JSON.

It says only what every version of metarank understands.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import ndcg_score, roc_auc_score

from metarank import MetaRanker, MultiObjectiveRanker, data, metrics

SINGLE_ROWS = 100
# Columns of MQ2008 that say how well a page is linked (LETOR 4.0, from 0), and the sign of each.
_LINKS = {40: 1, 41: 1, 43: -1, 44: -1}


def parts(folder: Path, name: str) -> tuple[data.Dataset, data.Dataset]:
    """Training and test rows of a set."""
    if name == "cooking":
        whole = data.load(folder / "text" / "cooking_stackexchange" / "cooking.stackexchange.txt.xz")
        order = np.random.default_rng(0).permutation(whole.n_rows)
        return whole.take(np.sort(order[3000:7000])), whole.take(np.sort(order[:3000]))
    found = next(folder.glob(f"*/{name}"))
    train, test = (
        next(path for path in found.glob(f"{part}.*") if "grades" not in path.name)
        for part in ("train", "test")
    )
    return data.load(train), data.load(test)


def digest(*arrays: np.ndarray) -> str:
    """A digest of all the bytes that were answered."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:12]


def labels(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """`MetaRanker` by default on rows with labels."""
    train, test = parts(folder, name)
    rows = test if test.X is None else test.X
    started = time.process_time()
    model = MetaRanker(random_state=seed, n_jobs=1).fit(train)
    fitted = time.process_time()
    ranking = model.rank(rows, k=10)
    ranked = time.process_time()
    kept = model.predict(rows)
    few = [test.take([row]) if test.X is None else test.X[row : row + 1] for row in range(SINGLE_ROWS)]
    model.rank(few[0], k=10)
    alone = time.process_time()
    for row in few:
        model.rank(row, k=10)
    single = (time.process_time() - alone) / SINGLE_ROWS
    quality = metrics.evaluate(
        test.Y,
        ranking,
        ["P@1", "P@5", "nDCG@5", "PSP@5", "micro-F1", "macro-F1"],
        Y_pred=kept,
        inv_propensity=metrics.propensity.inv_propensity(train.Y),
    )
    return {
        "quality": {key: float(value) for key, value in quality.items()},
        "fit": fitted - started,
        "batch": ranked - fitted,
        "single": single,
        "digest": digest(
            ranking.labels, ranking.scores, kept.indptr.astype(np.int64), kept.indices.astype(np.int64)
        ),
    }


def objectives(folder: Path, seed: int) -> dict[str, Any]:
    """`MultiObjectiveRanker` on MQ2008: relevance, and whether a page is well linked."""
    read = []
    for number in (1, 2, 3, 5):
        with lzma.open(folder / "ltr" / "mq2008" / f"S{number}.txt.xz") as file:
            X, grades, queries = load_svmlight_file(file, n_features=46, query_id=True)
        read.append((X.toarray().astype(np.float32), grades, queries))
    links = [sum(sign * X[:, column] for column, sign in _LINKS.items()) for X, _, _ in read]
    mean, deviation = np.concatenate(links).mean(), np.concatenate(links).std()
    rng = np.random.default_rng([seed, 8])
    targets = [
        np.column_stack(
            [
                grades,
                rng.random(len(grades)) < expit(-2.2 + 1.5 * (z - mean) / deviation + 0.5 * (grades > 0)),
            ]
        )
        for z, (_, grades, _) in zip(links, read)
    ]
    X, queries = (np.concatenate([part[i] for part in read[:3]]) for i in (0, 2))
    Y, (X_test, _, test_queries), Y_test = np.concatenate(targets[:3]), read[3], targets[3]
    quality: dict[str, float] = {}
    cost: dict[str, float] = {"fit": 0.0, "batch": 0.0}
    answers = []
    for aggregation, model in (("label", "lightgbm"), ("loss", "lightgbm"), ("label", "linear")):
        started = time.process_time()
        ranker = MultiObjectiveRanker(aggregation, model=model, n_jobs=1, random_state=seed).fit(
            X, Y, qid=queries
        )
        fitted = time.process_time()
        scores = ranker.predict(X_test)
        cost["fit"] += fitted - started
        cost["batch"] += time.process_time() - fitted
        answers.append(scores)
        for name, target in zip(("relevance", "links"), Y_test.T):
            quality[f"AUC {name}, {aggregation} {model}"] = float(roc_auc_score(target > 0, scores))
        starts = np.flatnonzero(np.r_[True, test_queries[1:] != test_queries[:-1], True])
        lists = [slice(a, b) for a, b in pairwise(starts) if Y_test[a:b, 0].any() and b - a > 1]
        quality[f"nDCG@10, {aggregation} {model}"] = float(
            np.mean([ndcg_score(Y_test[rows, 0][None], scores[rows][None], k=10) for rows in lists])
        )
    return {"quality": quality, **cost, "single": 0.0, "digest": digest(*answers)}


def main(arguments: list[str]) -> None:
    folder, name, seed = Path(arguments[0]), arguments[1], int(arguments[2])
    found = objectives(folder, seed) if name == "MQ2008" else labels(folder, name, seed)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])

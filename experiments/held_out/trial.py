"""One cell of the study, printed as JSON; run by the Python of the metarank that is measured.

python experiments/held_out/trial.py made KIND FOLDS SEED EFFORT
python experiments/held_out/trial.py real SET
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

from metarank import MetaRanker, _core, data, metrics
from metarank.thresholds import LearnedCuts

N, N_NEW = 200, 2000
KINDS = ("coin flips", "one row a label", "copies")


def main() -> None:
    kind, name, *options = sys.argv[1:]
    found = made(name, int(options[0]), int(options[1]), options[2]) if kind == "made" else real(name)
    print(json.dumps(found))


def made(kind: str, n_folds: int, seed: int, effort: str) -> dict[str, float]:
    """What a fit on labels without any relation to the rows says of new rows, and what they show."""
    rng = np.random.default_rng(seed)
    X, Y = drawn(kind, rng, N)
    new, truth = drawn("coin flips" if kind == "copies" else kind, rng, N_NEW)
    if kind == "copies":
        order = rng.permutation(np.repeat(np.arange(N // 4), 4))
        X, Y = X[order], Y[order]
    said = Held(LearnedCuts.fit)
    LearnedCuts.fit = said  # type: ignore[method-assign]
    model = MetaRanker(n_jobs=1, n_folds=n_folds, random_state=seed, effort=effort).fit(X, Y.astype(int))
    shown = list_quality(np.asarray(model.decision_function(new)), truth)
    chance = list_quality(np.random.default_rng(0).normal(size=truth.shape), truth)
    probability = np.asarray(model.predict_proba(new))
    surest = probability >= np.quantile(probability, 0.9)
    return {
        "reported": float(said.quality.mean()),
        # Copies of a row count as one.
        "error": float(shown.std() / np.sqrt(len(said.quality) / (4 if kind == "copies" else 1))),
        "new": float(shown.mean()),
        "chance": float(chance.mean()),
        "said": float(probability[surest].mean()),
        "is": float(truth[surest].mean()),
    }


def drawn(kind: str, rng: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "one row a label":
        Y = np.zeros((n, 50), bool)
        for start in range(0, n, N):
            Y[start + rng.integers(0, N, 50), np.arange(50)] = True
        return rng.normal(size=(n, 10)), Y
    n = n // 4 if kind == "copies" else n
    return rng.normal(size=(n, 10)), rng.random((n, 6)) < 0.3


class Held:
    """`LearnedCuts.fit` that keeps the quality of the held-out scores it is given."""

    def __init__(self, fit: Any) -> None:
        self.fit = fit

    def __get__(self, learner: Any, owner: Any) -> Any:
        def fit(candidates: Any, scores: np.ndarray, gains: np.ndarray, **options: Any) -> Any:
            shape = (candidates.n_rows, -1)
            self.quality = list_quality(scores.reshape(shape), gains.reshape(shape) > 0)
            return self.fit(learner, candidates, scores, gains, **options)

        return fit


def list_quality(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(AP + nDCG + 1 - RankLoss) / 3 of each row with a label, by which the ranker is chosen."""
    indptr = np.arange(len(truth) + 1) * truth.shape[1]
    flat = np.ascontiguousarray(scores, np.float64).ravel()
    ap, ndcg, loss = _core.list_quality(flat, truth.ravel().astype(np.float32), indptr, 1).T
    return ((ap + ndcg + 1 - loss) / 3)[~np.isnan(ap)]


def real(name: str) -> dict[str, float]:
    """The test part of a set, and the CPU seconds of the fit."""
    if name == "pydocs":
        train, test = data.load_pydocs("train"), data.load_pydocs("test")
    else:
        train, test = (data.load_named(name, part) for part in ("train", "test"))
    began = time.process_time()
    model = MetaRanker(n_jobs=1).fit(train)
    seconds = time.process_time() - began
    ranking = model.rank(test, k=min(100, train.n_labels))
    found = metrics.evaluate(test.Y, ranking, ["nDCG@5", "PSP@5"], inv_propensity=model.inv_propensity_)
    for cut in ("micro-F1", "macro-F1", "example-F1"):
        kept = model.predict(test, optimize=cut.lower())
        found |= metrics.evaluate(test.Y, None, [cut], Y_pred=kept)
    if hasattr(model, "held_out_quality_"):
        found["held out"] = model.held_out_quality_["nDCG@5"].value
    return {**found, "cpu": seconds}


if __name__ == "__main__":
    main()

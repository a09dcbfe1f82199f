"""What several objectives cost: training against LightGBM's LambdaRank, and a round of whole-sample AUC.

    python -m experiments.aggregation.speed [--quick] [--threads 2] [--repeats 3]

prints two tables of medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np

from metarank import MultiObjectiveRanker
from metarank.objectives import Aggregation

N_QUERIES, PER_QUERY, N_FEATURES, N_ROUNDS = 10_000, 20, 50, 100
AUC_ROWS = 1_000_000


def make_queries(n_queries: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, five targets of grades 0 to 4 that partly agree, and sizes of the queries."""
    rng = np.random.default_rng(seed)
    n = n_queries * PER_QUERY
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    directions = rng.normal(size=(N_FEATURES, 5)) * (rng.random((N_FEATURES, 5)) < 0.3)
    signal = X @ directions + X[:, :5] * X[:, 5:10] + 2 * rng.normal(size=(n, 5))
    Y = np.stack([np.searchsorted(np.quantile(s, [0.5, 0.75, 0.9, 0.97]), s) for s in signal.T], axis=1)
    return X, Y.astype(np.float64), np.full(n_queries, PER_QUERY)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def training_costs(n_queries: int, n_rounds: int, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds of K objectives in one model, and of a LambdaRank run of the same settings, side by side."""
    X, Y, sizes = make_queries(n_queries)
    settings = {"learning_rate": 0.1, "num_leaves": 31, "min_data_in_leaf": 20, "max_bin": 255}
    lightgbm = settings | {"objective": "lambdarank", "metric": "None", "num_threads": threads, "seed": 0}
    lightgbm |= {"deterministic": True, "force_row_wise": True, "verbosity": -1}

    def one_lambdarank(k: int) -> None:
        data = lgb.Dataset(X, label=Y[:, k], group=sizes, params=lightgbm)
        lgb.train(lightgbm, data, num_boost_round=n_rounds)

    def several(method: Any, n_objectives: int) -> None:
        model = MultiObjectiveRanker(method, n_jobs=threads, n_rounds=n_rounds, params=settings)
        model.fit(X, Y[:, :n_objectives], sizes)

    rows = []
    one_lambdarank(0)  # libraries are loaded, threads are up
    for n_objectives in (2, 3, 4, 5):
        times: dict[str, list[float]] = {"lambdarank": [], "loss": [], "label": []}
        for _ in range(repeats):
            times["lambdarank"].append(seconds(lambda: one_lambdarank(0)))
            for method in ("loss", "label"):
                times[method].append(seconds(lambda m=method, k=n_objectives: several(m, k)))
        row = {name: statistics.median(values) for name, values in times.items()}
        ratio = {f"{m} / K runs": row[m] / (n_objectives * row["lambdarank"]) for m in ("loss", "label")}
        rows.append({"K": n_objectives} | row | ratio)
    return rows


def round_costs(n_rows: int, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds of one call of the objective (gradient and Hessian) over a whole sample, without queries."""
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=n_rows)
    targets = {
        "binary, 1 %": (rng.random((n_rows, 1)) < 0.01) * 1.0,
        "binary, 2 labels": (rng.random((n_rows, 2)) < 0.3) * 1.0,
        "grades 0 to 4": rng.integers(0, 5, (n_rows, 1)) * 1.0,
        "all different": rng.random((n_rows, 1)),
    }
    rows = []
    for name, Y in targets.items():
        row: dict[str, Any] = {"target": name}
        for surrogate in ("logistic", "hinge"):
            objective = Aggregation("loss", surrogate=surrogate).objective(Y, n_jobs=threads)
            times = [seconds(lambda o=objective: o(scores)) for _ in range(repeats)]
            row[surrogate] = statistics.median(times)
        rows.append(row)
    return rows


def as_table(rows: list[dict[str, Any]]) -> str:
    """Markdown; numbers with three decimals."""
    names = list(rows[0])
    cells = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    lines = [" | ".join(names), " | ".join("---" for _ in names), *(" | ".join(row) for row in cells)]
    return "\n".join(f"| {line} |" for line in lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and rounds, to see it run")
    args = parser.parse_args(argv)
    part = 10 if args.quick else 1
    n_queries, n_rounds, n_rows = N_QUERIES // part, N_ROUNDS // part, AUC_ROWS // part
    print(
        f"Training: {n_queries * PER_QUERY:,} documents in {n_queries:,} queries, {N_FEATURES} features, "
        f"{n_rounds} rounds, {args.threads} threads, median of {args.repeats}, seconds\n"
    )
    print(as_table(training_costs(n_queries, n_rounds, args.threads, args.repeats)))
    print(f"\nWhole-sample AUC: {n_rows:,} rows, seconds a round\n")
    print(as_table(round_costs(n_rows, args.threads, args.repeats)))


if __name__ == "__main__":
    main()

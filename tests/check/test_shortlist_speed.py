"""experiments/shortlist_speed: predictions brought into one form, and which setting dominates which."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank import data

with study("shortlist_speed", "bench"):
    import measure
    from accuracy import NAMES, TAIL
    from compare import COSTS, duels
    from settings import Setting
    from systems.forms import top_of_csr, top_of_lists


def slow_top(row: list[tuple[int, float]], k: int) -> tuple[list[int], list[float]]:
    best = sorted(row, key=lambda pair: (-pair[1], pair[0]))[:k]
    short = k - len(best)
    return [label for label, _ in best] + [-1] * short, [score for _, score in best] + [-np.inf] * short


def test_forms_agree_with_sorting_every_row():
    rng = np.random.default_rng(0)
    rows = [
        [(int(label), float(rng.integers(0, 4))) for label in rng.permutation(30)[: rng.integers(0, 9)]]
        for _ in range(50)
    ]
    labels, scores = top_of_lists(rows, 5)
    for i, row in enumerate(rows):
        assert (labels[i].tolist(), scores[i].tolist()) == slow_top(row, 5)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    pairs = [pair for row in rows for pair in row]
    matrix = sp.csr_matrix(([s for _, s in pairs], [label for label, _ in pairs], indptr), shape=(50, 30))
    assert all(np.array_equal(a, b) for a, b in zip(top_of_csr(matrix, 5), (labels, scores)))


def summary(accuracy: float, cost: float) -> dict[str, float]:
    costs = ("train_cpu_s", "batch_ms", "single_cpu_ms", "single_ms", "model_mib", "peak_mib")
    return {**dict.fromkeys((*NAMES, TAIL), accuracy), **dict.fromkeys(costs, cost)}


TREE, FLAT = Setting("pecos", "tree"), Setting("pecos", "flat", kind="flat")
EXACT, QUICK = Setting("metarank", "exact"), Setting("metarank", "quick")


def test_a_setting_dominates_that_is_no_worse_at_a_third_of_the_cost():
    found = duels({TREE: summary(50, 9), EXACT: summary(50, 3), QUICK: summary(49.9, 1)})
    assert [(duel.peer, duel.ours, duel.missing) for duel in found] == [(TREE, EXACT, ())]


@pytest.mark.parametrize(("accuracy", "cost", "missing"), [(49.9, 1.8, 0), (49.7, 1.8, 8), (50, 1.9, 1)])
def test_one_vs_all_is_within_two_tenths_at_a_fifth_of_the_time(accuracy, cost, missing):
    (duel,) = duels({FLAT: summary(50, 9), EXACT: summary(accuracy, cost)})
    assert len(duel.missing) == missing


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
def test_a_run_of_ours_says_all_the_tables_need(tmp_path):
    both = data.make_extreme(300, 200, 40, nnz_per_row=20, seed=0)
    train, test = both.take(slice(250)), both.take(slice(250, None))
    data.write_xc(tmp_path / "train.txt", train)
    for name, matrix in (("X", train.X), ("Y", train.Y), ("X_test", test.X)):
        sp.save_npz(tmp_path / f"{name}.npz", sp.csr_matrix(matrix))
    job = {"system": "metarank", "params": {"estimator": "Parabel"}, "threads": 1, "data": str(tmp_path)}
    job |= {"k": 10, "singles": 5, "predictions": 1, "more": ["cuts"], "out": str(tmp_path / "run")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    with study("shortlist_speed", "bench"):
        measure.main(str(tmp_path / "job.json"))
    figures = json.loads((tmp_path / "run.json").read_text())
    assert set(COSTS) <= set(figures)
    with np.load(tmp_path / "run.npz") as file:
        labels, scores = file["labels"], file["scores"]
    assert labels.shape == (50, 10)
    assert np.all(np.diff(scores) <= 0)
    assert test.Y[np.arange(50), labels[:, 0]].mean() > 0.5

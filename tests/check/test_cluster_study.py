"""The study cluster: two workers beside one, the page, sets that grow."""

from __future__ import annotations

import pytest
from studies import study

pytest.importorskip("distributed")

with study("bench"):
    import sets
    from declared import Lines
    from studies import cluster


def run(n_rows: int, n_workers: int = 1) -> dict:
    """What might be measured."""
    tasks = {"fit_without_fold": [n_rows / 2000, n_rows / 1000], "fit_on_all": [n_rows / 1000]}
    tasks |= {kind: [n_rows / 1000] for kind in ("propose", "describe", "rank")}
    return {
        **{"set": f"extreme-{n_rows}", "system": f"{n_workers} worker{'s' * (n_workers > 1)}"},
        **{"params": {"n_workers": n_workers}, "test_rows": 100, "ranked_rows": 1000, "tasks_cpu_s": tasks},
        **{"fit_s": 30.0 / n_workers, "client_cpu_s": 2.0, "worker_cpu_s": [20.0 / n_workers] * n_workers},
        **{"predict_cpu_s": 1.0, "peak_bytes": [10**9 + 3000 * n_rows] * n_workers, "received_bytes": 0},
        **{"training_set_bytes": 1000 * n_rows, "model_bytes": 1000 * n_rows, "nDCG@5": 0.5},
        "digest": "same",
    }


def test_the_page_has_two_workers_beside_one():
    lines = [run(20_000), run(40_000), {**run(40_000, 2), "worker_cpu_s": [12.0, 8.0]}]
    assert cluster.by_split(*lines[1:]) == pytest.approx(22 / 14)
    page = cluster.page(Lines(lines, {f"extreme-{n}": {"n": n, "L": n // 8} for n in (20_000, 40_000)}))
    assert "| extreme-40000 | 40,000 | 5,000 | 2 | 15 | 12, 8 | 2 | 2.00 | 1.57 |" in page


def test_made_sets_grow_in_all_ways(tmp_path):
    described = sets.described(sets.prepare("made", tmp_path, cluster.maker(8000, 50)))
    assert [described[name] for name in ("n", "n_test", "D", "L")] == [8000, 50, 2000, 1000]

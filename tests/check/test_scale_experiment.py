"""experiments/scale: the model of larger sizes, and the page."""

from __future__ import annotations

import pytest
from studies import study

pytest.importorskip("distributed")

with study("scale"):
    import run as scale_run
    from extrapolation import RANKED_ROWS, Cluster, Law, forecast
    from measuring import speed_up
    from scale_tables import write


def figures(n_rows: int, n_workers: int = 1) -> dict:
    """What would be measured if fits took a millisecond of a row and all else grew with the rows too."""
    kinds = ("tuned_params", "fit_without_fold", "propose", "describe", "rank", "fit_on_all")
    return {
        "set": "extreme",
        "effort": "medium",
        "n_rows": n_rows,
        "n_labels": n_rows // 8,
        "terms_per_row": 40.0,
        "labels_per_row": 3.0,
        "test_rows": 100,
        "ranked_rows": 1000,
        "n_workers": n_workers,
        "fit_s": 30.0 / n_workers,
        "client_cpu_s": 2.0,
        "worker_cpu_s": [20.0 / n_workers] * n_workers,
        "predict_cpu_s": 1.0,
        "idle_bytes": 10**8,
        "peak_bytes": [10**9 + 3000 * n_rows] * n_workers,
        "received_bytes": [0] * n_workers,
        "task_cpu_s": dict.fromkeys(kinds, n_rows / 1000),
        "tasks": dict.fromkeys(kinds, 1),
        "training_set_bytes": 1000 * n_rows,
        "model_bytes": 1000 * n_rows,
        "metrics": {"nDCG@5": 0.5},
        "digest": "same",
    }


def test_power_law_of_what_grows_with_the_root():
    law = Law.fitted([100, 400, 900], [10, 20, 30])
    assert law.exponent == pytest.approx(0.5)
    assert law(10_000) == pytest.approx(100)
    with pytest.raises(ValueError, match="two different"):
        Law.fitted([5, 5], [1, 1])


def test_forecast_by_hand():
    cluster = Cluster(nodes=4, cores=10, memory=10**12, bandwidth=1e9, efficiency=0.5)
    said = forecast([figures(10_000), figures(20_000)], 10**6, cluster)
    assert said["fit_without_fold_s"] == pytest.approx(1000 / 5)  # a millisecond a row, five cores' worth
    assert said["describe_s"] == pytest.approx(RANKED_ROWS / 1000 * 1000 / 20)
    assert said["rank_s"] == pytest.approx(RANKED_ROWS / 1000 * 20 / 5)  # as at the largest run
    assert said["network_s"] == pytest.approx((3 * 1e9 + 2 * 1e9) / 1e9)  # to one machine, to two, to four
    assert said["memory_bytes"] == pytest.approx(3 * 1e9 + 1e9)
    assert said["moved_bytes"] == pytest.approx(4 * 1e9 + 2 * 1e9)
    path = sum(said[f"{kind}_s"] for kind in ("fit_without_fold", "propose", "describe", "rank", "client"))
    assert said["fit_s"] == pytest.approx(path + said["network_s"])


def test_forecast_of_trees_each_on_a_machine_of_its_own():
    """Fits that divide into trees take as long as a tree."""
    runs = [figures(10_000), figures(20_000)]
    for run in runs:
        for kind in ("fit_without_fold", "fit_on_all"):
            del run["task_cpu_s"][kind], run["tasks"][kind]
        run["task_cpu_s"]["fit_trees"], run["tasks"]["fit_trees"] = run["n_rows"] / 100, 10
    said = forecast(runs, 10**6, Cluster(nodes=4, cores=10, memory=10**12, bandwidth=1e9, efficiency=0.5))
    assert said["fit_trees_s"] == pytest.approx(1000 / 5)  # ten tasks of a millisecond a row each
    path = sum(said[f"{kind}_s"] for kind in ("fit_trees", "propose", "describe", "rank", "client"))
    assert said["fit_s"] == pytest.approx(path + said["network_s"])
    page = write([*runs, {**runs[0], "set": "YSO", "n_rows": 50_000}])
    assert "| fit_trees | 50 | 10 | 5.00 |" in page


def test_speed_up_counts_the_busiest_worker_and_the_client():
    assert speed_up(figures(100), {**figures(100, 2), "worker_cpu_s": [12.0, 8.0]}) == pytest.approx(22 / 14)


def test_made_sets_grow_in_all_ways():
    train, test = scale_run.made(20_000, 50)
    assert (train.n_rows, train.n_labels, train.n_features, test.n_rows) == (20_000, 2500, 5000, 50)

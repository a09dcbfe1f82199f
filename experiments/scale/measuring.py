"""One fit on a cluster of this machine, and what it took: time, CPU by worker and task, bytes, memory."""

from __future__ import annotations

import json
import pickle
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from dask.utils import key_split
from distributed import Client, LocalCluster, WorkerPlugin

from metarank import Dataset, MetaRanker, metrics
from metarank.distributed import DaskMetaRanker

METRICS = ["P@1", "nDCG@5", "PSP@5"]


class CpuByTask(WorkerPlugin):
    """CPU seconds of a worker of one thread, by the kind of task it was at."""

    name = "cpu-by-task"

    def setup(self, worker: Any) -> None:
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.started = time.process_time()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "executing":
            self.started = time.process_time()
        elif start == "executing":
            kind = key_split(key)
            if kind == "fit":  # the group of all fits; what kind of them comes next
                kind = key.split("-")[1]
            self.seconds[kind] = self.seconds.get(kind, 0.0) + time.process_time() - self.started
            self.counts[kind] = self.counts.get(kind, 0) + 1


def _of_worker(dask_worker: Any) -> dict[str, Any]:
    plugin = dask_worker.plugins[CpuByTask.name]
    return {
        "cpu_s": time.process_time(),
        "peak_bytes": _peak_bytes(),
        "received_bytes": sum(entry["total"] for entry in dask_worker.transfer_incoming_log),
        "task_cpu_s": dict(plugin.seconds),
        "tasks": dict(plugin.counts),
    }


def _peak_bytes() -> int:
    """The most memory this process held; `getrusage` would count what its parent held at its start."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def measure(train: Dataset, test: Dataset, n_workers: int, **params: Any) -> dict[str, Any]:
    """A fit and a ranking of the test rows with so many worker processes of one thread.

    Returns
    -------
    dict
        Sizes of the data; wall seconds of fit and prediction; by worker its CPU seconds (imports left out),
        peak memory and bytes received from other workers; CPU seconds by kind of task; the CPU of this
        process; bytes of training set and model, which pass through the scheduler; metrics; and a digest of
        the saved model, which must not depend on the number of workers.
    """
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.register_plugin(CpuByTask())
        client.run(_import)
        before, own = client.run(_of_worker), time.process_time()
        started = time.monotonic()
        model = DaskMetaRanker(client, n_jobs=1, **params).fit(train)
        fit_s, fit_own = time.monotonic() - started, time.process_time() - own
        after = client.run(_of_worker)
        started = time.monotonic()
        local = model.to_local()
        ranking = model.rank(test, 5)
        predict_s = time.monotonic() - started
        last = client.run(_of_worker)
    kinds = sorted({kind for worker in last.values() for kind in worker["task_cpu_s"]})
    values = metrics.evaluate(test.Y, ranking, METRICS, inv_propensity=local.inv_propensity_)
    return {
        "n_rows": train.n_rows,
        "n_features": train.n_features,
        "n_labels": train.n_labels,
        "terms_per_row": float(train.X.nnz / train.n_rows),
        "labels_per_row": float(train.Y.nnz / train.n_rows),
        "test_rows": test.n_rows,
        "ranked_rows": _ranked_rows(local, train.n_rows),
        "n_workers": n_workers,
        "fit_s": fit_s,
        "predict_s": predict_s,
        "client_cpu_s": fit_own,
        "worker_cpu_s": [after[w]["cpu_s"] - before[w]["cpu_s"] for w in after],
        "predict_cpu_s": sum(last[w]["cpu_s"] - after[w]["cpu_s"] for w in last),
        "idle_bytes": max(worker["peak_bytes"] for worker in before.values()),
        "peak_bytes": [last[w]["peak_bytes"] for w in last],
        "received_bytes": [after[w]["received_bytes"] for w in after],
        "task_cpu_s": {kind: sum(w["task_cpu_s"].get(kind, 0.0) for w in last.values()) for kind in kinds},
        "tasks": {kind: sum(w["tasks"].get(kind, 0) for w in last.values()) for kind in kinds},
        "training_set_bytes": len(pickle.dumps([train.X, train.Y])),
        "model_bytes": len(pickle.dumps([local.shortlisters_, local.scorers_])),
        "metrics": {name: float(value) for name, value in values.items()},
        "digest": _digest(local),
    }


def _ranked_rows(model: MetaRanker, n_rows: int) -> int:
    """Rows that the ranker learned from, as the fit noted them where they are not all."""
    for text in model.choices_:
        if match := re.match(r"ranker: learns from (\d+) of", text):
            return int(match[1])
    return n_rows


def _import() -> None:
    import metarank.distributed.tasks  # noqa: F401


def _digest(model: MetaRanker) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return str(json.loads((Path(folder) / "model" / "manifest.json").read_text())["digest"])


def speed_up(one: dict[str, Any], more: dict[str, Any]) -> float:
    """How many times as fast more workers are than one by their CPU seconds, with a core for each process.

    The time of a run is that of its busiest worker, and of this process, which works while workers wait.
    """
    return _critical(one) / _critical(more)


def speed_up_by_split(one: dict[str, Any], more: dict[str, Any]) -> float:
    """The same by the split of the work alone: the busiest worker's share of what one worker needs.

    Where workers run side by side on threads of one core, or beside other work, each of their CPU seconds
    does less, and their sum is greater than that of one worker for the same tasks.
    """
    share = max(more["worker_cpu_s"]) / sum(more["worker_cpu_s"])
    return _critical(one) / (share * sum(one["worker_cpu_s"]) + one["client_cpu_s"])


def _critical(run: dict[str, Any]) -> float:
    return max(run["worker_cpu_s"]) + run["client_cpu_s"]

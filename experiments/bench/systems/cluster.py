"""metarank on so many worker processes of this machine: time, CPU by worker and task, bytes, memory."""

from __future__ import annotations

import json
import pickle
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from clocks import memory
from dask.utils import key_split
from distributed import Client, LocalCluster, WorkerPlugin
from sets import matrix

import metarank
from metarank import Dataset, MetaRanker, metrics
from metarank.distributed import DaskMetaRanker

TEST_ROWS = 2000


class CpuByTask(WorkerPlugin):
    """CPU seconds of a worker of one thread, by the kind of task it was at."""

    name = "cpu-by-task"

    def setup(self, worker: Any) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.started = time.process_time()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "executing":
            self.started = time.process_time()
        elif start == "executing":
            kind = key_split(key)
            if kind == "fit":  # the group of all fits; what kind of them comes next
                kind = key.split("-")[1]
            self.seconds.setdefault(kind, []).append(time.process_time() - self.started)


def _of_worker(dask_worker: Any) -> dict[str, Any]:
    return {
        "cpu_s": time.process_time(),
        "peak": memory("VmHWM") * 2**20,
        "received": sum(entry["total"] for entry in dask_worker.transfer_incoming_log),
        "seconds": dict(dask_worker.plugins[CpuByTask.name].seconds),
    }


def _import() -> None:
    import metarank.distributed.tasks  # noqa: F401


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        self.n_workers, self.seed = params["n_workers"], params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        X, Y, X_test, Y_test = (matrix(folder, name) for name in ("X", "Y", "X_test", "Y_test"))
        train = Dataset(X, Y, **json.loads((folder / "names.json").read_text()))
        options = {"threads_per_worker": 1, "memory_limit": "10GiB", "dashboard_address": ":0"}
        with LocalCluster(n_workers=self.n_workers, **options) as cluster, Client(cluster) as client:
            client.register_plugin(CpuByTask())
            client.run(_import)
            before, own, started = client.run(_of_worker), time.process_time(), time.monotonic()
            model = DaskMetaRanker(client, n_jobs=1, random_state=self.seed).fit(train)
            fit_s, client_cpu_s = time.monotonic() - started, time.process_time() - own
            after = client.run(_of_worker)
            local = model.to_local()
            ranking = model.rank(X_test[:TEST_ROWS], 5)
            last = client.run(_of_worker)
        tasks: dict[str, list[float]] = {}
        for worker in last.values():
            for kind, seconds in worker["seconds"].items():
                tasks.setdefault(kind, []).extend(seconds)
        figures = {
            "test_rows": ranking.labels.shape[0],
            "ranked_rows": ranked_rows(local, train.n_rows),
            "fit_s": fit_s,
            "client_cpu_s": client_cpu_s,
            "worker_cpu_s": [after[w]["cpu_s"] - before[w]["cpu_s"] for w in after],
            "predict_cpu_s": sum(last[w]["cpu_s"] - after[w]["cpu_s"] for w in last),
            "peak_bytes": [last[w]["peak"] for w in last],
            "received_bytes": sum(after[w]["received"] for w in after),
            "tasks_cpu_s": tasks,
            "training_set_bytes": len(pickle.dumps([train.X, train.Y])),
            "model_bytes": len(pickle.dumps([local.shortlisters_, local.scorers_])),
            "digest": digest(local),
            "nDCG@5": float(metrics.evaluate(Y_test[:TEST_ROWS], ranking, ["nDCG@5"])["nDCG@5"]),
        }
        return figures, {"labels": ranking.labels, "scores": ranking.scores}


def ranked_rows(model: MetaRanker, n_rows: int) -> int:
    """Rows that the ranker learned from, as the fit noted them where they are not all."""
    found = [re.match(r"ranker: learns from (\d+) of", text) for text in model.choices_]
    return next((int(match[1]) for match in found if match), n_rows)


def digest(model: MetaRanker) -> str:
    """That of the saved folder, which the number of workers must not change."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return str(json.loads((Path(folder) / "model" / "manifest.json").read_text())["digest"])

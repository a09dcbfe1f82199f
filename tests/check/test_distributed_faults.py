"""Workers that are killed, memory that runs short, a client that dies: the same bytes all the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

import makers
import pytest
from clusters import cluster, digest, kill_at, preloading

pytest.importorskip("distributed")

from metarank import MetaRanker
from metarank.distributed import DaskMetaRanker
from metarank.persist import register

LOW = {"effort": "low", "n_folds": 2, "n_jobs": 1}


@register
class Slow(makers.MeanFeature):
    """Leaves a file when it is at work, and works long enough to be killed at it, once."""

    def __init__(self, *, feature: int = 0, folder: str = "") -> None:
        super().__init__(feature=feature)
        self.folder = folder

    def fit(self, view, *, n_jobs=1):
        self._pause("fit")
        return super().fit(view, n_jobs=n_jobs)

    def score(self, X, candidates, *, n_jobs=1):
        if not hasattr(self, "column_"):
            self._pause("score")
        return super().score(X, candidates, n_jobs=n_jobs)

    def _pause(self, stage: str) -> None:
        path = Path(self.folder) / stage
        if self.folder and not path.exists():
            path.write_text(str(os.getpid()))
            time.sleep(120)

    def get_state(self):
        return {**super().get_state(), "folder": self.folder}

    @classmethod
    def from_state(cls, state):
        out = cls(feature=state["feature"], folder=state["folder"])
        out.mean_ = state["mean"]
        return out


def test_a_worker_killed_during_training_and_prediction_changes_nothing(tmp_path):
    train = makers.dense()
    settings = {**LOW, "features": ["neighbors", Slow()]}
    local = MetaRanker(**settings).fit(train)
    settings["features"] = ["neighbors", Slow(folder=str(tmp_path))]
    with cluster(2, **preloading()) as client:
        killer = kill_at(tmp_path / "fit")
        model = DaskMetaRanker(client, **settings)
        (tmp_path / "score").write_text("")  # no pause there, yet
        model.fit(train)
        killer.join()
        assert (tmp_path / "fit").read_text()
        (tmp_path / "score").unlink()
        killer = kill_at(tmp_path / "score")
        found = model.rank(train, 3)
        killer.join()
        assert (tmp_path / "score").read_text()
    fitted = model.to_local()
    fitted.scorers_[1].folder = ""
    assert digest(fitted, tmp_path / "distributed") == digest(local, tmp_path / "local")
    assert found.scores.tobytes() == local.rank(train, 3).scores.tobytes()


def test_memory_that_runs_short_spills(tmp_path):
    """Columns of more than a worker's target memory go to its disk, and come back."""
    train = makers.sparse(800, L=40)
    settings = {**LOW, "features": ["neighbors", "votes", "centroids", "prior"], "ranker": "binary"}
    local = digest(MetaRanker(**settings).fit(train), tmp_path / "local")
    import dask

    # The target counts what Dask holds; pausing and killing look at the whole process, whose libraries are
    # larger than this limit already.
    limits = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    limits |= {"distributed.worker.memory.target": 0.6}
    with dask.config.set(limits), cluster(2, memory_limit="4 MiB") as client:
        model = DaskMetaRanker(client, **settings).fit(train)
        stores = [worker.state.data for worker in client.cluster.workers.values() if hasattr(worker, "state")]
        spilled = [store.cumulative_metrics["disk-write", "bytes"] for store in stores]
    assert sum(spilled) > 0
    assert digest(model, tmp_path / "distributed") == local

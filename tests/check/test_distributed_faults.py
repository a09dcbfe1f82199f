"""Workers that are killed, memory that runs short, a client that dies: the same bytes all the same."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import makers
import numpy as np
import pytest
from clusters import PATHS, cluster, digest, kill_at, preloading

pytest.importorskip("distributed")

from metarank import MetaRanker
from metarank.distributed import DaskMetaRanker, rank
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
        fitted = model.to_local()
        (tmp_path / "score").unlink()
        killer = kill_at(tmp_path / "score")
        found = rank(fitted, train, 3, client=client)
        killer.join()
        assert (tmp_path / "score").read_text()
    fitted.scorers_[1].folder = ""
    assert digest(fitted, tmp_path / "distributed") == digest(local, tmp_path / "local")
    assert found.scores.tobytes() == local.rank(train, 3).scores.tobytes()


RUN = """
import sys
sys.path[:0] = {paths!r}
from clusters import cluster
from metarank.distributed import DaskMetaRanker
import makers, test_distributed_faults as here
if __name__ == "__main__":
    scorers = ["neighbors", "tail", here.Slow(folder={folder!r})]
    with cluster(1) as client:
        settings = {{**here.LOW, "features": scorers, "shortlister": "parabel"}}
        DaskMetaRanker(client, resume={resume!r}, **settings).fit(makers.dense())
"""


def test_a_run_whose_client_dies_goes_on_from_what_is_kept(tmp_path, caplog):
    script, folder, kept = tmp_path / "run.py", tmp_path / "marks", tmp_path / "kept"
    folder.mkdir()
    (folder / "score").write_text("")
    script.write_text(RUN.format(paths=PATHS, folder=str(folder), resume=str(kept)))
    killer = kill_at(folder / "fit")  # worker, scheduler and client are one process here
    died = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=600)
    killer.join()
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    before = {p.name: p.stat().st_mtime_ns for p in kept.iterdir() if not p.name.startswith(".")}
    assert any(name.startswith("propose-Parabel") for name in before)
    settings = {**LOW, "features": ["neighbors", "tail", Slow(folder=str(folder))], "shortlister": "parabel"}
    with cluster(2) as client:
        model = DaskMetaRanker(client, resume=kept, **settings).fit(makers.dense())
    after = {p.name: p.stat().st_mtime_ns for p in kept.iterdir() if not p.name.startswith(".")}
    assert before.items() <= after.items()
    assert any(name.startswith("rank-") for name in after)
    local = digest(MetaRanker(**settings).fit(makers.dense()), tmp_path / "local")
    assert digest(model, tmp_path / "resumed") == local
    # All is kept by now: nothing is fitted again; and a damaged result is made again.
    damaged = next(p for p in kept.iterdir() if p.name.startswith("describe-"))
    next(damaged.glob("*.npy")).write_bytes(b"")
    with cluster(1) as client:
        again = DaskMetaRanker(client, resume=kept, **settings).fit(makers.dense())
    unchanged = {n: t for n, t in after.items() if n != damaged.name}
    assert unchanged.items() <= {p.name: p.stat().st_mtime_ns for p in kept.iterdir()}.items()
    assert digest(again, tmp_path / "again") == local


def test_results_are_found_by_their_inputs(tmp_path):
    """One folder for runs of different data and parameters."""
    with cluster(1) as client:
        for seed, features in ((0, ["neighbors"]), (1, ["neighbors"]), (1, ["centroids"])):
            settings = {**LOW, "features": features, "random_state": seed}
            model = DaskMetaRanker(client, resume=tmp_path / "kept", **settings).fit(makers.dense(seed=seed))
            local = MetaRanker(**settings).fit(makers.dense(seed=seed))
            assert digest(model, tmp_path / "a") == digest(local, tmp_path / "b")


def test_cuts_and_the_weight_of_rare_labels_are_kept(tmp_path, monkeypatch):
    train = makers.many_labels(120)
    local = digest(MetaRanker(**LOW).fit(train), tmp_path / "local")
    with cluster(1) as client:
        DaskMetaRanker(client, resume=tmp_path / "kept", **LOW).fit(train)
        for name in ("thresholds-", "propensity-weight-"):
            assert any(path.name.startswith(name) for path in (tmp_path / "kept").iterdir())
        for name in ("LearnedCuts.fit", "tuned_propensity_weight"):
            monkeypatch.setattr(f"metarank.model.judge.{name}", None)  # they are not asked again
        model = DaskMetaRanker(client, resume=tmp_path / "kept", **LOW).fit(train)
    assert digest(model, tmp_path / "resumed") == local
    assert any(line.startswith("propensity_weight:") for line in model.choices_)


class Unsaved(makers.MeanFeature):
    """A scorer of a class that is not registered."""


def test_a_scorer_that_cannot_be_saved_is_not_kept_and_no_hindrance(tmp_path):
    settings = {**LOW, "features": [Unsaved(), "prior"]}
    with cluster(1) as client:
        model = DaskMetaRanker(client, resume=tmp_path, **settings).fit(makers.dense())
    local = MetaRanker(**settings).fit(makers.dense())
    assert np.array_equal(model.scorers_[0].mean_, local.scorers_[0].mean_)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("fit-all-Unsaved")]


def test_results_that_find_no_room_are_warned_of(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("metarank.distributed.results.persist.save", full)
    with cluster(2) as client:
        model = DaskMetaRanker(client, resume=tmp_path, features=["neighbors"], **LOW)
        with pytest.warns(UserWarning, match=r"^\d+ results were not kept in .*: No space left on device$"):
            model.fit(makers.dense())
        monkeypatch.undo()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            model.fit(makers.dense())  # what was missed is told once


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

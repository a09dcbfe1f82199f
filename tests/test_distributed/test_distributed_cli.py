"""`metarank train` on a cluster."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext, suppress
from pathlib import Path

import makers
import pytest
from clusters import cluster

pytest.importorskip("distributed")

from metarank import load
from metarank.apps.cli import main
from metarank.data import write_xc

QUICK = ["--effort", "low", "--folds", "2", "--jobs", "1", "--quiet"]
FORM = "must be an address such as tcp://host:8786"
WRITABLE = "must be a folder that can be written to, got "


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A data file and the digest of the model of a local training."""
    folder = tmp_path_factory.mktemp("cli")
    write_xc(folder / "train.txt", makers.sparse())
    assert main(["train", str(folder / "train.txt"), "--model", str(folder / "local"), *QUICK]) == 0
    return folder, digest_of(folder / "local")


def digest_of(model):
    return json.loads((model / "manifest.json").read_text())["digest"]


def test_local_cluster_and_resume_give_the_same_model(files, tmp_path):
    folder, local = files
    options = [*QUICK, "--local-cluster", "2", "--resume", str(tmp_path / "kept")]
    assert main(["train", str(folder / "train.txt"), "--model", str(tmp_path / "model"), *options]) == 0
    assert digest_of(tmp_path / "model") == local
    assert any(path.name.startswith("rank-") for path in (tmp_path / "kept").iterdir())


@pytest.mark.check
def test_scheduler_elsewhere_gives_the_same_model(files, tmp_path):
    folder, local = files
    with cluster(2, processes=True) as client:
        options = [*QUICK, "--dask-scheduler", client.scheduler.address]
        assert main(["train", str(folder / "train.txt"), "--model", str(tmp_path / "model"), *options]) == 0
        client.submit(len, "abc").result()  # it goes on without us
    assert digest_of(tmp_path / "model") == local


def test_results_that_are_not_kept_are_a_line(files, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder, _ = files
    monkeypatch.setattr("metarank.distributed.results._state", full)
    with cluster(1) as client, warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr("metarank.distributed.connected", lambda *_, **__: nullcontext(client))
        options = [*QUICK, "--local-cluster", "1", "--resume", str(tmp_path / "kept")]
        assert main(["train", str(folder / "train.txt"), "--model", str(tmp_path / "m"), *options]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "kept" in line]
    assert len(lines) == 1
    assert lines[0].startswith("metarank: warning: ")
    assert lines[0].endswith(f"results were not kept in {tmp_path / 'kept'}: No space left on device")


@pytest.mark.check
def test_every_pair_is_ranked_by_all_workers(files, tmp_path):
    folder, _ = files
    options = [*QUICK, "--local-cluster", "1", "--ranker", "lambdarank", "--ranker-pairs", "all"]
    assert main(["train", str(folder / "train.txt"), "--model", str(tmp_path / "m"), *options]) == 0
    choices = load(tmp_path / "m").choices_
    assert any(line.startswith("ranker: lambdarank on all") for line in choices)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--ranker-pairs", "all"], "--ranker-pairs all goes with --local-cluster or --dask-scheduler"),
        (
            ["--ranker-pairs", "all", "--local-cluster", "1"],
            "--ranker-pairs all goes with --ranker lambdarank, got --ranker auto",
        ),
        (["--resume", "kept"], "--resume goes with --local-cluster or --dask-scheduler"),
        (["--local-cluster", "0"], "--local-cluster must be positive, got 0"),
        *[
            (
                ["--dask-scheduler", address],
                f"--dask-scheduler {FORM}, got {address!r}",
            )
            for address in ("", "nonsense", "nonsense:://", "zz://a:1", "tcp://a:99999", "tcp://:1")
        ],
        (["--resume", "", "--local-cluster", "1"], "--resume must be the path of a folder, got ''"),
        (["--resume", "/proc/foo", "--local-cluster", "1"], f"--resume {WRITABLE}'/proc/foo': No such file"),
        (["--resume", __file__, "--local-cluster", "1"], f"--resume {WRITABLE}{__file__!r}: File exists"),
    ],
)
def test_bad_options_are_one_line(files, options, rule, tmp_path, capsys):
    folder, _ = files
    code = main(["train", str(folder / "train.txt"), "--model", str(tmp_path / "m"), "--quiet", *options])
    assert code == 2
    err = capsys.readouterr().err
    assert rule in err
    assert err.count("\n") == 1


NOISE = """
import logging, os, threading, time
from metarank.distributed import connected

def noise():
    handlers = logging.getLogger("distributed").handlers
    flag = next(f.flag for handler in handlers for f in handler.filters if hasattr(f, "flag"))

    told = threading.Event()

    def speak():
        logging.getLogger("distributed.worker").error("early")
        told.set()
        while os.path.exists(flag):
            time.sleep(0.001)
        for _ in range(100):  # as a heartbeat whose scheduler is gone
            logging.getLogger("distributed.worker").error("late", exc_info=OSError("gone"))
            logging.getLogger("asyncio").error("late")

    threading.Thread(target=speak).start()
    told.wait()

if __name__ == "__main__":
    try:
        with connected(n_workers=1, n_jobs=1) as client:
            client.submit(noise).result()
            KEY
    except KeyboardInterrupt:
        pass
"""


@pytest.mark.check
@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("key", ["pass", "raise KeyboardInterrupt"])
def test_nothing_is_logged_while_a_cluster_is_ended(key, tmp_path):
    (tmp_path / "noise.py").write_text(NOISE.replace("KEY", key))
    done = subprocess.run([sys.executable, tmp_path / "noise.py"], capture_output=True, text=True, check=True)
    assert done.stderr.count("early") == 1
    assert "late" not in done.stderr
    assert "Traceback" not in done.stderr


def has_workers(pid):
    """Whether a process has begun to start worker processes, as Linux tells."""
    below = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    numbers = [number for path in below for number in path.read_text().split()]
    return any(b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes() for number in numbers)


@pytest.mark.check
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("moment", ["starting", "working"])
def test_ctrl_c_is_one_line(moment, tmp_path):
    """A terminal sends it to the workers too."""
    write_xc(tmp_path / "train.txt", makers.sparse(6000))
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "metarank", "train", str(tmp_path / "train.txt"), "--quiet"]
    command += ["--model", str(tmp_path / "m"), "--local-cluster", "2", "--jobs", "1", "--resume", str(kept)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        reached = (lambda: any(kept.iterdir())) if moment == "working" else lambda: has_workers(process.pid)
        until = time.monotonic() + 600
        while not (kept.exists() and reached()):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=600)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert err == "metarank: interrupted; nothing is half-written\n"
    assert process.returncode == 130
    assert not (tmp_path / "m").exists()

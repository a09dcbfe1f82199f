"""Ctrl-C at random moments; outputs that are closed, full or no longer read: a clear end, nothing in part."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import makers
import pytest
from makers import contents
from terminal import interrupted_after

from metarank import MetaRanker, load
from metarank.data import write_xc

# Runs the command line, which is interrupted after so many seconds on the processor, and leaves in a file how
# many it took. Once the command has ended, an interrupt ends the process as it ends any other: not what is
# tested here, so only one that the command takes is sent.
PROGRAM = """
import signal, sys, time, metarank.apps.cli
def interrupt(*_):
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGPROF, interrupt)
began = time.process_time()
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
code = metarank.apps.cli.main(sys.argv[3:])
signal.setitimer(signal.ITIMER_PROF, 0)
with open(sys.argv[2], "w") as f:
    f.write(str(time.process_time() - began))
sys.exit(code)
"""
# Seconds after which a command that has not ended never will.
ENDLESS = 600
SAID = "metarank: interrupted; no file is incomplete"
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """A data file and a model of it."""
    folder = tmp_path_factory.mktemp("work")
    write_xc(folder / "rows.txt", makers.sparse(200))
    MetaRanker(**makers.QUICK).fit(makers.sparse(200)).save(folder / "model")
    return folder


def interrupted(seconds: float, note: Path, argv: tuple) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", PROGRAM, str(seconds), str(note), *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=ENDLESS)


@POSIX
@pytest.mark.parametrize("command", ["train", "predict"])
def test_ctrl_c_at_random_moments(work, tmp_path, command):
    place, note = tmp_path / "place", tmp_path / "seconds"
    place.mkdir()
    out = place / "out"
    argv = {
        "train": ("train", work / "rows.txt", "--model", out, "--overwrite", "--quiet", "--folds", 2),
        "predict": ("predict", work / "model", work / "rows.txt", "--out", out, "--jobs", 2),
    }[command]
    assert interrupted(0, note, argv).returncode == 0
    whole, lasts = contents(out), float(note.read_text())
    ended = []
    moments = random.Random(0)
    for _ in range(4):
        run = interrupted(moments.uniform(0.01, 0.8) * lasts, note, argv)
        ended.append(run.returncode)
        assert run.returncode in (0, 130), run.stderr
        if run.returncode == 130:
            assert run.stderr.splitlines() == [SAID]
        assert contents(out) == whole
        assert os.listdir(place) == ["out"]
    assert 130 in ended


@pytest.fixture
def untraced():
    """No measure of coverage: it takes a lock in Python, and an interrupt there would hold that for good."""
    before = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    sys.settrace(before[0])
    threading.settrace(before[1])


@POSIX
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("stage", ["fit", "rank"])
def test_an_interrupted_call_leaves_no_thread_at_work(stage, tmp_path):
    data = makers.dense(500)
    model = MetaRanker(n_folds=2, n_jobs=2, effort="low")
    quick = MetaRanker(**makers.QUICK | {"n_jobs": 2}).fit(data)
    call = {"fit": lambda: model.fit(data), "rank": lambda: [quick.rank(data) for _ in range(20)]}[stage]
    began = time.process_time()
    call()
    lasts = time.process_time() - began
    moments, n_interrupted, before = random.Random(1), 0, set(threading.enumerate())
    for _ in range(4):
        try:
            with interrupted_after(moments.uniform(0.05, 0.8) * lasts):
                call()
        except KeyboardInterrupt:
            n_interrupted += 1
        gives_up = time.monotonic() + ENDLESS
        while set(threading.enumerate()) - before:  # it may have come while the last ones were ending
            assert time.monotonic() < gives_up
            time.sleep(0.001)
        used = time.process_time()
        time.sleep(0.1)
        assert time.process_time() - used < 0.05
    assert n_interrupted
    # And what is asked next is answered.
    quick.save(tmp_path / "M")
    assert load(tmp_path / "M").rank(data, k=2).scores.tobytes() == quick.rank(data, k=2).scores.tobytes()


# --- outputs ---------------------------------------------------------------------


def shell(line: str) -> tuple[int, str]:
    run = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=ENDLESS)
    return run.returncode, run.stderr


@POSIX
def test_outputs_that_cannot_be_written(work, tmp_path):
    metarank = f"{sys.executable} -m metarank"
    predict = f"{metarank} predict {work / 'model'} {work / 'rows.txt'}"
    assert shell(f"{predict} --format csv | head -c 1 > {os.devnull}") == (0, "")
    assert shell(f"{predict} >&-") == (
        2,
        "metarank: error: standard output is closed: give a file with --out\n",
    )
    assert shell(f"{metarank} inspect {work / 'model'} >&-") == (0, "")
    if os.path.exists("/dev/full"):
        for command in (predict, f"{metarank} inspect {work / 'model'}"):
            assert shell(f"{command} > /dev/full") == (2, "metarank: error: No space left on device\n")
    train = f"{metarank} train {work / 'rows.txt'} --effort low --folds 2 --jobs 1"
    # Whoever reads the progress may go; the work goes on.
    assert shell(f"{train} --model {tmp_path / 'A'} 2>&1 >{os.devnull} | head -c 1 >{os.devnull}") == (0, "")
    assert shell(f"{train} --model {tmp_path / 'B'} 2>&- >&-")[0] == 0
    assert contents(tmp_path / "A").keys() == contents(tmp_path / "B").keys()

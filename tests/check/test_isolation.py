"""Beside other libraries, after a fork, within what threads and memory a process may have."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from metarank._util import threads as _threads
from metarank._util.cgroup import cpu_limit, memory_left
from metarank._util.threads import available_cores, openmp_threads, resolve_n_jobs
from metarank.model.fitting import memory

CHILD = Path(__file__).parent / "isolation_child.py"
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

# Of any two libraries each comes first in some order; each order is followed by a fork.
ORDERS = (
    "faiss,lightgbm,metarank,sklearn,torch",
    "torch,sklearn,metarank,lightgbm,faiss",
    "metarank,torch,faiss,sklearn,lightgbm",
    "lightgbm,sklearn,torch,faiss,metarank",
)


def run_child(*argv: str, seconds: int = 600) -> list[str]:
    """The lines a child prints; it ends itself, and all it started, when its time is over."""
    environment = os.environ | {"OMP_NUM_THREADS": "16", "OPENBLAS_NUM_THREADS": "16"}
    command = [sys.executable, str(CHILD), *argv, str(seconds)]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=2 * seconds
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@LINUX
@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
@pytest.mark.parametrize("order", ORDERS)
def test_imported_in_any_order_used_forked_and_used(order, record_property):
    record_property("orders of imports", 1)
    here, there, there_alone, after = run_child(order, "fork")
    assert here == there == there_alone == after


@LINUX
@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_processes_started_otherwise(way, record_property):
    record_property("ways to start a process", 1)
    here, there, there_alone, after = run_child("lightgbm,faiss,metarank,sklearn", way)
    assert here == there == there_alone == after


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_openmp_is_held_at_one_thread_after_a_fork():
    assert openmp_threads(3, "torch") == 3
    child = os.fork()
    if child == 0:
        os._exit(openmp_threads(3, "torch"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert openmp_threads(3, "torch") == 3


@LINUX
def test_a_fork_before_the_import_is_seen():
    """What was loaded before the fork counts, whoever loaded it."""
    script = (
        "import os, sys; {}\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    from metarank._util.threads import openmp_threads\n"
        "    os._exit(openmp_threads(3, 'torch'))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    for before, threads in (("import lightgbm", "1"), ("", "3")):
        run = subprocess.run(
            [sys.executable, "-c", script.format(before)], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == threads


# --- threads ---------------------------------------------------------------------


@LINUX
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_more_threads_than_asked_for(n_jobs):
    """One thread starts no other, two at most so many at once; those that libraries keep do no work.

    Whatever OpenMP and BLAS are told. How busy the machine is changes none of that, but that a thread which
    ends may still be there when the next begins: hence twice as many, and one to start them. The 16 threads
    that OpenMP is told of would be 48 beside one another, and a pool of BLAS would work for some 100
    milliseconds.
    """
    before, after, most = threads_at_work(n_jobs)
    assert len(before) > 1  # BLAS has a pool
    assert all(after[thread] - used < 1 for thread, used in before.items())
    assert most <= len(before) + (2 * n_jobs + 1 if n_jobs > 1 else 0)


def threads_at_work(n_jobs: int) -> tuple[dict[str, float], dict[str, float], int]:
    """The milliseconds that each thread of a child but its first has worked, before and after it was at
    work with `n_jobs`, and the most that were seen at once; the first one counts there."""
    environment = os.environ | {"OMP_NUM_THREADS": "16", "OPENBLAS_NUM_THREADS": "16"}
    command = [sys.executable, str(CHILD), "metarank,lightgbm,faiss,sklearn", f"jobs={n_jobs}", "600"]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    tasks = Path(f"/proc/{child.pid}/task")

    def milliseconds() -> dict[str, float]:
        times = {
            task.name: int((task / "schedstat").read_text().split()[0]) / 1e6 for task in tasks.iterdir()
        }
        return times | {str(child.pid): 0.0}

    try:
        assert child.stdout.readline() == "ready\n"
        before = milliseconds()
        done = threading.Event()
        waiting = threading.Thread(target=lambda: (child.stdout.readline(), done.set()))
        waiting.start()
        child.stdin.write("go\n")
        child.stdin.flush()
        most = 0
        while not done.is_set():
            most = max(most, len(list(tasks.iterdir())))
            time.sleep(0.0005)
        waiting.join()
        return before, milliseconds(), most
    finally:
        child.kill()
        child.communicate()


# --- control groups ------------------------------------------------------------------


def control_group(tmp_path: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    root = tmp_path / "cgroup"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    (tmp_path / "membership").write_text(membership + "\n")
    return root, tmp_path / "membership"


CPU = "cpu,cpuacct"
V1 = "4:memory:/docker/a\n1:cpu,cpuacct:/d\n0::/"
NO_LIMIT = "9223372036854771712"


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b", {"a/b/cpu.max": "150000 100000", "a/cpu.max": "max 100000"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000"}, None),
        ("0::/", {"cpu.max": "300000 100000"}, 3),
        ("0::/../other", {"cpu.max": "300000 100000"}, 3),
        ("0::/a", {"unified/a/cpu.max": "200000 100000"}, 2),
        (V1, {f"{CPU}/d/cpu.cfs_quota_us": "250000", f"{CPU}/d/cpu.cfs_period_us": "100000"}, 2.5),
        (V1, {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        (V1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("0::/a", {"a/cpu.max": "many 0"}, None),
        ("0::/a", {"a/cpu.max": "100000 0"}, None),
        ("nonsense", {}, None),
    ],
)  # fmt: skip
def test_cpu_quota(tmp_path, membership, files, expected):
    assert cpu_limit(*control_group(tmp_path, membership, files)) == expected


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/b/memory.current": "5"}, None),
        ("0::/a/b", {"a/b/memory.max": "1000", "a/b/memory.current": "300"}, 700),
        (
            "0::/b",
            {"b/memory.max": "1000", "b/memory.current": "300", "b/memory.stat": "anon 1\ninactive_file 100"},
            800,
        ),
        ("0::/a", {"a/memory.max": "1000", "a/memory.current": "3000"}, 0),
        (V1, {"memory/memory.limit_in_bytes": NO_LIMIT, "memory/memory.usage_in_bytes": "1"}, None),
        (
            V1,
            {
                "memory/docker/a/memory.limit_in_bytes": "1000",
                "memory/docker/a/memory.usage_in_bytes": "900",
                "memory/docker/a/memory.stat": "inactive_file 1\ntotal_inactive_file 400",
                "memory/memory.limit_in_bytes": "700",
                "memory/memory.usage_in_bytes": "650",
            },
            50,
        ),
    ],
)  # fmt: skip
def test_memory_of_a_control_group(tmp_path, membership, files, expected):
    assert memory_left(*control_group(tmp_path, membership, files)) == expected


def test_cores_follow_the_quota(monkeypatch):
    cores = available_cores()
    for quota, expected in ((0.3, 1), (1.0, 1), (1.5, min(2, cores)), (1000.0, cores), (None, cores)):
        monkeypatch.setattr(_threads, "cpu_limit", lambda quota=quota: quota)
        assert available_cores() == resolve_n_jobs(None) == resolve_n_jobs(-1) == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert available_cores() == 3


def test_memory_that_is_left_follows_the_control_group(tmp_path):
    group = control_group(tmp_path, "0::/a", {"a/memory.max": "5000", "a/memory.current": "1000"})
    (tmp_path / "meminfo").write_text("MemTotal: 16 kB\nMemAvailable:       8 kB\n")
    assert memory.memory_available(*group, tmp_path / "meminfo") == 4000
    (tmp_path / "meminfo").write_text("MemAvailable:       2 kB\n")
    assert memory.memory_available(*group, tmp_path / "meminfo") == 2048
    none = tmp_path / "missing"
    assert memory.memory_available(none, none, none) is None

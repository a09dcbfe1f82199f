"""Eight threads ask one model for a minute: identical answers, no growth? And two processes: one copy?

python experiments/extreme/soak.py MODEL TEST [--seconds 60] [--threads 8] [--rows 512]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np

from metarank import data, load

_MIB = 2**20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("test", type=Path, help="rows to be ranked")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rows", type=int, default=512, help="different rows that are asked")
    parser.add_argument("--share-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    model = load(options.model, verify=False)
    print(f"loaded in {time.perf_counter() - started:.3f} s")
    model.n_jobs = 1
    X = data.load(options.test, n_features=model.n_features_in_).X
    X = X[: options.rows]
    expected = model.rank(X)
    if options.share_only:
        print("ready", flush=True)
        sys.stdin.readline()
        return 0
    calls, wrong, sizes = _ask(model, X, expected, options.threads, options.seconds)
    print(f"{sum(calls)} calls by {options.threads} threads in {options.seconds:.0f} s, {wrong} different")
    print(
        f"memory of its own: {sizes[0] / _MIB:.1f} MiB after a tenth of the time, {sizes[-1] / _MIB:.1f} "
        f"at the end, at most {max(sizes) / _MIB:.1f} MiB"
    )
    _report_sharing(options)
    return int(wrong > 0)


def _ask(model, X, expected, n_threads: int, seconds: float) -> tuple[list[int], int, list[int]]:
    """Calls of each thread, answers that differed, and private bytes from a tenth of the time on."""
    end = time.monotonic() + seconds
    calls, wrong, sizes = [0] * n_threads, [0] * n_threads, []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        while time.monotonic() < end:
            row = int(rng.integers(X.shape[0]))
            found = model.rank(X[row])
            same = np.array_equal(found.labels[0], expected.labels[row])
            wrong[number] += not (same and np.array_equal(found.scores[0], expected.scores[row]))
            calls[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 10)
    while any(thread.is_alive() for thread in threads):
        sizes.append(private_bytes())
        time.sleep(min(0.5, seconds / 20))
    return calls, sum(wrong), sizes or [private_bytes()]


def private_bytes() -> int:
    """Bytes that are in memory and not a file's; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def _report_sharing(options: argparse.Namespace) -> None:
    """Resident and proportional size of the model's files in each of two processes."""
    if not Path("/proc/self/smaps").exists():
        print("this system does not say what processes share")
        return
    command = [sys.executable, __file__, str(options.model), str(options.test), "--share-only"]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for reader in readers:
        while reader.stdout.readline().strip() != "ready":
            pass
    for number, reader in enumerate(readers, 1):
        resident, proportional = mapped_bytes(reader.pid)
        print(
            f"process {number} of two: {resident / _MIB:.1f} MiB of the model's files in memory, "
            f"{proportional / _MIB:.1f} MiB as its share"
        )
    for reader in readers:
        reader.communicate("\n")


def mapped_bytes(pid: int) -> tuple[int, int]:
    """Rss and Pss of the arrays that a process has mapped: a page of two processes counts half for each."""
    totals, inside = {"Rss:": 0, "Pss:": 0}, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *fields = line.split()
        if not name.endswith(":"):
            inside = line.endswith(".npy")
        elif inside and name in totals:
            totals[name] += 1024 * int(fields[0])
    return totals["Rss:"], totals["Pss:"]


if __name__ == "__main__":
    raise SystemExit(main())

"""Cores with sanitizers in build/sanitize/, commands run with them, and the reports that come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Kind:
    """A way to build and to run the core.

    Parameters
    ----------
    flags : str
        What ``-fsanitize=`` is given.
    runtime : str
        The library that is loaded before Python.
    faults : dict of str to str
        Of `sanitize.faults`: each with words of the report that it must bring.
    """

    flags: str
    runtime: str
    faults: dict[str, str]


KINDS = {
    "address": Kind(
        "address,undefined,float-cast-overflow",
        "libasan.so",
        {"overflow": "heap-buffer-overflow", "misaligned": "misaligned address"},
    ),
    "thread": Kind("thread", "libtsan.so", {"race": "data race"}),
}
_REPORT = re.compile(r"^.*(?:(?:ERROR|WARNING): (?:Address|Thread)Sanitizer|: runtime error): .*", re.M)


def build(name: str) -> Path:
    """The folder of a kind, its core up to date."""
    folder = ROOT / "build" / "sanitize" / name
    configure = ["cmake", "-S", str(HERE), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Debug"]
    configure += [f"-DSANITIZERS={KINDS[name].flags}", f"-DPython_EXECUTABLE={sys.executable}"]
    if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists():
        configure += ["-G", "Ninja"]
    print(f"{name}: building in {folder.relative_to(ROOT)}", flush=True)
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    jobs = str(len(os.sched_getaffinity(0)))
    subprocess.run(["cmake", "--build", str(folder), "--parallel", jobs], check=True)
    return folder


def run_with(
    name: str, folder: Path, command: list[str], more: Mapping[str, object] | None = None
) -> tuple[int, list[str]]:
    """Run a command with the core of a kind: its exit code, and the reports of all its processes.

    `more` are further variables of its environment.
    """
    (core,) = (folder / "core").glob("_core*.so")
    with tempfile.TemporaryDirectory(prefix="metarank-sanitize-") as logs:
        log = f"log_path={logs}/log"
        settings = {
            "LD_PRELOAD": f"{_runtime(KINDS[name].runtime)} {folder / 'libthread_count.so'}",
            # CPython leaks by design.
            "ASAN_OPTIONS": f"{log}:detect_leaks=0:detect_stack_use_after_return=1",
            # To stderr: beside the address sanitizer, GCC's heeds no log_path.
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "TSAN_OPTIONS": log,
            "METARANK_SANITIZED_CORE": core,
            # LightGBM, FAISS and BLAS are not instrumented: how their threads wait is not seen, so they
            # get none. A limit, because `n_jobs` overrules OMP_NUM_THREADS.
            **dict.fromkeys(("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1),
            **(more or {}),
        }
        # By `env`: what stands before it must not have the runtime loaded.
        environment = ["env", *(f"{key}={value}" for key, value in settings.items())]
        prefix = [*_fixed_addresses(), *environment]
        with open(Path(logs) / "stderr", "w") as stderr:
            code = subprocess.run([*prefix, *command], cwd=ROOT, stderr=stderr).returncode
        texts = [path.read_text(errors="replace") for path in sorted(Path(logs).iterdir())]
    reports = [report for text in texts for report in reports_in(text)]
    if code != 0 and not reports:
        print(texts[-1][-2000:])  # stderr: the last by name
    return code, reports


def reports_in(text: str) -> list[str]:
    """The reports of a sanitizer's log, each from its first line to the next report's."""
    starts = [match.start() for match in _REPORT.finditer(text)]
    return [text[start:end].rstrip("=\n") for start, end in zip(starts, [*starts[1:], len(text)])]


def _runtime(library: str) -> str:
    """The path of a sanitizer's library, as the compiler knows it."""
    command = [os.environ.get("CXX", "g++"), f"-print-file-name={library}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _fixed_addresses() -> list[str]:
    """A prefix that keeps Linux from placing memory where the thread sanitizer has its own."""
    prefix = ["setarch", "-R"]
    works = shutil.which("setarch") and subprocess.run([*prefix, "true"], check=False).returncode == 0
    return prefix if works else []

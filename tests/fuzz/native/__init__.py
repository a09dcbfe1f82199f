"""Harnesses of the core's entry points: built by g++ without Python, and run by `driver.cpp`."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "metarank" / "_core"
# The kernels that each harness calls, and those that they need; all need `parallel` and `cpu_level`.
_LABEL_TREES = ("label_trees", "label_trees_beam", "label_trees_points", "block_scores")
HARNESSES: dict[str, tuple[str, ...]] = {
    "centroids": ("dense_scores", "sparse_rows"),
    "csr_rows": ("rows", "linear_scores", "inverted_index", "sparse_rows"),
    "cuts": ("candidate_lists", "label_logistic"),
    "feature_table": ("candidate_lists", "label_logistic"),
    "instance_trees": ("instance_trees", "label_mean_index", "sparse_rows"),
    "kernel_machine": ("dense_scores", "sparse_rows"),
    "label_means": ("label_mean_index", "sparse_rows"),
    "label_neighbors": ("neighbors", "inverted_index", "sparse_rows"),
    "label_trees": (*_LABEL_TREES, "weight_blocks", "sparse_rows"),
    "linear_scores": ("linear_scores", "sparse_rows"),
    "names": ("names", "sparse_rows"),
    "nearest_rows": ("neighbors", "inverted_index", "sparse_rows"),
    "pair_scores": ("linear_scores", "sparse_rows"),
    "text_rows": ("text_parse",),
    "top_labels": ("metrics",),
    "trees": ("boosted_trees", "forest"),
    "vector_scores": ("dense_scores", "sparse_rows"),
    "votes": ("votes", "sparse_rows"),
    "weight_blocks": ("weight_blocks",),
    "weight_index": ("weight_index", "sparse_rows"),
}
_SANITIZERS = "-fsanitize=address,undefined"
FLAGS = ["-std=c++20", "-O1", "-g1", "-Wno-psabi", "-Wno-attributes", "-D_GLIBCXX_ASSERTIONS", _SANITIZERS]
FLAGS += ["-fno-sanitize-recover=undefined", "-fsanitize-coverage=trace-pc"]


@dataclass
class Found:
    """The counts that a harness prints."""

    harness: str
    runs: int = 0
    accepted: int = 0
    kept: int = 0
    edges: int = 0
    failure: str = ""

    def __str__(self) -> str:
        counts = (
            f"{self.runs:>8,} mutants {self.accepted:>7,} accepted {self.kept:>5} kept {self.edges:>6} edges"
        )
        return f"{'native: ' + self.harness:<28} {counts}" + (f"\n  {self.failure}" if self.failure else "")


def build(harness: str, folder: Path) -> Path:
    """Compile a harness; what is newer than all its sources stays, and harnesses share their parts."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [*HERE.rglob("*.[ch]*"), *CORE.glob("*.h"), *CORE.glob("*.cpp")]
    changed = max(path.stat().st_mtime for path in sources)
    binary = folder / harness
    if _is_newer(binary, changed):
        return binary
    # The driver itself is not measured: an input is new by what it does in the core.
    include = [f"-I{CORE}"]
    jobs = [(HERE / f"{harness}.cpp", folder / f"{harness}.o", [*FLAGS, *include])]
    kernels = (*HARNESSES[harness], "parallel", "cpu_level")
    jobs += [(CORE / f"{n}.cpp", folder / f"core-{n}.o", [*FLAGS, *include]) for n in kernels]
    jobs += [(HERE / "driver.cpp", folder / "driver.o", ["-std=c++20", "-O1"])]
    compiler = os.environ.get("CXX", "g++")

    def compiled(source: Path, target: Path, flags: list[str]) -> str:
        if not _is_newer(target, changed):
            subprocess.run([compiler, *flags, "-c", str(source), "-o", str(target)], check=True)
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda job: compiled(*job), jobs))
    subprocess.run([compiler, _SANITIZERS, *objects, "-o", str(binary), "-lpthread"], check=True)
    return binary


def _is_newer(path: Path, than: float) -> bool:
    return path.exists() and path.stat().st_mtime > than


def run(harness: str, runs: int, seed: int, folder: Path, seconds: int = 600) -> Found:
    """So many mutants of the corpus of a harness; an input that ends it is kept as `HARNESS-crash.bin`."""
    binary = build(harness, folder)
    crash = folder / f"{harness}-crash.bin"
    corpus = HERE.parent / "corpus" / "native" / harness
    done = subprocess.run(
        [str(binary), str(corpus), str(runs), str(seconds), str(seed)],
        capture_output=True,
        text=True,
        env={**os.environ, "FUZZ_CRASH_FILE": str(crash), "ASAN_OPTIONS": "max_allocation_size_mb=2048"},
    )
    if done.returncode == 0:
        return Found(harness, **json.loads(done.stdout))
    return Found(harness, failure=f"exit code {done.returncode}, input {crash}: {done.stderr[-1500:]}")

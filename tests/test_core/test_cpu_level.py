"""The level of the processor that the core uses: the highest there is, or the one that is forced."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

import metarank
from metarank import _core

LEVELS = ["baseline", "avx2", "avx512"]
KERNELS = """
import hashlib, numpy as np
from metarank import _core
rng = np.random.default_rng(0)
A, B = (rng.standard_normal((n, 37)).astype(np.float32) for n in (20, 30))
sums = hashlib.sha256()
for found in (
    _core.vector_scores(A, B, B[:, 0].copy(), 1),
    *(_core.kernel_matrix(A, B, metric, 0.5, 1) for metric in ("squared_l2", "l1")),
    *_core.row_norms(A),
):
    sums.update(found.tobytes())
print(_core.cpu_level(), sums.hexdigest())
"""


def run(code: str, level: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"METARANK_CPU_LEVEL": level}
    command = [sys.executable, *(["-c", code] if code else ["-m", "metarank", "demo"])]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_levels_are_those_of_the_processor():
    assert _core.cpu_levels() == LEVELS[: len(_core.cpu_levels())]
    assert _core.cpu_level() in _core.cpu_levels()
    flags = Path("/proc/cpuinfo")
    if flags.exists() and platform.machine() == "x86_64":
        has = set(re.search(r"^flags\s*:(.*)", flags.read_text(), re.M)[1].split())
        assert _core.cpu_levels() == ["baseline", *(["avx2"] if "avx2" in has else [])] + (
            ["avx512"] if {"avx2", "avx512f"} <= has else []
        )


def test_a_forced_level_is_used_and_sums_the_same_bytes():
    levels = _core.cpu_levels()
    said = [run(KERNELS, level).stdout.split() for level in [*levels, ""]]
    assert [level for level, _ in said] == [*levels, levels[-1]]
    assert len({digest for _, digest in said}) == 1


@pytest.mark.parametrize("level", ["AVX2", "sse", "baseline ", *sorted({*LEVELS} - {*_core.cpu_levels()})])
def test_another_level_is_refused_at_import(level):
    found = run("import metarank._core", level)
    possible = " or ".join(_core.cpu_levels()[-2:])
    assert found.returncode == 1
    assert f"{possible} on this processor, got '{level}'" in found.stderr
    assert "ImportError: METARANK_CPU_LEVEL must be baseline" in found.stderr


def test_the_command_line_says_so_in_one_line():
    found = run("", "sse")
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("metarank: error: METARANK_CPU_LEVEL must be baseline")


def test_kernels_are_called_by_level_alone():
    core = Path(metarank.__file__).parent / "_core"
    found = 0
    for path in core.glob("*.cpp"):
        text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        for name in re.findall(r"^METARANK_KERNEL [^(]*\b(\w+)\(", text, re.M):
            found += 1
            called = re.findall(rf"(?<![\w:.<]){name}\(", text)
            assert len(called) == 1, f"{path.name}: {name} is called beside by_level"
            assert f"by_level<{name}" in text, f"{path.name}: {name}"
    assert found > 30

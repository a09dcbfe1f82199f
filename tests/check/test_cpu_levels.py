"""A saved model answers the same bytes whichever instructions the core and the libraries below it choose.

The models are saved once, by one process; others load them, each under another level, and print the digests
of their answers (`cpu_levels_child.py`). A fit, too, gives the same bytes on every level of the core.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metarank import _core

HERE = Path(__file__).parent
CHILD = HERE / "cpu_levels_child.py"
try:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
except ImportError:  # NumPy 1
    from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__
ABOVE_BASELINE = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
# What this machine has: a level it lacks would crash.
LOWER = {
    "NumPy": {"NPY_DISABLE_CPU_FEATURES": ABOVE_BASELINE},
    "BLAS": {"OPENBLAS_CORETYPE": "Prescott"},
    "the C library": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4,-ERMS"},
    "FAISS": {"FAISS_OPT_LEVEL": "generic"},
}
LOWER |= {f"the core, {level}": {"METARANK_CPU_LEVEL": level} for level in reversed(_core.cpu_levels()[:-1])}
CORE = [level for level in LOWER if level.startswith("the core")]
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64",
    reason="forces levels of Linux on x86-64",
)


def child(command: str, folder: Path, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, str(CHILD), command, str(folder)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    child("save", folder)
    return folder


@pytest.fixture(scope="module")
def as_they_are(saved):
    return json.loads(child("answer", saved))


def differing(found: dict, expected: dict) -> dict[str, list[str]]:
    """What differs, by model."""
    assert found.keys() == expected.keys()
    of = {name: [what for what in found[name] if found[name][what] != expected[name][what]] for name in found}
    return {name: what for name, what in of.items() if what}


@pytest.mark.parametrize("level", [*(name for name in LOWER if name != "FAISS"), "all"])
def test_saved_models_answer_the_same_bytes(level, saved, as_they_are):
    lower = {key: value for part in LOWER.values() for key, value in part.items()} | THREADS
    found = json.loads(child("answer", saved, **(lower if level == "all" else LOWER[level])))
    assert len(found) >= 20
    assert differing(found, as_they_are) == {}


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    return digests_of_fits(tmp_path_factory.mktemp("fits") / "highest.json")


def digests_of_fits(out: Path, **environment: str) -> dict:
    """Of models of every kind, fitted anew: what they answer and all arrays that they hold."""
    command = [sys.executable, str(HERE.parent / "golden" / "make.py"), "fit", str(out)]
    subprocess.run(
        command, env=os.environ | THREADS | environment, capture_output=True, check=True, timeout=600
    )
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.parametrize("level", CORE)
def test_fits_hold_the_same_bytes_on_every_level_of_the_core(level, fits, tmp_path):
    found = digests_of_fits(tmp_path / "fits.json", **LOWER[level])
    assert len(found) >= 20
    assert {name for name in fits | found if found.get(name) != fits.get(name)} == set()


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles a library to be preloaded")
def test_no_answer_asks_the_c_library(saved, as_they_are, tmp_path):
    """Where exp, log and pow err by one part in ten thousand, nothing changes: as on any other platform."""
    library = tmp_path / "erring.so"
    command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(HERE / "erring_libm.c"), "-ldl", "-lm"], check=True)
    found = json.loads(child("answer", saved, LD_PRELOAD=str(library)))
    assert differing(found, as_they_are) == {}

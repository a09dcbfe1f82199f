"""The runner of `make sanitize`: it finds reports, counts calls, and has tests use its own core."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sanitize.build import reports_in
from sanitize.calls import Calls
from sanitize.run import TESTS, missed

from metarank import _core

LOG = """\
==7==WARNING: ASan is ignoring requested __asan_handle_no_return
gram.cpp:12:5: runtime error: load of misaligned address 0x01 for type 'const float'
    #0 0x7f in row_norms gram.cpp:12
=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x02
    #0 0x7f in row_norms gram.cpp:13
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8
"""


def test_reports_are_found_one_by_one():
    first, second, third = reports_in(LOG)
    assert first.startswith("gram.cpp:12:5: runtime error: load of misaligned")
    assert second.startswith("==7==ERROR: AddressSanitizer: heap-buffer-overflow")
    assert second.endswith("gram.cpp:13")
    assert third.endswith("Write of size 8")
    assert reports_in("==7==WARNING: ASan is ignoring requested __asan_handle_no_return\n") == []


def core_of(*names):
    """A module of some of the core's own, for `Calls` to change."""
    module = ModuleType("core")
    for name in names:
        setattr(module, name, getattr(_core, name))
    return module


def test_calls_are_counted_and_errors_are_not():
    core = core_of("row_norms", "vector_scores", "fold_of_rows")
    calls = Calls(core)
    Q, bias = np.ones((2, 3), np.float32), np.zeros(2, np.float32)
    assert np.array_equal(core.vector_scores(Q, Q, bias, 1), np.full((2, 2), 3))
    with pytest.raises(TypeError):
        core.row_norms("rows")
    assert calls.names == ["row_norms", "vector_scores", "fold_of_rows"]
    assert calls.called == {"vector_scores"}
    assert calls.threaded == {"vector_scores"}


def test_what_is_not_called_or_never_with_threads_is_missed():
    files = {path.stem for path in Path(__file__).parents[1].glob("test_*/test_*.py")}
    assert {f"test_{name}" for name in TESTS} <= files
    found = {
        "entry_points": ["alone", "unused", "serial", "parallel"],
        "called": ["alone", "parallel", "serial"],
        "threaded": ["parallel", "serial"],
        "with_threads": ["parallel"],
    }
    assert missed(found) == ["unused", "serial"]


def test_the_core_that_is_named_is_the_one_imported(tmp_path):
    """Whatever finds the installed one: an editable install has a finder of its own."""
    core = shutil.copy(_core.__file__, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "from sanitize.core import import_core; print(import_core().__file__)"],
        env={**os.environ, "METARANK_SANITIZED_CORE": core, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == core

"""`metarank.show_config`."""

from __future__ import annotations

import numpy as np
import pytest

import metarank
from metarank import _core


def test_it_tells_what_metarank_runs_on():
    found = metarank.show_config(as_dict=True)
    assert found["versions"]["metarank"] == metarank.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert all(
        found["versions"][name] for name in ("scipy", "scikit-learn", "lightgbm", "faiss-cpu", "python")
    )
    assert (found["cpu_level"], found["cpu_levels"]) == (_core.cpu_level(), _core.cpu_levels())
    assert found["compiler"].split()[0] in ("GCC", "Clang")
    assert found["threads"] >= 1
    assert {"openmp", "blas"} <= {pool["user_api"] for pool in found["thread_pools"]}


def test_it_prints_the_same(capsys):
    assert metarank.show_config() is None
    said = capsys.readouterr().out
    found = metarank.show_config(as_dict=True)
    for value in [
        *found["versions"].values(),
        found["cpu_level"],
        *(p["file"] for p in found["thread_pools"]),
    ]:
        assert str(value) in said


def test_an_absent_library_is_told_as_absent(monkeypatch, capsys):
    monkeypatch.setattr("metarank._util.config._LIBRARIES", {"absent-one": "no_such_library"})
    assert metarank.show_config(as_dict=True)["versions"]["absent-one"] is None
    metarank.show_config()
    assert "absent-one absent" in " ".join(capsys.readouterr().out.split())


def test_as_dict_is_a_bool():
    with pytest.raises(TypeError, match="as_dict must be True or False, got 'yes'"):
        metarank.show_config(as_dict="yes")

"""`metarank.show_config`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import metarank
from metarank import _core


def test_it_tells_what_metarank_runs_on(monkeypatch, capsys):
    config = metarank.show_config(as_dict=True)
    assert config["versions"]["metarank"] == metarank.__version__
    assert config["versions"]["numpy"] == np.__version__
    assert all(
        config["versions"][name] for name in ("scipy", "scikit-learn", "lightgbm", "faiss-cpu", "python")
    )
    assert (config["cpu_level"], config["cpu_levels"]) == (_core.cpu_level(), _core.cpu_levels())
    assert config["compiler"].split()[0] in ("GCC", "Clang")
    assert config["threads"] >= 1
    assert {"openmp", "blas"} <= {pool["user_api"] for pool in config["thread_pools"]}
    assert metarank.show_config() is None
    assert json.loads(capsys.readouterr().out) == config

    monkeypatch.setattr("metarank._util.config._LIBRARIES", {"absent-one": "no_such_library"})
    assert metarank.show_config(as_dict=True)["versions"]["absent-one"] is None
    with pytest.raises(TypeError, match="as_dict must be True or False, got 'yes'"):
        metarank.show_config(as_dict="yes")

"""Models saved by earlier versions load, and answer as they did then: for ever.

`compatibility/VERSION/NAME` is a model, `NAME.json` beside it rows and what it said about them;
`compatibility/make.py` writes the folder of a version, once. `compatibility/kinds/NAME` is a model of one
kind, and `kinds.json` says by digests all that it answered.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metarank
from metarank import load

HERE = Path(__file__).parents[1] / "compatibility"
SAVED = sorted(path.parent.relative_to(HERE) for path in HERE.glob("0.*/*/manifest.json"))
KINDS = json.loads((HERE / "kinds.json").read_text(encoding="utf-8"))


def test_there_is_a_fixture_of_this_version():
    """Before a release: `python tests/compatibility/make.py`."""
    assert metarank.__version__ in {path.parts[0] for path in SAVED}
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < 3.6 * 2**20


@pytest.mark.parametrize("saved", SAVED, ids=str)
@pytest.mark.parametrize("verify", [True, False], ids=["verified", "mapped at once"])
def test_a_saved_model_answers_as_it_did(saved, verify, monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    from make import answers

    model = load(HERE / saved, verify=verify)
    expected = json.loads((HERE / f"{saved}.json").read_text(encoding="utf-8"))
    found = answers(model, expected["rows"])
    assert found.keys() == expected["answers"].keys()
    for name, values in expected["answers"].items():
        if name in ("scores", "probabilities"):
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6)
        else:
            assert found[name] == values


@pytest.mark.parametrize("name", KINDS)
def test_a_model_of_every_kind_answers_the_same_bytes(name, monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr("metarank.types.dense_index.LEAST_ROWS", 1)
    from digests import answered

    assert answered(HERE / "kinds" / name) == KINDS[name]


def test_what_was_saved_is_never_saved_again():
    run = subprocess.run([sys.executable, str(HERE / "make.py")], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "never saved again" in run.stderr

"""A saved model of every kind loads and answers the bytes it answered when it was made (`golden/make.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parents[1] / "golden"
KINDS = json.loads((HERE / "kinds.json").read_text(encoding="utf-8"))


def test_golden_models_are_few_and_small():
    folders = [path for path in (HERE / "kinds").iterdir() if path.is_dir()]
    assert {path.name for path in folders} == set(KINDS)
    assert len(folders) <= 40
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < 4 * 2**20


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_model_answers_as_it_did(name, monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr("metarank.types.dense_index.LEAST_ROWS", 1)
    from make import answered

    said = answered(HERE / "kinds" / name)
    # NumPy 1 writes the numbers of explanations in another way.
    as_written = {what for what in said if what.startswith("explanation") and np.__version__ < "2"}
    assert {**said, **{what: KINDS[name][what] for what in as_written}} == KINDS[name]

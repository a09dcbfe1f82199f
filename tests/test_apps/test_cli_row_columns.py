"""Columns of a training file: groups of rows, and labels that a person rejected."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pytest

from metarank import MetaRanker, data, load
from metarank.apps.cli import main

TEXTS = ["tea and cake", "wine and bread", "tea with milk", "bread and cheese", "wine or tea", "cheese cake"]
LABELS = [["tea", "cake"], ["wine", "bread"], ["tea"], ["bread"], ["wine", "tea"], ["cheese", "cake"]]
REJECTED = [["wine"], [], ["cake", "rum"], [], ["bread"], []]
ROWS = 48


@pytest.fixture(scope="module", params=["csv", "jsonl", "parquet"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / f"train.{request.param}"
    rows = [
        {"text": TEXTS[i % 6], "labels": LABELS[i % 6], "author": f"a{i // 4}", "not": REJECTED[i % 6]}
        for i in range(ROWS)
    ]
    if request.param == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif request.param == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        pa = pytest.importorskip("pyarrow")
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with open(path, "w", newline="") as f:
            out = csv.DictWriter(f, list(rows[0]))
            out.writeheader()
            out.writerows(row | {name: ";".join(row[name]) for name in ("labels", "not")} for row in rows)
    return path


def train(file, folder, *more):
    options = shlex.split("--text-column text --labels-column labels --effort low --ranker logistic")
    return main(["train", str(file), "--model", str(folder), "--jobs", "1", "--quiet", *options, *more])


def test_the_encoding_is_that_of_every_column(tmp_path, capsys):
    path, model = tmp_path / "rows.csv", tmp_path / "m"
    lines = [f"é{i};{TEXTS[i % 6]};{','.join(LABELS[i % 6])};ä{i // 4}" for i in range(ROWS)]
    path.write_bytes("\n".join(["id;text;labels;author", *lines]).encode("latin-1"))
    assert train(path, model, "--groups-column", "author", "--encoding", "latin-1") == 0
    assert main(["evaluate", str(model), str(path), "--slices", "author", "--encoding", "latin-1"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(path), "--encoding", "latin-1"]) == 0
    assert "(é0)" in capsys.readouterr().out


def test_as_in_python(file, tmp_path, capsys):
    assert train(file, tmp_path / "m", "--groups-column", "author", "--negatives-column", "not") == 0
    told = capsys.readouterr().err
    assert "column 'not': left out 8 labels without rows" in told
    assert "left out" not in told.replace("left out 8 labels", "")
    rows = data.load(file, text_column="text", labels_column="labels")
    known = [[name for name in REJECTED[i % 6] if name != "rum"] for i in range(ROWS)]
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1)
    model.fit(rows, groups=[i // 4 for i in range(ROWS)], negatives=known)
    found = load(tmp_path / "m")
    assert np.array_equal(found.decision_function(TEXTS), model.decision_function(TEXTS))
    assert [c for c in found.choices_ if c.startswith(("folds", "negatives"))] == [
        c for c in model.choices_ if c.startswith(("folds", "negatives"))
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--groups-column", "writer"], "--groups-column must be among"),
        (["--negatives-column", "no"], "--negatives-column must be among"),
    ],
)
def test_bad_columns(file, tmp_path, capsys, options, said):
    assert train(file, tmp_path / "m", *options) == 2
    assert said in capsys.readouterr().err

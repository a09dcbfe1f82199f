"""Files of scored candidates: trained on, asked with, measured, explained; what is malformed is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import makers
import numpy as np
import pandas as pd
import pytest

from metarank import MetaRanker, data, load
from metarank.apps.cli import main

TEXTS = ["tea and cake", "wine and bread", "tea with milk", "bread and cheese", "wine or tea", "cheese cake"]
LABELS = [["tea", "cake"], ["wine", "bread"], ["tea"]]
LABELS += [["bread", "cheese"], ["wine", "tea"], ["cheese", "cake"]]
NAMES = sorted({name for row in LABELS for name in row})
ROWS = 30


def scored(seed: int = 0) -> list[tuple[int, str, str, float]]:
    """Candidates of two sources for each row, of which one is mostly right."""
    rng = np.random.default_rng(seed)
    return [
        (row, name, source, round(float(rng.random() + right * (name in LABELS[row % 6])), 3))
        for row in range(ROWS)
        for source, right in (("bm25", 0.7), ("guess", 0.0))
        for name in NAMES
        if rng.random() < 0.8
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A training file, its candidates as CSV and Parquet, one feature of pairs, and a model of them."""
    folder = tmp_path_factory.mktemp("candidates")
    with open(folder / "train.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["text", "labels"])
        out.writerows([TEXTS[i % 6], ";".join(LABELS[i % 6])] for i in range(ROWS))
    with open(folder / "found.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["row", "label", "source", "score"])
        out.writerows(scored())
    with open(folder / "clicks.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["row", "label", "score"])
        out.writerows((row, LABELS[row % 6][0], row % 3) for row in range(ROWS))
    assert main(train(folder, "model")) == 0
    return folder


def train(folder: Path, model: str, *more: str, found: str = "found.csv") -> list[str]:
    given = ["--candidates", str(folder / found), "--pair-features", str(folder / "clicks.csv")]
    files = [str(folder / "train.csv"), "--model", str(folder / model)]
    return ["train", *files, *makers.QUICKLY, *given, *more]


def asked(folder: Path, command: str, *more: str) -> list[str]:
    """A command on the training file and what is given of it."""
    given = ["--candidates", str(folder / "found.csv"), "--pair-features", str(folder / "clicks.csv")]
    return [command, str(folder / "model"), str(folder / "train.csv"), *more, *given]


def test_as_from_python(files, capsys):
    rows, pairs = data.load(files / "train.csv"), data.read_candidates(files / "found.csv")
    given = {"candidates": pairs, "pair_features": data.read_candidates(files / "clicks.csv")}
    model = MetaRanker(effort="low", ranker="logistic", n_folds=2, n_jobs=1).fit(rows, **given)
    assert model.fitted_.given_sources == ["bm25", "guess"]
    here, there = model.rank(rows, k=3, **given), load(files / "model").rank(rows, k=3, **given)
    np.testing.assert_array_equal(here.scores, there.scores)
    capsys.readouterr()
    assert main(asked(files, "predict", "--top", "3", "--format", "jsonl")) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[e["label"] for e in line["labels"]] for line in lines] == [
        [label for label, _ in row] for row in here
    ]
    assert main(asked(files, "predict", "--optimize", "micro-f1")) == 0


def test_measured_and_explained(files, capsys):
    capsys.readouterr()
    assert main(asked(files, "evaluate", "--metrics", "P@1,micro-F1", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["P@1"] > 0.6
    assert main(asked(files, "explain", "--row", "4", "--top", "1", "--json")) == 0
    (page,) = json.loads(capsys.readouterr().out)
    pairs = {"candidates": data.read_candidates(files / "found.csv")}
    pairs["pair_features"] = data.read_candidates(files / "clicks.csv")
    ranking = load(files / "model").rank(data.load(files / "train.csv"), k=1, **pairs)
    assert page["label"] == ranking.labels[4, 0]
    assert page["score"] == ranking.scores[4, 0]


def test_parquet_says_what_csv_says(files):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    row, label, source, score = zip(*scored())
    pq.write_table(
        pa.table({"row": row, "label": label, "source": source, "score": score}), files / "found.parquet"
    )
    a, b = (data.read_candidates(files / f"found.{ending}") for ending in ("csv", "parquet"))
    np.testing.assert_array_equal(a.row, b.row)
    np.testing.assert_array_equal(a.score, b.score)
    assert list(a.label) == list(b.label)
    assert a.source == b.source


def test_union(files, capsys):
    assert main(train(files, "union", "--candidates-mode", "union", "--shortlister", "neighbors")) == 0
    assert [s.name for s in load(files / "union").sources_ if s.proposes] == [
        "NeighborShortlister",
        "GivenScorer",
        "GivenScorer",
    ]


NOTHING_OF = {  # what a file holds, and the lists of (label, score) of the first row by source
    "one source": ("row,label,source,score\n0,tea,bm25,1\n", {"bm25": [("tea", 1.0)], "guess": []}),
    "all": ("row,label,source,score\n", {"bm25": [], "guess": []}),
    "all, unnamed": ("row,label,score\n", {"bm25": [], "guess": []}),
}


@pytest.mark.parametrize("case", NOTHING_OF)
def test_a_source_that_finds_nothing_has_no_line(files, case, tmp_path, capsys):
    content, first = NOTHING_OF[case]
    (tmp_path / "found.csv").write_text(content)
    (tmp_path / "clicks.csv").write_text("row,label,score\n")
    model, rows = load(files / "model"), data.load(files / "train.csv")
    none = [[]] * ROWS
    expected = model.rank(
        rows,
        k=2,
        candidates={source: [pairs, *none[1:]] for source, pairs in first.items()},
        pair_features={"pair": none},
    )
    pairs = {"candidates": data.read_candidates(tmp_path / "found.csv")}
    pairs["pair_features"] = data.read_candidates(tmp_path / "clicks.csv")
    np.testing.assert_array_equal(model.rank(rows, k=2, **pairs).scores, expected.scores)
    pairs["candidates"] = pd.read_csv(tmp_path / "found.csv")
    np.testing.assert_array_equal(model.rank(rows, k=2, **pairs).scores, expected.scores)
    capsys.readouterr()
    given = ["--candidates", str(tmp_path / "found.csv"), "--pair-features", str(tmp_path / "clicks.csv")]
    predict = ["predict", str(files / "model"), str(files / "train.csv"), "--top", "2", "--format", "jsonl"]
    assert main([*predict, *given]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[e["label"] for e in line["labels"]] for line in lines] == [
        [label for label, _ in row] for row in expected
    ]


BAD = [
    ("row,label,score\n0,moon,1\n", "'moon'"),
    ("row,label,score\n0,tea,inf\n", "must hold finite scores, got inf"),
    ("row,label,score\n0,tea,much\n", "line 2: score must be a number, got 'much'"),
    ("row,label,score\nx,tea,1\n", "line 2: row must be a position >= 0, got 'x'"),
    ("row,label,score\n99,tea,1\n", "must hold rows in [0, 30), got 99"),
    ("row,label\n0,tea\n", "must have the columns row, label and score"),
    ("row,label,source,score\n0,tea,,1\n", "line 2: source must not be empty"),
    ("row,label,source\n", "must have the columns row, label and score, got ['row', 'label', 'source']"),
    ("row,label,source,score\n0,tea,other,1\n", "got 'bm25', 'guess', 'other'"),
    ("row,label,source,score\n0,tea,bm25,1\n0,tea,guess,1\n0,tea,other,1\n", "got 'bm25', 'guess', 'other'"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_what_is_malformed_is_one_line(files, content, message, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text(content)
    capsys.readouterr()
    given = ["--candidates", str(tmp_path / "bad.csv"), "--pair-features", str(files / "clicks.csv")]
    assert main(["predict", str(files / "model"), str(files / "train.csv"), *given]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert message in said.err


def test_refused_before_any_work(files, capsys):
    assert (
        main(["predict", str(files / "model"), str(files / "train.csv"), "--candidates", "nowhere.csv"]) == 2
    )
    assert main(train(files, "other", found="nowhere.csv")) == 2
    assert main(["predict", str(files / "model"), str(files / "train.csv")]) == 2
    assert "candidates must hold those of the fit, 'bm25', 'guess'" in capsys.readouterr().err
    assert not (files / "other").exists()

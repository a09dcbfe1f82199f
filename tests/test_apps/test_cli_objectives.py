"""``metarank diagnose`` and ``metarank pareto``: files of every kind, as from Python, and bad input."""

from __future__ import annotations

import gzip
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from makers import run
from test_cli import assert_refused

from metarank import MultiObjectiveRanker, load, objectives, pareto_front
from metarank.apps.cli import main
from metarank.data.columns import read_columns

FEATURES = ["f1", "f2", "f3"]
QUICK = ["--rounds", "4", "--weights", "3", "--jobs", "1", "--quiet"]


def make_rows(n=400, seed=0):
    """(X, Y, queries) with numbers that survive being written with three decimals."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    Y = np.column_stack(
        [(X[:, 0] + rng.normal(size=n) > 0) * 2.0, X[:, 1] - X[:, 0] + rng.normal(size=n) > 1]
    )
    return X, Y.astype(float), rng.integers(0, n // 10, n)


def texts_of(X, Y, queries):
    """The rows as a CSV with columns that are no numbers, too."""
    lines = ["shop,query,f1,f2,f3,relevance,clicks,score,note"]
    for i, (x, y, q) in enumerate(zip(X, Y, queries)):
        cells = [f"shop {i % 3}", f"q{q}", *(f"{v:g}" for v in x), *(f"{v:g}" for v in y), f"{x[0]:g}"]
        lines.append(",".join([*cells, '"a, b"']))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """A folder with the same rows in every format; not to be changed."""
    folder = tmp_path_factory.mktemp("work")
    X, Y, queries = make_rows()
    text = texts_of(X, Y, queries)
    (folder / "rows.csv").write_text(text)
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    plain = text.replace('"a, b"', "a")
    (folder / "rows.tsv").write_text(plain.replace(",", "\t"))
    (folder / "semicolons.csv").write_text("\ufeff" + plain.replace(",", ";").replace("\n", "\r\n"))
    columns = {"shop": ["s"] * len(X), "query": [f"q{q}" for q in queries]}
    columns |= dict(zip(FEATURES, X.T)) | {"relevance": Y[:, 0].astype(np.int8), "clicks": Y[:, 1] > 0}
    columns |= {"score": X[:, 0], "note": ["a, b"] * len(X)}
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    rows = [" ".join(f"{j}:{v:g}" for j, v in enumerate([*x, y[1]], 1)) for x, y in zip(X, Y)]
    lines = [f"{y[0]:g} qid:{q} {row} # doc" for y, q, row in zip(Y, queries, rows)]
    (folder / "letor.txt").write_text("# a comment\n\n" + "\n".join(lines) + "\n")
    lines = [f"{y[0]:g} {row} 9:{q}" for y, q, row in zip(Y, queries, rows)]
    (folder / "plain.svm").write_text("\n".join(lines) + "\n")
    return folder


def answer(argv, capsys):
    assert run([*argv, "--json"]) == 0, capsys.readouterr().err
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


# --- diagnose ------------------------------------------------------------------


def test_diagnose_says_what_python_says(work, capsys):
    _, Y, queries = make_rows()
    targets = dict(zip(["relevance", "clicks"], Y.T))
    expected = objectives.diagnose(targets, weights=[2, 1], qid=queries)
    argv = ["diagnose", work / "rows.csv", "--targets", "relevance, clicks"]
    argv += ["--query", "query", "--weights", "2,1"]
    found = answer(argv, capsys)
    for name in ("pi", "spread", "loss_shares", "n_queries"):
        np.testing.assert_allclose(found[name], expected.to_dict()[name], rtol=1e-12)
    assert run(argv) == 0
    page = capsys.readouterr().out
    assert "400 rows, 2 objectives, 40 queries" in page
    assert "balanced weight" in page
    assert set(answer([*argv, "--features", "f1,f2"], capsys)["cross_validated"]) == {"label", "loss"}


@pytest.mark.parametrize("file", ["rows.csv.gz", "rows.tsv", "semicolons.csv", "rows.parquet"])
def test_every_format_gives_the_same(work, capsys, file):
    options = ["--targets", "relevance,clicks", "--query", "query"]
    first, second = (answer(["diagnose", work / f, *options], capsys) for f in ("rows.csv", file))
    assert first == second
    first, second = (answer(["pareto", work / f, *options, *QUICK], capsys) for f in ("rows.csv", file))
    assert first == second
    assert first["features"] == [*FEATURES, "score"]
    assert first["left_out"] == ["shop", "note"]


def test_letor_text(work, capsys):
    found = answer(["diagnose", work / "letor.txt", "--targets", "grade,4"], capsys)
    X, Y, queries = make_rows()
    expected = objectives.diagnose(Y, qid=queries).to_dict()
    assert found["names"] == ["grade", "4"]
    assert found["spread"] == expected["spread"]
    assert answer(["diagnose", work / "plain.svm", "--targets", "grade"], capsys)["n_queries"] == 0
    by_number = answer(["diagnose", work / "plain.svm", "--targets", "grade,4", "--query", "9"], capsys)
    assert by_number == found
    front = answer(["pareto", work / "letor.txt", "--targets", "grade,4", *QUICK], capsys)
    assert front["features"] == ["1", "2", "3"]
    ranker = MultiObjectiveRanker(n_rounds=4, n_jobs=1)
    Y = {"grade": Y[:, 0], "4": Y[:, 1]}
    own = pareto_front(X, Y, ranker=ranker, n_weights=3, qid=queries)
    assert front["points"] == own.to_dict()["points"]


def test_propensities_are_those_of_python(work, capsys):
    X, Y, _ = make_rows()
    argv = ["pareto", work / "rows.csv", "--targets", "relevance,clicks", *QUICK]
    argv += ["--features", ",".join(FEATURES), "--propensities", "1,0.5"]
    front = answer(argv, capsys)
    ranker = MultiObjectiveRanker(n_rounds=4, n_jobs=1)
    targets = {"relevance": Y[:, 0], "clicks": Y[:, 1]}
    own = pareto_front(X, targets, ranker=ranker, n_weights=3, propensities=[1, 0.5])
    assert front["points"] == own.to_dict()["points"]
    within = answer([*argv, "--query", "query"], capsys)
    assert within["metric"] == "auc"
    for wrong in ("0.5", "0,1", "1,2"):
        assert run([*argv[:-1], wrong]) == 2
        assert "--propensities must " in capsys.readouterr().err


# --- pareto --------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--query", "query"]], ids=["rows", "queries"])
def test_pareto_says_what_python_says(work, tmp_path, capsys, options):
    X, Y, queries = make_rows()
    argv = ["pareto", work / "rows.csv", "--targets", "relevance,clicks", "--features", "f1,f2,f3", *options]
    argv += [*QUICK, "--seed", "3", "--out", tmp_path / "a" / "b", "--save", tmp_path / "model"]
    found = answer(argv, capsys)
    ranker = MultiObjectiveRanker(n_rounds=4, random_state=3, n_jobs=1)
    # Queries that are texts count by their place in the sorted list.
    qid = np.char.add("q", queries.astype(str)) if options else None
    own = pareto_front(X, dict(zip(["relevance", "clicks"], Y.T)), ranker=ranker, n_weights=3, qid=qid)
    assert found == {"features": FEATURES, "left_out": [], **own.to_dict()}
    assert sorted(os.listdir(tmp_path / "a" / "b")) == ["front.json", "front.svg"]
    assert json.loads((tmp_path / "a" / "b" / "front.json").read_text()) == found
    ET.parse(tmp_path / "a" / "b" / "front.svg")
    model = load(tmp_path / "model")
    assert isinstance(model, MultiObjectiveRanker)
    np.testing.assert_array_equal(model.predict(X), own.models[own.knee].predict(X))
    frame = pd.DataFrame(X, columns=FEATURES)
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[FEATURES[::-1]])


def test_pareto_shows_a_table_and_what_it_left_out(work, tmp_path, capsys):
    argv = ["pareto", work / "rows.csv", "--targets", "relevance,clicks", "--query", "query", *QUICK]
    assert run([*argv, "--out", tmp_path, "--save", tmp_path / "model"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0] == "4 features (f1, f2, f3, score); left out, not numbers: shop, note"
    assert lines[1].startswith("6 points, ")
    assert "nDCG@10 relevance" in captured.out
    assert lines[-3].startswith("written: ")
    assert lines[-1].startswith("saved: ")
    # A second run replaces the files, whatever else is there.
    before = (tmp_path / "front.json").read_bytes()
    assert run([*argv, "--out", tmp_path]) == 0
    assert (tmp_path / "front.json").read_bytes() == before


def test_threads_do_not_show_and_progress_is_plain_lines(work, tmp_path, capsys):
    outs = []
    for jobs in ("1", "4"):
        argv = ["pareto", work / "rows.csv", "--targets", "relevance,clicks"]
        argv += ["--rounds", "3", "--weights", "2"]
        assert run([*argv, "--jobs", jobs, "--out", tmp_path / jobs]) == 0
        captured = capsys.readouterr()
        assert "relevance alone" in captured.err
        assert "100 %  done" in captured.err
        assert "\r" not in captured.err
        outs.append([(tmp_path / jobs / name).read_bytes() for name in ("front.json", "front.svg")])
    assert outs[0] == outs[1]


# --- the reader ----------------------------------------------------------------


def test_columns_of_numbers_and_of_others(tmp_path):
    text = "id,a,b,c,d\n007,1,,x,1\n7,2e1, 3 ,1,2\n\n8,-.5,nan,2,3\n9,4,4,3,oops\n"
    (tmp_path / "t.csv").write_text(text)
    columns = read_columns(tmp_path / "t.csv")
    assert (columns.n_rows, columns.names) == (4, ["id", "a", "b", "c", "d"])
    assert list(columns.numeric) == ["id", "a", "b"]
    assert columns.wrong == {"c": "'x' at row 0", "d": "'oops' at row 3"}
    np.testing.assert_array_equal(columns.values[:, columns.numeric["b"]], [np.nan, 3, np.nan, 4])
    np.testing.assert_array_equal(columns.numbers("a", "x"), [1, 20, -0.5, 4])
    assert columns.matrix(["a", "id"], "x").tolist() == [[1, 7], [20, 7], [-0.5, 8], [4, 9]]
    assert columns.matrix(["a"], "x").dtype == np.float32
    with pytest.raises(ValueError, match=r"t.csv: the column 'b' has no number at row 0"):
        columns.numbers("b", "--targets")
    assert read_columns(tmp_path / "t.csv", ids="d").ids.tolist() == ["1", "2", "3", "oops"]
    assert read_columns(tmp_path / "t.csv", ids="id").ids.tolist() == [7, 7, 8, 9]


def test_yes_and_no_are_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("loan,rich,job\nyes,TRUE,cook\nno,,no\nYes,False,yes\n")
    columns = read_columns(path)
    assert columns.numbers("loan", "target").tolist() == [1, 0, 1]
    np.testing.assert_array_equal(columns.values[:, columns.numeric["rich"]], [1, np.nan, 0])
    assert columns.wrong == {"job": "'cook' at row 0"}


def test_svmlight_ids_from_0_and_from_1(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:2 2:3\n0 1:1\n")
    columns = read_columns(tmp_path / "a.svm")
    assert columns.names == ["grade", "0", "1", "2"]
    assert columns.matrix(["2", "0", "7"], "x").toarray().tolist() == [[3, 2, 0], [0, 0, 0]]
    assert columns.matrix(["grade", "1"], "x").toarray().tolist() == [[1, 0], [0, 1]]
    (tmp_path / "a.svm").write_text("1 1:2 3:3\n0 2:1\n")
    assert read_columns(tmp_path / "a.svm").names == ["grade", "1", "2", "3"]


# --- bad input -----------------------------------------------------------------


BAD_FILES = {
    "empty": (b"", "empty"),
    "blank": (b"\n \n\n", "must have a name"),
    "no rows": (b"a,b\n", "no rows"),
    "binary": (bytes(range(256)) * 4, "UTF-8"),
    "truncated gz": (gzip.compress(b"a,b\n1,2\n" * 50)[:-20], "damaged"),
    "ARFF": (b"@relation x\n", "ARFF"),
    "broken Parquet": (b"PAR1 nothing of the kind PAR1", "arquet"),
    "too few fields": (b"a,b\n1,2\n1\n", "line 3 has 1 fields, the header has 2"),
    "open quotes": (b'a,b\n1,"2\n', "quotes"),
    "a name twice": (b"a,b,a\n1,2,3\n", "got 'a' twice"),
    "no name": (b"a,,b\n1,2,3\n", "column 1 has none"),
    "text": (b"a,b\n1,x\n0,y\n", "--targets must name columns of numbers, 'b' holds 'x' at row 0"),
    "missing": (b"a,b\n1,1\n0,\n", "the column 'b' has no number at row 1"),
    "negative": (b"a,b,c\n1,1,1\n0,-2,1\n", "'b' contains -2 at row 1"),
    "infinite": (b"a,b,c\n1,1,1\n0,inf,1\n", "'b' contains infinity (inf) at row 1"),
    "no such column": (b"a,c,d\n1,2,3\n", "--targets must be among ['a', 'c', 'd'], got 'b'"),
    "words as svmlight": (b"1 qid:1 1:0.5\nhello world\n", "FILE"),
    "svmlight of negative ids": (b"1 1:1\n0 -3:1\n", "FILE"),
    "some lines without qid": (b"1 qid:1 1:0.5\n0 1:1\n", "qid"),
}


@pytest.mark.parametrize("command", ["diagnose", "pareto"])
@pytest.mark.parametrize("content", BAD_FILES)
def test_bad_files(tmp_path, capsys, command, content):
    bytes_, match = BAD_FILES[content]
    (tmp_path / "FILE").write_bytes(bytes_)
    argv = [command, tmp_path / "FILE", "--targets", "a,b"]
    assert_refused([*argv, *(QUICK if command == "pareto" else [])], capsys, match=match)
    assert os.listdir(tmp_path) == ["FILE"]


TARGETS = ["--targets", "relevance,clicks"]


@pytest.mark.parametrize(
    ("argv", "match"),
    [
        (["diagnose"], "FILE"),
        (["diagnose", "GOOD"], "--targets"),
        (["diagnose", "NOFILE", *TARGETS], "NOFILE"),
        (["diagnose", "HERE", *TARGETS], "folder"),
        (["diagnose", "GOOD", "--targets", "relevance,,clicks"], "--targets must be comma-separated names"),
        (["diagnose", "GOOD", "--targets", "clicks,clicks"], "'clicks' twice"),
        (["diagnose", "GOOD", *TARGETS, "--query", "session"], "the column of queries must be among"),
        (["diagnose", "GOOD", *TARGETS, "--weights", "1"], "--weights must have 2 entries, got 1"),
        (["diagnose", "GOOD", *TARGETS, "--weights", "1,x"], "--weights must be comma-separated numbers"),
        (["diagnose", "GOOD", *TARGETS, "--weights", "0,0"], "--weights must be >= 0 and not sum to 0"),
        (["diagnose", "GOOD", "--targets", "relevance,one", "--query", "query"], "'one' has one value"),
        (["pareto", "GOOD"], "--targets"),
        (["pareto", "GOOD", "--targets", "clicks"], "at least two objectives"),
        (["pareto", "GOOD", *TARGETS, "--features", "f1,clicks"], "--features must not be targets"),
        (["pareto", "GOOD", *TARGETS, "--features", "f9"], "--features must be among"),
        (["pareto", "GOOD", *TARGETS, "--features", "shop"], "--features must name columns of numbers"),
        (["pareto", "BARE", *TARGETS], "there are no columns of numbers except the targets"),
        (["pareto", "GOOD", *TARGETS, "--weights", "1"], "--weights must be at least 2, got 1"),
        (["pareto", "GOOD", *TARGETS, "--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["pareto", "GOOD", *TARGETS, "--seed", "-1"], "--seed: must be an integer from 0 to 2147483647"),
        (["pareto", "GOOD", *TARGETS, "--jobs", "0"], "--jobs"),
        (["pareto", "GOOD", *TARGETS, "--out", "GOOD"], "--out must name a folder"),
        (["pareto", "GOOD", *TARGETS, "--out", "GOOD/x"], "Not a directory"),
        (["pareto", "GOOD", "--targets", "relevance,one", "--query", "query"], "'one' of the"),
    ],
)
def test_bad_usage(tmp_path, capsys, monkeypatch, argv, match):
    monkeypatch.setattr("metarank.objectives.learning.Training.fit", lambda self: pytest.fail("trained"))
    text = texts_of(*make_rows(60)).replace("\n", ",1\n").replace("note,1", "note,one")
    (tmp_path / "rows.csv").write_text(text)
    (tmp_path / "bare.csv").write_text("relevance,clicks\n1,0\n0,1\n1,1\n")
    places = {"GOOD": "rows.csv", "BARE": "bare.csv", "NOFILE": "NOFILE", "GOOD/x": "rows.csv/x"}
    filled = [tmp_path / places[a] if a in places else tmp_path if a == "HERE" else a for a in argv]
    assert_refused([*filled, *(["--quiet"] if argv[0] == "pareto" else [])], capsys, match=match)
    assert sorted(os.listdir(tmp_path)) == ["bare.csv", "rows.csv"]


def test_inspect_tells_of_a_ranker_of_several_objectives(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = {"relevance": (X[:, 0] > 0).astype(int), "clicks": (X[:, 1] > 0).astype(int)}
    MultiObjectiveRanker(n_rounds=3).fit(X, Y).save(tmp_path / "ranker")
    assert main(["inspect", str(tmp_path / "ranker")]) == 0
    said = capsys.readouterr().out
    assert "relevance, clicks" in said
    assert "MultiObjectiveRanker" in said

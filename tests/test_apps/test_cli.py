"""The command line: exit codes, one line for bad input, and nothing half-written."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import Mock

import makers
import numpy as np
import pytest
from makers import run

from metarank import Dataset, MetaRanker, data, load, metrics
from metarank.apps.cli import COMMANDS, main
from metarank.apps.cli._printing import GuardedStream, in_options
from metarank.persist import read_manifest

MISSED = ["unknown_labels", "unknown_pairs", "removed_labels", "removed_pairs"]
ROWS = "0 0:1 1:0.5\n1 1:2\n0,1 0:0.3 2:1\n2 2:1.5 3:1\n"
TABLE = "text,labels\nsalt and flour,bread\nthe wave,the sea\n"


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """A folder with data files and two models; not to be changed."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).round(2)
    lines = [
        ",".join(str(j) for j in range(3) if x[j] > 0) + " " + " ".join(f"{j}:{v}" for j, v in enumerate(x))
        for x in X
    ]
    (folder / "train.svm").write_text("\n".join(lines) + "\n")
    (folder / "train.txt").write_text("\n".join(["30 4 3", *lines]) + "\n")
    (folder / "rows.svm").write_text(ROWS)
    (folder / "talk.csv").write_text(TABLE)
    (folder / "numbers").mkdir()
    shutil.move(folder / "numbers", folder / "gone")
    assert run(["train", folder / "train.txt", "--model", folder / "numbers", *makers.QUICKLY]) == 0
    makers.fitted("texts").save(folder / "words")
    (folder / "gone").rmdir()
    return folder


# --- what works ------------------------------------------------------------------


def test_train_evaluate_predict_explain_inspect(work, tmp_path, capsys):
    assert run(["evaluate", work / "numbers", work / "train.svm", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    through = values.pop("surest_rows")
    assert list(through) == ["10%", "25%", "50%", "75%", "100%"]
    assert through["100%"]["f1"] == pytest.approx(values["example-F1"], abs=0.2)
    assert {"MAP", "RankLoss", "nDCG", "One-error", "micro-F1", "Hamming", "P@1", "PSP@5"} <= set(values)
    assert all(0 <= v <= 1 for name, v in values.items() if name != "Coverage")
    assert values["MAP"] > 0.9
    assert (
        run(["evaluate", work / "numbers", work / "train.svm", "--metrics", "P@1,Coverage", "--intervals"])
        == 0
    )
    assert capsys.readouterr().out.splitlines()[0].split() == ["metric", "value", "95", "%", "interval"]
    model = load(work / "numbers")
    names = ["WP@2", "WP-l@3", "XMAD@2", "XRMSE-l@3", "MAD", "AUPRC"]
    arguments = ["evaluate", work / "numbers", work / "train.svm", "--metrics", ",".join(names)]
    assert run([*arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert list(values) == [*names, "propensity_weight", *MISSED]
    train = data.load(work / "train.svm")
    expected = metrics.evaluate(train.Y, model.predict_proba(train), ["XMAD@2", "MAD", "AUPRC"])
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert run(arguments) == 0
    table = dict(line.split() for line in capsys.readouterr().out.splitlines()[1:-1])
    assert table["WP@2"] == f"{100 * values['WP@2']:.2f}"
    assert table["XMAD@2"] == f"{values['XMAD@2']:.4f}"
    out = tmp_path / "top.txt"
    assert run(["predict", work / "numbers", work / "train.svm", "--top", "2", "--out", out]) == 0
    expected = [
        line
        for i, row in enumerate(model.rank(train, k=2))
        for line in (f"row {i}", *(f"{score:8.3f}  {label}" for label, score in row))
    ]
    assert out.read_text().splitlines() == expected
    assert run(["explain", work / "numbers", work / "train.svm", "--row", "3", "--label", "1"]) == 0
    assert "label 1: rank" in capsys.readouterr().out
    assert run(["explain", work / "words", "--text", "salt and flour", "--top", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["label_name"] == "bread"
    for path in (work / "numbers", work / "words", work / "train.svm", work / "talk.csv"):
        assert run(["inspect", path]) == 0
    assert "logistic" in capsys.readouterr().out


def test_what_to_review_first(work, capsys):
    model, rows = makers.fitted("texts"), work / "talk.csv"
    missing, queue = model.suggest_missing(2), model.review_queue(data.load(rows), 2, goal="errors")
    for options, pairs in (([], missing), ([rows, "--goal", "errors"], queue)):
        assert run(["review", work / "words", *options, "--top", "2"]) == 0
        lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert {"row_name", *pairs[0]._fields} == lines[0].keys()
        assert [line["row"] for line in lines] == [str(pair.row) for pair in pairs]
        found = [float(line["probability"]) for line in lines]
        assert found == pytest.approx([pair.probability for pair in pairs], rel=1e-5)
    assert run(["review", work / "words", "--goal", "errors"]) == 2
    assert "--goal needs INPUT" in capsys.readouterr().err


def test_ids_of_a_vocabulary_are_written(tmp_path, capsys):
    ds = makers.texts()
    table = [{"id": f"u{i}", "name": name} for i, name in enumerate(ds.label_names)]
    MetaRanker(**makers.QUICK).fit(ds, labels=table).save(tmp_path / "m")
    rows = tmp_path / "r.csv"
    rows.write_text("id,text\na7,salt\nb8,bread\n")
    predict = ["predict", tmp_path / "m", rows, "--top", "2", "--format", "csv"]
    for command, titles in ((predict, [None, None]), (["review", tmp_path / "m", rows], ["salt", "bread"])):
        assert run([*command, "--text-column", "text"]) == 0
        lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert {line["id"] for line in lines} == {"a7", "b8"}
        for line in lines:
            at, found = int(line["row"]), (line["label_id"], line["id"], line.get("row_name"))
            assert found == (f"u{line['label']}", ["a7", "b8"][at], titles[at])


def test_evaluate_by_slices(work, tmp_path, capsys):
    lines = ["text,labels,source"]
    lines += [f"{text},{'web' if i % 3 else 'book'}" for i, text in enumerate(TABLE.splitlines()[1:] * 6)]
    (tmp_path / "test.csv").write_text("\n".join(lines) + "\n")
    arguments = ["evaluate", work / "words", tmp_path / "test.csv", "--metrics", "P@1,R@2,micro-F1,XMAD@1"]
    assert run([*arguments, "--slices", "source,label frequency"]) == 0
    out = capsys.readouterr().out.split("\n\n")
    assert [part.split()[0] for part in out] == ["metric", "source", "label", "surest"]
    assert [line.split()[:2] for line in out[1].splitlines()[2:]] == [["book", "4"], ["web", "8"]]
    assert "XMAD" not in out[2]
    assert run([*arguments, "--slices", "source,label frequency", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said["slices"]) == ["source", "label frequency"]
    assert sum(part["rows"] * part["P@1"] for part in said["slices"]["source"].values()) == pytest.approx(
        12 * said["P@1"]
    )
    by_label = said["slices"]["label frequency"].values()
    assert sum(part["P@1"] for part in by_label) == pytest.approx(said["P@1"])
    for argument, said in (("nothing", "--slices must be among"), ("a,,b", "comma-separated")):
        assert run([*arguments, "--slices", argument]) == 2
        assert said in capsys.readouterr().err
    assert run(["evaluate", work / "words", "-", "--slices", "source"]) == 2
    assert "--slices needs a file" in capsys.readouterr().err


def test_inspect_says_the_same_as_json(work, capsys):
    assert run(["inspect", work / "words", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["digest"] == json.loads((work / "words" / "manifest.json").read_text())["digest"]
    assert said["labels"] == 3
    assert "shortlister: none, all 3 labels are ranked" in said["choices"]
    assert isinstance(said["held_out"], list)
    assert re.fullmatch(rf"0\.\d\d MiB in {len(list((work / 'words').iterdir())) - 2} files", said["size"])
    assert run(["inspect", work / "words"]) == 0
    page = capsys.readouterr().out
    assert "shortlister: none, all 3 labels are ranked" in page
    assert re.search(rf"\nsize by source +.* 0\.\d\d MiB\n.*\nsize +{said['size']}\n", page, re.DOTALL)
    assert run(["inspect", work / "train.svm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data.load(work / "train.svm").summary()


@pytest.mark.parametrize("optimize", [[], ["--optimize", "micro-f1"]])
@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "parquet"])
def test_probabilities_and_ids_are_written(work, tmp_path, capsys, kind, optimize):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "rows.csv").write_text("id,text,key\n007,salt and flour,a\n,the wave,b\n")
    model = load(work / "words")
    texts = ["salt and flour", "the wave"]
    known, kept = model.predict_proba(texts), model.predict(texts, optimize="micro-f1").toarray()
    expected = [
        (i, label, known[i][label])
        for i, row in enumerate(model.rank(texts, k=2))
        for label, _ in row
        if not optimize or kept[i, label]
    ]
    out = tmp_path / f"top.{kind}"
    command = ["predict", work / "words", tmp_path / "rows.csv", "--top", 2, "--out", out, *optimize]
    assert run([*command, "--probabilities"]) == 0
    assert "left out 1 column: 'key'" in capsys.readouterr().err
    ids = ["007", None]
    if kind == "txt":
        lines = out.read_text().splitlines()
        assert [line for line in lines if line.startswith("row")] == [
            "row 0 (007): salt and flour",
            "row 1: the wave",
        ]
        found = [float(line.split()[1]) for line in lines if line.startswith(" ") and "%" in line]
        assert found == pytest.approx([100 * p for _, _, p in expected], abs=0.051)
        return
    if kind == "jsonl":
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert [record["id"] for record in records] == ids
        found = [(r["row"], e["label"], e["probability"]) for r in records for e in r["labels"]]
    else:
        if kind == "csv":
            lines = list(csv.DictReader(out.open()))
            own = ["007", ""]
        else:
            import pyarrow.parquet as pq

            lines, own = pq.read_table(out).to_pylist(), ids
        assert list(lines[0])[:3] == ["row", "id", "rank"]
        assert [line["id"] for line in lines] == [own[int(line["row"])] for line in lines]
        found = [(int(line["row"]), int(line["label"]), float(line["probability"])) for line in lines]
    assert [line[:2] for line in found] == [line[:2] for line in expected]
    assert [line[2] for line in found] == pytest.approx([line[2] for line in expected], rel=1e-5)


@pytest.mark.parametrize("names", ["parabel", "xreg,neighbors", "one-vs-all"])
def test_shortlisters_by_name(work, tmp_path, capsys, names):
    model = tmp_path / "M"
    assert run(["train", work / "train.txt", "--model", model, "--shortlister", names, *makers.QUICKLY]) == 0
    assert run(["predict", model, work / "train.svm", "--top", "1", "--out", tmp_path / "top.txt"]) == 0
    assert len((tmp_path / "top.txt").read_text().splitlines()) == 60
    capsys.readouterr()
    assert run(["evaluate", model, work / "train.svm", "--metrics", "P@1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["P@1"] > 0.7
    assert run(["explain", model, work / "train.svm", "--row", "3", "--label", "1"]) == 0
    assert run(["inspect", model]) == 0
    titles = {"parabel": "Parabel", "xreg,neighbors": "XReg, NeighborShortlister", "one-vs-all": "OneVsAll"}
    assert titles[names] in capsys.readouterr().out


@pytest.mark.parametrize("given", ["auto", "0", "2.5"])
def test_training_takes_a_lean(work, tmp_path, given):
    argv = ["train", work / "train.txt", "--model", tmp_path / "M", "--propensity-weight", given]
    assert run([*argv, *makers.QUICKLY]) == 0
    model = load(tmp_path / "M")
    assert model.propensity_weight == (given if given == "auto" else float(given))
    assert given == "auto" or model.propensity_weight_ == float(given)


def test_predictions_of_texts(work, capsys):
    texts = ["--text", "salt and flour", "--text", "wave and wind"]
    assert run(["predict", work / "words", *texts, "--top", "1"]) == 0
    lines = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["salt and flour", "bread", "wave and wind", "the sea"]
    assert run(["predict", work / "words", work / "talk.csv", "--optimize", "hamming"]) == 0
    capsys.readouterr()
    best = np.floor(100 * load(work / "words").thresholds_.guarantees_.best("recall")) / 100
    assert run(["predict", work / "words", work / "talk.csv", "--optimize", f"recall>={best}"]) == 0
    assert run(["predict", work / "words", work / "talk.csv", "--optimize", "recall>=0.9999"]) == 2
    assert f"the best possible is recall>={best}" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "json", "JSONL", "parquet"])
def test_the_ending_says_what_is_written(work, tmp_path, capsys, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"top.{kind}"
    command = ["predict", work / "words", work / "talk.csv", "--top", "2", "--jobs", "1", "--out", out]
    ranking = makers.fitted("texts").rank(data.load(work / "talk.csv"), k=2)
    expected = [
        (i, rank, label, ranking.label_names[label], score, False)
        for i, row in enumerate(ranking)
        for rank, (label, score) in enumerate(row, 1)
    ]
    assert run(command) == 0
    content = out.read_bytes()
    if kind == "parquet":
        import pyarrow.parquet as pq

        assert pq.read_table(out).to_pydict() == dict(
            zip(("row", "rank", "label", "name", "score", "without_evidence"), map(list, zip(*expected)))
        )
    elif kind in ("csv", "tsv"):
        lines = list(csv.reader(content.decode().splitlines(), delimiter="\t" if kind == "tsv" else ","))
        assert lines[0] == ["row", "rank", "label", "name", "score", "without_evidence"]
        assert lines[1:] == [[*map(str, line[:-2]), f"{line[-2]:.6g}", "0"] for line in expected]
        assert b"\r" not in content
    elif kind == "txt":
        lines = content.decode().splitlines()
        assert [line.partition(":")[0] for line in lines[::3]] == ["row 0", "row 1"]
        assert [line.split("  ")[-1] for line in lines if line[0] == " "] == [e[3] for e in expected]
    else:
        lines = content.decode().splitlines()
        records = json.loads(content) if kind == "json" else [json.loads(line) for line in lines]
        found = [
            (r["row"], rank, e["label"], e["name"], e["score"], r["without_evidence"])
            for r in records
            for rank, e in enumerate(r["labels"], 1)
        ]
        assert found == expected
    capsys.readouterr()


EVIL = "red\x1b[31m \x07\x9b2J\u202eb\nmetarank: error: \ud800"


@pytest.fixture(scope="module")
def evil(tmp_path_factory) -> Path:
    """A model with a name of a label that a terminal would obey, and texts of the same kind."""
    ds = makers.texts()
    names = [EVIL.replace("\ud800", ""), *ds.label_names[1:]]
    named = Dataset(None, ds.Y, label_names=names, texts=[f"\x1b[2J {text}" for text in ds.texts])
    folder = tmp_path_factory.mktemp("evil") / "m"
    MetaRanker(**makers.QUICK | {"n_jobs": 1}).fit(named).save(folder)
    return folder


@pytest.mark.parametrize(
    "argv",
    [
        ["predict", "M", "--text", "salt and \x1b[31mflour", "--text", "bread\x9b"],
        ["predict", "M", "--text", "salt", "--format", "json"],
        ["explain", "M", "--text", "salt", "--top", "3"],
        ["explain", "M", "--text", "salt", "--top", "3", "--json"],
        ["explain", "M", "--text", "salt", "--label", EVIL],
        ["inspect", "M"],
        ["predict", "M", "\x1b[31m.csv"],
        ["predict", EVIL, "--text", "salt"],
        [EVIL],
    ],
    ids=range(9),
)
def test_nothing_that_a_terminal_obeys_is_written_to_it(evil, capsys, argv):
    code = run([str(evil) if a == "M" else a for a in argv])
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not set(text) & set("\x1b\x07\x9b\u202e\ud800\r")
    assert ("M" in argv and EVIL not in argv and "\x1b[31m.csv" not in argv) == (code == 0)
    assert not any(line.startswith("metarank: error") for line in said.out.splitlines())
    assert len(said.err.splitlines()) == (code != 0)
    if "json" in argv or "--json" in argv:
        texts = json.dumps(json.loads(said.out), ensure_ascii=False)
        assert "\x9b" in texts  # the same name, written otherwise


def test_no_way_to_write_leads_around_the_guard():
    stream = io.StringIO()
    guarded = GuardedStream(stream)
    guarded.write("a\x1b[31m")
    guarded.writelines(["b\x1b[31m"])
    print("c\x1b[31m", file=guarded)
    assert stream.getvalue() == "a\\u001b[31mb\\u001b[31mc\\u001b[31m\n"


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl"])
def test_a_terminal_gets_no_control_characters_in_records(evil, kind):
    pty, tty = pytest.importorskip("pty"), pytest.importorskip("tty")
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # bytes as they are written
    with os.fdopen(theirs, "w", newline="") as terminal, contextlib.redirect_stdout(terminal):
        assert terminal.isatty()
        assert run(["predict", evil, "--text", "salt", "--top", "3", "--format", kind]) == 0
    with (
        os.fdopen(ours, "rb", buffering=0) as screen,
        contextlib.suppress(OSError),
    ):  # a closed line, on Linux
        said = b""
        while part := screen.read(1 << 16):  # as it comes through
            said += part
    said = said.decode()
    assert "\\u001b[31m" in said
    assert all(ord(c) >= 32 and not 127 <= ord(c) < 160 for c in said.replace("\n", "").replace("\t", ""))
    if kind in ("csv", "tsv"):
        assert said.count("\n") == 4


@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "json", "jsonl"])
def test_what_has_no_ending_takes_any_format(evil, work, tmp_path, capsys, kind):
    """And data for programs are as they are."""
    model = evil if kind in ("csv", "tsv") else work / "words"
    command = ["predict", model, "--text", "salt", "--top", "3", "--jobs", "1", "--format", kind]
    assert run([*command, "--out", tmp_path / f"out.{kind}"]) == 0
    assert run([*command, "--out", tmp_path / "out"]) == 0
    assert run(command) == 0
    said = capsys.readouterr().out  # no terminal
    assert (
        said == (tmp_path / "out").read_bytes().decode() == (tmp_path / f"out.{kind}").read_bytes().decode()
    )
    assert ("\x1b[31m" in said) == (model == evil)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        *(
            (["predict", "words", "many.csv", "--out", name], name)
            for name in ("o.csv", "o.parquet", "/dev/full")
        ),
        (["train", "train.txt", "--effort", "low", "--ranker", "logistic", "--folds", "2", "--quiet"], "M"),
        (["report", "words", "many.csv", "--quiet", "--out", "r.html"], "r.html"),
        (["data", "make", "synthetic", "--rows", "50", "--labels", "9", "--features", "9"], "synthetic"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_no_room_names_what_was_to_be_written(work, tmp_path, capsys, monkeypatch, argv, name):
    """Not the place beside it, nor nothing."""
    resource = pytest.importorskip("resource")
    if name == "/dev/full" and not os.path.exists(name):
        pytest.skip("no such device")
    monkeypatch.chdir(tmp_path)
    Path("many.csv").write_text("text,labels\n" + "salt flour,bread\n" * 500)
    if argv[0] == "train":
        argv = [*argv, "--model", "M"]
    argv = [str(work / a) if a in ("words", "train.txt") else a for a in argv]
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, most))
    try:
        code = run([*argv, "--jobs", "1"] if argv[0] != "data" else argv)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    said = capsys.readouterr().err.splitlines()
    assert code == 2, said
    assert re.fullmatch(rf"metarank: error: (File too large|No space left on device): '.*{name}.*'", said[-1])
    assert ".metarank-" not in said[-1]
    assert not Path(name).is_file()


def test_a_device_is_written_to_and_stays_one(work):
    assert run(["predict", work / "words", "--text", "salt", "--out", os.devnull]) == 0
    assert not os.path.isfile(os.devnull)


def test_files_narrower_than_the_model(work, tmp_path, capsys):
    """svmlight text names no widths: the model knows them, beside a label file too."""
    narrow = tmp_path / "rows.svm"
    narrow.write_text("0 0:1\n 1:2\n1 0:0.3\n")
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    for command in (["predict"], ["evaluate"], ["explain"]):
        assert run([*command, work / "numbers", narrow]) == 0, capsys.readouterr().err
    for header in ("2 4 3", "2 4 0", "2 4 9"):
        (tmp_path / "labels.txt").unlink(missing_ok=True)
        narrow.write_text(f"{header}\n 0:1\n 1:2\n")
        assert run(["predict", work / "numbers", narrow]) == 0, capsys.readouterr().err


def test_labels_the_model_does_not_know_are_told(work, tmp_path, capsys):
    (tmp_path / "t.txt").write_text("2 4 5\n0,4 0:1\n1 1:2\n")
    assert run(["evaluate", work / "numbers", tmp_path / "t.txt", "--json"]) == 0
    captured = capsys.readouterr()
    assert "that the model does not know: 1 ('label 4'), in 1 of 3 relevant pairs" in captured.err
    assert json.loads(captured.out)["unknown_labels"] == 1


def test_progress_is_plain_lines_where_redirected(work, tmp_path, capsys):
    options = ["--effort", "low", "--ranker", "logistic", "--folds", "2", "--jobs", "2"]
    assert run(["train", work / "train.svm", "--model", tmp_path / "M", *options]) == 0
    captured = capsys.readouterr()
    assert "\r" not in captured.err
    assert "\x1b" not in captured.err
    assert "100 %  done" in captured.err
    assert captured.out.startswith(f"{tmp_path / 'M'}: 30 rows")
    assert os.listdir(tmp_path) == ["M"]


def test_help_of_every_command(capsys):
    for argv in (["-h"], ["--version"], *([c, "-h"] for c in COMMANDS)):
        assert run(argv) == 0
    assert "usage: metarank" in capsys.readouterr().out


# --- what does not -----------------------------------------------------------------


def test_a_model_is_replaced_only_if_a_person_says_so(work, tmp_path, capsys):
    argv = ["train", work / "train.txt", "--model", tmp_path / "M", *makers.QUICKLY]
    assert run(argv) == 0
    before = read_manifest(tmp_path / "M")["digest"]
    assert run([*argv, "--seed", "5"]) == 2
    assert f"{tmp_path / 'M'} holds a model: --overwrite replaces it" in capsys.readouterr().err
    assert read_manifest(tmp_path / "M")["digest"] == before
    assert run([*argv, "--seed", "5", "--overwrite"]) == 0


TRAIN = ["train", "FILE", "--model", "NEW"]
PREDICT = ["predict", "numbers", "FILE", "--out", "NEW"]
EVALUATE = ["evaluate", "numbers", "FILE"]

BAD_FILES = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "binary": bytes(range(256)) * 4,
    "truncated gz": gzip.compress(ROWS.encode() * 50)[:-20],
    "truncated xz": lzma.compress(ROWS.encode() * 50)[:-20],
    "gz of garbage": gzip.compress(b"\x00\xff" * 50),
    "too few rows": b"9 4 3\n" + ROWS.encode(),
    "too many rows": b"2 4 3\n" + ROWS.encode(),
    "label out of range": b"4 4 2\n" + ROWS.encode(),
    "feature out of range": b"4 3 3\n" + ROWS.encode(),
    "negative feature": b"0 -1:2\n1 1:1\n",
    "negative label": b"-1 0:2\n1 1:1\n",
    "no colon": b"0 1 2 3\n",
    "no rows": b"0 4 3\n",
    "no value": b"0 1:\n1 1:1\n",
    "words": b"hello world, this is no data file\n",
    "NaN": b"0 0:nan\n1 1:1\n",
    "infinity": b"0 0:inf\n1 1:1\n",
    "overflow": b"0 0:1e999\n1 1:1\n",
    "huge id": b"0 99999999999999999999:1\n1 1:1\n",
    "negative grade": b"2 3 2\n0:-1 0:1\n1 1:1\n",
    "NaN grade": b"2 3 2\n0:nan 0:1\n1 1:1\n",
    "broken ARFF": b"@relation x\n@attribute a numeric\n@data\n1,2,3\n",
    "broken JSON lines": b'{"text": "a", "labels": [\n',
    "broken Parquet": b"PAR1 nothing of the kind PAR1",
}


def put(folder: Path, content: bytes, name: str = "FILE") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def filled(argv: list[str], work: Path, folder: Path) -> list[str]:
    """The arguments with the names of files and models as paths."""
    places = {
        "FILE": folder / "FILE",
        "NEW": folder / "NEW",
        "HERE": folder,
        "GOOD": work / "train.svm",
        "TEXTS": work / "talk.csv",
        "numbers": work / "numbers",
        "words": work / "words",
    }
    return [str(places.get(a, a)) for a in argv]


def assert_refused(argv: list[str], capsys, *, match: str = "", lines: int | None = 1) -> None:
    assert run(argv) == 2, argv
    captured = capsys.readouterr()
    assert captured.out == ""
    said = captured.err.splitlines()
    assert "Traceback" not in captured.err
    assert said[-1].startswith("metarank")
    assert "error: " in said[-1]
    assert match in said[-1] or re.search(match, said[-1])
    if lines is not None:
        assert len(said) == lines, captured.err


@pytest.mark.parametrize("command", [TRAIN, PREDICT, EVALUATE], ids=lambda argv: argv[0])
@pytest.mark.parametrize("content", BAD_FILES)
def test_bad_files(work, tmp_path, capsys, command, content):
    put(tmp_path, BAD_FILES[content])
    assert_refused(filled(command, work, tmp_path), capsys, match="FILE")
    assert os.listdir(tmp_path) == ["FILE"]


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty$"),
        (b"team goal\nfree kick\n", "line 1.*Files of texts are CSV or TSV .* JSON lines, Parquet, Excel"),
        (b'[{"text": "team goal"}]', "JSON files hold one object a line"),
        (b'[\n {"text": "team goal"}\n]\n', "JSON files hold one object a line"),
    ],
)
def test_what_holds_no_texts_for_a_model_of_texts(
    work, tmp_path, capsys, monkeypatch, command, content, match
):
    file = put(tmp_path, content)
    assert_refused([command, str(work / "words"), str(file)], capsys, match=f"FILE.*{match}")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert_refused([command, str(work / "words"), "-"], capsys, match=f"error: (standard input|-:).*{match}")


@pytest.mark.parametrize(
    ("argv", "match"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["train", "--model", "nowhere"], "give TRAIN, or --labels"),
        (["train", "GOOD"], "--model"),
        (["train", "GOOD", "--model", "NEW", "--colour", "red"], "--colour"),
        (["train", "NOFILE", "--model", "NEW"], "NOFILE"),
        (["train", "HERE", "--model", "NEW"], "folder"),
        (["train", "GOOD", "--model", "GOOD"], "a new folder or that of an earlier model"),
        (["train", "GOOD", "--model", "GOOD/M"], "Not a directory"),
        (["train", "GOOD", "--model", "/proc/M", "--effort", "low"], "/proc"),
        (["train", "NOFILE", "--model", "/proc/foo/M"], "error: No such file or directory: '/proc/foo/M'$"),
        (["train", "NOFILE", "--model", "NEW", "--folds", "1"], "error: --folds must be at least 2"),
        (["train", "GOOD", "--model", "NEW", "--folds", "two"], "--folds"),
        (["train", "NOFILE", "--model", "NEW", "--folds", "99999999999"], "error: --folds must"),
        (["train", "GOOD", "--model", "NEW", "--seed", "-1"], "--seed: must be an integer from 0"),
        (["demo", "--out", "NEW", "--seed", "3000000000"], "--seed: must be an integer from 0 to 2147483647"),
        (["data", "make", "synthetic", "--seed", "x"], "--seed: must"),
        (["data", "make", "synthetic", "--labels", "0", "--out", "NEW"], "error: labels_per_row must lie in"),
        (["data", "make", "pydocs", "--rows", "9", "--out", "NEW"], "error: --rows needs synthetic data"),
        (["serve", "words", "--workers", "0"], "error: argument --workers: must be a positive integer"),
        (["evaluate", "numbers", "GOOD", "--metrics", ","], "--metrics must name at least one"),
        (["evaluate", "numbers", "GOOD", "--metrics", ""], "--metrics must name at least one"),
        (["train", "GOOD", "--model", "NEW", "--jobs", "0"], "--jobs"),
        (["train", "GOOD", "--model", "NEW", "--jobs", "1.5"], "--jobs"),
        (["train", "GOOD", "--model", "NEW", "--effort", "huge"], "--effort"),
        (
            ["train", "GOOD", "--model", "NEW", "--labels-columns=tags"],
            r"--labels-columns=tags \(see `metarank train -h`\)",
        ),
        (["train", "GOOD", "--model", "NEW", "--label-name", "labels"], r"--label-name labels \("),
        (["data", "list", "--zzz"], r"unrecognized arguments: --zzz \(see `metarank data list -h`\)"),
        (["train", "GOOD", "--model", "NEW", "--propensity-weight", "11"], "must be a number in .0, 10."),
        (["train", "NOFILE", "--model", "NEW", "--ranker", "best"], "error: --ranker must"),
        (["train", "NOFILE", "--model", "NEW", "--features", "best"], "error: --features must"),
        (["train", "NOFILE", "--model", "NEW", "--features", ""], "error: --features must"),
        (["train", "NOFILE", "--model", "NEW", "--features", "neighbors,best"], "error: --features must"),
        (["train", "NOFILE", "--model", "NEW", "--shortlister", "best"], "error: --shortlister must"),
        (["train", "NOFILE", "--model", "NEW", "--shortlister", "parabel,best"], "error: --shortlister must"),
        (["train", "NOFILE", "--model", "NEW", "--threshold", "best"], "error: --threshold must"),
        (["train", "TEXTS", "--model", "NEW", "--text-column", "body"], "body"),
        (["train", "TEXTS", "--model", "NEW", "--labels-column", "tags"], "tags"),
        (["predict", "NOFILE", "GOOD"], "not a metarank model: there is no folder"),
        (["predict", "GOOD", "GOOD"], "not a metarank model: it has no manifest.json"),
        (["predict", "HERE", "GOOD"], "not a metarank model"),
        (["predict", "numbers"], "INPUT or --text"),
        (["predict", "numbers", "GOOD", "--text", "x"], "INPUT or --text"),
        (["predict", "numbers", "NOFILE"], "NOFILE"),
        (["predict", "numbers", "HERE"], "folder"),
        (["predict", "numbers", "GOOD", "--top", "0"], "--top"),
        (["predict", "numbers", "GOOD", "--top", "-5"], "--top"),
        (["predict", "numbers", "GOOD", "--top", "x"], "--top"),
        (["predict", "numbers", "GOOD", "--jobs", "0"], "--jobs"),
        (["predict", "numbers", "GOOD", "--jobs", "all"], "--jobs"),
        (
            ["predict", "nothing", "GOOD", "--optimize", "profit", "--out", "NEW"],
            "error: --optimize must be one of micro-f1, .*profit",
        ),
        (["predict", "numbers", "GOOD", "--format", "xml"], "--format"),
        *(
            (["predict", "nothing", "GOOD", "--out", name], f"--out must end in one of .txt, .csv, .*{name}")
            for name in ("o.ods", "o.csv.gz", "o.feather")
        ),
        (["predict", "nothing", "GOOD", "--out", "o.csv", "--format", "jsonl"], "--format jsonl contradicts"),
        (["predict", "nothing", "GOOD", "--format", "parquet"], "--format parquet needs a file"),
        (["predict", "numbers", "GOOD", "--out", "HERE"], "--out"),
        (["report", "nothing", "GOOD", "--out", "r.pdf"], "--out must end in .html or .htm"),
        (["predict", "numbers", "GOOD", "--out", "GOOD/x"], "Not a directory"),
        (["predict", "numbers", "GOOD", "--out", "/proc/nothing/x"], "/proc"),
        (["predict", "numbers", "TEXTS", "--out", "NEW"], "must hold numbers"),
        (["predict", "numbers", "--text", "salt", "--out", "NEW"], "error: --text must hold numbers"),
        (["predict", "words", "GOOD", "--out", "NEW"], "texts"),
        (
            ["train", "TEXTS", "--model", "NEW", "--text-column", "text", "--labels-column", "text"],
            "--text-column and --labels-column must differ, got 'text' for both",
        ),
        (["evaluate", "numbers", "GOOD", "--metrics", "Q@5"], "Q@5"),
        (["evaluate", "numbers", "GOOD", "--metrics", "P@0"], "P@0"),
        (["evaluate", "numbers", "TEXTS"], "have no names"),
        (["evaluate", "words", "GOOD"], "error: TEST must .*texts"),
        (["evaluate", "numbers"], "TEST"),
        (["explain", "numbers", "GOOD", "--row", "30"], "--row"),
        (["explain", "numbers", "GOOD", "--row", "-1"], "--row"),
        (["explain", "numbers", "GOOD", "--label", "3"], "error: --label must"),
        (["explain", "numbers", "GOOD", "--label", "sea"], "sea"),
        (["explain", "numbers", "GOOD", "--top", "0"], "--top"),
        (["explain", "numbers", "--text", "salt"], "must hold numbers"),
        (["explain", "words", "--text", "salt", "--label", "the moon"], "the moon"),
        (["explain", "words", "--text", "a", "--text", "b"], "error: --text must be given once.*got 2"),
        (["explain", "words", "--text", "a", "--row", "0"], "error: --row .* leave it out with --text"),
        (["inspect", "NOFILE"], "NOFILE"),
        (["inspect", "HERE"], "not a metarank model"),
        (["data"], "ACTION"),
        (["data", "get", "no-such-set"], "no-such-set"),
        (["data", "make", "money"], "money"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_bad_usage(work, tmp_path, capsys, argv, match):
    argv = [str(work / "train.svm") + a.removeprefix("GOOD") if a.startswith("GOOD/") else a for a in argv]
    assert_refused(filled(argv, work, tmp_path), capsys, match=match)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("labels.txt", "a\nb\n", "expected 2 labels, the header has 3"),
        ("labels.txt", b"\xff\xfe\n\n\n", "labels.txt: damaged file"),
    ],
)
def test_bad_files_beside(work, tmp_path, capsys, name, content, match):
    shutil.copy(work / "train.txt", tmp_path / "train.txt")
    put(tmp_path, content if isinstance(content, bytes) else content.encode(), name)
    assert_refused(
        ["train", str(tmp_path / "train.txt"), "--model", str(tmp_path / "M")], capsys, match=match
    )
    assert not (tmp_path / "M").exists()


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("content", [b"2 9 3\n0 0:1\n1 8:1\n", b"0 0:1\n1 8:1\n", b"2 3 3\n0 0:1\n1 2:1\n"])
def test_rows_of_another_width_or_without_labels(work, tmp_path, capsys, command, content):
    argv = [command, str(work / "numbers"), str(put(tmp_path, content))]
    assert_refused(argv, capsys, match="FILE")
    put(tmp_path, b" 0:1\n 1:1\n")
    assert command == "predict" or assert_refused(argv, capsys, match="holds no labels") is None


@pytest.mark.parametrize("command", ["train", "evaluate", "report"])
def test_a_column_of_labels_that_is_called_otherwise_is_told(work, tmp_path, capsys, command):
    put(tmp_path, b"text,subject\nsalt,bread\n", "t.csv")
    argv = [command, work / "words", tmp_path / "t.csv"]
    argv = ["train", argv[-1], "--model", tmp_path / "M"] if command == "train" else argv
    assert_refused(argv, capsys, match="holds no labels: give --labels-column.*labels, label, tags", lines=2)


@pytest.mark.parametrize("command", [["predict"], ["evaluate"], ["report", "--out"]])
def test_rows_of_which_nothing_is_known_are_told_once(work, tmp_path, capsys, command):
    put(tmp_path, b"text,labels\nzzyzx,bread\nsalt,bread\nqwrt,bread\n", "t.csv")
    page = [tmp_path / "page.html"] if len(command) > 1 else []
    assert run([command[0], work / "words", tmp_path / "t.csv", *command[1:], *page]) == 0
    assert capsys.readouterr().err.count("the model knows nothing about 2 of 3 rows") == 1
    assert not page or "the model knows nothing about 2 of 3 rows" in page[0].read_text()


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "inspect"])
@pytest.mark.parametrize("damage", ["manifest", "array", "missing", "extra"])
def test_damaged_models(work, tmp_path, capsys, command, damage):
    model = Path(shutil.copytree(work / "numbers", tmp_path / "M"))
    array = sorted(model.glob("*.npy"))[0]
    if damage == "missing":
        array.unlink()
    elif damage == "extra":
        (model / "x").touch()
    else:
        path = array if damage == "array" else model / "manifest.json"
        path.write_bytes(path.read_bytes()[:-1])
    rows = [] if command == "inspect" else [str(work / "rows.svm")]
    assert_refused([command, str(model), *rows], capsys)


def test_an_earlier_result_and_an_earlier_model_survive_a_failure(work, tmp_path):
    out = put(tmp_path, b"earlier\n")
    model = Path(shutil.copytree(work / "words", tmp_path / "M"))
    before = {p.name: p.read_bytes() for p in model.iterdir()}
    assert run(["predict", work / "numbers", work / "talk.csv", "--out", out]) == 2
    assert run(["predict", work / "numbers", work / "train.svm", "--optimize", "profit", "--out", out]) == 2
    assert run(["train", work / "train.svm", "--model", model, "--folds", "1"]) == 2
    assert out.read_bytes() == b"earlier\n"
    assert {p.name: p.read_bytes() for p in model.iterdir()} == before
    assert sorted(os.listdir(tmp_path)) == ["FILE", "M"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("a bug\nof ours"), 1, "internal fault: ZeroDivisionError: a bug of ours"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["fault", "interrupt"],
)
def test_faults_and_interrupts_are_told_in_one_line(work, capsys, monkeypatch, error, code, said):
    monkeypatch.setattr("metarank.model.estimator.MetaRanker._score_rows", Mock(side_effect=error))
    assert run(["predict", work / "numbers", work / "rows.svm"]) == code
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert said in line


def test_the_module_runs_as_a_program(work, tmp_path):
    def program(*argv) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "metarank", *map(str, argv)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    good = program("predict", work / "words", "--text", "salt and flour", "--top", "1")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("bread\n")
    bad = program("predict", work / "words", "no-such-file.csv")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "metarank: error: no such file: 'no-such-file.csv'\n"
    usage = program("predict")
    assert (usage.returncode, usage.stdout) == (2, "")
    assert usage.stderr.count("\n") == 1
    reader = subprocess.run(
        f"{sys.executable} -m metarank inspect {work / 'words'} | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert reader.stderr == ""


def test_training_on_parquet_needs_no_names_of_usual_columns(tmp_path, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts, lists = ["red wine", "green tea", "red tea"] * 10, [["a"], ["b"], ["a", "b"]] * 10
    command = ["train", str(tmp_path / "x.parquet"), "--model", str(tmp_path / "m"), "--overwrite"]
    command += ["--quiet", "--effort", "low", "--jobs", "1"]

    def run(**columns):
        pq.write_table(pa.table(columns), tmp_path / "x.parquet")
        return main(command), capsys.readouterr().err

    assert run(text=texts, labels=lists) == (0, "")
    code, err = run(note=texts, tags=lists)
    assert code == 2
    assert "among ['note', 'tags']: give --text-column or --number-columns" in err
    code, err = run(text=texts, subjects=lists)
    assert code == 2
    assert "x.parquet holds no labels: give --labels-column" in err


def test_warnings_are_lines_that_name_options(work, capsys, monkeypatch):
    def warns(*args, **kwargs):
        warnings.warn("n_folds was\ngiven: 'n_folds'", stacklevel=2)
        return {}

    monkeypatch.setattr("metarank.model.answering.measure.Evaluation.values", warns)
    assert run(["evaluate", work / "numbers", work / "rows.svm", "--metrics", "P@1"]) == 0
    assert "metarank: warning: n_folds was given: 'n_folds'\n" in capsys.readouterr().err
    options = {"n_folds": "--folds", "X": "TRAIN", "k": "--top"}
    for message, expected in (
        ("n_folds was given: 'n_folds'", "--folds was given: 'n_folds'"),
        ("X must hold numbers, not 'X must'", "TRAIN must hold numbers, not 'X must'"),
        ("a file n_folds.txt, or /n_folds/x", "a file n_folds.txt, or /n_folds/x"),
        ("the model's n_folds, k and X", "the model's --folds, k and X"),
        ("take n_folds=3", "take --folds 3"),
    ):
        assert in_options(message, options) == expected

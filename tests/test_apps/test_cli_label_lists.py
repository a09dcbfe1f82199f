"""``metarank predict --exclude --allowed --candidates --known``: files of label lists, what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import makers
import numpy as np
import pytest

from metarank import MetaRanker, data
from metarank.apps.cli import main
from metarank.apps.cli._reading import read_label_lists
from metarank.types.label_table import LabelTable

TEXTS = ["salt and flour", "wave and wind"]


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> Path:
    """A saved model of three named topics."""
    folder = tmp_path_factory.mktemp("lists") / "words"
    makers.fitted("texts").save(folder)
    return folder


def predicted(words: Path, tmp_path: Path, *more: str) -> list[list[tuple[str, str]]]:
    """(name, score) by row."""
    arguments = [a for text in TEXTS for a in ("--text", text)]
    out = tmp_path / "top.csv"
    assert main(["predict", str(words), *arguments, "--out", str(out), *more]) == 0
    rows: list[list[tuple[str, str]]] = [[], []]
    with open(out, newline="") as f:
        for record in csv.DictReader(f):
            rows[int(record["row"])].append((record["name"], record["score"]))
    return rows


def names(rows: list[list[tuple[str, str]]]) -> list[list[str]]:
    return [[name for name, _ in row] for row in rows]


def test_as_from_python(words, tmp_path):
    model = makers.fitted("texts")
    file = tmp_path / "lists.txt"
    file.write_text("the sea, 2\n\n")
    for option, argument in (("exclude", "exclude"), ("allowed", "allowed"), ("candidates", "candidates")):
        found = predicted(words, tmp_path, f"--{option}", str(file))
        expected = model.rank(TEXTS, k=10, **{argument: [[0, 2], []]})
        assert names(found) == [[model.label_names_[label] for label, _ in row] for row in expected]
        scores = [[f"{score:.6g}" for _, score in row] for row in expected]
        assert [[score for _, score in row] for row in found] == scores
    kept = predicted(words, tmp_path, "--allowed", str(file), "--optimize", "hamming")
    assert names(kept)[1] == []
    assert "bread" not in names(kept)[0]


def test_known_labels_sizes_and_quality(tmp_path, capsys):
    """Labels that rows have, how many labels they get, and what to expect of these, as the model has them."""
    ds = data.make_multilabel(160, n_features=6, n_labels=5, seed=0)
    model = MetaRanker(n_jobs=1).fit(ds.X, ds.Y)
    model.save(tmp_path / "M")
    lines = ["0 " + " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row)) for row in ds.X[:4]]
    (tmp_path / "X.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "known.txt").write_text("0\n1,2\n\n4\n")
    known = [[0], [1, 2], [], [4]]
    command = ["predict", str(tmp_path / "M"), str(tmp_path / "X.svm"), "--format", "jsonl", "--out", "-"]
    assert main([*command, "--known", str(tmp_path / "known.txt"), "--top", "3"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ranked = model.rank(ds.X[:4], k=3, known=known)
    for record, labels in zip(records, ranked.labels):
        assert [entry["label"] for entry in record["labels"]] == labels[labels >= 0].tolist()
    assert main([*command, "--at-least", "1", "--at-most", "2", "--quality"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kept, quality = model.predict(ds.X[:4], at_least=1, at_most=2, return_quality=True)
    for i, record in enumerate(records):
        assert sorted(entry["label"] for entry in record["labels"]) == kept[i].indices.tolist()
        assert record["expected_f1"] == pytest.approx(float(quality["f1"][i]))
    costs = "false_positive=1,false_negative=4"
    assert main([*command, "--optimize", costs]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kept = model.predict(ds.X[:4], optimize=costs)
    assert [len(record["labels"]) for record in records] == np.diff(kept.indptr).tolist()
    assert main([*command, "--top", "2", "--quality"]) == 2
    assert "--top must be left out with" in capsys.readouterr().err
    assert main([*command, "--optimize", "false_positive=-1,false_negative=4"]) == 2
    assert "false_positive must be >= 0" in capsys.readouterr().err


def test_one_line_for_all_rows(words, tmp_path):
    file = tmp_path / "lists.txt"
    file.write_text("bread,code")
    assert [set(row) for row in names(predicted(words, tmp_path, "--allowed", str(file)))] == [
        {"bread", "code"}
    ] * 2
    assert names(predicted(words, tmp_path, "--exclude", str(file))) == [["the sea"]] * 2


def test_format(tmp_path):
    table = LabelTable(3, ["a, b", "2", "c"])
    file = tmp_path / "lists.txt"
    file.write_bytes('\ufeff"a, b", c \r\n2,0\r\n\r\n1,1,c\r\n'.encode())
    lists = read_label_lists(str(file), table, 4, option="--allowed")
    assert [row.indices.tolist() for row in lists] == [[0, 2], [0, 1], [], [1, 2]]
    file.write_text("")
    assert read_label_lists(str(file), table, 0, option="--allowed").shape == (0, 3)


@pytest.mark.parametrize(
    ("option", "content", "match"),
    [
        (
            "--exclude",
            b"the moon\n\n",
            "--exclude, line 1 must name known labels, by ids in [0, 3) or names, got 'the moon'",
        ),
        ("--allowed", b"\n3\n", "--allowed, line 2"),
        ("--allowed", b"\n-1\n", "--allowed, line 2"),
        ("--allowed", b"1,,2\n\n", "--allowed, line 1"),
        ("--candidates", b"1\n", "--candidates must have 2 lines"),
        ("--candidates", b"1\n2\n0\n", "--candidates must have 2 lines, one per row, got 3"),
        ("--exclude", b"", "--exclude must have 2 lines"),
        ("--exclude", b'"bread\n\n', "--exclude, line 1"),
        ("--exclude", b"\n\xff\xfe\n", "--exclude"),
        ("--exclude", None, "no such file"),
    ],
)
def test_bad_lists_are_refused_in_one_line(words, tmp_path, capsys, option, content, match):
    file = tmp_path / "lists.txt"
    if content is not None:
        file.write_bytes(content)
    out = tmp_path / "out.txt"
    arguments = [a for text in TEXTS for a in ("--text", text)]
    assert main(["predict", str(words), *arguments, option, str(file), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert match.lower() in said.err.lower()
    assert not out.exists()


def test_cuts_of_a_shortlist_of_ones_own(words, tmp_path):
    file = tmp_path / "lists.txt"
    file.write_text("0\n0, 1\n")
    kept = names(predicted(words, tmp_path, "--candidates", str(file), "--optimize", "hamming"))
    ranked = names(predicted(words, tmp_path, "--candidates", str(file)))
    assert all(set(a) <= set(b) for a, b in zip(kept, ranked))

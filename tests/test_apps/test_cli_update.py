"""`metarank update` is `update_labels`, then `partial_fit`, saved."""

from __future__ import annotations

import json
from pathlib import Path

import makers
import pytest

from metarank import MetaRanker, load
from metarank.apps.cli import main
from metarank.persist import read_manifest

ROWS = "text,labels\nsalt and flour,bread\nthe wave and the code,salt\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    makers.fitted("texts").save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def rows(tmp_path) -> Path:
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path / "rows.csv"


def test_labels_and_rows_are_those_of_the_methods(folder, rows, tmp_path, capsys):
    names = makers.fitted("texts").label_names_
    options = ["--add", "salt", "--rename", names[0], "brine", "--remove", "2"]
    before = read_manifest(folder)["digest"]
    data = ["--rows", rows, "--text-column", "text", "--labels-column", "labels"]
    assert main([str(v) for v in ["update", folder, *options, *data, "--out", tmp_path / "out"]]) == 0
    said = "2 rows added, 1 label added, 1 label removed, 1 label renamed"
    assert capsys.readouterr().out == f"{tmp_path / 'out'}: {said}\n"
    assert read_manifest(folder)["digest"] == before, "what --out leaves alone"

    model = load(folder)
    model.update_labels(add=["salt"], rename={0: "brine"}, remove=[2])
    model.partial_fit(["salt and flour", "the wave and the code"], [["bread"], ["salt"]])
    found = load(tmp_path / "out")
    assert found.label_names_ == model.label_names_
    assert found.n_jobs == model.n_jobs
    texts = ["salt on the wave", "bread and code"]
    assert list(found.rank(texts, k=4)) == list(model.rank(texts, k=4))


def test_the_model_itself_is_replaced_and_a_table_of_labels_read(tmp_path, capsys):
    folder, ds = tmp_path / "model", makers.texts()
    MetaRanker(**makers.QUICK).fit(ds, labels=[{"name": name} for name in ds.label_names]).save(folder)
    (tmp_path / "labels.csv").write_text("name,description\nsalt,what the sea is full of\n")
    assert main(["update", str(folder), "--add-labels", str(tmp_path / "labels.csv")]) == 0
    assert load(folder).label_names_ == [*ds.label_names, "salt"]
    assert main(["update", str(folder), "--add-labels", str(tmp_path / "labels.csv")]) == 2
    assert "--add-labels must hold new names" in capsys.readouterr().err
    assert main(["update", str(folder), "--merge", "0", "1"]) == 0
    assert list(load(folder).fitted_.removed) == [0]


def test_labels_of_rows_alone_are_added_if_a_person_says_so(folder, rows, capsys):
    argv = ["update", folder, "--rows", rows, "--text-column", "text", "--labels-column", "labels"]
    assert main(list(map(str, argv))) == 2
    said = "holds 1 label that the model does not know: 'salt'; --add-new adds them"
    assert said in capsys.readouterr().err
    assert main([*map(str, argv), "--add-new"]) == 0
    assert capsys.readouterr().out.endswith(": 2 rows added, 1 label added\n")
    assert load(folder).label_names_[-1] == "salt"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rename", "0", "brine"], "1 label renamed"),
        (["--merge", "0", "1"], "1 label merged"),
        (["--add", "salt", "--add", "sun"], "2 labels added"),
    ],
)
def test_it_says_what_was_changed(folder, options, said, capsys):
    assert main(["update", str(folder), *options]) == 0
    assert capsys.readouterr().out == f"{folder}: {said}\n"


def test_a_removed_label_is_not_counted(folder, capsys):
    n_labels = makers.fitted("texts").n_labels_
    assert main(["update", str(folder), "--remove", "0"]) == 0
    capsys.readouterr()
    assert main(["inspect", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labels"], found["removed_labels"]) == (n_labels - 1, 1)


def test_a_new_label_without_a_known_word_is_told(folder, capsys):
    assert main(["update", str(folder), "--add", "zzyzx"]) == 0
    assert capsys.readouterr().err.startswith("metarank: warning: the model knows no word of 'zzyzx'")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give --rows, --add, --add-labels, --remove, --rename or --merge"),
        (["--add", "a", "--add-labels", "labels.csv"], "give either --add or --add-labels"),
        (["--remove", "no such label"], "--remove"),
        (["--rename", "no such label", "x"], "--rename"),
        (["--merge", "0", "no such label"], "--merge"),
        (["--rows", "no/such/file"], "no/such/file"),
    ],
)
def test_bad_usage_is_one_line_and_changes_nothing(folder, options, said, capsys):
    before = read_manifest(folder)["digest"]
    assert main(["update", str(folder), *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert read_manifest(folder)["digest"] == before

"""What parts labels in one text: one stated rule, one decision from the whole column, the same everywhere."""

import json
import logging
from itertools import pairwise

import makers
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metarank import Dataset, MetaRanker, load
from metarank.apps.cli import main
from metarank.data import from_frame, from_texts
from metarank.data import load as load_data
from metarank.data.separators import chosen_separator, split

ROWS = makers.texts()
LABELS = [[ROWS.label_names[j] for j in row.indices] for row in ROWS.Y]
TAGS = ["a,b", "b,c", "a", "c,a,b", "b"] * 4
CITIES = ["New York, NY", "Albany, NY", "Boston, MA", "Paris", "Austin, TX", "Dallas, TX"] * 3


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (TAGS, ","),
        ([*TAGS, "b;c"], ","),  # a stray sign
        ([tag.replace(",", ";") for tag in TAGS] + ["b;d, e"], ";"),
        ([tag.replace(",", "|") for tag in TAGS], "|"),
        ([tag.replace(",", ", ") for tag in TAGS], ","),
        (CITIES, None),
        (["; ".join(pair) for pair in pairwise(CITIES)], ";"),
        (["Economics, Econometrics and Finance", "Business, Management and Accounting"] * 9, None),
        (["red wine", "tea"], None),
        ([*map(str, range(200)), "AC;DC"], None),
        ([*"abcdefgh" * 30, "a;b"], ";"),  # few rows of two labels, which others have
        (["drink;grape", "drink"], ";"),  # tiny files
        (["drink,grape", "tea"], ","),
        (["drink, grape", "drink"], ","),
        (["red, round", "blue, square"], None),
        ([f"t{i};t{i + 1};u{i}" for i in range(50)], ";"),  # a long tail
        (["<http://a/1> <http://a/2>", "<http://a/3>", ""], "whitespace"),
        (["http://a/1 http://a/2,3", "urn:x:3", ""], "whitespace"),
        (["http://a/1;http://a/2", "http://a/3"], ";"),
        (["http://a/1, http://a/2", "http://a/2, http://a/3"], ","),
        (["http://a/1,2", "http://a/3,4"], None),
        (['["a", "b"]', "[]", "plain"], "list"),
        (["", "  "], "auto"),
        ([], "auto"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_the_rule(cells, separator):
    assert chosen_separator(cells) == separator
    assert chosen_separator(cells[::-1]) == separator


@pytest.mark.parametrize("separator", [";", " / ", "whitespace", "list", "\n", "||"])
def test_what_is_joined_is_parted(separator):
    names = [["sea", "sun"], ["sun"], [], ["salt", "sea"]]
    join = json.dumps if separator == "list" else {"whitespace": " \t"}.get(separator, separator).join
    assert [split(join(row), separator) for row in names] == names


def by_every_container(cells, tmp_path, separator):
    """The column read by each door, with the same separator."""
    texts = [f"text {i}" for i in range(len(cells))]
    frame = pd.DataFrame({"text": texts, "tags": cells})
    reading = {"text_column": "text", "labels_column": "tags", "label_separator": separator}
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "t.parquet")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        yield load_data(tmp_path / f"t.{ending}", **reading)
    for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.Table.from_pandas(frame)):
        yield from_frame(table, **reading)
    columns = frame.tags, frame.tags.astype("category"), pl.Series(cells), pa.array(cells)
    for Y in (cells, np.array(cells), *columns):
        yield Dataset(texts=texts, Y=Y, label_separator=separator)


@pytest.mark.parametrize(
    ("cells", "separator", "decided", "names"),
    [
        ([*TAGS, "b;c"], "auto", ",", ["a", "b", "b;c", "c"]),
        (CITIES, "auto", None, sorted(set(CITIES))),
        (CITIES, ",", ",", sorted({part.strip() for city in CITIES for part in city.split(",")})),
        (["<u:1> <u:2>", "<u:2>", ""], "auto", "whitespace", ["<u:1>", "<u:2>"]),
        (["a b", "b"], "whitespace", "whitespace", ["a", "b"]),
        (['["x, y", "z"]', '["z"]'], "auto", "list", ["x, y", "z"]),
        (["a;b", "c"], None, None, ["a;b", "c"]),
    ],
    ids=str,
)
def test_every_container_is_parted_alike(tmp_path, cells, separator, decided, names):
    for ds in by_every_container(cells, tmp_path, separator):
        assert (ds.label_separator, ds.label_names) == (decided, names)
        assert [sorted(names[j] for j in row.indices) for row in ds.Y] == [
            sorted(split(cell, decided)) for cell in cells
        ]
        assert ds.take([0]).label_separator == decided


def test_nulls_and_empty_texts_are_rows_without_labels():
    for Y in (
        ["a;b", None, ""],
        pd.Series(["a;b", pd.NA, ""]),
        pd.Series(["a;b", np.nan, " "]),
        pl.Series(["a;b", None, ""]),
    ):
        assert Dataset(texts=["t"] * 3, Y=Y).Y.toarray().tolist() == [[1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(("value", "error"), [("", ValueError), (3, TypeError), ([";"], TypeError)])
def test_separators_are_checked_at_every_door(value, error, tmp_path):
    frame = pd.DataFrame({"text": ["a", "b"], "tags": ["x", "y"]})
    frame.to_csv(tmp_path / "t.csv")
    for call in (
        lambda: Dataset(texts=["a"], Y=["b"], label_separator=value),
        lambda: load_data(tmp_path / "t.csv", label_separator=value),
        lambda: from_frame(frame, text_column="text", labels_column="tags", label_separator=value),
        lambda: from_texts(["a", "b"], ["x", "y"], label_separator=value),
    ):
        with pytest.raises(
            error, match="label_separator must be a text, 'whitespace', 'list', '<>', 'auto' or None"
        ):
            call()


@pytest.fixture(scope="module")
def model():
    return MetaRanker(**makers.QUICK).fit(ROWS.texts, pd.Series([" | ".join(row) for row in LABELS]))


def test_a_model_keeps_the_separator_of_its_training(model, tmp_path):
    assert (model.label_separator_, model.label_names_) == ("|", sorted(ROWS.label_names))
    assert "labels: labels are separated by '|'" in model.choices_
    lists = MetaRanker(**makers.QUICK).fit(ROWS.texts, LABELS)
    assert np.array_equal(lists.decision_function(ROWS.texts), model.decision_function(ROWS.texts))
    assert lists.label_separator_ == "auto"
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.label_separator_ == "|"
    column = ["|".join(row) for row in LABELS]
    assert again.score(ROWS.texts, column) == lists.score(ROWS.texts, LABELS)
    again.partial_fit(ROWS.texts[:3], column[:3])


def test_a_data_set_that_was_parted_otherwise_is_refused_where_it_matters(model):
    alike = Dataset(texts=ROWS.texts[:3], Y=["bread;code", "code", "the sea"], label_separator=";")
    assert model.score(alike) >= 0  # all are labels of the model
    other = Dataset(texts=["sea", "bug"], Y=["bread|code", "code"], label_separator=None)
    for call in (model.score, model.partial_fit):
        with pytest.raises(ValueError, match=r"label_separator must be .*'\|', since 'bread\|code'"):
            call(other)


def test_decided_once_told_and_kept_by_the_command_line(tmp_path, capsys, caplog):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    pd.DataFrame({"text": ROWS.texts, "tags": [", ".join(row) for row in LABELS]}).to_csv(train, index=False)
    pd.DataFrame({"text": ROWS.texts[:8], "tags": ["code; bread"] + ["bread"] * 7}).to_csv(test, index=False)
    with caplog.at_level(logging.INFO, "metarank.data"):
        load_data(train)
    told = f"{train}, column 'tags': labels are separated by ','; set label_separator"
    assert [r.getMessage() for r in caplog.records] == [f"{told} to change it"]
    options = ["--model", str(tmp_path / "m"), "--effort", "low", "--ranker", "logistic", "--folds", "2"]
    assert main(["train", str(train), *options, "--jobs", "1", "--quiet"]) == 0
    assert "column 'tags': labels are separated by ','; set --label-separator" in capsys.readouterr().err
    saved = load(tmp_path / "m")
    assert (saved.label_separator_, saved.n_labels_) == (",", 3)
    assert main(["evaluate", str(tmp_path / "m"), str(test), "--jobs", "1", "--metrics", "P@1"]) == 0
    told = capsys.readouterr().err  # the model's is used
    assert "parted" not in told
    assert "'code; bread'" in told
    otherwise = ["--metrics", "P@1", "--label-separator", ";"]
    assert main(["evaluate", str(tmp_path / "m"), str(test), "--jobs", "1", *otherwise]) == 0
    assert "code; bread" not in capsys.readouterr().err


def test_parts_of_a_file_are_parted_alike_or_the_separator_is_asked_for(tmp_path):
    read = pytest.importorskip("metarank.distributed").read
    for i, tags in enumerate((["a;b", "b"], ["a|b", "b"])):
        table = pa.table({"text": ["x", "y"], "tags": tags})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    both = str(tmp_path / "*.parquet")
    with pytest.raises(ValueError, match=r"label_separator must be given, .* separated by ';' or .* by '\|'"):
        read(both, labels_column="tags").collect()
    whole = read(both, labels_column="tags", label_separator=";").collect()
    assert (whole.label_separator, whole.label_names) == (";", ["a", "a|b", "b"])

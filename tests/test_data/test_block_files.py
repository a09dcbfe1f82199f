"""Blocks in CSV, JSON lines, Parquet and data frames: every door gives the same, and says what is wrong."""

import csv
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from metarank import data
from metarank.data import Dataset
from metarank.data.blocks import Blocks

ROWS = [
    {"title": "red wine", "body": "made of grapes", "emb": [0.5, 1.0, -2.0], "price": 3.5, "year": 2001,
     "colour": "red", "labels": ["drink", "grape"]},
    {"title": "green tea", "body": None, "emb": [1.0, 0.0, 0.25], "price": None, "year": 1999,
     "colour": None, "labels": ["drink"]},
]  # fmt: skip
COLUMNS = {"text_columns": "title, body", "vector_columns": ["emb"], "category_columns": "colour"}


def as_csv(path, rows, vector=json.dumps, delimiter=","):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(rows[0])
        for row in rows:
            cells = row | {"emb": vector(row["emb"]), "labels": ";".join(row["labels"])}
            out.writerow(["" if cell is None else cell for cell in cells.values()])
    return path


def as_jsonl(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def as_parquet(path, rows):
    pd.DataFrame(rows).to_parquet(path)
    return path


DOORS = {
    "csv, json": lambda tmp, rows: data.load(as_csv(tmp / "rows.csv", rows), **COLUMNS),
    "csv, blanks": lambda tmp, rows: data.load(
        as_csv(tmp / "rows.csv", rows, vector=lambda v: " ".join(map(str, v))), **COLUMNS
    ),
    "tsv": lambda tmp, rows: data.load(as_csv(tmp / "rows.tsv", rows, delimiter="\t"), **COLUMNS),
    "csv without ending": lambda tmp, rows: data.load(as_csv(tmp / "rows.txt", rows), **COLUMNS),
    "jsonl": lambda tmp, rows: data.load(as_jsonl(tmp / "rows.jsonl", rows), **COLUMNS),
    "parquet": lambda tmp, rows: data.load(as_parquet(tmp / "rows.parquet", rows), **COLUMNS),
    "read_table": lambda tmp, rows: data.load(as_jsonl(tmp / "rows.jsonl", rows), **COLUMNS),
    "read_parquet": lambda tmp, rows: data.load(as_parquet(tmp / "rows.parquet", rows), **COLUMNS),
    "pandas": lambda tmp, rows: data.from_frame(pd.DataFrame(rows), labels_column="labels", **COLUMNS),
    "polars": lambda tmp, rows: data.from_frame(pl.DataFrame(rows), labels_column="labels", **COLUMNS),
    "arrow": lambda tmp, rows: data.from_frame(
        pl.DataFrame(rows).to_arrow(), labels_column="labels", **COLUMNS
    ),
    "frame as X": lambda tmp, rows: Dataset(
        pd.DataFrame(rows).drop(columns=["labels", "colour"]).assign(colour=pd.Categorical(["red", None])),
        [row["labels"] for row in rows],
    ),
}


def same(a: Blocks, b: Blocks) -> bool:
    def equal(x, y):
        if sp.issparse(x):
            return (x != y).nnz == 0
        return x == y if isinstance(x, list) else np.array_equal(x, y, equal_nan=x.dtype.kind == "f")

    return a.kinds == b.kinds and a.columns == b.columns and all(equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_blocks(door, tmp_path):
    found = DOORS[door](tmp_path, ROWS)
    assert found.X.kinds == {
        "title": "text", "body": "text", "emb": "vector", "numbers": "numbers", "categories": "categories",
    }  # fmt: skip
    assert found.X.columns == {"numbers": ["price", "year"], "categories": ["colour"]}
    assert found.X["body"] == ["made of grapes", ""]
    np.testing.assert_array_equal(found.X["emb"], np.float32([[0.5, 1, -2], [1, 0, 0.25]]))
    np.testing.assert_array_equal(found.X["numbers"], np.float32([[3.5, 2001], [np.nan, 1999]]))
    assert found.X["categories"].tolist() == [["red"], [None]]
    assert found.label_names == ["drink", "grape"]
    assert (found.Y.toarray() == [[1, 1], [1, 0]]).all()
    assert found.texts is None


CODES = [
    ([7, 20], ["7", "20"]),
    ([7, None], ["7", None]),
    ([7.0, 20.0], ["7", "20"]),
    (["7", "20.0"], ["7", "20"]),
    ([" 7", "07"], ["7", "07"]),
    ([True, False], ["True", "False"]),
    ([True, None], ["True", None]),
    ([2**53 + 1, 2**53], [str(2**53 + 1), str(2**53)]),
]


@pytest.mark.parametrize("door", [door for door in DOORS if door != "frame as X"])
@pytest.mark.parametrize(("codes", "wanted"), CODES, ids=range(len(CODES)))
def test_every_door_gives_the_same_categories(door, codes, wanted, tmp_path):
    rows = [row | {"colour": code} for row, code in zip(ROWS, codes)]
    assert DOORS[door](tmp_path, rows).X["categories"].tolist() == [[code] for code in wanted]
    as_frame = Blocks.of({"colour": pd.Series(codes)}, {"colour": "categories"})
    assert as_frame["colour"].tolist() == [[code] for code in wanted]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_truth_values_are_numbers_as_in_frames(suffix, tmp_path):
    write = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}[suffix]
    rows = [row | {"price": value} for row, value in zip(ROWS, (True, False))]
    found = data.load(write(tmp_path / f"rows.{suffix}", rows), **COLUMNS).X
    assert found.columns["numbers"] == ["price", "year"]
    np.testing.assert_array_equal(found["numbers"][:, 0], np.float32([1, 0]))


@pytest.mark.parametrize("door", DOORS)
def test_what_is_written_is_restored(door, tmp_path):
    written = DOORS[door](tmp_path, ROWS)
    data.to_parquet(written, tmp_path / "own.parquet")
    restored = data.load(tmp_path / "own.parquet")
    assert same(restored.X, written.X)
    assert (restored.Y != written.Y).nnz == 0
    assert restored.label_names == written.label_names


def test_sparse_blocks_and_blocks_without_rows_are_restored(tmp_path):
    X = {"text": ["a tea", "the wine"], "bag": sp.csr_matrix(np.float32([[0, 2], [0, 0]])), "n": [1.0, None]}
    written = Dataset(X, [["a"], ["b"]])
    for rows in (slice(None), slice(0)):
        data.to_parquet(written.take(rows), tmp_path / "own.parquet")
        assert same(data.load(tmp_path / "own.parquet").X, written.take(rows).X)


@pytest.mark.parametrize(
    ("columns", "blocks"),
    [
        ({"text_columns": "title"}, {"title": "text", "numbers": "numbers"}),
        ({"text_columns": "title", "number_columns": []}, {"title": "text"}),
        ({"vector_columns": "emb", "number_columns": "price"}, {"emb": "vector", "numbers": "numbers"}),
        ({"number_columns": ["year"]}, {"numbers": "numbers"}),
        ({"category_columns": "year", "number_columns": []}, {"categories": "categories"}),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_only_what_is_asked_for_is_a_block(columns, blocks, suffix, tmp_path):
    write = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}[suffix]
    found = data.load(write(tmp_path / f"rows.{suffix}", ROWS), **columns)
    assert found.X.kinds == blocks
    if "year" in columns.get("category_columns", ""):
        assert found.X["categories"].tolist() == [["2001"], ["1999"]]


@pytest.mark.parametrize(
    ("change", "columns", "said"),
    [
        ({}, {"text_columns": "heading"}, "text_columns must be among .*'title'.*, got 'heading'"),
        (
            {},
            {"vector_columns": "title"},
            "the block 'title' of X must hold a vector per row, got 'red wine' at",
        ),
        (
            {"emb": [1.0, 2.0]},
            COLUMNS,
            "the block 'emb' of X must hold vectors of one width, got 3 and 2 numbers",
        ),
        ({"emb": [1.0, float("nan"), 2.0]}, COLUMNS, "the block 'emb' of X contains (NaN|infinity)"),
        ({"emb": [1.0, 1e300, 2.0]}, COLUMNS, "the block 'emb' of X contains infinity"),
        ({}, {"number_columns": "title"}, "the block 'title' of X must hold numbers, got 'red wine' at"),
        ({}, {"text_columns": "title", "vector_columns": "title"}, "got 'title' for text_columns and vector"),
        (
            {},
            {"text_columns": "labels", "labels_column": "labels"},
            "a column must be in one block, got 'labels' for labels and text_columns",
        ),
        ({}, {"text_columns": "title", "text_column": "body"}, "give text_columns instead of text_column"),
        ({}, {"number_columns": []}, "blocks must have at least one column, got none"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_what_is_wrong_is_one_line(change, columns, said, suffix, tmp_path):
    if suffix != "parquet" and change.get("emb", [0])[-1] == 2.0 and len(change["emb"]) == 3:
        change = change | {"emb": [1.0, 1e300, 2.0]}  # text has no NaN
    rows = [ROWS[0], ROWS[1] | change]
    write = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}[suffix]
    path = write(tmp_path / f"rows.{suffix}", rows)
    with pytest.raises(ValueError, match=said) as caught:
        data.load(path, **columns)
    assert "\n" not in str(caught.value)


def test_text_beside_numbers_names_the_way_out():
    with pytest.raises(ValueError, match="text_columns makes blocks of both"):
        data.from_frame(pd.DataFrame(ROWS), text_column="title", labels_column="labels")


def test_label_sets_beside_a_table_keep_its_blocks(tmp_path):
    (tmp_path / "labels.txt").write_text("drink\ngrape\nglass\n")
    found = data.load(as_csv(tmp_path / "rows.csv", ROWS), **COLUMNS)
    assert found.label_names == ["drink", "grape", "glass"]
    assert list(found.X) == ["title", "body", "emb", "numbers", "categories"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_named_text_columns_are_kept_with_the_data(suffix, tmp_path):
    write = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}[suffix]
    path = write(tmp_path / f"rows.{suffix}", ROWS)
    assert data.load(path, text_column=["body"]).text_columns == ["body"]
    assert data.load(path, text_column=["body"]).take([0]).text_columns == ["body"]
    assert data.load(as_csv(tmp_path / "rows.csv", ROWS)).text_columns is None

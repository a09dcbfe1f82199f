"""Blocks: what is understood of dicts and tables, and what is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from metarank.data import Blocks
from metarank.data.blocks import holds_blocks
from metarank.types.block_columns import BlockColumns, side_by_side

N = 40
TITLES = [f"title {i} of words" for i in range(N)]
COLOURS = ["red", "blue"] * (N // 2)
VECTORS = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
PRICES = [None if i % 7 == 0 else float(i) for i in range(N)]
COUNTS = list(range(N))


def frame() -> pd.DataFrame:
    columns = {"title": TITLES, "price": PRICES, "emb": list(map(list, VECTORS.tolist())), "n": COUNTS}
    return pd.DataFrame(columns | {"colour": COLOURS})


TABLES = {
    "pandas": frame,
    "polars": lambda: pl.from_pandas(frame()),
    "arrow": lambda: pa.Table.from_pandas(frame(), preserve_index=False),
    "pandas categories": lambda: frame().astype({"colour": "category"}),
    "arrow dictionary": lambda: pa.table(
        {
            **{c: frame()[c] for c in ("title", "price", "emb", "n")},
            "colour": pa.array(COLOURS).dictionary_encode(),
        }
    ),
}


@pytest.mark.parametrize("library", TABLES)
def test_columns_of_every_kind_of_table(library):
    blocks = Blocks.of(TABLES[library]())
    assert blocks.kinds == {
        "title": "text",
        "numbers": "numbers",
        "emb": "vector",
        "categories": "categories",
    }
    assert blocks.columns == {"numbers": ["price", "n"], "categories": ["colour"]}
    assert blocks["title"] == TITLES
    np.testing.assert_array_equal(blocks["emb"], VECTORS)
    wanted = np.array([[np.nan if p is None else p, c] for p, c in zip(PRICES, COUNTS)], np.float32)
    np.testing.assert_array_equal(blocks["numbers"], wanted)
    assert blocks["categories"][:, 0].tolist() == COLOURS
    again = Blocks.like(TABLES[library](), blocks.kinds, blocks.columns)
    assert again.kinds == blocks.kinds
    np.testing.assert_array_equal(again["numbers"], wanted)


KINDS = [
    ("text", TITLES),
    ("text", np.array(TITLES)),
    ("text", [None, *TITLES[1:]]),
    ("categories", COLOURS),
    ("categories", ["a", "b"] * (N // 2)),
    ("categories", pd.Series(TITLES, dtype="category")),
    ("numbers", PRICES),
    ("numbers", np.arange(N)),
    ("numbers", pd.DataFrame({"a": COUNTS, "b": PRICES})),
    ("numbers", [True, False] * (N // 2)),
    ("vector", VECTORS),
    ("vector", VECTORS.tolist()),
    ("vector", pl.Series(VECTORS.tolist())),
    ("sparse", sp.random(N, 100, 0.1, "coo", random_state=np.random.default_rng(0))),
]


@pytest.mark.parametrize(("kind", "data"), KINDS, ids=range(len(KINDS)))
def test_kinds_of_the_values_of_a_dict(kind, data):
    blocks = Blocks.of({"it": data})
    assert blocks.kinds == {"it": kind}
    rows = np.array([3, 1, 30])
    taken = blocks.take(rows)
    assert (taken.n_rows, taken.kinds) == (3, blocks.kinds)
    one = blocks.take(slice(1, 2))
    a, b = taken["it"], one["it"]
    if sp.issparse(a):
        a, b = a.toarray(), b.toarray()
    np.testing.assert_array_equal(np.asarray(a, object)[1], np.asarray(b, object)[0])


def test_what_is_asked_for_is_what_a_block_is():
    X = frame()
    assert Blocks.of(X, {"colour": "text"}).kinds["colour"] == "text"
    own = Blocks.of(X, {"price": "numbers"})
    assert own.columns["price"] == ["price"]
    assert own.columns["numbers"] == ["n"]
    assert Blocks.of({"n": COUNTS}, {"n": "categories"})["n"][:3, 0].tolist() == ["0", "1", "2"]


def test_a_matrix_or_a_table_of_numbers_is_no_block():
    numbers = frame()[["price", "n"]]
    matrices = [sp.eye(3), sp.dok_matrix((3, 3)), np.eye(3), [[1, 2]], TITLES, numbers]
    matrices += [pl.from_pandas(numbers)]
    assert not any(map(holds_blocks, matrices))
    assert all(map(holds_blocks, [{"a": [1]}, Blocks.of({"a": [1]}), frame(), pl.from_pandas(frame())]))


BAD = [
    ({}, "at least one block, got none"),
    ({"a": TITLES, "b": VECTORS[:3]}, "must have as many rows: 'a' has 40, 'b' has 3"),
    ({1: TITLES}, "blocks with texts as names, got 1"),
    ({"a": "one text"}, "the block 'a' of X must hold one entry per row, got 'one text'"),
    ({"a": np.float64(3)}, r"the block 'a' of X must hold one entry per row, got (np\.float64|3\.0)"),
    ({"a": ["red wine", 3]}, "the block 'a' of X must hold a text per row, got 3 at row 1"),
    (
        {"a": [[1, 2], [1]]},
        r"the block 'a' of X must hold vectors of one width, got 2 and 1 numbers, at row 0 and row 1",
    ),
    ({"a": [1, "x"]}, r"must hold numbers, got 'x' at row 1; kind 'categories' takes both"),
    ({"a": [[1, 2], None]}, "the block 'a' of X must hold a vector per row, got None at row 1"),
    ({"a": [[1, 2], "tea"]}, "the block 'a' of X must hold a vector per row, got 'tea' at row 1"),
    ({"a": [[[1], [2]]]}, "the block 'a' of X must hold a vector per row"),
    ({"a": np.array([[1, np.nan]])}, "the block 'a' of X contains NaN at row 0, column 1"),
    ({"a": [1.0, float("inf")]}, "the block 'a' of X contains infinity"),
    ({"a": [datetime.date(2020, 1, 1)]}, "got date: leave it out"),
    (pd.DataFrame([["a b", "c d"]], columns=["a", "a"]), "distinct column names, got 'a' twice"),
    ({"a": np.zeros((2, 2, 2))}, r"the block 'a' of X must have shape \(n, d\), got \(2, 2, 2\)"),
]


@pytest.mark.parametrize(("X", "message"), BAD, ids=range(len(BAD)))
def test_what_is_no_block(X, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        Blocks.of(X)
    assert "\n" not in str(error.value)


def test_a_kind_of_a_block_that_is_not_there_or_that_is_none():
    with pytest.raises(ValueError, match=r"kinds must be of blocks of X, title, .*got 'caption'"):
        Blocks.of(frame(), {"caption": "text"})
    with pytest.raises(ValueError, match=r"kinds must be of text, .*, got 'txt' for 'title'"):
        Blocks.of(frame(), {"title": "txt"})


def test_columns_of_a_matrix_come_back_as_they_were():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(7, 3)).astype(np.float32)
    dense[2] = 0
    sparse = sp.random(7, 50, 0.2, "csr", np.float32, random_state=rng)
    for parts in ([dense, sparse], [sparse, dense, sparse], [dense, dense[:, :1]]):
        X = side_by_side(parts)
        np.testing.assert_array_equal(
            X.toarray() if sp.issparse(X) else X,
            np.hstack([p.toarray() if sp.issparse(p) else p for p in parts]),
        )
        start = 0
        for part in parts:
            is_dense = isinstance(part, np.ndarray)
            columns = BlockColumns(
                "b", "vector" if is_dense else "sparse", start, start + part.shape[1], is_dense
            )
            own = columns.of(X)
            assert type(own) is type(part)
            np.testing.assert_array_equal(*(m if is_dense else m.toarray() for m in (own, part)))
            start += part.shape[1]


def test_rows_of_numbers_in_lists_are_rows():
    rows = [[1, None, 3], [4, 5, 6]]
    blocks = Blocks.of({"n": rows}, {"n": "numbers"})
    np.testing.assert_array_equal(blocks["n"], np.float32([[1, np.nan, 3], [4, 5, 6]]))
    assert blocks.columns == {"n": ["n 0", "n 1", "n 2"]}
    for wrong in ([[1, 2], [3]], [1, [2]], [[[1]]]):
        with pytest.raises((ValueError, TypeError), match="the block 'n' of X must"):
            Blocks.of({"n": wrong}, {"n": "numbers"})


AS_STORED = {
    "int": [1, 20, None, 1],
    "promoted": pd.Series([1, 20, None, 1]),
    "nullable": pd.Series([1, 20, None, 1], dtype="Int64"),
    "numpy": [np.int8(1), np.float32(20), np.float32("nan"), np.int64(1)],
    "csv": ["1", "20", "", "1"],
    "csv, promoted": ["1.0", "20.0", "", "1.0"],
    "polars": pl.Series([1.0, 20.0, None, 1.0]),
    "categorical": pd.Series(pd.Categorical([1, 20, None, 1])),
    "table": pd.DataFrame({"code": [1, 20, None, 1]}),
}


@pytest.mark.parametrize("stored", AS_STORED)
def test_a_whole_number_is_one_category_however_it_is_stored(stored):
    blocks = Blocks.of({"code": AS_STORED[stored]}, {"code": "categories"})
    assert blocks["code"].tolist() == [["1"], ["20"], [None], ["1"]]
    assert blocks.columns == {"code": ["code"]}


NOT_ONE = [("categories", data) for data in ([1.5], [float("inf")], "abc", 3, {1: 2})]
NOT_ONE += [("vector", data) for data in (3, "text", [3.0, 4.0], ["a", "b"], np.zeros((2, 2, 2)), {"a": 1})]


@pytest.mark.parametrize(("kind", "data"), NOT_ONE, ids=repr)
def test_what_is_no_column_of_its_kind(kind, data):
    with pytest.raises((TypeError, ValueError), match=r"the block 'a' of X must (hold|have)") as error:
        Blocks.like({"a": data}, {"a": kind}, {"a": ["a"]} if kind == "categories" else {})
    assert "-1" not in str(error.value)
    assert kind == "vector" or error.type is TypeError

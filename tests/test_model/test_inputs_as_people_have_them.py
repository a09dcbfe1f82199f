"""Rows and labels in the containers and files that people have: read, or refused in a line that says why."""

import bz2
import datetime
import io
import os
import subprocess
import sys
import threading

import makers
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from metarank import Dataset, MetaRanker
from metarank.apps.cli import main
from metarank.data import load, to_parquet, write_xc
from metarank.data.columns import read_columns
from metarank.data.compressed import read_bytes

N = 12
DENSE = makers.dense(N)
X, Y = DENSE.X, DENSE.Y.toarray()
NAMES = np.array(["a", "b", "c"])[np.arange(N) % 3]
LISTS = [[str(name)] for name in NAMES]
WORDS = ["sea sun", "code bug", "salt bread"] * (N // 3)
FEATURE = X[:, 0]


@pytest.mark.check_beyond(3)
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_sparse_format(form, kind):
    make = getattr(sp, f"{form}_{kind}")
    assert (Dataset(make(X), make(Y)).Y != DENSE.Y).nnz == 0
    model = MetaRanker(**makers.QUICK).fit(make(X), make(Y))
    assert model.n_labels_ == 4
    assert 0 < model.score(make(X), make(Y)) <= 1


@pytest.mark.parametrize(
    "given",
    [
        pl.Series(NAMES),
        pl.Series(LISTS),
        pl.Series(NAMES, dtype=pl.Categorical),
        pd.Series(NAMES, dtype="category"),
        pd.Series(NAMES, dtype="string"),
        pd.Series(LISTS, index=range(5, 5 + N)),
        pd.Series(NAMES, dtype="string").values,
        pd.Series(NAMES).array,
        pd.Categorical(NAMES),
        pa.array(NAMES),
        pa.chunked_array([LISTS]),
    ],
    ids=lambda given: f"{type(given).__module__.partition('.')[0]} {getattr(given, 'dtype', '')}",
)
def test_columns_of_labels(given):
    ds = Dataset(X, given)
    assert ds.label_names == ["a", "b", "c"]
    assert ds.Y.indices.tolist() == [i % 3 for i in range(N)]


@pytest.mark.parametrize(
    "given",
    [
        pd.Series([["a"], None, ["b"]]),
        pd.Series(["a", pd.NA, "b"], dtype="string"),
        pl.Series(["a", None, "b"]),
        pl.Series([["a"], None, ["b"]]),
        pd.Series([7, None, 9], dtype="Int64"),
        ["a", None, "b"],
        np.array(["a", np.nan, "b"], object),
    ],
    ids=str,
)
def test_missing_labels_are_rows_without(given):
    assert Dataset(X[:3], given).Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]


DAYS = pd.date_range("2020-01-01", periods=N)
BAD_LABELS = [
    (pd.Series(DAYS), "Y must hold labels, got a column of datetime64"),
    (pl.Series([datetime.date(2020, 1, 1)] * N), "Y must hold labels, got a column of Date"),
    (DAYS.to_numpy(), "Y must hold label ids or names, got "),
    (pd.DataFrame({"n": Y[:, 0], "tags": NAMES}), r"got text in column 'tags': pass one column, Y\['tags'\]"),
    (pd.DataFrame({"tags": LISTS}), r"got list in column 'tags': pass one column, Y\['tags'\]"),
    (pl.DataFrame({"tags": LISTS}), r"got List\(String\) in column 'tags'"),
    (pd.DataFrame({"a": pd.Categorical(NAMES)}), "got category in column 'a'"),
    (pd.DataFrame({"day": DAYS}), r"got datetime64\[.*\] in column 'day'"),
    (pl.DataFrame(Y).lazy(), r"Y must hold rows, got a polars LazyFrame: pass its collect\(\)"),
    ([{"a": 1}] * N, "Y must hold .* got {'a': 1} at row 0"),
]


TEXTS = [pl.Series(WORDS), pd.Series(WORDS), pd.Series(WORDS, dtype="string").values, tuple(WORDS)]
TEXTS += [pa.array(WORDS), pa.chunked_array([WORDS]), np.array(WORDS)]


@pytest.mark.check_beyond(3)
@pytest.mark.parametrize("given", TEXTS, ids=lambda given: type(given).__name__)
def test_columns_of_texts(given):
    model = MetaRanker(**makers.QUICK).fit(given, Y)
    assert np.array_equal(model.decision_function(given), model.decision_function(WORDS))


def test_missing_numbers_are_named_whatever_stands_beside():
    frame = pd.DataFrame({"a": pd.array([1] * (N - 1) + [None], "Int64"), "b": FEATURE})
    with pytest.raises(ValueError, match=f"X contains NaN at row {N - 1}, column 0"):
        MetaRanker().fit(frame, Y)
    whole = frame.fillna(2)
    assert np.array_equal(
        Dataset(whole).X, np.column_stack([[1] * (N - 1) + [2], FEATURE]).astype(np.float32)
    )


BAD_ROWS = [
    (
        pd.DataFrame({"b": FEATURE, "day": DAYS}),
        "the block 'day' of X must hold .*, got Timestamp: leave it out",
    ),
    (
        pd.DataFrame({"b": FEATURE, "d": DAYS - DAYS[0]}),
        "the block 'd' of X must hold .*, got Timedelta: leave",
    ),
    (
        pl.DataFrame({"b": FEATURE, "day": [datetime.date(2020, 1, 1)] * N}),
        "the block 'day' .* got date: leave",
    ),
    (pa.table({"b": FEATURE, "day": DAYS}), "the block 'day' of X must hold .*, got datetime: leave it out"),
    (pl.DataFrame(X).lazy(), r"X must hold rows, got a polars LazyFrame: pass its collect\(\)"),
    ([{"a": 1.0}] * N, "X must hold rows of numbers or texts, got a dict"),
    ([""] * N, f"X must hold texts with words, got {N} empty ones"),
    ([" \n"] * N, f"X must hold texts with words, got {N} empty ones"),
    (["a", None] * (N // 2), "X must hold a text per row, got None at row 1"),
]


NONE = [(lambda X, Y: MetaRanker().fit(X, Y), rows, Y, message) for rows, message in BAD_ROWS]
for door in (lambda X, Y: MetaRanker().fit(X, Y), Dataset):
    NONE += [(door, X, labels, message) for labels, message in BAD_LABELS]


@pytest.mark.parametrize(("door", "X", "Y", "message"), NONE, ids=range(len(NONE)))
def test_rows_and_labels_that_are_none(door, X, Y, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        door(X, Y)
    assert "\n" not in str(error.value)


def test_texts_of_a_dataset_are_texts():
    for wrong in (None, {"text": "a"}, 3):
        with pytest.raises(TypeError, match=r"texts must hold a text per row, got .* at row 1"):
            Dataset(texts=["a", wrong])


@pytest.mark.parametrize("maker", ["dense", "sparse", "texts", "many labels"])
def test_no_rows_have_empty_answers(maker):
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    width = model.n_labels_
    empty = [[], rows.take([])]
    empty += [pd.Series([], dtype=str), np.array([], str)] if rows.X is None else [rows.X[:0]]
    for none in empty:
        ranking = model.rank(none, k=2)
        assert (ranking.labels.shape, ranking.n_labels) == ((0, 2), width)
        for ask in (model.predict, model.predict_proba, model.decision_function):
            assert ask(none).shape == (0, width)


# Files


TABLE = "text,labels\n" + "".join(f"{text},{name}\n" for text, name in zip(WORDS, NAMES))


@pytest.fixture
def files(tmp_path):
    """The same rows in several formats, as bytes."""
    read_from = tmp_path / "t.csv"
    read_from.write_text(TABLE)
    table = load(read_from)
    to_parquet(table, tmp_path / "t.parquet")
    write_xc(tmp_path / "t.txt", DENSE)
    return {
        "csv": (TABLE.encode(), table),
        "parquet": ((tmp_path / "t.parquet").read_bytes(), table),
        "xc": ((tmp_path / "t.txt").read_bytes(), DENSE),
        "bz2": (bz2.compress(TABLE.encode()[:40]) + bz2.compress(TABLE.encode()[40:]), table),
    }


def same(a: Dataset, b: Dataset) -> None:
    assert (a.texts, a.label_names, a.label_separator) == (b.texts, b.label_names, b.label_separator)
    assert (a.Y != b.Y).nnz == 0
    assert a.X is b.X is None or np.array_equal(a.X, b.X)


def test_bzip2_and_zstandard(tmp_path):
    plain = tmp_path / "t.csv"
    plain.write_text(TABLE)
    for ending, pack in (("bz2", bz2.compress), ("zst", lambda raw: pa.compress(raw, "zstd", asbytes=True))):
        packed = tmp_path / f"t.csv.{ending}"
        packed.write_bytes(pack(TABLE.encode()))
        same(load(packed), load(plain))
        same(load(packed), load(plain))
        packed.write_bytes(pack(TABLE.encode())[:-9])
        with pytest.raises(ValueError, match=r"t\.csv\..*: damaged file"):
            read_bytes(packed)


def test_zstandard_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "t.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd and more")
    with pytest.raises(ImportError, match="pyarrow is not installed; install the extra 'data'"):
        load(path)


def test_a_header_that_names_a_column_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,labels,text\na,b,c\n")
    with pytest.raises(ValueError, match=r"t\.csv: columns must have distinct names, got 'text' twice"):
        load(path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "xc", "bz2"])
def test_a_pipe_is_read_once_and_standard_input_by_the_name_of_a_dash(
    files, kind, tmp_path, monkeypatch, capsys
):
    content, expected = files[kind]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    same(load(pipe), expected)
    writer.join()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    same(load("-"), expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["inspect", "-"]) == 0
    assert ["n_rows", str(N)] in [line.split() for line in capsys.readouterr().out.splitlines()]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert read_columns("-").names == ["a", "b"]


@pytest.mark.check
def test_every_command_takes_standard_input_and_process_substitution(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(TABLE)
    run = f"{sys.executable} -m metarank"
    script = f"""set -e
    cat t.csv | {run} train - --model m --quiet --effort low --ranker logistic --folds 2 --jobs 1
    {run} predict m - --jobs 1 < t.csv > one.txt
    {run} predict m <(cat t.csv) --jobs 1 > two.txt
    {run} predict m t.csv --jobs 1 > three.txt
    cmp one.txt two.txt && cmp one.txt three.txt
    {run} evaluate m - --metrics P@1 --jobs 1 < t.csv
    {run} explain m - --row 1 --top 1 --jobs 1 < t.csv
    """
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "P@1" in done.stdout

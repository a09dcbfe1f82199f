"""Tables: pandas, polars and Arrow give the same Dataset; Parquet gives back what was written."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import data
from metarank.data import from_frame, to_parquet
from metarank.data.dataset import Dataset

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {
    "size": [1.5, 2.0, -1.0],
    "count": [1, 0, 3],
    "flag": [True, False, True],
    "title": ["red", None, "tea"],
    "note": ["wine", "x", None],
    "tags": [["a", "b"], [], ["b"]],
    "ids": [[1], [0, 1], None],
    "kind": ["k", "l", "k"],
    "hot": [0, 1, 1],
    "cold": [2.0, 0.0, 0.0],
}


def frames():
    import pandas as pd
    import polars as pl

    yield pa.table(COLUMNS)
    yield pd.DataFrame(COLUMNS)
    yield pl.DataFrame(COLUMNS)


def same(a, b):
    def matrix(m):
        return None if m is None else m.toarray() if sp.issparse(m) else m

    for field in ("X", "Y"):
        x, y = matrix(getattr(a, field)), matrix(getattr(b, field))
        assert (x is None) == (y is None)
        assert x is None or (x.dtype == y.dtype and np.array_equal(x, y))
        assert sp.issparse(getattr(a, field)) == sp.issparse(getattr(b, field))
    for field in ("label_names", "feature_names", "texts", "titles", "label_texts", "name"):
        assert getattr(a, field) == getattr(b, field)


def test_every_library_gives_the_same():
    for frame in frames():
        ds = from_frame(frame, labels_column="tags", feature_columns=["size", "flag"])
        assert ds.X.tolist() == [[1.5, 1], [2, 0], [-1, 1]]
        assert ds.feature_names == ["size", "flag"]
        read = from_frame(frame, labels_column="tags", text_column=["title", "note"], feature_columns=[])
        assert read.texts == ["red\nwine", "x", "tea"]
        for found in (ds, read):
            assert found.label_names == ["a", "b"]
            assert found.Y.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]


def test_label_forms():
    for frame in frames():
        ids = from_frame(frame, labels_column="ids", feature_columns=["size"])
        assert ids.Y.toarray().tolist() == [[0, 1], [1, 1], [0, 0]]
        kind = from_frame(frame, labels_column="kind", feature_columns=["size"])
        assert (kind.label_names, kind.Y.toarray().tolist()) == (["k", "l"], [[1, 0], [0, 1], [1, 0]])
        graded = from_frame(frame, label_columns=["hot", "cold"])
        assert graded.label_names == ["hot", "cold"]
        assert graded.Y.toarray().tolist() == [[0, 2], [1, 0], [1, 0]]
        assert graded.feature_names == ["size", "count", "flag"]  # the numeric columns that are left
        assert from_frame(frame, text_column="note", feature_columns=[]).X is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"labels_column": "x"}, "labels_column must be among .*'size'.*got 'x'"),
        ({"label_columns": ["hot", "x"]}, "label_columns must be among .*got 'x'"),
        ({"text_column": "x"}, "text_column must be among .*got 'x'"),
        ({"feature_columns": ["x"]}, "feature_columns must be among .*got 'x'"),
        ({"feature_columns": ["title"]}, "feature_columns must be numeric or boolean, got 'title' of type"),
        ({"label_columns": ["tags"]}, "label_columns must be numeric or boolean, got 'tags' of type"),
        ({"label_columns": ["hot"], "labels_column": "tags"}, "exclude each other"),
        ({"text_column": ["title"], "labels_column": "title"}, "labels_column must differ, got 'title'"),
        ({"text_column": "size", "feature_columns": []}, "text_column must hold text, got float in 'size'"),
        (
            {"text_column": "note"},
            "texts or numbers, got text_column 'note' and .*'size', .*feature_columns=",
        ),
        ({"text_column": "note", "feature_columns": ["size"]}, "texts or numbers, .* numbers in 'size': "),
    ],
)
def test_bad_input_is_named(parameters, message):
    for frame in frames():
        with pytest.raises(ValueError, match=message):
            from_frame(frame, **parameters)


def test_missing_features_and_other_objects():
    with pytest.raises(ValueError, match="NaN at row 1, column 0"):
        from_frame(pa.table({"a": [1, None]}))
    with pytest.raises(TypeError, match="frame must be a pandas, polars or Arrow table, got list"):
        from_frame([[1]])


def datasets():
    rng = np.random.default_rng(0)
    dense = rng.random((5, 4)).astype(np.float32)
    wide = sp.random(5, 400, 0.02, "csr", np.float32, rng)
    lists = [["x"], [], ["x", "y"], ["z"], ["y"]]
    grades = sp.csr_matrix(np.array([[1.5, 0], [0, 2], [0, 0], [1, 1], [0, 3]], np.float32))
    yield Dataset(dense, lists, name="dense", feature_names=list("abcd"))
    yield Dataset(wide, grades, name="wide", titles=["a", "", "ü\n", "d", "e"])
    yield Dataset(texts=list("abcde"), Y=lists, name="text", label_texts=["the x", "the y", "the z"])
    yield Dataset(dense, name="no labels")
    yield Dataset(sp.csr_matrix((5, 300), dtype=np.float32), lists, name="empty rows")
    yield Dataset(dense[:0], sp.csr_matrix((0, 2)), name="no rows")


@pytest.mark.parametrize("dataset", list(datasets()), ids=lambda ds: ds.name)
def test_parquet_round_trip(dataset, tmp_path):
    to_parquet(dataset, tmp_path / "d.parquet")
    same(dataset, data.load(tmp_path / "d.parquet"))


def test_parquet_of_others(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1, 2], "text": ["u", "v"], "labels": [["p"], ["q"]]}), path)
    ds = data.load(path, text_column="text")
    assert (ds.name, ds.label_names, ds.texts, ds.feature_names) == ("other", ["p", "q"], ["u", "v"], None)
    with pytest.raises(ValueError, match=r"numbers in 'a'.*--text-column"):
        data.load(path)
    with pytest.raises(ValueError, match=r"other\.parquet: labels_column must be among"):
        data.load(path, labels_column="nope")
    numbers = data.load(path, text_column=[])
    assert (numbers.texts, numbers.n_features) == (None, 1)
    path.write_bytes(b"PAR1 and then nothing of use PAR1")
    with pytest.raises(ValueError, match=r"other\.parquet: "):
        data.load(path)


def test_columns_of_text_in_parquet_are_found_by_name_as_in_other_tables(tmp_path):
    path = tmp_path / "plain.parquet"
    columns = {"body": ["b", None], "title": ["t", "u"], "text": [[1.0], None], "labels": [["p"], ["q"]]}
    pq.write_table(pa.table(columns), path)
    ds = data.load(path)
    assert (ds.texts, ds.label_names, ds.feature_names) == (["t\nb", "u"], ["p", "q"], None)
    pq.write_table(pa.table({"note": ["u", "v"], "labels": [["p"], ["q"]]}), path)
    with pytest.raises(
        ValueError, match=r"plain\.parquet: no column .* among \['note', 'labels'\]: .*text_column"
    ):
        data.load(path)
    assert data.load(path, text_column="note").texts == ["u", "v"]

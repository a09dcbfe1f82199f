"""Files that `make_files` writes are read back by `data.load` as the data set they came from."""

from __future__ import annotations

import numpy as np
import pytest

from metarank import data
from metarank.data.make import make_files


def test_pydocs_round_trip(tmp_path):
    files = make_files("pydocs", tmp_path / "docs")
    assert [f.name for f in files] == ["train.jsonl", "test.jsonl", "labels.txt", "label_text.txt"]
    for file, split in zip(files, ("train", "test")):
        read, made = data.load(file), data.load_pydocs(split)
        assert read.texts == made.texts
        assert read.label_names == made.label_names
        assert read.label_texts == [" ".join(text.split()) for text in made.label_texts]
        assert (read.Y != made.Y).nnz == 0
        assert read.name == "docs"


def test_synthetic_round_trip(tmp_path):
    files = make_files("synthetic", tmp_path, rows=200, features=80, labels=30, seed=3)
    train, test = (data.load(f) for f in files)
    whole = data.make_extreme(200, 80, 30, nnz_per_row=40, seed=3)
    assert (train.n_rows, test.n_rows) == (160, 40)
    assert train.Y.shape[1] == test.Y.shape[1] == 30
    assert train.X.shape[1] == test.X.shape[1] == 80
    assert np.isclose(train.X.sum() + test.X.sum(), whole.X.sum())
    again = make_files("synthetic", tmp_path / "again", rows=200, features=80, labels=30, seed=3)
    assert [f.read_bytes() for f in files] == [f.read_bytes() for f in again]


def test_labels_of_a_table_are_those_of_labels_txt(tmp_path):
    (tmp_path / "train.csv").write_text("text,labels\nred wine,b;a\ngreen tea,\n")
    assert data.load(tmp_path / "train.csv").label_names == ["a", "b"]
    (tmp_path / "labels.txt").write_text("b\nunused\na\n")
    read = data.load(tmp_path / "train.csv")
    assert read.label_names == ["b", "unused", "a"]
    assert read.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]
    assert read.label_texts is None
    assert data.load(tmp_path / "train.csv", sidecars=False).label_names == ["a", "b"]
    (tmp_path / "label_text.txt").write_text("only one\n")
    with pytest.raises(ValueError, match="label_texts must have 3 entries, got 1"):
        data.load(tmp_path / "train.csv")
    (tmp_path / "labels.txt").write_text("b\n")
    with pytest.raises(ValueError, match="lacks the label 'a'"):
        data.load(tmp_path / "train.csv")


def test_label_separator_and_fasttext_pass_through_load(tmp_path):
    (tmp_path / "t.csv").write_text("text,labels\nred,a b/c\n")
    assert data.load(tmp_path / "t.csv", label_separator="/").label_names == ["a b", "c"]
    (tmp_path / "t.ft").write_text("__label__a __label__b red wine\n__label__a green tea\n")
    read = data.load(tmp_path / "t.ft")
    assert (read.label_names, read.texts) == (["a", "b"], ["red wine", "green tea"])

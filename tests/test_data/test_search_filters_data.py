"""Product titles with attributes as labels: the readers and their place among the named sets."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from pathlib import Path

import pytest

from metarank.data import get, list_datasets, load_named
from metarank.data.search_filters import leading_brands, read_attribute_values, read_fashion_styles

BENCHMARKS = Path(os.environ.get("METARANK_DATA", Path(__file__).parents[3] / "shared" / "data"))
HEADER = "id,gender,masterCategory,subCategory,articleType,baseColour,season,year,usage,productDisplayName\n"
ROWS = """\
1,Men,Apparel,Topwear,Shirts,Navy Blue,Fall,2011,Casual,Turtle Check Men Navy Blue Shirt
2,Men,Personal Care,Fragrance,Perfume,NA,Spring,2017,Casual,Boss Men Perfume, After Shave Balm
3,Women,Apparel,Topwear,Tops,Red,Summer,2012,NA,NA
4,Women,Apparel,Topwear,Tops,  Red  Wine ,Summer,2012,,TOP
"""
TITLE = {"input": "SEAPESCA VIB", "target_scores": {"Lure  Type": {"VIB": 1}, "Material": {"n/a": 1}}}


def labels_of(dataset, row):
    return [dataset.label_names[j] for j in dataset.Y[row].indices]


def test_fashion_titles_and_their_attributes(tmp_path):
    path = tmp_path / "styles.csv"
    path.write_text(HEADER + ROWS)
    ds = read_fashion_styles(path)
    # A comma in the title parts no column; a row without a title is left out, a value NA no label.
    assert ds.texts == ["Turtle Check Men Navy Blue Shirt", "Boss Men Perfume, After Shave Balm", "TOP"]
    assert labels_of(ds, 0) == [
        "colour: navy blue",
        "gender: men",
        "season: fall",
        "type: shirts",
        "usage: casual",
    ]
    assert labels_of(ds, 1) == ["gender: men", "season: spring", "type: perfume", "usage: casual"]
    assert labels_of(ds, 2) == ["colour: red wine", "gender: women", "season: summer", "type: tops"]


def test_brands_are_beginnings_of_titles():
    titles = [f"Peter England {whom} Shirt" for whom in ("Men", "Women", "Boys", "Men's", "Unisex")]
    titles += [f"Peter Men Shirt {i}" for i in range(5)]
    titles += [f"Rare Men Shirt {i}" for i in range(4)] + ["Rare Men Shirt 3"]
    more = ["peter  england Jeans", "Peter Jeans", "Rare Jeans", "Men Shirt", ""]
    assert leading_brands(titles + more)[-5:] == ["peter england", "peter", "", "", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the columns must hold gender"),
        ("id,title\n1,x\n", "the columns must hold gender"),
        (HEADER + "1,Men,Apparel\n", "line 2 has 3 fields, the header has 10"),
        (HEADER, "there is no row"),
    ],
)
def test_tables_that_are_none(tmp_path, content, message):
    path = tmp_path / "styles.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_fashion_styles(path)


def test_attribute_values(tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl.xz"]
    paths[0].write_text(json.dumps(TITLE) + "\n\n")
    paths[1].write_bytes(lzma.compress(json.dumps({"input": "plain", "target_scores": {}}).encode()))
    ds = read_attribute_values(*paths)
    assert ds.texts == ["SEAPESCA VIB", "plain"]
    assert ds.label_names == ["lure type: vib"]
    assert ds.Y.toarray().tolist() == [[1.0], [0.0]]
    for line in ("{", "[]", '{"input": "x"}', '{"input": "x", "target_scores": [1]}'):
        paths[0].write_text(json.dumps(TITLE) + "\n" + line)
        with pytest.raises(ValueError, match="line 2 must be an object with input and target_scores"):
            read_attribute_values(paths[0])
    paths[0].write_text("\n")
    with pytest.raises(ValueError, match="no row"):
        read_attribute_values(paths[0])


def test_sets_without_a_split(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"put styles\.csv into text/fashion_styles/"):
        get("fashion_styles", data_dir=tmp_path)
    folder = tmp_path / "text" / "fashion_styles"
    folder.mkdir(parents=True)
    (folder / "styles.csv.xz").write_bytes(lzma.compress((HEADER + ROWS).encode()))
    digest = hashlib.sha256((folder / "styles.csv.xz").read_bytes()).hexdigest()
    meta = {"files": [{"file": "styles.csv.xz", "sha256": digest}]}
    (folder / "META.json").write_text(json.dumps(meta))
    assert [r.name for r in list_datasets(tmp_path) if r.available] == ["fashion_styles"]
    ds = load_named("fashion_styles", "all", data_dir=tmp_path)
    assert (ds.name, ds.n_rows) == ("fashion_styles", 3)
    with pytest.raises(ValueError, match=r"split must be 'all' for .*fashion_styles"):
        load_named("fashion_styles", data_dir=tmp_path)
    meta["files"][0]["sha256"] = "0" * 64
    (folder / "META.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=r"META\.json says 0000"):
        load_named("fashion_styles", "all", data_dir=tmp_path)


@pytest.mark.skipif(not (BENCHMARKS / "text").is_dir(), reason="needs the sets in $METARANK_DATA/text")
@pytest.mark.parametrize("name", ["cooking_stackexchange", "fashion_styles", "product_attribute_values"])
def test_the_sets_have_the_sizes_stated(name):
    record = next(r for r in list_datasets(BENCHMARKS) if r.name == name)
    ds = load_named(name, "all", data_dir=BENCHMARKS)
    assert (ds.n_rows, ds.n_labels) == (record.n_train, record.n_labels)
    assert all(ds.texts)

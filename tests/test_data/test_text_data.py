"""Tables of raw text: formats, columns, separators, errors with their lines."""

import gzip
import json
import lzma
import os
from pathlib import Path

import pytest

from metarank.data import from_texts, load

DATA = Path(os.environ.get("METARANK_DATA", Path(__file__).parents[3] / "shared" / "data"))


def written(tmp_path, file, content):
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(ds):
    names = ds.label_names or []
    return [(text, [names[j] for j in ds.Y[i].indices]) for i, text in enumerate(ds.texts)]


EXPECTED = [("red wine", ["drink", "grape"]), ("green, tea", []), ('a "quoted"\nline', ["x y"])]
CSV = 'text,labels,other\r\nred wine,drink; grape,1\r\n"green, tea",,2\r\n"a ""quoted""\nline",x y;,3\r\n'
JSONL = "\n".join(json.dumps({"text": text, "labels": labels}) for text, labels in EXPECTED)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("file", "content"), [("t.csv", CSV), ("t.jsonl", JSONL)])
def test_utf_16_with_its_mark_says_the_same(tmp_path, file, content, encoding):
    path = written(tmp_path, file, ("\ufeff" + content).encode(encoding))
    assert rows(load(path)) == rows(load(path)) == EXPECTED


@pytest.mark.parametrize(
    ("file", "beside", "name"),
    [
        ("test.csv", None, "test"),
        ("all.csv", None, "all"),
        ("test.csv", "labels.txt", "own"),
        ("train.svm", None, "own"),
    ],
)
def test_a_table_is_named_by_its_folder_only_in_a_data_set_s(tmp_path, file, beside, name):
    (tmp_path / "own").mkdir()
    if beside is not None:
        written(tmp_path / "own", beside, "b\n")
    content = "text,labels\na,b\n" if file.endswith("csv") else "0 0:1\n"
    assert load(written(tmp_path / "own", file, content)).name == name


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("t.csv", CSV),
        ("t.csv", "\ufeff" + CSV.replace("; ", "|").replace("x y;", "x y")),
        ("t.jsonl", JSONL + "\n\n"),
        ("lines", JSONL),
        ("t.csv", CSV.replace("drink; grape", '"[""drink"", ""grape""]"').replace("x y;", "x y")),
    ],
)
def test_formats_say_the_same(tmp_path, file, content, pack):
    ds = load(written(tmp_path, file, pack(content.encode())))
    assert rows(ds) == EXPECTED
    assert ds.X is None
    assert ds.name == file.split(".")[0]


def test_tsv(tmp_path):
    content = "text\tlabels\nred, wine\ta|b\ntea\tb\n"
    for file in ("t.tsv", "t.tsv.gz"):
        ds = load(written(tmp_path, file, content))
        assert rows(ds) == [("red, wine", ["a", "b"]), ("tea", ["b"])]


def test_fasttext(tmp_path):
    path = written(tmp_path, "q.txt", "__label__a __label__b-c How much?\n\n__label__a\n No label here\n")
    assert rows(load(path)) == [("How much?", ["a", "b-c"]), ("", ["a"]), ("No label here", [])]


def test_columns_and_separators(tmp_path):
    path = written(tmp_path, "t.csv", "q,more,tag\nred,wine,a;b/c\ngreen,,c\n")
    joined = load(path, text_column="q,more", labels_column="tag")
    assert rows(joined) == [("red\nwine", ["a", "b/c"]), ("green", ["c"])]
    assert load(path, text_column=["more", "q"]).texts == ["wine\nred", "green"]
    assert load(path, text_column="q").n_labels == 0
    assert load(path, text_column="q", labels_column="tag", label_separator="/").label_names == ["a;b", "c"]


def test_json_values(tmp_path):
    lines = [
        '{"text": "a", "labels": ["x", 3, "x"]}',
        '{"text": null, "labels": null}',
        '{"labels": 3, "text": "b"}',
    ]
    ds = load(written(tmp_path, "t.jsonl", "\n".join(lines)))
    assert rows(ds) == [("a", ["3", "x"]), ("", []), ("b", ["3"])]


def test_a_long_field_is_no_error(tmp_path):
    path = written(tmp_path, "t.csv", "text,labels\n" + "word " * 50_000 + ",a\n")
    assert len(load(path).texts[0]) == 250_000


@pytest.mark.parametrize(
    ("file", "content", "columns", "message"),
    [
        ("t.csv", "q,tag\na,b\n", {}, r"no column .* among \['q', 'tag'\]: .*text_column"),
        ("t.csv", "q,tag\na,b\n", {"text_column": "Q"}, r"text_column must be among .*'q', 'tag'.*'Q'"),
        ("t.csv", "text,tag\na,b\n", {"labels_column": "l"}, r"labels_column must be among .*got 'l'"),
        ("t.csv", "text,labels\na,b\nc,d,e\n", {}, "line 3 has 3 fields, the header has 2"),
        ("t.csv", 'text,labels\na,b\n"two\nlines",c\n"never closed,d\ne,f\n', {}, "line 5: .*quotes"),
        ("t.csv", 'text,labels\n"a"b,c\n', {}, "line 2: .*quotes"),
        ("t.csv", "text,labels\n", {}, "no rows"),
        ("t.csv", "", {}, "the file is empty"),
        (
            "t.csv",
            "text,tag\na,b\n",
            {"text_column": "tag", "labels_column": "tag"},
            "must differ, got 'tag'",
        ),
        ("t.csv", "text,tag\na,b\n", {"labels_column": "text"}, "no column of numbers or of text"),
        ("t.jsonl", '[{"text": "a"},\n {"text": "b"}]\n', {}, "one object a line"),
        ("t.json", '[\n{"text": "a"}]\n', {}, "one object a line"),
        ("t.csv", 'text,labels\na,"[""x"""\nb,[x]\n', {}, "line 3: labels must be names or a list"),
        ("t.jsonl", '{"text": "a"}\n{"text": \n', {}, "line 2 is not JSON"),
        ("t.jsonl", '{"text": "a"}\n\n["b"]\n', {}, "line 3 must be a JSON object, got list"),
        ("t.jsonl", '{"text": 3}\n', {}, "text_column must hold text, got int in 'text' at line 1"),
        ("t.jsonl", '{"text": "a", "labels": {"b": 1}}\n', {}, "line 1: labels must be"),
        ("t.jsonl", '{"text": "a", "labels": [["b"]]}\n', {}, "line 1: labels must be"),
        ("t.csv", b"text,labels\na,b\n\xff,c\n", {}, "line 3 is not UTF-8 .*: set encoding"),
        ("t.csv", b"\xff\xfet\0e", {}, "damaged file: 'utf-16-le' codec can't decode"),
    ],
)
def test_errors_name_file_line_and_rule(tmp_path, file, content, columns, message):
    path = written(tmp_path, file, content)
    with pytest.raises(ValueError, match=message) as error:
        load(path, **columns)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_from_texts():
    ds = from_texts(["a", "b"], [["x"], ["x", "y"]], name="toy")
    assert rows(ds) == [("a", ["x"]), ("b", ["x", "y"])]
    assert from_texts(["a"]).n_labels == 0
    with pytest.raises(TypeError, match=r"texts must hold a text per row, got 1 at row 1"):
        from_texts(["a", 1])
    with pytest.raises(TypeError, match="wrap it in a list"):
        from_texts("a")


@pytest.mark.parametrize(
    ("file", "columns", "n_rows", "n_labels"),
    [
        ("text/cooking_stackexchange/cooking.stackexchange.txt.xz", {}, 15404, 736),
        ("mlc/reuters90/test.jsonl.gz", {}, 3019, 90),
        (
            "text/product_attribute_values/oa-mine.test.jsonl.xz",
            {"text_column": "input", "labels_column": "category"},
            491,
            10,
        ),
    ],
)
def test_real_files(file, columns, n_rows, n_labels):
    path = DATA / file
    if not path.is_file():
        pytest.skip(f"{file} is not in the data folder (set METARANK_DATA)")
    ds = load(path, sidecars=False, **columns)
    assert (ds.n_rows, ds.n_labels) == (n_rows, n_labels)
    assert sum(map(len, ds.texts)) > 10 * n_rows


def test_a_real_file_with_unquoted_commas_names_the_line():
    path = DATA / "text/fashion_styles/styles.csv.xz"
    if not path.is_file():
        pytest.skip("fashion_styles is not in the data folder (set METARANK_DATA)")
    with pytest.raises(ValueError, match=r"line \d+ has 11 fields, the header has 10"):
        load(path, text_column="productDisplayName", labels_column="articleType")

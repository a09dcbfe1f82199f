"""Tables of labels from frames, files and records: one table by every door."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from metarank.data import LabelDescriptions, read_labels

RECORDS = [
    {"id": "p1", "name": "vessels", "description": "What floats.", "vector": [1.0, 0.0]},
    {"id": "p2", "name": "boats", "alternative_names": ["small craft", "dinghies"], "parents": ["p1"]},
    {"id": "p3", "name": "sails", "alternative_names": ["canvas"], "related": ["p2"], "vector": [0.5, 2.0]},
]
COLUMNS = ["id", "name", "alternative_names", "description", "parents", "related", "vector"]
CSV = """id,name,alternative_names,description,parents,related,vector
p1,vessels,,What floats.,,,"[1.0, 0.0]"
p2,boats,small craft|dinghies,,p1,,
p3,sails,"[""canvas""]",,,p2,0.5 2
"""


def frame() -> pd.DataFrame:
    return pd.DataFrame(RECORDS, columns=COLUMNS)


def written(folder, ending: str):
    path = folder / f"labels.{ending}"
    if ending == "csv":
        path.write_text(CSV)
    elif ending == "tsv":
        rows = [line.split(",", 2) for line in ["id,name,parents", "p1,vessels,", "p2,boats,p1"]]
        path.write_text("\n".join("\t".join(row) for row in rows))
    elif ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, RECORDS)))
    elif ending == "jsonl.gz":
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, RECORDS)).encode()))
    else:
        frame().to_parquet(path)
    return path


@pytest.mark.parametrize(
    "door", ["csv", "jsonl", "jsonl.gz", "parquet", "pandas", "polars", "arrow", "itself"]
)
def test_one_table_by_every_door(door, tmp_path):
    wanted = read_labels(RECORDS)
    assert wanted.alternative_names == [[], ["small craft", "dinghies"], ["canvas"]]
    np.testing.assert_array_equal(wanted.vectors, np.float32([[1, 0], [0, 0], [0.5, 2]]))
    if door == "pandas":
        source = frame()
    elif door == "polars":
        source = pytest.importorskip("polars").DataFrame(RECORDS, schema=COLUMNS, infer_schema_length=None)
    elif door == "arrow":
        source = pytest.importorskip("pyarrow").Table.from_pandas(frame())
    else:
        source = wanted if door == "itself" else written(tmp_path, door)
    assert repr(read_labels(source).columns()) == repr(wanted.columns())


def test_columns_of_other_names(tmp_path):
    path = tmp_path / "skos.tsv"
    path.write_text(
        "uri\tlabel_fi\taltLabel\tbroader\tnote\np1\tlaivat\t\t\tx\np2\tveneet\tjollat|ruuhet\tp1\ty\n"
    )
    with pytest.raises(ValueError, match=r"got 'note'.* with note=None"):
        read_labels(path, name="label_fi")
    labels = read_labels(path, name="label_fi", note=None)
    assert labels.columns() == {
        "ids": ["p1", "p2"],
        "names": ["laivat", "veneet"],
        "alternative_names": [[], ["jollat", "ruuhet"]],
        "parents": [[], ["p1"]],
    }


def test_integer_ids_of_a_frame():
    labels = read_labels(pd.DataFrame({"id": [7, 9], "name": ["sea", "bay"], "parents": [None, [7]]}))
    assert labels.ids == ["7", "9"]
    assert labels.parents.toarray().tolist() == [[0, 0], [1, 0]]


BAD = {
    "no label column": ("a,b\n1,2\n", r"labels must have a column 'id' or 'name', got \['a', 'b'\]"),
    "a broken list": ('name,parents\na,"[x"\n', "column 'parents', line 2: Expecting value"),
    "a list of numbers": (
        'name,altLabel\na,"[1.5]"\n',
        "column 'altLabel', line 2: expected a list of texts, got 1.5",
    ),
    "a vector of words": ("name,vector\na,1 b\n", "column 'vector', line 2: expected a list of numbers"),
    "an empty id": ("id,name\n,a\n", "ids must be texts or integers, got None"),
    "a cycle": ("name,parents\na,b\nb,a\n", "parents must not form a cycle"),
    "a separator that is none": (
        "name,altLabel,parents\na,x;y,\nb,,x;y\n",
        "parents of label 'b' .*got 'x;y'",
    ),
    "a name twice": ("name,altLabel\na,b\na,c\n", "names of labels without ids must be names of one label"),
    "no rows": ("name\n", "must have a column|must have a label"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_by_name(case, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(BAD[case][0])
    with pytest.raises(ValueError, match=BAD[case][1]) as found:
        read_labels(path)
    assert str(found.value).startswith(str(path))
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("door", ["records", "frame", "csv"])
@pytest.mark.parametrize("column", ["aliases", "Parents", "foo"])
def test_columns_of_no_meaning_are_refused(column, door, tmp_path):
    records = [{"name": "sea", column: "x"}, {"name": "bay", column: ""}]
    pd.DataFrame(records).to_csv(tmp_path / "labels.csv", index=False)
    source = {"records": records, "frame": pd.DataFrame(records), "csv": tmp_path / "labels.csv"}[door]
    with pytest.raises(ValueError, match=f"labels must have only the columns id, .*, got '{column}'"):
        read_labels(source)
    assert (
        read_labels(source, **{column: None}).columns()
        == read_labels([{"name": "sea"}, {"name": "bay"}]).columns()
    )


@pytest.mark.parametrize(
    ("source", "columns", "message"),
    [
        (
            3,
            {},
            "labels must be a LabelDescriptions, the path of a file, a data frame, or a list of names or",
        ),
        (RECORDS, {"title": "name"}, "columns must be given for id, name"),
    ],
)
def test_other_sources_are_refused(source, columns, message):
    with pytest.raises(TypeError, match=message):
        read_labels(source, **columns)


def test_an_unknown_column_is_named():
    with pytest.raises(ValueError, match=r"name must be among .*, got 'title'"):
        read_labels(RECORDS, name="title")
    with pytest.raises(ValueError, match=r"columns that are None must be among .*, got 'title'"):
        read_labels(RECORDS, title=None)
    assert isinstance(read_labels(RECORDS, description="name"), LabelDescriptions)

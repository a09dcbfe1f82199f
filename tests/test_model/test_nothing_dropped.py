"""Columns and texts are learned from, refused by name, or left out with a line that says so."""

import logging

import makers
import numpy as np
import pandas as pd
import pytest

from metarank import Dataset, MetaRanker, load
from metarank.apps.cli import main
from metarank.data import from_frame, to_parquet, write_xc
from metarank.data import load as load_data

ROWS = makers.texts()
FRAME = pd.DataFrame(
    {
        "id": range(len(ROWS.texts)),
        "text": ROWS.texts,
        "tags": [";".join(ROWS.label_names[j] for j in row.indices) for row in ROWS.Y],
        "url": "http://a",
    }
)


def test_texts_beside_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match=r"X and texts must not both be given: .*titles"):
        Dataset(np.eye(3), [["a"], ["b"], ["a"]], texts=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"'text' and numbers in 'id': .* feature_columns=\[\]"):
        from_frame(FRAME, text_column="text", labels_column="tags")
    ds = from_frame(FRAME, text_column="text", labels_column="tags", feature_columns=[])
    assert (ds.X, ds.texts, ds.label_names) == (None, ROWS.texts, sorted(ROWS.label_names))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_left_out_are_told_in_one_line(kind, tmp_path, capsys):
    path = tmp_path / f"t.{kind}"
    {
        "csv": lambda: FRAME.to_csv(path, index=False),
        "jsonl": lambda: FRAME.to_json(path, orient="records", lines=True),
        "parquet": lambda: FRAME.to_parquet(path),
    }[kind]()
    with pytest.warns(UserWarning, match="left out") as told:
        ds = load_data(path, text_column="text", labels_column="tags")
    assert (ds.texts, ds.n_features) == (ROWS.texts, 0)
    (said,) = [str(warning.message) for warning in told]
    assert said == f"{path}: left out 2 columns: 'id', 'url'"
    assert main(["inspect", str(path), "--text-column", "text", "--labels-column", "tags"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "left out" in line] == [f"metarank: warning: {said}"]


LEAKS = {
    "a table and its column": lambda frame: (frame, frame["tags"]),
    "a table and its values": lambda frame: (frame, frame["tags"].tolist()),
    "a table of both": lambda frame: (frame, frame[["tags"]]),
    "a dict": lambda frame: ({"text": frame["text"].tolist(), "tags": frame["tags"].tolist()}, frame["tags"]),
    "numbers": lambda frame: (frame[["id"]].rename(columns={"id": "tags"}), frame["id"]),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_labels_among_the_features_are_refused(kind):
    with pytest.raises(ValueError, match="X must not hold the labels, got column 'tags', which is Y"):
        MetaRanker(**makers.QUICK).fit(*LEAKS[kind](FRAME))


def test_a_matrix_without_an_irrelevant_pair_is_told():
    with pytest.warns(UserWarning, match="Y has all 3 labels relevant in all 40 rows"):
        MetaRanker(**makers.QUICK).fit(np.random.default_rng(0).random((40, 3)), np.ones((40, 3)))


def test_titles_are_for_display(tmp_path, caplog):
    ds = makers.dense()
    write_xc(tmp_path / "train.txt", ds)
    titles = [f"the {i}th" for i in range(ds.n_rows)]
    (tmp_path / "titles.train.txt").write_text("\n".join(titles))
    with caplog.at_level(logging.INFO, "metarank.data"):
        read = load_data(tmp_path / "train.txt")
    assert [r.getMessage() for r in caplog.records] == [
        f"{tmp_path / 'train.txt'}: titles.train.txt is only shown as names of rows"
    ]
    assert (read.titles, read.texts, read.summary()["titles"]) == (titles, None, True)
    assert read.take([2, 0]).titles == ["the 2th", "the 0th"]
    to_parquet(read, tmp_path / "t.parquet")
    assert load_data(tmp_path / "t.parquet").titles == titles
    titled, plain = MetaRanker(**makers.QUICK).fit(read), MetaRanker(**makers.QUICK).fit(ds)
    assert np.array_equal(titled.decision_function(ds), plain.decision_function(ds))
    titled.save(tmp_path / "m")
    names = [n.name for n in load(tmp_path / "m").explain(ds.X[0], 0).neighbors]
    assert names
    assert set(names) <= set(titles)
    with pytest.raises(ValueError, match="titles must have 60 entries, got 1"):
        Dataset(ds.X, titles=["a"])


def test_a_warning_points_at_the_line_that_called():
    for call in (
        lambda: MetaRanker(**makers.QUICK).fit(np.random.default_rng(0).random((40, 3)), np.ones((40, 3))),
        lambda: from_frame(
            FRAME, text_column="text", labels_column="tags", text_columns=None, feature_columns=[]
        ),
    ):
        with pytest.warns(UserWarning, match="left out|all 3 labels") as told:
            call()
        assert {warning.filename for warning in told} == {__file__}

"""Files and texts as people have them, from public reports on other programs."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from metarank.data import TextVectorizer, load

FOLDER = Path(__file__).with_name("reports")
CASES = json.loads((FOLDER / "cases.json").read_text())


@pytest.mark.parametrize("case", CASES["files"], ids=lambda case: case["file"])
def test_a_file_is_read_as_it_was_meant(case, tmp_path):
    file = FOLDER / case["file"]
    if "?" in (text := file.read_text("latin-1")) and file.suffix == ".arff":
        with pytest.raises(ValueError, match="line 7: attribute 'y' has a missing value: fill it"):
            load(file)
        file = tmp_path / file.name
        file.write_text(text.replace("?", "7"))
    dataset = load(file, **case.get("options", {}))
    assert dataset.n_rows == case["rows"]
    assert sorted(dataset.label_names) == case["labels"]
    found = [sorted(dataset.label_names[j] for j in row.indices) for row in dataset.Y]
    assert found == case["labels_of_rows"]
    assert dataset.texts is None or list(dataset.texts) == case.get("texts", list(dataset.texts))


@pytest.mark.parametrize("case", CASES["terms"], ids=lambda case: case["why"][:20])
def test_words_of_any_script_are_whole(case):
    terms = TextVectorizer(language=None).terms
    found = terms(case["text"])
    assert set(case.get("terms", ())) <= set(found)
    assert found == terms(unicodedata.normalize("NFD", case["text"]))
    if "shares_a_term_with" in case:
        assert set(found) & set(terms(case["shares_a_term_with"]))
        assert not set(found) & set(terms(case["differs_from"]))
    assert not case.get("one_term") or len(set(found)) == 1


def test_a_sheet_of_excel_is_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["title", "tags", "size"],
        ["red wine", "red;wine", 2],
        [None, None, None],
        ["tea", "tea;red", 3.5],
    ):
        book.active.append(row)
    book.save(tmp_path / "sheet.xlsx")
    dataset = load(tmp_path / "sheet.xlsx", text_column="title")
    assert list(dataset.texts) == ["red wine", "tea"]
    assert [[dataset.label_names[j] for j in row.indices] for row in dataset.Y] == [
        ["red", "wine"],
        ["red", "tea"],
    ]
    book.active.append(["", "", "", "no name"])
    book.save(tmp_path / "sheet.xlsx")
    with pytest.raises(ValueError, match=r"sheet.xlsx: columns must have names in the first row"):
        load(tmp_path / "sheet.xlsx")

"""What a notebook shows: the same as the text, and nothing of a name is taken for markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import makers
import numpy as np
import pytest

from metarank import MetaRanker, Ranking
from metarank.objectives import diagnose

HOSTILE = "<script>alert('1')</script> & \"quoted\" \x1b[31m"


def named_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, {HOSTILE: (X[:, 0] > 0) * 1, "clicks": (X[:, 1] > 0) * 1}


def ranking() -> Ranking:
    scores = np.random.default_rng(0).normal(size=(30, 12)).astype(np.float32)
    return Ranking.from_scores(scores, 12, label_names=[HOSTILE, "", *"abcdefghij"])


def explanation():
    ds = makers.texts()
    labels = [[HOSTILE if j == 0 else makers.TOPICS[j] for j in row.indices] for row in ds.Y]
    return (
        MetaRanker(**makers.QUICK).fit([f"{text} <b>" for text in ds.texts], labels).explain("sea", HOSTILE)
    )


SHOWN = {"ranking": ranking, "explanation": explanation, "diagnosis": lambda: diagnose(named_rows()[1])}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_markup_of_its_own_only(name):
    shown = SHOWN[name]()
    html = shown._repr_html_()
    tree = ET.fromstring(html)  # well-formed: every name is escaped
    assert {element.tag for element in tree.iter()} <= {"div", "pre", "table", "tr", "th", "td", "p"}
    text = "".join(tree.itertext())
    assert "alert('1')" in text
    assert "\x1b" not in html
    if name != "ranking":
        assert text == unescape(str(shown)).replace("\x1b", "\\u001b")


def test_a_ranking_is_its_first_rows_and_ranks():
    shown = ranking()
    rows = list(ET.fromstring(shown._repr_html_()).iter("tr"))
    assert len(rows) == 11
    assert [cell.text for cell in rows[0]] == ["row", *map(str, range(1, 11))]
    label, score = shown.labels[3, 1], shown.scores[3, 1]
    names = ["<script>", "1", *"abcdefghij"]
    assert rows[4][2].text.startswith(names[label])
    assert rows[4][2].text.endswith(f"{score:.3f}")
    assert "30 rows, 12 of 12 labels each" in shown._repr_html_()
    ids = Ranking(np.array([[2, -1], [-1, -1]]), np.zeros((2, 2)), 3, None, np.array([False, True]))
    assert [cell.text for cell in list(ET.fromstring(ids._repr_html_()).iter("tr"))[1]] == ["0", "2  0.000"]
    assert "without evidence: rows 1" in ids._repr_html_()
    called = list(ET.fromstring(replace(ids, index=["first", "<second>"])._repr_html_()).iter("tr"))
    assert [row[0].text for row in called[1:]] == ["first", "<second>"]
    assert "<td" not in ids.rows(slice(0, 0))._repr_html_()

"""What `make docs` finds wrong with a site as it was written, and the pictures of the documentation."""

from __future__ import annotations

import html
from pathlib import Path

import charts
import pytest
from written import faults_of

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "pictures"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('<h1 id="a">A</h1><a href="#a">here</a> <a href="sub/b.html#b%20c">there</a>', []),
        ('<a href="https://example.org/x#y">elsewhere</a> <a href="mailto:a@example.org">mail</a>', []),
        ('<a href="sub/">a folder</a>', ["a.html: sub/ leads to no file"]),
        ('<a href="#no">here</a>', ["a.html: #no leads to no anchor"]),
        ('<a href="sub/b.html#no">there</a>', ["a.html: sub/b.html#no leads to no anchor"]),
        ('<img src="no.svg">', ["a.html: no.svg leads to no file"]),
        ('<img src="data:image/png;base64,AAAA">', []),
        (
            '<script src="https://cdn.example.org/x.js"></script>',
            ["a.html fetches https://cdn.example.org/x.js"],
        ),
        ('<link rel="stylesheet" href="//fonts.example.org/x">', ["a.html fetches //fonts.example.org/x"]),
        ('<link rel="canonical" href="https://example.org/">', []),
    ],
)
def test_faults_of_a_site(text, faults, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h2 id="b c">B</h2>')
    (tmp_path / "a.html").write_text(text)
    assert list(faults_of(tmp_path)) == faults


def test_links_and_pictures_of_the_repository_are_those_of_the_site():
    pytest.importorskip("mkdocs")
    import hooks

    known = hooks.places()
    text = "![Flow](docs/pictures/flow.svg) [terms](docs/glossary.md#row) [code](metarank/__init__.py)"
    shown = "![Flow](pictures/flow.svg) [terms](glossary.md#row) code"
    assert hooks.turned(text, "index.md", known, {to: name for name, to in known.items()}) == shown


def test_a_chart_names_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    page = (
        "## A\n\n| who | P@1 | fit s |\n| --- | --- | --- |\n| x | **0.5** | 1,000 (2) |\n| y | 0.4 | 3 |\n"
    )
    (tmp_path / "page.md").write_text(page)
    monkeypatch.setattr(charts, "EXPERIMENTS", tmp_path)
    asked = charts.Asked("page.md", ["A"], {"x": "Mine", "y": "y"}, "fit s", "P@1")
    assert "A: Mine 1000, 0.5; y 3, 0.4</title>" in charts.scatter(asked)
    for change in ({"headings": ["B"]}, {"rows": {"x": "x", "z": "z"}}, {"y": "P@5"}):
        with pytest.raises(ValueError, match=r"page\.md has no"):
            charts.scatter(asked._replace(**change))


def test_charts_show_the_figures_of_the_pages():
    for name, asked in charts.CHARTS.items():
        title = html.escape(charts.described(asked))
        assert title in (PICTURES / f"{name}.svg").read_text(), (
            f"{name}.svg is of older figures: make pictures"
        )

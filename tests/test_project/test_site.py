"""What `make docs` finds wrong with a site as it was written, and what it takes from pages of experiments."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "_site"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # which named tuples ask for
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def faults_of():
    return loaded("written").faults_of


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """With a page of experiments of its own."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "results.md").write_text(
        "## A\n\n| who | P@1 | s |\n| --- | --- | --- |\n| x | **0.5** | 1,000 (2) |\n| y | 0.4 | 3 |\n"
    )
    module = loaded("figures")
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path)
    return module


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
def test_faults_of_a_site(text, faults, faults_of, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h2 id="b c">B</h2>')
    (tmp_path / "a.html").write_text(text)
    assert list(faults_of(tmp_path)) == faults


def test_a_chart_names_what_it_shows(figures):
    pytest.importorskip("matplotlib")
    asked = '<!-- scatter page="one/results.md" headings="A" rows="Mine=x; y" x="s" y="P@1" -->'
    assert "A: s and P@1: Mine 1000, 0.5; y 3, 0.4" in figures.drawn(asked)


@pytest.mark.parametrize("part", ['headings="B"', 'rows="z"', 'rows="x; z"', 'y="P@5"'])
def test_what_a_page_does_not_have_is_an_error(part, figures):
    given = {"headings": "A", "rows": "x", "x": "s", "y": "P@1"}
    name, _, value = part.partition("=")
    given[name] = value.strip('"')
    asked = " ".join(f'{key}="{value}"' for key, value in given.items())
    with pytest.raises(ValueError, match=r"one/results\.md has no"):
        figures.drawn(f'<!-- scatter page="one/results.md" {asked} -->')

"""README and the pages of docs/: their Python runs, their commands parse, their links lead somewhere."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from metarank import Dataset, data, metrics
from metarank.apps.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# A fence, and the comment on the line above it that says what its Python needs, or that it is not run.
FENCE = re.compile(r"^(?:<!-- (.+?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


class Block(NamedTuple):
    note: str  # of the comment above it
    language: str
    line: int
    code: str


def blocks(page: Path, language: str = "") -> list[Block]:
    """The fenced blocks of a page, by language if one is given."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[1] or "", match[2], text.count("\n", 0, match.start(3)), match[3])
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if language in ("", block.language)]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that headings have in links."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.code.splitlines() if line.strip()]


@pytest.fixture
def embedded_data_in_small(monkeypatch):
    """`load_pydocs` gives thirty documents with the labels that they have."""
    load = data.load_pydocs
    train, test = load("train").take(range(30)), load("test")
    used = np.unique(train.Y.indices)
    judged = np.flatnonzero(np.diff(test.Y[:, used].tocsr().indptr))[:10]

    def small(part: str) -> Dataset:
        of = train if part == "train" else test.take(judged)
        names, texts = ([values[j] for j in used] for values in (of.label_names, of.label_texts))
        return Dataset(texts=of.texts, Y=of.Y[:, used], label_names=names, label_texts=texts, name="pydocs")

    monkeypatch.setattr(data, "load_pydocs", small)


def run(page: Path) -> dict[str, Any]:
    """The blocks of a page one after another, as a reader would paste them: what they name."""
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        code = compile("\n" * block.line + block.code, str(page), "exec")
        needs = block.note.removeprefix("needs ")
        if not block.note or (block.note.startswith("needs ") and find_spec(needs) is not None):
            exec(code, names)
        else:
            assert block.note.startswith(("needs ", "not run: ")), block
    return names


@pytest.mark.slow
@every_page
def test_python_runs(page, tmp_path, monkeypatch, embedded_data_in_small):
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.check
def test_the_readme_runs_on_the_whole_of_the_embedded_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(PAGES[0])
    model, test = names["model"], names["test"]
    values = metrics.evaluate(
        test.Y, names["ranking"], ["nDCG@5", "PSP@5"], inv_propensity=model.inv_propensity_
    )
    told = re.findall(r"\| pydocs .* (\S+) / (\S+), \S+ s \|\n", PAGES[0].read_text("utf-8"))
    # The table leaves out what a function says of itself, and documents are those of the installed packages.
    assert [100 * value for value in values.values()] == pytest.approx([float(x) for x in told[0]], abs=3)


@every_page
def test_commands_parse(page):
    parser, targets = build_parser(), (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in commands(page):
        words = shlex.split(line, comments=True)
        if words[0] == "metarank":
            try:
                parser.parse_args(words[1:])
            except SystemExit:
                pytest.fail(f"{page.name}: {line}")
        elif words[0] == "make":
            assert f"\n{words[1]}:" in targets, line
        else:
            assert words[0] in ("curl", "python3", ".venv/bin/pip"), line


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The long options of a parser and of its commands."""
    found: set[str] = set()
    for action in parser._actions:
        found.update(option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            found.update(*map(options_of, action.choices.values()))
    return found


@every_page
def test_options_and_make_targets_that_are_named_exist(page):
    code = " ".join(re.findall(r"`([^`]+)`", prose(page)))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", code)) <= options_of(build_parser())
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in targets for target in re.findall(r"\bmake ([a-z]+)\b", code))


@every_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_index_has_every_page():
    linked = set(LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in PAGES[1:]} - {"README.md"} <= linked


def test_the_readme_is_short_and_no_page_names_a_foreign_distribution():
    assert len(PAGES[0].read_text(encoding="utf-8").split()) <= 1000
    assert not [page.name for page in PAGES if "pip install metarank" in page.read_text(encoding="utf-8")]

"""Pages, help and messages have none of the old words of `tests/words.py`."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from words import WORDS

from metarank.apps.cli import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*[EYS].md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/notebooks/*.ipynb")]
PAGES += [file for end in ("html", "j2", "js") for file in ROOT.glob(f"metarank/**/*.{end}")]
MODULES = "data metrics objectives thresholds shortlist scorers ranker persist text plot serve distributed"


def found(text: str | None) -> list[str]:
    return [match[0] for old in WORDS for match in re.finditer(old, text or "", re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page):
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["", *MODULES.split()])
def test_help(name):
    module = importlib.import_module(f"metarank.{name}".rstrip("."))
    for each in [module, *(getattr(module, public) for public in module.__all__)]:
        members = inspect.getmembers(each) if inspect.isclass(each) else []
        for what in [each, *(value for member, value in members if member[0] != "_")]:
            assert found(inspect.getdoc(what)) == []


def test_headings_of_docstrings_stand_alone():
    for path in (ROOT / "metarank").rglob("*.py"):
        assert not re.search(r"[A-Z][a-z]+ -{4,} ", path.read_text()), path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands(command):
    [commands] = build_parser(command)._subparsers._group_actions
    assert found(commands.choices[command].format_help()) == []


def test_messages():
    """Of all literals that are sentences and no docstrings."""
    for file in ROOT.glob("metarank/**/*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                assert " " not in node.value or found(node.value) == [], (file, node.lineno)

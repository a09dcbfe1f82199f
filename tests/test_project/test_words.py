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
PAGES = [ROOT / "README.md", *ROOT.glob("*S.md"), ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md")]
PAGES += (ROOT / "docs/notebooks").glob("*")
PAGES += [file for end in ("html", "j2", "js") for file in (ROOT / "metarank/apps").rglob(f"*.{end}")]
PUBLIC = "", "data", "metrics", "objectives", "thresholds", "shortlist", "scorers", "ranker", "text", "plot"


def found(text: str) -> list[str]:
    return [match[0] for old in WORDS for match in re.finditer(old, text, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_no_old_words(page):
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("part", [*PUBLIC, "serve", "persist", "distributed"])
def test_help_has_no_old_words(part):
    pytest.importorskip("dask") if part == "distributed" else None
    module = importlib.import_module(f"metarank.{part}".rstrip("."))
    public = [getattr(module, name) for name in module.__all__]
    members = [
        v for each in public if inspect.isclass(each) for n, v in inspect.getmembers(each) if n[0] != "_"
    ]
    texts = [inspect.getdoc(each) or "" for each in (module, *public, *members)]
    assert [old for text in texts for old in found(text)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands_has_no_old_words(command):
    [commands] = build_parser(command)._subparsers._group_actions
    assert found(commands.choices[command].format_help()) == []


def test_messages_have_no_old_words():
    """Of all literals that are sentences and no docstrings."""
    bad = []
    for file in (ROOT / "metarank").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                bad += [(file.name, node.lineno, old) for old in found(node.value) if " " in node.value]
    assert bad == []

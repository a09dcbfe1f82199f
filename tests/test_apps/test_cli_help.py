"""`-h` of every command, completion by a real shell, and lines that fit the terminal."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

import pytest

from metarank.apps.cli import COMMANDS, build_parser


def parsers(parser: argparse.ArgumentParser, name: str = "metarank"):
    """All parsers by name."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, sub in action.choices.items():
                yield from parsers(sub, f"{name} {command}")


PARSERS = dict(parsers(build_parser()))


@pytest.mark.parametrize("asked", ["--version", "-h", "data -h"])
def test_what_needs_no_model_starts_without_what_models_need(asked):
    code = f"""
import sys
from metarank.apps.cli import main
try:
    main({asked.split()!r})
except SystemExit:
    pass
print(sorted({{"sklearn", "scipy", "lightgbm", "faiss"}} & set(sys.modules)), file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


@pytest.mark.parametrize("name", PARSERS)
def test_help_names_meanings_choices_and_defaults(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10000")
    parser = PARSERS[name]
    parser.format_help()
    for action in parser._actions:
        called = "/".join(action.option_strings) or action.dest
        if isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
            continue
        if isinstance(action, argparse._SubParsersAction):
            assert all(choice.help for choice in action._choices_actions), called
            continue
        assert action.help, f"{called}: no help"
        lines = argparse.HelpFormatter(name)
        lines.add_argument(action)
        shown = lines.format_help()
        missing = [c for c in map(str, action.choices or ()) if not re.search(rf"\b{re.escape(c)}\b", shown)]
        assert missing == [], called
        takes_value = action.option_strings and action.nargs != 0 and not action.required
        if takes_value and action.default not in (None, [], "", argparse.SUPPRESS):
            value = f"{action.default:g}" if isinstance(action.default, float) else str(action.default)
            value = {"-": "standard output"}.get(value, value)
            assert "default" in shown, called
            assert value in shown, f"{called}: default {value}"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", PARSERS)
def test_help_fits_the_terminal(name, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = PARSERS[name].format_help()
    long = [line for line in text.splitlines() if len(line) > width and " " in line.strip()]
    assert long == []


CASES = {
    "": list(COMMANDS),
    "ev": ["evaluate"],
    "train --effort ": ["low", "medium"],
    "predict --format js": ["json", "jsonl"],
    "predict --prob": ["--probabilities"],
    "data ": ["list", "get", "make"],
    "data make ": ["pydocs", "synthetic"],
    "data make --s": ["--seed"],
    "train --ranker li": ["listwise", "listnet"],
    "train --features c": ["centroids"],
    "train --shortlister n": ["none", "neighbors", "names"],
    "predict --optimize m": ["micro-f1", "macro-f1"],
}


def test_a_shell_is_told_what_may_come_next(tmp_path):
    pytest.importorskip("argcomplete")
    # A completion ends its process: here one forked from a process that has built the options once.
    code = """
import os, sys
from metarank.apps import cli
parser = cli.build_parser()
cli.build_parser = lambda: parser
for number, typed in enumerate(sys.argv[2:]):
    if not (child := os.fork()):
        line = f"metarank {typed}"
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
        os.environ["_ARGCOMPLETE_STDOUT_FILENAME"] = f"{sys.argv[1]}/{number}"
        cli.main()
    assert os.waitpid(child, 0)[1] == 0
"""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    command = [sys.executable, "-c", code, str(tmp_path), *CASES]
    subprocess.run(command, env={**os.environ, **asked}, check=True)
    for number, answers in enumerate(CASES.values()):
        assert sorted((tmp_path / str(number)).read_text().split()) == sorted(answers)

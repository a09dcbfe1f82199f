"""`-h` of every command, completion by a real shell, and lines that fit the terminal."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys

import pytest

from metarank.apps.cli import COMMANDS, build_parser, main
from metarank.apps.cli._common import wrapped
from metarank.apps.cli.completion import SHELLS


def parsers(parser: argparse.ArgumentParser, name: str = "metarank"):
    """All parsers by name."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, sub in action.choices.items():
                yield from parsers(sub, f"{name} {command}")


PARSERS = dict(parsers(build_parser()))


@pytest.mark.parametrize("asked", ["--version", "-h", "data -h", "completion -h"])
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


def test_long_lines_are_wrapped_below_their_start():
    text = "choices         " + "words that go on " * 12
    found = wrapped(text, 60).splitlines()
    assert all(len(line) <= 60 for line in found)
    assert found[0].startswith("choices         words")
    assert {line[:16] for line in found[1:]} == {" " * 16}
    assert " ".join(" ".join(found).split()) == " ".join(text.split())
    table = "part            MiB  files of this part and of no other part that there is"
    assert wrapped(table, 40) == table
    assert wrapped("short\n\n  lines", 40) == "short\n\n  lines"


def test_a_terminal_gets_wrapped_lines_and_a_pipe_whole_ones(monkeypatch, capsys):
    from metarank.apps.cli import _common

    monkeypatch.setenv("COLUMNS", "30")
    _common.print_page("word " * 20)
    assert len(capsys.readouterr().out.splitlines()) == 1
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _common.print_page("word " * 20)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 30


CASES = {
    "": [*COMMANDS, "--help", "--version"],
    "ev": ["evaluate"],
    "train --effort ": ["low", "medium", "high"],
    "predict --format js": ["json", "jsonl"],
    "predict --prob": ["--probabilities"],
    "data ": ["list", "get", "make"],
    "data make ": ["pydocs", "synthetic"],
    "data make --s": ["--seed"],
    "train --ranker li": ["listwise", "listnet"],
    "train --features c": ["centroids"],
    "train --shortlister n": ["none", "neighbors", "names"],
    "predict --optimize m": ["micro-f1", "macro-f1"],
    "completion ": list(SHELLS),
}


@pytest.mark.parametrize("typed", CASES)
def test_bash_completes(typed, capsys, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion.sh").write_text(capsys.readouterr().out)
    *words, last = ["metarank", *typed.split(" ")]
    script = (
        f"source {tmp_path / 'completion.sh'}; COMP_WORDS=({' '.join(words)} '{last}'); "
        f"COMP_CWORD={len(words)}; _metarank; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == CASES[typed]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_in_the_script(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for parser in PARSERS.values():
        for action in parser._actions:
            for option in action.option_strings:
                if parser is not PARSERS["metarank"] and option.startswith("--"):
                    assert option.removeprefix("--" if shell == "fish" else "") in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)

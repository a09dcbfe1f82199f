"""experiments/: a page of results is replaced by a whole one only, whoever writes it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.append(str(EXPERIMENTS))
from whole_page import WholePage, add_options  # noqa: E402

sys.path.remove(str(EXPERIMENTS))

PAGE = """# Systems

Some words.

## Scores

| set | ours | theirs |
| --- | --- | ---: |
| one | **1.0** | 2.0 |
| two | 3.0 | – |
|  | 5.0 | 6.0 |

## Times

| set | s |
| --- | --- |
| one | 7 |
"""
# What happens to the page, and which part of the message says why (None: it is replaced).
CHANGES = {
    "other figures": (("2.0", "9.0"), None),
    "another bold cell": (("**1.0**", "1.0"), None),
    "words, and a row more": (("Some words.", "Others.\n\n| a | b |\n| --- | --- |\n| c | d |"), None),
    "a gap filled": (("–", "4.0"), None),
    "a row less": (("| one | 7 |\n", ""), '"Times", row "one"'),
    "a row of another table less": (("| one | **1.0** | 2.0 |\n", ""), '"Scores", row "one"'),
    "a chapter less": (("## Times", "## Time"), '"Times", "Times", row "set"'),
    "a cell less": (("| 2.0 |", "| – |"), '"Scores", row "one"'),
    "a cell less in a row without a name": (("| 6.0 |", "|  |"), '"Scores", row "two"'),
    "a column less": (("| set | s |", "| set |"), '"Times", row "set"'),
}


def options_of(page: Path, arguments: list[str]) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default="one,two")
    add_options(parser, page)
    return parser.parse_args(arguments), parser


def written(page: Path, text: str, *arguments: str) -> Path:
    whole = WholePage(*options_of(page, list(arguments)), ("sets",))
    (whole.folder / "figure.svg").write_text(text)
    return whole.write(text)


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_is_replaced_by_one_that_has_all_it_had(tmp_path, capsys, change):
    page, ((old, new), lost) = tmp_path / "results.md", CHANGES[change]
    assert written(page, PAGE) == page
    text = PAGE.replace(old, new)
    assert text != PAGE
    place = written(page, text)
    assert place.read_text() == (place.parent / "figure.svg").read_text() == text
    if lost is None:
        assert place == page
        assert not (tmp_path / "part").exists()
    else:
        assert place == tmp_path / "part" / "results" / "results.md"
        assert page.read_text() == (tmp_path / "figure.svg").read_text() == PAGE
        assert lost in capsys.readouterr().err
        assert written(page, text, "--replace") == page
        assert page.read_text() == text


def test_a_narrowed_run_writes_elsewhere_whatever_it_has(tmp_path, capsys):
    page = tmp_path / "results.md"
    for more in ((), ("--replace",)):
        assert written(page, PAGE, "--sets", "one", *more) == tmp_path / "part" / "results" / "results.md"
        assert "narrowed by --sets" in capsys.readouterr().err
        assert not page.exists()
    assert written(page, PAGE, "--sets", "one,two") == page
    assert written(page, "short\n", "--sets", "one", "--out", str(tmp_path / "mine" / "a.md")).name == "a.md"
    assert page.read_text() == PAGE


# Every command that writes a page of this repository. Those with arguments are quick where there is no data
# and nothing is kept.
COMMANDS: dict[str, list[str] | None] = {
    "before_after/run.py": None,
    "extreme/run.py": None,
    "extreme/alone.py": None,
    "shortlist_speed/run.py": None,
}


def test_every_command_writes_its_page_as_a_whole():
    writers = {path for path in EXPERIMENTS.glob("*/*.py") if "add_options(parser, " in path.read_text()}
    assert {path.relative_to(EXPERIMENTS).as_posix() for path in writers} == set(COMMANDS)
    assert {path for path in writers if "options.out" in path.read_text()} == set()


def test_no_page_is_touched_without_data(tmp_path):
    kept = shutil.ignore_patterns("cache", "part", "__pycache__")
    copy = Path(shutil.copytree(EXPERIMENTS, tmp_path / "experiments", ignore=kept))
    (tmp_path / "data").mkdir()
    env = {**os.environ, "METARANK_DATA": str(tmp_path / "data")}
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.suffix in (".md", ".svg")}
    for command, arguments in COMMANDS.items():
        if arguments is not None:
            process = [sys.executable, copy / command, *arguments]
            done = subprocess.run(process, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert "a part of the page, without " in done.stderr, done.stderr
    assert before == {path: path.read_bytes() for path in before}

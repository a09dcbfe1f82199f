"""The set-up: what each command of `make` installs, and when it runs again."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tiers import SLOW

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_module_that_came_or_went_means_a_new_set_up(tmp_path):
    """The editable installation finds modules by a list made when it was installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    package, venv = tmp_path / "metarank", tmp_path / ".venv"
    package.mkdir()
    (package / "one.py").touch()
    (venv / "bin").mkdir(parents=True)

    def installs() -> bool:
        asked = subprocess.run(
            ["make", "-n", ".venv/.demo"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        noted = [line for line in asked.stdout.splitlines() if line.startswith("echo ")]
        for line in noted:  # what the set-up would leave
            subprocess.run(line, shell=True, cwd=tmp_path, check=True)
            (venv / ".demo").touch()
        return "pip install" in asked.stdout

    assert installs()
    assert not installs()
    (package / "two.py").touch()
    assert installs()
    assert not installs()
    (package / "one.py").unlink()
    assert installs()
    assert not installs()
    (package / "two.py").write_text("# no other file\n")
    assert not installs()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_command_installs_what_it_needs_and_no_more(tmp_path):
    """Each level stands on the one before, and the core is built by the first alone."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    levels = {"demo": ["-e ."], "test": ["-e .", '"metarank-ltr[test]"']}
    levels["setup"] = [*levels["test"], '"metarank-ltr[dev]"']
    levels |= {
        "test-quick": levels["test"],
        "lint": levels["setup"],
        "check": levels["setup"],
        "docs": levels["setup"],
    }
    for command, installed in levels.items():
        asked = subprocess.run(
            ["make", "-n", command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert re.findall("pip install -q (.+)", asked.stdout) == installed


def test_extras_hold_what_they_are_named_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    heavy = ("torch", "dask", "pandas", "polars", "ruff", "mypy", "matplotlib")
    assert not [line for line in project["dependencies"] if line.startswith(heavy)]
    assert extras["test"][0] == f"{project['name']}[data,text,skos,dask,plot,completion,hub,serve]"
    assert extras["dev"][:2] == [f"{project['name']}[test]", f"{project['name']}[docs]"]
    # Its pins are its own; `make annif` gives it an environment of its own.
    assert extras.pop("annif") == ["annif>=1.4,<1.5"]
    used = {"data", "encoder", "text", "skos", "dask", "plot", "completion", "hub", "serve"}
    assert set(extras) == used | {"test", "docs", "dev"}
    pinned = (ROOT / "constraints.txt").read_text().replace("_", "-").lower()
    for line in [*project["dependencies"], *(line for extra in extras.values() for line in extra)]:
        name = re.match(r"[\w-]+", line).group().lower()
        assert name == project["name"] or f"\n{name}==" in pinned


def test_files_that_are_slow_are_there():
    """Those that `tiers.py` names, so that a file that is renamed does not get into `make test-quick`."""
    assert not [name for name in SLOW if not list((ROOT / "tests").glob(f"test_*/test_{name}.py"))]

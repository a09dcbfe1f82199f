"""The set-up that `make demo` and `make test` share: when it runs again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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
            ["make", "-n", ".venv/.installed"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        noted = [line for line in asked.stdout.splitlines() if line.startswith("echo ")]
        for line in noted:  # what the set-up would leave
            subprocess.run(line, shell=True, cwd=tmp_path, check=True)
            (venv / ".installed").touch()
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

"""The peers' environments: one virtual environment each, filled from the package index (`make bench-setup`).

The wheels of the peers are made for Python 3.11.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """Packages of one peer; `alone`: without what it claims to need; `within`: beside this metarank."""

    distribution: str
    version: str
    beside: tuple[str, ...] = ()
    alone: bool = False
    extras: str = ""
    within: bool = False


ENVIRONMENTS = {
    "omikuji": Environment("omikuji", "0.5.2", ("numpy", "scipy")),
    "napkinxc": Environment("napkinxc", "0.7.2", ("numpy", "scipy")),
    # Its XR-Linear is all that is measured: that needs neither torch nor transformers, which take 6 GB.
    "pecos": Environment("libpecos", "1.2.8", ("numpy<2", "scipy<1.14", "scikit-learn"), alone=True),
    "xgboost": Environment("xgboost", "3.2.0", ("numpy", "scipy")),
    "annif": Environment("annif", "1.4.3", extras="[omikuji,nn]", within=True),
}


def python_of(peer: str | None, folder: Path) -> Path | None:
    """The interpreter of a peer, None where there is none; this one for what is ours."""
    if peer is None:
        return Path(sys.executable)
    python = folder / peer / "bin" / "python"
    return python if python.is_file() else None


def make(name: str, folder: Path) -> None:
    """Make one environment, or complete it.

    Raises
    ------
    subprocess.CalledProcessError
        If a package cannot be installed.
    """
    wanted = ENVIRONMENTS[name]
    python = folder / name / "bin" / "python"
    if not python.is_file():
        venv.create(folder / name, with_pip=True)
    peer = f"{wanted.distribution}=={wanted.version}"
    listed = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    if peer in listed.stdout.splitlines() and not wanted.within:
        return
    named = f"{wanted.distribution}{wanted.extras}=={wanted.version}"
    metarank = [ROOT] if wanted.within else []
    for packages in (wanted.beside, [*(["--no-deps"] if wanted.alone else []), named, *metarank]):
        if packages:
            _install(python, *packages)


def _install(python: Path, *packages: str | Path) -> None:
    # metarank's constraints are not theirs.
    variables = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True, env=variables)

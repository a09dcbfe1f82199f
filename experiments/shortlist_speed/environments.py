"""The peers' environments: one virtual environment each, filled from the package index.

python experiments/shortlist_speed/environments.py [--folder FOLDER] [--only omikuji,pecos]

What is already there in the right version stays as it is. The wheels of the peers are made for Python 3.11.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEFAULT_FOLDER = Path(__file__).with_name("cache") / "environments"


@dataclass(frozen=True)
class Environment:
    """Packages of one peer; `alone` is installed without what it claims to need."""

    distribution: str
    version: str
    beside: tuple[str, ...] = ()
    alone: bool = False


ENVIRONMENTS = {
    "omikuji": Environment("omikuji", "0.5.2", ("numpy", "scipy")),
    "napkinxc": Environment("napkinxc", "0.7.2", ("numpy", "scipy")),
    # Its XR-Linear is all that is measured: that needs neither torch nor transformers, which take 6 GB.
    "pecos": Environment("libpecos", "1.2.8", ("numpy<2", "scipy<1.14", "scikit-learn"), alone=True),
    # Its linear part, which needs no torch.
    "libmultilabel": Environment("libmultilabel", "0.10.0"),
}


def python_of(system: str, folder: Path) -> Path:
    """The interpreter that runs `system`: that of the peer's environment, this one for what is ours.

    Raises
    ------
    FileNotFoundError
        If the environment has not been made.
    """
    if system not in ENVIRONMENTS:
        return Path(sys.executable)
    python = folder / system / "bin" / "python"
    if not python.is_file():
        raise FileNotFoundError(f"{system} has no environment in {folder}: run environments.py first")
    return python


def installed_version(python: Path, distribution: str) -> str | None:
    """Version of a distribution in the environment of `python`, None where it is not installed."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


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
    if installed_version(python, wanted.distribution) == wanted.version:
        return
    pip = [python, "-m", "pip", "install", "--quiet"]
    if wanted.beside:
        subprocess.run([*pip, *wanted.beside], check=True)
    peer = f"{wanted.distribution}=={wanted.version}"
    subprocess.run([*pip, *(["--no-deps"] if wanted.alone else []), peer], check=True)


@cache
def is_ready(name: str, folder: Path) -> bool:
    """Whether a system can be run, its environment made now if it needs one; what fails is told once."""
    if name in ENVIRONMENTS:
        try:
            make(name, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out, its environment cannot be made: {error}", file=sys.stderr, flush=True)
            return False
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the environments stand")
    parser.add_argument("--only", default=",".join(ENVIRONMENTS), help=f"among {', '.join(ENVIRONMENTS)}")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    if unknown := set(names) - set(ENVIRONMENTS):
        parser.error(f"--only must be among {', '.join(ENVIRONMENTS)}, got {', '.join(sorted(unknown))}")
    for name in names:
        make(name, options.folder)
        print(f"{name}: {ENVIRONMENTS[name].version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

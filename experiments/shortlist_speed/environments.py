"""The peers' environments: one virtual environment each, filled from the package index.

python experiments/shortlist_speed/environments.py [--folder FOLDER] [--only omikuji,pecos]

What is already there in the right version stays as it is. The wheels of the peers are made for Python 3.11.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
from peer_environments import ENVIRONMENTS, make

DEFAULT_FOLDER = Path(__file__).with_name("cache") / "environments"


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

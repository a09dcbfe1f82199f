"""Subject indexing: Annif's projects beside metarank alone and as a backend of Annif.

python experiments/annif/run.py [--sets tib_records_en,archaeology] [--annif PYTHON] [--cache FOLDER]

Annif's commands run in an environment that has Annif and this metarank:

    python -m venv ENV && ENV/bin/pip install "annif[omikuji,nn]==1.4.3" .

Each step is a process of one thread on one core, whose CPU time is read when it ends. Steps are kept in the
cache: an interrupted run goes on where it stopped, and a step is taken again only if what it reads, its
settings or, where metarank is part of it, the sources of metarank have changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.append(str(_HERE.parent))

from judging import judged  # noqa: E402
from page import Row, write_page  # noqa: E402
from sets import SETS, Collection, collected  # noqa: E402
from stages import Only, log  # noqa: E402
from systems import METARANK, Bench, digest_of_metarank  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402

_PACKAGES = ("annif", "omikuji", "keras", "tensorflow", "nltk", "scikit-learn", "numpy", "scipy", "lightgbm")
_VERSIONS = f"""
import json, platform
from importlib.util import find_spec
from importlib.metadata import PackageNotFoundError, version
spec = find_spec("metarank")
found = {{"Python": platform.python_version(), "metarank": spec.origin if spec else ""}}
for name in {_PACKAGES!r}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def versions(python: Path) -> dict[str, str]:
    """Of what is installed in Annif's environment.

    Raises
    ------
    SystemExit
        If the metarank there is another than this one.
    """
    done = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    there = Path(found.pop("metarank"))
    ours = digest_of_metarank(METARANK, (".py",))
    if not there.is_file() or digest_of_metarank(there.parent, (".py",)) != ours:
        raise SystemExit(f"{python} has no metarank, or another than {METARANK}: {there}")
    return found


def measured(of: Collection, cache: Path, python: Path, version: str) -> dict[str, Row]:
    """The rows of one set, by system."""
    systems = Bench(of, cache / of.name, python, version).measured()
    return {
        name: Row(
            judged(of, system.suggestions),
            system.train_cpu,
            system.suggest_cpu,
            system.memory,
            system.annif,
            system.said,
        )
        for name, system in systems.items()
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument(
        "--annif",
        type=Path,
        default=_HERE / "cache" / "environment" / "bin" / "python",
        help="the Python of an environment that has Annif and metarank",
    )
    parser.add_argument(
        "--kept", action="store_true", help="run nothing; the page names what is of older sources"
    )
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    wanted = options.sets.split(",")
    if unknown := set(wanted) - set(SETS):
        parser.error(f"--sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    Only.kept = options.kept
    whole = WholePage(options, parser, ("sets",))
    found: dict[str, tuple[Collection, dict[str, Row]]] = {}
    installed: dict[str, str] = {}
    if options.annif.is_file():
        installed = versions(options.annif)
        for name in wanted:
            try:
                of = collected(name, options.cache / name / "files")
            except FileNotFoundError as error:
                log(f"{name} is left out: {error}")
                continue
            found[name] = of, measured(of, options.cache.resolve(), options.annif, installed["annif"])
    else:
        log(f"nothing is measured: there is no {options.annif} with Annif and metarank")
    whole.write(write_page(found, installed, digest_of_metarank(), Only.older))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The versions that metarank supports: lower bounds of `pyproject.toml`, and those of `constraints.txt`.

python tests/wheels/versions.py                      the table of docs/platforms.md
python tests/wheels/versions.py oldest [EXTRA ...]   for pip: what is required, each at its lower bound
python tests/wheels/versions.py newest [EXTRA ...]   the same without versions
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What users install; the others are for those who change metarank.
EXTRAS = ("data", "encoder", "text", "skos", "dask", "plot", "completion", "annif", "serve")


def bounds(extra: str = "") -> dict[str, str]:
    """Of the libraries that metarank or an extra requires, the oldest versions."""
    required = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in required]
    return {match[1]: match[2] for match in found if match}


def table() -> str:
    """Of Python and each library: the oldest version, the newest tested one, the extra that needs it."""
    pins = re.findall("^(.+)==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    tested = {name.replace("_", "-"): version for name, version in pins}
    lines = ["| library | oldest | newest tested | extra |", "| --- | --- | --- | --- |"]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    pythons = re.findall(r'python: "3\.(\d+)"', workflow)
    lines.append(f"| Python | {PROJECT['requires-python'].strip('>=')} | 3.{max(map(int, pythons))} | |")
    for extra in ("", *EXTRAS):
        for name, oldest in bounds(extra).items():
            newest = tested.get(name.lower(), oldest)  # Annif's own environment has the bound's version
            lines.append(f"| {name} | {oldest} | {newest} | {extra} |".replace("|  |", "| |"))
    for name in ("pandas", "polars"):  # no extra: who has such tables has the library
        lines.append(f"| {name} | {bounds('test')[name]} | {tested[name]} | |")
    return "\n".join(lines)


def main(*arguments: str) -> None:
    if not arguments:
        print(table())
        return
    for extra in ("", *arguments[1:]):
        for name, version in bounds(extra).items():
            print(f"{name}=={version}" if arguments[0] == "oldest" else name)


if __name__ == "__main__":
    main(*sys.argv[1:])

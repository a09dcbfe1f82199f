"""A page: what was claimed, the chapters, and how they were made."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pages import verdict

import metarank

_HERE = Path(__file__).resolve().parent
# These make no figures.
_PAGE = ("run.py", "page.py", "panels.py")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm")


def write(records: dict[str, dict[str, Any]]) -> str:
    """The whole page, from the kept chapters and the findings, which are written by hand."""
    parts = ["# Loss or label aggregation: several labels, one ranking"]
    parts += [(_HERE / "findings.md").read_text().strip(), _claims(records)]
    for record in records.values():
        parts += [f"## {record['title']}", record["text"]]
        if record["claims"]:
            parts.append("\n".join(f"- {what}: {verdict(holds)}" for what, holds in record["claims"]))
    return "\n\n".join([*parts, _provenance(records)]) + "\n"


def _claims(records: dict[str, dict[str, Any]]) -> str:
    claims = [holds for record in records.values() for _, holds in record["claims"]]
    failed = [
        f"- {record['title']}: {what}"
        for record in records.values()
        for what, holds in record["claims"]
        if not holds
    ]
    text = f"Of {len(claims)} claims checked, {sum(claims)} hold."
    return text + (" Those that do not:\n\n" + "\n".join(failed) if failed else "")


def _provenance(records: dict[str, dict[str, Any]]) -> str:
    now = digest_of_sources()
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores",
        f"metarank {metarank.__version__}, " + ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
        f"sha256 of the objectives', rankers' and chapters' sources: {now}",
    ]
    inputs = sorted({line for record in records.values() for line in record["inputs"]})
    lines += [f"sha256 of {line}" for line in inputs]
    for name, record in records.items():
        kept = record["settings"]
        what = f"{name}: {record['seconds']:.0f} s, seed {kept['seed']}"
        what += ", quick: proves nothing" if kept["quick"] else ""
        what += f", made with sources {record['sources']}" if record["sources"] != now else ""
        lines.append(what)
    return "## How it was made\n\n" + "\n".join(f"- {line}" for line in lines)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def digest_of_sources() -> str:
    """Of what figures come from: metarank's objectives, its rankers of several objectives, this folder."""
    package = Path(metarank.__file__).parent
    files = [
        *package.glob("objectives/*.py"),
        *package.glob("_core/*gradients.cpp"),
    ]
    files += [path for path in _HERE.glob("*.py") if path.name not in _PAGE]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]

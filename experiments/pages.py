"""What pages of results are made of, for all studies."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import metarank


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def verdict(holds: bool) -> str:
    return "**holds**" if holds else "**does not hold**"


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def digest_of_sources() -> str:
    """sha256 of metarank's sources: figures that differ in it were made by different code."""
    folder = Path(metarank.__file__).parent
    digest = hashlib.sha256()
    for suffix in ("py", "cpp", "h"):
        for file in sorted(folder.rglob(f"*.{suffix}")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

"""What every chapter of the study is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pages import table as table

from metarank.data.compressed import plain_or_compressed


@dataclass(frozen=True)
class Settings:
    """How the study is run; `quick` tries every chapter in seconds and proves nothing."""

    data: Path
    seed: int = 0
    trials: int = 25
    quick: bool = False


@dataclass
class Chapter:
    """One chapter of the page: text, claims that hold or do not, figures by file name."""

    title: str
    text: str = ""
    claims: list[tuple[str, bool]] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)

    def claim(self, what: str, holds: bool) -> None:
        self.claims.append((what, bool(holds)))


class NotHereError(Exception):
    """A set that the data folder does not have."""


def with_error(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """Mean ± standard error of the mean."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def checksum(path: Path) -> str:
    return f"{path.name}: {hashlib.sha256(path.read_bytes()).hexdigest()}"


def present(path: Path) -> Path:
    """The path, or that of the compressed file, or `NotHereError`."""
    there = plain_or_compressed(path)
    if there is None:
        raise NotHereError(f"`{Path(*path.parts[-4:])}` is not in the data folder")
    return there

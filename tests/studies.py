"""The modules of studies under `experiments/`, which have some names in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@contextmanager
def study(*names: str) -> Iterator[None]:
    """Within, modules are those of these folders and of what they borrow; then others are found again."""
    folders = [EXPERIMENTS / name for name in names]
    own = {path.stem for folder in EXPERIMENTS.iterdir() if folder.is_dir() for path in folder.iterdir()}

    def taken() -> dict:
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in own}

    path, others = list(sys.path), taken()
    sys.path[:0] = map(str, (*folders, EXPERIMENTS))
    try:
        yield
    finally:
        sys.path[:] = path
        taken()
        sys.modules |= others

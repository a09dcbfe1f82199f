"""Puts a core of one's choice where `import metarank._core` looks; the installed one stays as it is."""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class _CoreFinder(MetaPathFinder):
    """Ahead of all other finders, an editable install's among them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path) if fullname == "metarank._core" else None


def import_core() -> ModuleType:
    """`metarank._core` from the file that METARANK_SANITIZED_CORE names; call it before metarank is imported.

    Raises
    ------
    ImportError
        Another core is there already, or was found.
    """
    path = Path(os.environ["METARANK_SANITIZED_CORE"])
    sys.meta_path.insert(0, _CoreFinder(path))
    from metarank import _core

    if not Path(_core.__file__).samefile(path):
        raise ImportError(f"metarank._core was to be {path}, got {_core.__file__}")
    return _core

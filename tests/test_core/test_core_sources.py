"""The sources of the compiled core: kernels stand apart from their bindings."""

from __future__ import annotations

from pathlib import Path

import metarank

CORE = Path(metarank.__file__).parent / "_core"


def test_kernels_know_no_binding_types() -> None:
    kernels = [*CORE.glob("*.h"), *CORE.glob("*.cpp")]
    assert len(kernels) > 50
    for path in kernels:
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("nanobind", "nb::", "Python.h", "PyObject")), path.name

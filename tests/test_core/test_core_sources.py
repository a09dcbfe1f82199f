"""The compiled core as it stands: kernels apart from their bindings, and the types of both in a stub."""

from __future__ import annotations

import ast
from pathlib import Path

import metarank
from metarank import _core

CORE = Path(metarank.__file__).parent / "_core"


def test_kernels_know_no_binding_types() -> None:
    kernels = [*CORE.glob("*.h"), *CORE.glob("*.cpp")]
    assert len(kernels) > 50
    for path in kernels:
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("nanobind", "nb::", "Python.h", "PyObject")), path.name


def test_the_stub_that_the_build_writes_is_complete() -> None:
    stub = ast.parse(CORE.with_suffix(".pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert public == functions | set(classes)
    for name, node in classes.items():
        members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        wanted = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
        assert wanted <= members, name

"""How large metarank is, room by room, and which of its files import one another in a circle.

    python tests/house.py            # the table
    python tests/house.py --files    # and each file

Python of the package is counted by lines of code: no blank lines, comments or docstrings. Of `_core`, `tests`
and `experiments` all lines count.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "metarank"
MOST_LINES = {"metarank": 27_500, "_core": 13_500, "tests": 38_900, "experiments": 9_010}
MOST_LINES_OF_A_FILE = 450
MOST_LINES_OF_A_FUNCTION = 60
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NO_CODE |= {tokenize.ENDMARKER}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, Function))
            and ast.get_docstring(node, clean=False) is not None
        ):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def long_functions(file: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file that are longer than they may be, and their lines of code."""
    source = file.read_text(encoding="utf-8")
    lines = code_lines(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            n_lines = len(lines.intersection(range(node.lineno, (node.end_lineno or 0) + 1)))
            if n_lines > MOST_LINES_OF_A_FUNCTION:
                yield f"{file.relative_to(ROOT)}:{node.name}", n_lines


def package_files() -> dict[Path, int]:
    """Each Python file of the package, and its lines of code."""
    return {file: len(code_lines(file.read_text(encoding="utf-8"))) for file in sorted(PACKAGE.rglob("*.py"))}


def all_lines(folder: Path, *patterns: str) -> int:
    """All lines of the files of these patterns below a folder."""
    files = [file for pattern in patterns for file in folder.rglob(pattern)]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def totals() -> dict[str, int]:
    """The lines that have a budget."""
    return {
        "metarank": sum(package_files().values()),
        "_core": all_lines(PACKAGE / "_core", "*.cpp", "*.h"),
        "tests": all_lines(ROOT / "tests", "*.py"),
        "experiments": all_lines(ROOT / "experiments", "*.py"),
    }


def _module_file(name: str) -> Path | None:
    """The file of a module, or of the module that holds an attribute of this name."""
    parts = name.split(".")
    if parts[1:2] == ["_core"]:
        return None
    for length in (len(parts), len(parts) - 1):
        path = ROOT.joinpath(*parts[:length])
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
        if (path / "__init__.py").is_file():
            return path / "__init__.py"
    return None


def imported(file: Path) -> set[str]:
    """The modules of metarank that a file imports, wherever in it: within functions and for types too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{file} imports by dots"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "metarank"}


def circle() -> list[str]:
    """Files each of which imports the next, if there are such; the first one is the last one too."""
    files = sorted(PACKAGE.rglob("*.py"))
    imports = {file: {_module_file(name) for name in imported(file)} - {None, file} for file in files}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [str(file.relative_to(PACKAGE)) for file in error.args[1]]
    return []


def main(arguments: list[str]) -> None:
    rooms: dict[str, int] = {}
    files = package_files()
    for file, n_lines in files.items():
        room = file.relative_to(PACKAGE).parts[0]
        rooms[room] = rooms.get(room, 0) + n_lines
        if "--files" in arguments:
            print(f"{n_lines:6,}  {file.relative_to(ROOT)}")
    for room, n_lines in sorted(rooms.items(), key=lambda entry: -entry[1]):
        print(f"{n_lines:8,}  {room}")
    for name, n_lines in totals().items():
        budget = f" of {MOST_LINES[name]:,}" if name in MOST_LINES else ""
        print(f"{n_lines:8,}{budget}  {name}")
    for file, n_lines in files.items():
        if n_lines > MOST_LINES_OF_A_FILE:
            print(f"long file: {file.relative_to(ROOT)}, {n_lines}")
        for name, length in long_functions(file):
            print(f"long function: {name}, {length}")
    if found := circle():
        print("circle:", ", ".join(found))


if __name__ == "__main__":
    main(sys.argv[1:])

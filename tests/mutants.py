"""How many random changes of metarank's source the tests notice.

    python tests/mutants.py --count 500 --seed 0 --out mutants.json

Each mutant is one operator, constant, condition or call of one line changed, drawn with equal chances from
all that there are in `metarank/`. No file is changed: whatever imports the module in question, in child
processes too, gets the changed source instead. First come the examples of the module itself, then the files
of tests that name most of what it defines, until one fails; `--files` says how many. A mutant that these
leave alive meets the whole tier with `--whole`. With `--lines`, a file of coverage made by

    python -m pytest -m "not check" --cov --cov-context=test

the tests that go through the changed line are run instead, and a mutant of a line that none goes through is
alive. `--again OUT` takes the mutants of an earlier run, for another state of the tests.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

from tiers import CHECKS

ROOT = Path(__file__).resolve().parents[1]
# Processor time of one run of tests; a change may make it endless.
_SECONDS = 600
_MOST_TESTS = 60

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """The change number `change` of those that `changes` finds in a file."""

    path: str
    change: int
    line: int
    what: str


def changes(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """(line, what is changed, what changes it in the tree) of everything that can be, in a fixed order."""
    skipped = {id(part) for node in ast.walk(tree) for part in _without_effect(node)}
    for parent in ast.walk(tree):
        if id(parent) in skipped:
            skipped |= {id(child) for child in ast.iter_child_nodes(parent)}
            continue
        yield from _changes_of(parent)


def _without_effect(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, and what is said where an error is raised."""
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield getattr(node, name)
    if isinstance(node, ast.Raise | ast.JoinedStr):
        yield from ast.iter_child_nodes(node)


def _changes_of(node: ast.AST) -> Iterator[tuple[int, str, Callable[[], None]]]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        other = _COMPARED[type(node.ops[0])]
        yield (
            line,
            f"{type(node.ops[0]).__name__} -> {other.__name__}",
            lambda: node.ops.__setitem__(0, other()),
        )
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        made = _COMPUTED[type(node.op)]
        yield line, f"{type(node.op).__name__} -> {made.__name__}", lambda: setattr(node, "op", made())
    elif isinstance(node, ast.BoolOp):
        turned = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield line, f"-> {turned.__name__}", lambda: setattr(node, "op", turned())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        kept = ast.UAdd if isinstance(node.op, ast.USub) else ast.Not
        value = node.operand if kept is ast.UAdd else ast.UnaryOp(ast.Not(), node.operand)
        yield (
            line,
            f"without {type(node.op).__name__}",
            lambda: setattr(node, "operand", _negated(node, value)),
        )
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        yield line, f"{node.value} -> {new}", lambda: setattr(node, "value", new)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield line, "condition negated", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield line, "call left out", lambda: setattr(node, "value", ast.Constant(None))


def _negated(node: ast.UnaryOp, value: ast.expr) -> ast.expr:
    """What gives the operand itself once the operator of `node` is put before it."""
    return ast.UnaryOp(node.op, value) if isinstance(node.op, ast.USub) else value


def mutants() -> list[Mutant]:
    """All there are, file by file."""
    found = []
    for path in sorted((ROOT / "metarank").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for i, (line, what, _) in enumerate(changes(ast.parse(path.read_text()))):
            found.append(Mutant(name, i, line, what))
    return found


# --- the changed module ------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Compiles a changed source, and leaves nothing behind."""

    change = 0

    def get_code(self, fullname: str):
        tree = ast.parse(Path(self.path).read_text())
        list(changes(tree))[self.change][2]()
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        parts = Path(mutant.path).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.module = ".".join(parts[:-1] if self.is_package else parts)
        self.mutant = mutant

    def find_spec(self, fullname: str, path=None, target=None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        file = str(ROOT / self.mutant.path)
        loader = _Loader(fullname, file)
        loader.change = self.mutant.change
        folders = [str(Path(file).parent)] if self.is_package else None
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=folders)


def install() -> None:
    """Called by `sitecustomize` at the start of every process of a run."""
    sys.meta_path.insert(0, _Finder(Mutant(**json.loads(os.environ["METARANK_MUTANT"]))))


# --- the tests that it meets --------------------------------------------------------------


def likely_files(path: str, count: int, tier: str) -> list[str]:
    """The files of tests that name most of what a module defines, and the module itself with its examples."""
    defined = {
        node.name
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("__")
    } | {Path(path).stem}
    found = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if file.parent == CHECKS and "not check" in tier:
            continue
        words = set(re.findall(r"\w+", file.read_text()))
        own = Path(path).stem.strip("_") in file.stem
        found.append((-len(words & defined) - 3 * own, str(file.relative_to(ROOT))))
    return [path, *(name for score, name in sorted(found)[:count] if score < 0)]


def tests_of_line(lines: str, path: str, line: int) -> list[str] | None:
    """The tests that go through a line by a file of coverage; None where it is run by an import."""
    from coverage import CoverageData

    data = CoverageData(basename=lines)
    data.read()
    contexts = data.contexts_by_lineno(str(ROOT / path)).get(line, [])
    if "" in contexts:
        return None
    found = sorted({context.partition("|")[0] for context in contexts})
    return random.Random(0).sample(found, min(len(found), _MOST_TESTS))


def is_killed(mutant: Mutant, tests: list[str], tier: str) -> bool:
    """Whether a run of tests fails."""
    with tempfile.TemporaryDirectory() as folder:
        hook = f"import sys; sys.path.append({str(ROOT / 'tests')!r}); from mutants import install; install()"
        (Path(folder) / "sitecustomize.py").write_text(hook)
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-m", tier, "-p", "no:cacheprovider", *tests],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": folder, "METARANK_MUTANT": json.dumps(asdict(mutant))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS)),
            check=False,
        )
    if run.returncode in (4, 5):  # no such test
        return False
    return run.returncode != 0


def main() -> None:
    """Print each mutant with its fate, and the share that was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=4, help="files of tests that a mutant meets")
    parser.add_argument("--tier", default="not check", help="the marker expression of the tests that count")
    parser.add_argument("--whole", action="store_true", help="who lives meets all tests of the tier")
    parser.add_argument("--lines", help="a file of coverage with a context for each test")
    parser.add_argument("--again", help="the mutants of this file instead of random ones")
    parser.add_argument("--out", help="where the fates are written to")
    options = parser.parse_args()
    if options.again:
        drawn = [Mutant(**{k: one[k] for k in ("path", "change", "line", "what")})
                 for one in json.loads(Path(options.again).read_text())]  # fmt: skip
    else:
        drawn = random.Random(options.seed).sample(mutants(), options.count)
    fates: list[dict] = []
    for mutant in drawn:
        tests = tests_of_line(options.lines, mutant.path, mutant.line) if options.lines else None
        if tests is None:
            tests = likely_files(mutant.path, options.files, options.tier)
        killed = bool(tests) and is_killed(mutant, tests, options.tier)
        if not killed and options.whole:
            killed = is_killed(mutant, [], options.tier)
        fates.append(asdict(mutant) | {"killed": killed})
        print("killed" if killed else "ALIVE ", f"{mutant.path}:{mutant.line} {mutant.what}", flush=True)
        if options.out:
            Path(options.out).write_text(json.dumps(fates, indent=1) + "\n")
    n_killed = sum(fate["killed"] for fate in fates)
    print(f"{n_killed} of {len(fates)} killed, {100 * n_killed / len(fates):.1f} %")


if __name__ == "__main__":
    main()

"""`pydocs`: to which functions does the documentation of a function point?

This data set needs no download. A document is the docstring of a public
callable of an installed package, without its *See Also* section; its labels are
the functions that section names. The relation has a long tail and is often
one-way, so that labels are naturally missing.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from metarank.data.dataset import Dataset

PACKAGES = ("numpy", "scipy", "sklearn", "lightgbm")
# Tests, vendored copies, and modules whose import switches something on.
_SKIPPED = {"tests", "test", "conftest", "externals", "experimental"}
# Appear in their module only after an import of `sklearn.experimental` anywhere in the process.
_SWITCHED_ON = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
_ABBREVIATIONS = {"np": "numpy", "sp": "scipy", "scikit-learn": "sklearn", "lgb": "lightgbm"}

_ROLE = re.compile(r"(?::[\w+.-]+)*:?`+~?([^`<]*?)(?:\s*<([^>`]*)>)?`+_*")
# Remarks on versions go with their text, formulas likewise; of other directives only the first line.
_ASIDE = re.compile(r"^( *)\.\. (?:deprecated|version\w+|math|plot)::.*\n?(?:\1 +.*\n?| *\n)*", re.MULTILINE)
_DIRECTIVE = re.compile(r"^\s*\.\. [\w-]+::.*$", re.MULTILINE)
_NAME_LIST = re.compile(r"[\w.~\-]+(?:\(\))?(?:\s*(?:,|\band\b)\s*[\w.~\-]+(?:\(\))?)*\s*,?")
_UNDERLINE = re.compile(r"\s*[-=~]{3,}\s*")
_SIGNATURE = re.compile(r"[\w.]+\(.*\)(?:\s*->.*)?", re.DOTALL)


class _Document(NamedTuple):
    name: str  # qualified: numpy.linalg.norm
    summary: str  # first paragraph
    text: str
    see_also: tuple[str, ...]  # qualified names, ascending, never its own


def load_pydocs(split: str | None = None, seed: int = 0) -> Dataset:
    """The documents with a See Also section, and the functions named there as labels.

    Parameters
    ----------
    split : {None, "train", "test"}
        All rows, or one side of an 80/20 split by a hash of (seed, qualified name).
    seed : int

    Returns
    -------
    Dataset
        `texts`: name, summary, description and parameter names. `label_names`: qualified
        names of *all* labels, whatever the split, ascending, so that a test row may hold a
        label without a training row. `label_texts`: name and one-line summary of the named
        function. X is left to the model's vectoriser. A document is never its own label.

    Raises
    ------
    ValueError
        If `split` is not one of the three.

    Notes
    -----
    Depends on the installed versions of numpy, scipy, scikit-learn and lightgbm only.

    Examples
    --------
    >>> train, test = load_pydocs("train"), load_pydocs("test")
    >>> train.label_names == test.label_names
    True
    """
    if split not in (None, "train", "test"):
        raise ValueError(f"split must be None, 'train' or 'test', got {split!r}")
    documents = {d.name: d for d in _corpus()}
    labels = sorted({name for d in documents.values() for name in d.see_also})
    rows = [d for d in documents.values() if d.see_also and split in (None, _side(d.name, seed))]
    return Dataset(
        X=None,
        Y=[list(d.see_also) for d in rows],
        texts=[d.text for d in rows],
        label_names=labels,
        label_texts=[f"{name}: {documents[name].summary}" for name in labels],
        name="pydocs" if split is None else f"pydocs-{split}",
    )


def own_labels(dataset: Dataset) -> np.ndarray:
    """The label that each document of a pydocs data set is itself, int32 (n,); -1 if there is none.

    A document never carries its own label, though no label fits its text better. Exclude it from the
    candidates wherever labels are ranked by their text.

    Examples
    --------
    >>> ds = load_pydocs("test")
    >>> own = own_labels(ds)
    >>> i = int(np.argmax(own))
    >>> ds.texts[i].splitlines()[0] == ds.label_names[own[i]]
    True
    """
    column = {name: j for j, name in enumerate(dataset.label_names or ())}
    names = (text.partition("\n")[0] for text in dataset.texts or ())
    return np.array([column.get(name, -1) for name in names], np.int32)


def _side(name: str, seed: int) -> str:
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return "test" if int.from_bytes(digest, "little") % 5 == 0 else "train"


@functools.lru_cache(maxsize=1)
def _corpus() -> tuple[_Document, ...]:
    """Every public callable with a docstring, by qualified name; copied docstrings count once."""
    aliases, docstrings = _public_callables()
    documents: dict[str, tuple[str, str, list[str]]] = {}
    original: dict[tuple[str, ...], str] = {}
    for name in sorted(docstrings, key=lambda name: (name.count("."), name)):
        sections = _sections(docstrings[name])
        see_also = sections.get("see also", [])
        first = original.setdefault((*sections[""], *see_also), name)
        if first != name:  # methods of subclasses and wrappers carry the text of another
            aliases[name] = first
            continue
        paragraphs = _paragraphs(sections[""])
        documents[name] = (paragraphs[0] if paragraphs else "", _text(name, paragraphs, sections), see_also)
    resolve = _Resolver(aliases, documents)
    found = []
    for name, (summary, text, see_also) in sorted(documents.items()):
        named = {resolve(written, name) for written in _names_in(see_also)} - {None, name}
        found.append(_Document(name, summary, text, tuple(sorted(filter(None, named)))))
    return tuple(found)


# --- the callables ---


def _public_callables() -> tuple[dict[str, str], dict[str, str]]:
    """Aliases (every public path -> qualified name) and docstrings by qualified name.

    An object's qualified name is its shortest public path, in its own package where it has one.
    """
    found: dict[int, tuple[Any, list[str]]] = {}  # objects, and their paths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated modules say so when imported
        for package in PACKAGES:
            for module in _public_modules(package):
                for name, member in _members(module):
                    if name not in _SWITCHED_ON:
                        found.setdefault(id(member), (member, []))[1].append(f"{module.__name__}.{name}")
    aliases: dict[str, str] = {}
    docstrings: dict[str, str] = {}
    for member, paths in found.values():
        shortest = min(paths, key=functools.partial(_preference, getattr(member, "__name__", "")))
        methods = vars(member).items() if inspect.isclass(member) else ()
        public = {f".{name}": getattr(of, "__func__", of) for name, of in methods if not name.startswith("_")}
        routines = {name: method for name, method in public.items() if inspect.isroutine(method)}
        for name, own in {"": member, **routines}.items():
            aliases |= {f"{path}{name}": f"{shortest}{name}" for path in paths}
            text = getattr(own, "__doc__", None)
            inherited = not inspect.isclass(own) and text == type(own).__doc__
            if isinstance(text, str) and text.strip() and not inherited:
                docstrings[f"{shortest}{name}"] = inspect.cleandoc(text)
    return aliases, docstrings


def _preference(own_name: str, path: str) -> tuple[int, int, bool, str]:
    parts = path.split(".")
    return PACKAGES.index(parts[0]), len(parts), parts[-1] != own_name, path


def _public_modules(name: str) -> Iterator[ModuleType]:
    """The module of that name and its public submodules; those that do not import are passed over."""
    try:
        module = importlib.import_module(name)
    except Exception:  # an optional dependency is missing, or the module belongs to another platform
        return
    yield module
    for child in sorted(m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ()))):
        if not child.startswith("_") and child not in _SKIPPED:
            yield from _public_modules(f"{name}.{child}")


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public callables a module exports: those it lists, or else those defined in it."""
    listed = vars(module).get("__all__")  # vars, not getattr and dir: those load deprecated names
    for name, member in list(vars(module).items()):
        if name.startswith("_") or not callable(member):
            continue
        home = getattr(member, "__module__", None) or ""
        if name in listed if listed is not None else f"{home}.".startswith(f"{module.__name__}."):
            yield name, member


# --- the docstrings ---


def _sections(doc: str) -> dict[str, list[str]]:
    """Lines by lower-cased numpydoc heading; what stands before the first heading under ""."""
    lines = doc.splitlines()
    sections: dict[str, list[str]] = {"": []}
    current = sections[""]
    for i, line in enumerate(lines):
        if i and _UNDERLINE.fullmatch(line) and lines[i - 1].strip():
            heading = current.pop().strip().lower().rstrip(":")
            current = sections.setdefault(heading, [])
        else:
            current.append(line)
    return sections


def _paragraphs(lines: list[str]) -> list[str]:
    """Paragraphs on one line each, without markup and without the signatures of compiled functions."""
    text = _DIRECTIVE.sub("", _plain(_ASIDE.sub("\n", "\n".join(lines))))
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    return [p for i, p in enumerate(paragraphs) if p and not (i == 0 and _SIGNATURE.fullmatch(p))]


def _plain(text: str) -> str:
    """Roles, links and back-quotes replaced by what they show."""
    return _ROLE.sub(lambda m: m[1] or m[2] or "", text)


def _text(name: str, paragraphs: list[str], sections: dict[str, list[str]]) -> str:
    parameters = [
        line.split(" :")[0].strip(" *")
        for line in sections.get("parameters", [])
        if line[:1].strip() and not line.startswith("..")
    ]
    return "\n".join([name, *paragraphs, ", ".join(parameters)]).strip()


class _Resolver:
    """From the names of a See Also section to those of documents."""

    def __init__(self, aliases: dict[str, str], documents: dict[str, Any]) -> None:
        self.aliases = aliases
        self.documents = documents
        self.by_last_part: dict[str, set[str]] = {}
        for name in documents:
            self.by_last_part.setdefault(f"{name.split('.')[0]} {name.split('.')[-1]}", set()).add(name)

    def __call__(self, written: str, at: str) -> str | None:
        """What `written` means at the object `at`: nearest scope, then full path, then a unique name."""
        root, _, rest = written.partition(".")
        if root in _ABBREVIATIONS and rest:
            written = f"{_ABBREVIATIONS[root]}.{rest}"
        scope = at.split(".")
        for depth in range(len(scope) - 1, -1, -1):
            name = ".".join([*scope[:depth], written])
            while name in self.aliases and self.aliases[name] != name:
                name = self.aliases[name]
            if name in self.documents:
                return name
        same = self.by_last_part.get(f"{scope[0]} {written}", set())
        return next(iter(same)) if len(same) == 1 else None


def _names_in(lines: list[str]) -> Iterator[str]:
    """The names a See Also section lists, as written: `a : text`, `a, b, c`, and roles in free text."""
    listed = False
    for line in lines:
        if line[:1].isspace() and listed:
            continue  # the description of the name above
        head = re.split(r"\s:|:\s|:$", _plain(line).strip().lstrip("-*").strip(), maxsplit=1)[0].strip()
        if head and _NAME_LIST.fullmatch(head):
            listed = True
            yield from (name.strip(" ~.()") for name in re.split(r",|\band\b", head))
        else:
            yield from (m[1].strip(" ~.()") for m in _ROLE.finditer(line))

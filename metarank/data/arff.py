"""Multi-label ARFF: Mulan's (an XML list of the labels) and MEKA's (`-C k` in the relation's name).

Read here, since `scipy.io.arff` has no sparse rows, of which most multi-label files are, and names no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

from metarank.data.compressed import read_bytes
from metarank.data.dataset import Dataset

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
# What stands between commas, a token at a time, none of which can be read in two ways.
_TOKEN = re.compile(rf"{_QUOTED}|[^,'\"]+|,")
_LABEL_COUNT = re.compile(r"-C\s+(-?\d+)")


class _Attribute(NamedTuple):
    """A numeric attribute, or one of values: {0, 1} is kept as a number, others as a feature a value."""

    name: str
    column: int  # of its first feature
    place: dict[str, int] | None = None  # of each value
    width: int = 1

    def cell(self, text: str) -> tuple[int, float]:
        """Column and number of a value."""
        if text == "?":
            raise ValueError(f"attribute {self.name!r} has a missing value; fill it in before")
        if self.place is not None and text in self.place:
            return (self.column, float(text)) if self.width == 1 else (self.column + self.place[text], 1.0)
        try:
            if self.place is None and np.isfinite(number := float(text)):
                return self.column, number
        except ValueError:
            pass
        allowed = "a finite number" if self.place is None else f"one of {', '.join(list(self.place)[:12])}"
        raise ValueError(f"attribute {self.name!r} must be {allowed}, got {text[:80]!r}")


def read_arff(content: bytes, path: Path, name: str) -> Dataset:
    """A multi-label ARFF file, with dense or sparse (`{index value, ...}`) rows.

    Each numeric attribute and each nominal {0, 1} attribute becomes one feature; other nominal attributes
    become one feature a value (`attribute=value`). Keywords are case-insensitive, names and values may be
    quoted, and lines that start with `%` are comments. Entries that a sparse row leaves out are 0, or the
    first value of a nominal attribute, as in Weka. Labels are the attributes that `NAME.xml` beside
    `NAME.arff`, `NAME-train.arff` or `NAME-test.arff` names, else the first k by `-C k` in the relation's
    name (the last -k if k is negative).

    Raises
    ------
    ValueError
        The file and line are named: string, date and relational attributes, missing values (`?`),
        values that are not declared, rows of a wrong length, no list of labels, labels that are not 0/1.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    try:
        relation, attributes, matrix = _parse(text)
        labels = _label_attributes(path, relation, attributes)
        is_label = np.zeros(matrix.shape[1], bool)
        is_label[[a.column for a in labels]] = True
        X, Y = matrix[:, ~is_label], matrix[:, is_label]
        if np.any(Y.data != 1):
            raise ValueError(f"labels must be 0 or 1, got {Y.data[Y.data != 1][0]:g}")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    features = [
        column
        for a in attributes
        if not is_label[a.column]
        for column in ([a.name] if a.width == 1 else [f"{a.name}={v}" for v in a.place or ()])
    ]
    return Dataset(
        X if X.shape[1] else None,
        Y,
        label_names=[a.name for a in labels],
        feature_names=features,
        name=name,
    )


def _parse(text: str) -> tuple[str, list[_Attribute], sp.csr_matrix]:
    relation, attributes, in_data = "", list[_Attribute](), False
    n_rows, width, rows, columns, numbers = 0, 0, list[int](), list[int](), list[float]()
    omitted: dict[int, tuple[int, float]] = {}  # by attribute, the cell of a row that does not mention it
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        try:
            if in_data:
                for column, value in _row(line, attributes, omitted):
                    rows.append(n_rows)
                    columns.append(column)
                    numbers.append(value)
                n_rows += 1
            elif line[:9].lower() == "@relation":
                relation = line[9:].strip()
            elif line[:10].lower() == "@attribute":
                attributes.append(attribute := _attribute(line, width))
                width += attribute.width
                if attribute.place and (cell := attribute.cell(next(iter(attribute.place))))[1]:
                    omitted[len(attributes) - 1] = cell
            elif line.lower() == "@data":
                in_data = True
            else:
                raise ValueError(f"expected @relation, @attribute or @data, got {line[:40]!r}")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not in_data or not attributes:
        raise ValueError("there is no @data section, or no attribute before it")
    return relation, attributes, sp.csr_matrix((numbers, (rows, columns)), shape=(n_rows, width))


def _attribute(line: str, column: int) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise ValueError(f"malformed attribute: {line[:60]!r}")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(f"attribute {name!r}: the list of values has no end")
        place = {value: i for i, value in enumerate(dict.fromkeys(map(_unquoted, _split(kind[1:-1]))))}
        return _Attribute(name, column, place, 1 if place.keys() <= {"0", "1"} else len(place))
    if kind.lower() not in ("numeric", "real", "integer"):
        raise ValueError(f"attribute {name!r} must be numeric or nominal, got {kind or 'no type'!r}")
    return _Attribute(name, column)


def _row(
    line: str, attributes: list[_Attribute], omitted: dict[int, tuple[int, float]]
) -> Iterable[tuple[int, float]]:
    """The non-zero cells of a row."""
    if not line.startswith("{"):
        values = _split(line)
        if len(values) != len(attributes):
            raise ValueError(f"expected {len(attributes)} values, got {len(values)}")
        return (c for a, v in zip(attributes, values) if (c := a.cell(_unquoted(v)))[1] != 0)
    if not line.endswith("}"):
        raise ValueError("the sparse row has no closing brace")
    cells: dict[int, tuple[int, float]] = {}
    for entry in _split(line[1:-1]) if line[1:-1].strip() else ():
        index, _, value = entry.partition(" ")
        at = int(index) if index.isdecimal() else len(attributes)
        if at >= len(attributes):
            raise ValueError(f"attribute number must lie in [0, {len(attributes)}), got {index[:40]!r}")
        if at in cells:
            raise ValueError(f"attribute number {index} occurs twice")
        cells[at] = attributes[at].cell(_unquoted(value.strip()))
    return (cell for cell in (omitted | cells).values() if cell[1] != 0)


def _split(text: str) -> list[str]:
    """What stands between commas that are in no quotes."""
    if "'" not in text and '"' not in text:
        return [part.strip() for part in text.split(",")]
    parts, first, at = list[str](), 0, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"a quote has no end: {text[at : at + 40]!r}")
        if token[0] == ",":
            parts.append(text[first:at].strip())
            first = at + 1
        at = token.end()
    return [*parts, text[first:].strip()]


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _label_attributes(path: Path, relation: str, attributes: list[_Attribute]) -> list[_Attribute]:
    stem = path.name.split(".arff")[0]
    names = (stem, re.sub(r"[-_](train|test)$", "", stem))
    beside = next((p for p in (path.with_name(f"{n}.xml") for n in names) if p.is_file()), None)
    if beside is not None:
        try:
            elements = ElementTree.fromstring(read_bytes(beside)).iter()
        except (ElementTree.ParseError, LookupError, ValueError) as error:  # or an encoding that is none
            raise ValueError(f"{beside} is not XML: {error}") from None
        wanted = {e.attrib["name"] for e in elements if e.tag.endswith("label") and "name" in e.attrib}
        labels = [a for a in attributes if a.name in wanted]
        if absent := wanted - {a.name for a in labels}:
            raise ValueError(f"{beside} names the label {min(absent)!r}, which is no attribute")
    else:
        count = _LABEL_COUNT.search(relation)
        if count is None:
            raise ValueError(
                f"which attributes are labels? Put {stem}.xml beside the file, or write '-C k' into the "
                "relation's name"
            )
        k = int(count[1])
        labels = attributes[:k] if k >= 0 else attributes[k:]
    wide = next((a for a in labels if a.width != 1), None)
    if not labels:
        raise ValueError("there are no labels")
    if wide is not None:
        values = ", ".join(wide.place or ())
        raise ValueError(f"label {wide.name!r} must be numeric or {{0, 1}}, got {{{values}}}")
    return labels

"""Multi-label ARFF: Mulan's (an XML list of the labels) and MEKA's (`-C k` in the relation's name).

Read here, since `scipy.io.arff` has no sparse rows, of which most multi-label files are, and names no line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

from metarank.data.compressed import plain_or_compressed, read_bytes
from metarank.data.dataset import Dataset
from metarank.data.tables import naming

_QUOTED = r"'(?:[^'\\]|\\.)*+'?|\"(?:[^\"\\]|\\.)*+\"?"  # to the end, where a quote has none
_ATTRIBUTE = re.compile(rf"({_QUOTED}|[^\s{{]+)\s*(?:(numeric|real|integer)|\{{(.*)\}})$", re.IGNORECASE)
# What stands between commas that are in no quotes.
_FIELD = re.compile(rf"(?:{_QUOTED}|[^,'\"])+")
_LABEL_COUNT = re.compile(r"-c\s+(-?\d+)", re.IGNORECASE)
# The weight of a row, behind its last comma.
_WEIGHT = re.compile(r",\s*\{\s*[\d.]+\s*\}\s*$")
_TRUE = ("1", "true", "yes", "t", "y")
# Pairs of words that stand for 0 and 1.
_WORDS = ({"0", "1"}, {"false", "true"}, {"no", "yes"}, {"f", "t"}, {"n", "y"})


class _Attribute(NamedTuple):
    """An attribute, and its features, from `column` on: one if it is numeric or {0, 1}, else one a value.

    A nominal one has the column and the number of each value in `cells`.
    """

    name: str
    features: list[str]
    column: int
    cells: dict[str, tuple[int, float]]

    def cell(self, text: str) -> tuple[int, float]:
        """Column and number of a value."""
        if text == "?":
            raise ValueError(
                f"attribute {self.name!r} has a missing value: fill it, or use CSV with --number-columns "
                "(number_columns=)"
            )
        try:
            return self.cells[text] if self.cells else (self.column, float(text))
        except (KeyError, ValueError):
            allowed = f"one of {', '.join(list(self.cells)[:12])}" if self.cells else "a number"
            raise ValueError(f"attribute {self.name!r} must be {allowed}, got {text!r:.80}") from None


def read_arff(content: bytes, path: Path, name: str) -> Dataset:
    """A multi-label ARFF file, with dense or sparse (`{index value, ...}`) rows.

    Each numeric attribute and each nominal one of {0, 1}, {false, true} or {no, yes} becomes one feature;
    other nominal attributes become one feature a value (`attribute=value`). Keywords are case-
    insensitive, names and values may be quoted, and lines that start with `%` are comments. Entries that
    a sparse row leaves out are 0, or the first value of a nominal attribute, as in Weka. Labels are the
    attributes that `NAME.xml` beside `NAME.arff`, `NAME-train.arff` or `NAME-test.arff` names, else the
    first k by `-C k` or `-c k` in the relation's name (the last -k if k is negative).

    Raises
    ------
    ValueError
        The file and line are named: string, date and relational attributes, missing values (`?`),
        values that are not declared, rows of a wrong length, no list of labels, labels that are not 0/1.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")  # as Weka writes on Windows
    with naming(path):
        relation, attributes, matrix = _parse(text)
        labels = _label_attributes(path, relation, attributes)
        of_labels = {label.column for label in labels}
        is_label = np.array([a.column in of_labels for a in attributes for _ in a.features])
        X, Y = matrix[:, ~is_label], matrix[:, is_label]
        if np.any(Y.data != 1):
            raise ValueError(f"labels must be 0 or 1, got {Y.data[Y.data != 1][0]:g}")
        return Dataset(
            X if X.shape[1] else None,
            Y,
            label_names=[feature for a in labels for feature in a.features],
            feature_names=[f for a in attributes if a.column not in of_labels for f in a.features],
            name=name,
        )


def _parse(text: str) -> tuple[str, list[_Attribute], sp.csr_matrix]:
    relation, attributes, rows, width = "", list[_Attribute](), None, 0
    omitted: dict[int, tuple[int, float]] = {}  # by attribute, the cell of a row that does not mention it
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("%"):
            continue
        keyword = line.split()[0].lower()
        rest = line[len(keyword) :].strip()
        try:
            if rows is not None:
                rows.append([cell for cell in _row(line, attributes, omitted) if cell[1]])
            elif keyword == "@relation":
                relation = rest
            elif keyword == "@attribute":
                attribute = _attribute(rest, width)
                if attribute.cells and (first := next(iter(attribute.cells.values())))[1]:
                    omitted[len(attributes)] = first
                attributes.append(attribute)
                width += len(attribute.features)
            elif keyword == "@data":
                rows = list[list[tuple[int, float]]]()
            else:
                raise ValueError(f"expected @relation, @attribute or @data, got {line[:40]!r}")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if rows is None:
        raise ValueError("there is no @data section")
    columns, numbers = np.array([cell for row in rows for cell in row]).reshape(-1, 2).T
    indptr = np.cumsum([0, *map(len, rows)])
    return relation, attributes, sp.csr_matrix((numbers, columns.astype(int), indptr), (len(rows), width))


def _attribute(declared: str, column: int) -> _Attribute:
    match = _ATTRIBUTE.match(declared)
    if match is None:
        raise ValueError(f"an attribute must be a name and 'numeric' or {{values}}, got {declared[:60]!r}")
    name, values = _unquoted(match[1]), list(map(_unquoted, _FIELD.findall(match[3] or "")))
    if match[2]:
        return _Attribute(name, [name], column, {})
    if any({*map(str.lower, values)} <= pair for pair in _WORDS):
        of = {value: (column, float(value.lower() in _TRUE)) for value in values}
        return _Attribute(name, [name], column, of)
    cells = {value: (column + i, 1.0) for i, value in enumerate(values)}
    return _Attribute(name, [f"{name}={value}" for value in values], column, cells)


def _row(
    line: str, attributes: list[_Attribute], omitted: dict[int, tuple[int, float]]
) -> list[tuple[int, float]]:
    """The cells of a row; of a sparse one, those that it mentions and those that are not 0."""
    if _WEIGHT.search(line):
        raise ValueError("rows with weights are not read: take {weight} from the ends of the lines")
    fields = _FIELD.findall(line.strip("{}"))
    if not line.startswith("{"):
        if len(fields) != len(attributes):
            raise ValueError(f"expected {len(attributes)} values, got {len(fields)}")
        return [attribute.cell(_unquoted(field)) for attribute, field in zip(attributes, fields)]
    cells = omitted.copy()
    for index, _, value in (field.strip().partition(" ") for field in fields if field.strip()):
        if not index.isdecimal() or int(index) >= len(attributes):
            raise ValueError(f"attribute number must lie in [0, {len(attributes)}), got {index[:40]!r}")
        cells[int(index)] = attributes[int(index)].cell(_unquoted(value))
    return list(cells.values())


def _unquoted(text: str) -> str:
    text = text.strip()
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in ("'", '"') else text


def _label_attributes(path: Path, relation: str, attributes: list[_Attribute]) -> list[_Attribute]:
    stem = path.name.split(".arff")[0]
    names = (stem, re.sub(r"[-_](train|test)$", "", stem))
    beside = next(filter(None, (plain_or_compressed(path.with_name(f"{n}.xml")) for n in names)), None)
    if beside is not None:
        try:
            elements = ElementTree.fromstring(read_bytes(beside)).iter()
        except (ElementTree.ParseError, LookupError) as error:  # or an encoding that is none
            raise ValueError(f"{beside} is not XML: {error}") from None
        wanted = {e.attrib["name"] for e in elements if e.tag.endswith("label") and "name" in e.attrib}
        labels = [a for a in attributes if a.name in wanted]
        if absent := wanted - {a.name for a in labels}:
            raise ValueError(f"{beside} names the label {min(absent)!r}, which is not an attribute")
    elif (count := _LABEL_COUNT.search(relation)) is not None:
        k = int(count[1])
        labels = attributes[:k] if k >= 0 else attributes[k:]
    else:
        raise ValueError(
            f"the labels are not marked: put {stem}.xml next to the file, or '-C k' into the relation's name"
        )
    if not labels:
        raise ValueError("there are no labels")
    return labels

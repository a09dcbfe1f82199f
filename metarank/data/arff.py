"""Multi-label ARFF: Mulan's (an XML list of the labels) and MEKA's (`-C k` in the relation's name).

Read here, since `scipy.io.arff` has no sparse rows, of which most multi-label files are, names no line, and
puts no bound on the memory that a file may take.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

from metarank.data.dataset import Dataset
from metarank.data.guard import check_table
from metarank.data.xc import PathLike, read_bytes

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
# A token at a time, none of which can be found in two ways: a line is read in one pass.
TOKEN = re.compile(rf"{QUOTED}|[^,'\"]+|,")
LABEL_COUNT = re.compile(r"-C\s+(-?\d+)")
NUMERIC = ("numeric", "real", "integer")
# Bytes of a cell as it is read.
_CELL = 64


@dataclass(frozen=True)
class _Attribute:
    name: str
    values: tuple[str, ...] | None  # of a nominal attribute; None: numeric
    column: int  # of its first value

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each value stands among them."""
        return {value: i for i, value in reversed(list(enumerate(self.values or ())))}

    @cached_property
    def is_binary(self) -> bool:
        """Nominal {0, 1}: kept as a number."""
        return self.values is not None and set(self.values) <= {"0", "1"}

    @property
    def width(self) -> int:
        return 1 if self.values is None or self.is_binary else len(self.values)

    @property
    def omitted(self) -> tuple[int, float]:
        """What a sparse row means that does not mention the attribute: zero, or the first nominal value."""
        if self.values is None:
            return self.column, 0.0
        return self.column, float(self.values[0]) if self.is_binary else 1.0

    def cell(self, text: str) -> tuple[int, float]:
        """Column and number of a value."""
        if text == "?":
            raise ValueError(f"attribute {self.name!r} has a missing value; fill it in before")
        if self.values is None:
            with suppress(ValueError):
                if np.isfinite(number := float(text)):
                    return self.column, number
        elif text in self.place:
            return (self.column, float(text)) if self.is_binary else (self.column + self.place[text], 1.0)
        allowed = "a finite number" if self.values is None else f"one of {', '.join(self.values[:12])}"
        raise ValueError(f"attribute {self.name!r} must be {allowed}, got {text[:80]!r}")


def read_arff(
    path: PathLike,
    *,
    labels_xml: PathLike | None = None,
    name: str | None = None,
    content: bytes | None = None,
) -> Dataset:
    """Read a multi-label ARFF file, with dense or sparse (`{index value, ...}`) rows.

    Each numeric attribute and each nominal {0, 1} attribute becomes one feature; other nominal attributes
    become one feature a value (`attribute=value`). Keywords are case-insensitive, names and values may be
    quoted, and lines that start with `%` are comments. Entries that a sparse row leaves out are 0, or the
    first value of a nominal attribute, as in Weka.

    Parameters
    ----------
    path : path of the file; gzip, xz and bzip2 are recognised
    labels_xml : path or None
        Mulan's list of the labels. None: `NAME.xml` beside `NAME.arff`, `NAME-train.arff` or
        `NAME-test.arff`; without one, MEKA's `-C k` in the relation's name says that the first k
        attributes are the labels (the last -k if k is negative).
    name : str or None
        Name of the data set; None takes the file's stem.

    Returns
    -------
    Dataset
        Labels in the order of the attributes.

    Raises
    ------
    ValueError
        The file and line are named: string, date and relational attributes, missing values (`?`),
        values that are not declared, rows of a wrong length, no list of labels, labels that are not 0/1.
    """
    path = Path(path)
    content = read_bytes(path) if content is None else content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    try:
        relation, attributes, matrix = _parse(text)
        labels = _label_attributes(path, relation, attributes, labels_xml)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    is_label = np.zeros(matrix.shape[1], bool)
    for a in labels:
        is_label[a.column] = True
    Y = matrix[:, is_label]
    if np.any(Y.data != 1):
        raise ValueError(f"{path}: labels must be 0 or 1, got {Y.data[Y.data != 1][0]:g}")
    feature_names = [
        column
        for a in attributes
        if not is_label[a.column]
        for column in ([a.name] if a.width == 1 else [f"{a.name}={v}" for v in a.values or ()])
    ]
    X = matrix[:, ~is_label]
    return Dataset(
        X if X.shape[1] else None,
        Y,
        label_names=[a.name for a in labels],
        feature_names=feature_names,
        name=path.name.split(".")[0] if name is None else name,
    )


def _parse(text: str) -> tuple[str, list[_Attribute], sp.csr_matrix]:
    relation, attributes, in_data = "", list[_Attribute](), False
    n_rows, rows, columns, numbers = 0, list[int](), list[int](), list[float]()
    omitted: dict[int, int] = {}  # by attribute, the column that a sparse row has which does not mention it
    lines = text.split("\n")
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        try:
            if in_data:
                is_sparse = line.startswith("{")
                cells = _sparse_row(line, attributes, omitted) if is_sparse else _row(line, attributes)
                for column, value in cells:
                    rows.append(n_rows)
                    columns.append(column)
                    numbers.append(value)
                n_rows += 1
            elif line[:9].lower() == "@relation":
                relation = line[9:].strip()
            elif line[:10].lower() == "@attribute":
                start = attributes[-1].column + attributes[-1].width if attributes else 0
                attributes.append(_attribute(line, start))
                column, value = attributes[-1].omitted
                omitted |= {len(attributes) - 1: column} if value else {}
            elif line.lower() == "@data":
                in_data = True
                n_sparse = sum(row.lstrip().startswith("{") for row in lines[number:])
                check_table(_CELL * n_sparse * len(omitted), len(text), "make the nominal attributes numeric")
            else:
                raise ValueError(f"expected @relation, @attribute or @data, got {line[:40]!r}")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not in_data:
        raise ValueError("there is no @data section")
    if not attributes:
        raise ValueError("there are no attributes")
    width = attributes[-1].column + attributes[-1].width
    return relation, attributes, sp.csr_matrix((numbers, (rows, columns)), shape=(n_rows, width))


def _attribute(line: str, column: int) -> _Attribute:
    match = ATTRIBUTE.fullmatch(line)
    if match is None:
        raise ValueError(f"malformed attribute: {line[:60]!r}")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(f"attribute {name!r}: the list of values has no end")
        return _Attribute(name, tuple(_values(kind[1:-1])), column)
    if kind.lower() not in NUMERIC:
        raise ValueError(f"attribute {name!r} must be numeric or nominal, got {kind or 'no type'!r}")
    return _Attribute(name, None, column)


def _sparse_row(line: str, attributes: list[_Attribute], omitted: dict[int, int]) -> list[tuple[int, float]]:
    """The non-zero cells of a row that names its attributes, in the order of the columns."""
    if not line.endswith("}"):
        raise ValueError("the sparse row has no closing brace")
    cells: dict[int, tuple[int, float]] = {i: (column, 1.0) for i, column in omitted.items()}
    seen: set[int] = set()
    for entry in _split(line[1:-1]) if line[1:-1].strip() else ():
        index, _, value = entry.strip().partition(" ")
        at = int(index) if index.isdecimal() and len(index) < 10 else len(attributes)
        if at >= len(attributes):
            raise ValueError(f"attribute number must lie in [0, {len(attributes)}), got {index[:40]!r}")
        if at in seen:
            raise ValueError(f"attribute number {index} occurs twice")
        seen.add(at)
        cells[at] = attributes[at].cell(_unquoted(value.strip()))
    return sorted(cell for cell in cells.values() if cell[1] != 0)


def _row(line: str, attributes: list[_Attribute]) -> list[tuple[int, float]]:
    """The non-zero cells of a row."""
    values = _values(line)
    if len(values) != len(attributes):
        raise ValueError(f"expected {len(attributes)} values, got {len(values)}")
    cells = (a.cell(value) for a, value in zip(attributes, values))
    return [cell for cell in cells if cell[1] != 0]


def _values(text: str) -> list[str]:
    """Comma-separated values, quoted or not."""
    return [_unquoted(v.strip()) for v in _split(text)]


def _split(text: str) -> list[str]:
    """What stands between commas that are in no quotes."""
    if "'" not in text and '"' not in text:
        return text.split(",")
    parts, first, at = list[str](), 0, 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"a quote has no end: {text[at : at + 40]!r}")
        if token[0] == ",":
            parts.append(text[first:at])
            first = at + 1
        at = token.end()
    return [*parts, text[first:]]


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _label_attributes(
    path: Path, relation: str, attributes: list[_Attribute], labels_xml: PathLike | None
) -> list[_Attribute]:
    if labels_xml is None:
        stem = path.name.split(".arff")[0]
        names = [stem, re.sub(r"[-_](train|test)$", "", stem)]
        beside = [path.with_name(f"{n}.xml") for n in names]
        labels_xml = next((p for p in beside if p.is_file()), None)
    if labels_xml is not None:
        try:
            elements = ElementTree.fromstring(read_bytes(labels_xml)).iter()
        except (ElementTree.ParseError, LookupError, ValueError) as error:  # or an encoding that is none
            raise ValueError(f"{labels_xml} is not XML: {error}") from None
        wanted = {e.attrib["name"] for e in elements if e.tag.endswith("label") and "name" in e.attrib}
        labels = [a for a in attributes if a.name in wanted]
        absent = wanted - {a.name for a in labels}
        if absent:
            raise ValueError(f"{labels_xml} names the label {min(absent)!r}, which is no attribute")
    else:
        count = LABEL_COUNT.search(relation)
        if count is None:
            raise ValueError(
                f"which attributes are labels? Put {path.name.split('.arff')[0]}.xml beside the file, pass "
                "labels_xml, or write '-C k' into the relation's name"
            )
        k = int(count[1])
        if abs(k) > len(attributes):
            raise ValueError(
                f"the relation's name asks for {abs(k)} labels, got {len(attributes)} attributes"
            )
        labels = attributes[:k] if k >= 0 else attributes[k:]
    if not labels:
        raise ValueError("there are no labels")
    for a in labels:
        if a.width != 1:
            raise ValueError(
                f"label {a.name!r} must be numeric or {{0, 1}}, got {{{', '.join(a.values or ())}}}"
            )
    return labels

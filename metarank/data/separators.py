"""How the labels in one cell of text are separated: one rule, for every file and container.

A `label_separator` is any text, such as ";"; or

- "whitespace": blanks, tabs and line breaks, however many;
- "list": a cell in brackets or braces is a written list, any other is one name. It is a list of JSON or
  Python, a set, or an array of NumPy, of names, integers, or records with a "name";
- "<>": each label stands in angle brackets (`<python><c#>`);
- None: each cell is one name, whatever it holds;
- "auto": decided once, from all cells that are text, by the first of these that applies:

  1. "list", where at least half of them stand in brackets or braces.
  2. "<>", where all of them are labels in angle brackets, and half of them hold more than URIs.
  3. "whitespace", where more than half hold nothing but URIs (`<http://a> <http://b>`) and some hold several.
  4. ";", "|" or ",". A sign that splits fewer than a quarter of the cells that another splits is a stray.
     The sign that splits most cells is tried first, ties in this order; a comma that is mostly followed by a
     blank is tried last. The first sign that separates labels is taken. It does so if it splits a tenth of
     all cells (a comma: half, and without a blank behind it, since names have those too), or if a quarter
     of the parts are labels in several places: alone in one cell and within another, or first in one and
     second in another. So "New York, NY" is one name, and "salt, sea" is two where "sea, sun" is another
     cell. Parts of URIs must be URIs too.
  5. "whitespace", where half of the parts are labels in several places and nine in ten are in several cells
     that differ, since names have blanks too: of "red wine" and "white wine" each is one name.
  6. None.

Blanks around labels are dropped, and so are empty labels: an empty cell is a row without labels. Labels are
put into Unicode's form NFC: composed and decomposed letters are the same.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metarank.types.checks import check_writable
from metarank.types.containers import plain_column

logger: logging.Logger = logging.getLogger("metarank.data")

SIGNS = (";", "|", ",")
WHITESPACE, LIST, ANGLES, AUTO = "whitespace", "list", "<>", "auto"

_ANGLES = re.compile(r"(<[^<>]+>\s*)+")
# A list, set or array of texts and integers, with or without commas, and what is in it.
_ITEM = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+"
_ITEMS = re.compile(rf"[\[{{]\s*(?:(?:{_ITEM})(?:\s*,\s*|\s+|\s*(?=[\]}}])))*[\]}}]")
_URI = re.compile(r"(<[^<>\s]+>|[A-Za-z][\w+.-]*:[^\s<>]+)(?<![;|,])")
# The share of all cells that a sign must part to separate labels, whatever it parts.
_SHARE = {";": 0.1, "|": 0.1, ",": 0.5}
_STRAY, _SEVERAL_PLACES = 0.25, 0.25
# Of blanks, which names have too; and the share of the parts that other cells have as well.
_SEVERAL_PLACES_OF_WORDS, _IN_SEVERAL_CELLS = 0.5, 0.9
# At least this many names, at least this share of them in a single cell, may be combinations.
_MANY_NAMES, _ALONE = 50, 0.8


def check_separator(value: Any, name: str = "label_separator") -> str | None:
    """The separator; ValueError or TypeError naming the parameter if it is invalid.

    Examples
    --------
    >>> check_separator(" / ")
    ' / '
    """
    rule = f"{name} must be a text, 'whitespace', 'list', '<>', 'auto' or None, got {value!r:.80}"
    if value is not None and not isinstance(value, str):
        raise TypeError(rule)
    if value == "":
        raise ValueError(rule)
    if value is not None:
        check_writable(value, name)
    return value


def described(separator: str | None) -> str:
    """How a cell holds labels, for a person.

    Examples
    --------
    >>> described(";"), described(None)
    ("labels are separated by ';'", 'each cell is one label')
    """
    if separator is None:
        return "each cell is one label"
    known = {
        WHITESPACE: "labels are separated by white space",
        LIST: "labels are lists",
        ANGLES: "labels are in angle brackets",
    }
    return known.get(separator, f"labels are separated by {separator!r}")


def chosen_separator(cells: Sequence[str]) -> str | None:
    """The separator that "auto" chooses for a column, see the module; "auto" itself if all cells are empty.

    Examples
    --------
    >>> chosen_separator(["sea;sun", "sun", "salt,sand;sea"])
    ';'
    >>> chosen_separator(["<http://a/1> <http://a/2>", "<http://a/2>"])
    'whitespace'
    >>> chosen_separator(['["sea", "sun"]', "[]"]), chosen_separator(["<sea><sun>", "<sun>"])
    ('list', '<>')
    >>> chosen_separator(["New York, NY", "Paris", "Albany, NY"])
    """
    cells = [cell.strip() for cell in cells if not cell.isspace() and cell]
    if not cells:
        return AUTO
    if 2 * sum(map(_is_list, cells)) >= len(cells):
        return LIST
    words = [cell.split() for cell in cells]
    uris = [all(map(_URI.fullmatch, row)) for row in words]
    of_uris = 2 * sum(uris) > len(cells)
    if not of_uris and all(map(_ANGLES.fullmatch, cells)):
        return ANGLES
    if of_uris and any(uri and len(row) > 1 for uri, row in zip(uris, words)):
        return WHITESPACE
    found = {sign: [split(cell, sign) for cell in cells] for sign in SIGNS}
    count = {sign: sum(len(row) > 1 for row in rows) for sign, rows in found.items()}
    most = max(count.values())
    spaced = sum(cell.count(", ") for cell in cells) * 2 > sum(cell.count(",") for cell in cells)
    weak = {sign: sign == "," and spaced for sign in SIGNS}
    present = [sign for sign in SIGNS if count[sign] and count[sign] >= _STRAY * most]
    for sign in sorted(present, key=lambda s: (weak[s], -count[s])):
        if of_uris and not all(_URI.fullmatch(label) for row in found[sign] for label in row):
            continue
        often = not weak[sign] and count[sign] >= _SHARE[sign] * len(cells)
        if often or _share_of_several_places(found[sign]) >= _SEVERAL_PLACES:
            return sign
    if _share_of_several_places(words) >= _SEVERAL_PLACES_OF_WORDS and _recombine(words):
        return WHITESPACE
    return None


def _recombine(rows: list[list[str]]) -> bool:
    """Whether the parts of split cells are mostly parts of other cells too, or such cells themselves."""
    distinct = {tuple(row) for row in rows}
    cells_of = Counter(label for row in distinct for label in {*row})
    within = [label for row in distinct if len(row) > 1 for label in row]
    return sum(cells_of[label] > 1 for label in within) >= _IN_SEVERAL_CELLS * len(within)


def _share_of_several_places(rows: list[list[str]]) -> float:
    """Share of the labels in split cells, each cell counted once, that also stand in another place."""
    distinct = {tuple(row) for row in rows}
    places: dict[str, set[int]] = {}
    for row in distinct:
        for place, label in enumerate(row):
            places.setdefault(label, set()).add(place if len(row) > 1 else -1)
    within = [label for row in distinct if len(row) > 1 for label in row]
    return sum(len(places[label]) > 1 for label in within) / max(1, len(within))


def split(cell: str, separator: str | None) -> list[str]:
    """The labels in one cell.

    Raises
    ------
    ValueError
        If a cell in brackets is not a JSON list of names, where the separator is "json".

    Examples
    --------
    >>> split(" sea ;; sun", ";"), split("sea  sun", "whitespace"), split("['sea' 'sun', 3]", "list")
    (['sea', 'sun'], ['sea', 'sun'], ['sea', 'sun', '3'])
    >>> split("[{'id': 28, 'name': 'sea'}]", "list"), split("<sea><c#>", "<>")
    (['sea'], ['sea', 'c#'])
    """
    parts: list[Any] = [cell]
    if separator == WHITESPACE:
        parts = cell.split()
    elif separator == LIST:
        parts = _written_list(cell.strip()) if _is_list(cell) else [cell]
    elif separator == ANGLES:
        parts = re.split("[<>]", cell)
    elif separator is not None:
        parts = cell.split(separator)
    try:
        return [name for part in parts if (name := _name(part))]
    except TypeError:
        raise ValueError(f"the labels of a cell must be names, got {cell!r:.80}") from None


def _written_list(cell: str) -> list[Any]:
    if _ITEMS.fullmatch(cell):
        return [ast.literal_eval(item) for item in re.findall(_ITEM, cell)]
    try:
        return list(json.loads(cell))
    except ValueError:
        try:
            return list(ast.literal_eval(cell))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise ValueError(f"a cell in brackets must be a list of names, got {cell!r:.80}") from None


def _name(part: Any) -> str:
    """A label's name; TypeError if it is not a name."""
    if isinstance(part, dict):
        part = part.get("name")
    if isinstance(part, float) and part.is_integer():
        part = int(part)
    if not isinstance(part, str) and not _is_integer(part):
        raise TypeError
    return unicodedata.normalize("NFC", str(part).strip())


def split_column(
    cells: Sequence[Any], separator: str | None, *, column: str, where: Callable[[int], str]
) -> tuple[list[list[Any]], str | None]:
    """The labels of each cell of a column, and the separator of its texts.

    Cells are text, a list of names or integers, one integer, or None for no label. Where no cell is text or a
    list of names, integers stay integers. Where any cell holds a sign, the logger gets the choice of "auto"
    in one line that names the column `column`.

    Raises
    ------
    ValueError
        If a cell holds anything else; the message names it by `where(its position)`.
    """
    if separator == AUTO:
        texts = [cell for cell in cells if isinstance(cell, str)]
        separator = chosen_separator(texts)
        if separator != AUTO and (separator or any(sign in text for text in texts for sign in SIGNS)):
            logger.info("%s: %s; set label_separator to change it", column, described(separator))
        if separator is None:
            _tell_of_combinations(texts, column)
    rows: list[list[Any]] = []
    for i, cell in enumerate(cells):
        try:
            if isinstance(cell, str):
                rows.append(split(cell, separator))
                continue
            row = [] if cell is None else [cell] if isinstance(cell, (int, float, np.number)) else cell
            if not isinstance(row, (list, tuple, set, np.ndarray)):
                raise TypeError
            rows.append([name for v in row if (name := v if _is_integer(v) else _name(v)) != ""])
        except (ValueError, TypeError):
            raise ValueError(
                f"{where(i)}: labels must be names or a list of names, got {cell!r:.80}"
            ) from None
    if any(isinstance(label, str) for row in rows for label in row):
        rows = [list(map(str, row)) for row in rows]
    return rows, separator


def _tell_of_combinations(cells: Sequence[str], column: str) -> None:
    """Log a line where most cells with blanks or signs occur once: they may hold several labels."""
    counts = Counter(cell for cell in cells if re.search(r"[\s;|,/]", cell.strip()))
    alone = sum(count == 1 for count in counts.values())
    if len(counts) >= _MANY_NAMES and alone >= _ALONE * len(counts) and 2 * sum(counts.values()) > len(cells):
        logger.warning(
            "%s: %d names with blanks or signs, %d of which occur once, look like combinations of labels: "
            "set label_separator to split them",
            column,
            len(counts),
            alone,
        )


def split_labels(Y: Any, separator: str | None) -> tuple[Any, str | None]:
    """Split the texts of Y, if it is a column of texts; return the separator too.

    Nulls are rows without labels. Anything else is returned unchanged, with the separator unchanged.

    Examples
    --------
    >>> split_labels(["sea;sun", "sun", None], "auto")
    ([['sea', 'sun'], ['sun'], []], ';')
    >>> split_labels([["sea;sun"], ["sun"]], "auto")
    ([['sea;sun'], ['sun']], 'auto')
    """
    Y = plain_column(Y, "Y")
    one_dimensional = isinstance(Y, (list, tuple)) or (isinstance(Y, np.ndarray) and Y.ndim == 1)
    if not one_dimensional or not any(isinstance(cell, str) for cell in Y):
        return Y, separator
    if not all(cell is None or isinstance(cell, str) for cell in Y):
        return Y, separator  # refused later, as a mixture of names and numbers
    return split_column(list(Y), separator, column="Y", where="Y, row {}".format)


def same_separator(given: str | None, separator: str | None) -> bool:
    """Whether two columns have the same separator; a column without one agrees with any."""
    return AUTO in (given, separator) or given == separator


def _is_list(cell: str) -> bool:
    cell = cell.strip()
    return (cell[:1], cell[-1:]) in (("[", "]"), ("{", "}"))


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))

"""Product titles and their attributes: the nearest public thing to search queries and the filters chosen.

A label is one value of one attribute, named `attribute: value`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from metarank._util.json import parse_json
from metarank.data import Dataset
from metarank.data.compressed import PathLike, decode, read_bytes

# Columns of the table, and the names that shoppers know them by; the others state no filter of their own.
FASHION_ATTRIBUTES = {
    "gender": "gender",
    "articleType": "type",
    "baseColour": "colour",
    "season": "season",
    "usage": "usage",
}
FASHION_TITLE = "productDisplayName"
_UNKNOWN = ("", "na", "n/a")
# Titles have the form "Peter England Men Party Blue Jeans".
_FOR_WHOM = re.compile(r"(?:men|women|man|woman|boy|girl|kid|unisex|infant|teen)s?(?:['’`]?s?)")
_BRAND_WORDS = 4
_BRAND_TITLES = 5


def read_fashion_styles(path: PathLike) -> Dataset:
    """Titles of fashion products and their gender, type, colour, season, usage and brand.

    The table has unquoted commas in its last column, the title: only the first commas of a line part
    columns. Its brand is not a column but the beginning of the title, see `leading_brands`.

    Parameters
    ----------
    path : path of `styles.csv`, plain, gz or xz

    Returns
    -------
    Dataset
        `texts`, Y and `label_names` such as "colour: navy blue" (lower-case, ascending). Rows without a
        title and values "NA" are left out; titles repeat.

    Raises
    ------
    ValueError
        If the file is no such table; the line is named.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "styles.csv"
    >>> header = "id,gender,articleType,baseColour,season,usage,productDisplayName"
    >>> _ = path.write_text(header + "\\n1,Men,Perfume,NA,Spring,Casual,Boss Men Perfume, Balm and Gel\\n")
    >>> ds = read_fashion_styles(path)
    >>> ds.texts, ds.label_names
    (['Boss Men Perfume, Balm and Gel'], ['gender: men', 'season: spring', 'type: perfume', 'usage: casual'])
    """
    path = Path(path)
    lines = decode(read_bytes(path), path).splitlines()
    header = lines[0].split(",") if lines else []
    missing = [column for column in (*FASHION_ATTRIBUTES, FASHION_TITLE) if column not in header]
    if missing or header[-1] != FASHION_TITLE:
        raise ValueError(
            f"{path}: the columns must hold {', '.join(FASHION_ATTRIBUTES)} and end with {FASHION_TITLE}, "
            f"got {header}"
        )
    texts, labels = [], []
    for number, line in enumerate(lines[1:], 2):
        fields = line.split(",", len(header) - 1)
        if len(fields) != len(header):
            raise ValueError(f"{path}: line {number} has {len(fields)} fields, the header has {len(header)}")
        row = dict(zip(header, fields))
        title = row[FASHION_TITLE].strip()
        if title.lower() not in _UNKNOWN:
            texts.append(title)
            values = ((name, row[column]) for column, name in FASHION_ATTRIBUTES.items())
            labels.append(_labels(values))
    for row_labels, brand in zip(labels, leading_brands(texts)):
        if brand:
            row_labels.append(f"brand: {brand}")
    return _dataset(path, texts, labels, "fashion_styles")


def leading_brands(titles: Sequence[str]) -> list[str]:
    """The brand that each title begins with, lower-case; empty where none is known.

    A brand is up to four words that stand before "men", "women", "kids", ... at the beginning of at least
    five distinct titles. The longest that a title begins with is its brand, with or without these words.

    Examples
    --------
    >>> shirts = [f"Mark Taylor Men {letter} Shirt" for letter in "ABCDE"]
    >>> leading_brands([*shirts, "Mark Taylor Belt", "Red Belt"])[-2:]
    ['mark taylor', '']
    """
    words = [title.lower().split() for title in titles]
    counts: Counter[tuple[str, ...]] = Counter()
    for title in {tuple(row) for row in words}:
        end = next((i for i, word in enumerate(title[: _BRAND_WORDS + 1]) if _FOR_WHOM.fullmatch(word)), 0)
        if end:
            counts[title[:end]] += 1
    known = {brand for brand, count in counts.items() if count >= _BRAND_TITLES}

    def brand_of(row: list[str]) -> str:
        beginnings = (tuple(row[:n]) for n in range(min(_BRAND_WORDS, len(row)), 0, -1))
        return " ".join(next((beginning for beginning in beginnings if beginning in known), ()))

    return [brand_of(row) for row in words]


def read_attribute_values(*paths: PathLike) -> Dataset:
    """Product titles and the attribute values found in them, of one or more JSON-lines files.

    A line is `{"input": title, "target_scores": {attribute: {value: 1}}}`, as in the OA-Mine and AE-110k
    subsets of ExtractGPT.

    Parameters
    ----------
    paths : paths of .jsonl files, plain, gz or xz; their rows are joined

    Returns
    -------
    Dataset
        `texts`, Y and `label_names` such as "material: metal" (lower-case, ascending). The value "n/a" (the
        title does not tell) is left out.

    Raises
    ------
    ValueError
        If a line is no such object (file and line are named), or there is no row.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lures.jsonl"
    >>> line = '{"input": "Metal VIB 55mm", "target_scores": {"Length": {"55mm": 1}, "Item": {"n/a": 1}}}'
    >>> _ = path.write_text(line)
    >>> read_attribute_values(path).label_names
    ['length: 55mm']
    """
    texts, labels = [], []
    for path in map(Path, paths):
        for number, line in enumerate(decode(read_bytes(path), path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                record = parse_json(line)
                title, attributes = record["input"], record["target_scores"]
                pairs = [(name, value) for name, values in attributes.items() for value in values]
                if not all(isinstance(text, str) for text in (title, *chain(*pairs))):
                    raise TypeError("the title and the values must be text")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}: line {number} must be an object with input and target_scores, got {error!r}"
                ) from None
            texts.append(title)
            labels.append(_labels(pairs))
    return _dataset(Path(paths[0]) if paths else Path(), texts, labels, "product_attribute_values")


def _labels(values: Iterable[tuple[str, str]]) -> list[str]:
    named = ((" ".join(name.lower().split()), " ".join(value.lower().split())) for name, value in values)
    return [f"{name}: {value}" for name, value in named if value not in _UNKNOWN]


def _dataset(path: Path, texts: list[str], labels: list[list[str]], name: str) -> Dataset:
    if not texts:
        raise ValueError(f"{path}: there is no row")
    return Dataset(texts=texts, Y=labels, name=name)

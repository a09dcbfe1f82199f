"""Texts with named labels as sets: parts of 8 : 1 : 1 by distinct text, and labels that no part learns from.

Beside the matrices (`sets.py`) a folder holds `texts.json`: "train", "test", which is the validation part and
then the test part, and "names", one text a label; where there is a table of labels, `table.json`, a row a
label. `set.json` tells `n_valid` and the ids of labels "unseen". Label ids are those of the whole set.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sets

from metarank.data import Dataset, TextVectorizer, load, load_named, load_pydocs, read_vocabulary
from metarank.data.compressed import read_bytes
from metarank.data.pydocs import own_labels

# Columns of the table of fashion products, by the names that shoppers know them by; others are no filters.
FASHION = {"articleType": "type", "baseColour": "colour"} | {
    name: name for name in ("gender", "season", "usage")
}
_UNKNOWN = ("", "na", "n/a")
# Titles have the form "Peter England Men Party Blue Jeans".
_FOR_WHOM = re.compile(r"(?:men|women|man|woman|boy|girl|kid|unisex|infant|teen)s?(?:['’`]?s?)")
_BRAND_WORDS, _BRAND_TITLES = 4, 5
_LANGUAGES = ("fi", "en", "sv")
_SHARES = (0.8, 0.9)  # where the training and the validation part end
UNSEEN_SHARE = 0.1
# Test rows that a label never seen has at least: the most of these that so many labels have.
_UNSEEN_ROWS, _UNSEEN_AMONG = (3, 2, 1), 200
_END_OF_TITLE = "¤"  # and then the abstract


def makers(names: Sequence[str]) -> dict[str, Callable[[Path], dict[str, Any]]]:
    """`Study.make` of sets named NAME, NAME-1000 (so many training rows) or either with "-unseen" behind."""
    return {name: partial(_make, name) for name in names}


def _make(name: str, folder: Path) -> dict[str, Any]:
    name, unseen, _ = name.partition("-unseen")
    whole = re.fullmatch(r"(.+?)-(\d+)", name)
    read = READERS[whole[1] if whole else name]()
    given = read if isinstance(read, tuple) else (read,)
    groups = {"groups": given[3]} if len(given) > 3 else {}
    return write(folder, *given[:3], n_train=int(whole[2]) if whole else None, unseen=bool(unseen), **groups)


def write(
    folder: Path,
    dataset: Dataset,
    own: np.ndarray | None = None,
    table: list[dict[str, Any]] | None = None,
    n_train: int | None = None,
    unseen: bool = False,
    groups: Sequence[str] | None = None,
) -> dict[str, Any]:
    """All files of a set, and what `set.json` tells of it.

    `own` is the label that is out of the question for a row, -1 where there is none; rows of one of the
    `groups` are in one part.
    """
    keys = [normalised(text) for text in dataset.texts]
    parts = _parts(groups or keys, n_train)
    Y = sp.csr_matrix(dataset.Y)
    Ys, texts, kept = [Y[parts[0]]], [[dataset.texts[i] for i in parts[0]]], [parts[0]]
    for rows in parts[1:]:
        first, merged = _merged(Y, rows, keys)
        kept.append(first)
        Ys.append(merged)
        texts.append([dataset.texts[i] for i in first])
    names = dataset.label_texts or dataset.label_names
    hidden = _hidden(Ys, names) if unseen else np.zeros(0, np.int64)
    Ys[:2] = (_without(Y, hidden) for Y in Ys[:2])
    vectorizer = TextVectorizer().fit(texts[0])
    held_out = texts[1] + texts[2]
    pair = [
        Dataset(vectorizer.transform(of), Y, name=dataset.name)
        for of, Y in ((texts[0], Ys[0]), (held_out, sp.vstack(Ys[1:], format="csr")))
    ]
    described = sets.write(*pair, folder)
    if own is not None:
        sets.write_excluded(folder, "exclude", own[kept[0]], Y.shape[1])
        sets.write_excluded(folder, "exclude_test", own[np.concatenate(kept[1:])], Y.shape[1])
    written = json.dumps({"train": texts[0], "test": held_out, "names": names})
    (folder / "texts.json").write_text(written)
    if table:
        (folder / "table.json").write_text(json.dumps(table))
    digest = hashlib.sha256((described["checksum"] + written + json.dumps(table)).encode())
    return described | {
        "checksum": digest.hexdigest(),
        "rows": len(keys),
        "distinct": len(set(keys)),
        "n_valid": len(texts[1]),
        "n_test": len(texts[2]),
        "unseen": hidden.tolist(),
    }


def normalised(text: str) -> str:
    """What makes two texts the same: case, width of letters and blanks do not count.

    >>> normalised(" Navy  BLUE ")
    'navy blue'
    """
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def share(salt: int, text: str) -> float:
    """A number in [0, 1) that depends on both alone."""
    digest = hashlib.sha256(f"{salt}\n{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def _parts(keys: Sequence[str], n_train: int | None) -> list[np.ndarray]:
    place = np.searchsorted(_SHARES, [share(0, key) for key in keys], side="right")
    train, valid, test = (np.flatnonzero(place == part) for part in range(3))
    if n_train is not None:
        order = np.argsort([share(1, keys[i]) for i in train], kind="stable")
        train = np.sort(train[order[:n_train]])
    return [train, valid, test]


def _merged(Y: sp.csr_matrix, rows: np.ndarray, keys: Sequence[str]) -> tuple[np.ndarray, sp.csr_matrix]:
    """The first row of each distinct text, with the labels of all its copies."""
    group_of: dict[str, int] = {}
    group = np.array([group_of.setdefault(keys[i], len(group_of)) for i in rows], np.int64)
    together = sp.csr_matrix((np.ones(len(rows), np.float32), (group, np.arange(len(rows)))))
    merged = sp.csr_matrix(together @ Y[rows])
    merged.data[:] = 1
    merged.sort_indices()
    return rows[np.unique(group, return_index=True)[1]], merged


def _hidden(Ys: Sequence[sp.csr_matrix], names: Sequence[str]) -> np.ndarray:
    """A tenth of the labels with a training row and enough test rows, by a hash of their names."""
    in_train, _, in_test = (np.bincount(Y.indices, minlength=Y.shape[1]) for Y in Ys)
    enough = [np.flatnonzero((in_test >= least) & (in_train > 0)) for least in _UNSEEN_ROWS]
    possible = next((labels for labels in enough if len(labels) >= _UNSEEN_AMONG), enough[-1])
    order = np.argsort([share(0, names[label]) for label in possible], kind="stable")
    return np.sort(possible[order[: max(1, round(UNSEEN_SHARE * len(possible)))]])


def _without(Y: sp.csr_matrix, labels: np.ndarray) -> sp.csr_matrix:
    seen = np.ones(Y.shape[1], np.float32)
    seen[labels] = 0
    Y = sp.csr_matrix(Y @ sp.diags(seen))
    Y.eliminate_zeros()
    return Y


# --- the sets ------------------------------------------------------------------------------


def read_fashion_styles(path: Path) -> Dataset:
    """Titles of fashion products and their gender, type, colour, season, usage and brand.

    Only the first commas of a line part columns, as those of the last, the title, are not quoted. The brand
    is no column but the beginning of the title.
    """
    header, *lines = _lines(path)
    columns = header.split(",")
    texts, labels = [], []
    for line in lines:
        row = dict(zip(columns, line.split(",", len(columns) - 1), strict=True))
        title = row["productDisplayName"].strip()
        if title.lower() not in _UNKNOWN:
            texts.append(title)
            labels.append(_named((name, row[column]) for column, name in FASHION.items()))
    for row_labels, brand in zip(labels, leading_brands(texts)):
        row_labels += [f"brand: {brand}"] if brand else []
    return Dataset(texts=texts, Y=labels, name="fashion_styles")


def leading_brands(titles: Sequence[str]) -> list[str]:
    """The brand that each title begins with, lower-case; empty where none is known.

    A brand is up to four words that stand before "men", "women", "kids", ... at the beginning of at least
    five distinct titles. The longest that a title begins with is its brand, with or without these words.
    """
    words = [title.lower().split() for title in titles]
    counts: Counter[tuple[str, ...]] = Counter()
    for title in {tuple(row) for row in words}:
        end = next((i for i, word in enumerate(title[: _BRAND_WORDS + 1]) if _FOR_WHOM.fullmatch(word)), 0)
        counts[title[:end]] += 1
    known = {brand for brand, count in counts.items() if brand and count >= _BRAND_TITLES}

    def brand_of(row: list[str]) -> str:
        beginnings = (tuple(row[:n]) for n in range(min(_BRAND_WORDS, len(row)), 0, -1))
        return " ".join(next((beginning for beginning in beginnings if beginning in known), ()))

    return [brand_of(row) for row in words]


def _attribute_values() -> Dataset:
    """Product titles and the attribute values found in them, of the subsets of ExtractGPT."""
    texts, labels = [], []
    for source in ("oa-mine", "ae-110k"):
        for part in ("train", "test"):
            for line in _lines(_file("product_attribute_values", f"{source}.{part}.jsonl")):
                record = json.loads(line)
                texts.append(record["input"])
                labels.append(
                    _named((name, value) for name, of in record["target_scores"].items() for value in of)
                )
    return Dataset(texts=texts, Y=labels, name="product_attribute_values")


def _llms4subjects() -> Dataset:
    parts = [
        load_named("LLMs4Subjects-dev-en", part, data_dir=sets.DATA, grades=False)
        for part in ("train", "test")
    ]
    texts = [text.partition(_END_OF_TITLE)[0].strip() for part in parts for text in part.titles]
    Y = sp.vstack([part.Y for part in parts], format="csr")
    return Dataset(texts=texts, Y=Y, label_names=parts[0].label_names, name="LLMs4Subjects-dev-en-titles")


def _archaeology() -> tuple[Dataset, None, list[dict[str, Any]]]:
    """Finnish titles and subjects of YSO, with their names in three languages and their relations."""
    source = sets.DATA / "annif" / "archaeology"
    of = {language: read_vocabulary(source / "yso-archaeology.ttl", language) for language in _LANGUAGES}
    known = of["fi"]
    place = {uri: i for i, uri in enumerate(known.ids)}
    table = []
    for uri, i in place.items():
        near = {"broader": known.parents[i].indices, "related": known.related[i].indices}
        row = {key: [known.ids[label] for label in labels] for key, labels in near.items()}
        names = {f"name_{language}": of[language].names[i] or known.names[i] for language in _LANGUAGES}
        table.append({"id": uri, **names, "others": known.alternative_names[i], **row})
    rows = (line.split("\t") for line in _lines(source / "documents.tsv"))
    records = [(text, [uri.strip("<>") for uri in uris.split()]) for text, uris in rows]
    # Two records have a subject that the vocabulary lacks.
    records = [(text, labels) for text, labels in records if place.keys() >= set(labels)]
    Y = sp.lil_matrix((len(records), len(table)), dtype=np.float32)
    for i, (_, labels) in enumerate(records):
        Y[i, [place[label] for label in labels]] = 1
    texts = [text for text, _ in records]
    return Dataset(texts=texts, Y=Y.tocsr(), label_names=known.names, name="archaeology"), None, table


def _pydocs() -> tuple[Dataset, np.ndarray, list[dict[str, Any]]]:
    whole = load_pydocs()
    table = [
        {"id": name, "name": name, "text": text} for name, text in zip(whole.label_names, whole.label_texts)
    ]
    return replace(whole, X=None), own_labels(whole), table


def _cooking() -> Dataset:
    path = _file("cooking_stackexchange", "cooking.stackexchange.txt")
    return replace(load(path), name="cooking_stackexchange")


def _debian(fields: Sequence[str]) -> tuple[Dataset, np.ndarray, None, list[str]]:
    """Packages of this machine's index, described, and those that they name in these fields.

    Others than the distribution's own, which alone has translated descriptions, are left out.
    """
    if shutil.which("apt-cache") is None:
        raise FileNotFoundError("a set of Debian's packages needs apt-cache")
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True).stdout
    print(f"sha256 of apt-cache dumpavail: {hashlib.sha256(dump).hexdigest()}", file=sys.stderr)
    packages: dict[str, dict[str, str]] = {}
    for entry in dump.decode().split("\n\n"):
        of = dict(line.split(": ", 1) for line in entry.splitlines() if re.match(r"[A-Z][^ ]*: ", line))
        if "Description-md5" in of and of["Filename"].startswith("pool/"):
            packages.setdefault(of["Package"], of)
    named = {}
    for name, of in packages.items():
        others = re.findall(r"(?:^|[,|]) *([^ ,|:]+)", ",".join(of.get(field, "") for field in fields))
        named[name] = sorted({other for other in others if other in packages and other != name})
    said = {name: f"{name}: {of['Description']}" for name, of in packages.items()}
    rows = [name for name in sorted(named) if named[name]]
    labels = [[said[other] for other in named[name]] for name in rows]
    dataset = Dataset(texts=[said[name] for name in rows], Y=labels, name="Debian")
    place = {label: j for j, label in enumerate(dataset.label_names)}
    own = np.array([place.get(said[name], -1) for name in rows])
    return dataset, own, None, [packages[name].get("Source", name).split()[0] for name in rows]


def _file(name: str, file: str) -> Path:
    return sets.DATA / "text" / name / f"{file}.xz"


def _lines(path: Path) -> list[str]:
    return [line for line in read_bytes(path).decode().split("\n") if line.strip()]


def _named(values: Any) -> list[str]:
    named = ((" ".join(name.lower().split()), " ".join(value.lower().split())) for name, value in values)
    return [f"{name}: {value}" for name, value in named if value not in _UNKNOWN]


# Each gives a Dataset, or with it `own` and `table` of `write`.
READERS: dict[str, Callable[[], Any]] = {
    "fashion_styles-titles": lambda: read_fashion_styles(_file("fashion_styles", "styles.csv")),
    "cooking_stackexchange-titles": _cooking,
    "product_attribute_values-titles": _attribute_values,
    "LLMs4Subjects-dev-en-titles": _llms4subjects,
    "pydocs-texts": _pydocs,
    "archaeology-titles": _archaeology,
    "Debian-depends-texts": lambda: _debian(("Depends", "Pre-Depends")),
    "Debian-suggests-texts": lambda: _debian(("Recommends", "Suggests")),
}

"""Real relations of labels, and the propensities that follow from them (section 5 of the paper)."""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import SEED
from points import PropensityPoints
from relations_estimates import (
    propensities_from_hierarchy,
    propensities_from_substitutes,
    propensities_from_symmetry,
)

from metarank import data
from metarank.data.pydocs import own_labels
from metarank.metrics.propensity import PRESETS, inv_propensity

Estimate = Callable[[sp.csr_matrix], PropensityPoints]


@dataclass(frozen=True)
class Relation:
    """A set with a relation of its labels.

    Attributes
    ----------
    kind : "hierarchy", "symmetry" or "substitutes"
    points : what the paper's method makes of it
    weighted : whether a fit weighs labels by the pairs that are known of them
    masked : the same of a set that is complete by this relation, from which pairs are removed by the default
        curve; None where none can be made
    """

    name: str
    kind: str
    what: str
    points: PropensityPoints
    weighted: bool = False
    masked: PropensityPoints | None = None
    checksum: str = ""
    examples: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """For the name of a file."""
        return re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")


def relations(folder: Path) -> Iterable[Relation]:
    """Those whose data is there."""
    for make, needed in _MAKERS:
        paths = [folder / name for name in needed]
        if all(path.exists() for path in paths):
            made = make(folder)
            digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
            yield replace(made, checksum=digest if paths else "")


def archaeology(folder: Path) -> Relation:
    """The broader concepts of a thesaurus, among its 130 concepts on archaeology."""
    place = folder / "annif" / "archaeology"
    table = data.read_vocabulary(place / "yso-archaeology.ttl", "en")
    Y = data.read_corpus(place / "documents.tsv", table).Y
    # A row of `parents` is a child.
    return _hierarchy(
        "YSO, archaeology",
        "`skos:broader` of 130 concepts, the whole of the thesaurus that is at hand; labels with one "
        "descendant "
        "or more, since five have five",
        sp.csr_matrix(Y),
        np.argwhere(table.parents.toarray() > 0),
        1,
    )


def eurovoc(folder: Path) -> Relation:
    place = folder / "xmlc" / "EURLex-labels-only"
    names = _lines(place / "labels.txt.xz")
    rows = [list(map(int, filter(None, line.split(",")))) for line in _lines(place / "label_sets.txt.xz")]
    return _by_names("EURLex-labels-only, names", names, _matrix(rows, len(names)))


def gnd(folder: Path) -> Relation:
    place = folder / "text" / "tib_records_en"
    uris, names = zip(*(line.split("\t") for line in _lines(place / "vocabulary.tsv.xz")))
    at = {uri.strip("<>"): i for i, uri in enumerate(uris)}
    rows = [
        [at[uri.strip("<>")] for uri in line.split("\t")[1].split() if uri.strip("<>") in at]
        for line in _lines(place / "train.tsv.xz")
    ]
    return _by_names("tib_records_en, names", names, _matrix(rows, len(names)))


def named_tags(name: str, folder: Path) -> Relation:
    Y = sp.csr_matrix(data.load_named(name, "train", data_dir=folder).Y)
    return _by_names(f"{name}, names", _lines(folder / "xmlc" / name / "labels.txt.xz"), Y)


def articles(folder: Path) -> Relation:
    Y, own, _ = _wikispeedia(folder)
    what = "if article a links to b, b should link to a"
    return _symmetry("Wikispeedia-Links, all links", what, Y, own)


def articles_of_a_category(folder: Path) -> Relation:
    """Links between articles of a category alone tell, but N_l counts all links."""
    Y, own, same = _wikispeedia(folder)
    what = "the same, of links between articles that share a category alone; N_l counts all links"
    inside = sp.csr_matrix(Y.multiply(_of_labels(own, Y.shape[1]) @ same > 0))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    made = _symmetry("Wikispeedia-Links, within a category", what, inside, own)
    return replace(made, points=replace(made.points, counts=counts[made.points.labels]), masked=None)


def categories(folder: Path) -> Relation:
    """An article that links to one of a category should link to the article that the category is named by."""
    Y, _, _ = _wikispeedia(folder)
    place = folder / "xmlc" / "Wikispeedia-Links"
    names = _lines(place / "labels.txt.xz")
    at = {name.lower(): i for i, name in enumerate(names)}
    pairs = set()
    for child, line in enumerate(_lines(place / "label_categories.txt.xz")):
        for part in {part for category in line.split() for part in category.split(".")[1:]}:
            word = part.lower().replace("_", " ")
            forms = (word, re.sub("s$", "", re.sub("ies$", "y", word)))
            parent = next((at[form] for form in forms if form in at), child)
            if parent != child:
                pairs.add((child, parent))
    # An article named like a category may itself be in one: the way from it to the top is no loop.
    kept = [pair for pair in sorted(pairs) if (pair[1], pair[0]) not in pairs]
    what = (
        "a link to an article of a category (Birds) asks for one to the article of the category's "
        "name (Bird), "
        "of all categories above it too"
    )
    return _hierarchy("Wikispeedia-Links, categories", what, Y, np.array(kept), 5, names)


def substitutes(folder: Path) -> Relation:
    Y, own, same = _wikispeedia(folder)
    of_row = _of_labels(own, Y.shape[1])
    links = sp.csr_matrix(of_row.T @ Y)
    near = sp.csr_matrix(of_row @ ((links + links.T).multiply(same) > 0)).astype(np.float32)
    near = sp.csr_matrix(near - near.multiply(of_row))
    near.eliminate_zeros()
    what = (
        "articles of the same category of which one links to the other stand for those viewed "
        "together, links "
        "for those bought together"
    )
    points = propensities_from_substitutes(Y, near)
    return Relation("Wikispeedia-Links, substitutes", "substitutes", what, points)


def related(folder: Path) -> Relation:
    """Subjects of one title are bought together, related ones viewed together."""
    place = folder / "annif" / "archaeology"
    table = data.read_vocabulary(place / "yso-archaeology.ttl", "en")
    Y = sp.csr_matrix(data.read_corpus(place / "documents.tsv", table).Y)[:, : table.related.shape[0]]
    together = sp.csr_matrix(Y.T @ Y)
    together.setdiag(0)
    together.eliminate_zeros()
    what = "subjects of one title stand for items bought together, `skos:related` for those viewed together"
    points = propensities_from_substitutes(together, sp.csr_matrix(table.related))
    return Relation("YSO, archaeology, related", "substitutes", what, points)


def functions(folder: Path) -> Relation:
    dataset = data.load_pydocs()
    what = "if the documentation of a names b, that of b should name a"
    return _symmetry("pydocs", what, sp.csr_matrix(dataset.Y), own_labels(dataset))


def _hierarchy(
    name: str,
    what: str,
    Y: sp.csr_matrix,
    pairs: np.ndarray,
    least: int,
    names: Sequence[str] = (),
) -> Relation:
    estimate = partial(propensities_from_hierarchy, parents=pairs, min_descendants=least)
    drawn = np.random.default_rng(SEED).choice(len(pairs), 5, replace=False) if len(names) else []
    examples = tuple(f"{names[child]} < {names[parent]}" for child, parent in pairs[drawn]) if names else ()
    masked = _estimate_of_masked(_with_ancestors(Y, pairs), estimate)
    return Relation(name, "hierarchy", what, estimate(Y), False, masked, examples=examples)


def _by_names(name: str, names: Sequence[str], Y: sp.csr_matrix) -> Relation:
    what = "a name asks for the longest other name that it ends with; labels with five descendants or more"
    return _hierarchy(name, what, Y, heads(names), 5, names)


def heads(names: Sequence[str]) -> np.ndarray:
    """(child, parent): of each name, the longest other name that it ends with, word by word.

    In English the head of a compound stands last: "short-term financing" is financing.

    Examples
    --------
    >>> heads(["metal", "death_metal", "melodic death metal", "metal guitar"]).tolist()
    [[1, 0], [2, 1]]
    """
    plain = [re.sub(r"[\s_-]+", " ", name.lower()).strip() for name in names]
    first: dict[str, int] = {}
    for label, words in enumerate(plain):
        first.setdefault(words, label)
    pairs = []
    for label, name in enumerate(plain):
        words = name.split(" ")
        ends = (" ".join(words[i:]) for i in range(1, len(words)))
        parent = next((first[end] for end in ends if end in first), None)
        if parent is not None:
            pairs.append((label, parent))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _symmetry(name: str, what: str, Y: sp.csr_matrix, own: np.ndarray) -> Relation:
    estimate = partial(propensities_from_symmetry, row_labels=own, min_pairs=1)
    of_row = _of_labels(own, Y.shape[1])
    answers = of_row @ sp.csr_matrix(of_row.T @ Y).T
    masked = _estimate_of_masked(sp.csr_matrix(Y + answers > 0).astype(np.float32), estimate)
    return Relation(name, "symmetry", what, estimate(Y), True, masked)


def _estimate_of_masked(complete: sp.csr_matrix, estimate: Estimate) -> PropensityPoints:
    """What a method finds where the truth is known: pairs are removed by the default curve.

    The curve is one of the counts that are left, so these are found first.
    """
    n = complete.shape[0]
    counts = np.bincount(complete.indices, minlength=complete.shape[1]).astype(np.float64)
    left, p = counts, np.ones(len(counts))
    for _ in range(200):
        p = 1 / inv_propensity(left, *PRESETS["default"], n_points=n)
        left = counts * p
    masked = complete.copy()
    masked.data = (np.random.default_rng(SEED).random(masked.nnz) < p[masked.indices]).astype(np.float32)
    masked.eliminate_zeros()
    return estimate(masked)


def _with_ancestors(Y: sp.csr_matrix, pairs: np.ndarray) -> sp.csr_matrix:
    L = Y.shape[1]
    up = sp.csr_matrix((np.ones(len(pairs), np.float32), tuple(pairs.T)), shape=(L, L))
    whole = sp.csr_matrix(Y > 0).astype(np.float32)
    while True:
        more = sp.csr_matrix(whole + whole @ up > 0).astype(np.float32)
        if more.nnz == whole.nnz:
            return more
        whole = more


def _wikispeedia(folder: Path) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix]:
    """Links of all articles, which label each article is, and which labels share a category."""
    place = folder / "xmlc" / "Wikispeedia-Links"
    names = _lines(place / "labels.txt.xz")
    parts = [data.load_named("Wikispeedia-Links", part, data_dir=folder) for part in ("train", "test")]
    rows = [row for part in parts for row in np.split(part.Y.indices, part.Y.indptr[1:-1])]
    at = {name: i for i, name in enumerate(names)}
    titles = [t.split(" || ")[0] for p in ("train", "test") for t in _lines(place / f"titles.{p}.txt.xz")]
    own = np.array([at.get(title, -1) for title in titles])
    known: dict[str, int] = {}
    listed = [
        [known.setdefault(category, len(known)) for category in line.split()]
        for line in _lines(place / "label_categories.txt.xz")
    ]
    member = _matrix(listed, len(known))
    return _matrix(rows, len(names)), own, sp.csr_matrix(member @ member.T > 0)


def _of_labels(own: np.ndarray, n_labels: int) -> sp.csr_matrix:
    """(rows, labels): 1 where a row is the label."""
    rows = np.flatnonzero(own >= 0)
    ones = np.ones(len(rows), np.float32)
    return sp.csr_matrix((ones, (rows, own[rows])), shape=(len(own), n_labels))


def _matrix(rows: Sequence[Any], n_labels: int) -> sp.csr_matrix:
    """1 at the columns listed for each row, once."""
    lists = [np.unique(np.asarray(row, np.int64)) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in lists])])
    indices = np.concatenate(lists)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(rows), n_labels))


def _lines(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


_XMLC = {name: f"xmlc/{name}" for name in ("LastFM-ArtistTags", "CiteULike-t-tags", "Wikispeedia-Links")}
_ARTICLES = tuple(
    f"{_XMLC['Wikispeedia-Links']}/{file}.txt.xz"
    for file in ("train", "test", "labels", "label_categories", "titles.train", "titles.test")
)
_CONCEPTS = ("annif/archaeology/yso-archaeology.ttl", "annif/archaeology/documents.tsv")
_MAKERS: tuple[tuple[Callable[[Path], Relation], tuple[str, ...]], ...] = (
    (archaeology, _CONCEPTS),
    (
        eurovoc,
        ("xmlc/EURLex-labels-only/labels.txt.xz", "xmlc/EURLex-labels-only/label_sets.txt.xz"),
    ),
    (gnd, ("text/tib_records_en/vocabulary.tsv.xz", "text/tib_records_en/train.tsv.xz")),
    *(
        (partial(named_tags, name), (f"{_XMLC[name]}/train.txt.xz", f"{_XMLC[name]}/labels.txt.xz"))
        for name in ("LastFM-ArtistTags", "CiteULike-t-tags")
    ),
    (categories, _ARTICLES),
    (articles, _ARTICLES),
    (articles_of_a_category, _ARTICLES),
    (functions, ()),
    (substitutes, _ARTICLES),
    (related, _CONCEPTS),
)

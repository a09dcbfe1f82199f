"""Columns of a pair from the relatives of its label: are they likely candidates of the row too?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from metarank.types.candidates import Candidates
from metarank.types.feature_table import RELATIVE, Columns
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.ragged import extreme_of_rows, found_at, row_of_entries

KINDS = ("parent", "child", "sibling", "related")
OF_LABELS = ("label hierarchy: depth", "label hierarchy: specificity")
# Evidence that grows with the likelihood of a label: the first present of each group is passed on.
_BASES = (
    tuple(f"neighbors: weighted vote of {k}" for k in (100, 30, 10)),
    ("label name: cosine, best name", "label name: cosine"),
)
_NAME = re.compile(rf"({'|'.join(KINDS)}) labels: .+|{'|'.join(OF_LABELS)}")


def wanted_columns(
    columns: Collection[str], classifiers: Sequence[str], labels: LabelDescriptions
) -> list[str]:
    """The columns of relatives that a new model has.

    Parameters
    ----------
    columns : names of all columns of the sources
    classifiers : names of those of classifiers, of which the first is passed on
    labels : LabelDescriptions
    """
    bases = [next((name for name in group if name in columns), None) for group in (classifiers, *_BASES)]
    kinds = [kind for kind in KINDS if labels.has_relatives(kind)]
    return [_of_relatives(kind, base) for base in bases if base is not None for kind in kinds] + [
        *(OF_LABELS if labels.has_relatives("parent") else ())
    ]


def known_columns(columns: Iterable[str]) -> list[str]:
    """The columns of relatives among those of a model, each once, twins counted as their own.

    Examples
    --------
    >>> known_columns(["score", "parent labels: score", "parent labels: score (relative)"])
    ['parent labels: score']
    """
    plain = dict.fromkeys(name.removesuffix(RELATIVE) for name in columns)
    return [name for name in plain if _NAME.fullmatch(name)]


def _of_relatives(kind: str, base: str) -> str:
    return f"{kind} labels: {base.replace(': ', ', ')}"


def relatives_columns(
    wanted: Iterable[str], columns: Columns, candidates: Candidates, labels: LabelDescriptions
) -> dict[str, np.ndarray]:
    """The columns of relatives, float32 (m,).

    ``parent labels: c`` is the greatest value of the column c among the parents of the label that are
    candidates of the row; ``child``, ``sibling`` (labels that share a parent) and ``related`` likewise. Where
    none of them is a candidate, it is the least value of c in the list. The depth and the specificity of a
    label in its hierarchy are those of `LabelDescriptions`. Each depends on the row's own list alone.

    Parameters
    ----------
    wanted : names of columns, such as "parent labels: score"
    columns : mapping of name to array (m,)
    candidates : Candidates with m pairs
    labels : LabelDescriptions
    """
    out: dict[str, np.ndarray] = {}
    links = {}
    bases = {name.replace(": ", ", "): values for name, values in columns.items()}
    for name in wanted:
        kind, _, base = name.partition(" labels: ")
        if name in OF_LABELS:
            values = labels.depth if name == OF_LABELS[0] else labels.specificity
            out[name] = values[candidates.labels].astype(np.float32)
            continue
        if kind not in links:
            links[kind] = _links(kind, candidates, labels)
        values = np.asarray(bases[base], np.float32)
        pair, other = links[kind]
        of_relatives = _best_of_others(other, values[pair]) if kind == "sibling" else values[other]
        best = np.full(len(values), -np.inf, np.float32)
        np.maximum.at(best, pair, of_relatives)
        least = extreme_of_rows(np.minimum, values, candidates.indptr, np.float32(0))
        out[name] = np.where(np.isneginf(best), least[candidates.row_of_pair], best)
    return out


def _best_of_others(group: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The greatest value among the others of the group of each; -inf where there is none."""
    order = np.lexsort((-own, group))
    n_groups = int(group.max(initial=-1)) + 1
    start = np.searchsorted(group[order], np.arange(n_groups))
    first = order[start]
    size = np.bincount(group, minlength=n_groups)
    second = np.full(n_groups, -np.inf, np.float32)
    second[size > 1] = own[order[start[size > 1] + 1]]
    others = own[first][group]
    others[first] = second
    return others


def _links(kind: str, candidates: Candidates, labels: LabelDescriptions) -> tuple[np.ndarray, np.ndarray]:
    """(pair, other): each pair with the pair of a relative in its list; for siblings, with the number of a
    group, which are the labels of one parent in one row."""
    matrix = labels.related if kind == "related" else labels.parents
    if matrix is None or not candidates.n_pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    relatives = matrix[candidates.labels]
    pair = row_of_entries(relatives.indptr)
    key = candidates.row_of_pair[pair] * candidates.n_labels + relatives.indices
    if kind == "sibling":
        return pair, np.unique(key, return_inverse=True)[1]
    place, is_candidate = found_at(candidates.pair_keys, key)
    pair, place = pair[is_candidate], place[is_candidate]
    return (place, pair) if kind == "child" else (pair, place)

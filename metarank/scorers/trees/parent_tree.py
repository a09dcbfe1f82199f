"""A label tree from the parent of each label and inner node: checked, and freed of idle nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral

import numpy as np

from metarank._util.parameters import check_integer

# child_start and child of one tree, as in `Hierarchy`; the root is node 0.
Tree = tuple[np.ndarray, np.ndarray]


def parents_of_mapping(
    parent: Mapping[Hashable, Hashable | None],
    n_labels: int | None,
    label_names: Sequence[Hashable] | None,
) -> tuple[np.ndarray, int]:
    """A mapping of child to parent as an array of ids, labels first."""
    if label_names is None:
        if n_labels is None:
            raise ValueError("a mapping needs label_names or n_labels to tell labels from inner nodes")
        check_integer("n_labels", n_labels, 0)
        label_names = range(n_labels)
    elif n_labels is not None and n_labels != len(label_names):
        raise ValueError(f"label_names must have {n_labels} entries, got {len(label_names)}")
    id_of: dict[Hashable, int] = {name: i for i, name in enumerate(label_names)}
    if len(id_of) < len(label_names):
        raise ValueError("label_names must be distinct")
    above = {c: None if isinstance(p, Integral) and p == -1 else p for c, p in parent.items()}
    for child, p in above.items():
        for name in (child, p):
            if name is not None:
                id_of.setdefault(name, len(id_of))
    inner = set(above.values())
    for name in label_names:
        if name not in above and name not in inner:
            raise ValueError(f"label {name!r} is missing from the hierarchy")
    array = np.full(len(id_of), -1, np.int64)
    for child, p in above.items():
        if p is not None:
            array[id_of[child]] = id_of[p]
    check_acyclic(array, list(id_of))
    return array, len(label_names)


def check_acyclic(parent: np.ndarray, names: Sequence[Hashable]) -> None:
    """ValueError naming a node that is its own ancestor, if there is one."""
    root = len(parent)
    ancestor = np.append(np.where(parent < 0, root, parent), root)
    for _ in range(root.bit_length()):  # 1, 2, 4, ... steps up: past the top, or round a cycle
        ancestor = ancestor[ancestor]
    lowest = int(ancestor.min())
    if lowest < root:
        raise ValueError(f"the hierarchy has a cycle: {names[lowest]!r} is below itself")


def tree_of_parents(parent: np.ndarray, wanted: np.ndarray) -> Tree:
    """The tree of the wanted labels; `parent` (M,) is acyclic: labels, then inner nodes, -1 at the top."""
    n_labels, root = len(wanted), len(parent)
    up = np.append(np.where(parent < 0, root, parent), -1)
    # A label with children leaves its place to an inner node, whose child it becomes.
    busy = np.unique(up[(up >= 0) & (up < n_labels)])
    inner_of = np.arange(root + 1)
    inner_of[busy] = root + 1 + np.arange(len(busy))
    up = np.concatenate([np.append(inner_of[up[:-1]], -1), inner_of[up[busy]]])
    up[busy] = inner_of[busy]

    levels = _levels(up, root)
    labels_below = np.zeros(len(up), np.int64)
    labels_below[:n_labels] = wanted
    for level in levels[:0:-1]:
        np.add.at(labels_below, up[level], labels_below[level])
    alive = labels_below > 0
    alive[root] = True
    n_children = np.bincount(up[alive & (up >= 0)], minlength=len(up))
    # An inner node of one child hands it to the node above; so does the top, which then moves down.
    passes_on = (n_children == 1) & alive
    for level in levels[1:]:
        above = up[level]
        up[level] = np.where(passes_on[above], up[above], above)
    kept = np.flatnonzero(alive & ~passes_on)
    top = kept[up[kept] < 0]
    if top[0] < n_labels:  # a single label
        return np.array([0, 1], np.int64), ~top.astype(np.int32)
    up = np.where(alive & ~passes_on, up, -2)
    order = np.concatenate(_levels(up, int(top[0])))
    nodes = order[order >= n_labels]
    number = np.full(len(up), -1, np.int64)
    number[nodes] = np.arange(len(nodes))
    slots = order[1:][np.argsort(number[up[order[1:]]], kind="stable")]
    start = np.searchsorted(number[up[slots]], np.arange(len(nodes) + 1))
    return start.astype(np.int64), np.where(slots < n_labels, ~slots, number[slots]).astype(np.int32)


def _levels(up: np.ndarray, root: int) -> list[np.ndarray]:
    """Nodes reached from the root, level by level, siblings ascending and side by side."""
    order = np.argsort(up, kind="stable")
    start = np.searchsorted(up[order], np.arange(len(up) + 1))
    levels = [np.array([root])]
    while len(levels[-1]):
        first, last = start[levels[-1]], start[levels[-1] + 1]
        counts = last - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        levels.append(order[np.repeat(first, counts) + within])
    return levels

"""Label trees as nested lists of label ids: from the parent of each label and node, and as flat arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from metarank._util.parameters import check_integer

# child_start and child of one tree, as in `Hierarchy`; the root is node 0.
Tree = tuple[np.ndarray, np.ndarray]


def nested_of_mapping(
    parent: Mapping[Hashable, Hashable | None], n_labels: int | None, label_names: Sequence[Hashable] | None
) -> tuple[list[Any], int]:
    """Nested lists of a mapping of child to parent, and the number of labels.

    A label with children stands beside them, in a list of its own.
    """
    if label_names is None:
        if n_labels is None:
            raise ValueError("a mapping needs label_names or n_labels to separate labels from inner nodes")
        check_integer("n_labels", n_labels, 0)
        label_names = range(n_labels)
    elif n_labels is not None and n_labels != len(label_names):
        raise ValueError(f"label_names must have {n_labels} entries, got {len(label_names)}")
    id_of = {name: i for i, name in enumerate(label_names)}
    if len(id_of) < len(label_names):
        raise ValueError("label_names must be distinct")
    above = {c: None if isinstance(p, Integral) and p == -1 else p for c, p in parent.items()}
    children: dict[Hashable, list[Hashable]] = defaultdict(list)
    for child, p in above.items():
        children[p].append(child)
    tops = children.pop(None, []) + [node for node in children if node not in above]
    for name in label_names:
        if name not in above and name not in children:
            raise ValueError(f"label {name!r} is missing from the hierarchy")
    unreached = {**above, **children}

    def below(node: Hashable) -> list[Any]:
        unreached.pop(node, None)
        own: list[Any] = [id_of[node]] if node in id_of else []
        return own + [below(child) for child in children.get(node, ())]

    nested = [below(top) for top in tops]
    if unreached:
        node = next(iter(unreached))
        for _ in range(len(above)):  # up, and then round the cycle
            node = above[node]
        raise ValueError(f"the hierarchy has a cycle: {node!r} is below itself")
    return nested, len(label_names)


def pruned(tree: Any, wanted: np.ndarray) -> Any:
    """A tree of the labels that are wanted alone, of each node its labels, ascending, before its lists.

    A list of one hands it to the list above; None is left of nothing.

    Examples
    --------
    >>> pruned([[1, [0], [[2], 3]], [4]], np.array([True, True, True, True, False]))
    [0, 1, [2, 3]]
    """
    if isinstance(tree, int):
        return tree if wanted[tree] else None
    kept = [branch for branch in (pruned(child, wanted) for child in tree) if branch is not None]
    kept.sort(key=lambda branch: (0, branch) if isinstance(branch, int) else (1, 0))
    return kept if len(kept) > 1 else kept[0] if kept else None


def flat(tree: Any) -> Tree:
    """The arrays of nested lists, level by level; of one label or none, those of its root."""
    nodes = [tree] if isinstance(tree, list) else [[] if tree is None else [tree]]
    start, child = [0], []
    for node in nodes:
        for branch in node:
            child.append(~branch if isinstance(branch, int) else len(nodes))
            if isinstance(branch, list):
                nodes.append(branch)
        start.append(len(child))
    return np.array(start, np.int64), np.array(child, np.int32)

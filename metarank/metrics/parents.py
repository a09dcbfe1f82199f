"""`as_parents`: the hierarchy of labels that a metric is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_relations import depths, relation


def as_parents(parents: Any, n_labels: int) -> sp.csr_matrix:
    """The parents of each label as CSR (L, L) of ones.

    Parameters
    ----------
    parents : LabelDescriptions; (L, L) array or sparse matrix; or sequence (L) of sequences of label ids
        Row l of a matrix is nonzero at the parents of label l.
    n_labels : int
        L.

    Raises
    ------
    ValueError, TypeError
        If there are parents of another number of labels, an id is out of range, or there is a cycle.
    """
    if isinstance(parents, LabelDescriptions):
        if len(parents) != n_labels:
            raise ValueError(f"parents must be of {n_labels} labels, got {len(parents)}")
        return sp.csr_matrix((n_labels, n_labels)) if parents.parents is None else parents.parents
    if sp.issparse(parents) or isinstance(parents, np.ndarray):
        if parents.shape != (n_labels, n_labels):
            raise ValueError(f"parents must have shape {(n_labels, n_labels)}, got {parents.shape}")
        first, second = parents.nonzero()
    else:
        first, second = _of_lists(parents, n_labels)
    found = relation(first, second, n_labels)
    depths(found)
    return found


def _of_lists(parents: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    rule = f"parents must be a matrix (L, L) or a list of label ids for each of {n_labels} labels"
    if not isinstance(parents, Sequence) or isinstance(parents, (str, bytes)):
        raise TypeError(f"{rule}, got {parents!r:.80}")
    if len(parents) != n_labels:
        raise ValueError(f"{rule}, got {len(parents)} lists")
    try:
        counts = [len(own) for own in parents]
        second = np.array([label for own in parents for label in own], np.int64)
    except (TypeError, ValueError):
        raise TypeError(f"{rule}, got {parents!r:.80}") from None
    if len(second) and not 0 <= second.min() <= second.max() < n_labels:
        raise ValueError(f"parents must hold label ids in [0, {n_labels}), got {parents!r:.80}")
    return np.repeat(np.arange(n_labels), counts), second

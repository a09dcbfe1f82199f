"""Propensities of single labels, where the data shows how often a relevant label was left out.

Three kinds of knowledge help: a *hierarchy* (a point with a descendant should carry the label too),
*substitutes* (an item bought with one of them could be bought with the others) and *symmetry* (if a names
b, b should name a).

The results never hold labels without a point: their estimate would be 0 whatever the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from points import PropensityPoints

from metarank.types.checks import check_labels


def propensities_from_hierarchy(Y: Any, parents: Any, *, min_descendants: int = 5) -> PropensityPoints:
    """Propensities of labels that have descendants: the Wikipedia method of Jain et al. (2016), section 5.

    If a label is relevant, so are all its ancestors. So label l is relevant to the N_l points that carry it
    and to those that carry only a descendant of it::

        p_l = N_l / N*_l,  N*_l = N_l + #{points with a descendant of l, but without l}

    A point that lost the label and all its descendants is not counted. So N*_l is a lower bound of the
    complete count, and the estimate is too high: by 0.2 and more for rare labels with rare descendants (in
    a simulation that masks all labels by the curve of the paper), by little for frequent labels.

    Parameters
    ----------
    Y : relevances (n, L)
        Whatever `MetaRanker.fit` takes as Y; relevant where > 0.
    parents : (m, 2) array-like of int
        Pairs (child, parent) of label ids. A label may have several parents. Order and repeated pairs do
        not matter.
    min_descendants : int
        Labels with fewer descendants, over all generations, are left out. The paper asks for more than 4.

    Returns
    -------
    PropensityPoints
        `found` is N_l and `possible` N*_l.

    Raises
    ------
    ValueError
        If `parents` has another shape, holds an id outside [0, L) or makes a label its own ancestor; if
        `min_descendants` is not positive.

    Examples
    --------
    Label 0 has the child 1, and that the child 2. Four points; the second and the third should carry 0 too.

    >>> Y = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> points = propensities_from_hierarchy(Y, [(1, 0), (2, 1)], min_descendants=1)
    >>> points.labels, points.found, points.possible
    (array([0, 1]), array([2, 2]), array([4, 3]))
    >>> points.propensities.round(3)
    array([0.5  , 0.667])
    """
    if min_descendants < 1:
        raise ValueError(f"min_descendants must be at least 1, got {min_descendants!r}")
    carries = _relevant(Y, "Y")
    n, n_labels = carries.shape
    below = _ancestors_or_self(_pairs(parents, n_labels), n_labels)  # (descendant or self, label)
    counts = _counts(carries)
    labels = np.flatnonzero((_counts(below) - 1 >= min_descendants) & (counts > 0))
    possible = _counts(carries @ below.tocsc()[:, labels])
    return PropensityPoints(labels, counts[labels], counts[labels], possible, n)


def propensities_from_substitutes(bought: Any, viewed: Any) -> PropensityPoints:
    """Propensities from substitutes: the Amazon method of Jain et al. (2016), section 5.

    A point is an item i, and its labels are the items it was bought with. Items that people view along with
    i are substitutes of i: label l could have been bought with them as well::

        p_l = N_l / N*_l
        N_l  = #{items i that l was bought with}
        N*_l = #{different items viewed along with at least one of these items i}

    The estimate is at most 1. N*_l counts an item i itself only where it was viewed along with another one,
    so N_l may exceed N*_l. Label l gets an estimate only if each item i that it was bought with was viewed
    along with some item.

    Parameters
    ----------
    bought : (n, L) array or sparse matrix
        > 0 where label (item) l was bought with item i; row i is item i.
    viewed : (n, V) array or sparse matrix
        > 0 where item v was viewed along with item i; the same rows. A row without an entry is an item
        without this information. V need not be L.

    Returns
    -------
    PropensityPoints
        `found` is N_l and `possible` N*_l.

    Raises
    ------
    ValueError
        If the numbers of rows differ.

    Examples
    --------
    Label 0 was bought with the items 0 and 1, and along with these were viewed the items 1, 2 and 3: two of
    three. Label 1 was bought with item 2 as well, along with which nothing is known to be viewed.

    >>> bought = np.array([[1, 1], [1, 0], [0, 1]])
    >>> viewed = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    >>> points = propensities_from_substitutes(bought, viewed)
    >>> points.labels, points.found, points.possible, points.propensities.round(3)
    (array([0]), array([2]), array([3]), array([0.667]))
    """
    partners, substitutes = _relevant(bought, "bought"), _relevant(viewed, "viewed")
    n = partners.shape[0]
    if substitutes.shape[0] != n:
        raise ValueError(f"viewed must have the {n} rows of bought, got {substitutes.shape[0]}")
    known = np.diff(substitutes.indptr) > 0
    counts = _counts(partners)
    known_counts = np.bincount(partners.indices, np.repeat(known, np.diff(partners.indptr)), len(counts))
    labels = np.flatnonzero((counts > 0) & (known_counts == counts))
    possible = np.diff((partners.tocsc()[:, labels].T.tocsr() @ substitutes).indptr)
    return PropensityPoints(labels, counts[labels], counts[labels], possible.astype(np.int64), n)


def propensities_from_symmetry(Y: Any, row_labels: Any, *, min_pairs: int = 5) -> PropensityPoints:
    """Propensities from a symmetric relation: if a names b, b should name a.

    Some points are labels themselves, such as an article that others cite or a function that others point to.
    Where the row of l carries label a, and a has a row, then l should be a label of a::

        p_l = #{a named by l that name l in turn} / #{a named by l}

    Only pairs where l names a count as known, not those where a names l: the entries whose absence is
    measured must not choose the known pairs. (Mark and recapture counts animals in the same way.) The
    estimate assumes that the two directions are observed independently. If authors tend to answer those who
    name them, it is too high.

    The answers are among the N_l points of the label, so that ``p_l <= N_l / #{a named by l}``. A large
    `min_pairs` therefore keeps only rare labels with a small propensity, and makes the fitted curve too
    steep. To fit a curve, take `min_pairs` = 1 and weigh each label by its known pairs:
    ``fit_propensity(points.counts, points.propensities, points.n_points, sample_weight=points.possible)``.

    Parameters
    ----------
    Y : relevances (n, L)
        Whatever `MetaRanker.fit` takes as Y; relevant where > 0. A row's own label does not count.
    row_labels : (n,) int
        The label that row i is itself, -1 where it is none; no label twice. For pydocs:
        `metarank.data.pydocs.own_labels`.
    min_pairs : int
        Labels with fewer known pairs are left out. Labels without a row of their own have none.

    Returns
    -------
    PropensityPoints
        `found` counts the answered pairs, `possible` all known pairs, `counts` is N_l over all rows.

    Raises
    ------
    ValueError
        If `row_labels` is not of length n, holds an id outside [-1, L) or a label twice; if `min_pairs` is
        not positive.

    Examples
    --------
    Row i is label i. Label 0 names 1, 2 and 3, of which 1 and 3 name it.

    >>> Y = np.array([[0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    >>> points = propensities_from_symmetry(Y, [0, 1, 2, 3], min_pairs=2)
    >>> points.labels, points.counts, points.found, points.possible
    (array([0]), array([2]), array([2]), array([3]))
    """
    if min_pairs < 1:
        raise ValueError(f"min_pairs must be at least 1, got {min_pairs!r}")
    carries = _relevant(Y, "Y").astype(np.int64)
    n, n_labels = carries.shape
    rows, own = _own_rows(row_labels, n, n_labels)
    carries -= carries.multiply(
        sp.csr_matrix((np.ones(len(rows), np.int64), (rows, own)), shape=(n, n_labels))
    )
    counts = carries.sum(axis=0).A1
    names = carries[rows][:, own]  # between labels with a row: 1 if the i-th of them names the j-th
    known = names.sum(axis=1).A1
    answered = names.multiply(names.T).sum(axis=1).A1
    kept = np.flatnonzero((known >= min_pairs) & (counts[own] > 0))
    kept = kept[np.argsort(own[kept])]
    labels = own[kept]
    return PropensityPoints(labels, counts[labels], answered[kept], known[kept], n)


def _relevant(Y: Any, name: str) -> sp.csr_matrix:
    """Boolean CSR: where a label is relevant."""
    return check_labels(Y, name=name, ids="positions")[0].astype(bool)


def _counts(relevant: sp.csr_matrix) -> np.ndarray:
    """Entries of each column, int64."""
    return np.bincount(relevant.tocsr().indices, minlength=relevant.shape[1]).astype(np.int64)


def _pairs(parents: Any, n_labels: int) -> np.ndarray:
    pairs = np.asarray(parents)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"parents must be (m, 2) integer pairs (child, parent), got shape {pairs.shape} "
            f"and dtype {pairs.dtype}"
        )
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n_labels)).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"parents must hold label ids in [0, {n_labels}), got {tuple(pairs[wrong[0]].tolist())} "
            f"at row {wrong[0]}"
        )
    return pairs.astype(np.int64)


def _ancestors_or_self(pairs: np.ndarray, n_labels: int) -> sp.csr_matrix:
    """Boolean CSR (L, L): which labels (columns) are the label of the row or one of its ancestors."""
    from scipy.sparse.csgraph import connected_components  # slow to import

    child, parent = pairs.T
    graph = sp.csr_matrix((np.ones(len(pairs), bool), (child, parent)), shape=(n_labels, n_labels))
    _, component = connected_components(graph, connection="strong")
    in_cycle = (np.bincount(component)[component] > 1) | graph.diagonal() if n_labels else np.empty(0, bool)
    if in_cycle.any():
        raise ValueError(f"parents must have no cycle, but label {np.argmax(in_cycle)} is its own ancestor")
    reached = sp.csr_matrix(graph + sp.eye_array(n_labels, dtype=bool, format="csr"))
    while True:  # each round doubles the number of generations
        further = reached @ reached
        if further.nnz == reached.nnz:
            return reached
        reached = further


def _own_rows(row_labels: Any, n: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows that are labels, which labels they are)."""
    own = np.asarray(row_labels)
    if own.shape != (n,) or own.dtype.kind not in "iu":
        raise ValueError(
            f"row_labels must be {n} integers, one a row of Y, got shape {own.shape} and dtype {own.dtype}"
        )
    wrong = np.flatnonzero((own < -1) | (own >= n_labels))
    if len(wrong):
        raise ValueError(f"row_labels must lie in [-1, {n_labels}), got {own[wrong[0]]} at row {wrong[0]}")
    rows = np.flatnonzero(own >= 0)
    own = own[rows].astype(np.int64)
    values, times = np.unique(own, return_counts=True)
    if np.any(times > 1):
        raise ValueError(f"row_labels must hold each label once, got {values[times > 1][0]} more than once")
    return rows, own

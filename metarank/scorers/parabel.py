"""`Parabel`: label trees trained from binary relevance."""

from __future__ import annotations

from typing import Any

from metarank.scorers.label_tree import LabelTree


class Parabel(LabelTree):
    """Label trees over relevant and irrelevant labels, searched by beam (Prabhu et al. 2018).

    Labels that share training points are clustered into balanced trees. Every edge has a linear
    classifier that tells, among the points that reach its parent, those with a relevant label below.
    A label's probability is the product along its path, averaged over trees.

    Parameters
    ----------
    n_trees : int
        Trees; their label vectors are sketched with different seeds.
    branching : int
        Most child nodes of a node, 2 to 256. 2 gives Parabel's binary trees; wider ones are flatter,
        faster to search, and often more accurate.
    max_leaf : int
        Most labels of a leaf, 1 to 256.
    beam : int
        Open nodes kept at each level of the search.
    loss : {"squared_hinge", "hinge", "logistic"}
    C : float
        Weight of the loss against ``1/2 ||w||^2``, the bias (weight of a constant feature 1) included.
    visitors : int
        A leaf is also trained on the points that a search of this many open nodes would take there: its
        classifiers meet the irrelevant points they will be asked about. 0: only points with a relevant
        label in the leaf.
    link_power : int
        With a hinge loss, the probability of an edge with margin z is ``exp(-max(0, 1 - z)^link_power)``.
    prune : float
        Weights whose absolute value is at most this are dropped.
    tolerance, max_epochs : float, int
        Dual coordinate descent stops at this violation of the optimality conditions, or after this many
        passes over the points.
    hierarchy : Hierarchy or None
        Label trees of the user's own, see `metarank.scorers.hierarchy.Hierarchy.from_parents`; then
        `n_trees`, `branching` and `max_leaf` are not read.
    label_vectors : array or CSR (L, anything) or None
        What to cluster labels by instead of their training points, such as vectors of their texts.
    random_state : int

    Notes
    -----
    Rows of X are scaled to unit length. Relevance counts as 1 where > 0. Labels without a training point are
    never proposed. As a stage of `MetaRanker` its columns are ``parabel`` (log-probability) and
    ``parabel1`` ... by tree.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    >>> Y = [[0], [0], [1], [1], [2], [3]]
    >>> found = Parabel(n_trees=1, random_state=0).fit(X, Y).shortlist(X[:1], k=1)
    >>> found.labels
    array([0], dtype=int32)
    """

    column = "parabel"
    cost = "sum"
    relevance = "binary"
    propensity = "default"

    def __init__(
        self,
        *,
        n_trees: int = 3,
        branching: int = 16,
        max_leaf: int = 100,
        beam: int = 10,
        loss: str = "squared_hinge",
        C: float = 1.0,
        visitors: int = 10,
        link_power: int = 4,
        prune: float = 0.1,
        tolerance: float = 0.1,
        max_epochs: int = 20,
        hierarchy: Any = None,
        label_vectors: Any = None,
        random_state: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.branching = branching
        self.max_leaf = max_leaf
        self.beam = beam
        self.loss = loss
        self.C = C
        self.visitors = visitors
        self.link_power = link_power
        self.prune = prune
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.hierarchy = hierarchy
        self.label_vectors = label_vectors
        self.random_state = random_state

"""`XReg`: label trees trained from graded relevance."""

from __future__ import annotations

from typing import Any

from metarank.scorers.label_tree import LabelTree


class XReg(LabelTree):
    """Extreme regression: how relevant is each of very many labels (Prabhu et al. 2020).

    Relevances are divided by their greatest value. A point reaches node n with m(n), the greatest relevance
    below it (1 at the root), and goes on to child c with probability m(c) / m(n): the soft target of a
    logistic regression with weight m(n) (eq. 5 and 6). Predicted probabilities multiply along the path,
    average over trees and are scaled back.

    Parameters
    ----------
    relevance : {"graded", "inverse-propensity", "binary"}
        What to regress on: Y itself; ``1 / p_l`` where Y > 0 (the loss then is that of propensity-scored
        precision); or 1 where Y > 0.
    propensity : "default", "wikipedia", "amazon" or (a, b)
        Curve of `metarank.propensity.inv_propensity`, of the training counts.
    cost : {"sum", "mean"}
        "sum": an edge minimises ``1/2 ||w||^2 + C sum_i cost_i loss_i``. "mean": with C divided by the
        number of points at the node, as eq. 5 prints.
    n_trees, branching, max_leaf, beam, C, visitors, prune, tolerance, max_epochs : see `Parabel`
    hierarchy, label_vectors, random_state : see `Parabel`

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]]
    >>> Y = np.array([[4, 2], [4, 2], [0, 1], [0, 1]], np.float32)
    >>> found = XReg(n_trees=1).fit(X, Y).shortlist(X[:1], k=2)
    >>> found.labels, found.scores["xreg"].round(0)
    (array([0, 1], dtype=int32), array([4., 2.], dtype=float32))
    """

    column = "xreg"
    loss = "logistic"
    link_power = 1

    def __init__(
        self,
        *,
        relevance: str = "graded",
        propensity: Any = "default",
        n_trees: int = 3,
        branching: int = 16,
        max_leaf: int = 100,
        beam: int = 10,
        C: float = 10.0,
        cost: str = "sum",
        visitors: int = 0,
        prune: float = 0.1,
        tolerance: float = 0.02,
        max_epochs: int = 20,
        hierarchy: Any = None,
        label_vectors: Any = None,
        random_state: int = 0,
    ) -> None:
        self.relevance = relevance
        self.propensity = propensity
        self.n_trees = n_trees
        self.branching = branching
        self.max_leaf = max_leaf
        self.beam = beam
        self.C = C
        self.cost = cost
        self.visitors = visitors
        self.prune = prune
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.hierarchy = hierarchy
        self.label_vectors = label_vectors
        self.random_state = random_state

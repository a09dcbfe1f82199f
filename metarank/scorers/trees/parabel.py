"""`Parabel`: label trees trained from binary relevance."""

from __future__ import annotations

from metarank._util.parameters import with_parameters
from metarank.scorers.trees.label_tree import LabelTree


@with_parameters
class Parabel(LabelTree):
    """Label trees over relevant and irrelevant labels, searched by beam (Prabhu et al. 2018).

    Labels that share training points are clustered into trees, balanced by default. Every edge has a linear
    classifier that separates, among the points that reach its parent, those with a relevant label below. The
    score of a label is the product of the probabilities along its path, averaged over trees. It is meant for
    ranking; with the logistic loss it is roughly a probability of relevance.

    Parameters
    ----------
    n_trees : int
        Number of trees. Each projects the label vectors with its own seed.
    branching : int
        Largest number of children of a node, 2 to 256. 2 gives the binary trees of the paper. Wider trees are
        flatter, faster to search, and often more accurate.
    max_leaf : int
        Largest number of labels of a leaf, 1 to 256.
    balanced : bool
        Whether the children of a node have equally many labels. False groups labels by k-means, in groups
        of any size. With ``branching=100`` these are the trees of Bonsai (Khandagale et al. 2020).
    beam : int
        Open nodes kept at each level of the search.
    loss : {"squared_hinge", "hinge", "logistic"}
    C : float or None
        Weight of the loss against ``1/2 ||w||^2``, which includes the bias (the weight of a constant feature
        1). None is 1 for a hinge loss and 10 for the logistic loss. It matters more than any other parameter:
        choose it by cross-validation.
    prune : float or None
        Weights of at most this value are dropped, and negative ones down to minus half of it; a classifier's
        other weights grow in turn by the square root of its length over theirs. None is .17 for a hinge loss
        and .6 for the logistic loss, .2 where relevances differ. 0 drops none.
    hierarchy : Hierarchy or None
        Your own label trees; see `metarank.scorers.trees.hierarchy.Hierarchy.from_parents`. `n_trees`,
        `branching`, `max_leaf` and `balanced` are then ignored.
    label_vectors : array or CSR (L, anything) or None
        Vectors by which to cluster labels, instead of their training points; for example of their texts:
        ``TextVectorizer.transform(names)``, or ``LabelEmbedder.encode_names(names)``.
    random_state : int, None, RandomState or Generator

    Notes
    -----
    Other settings of the solver are constants of `metarank.scorers.trees.label_tree`, by loss. Rows of X are
    scaled to unit length. Relevance > 0 counts as 1. Labels without a training point are never proposed. As a
    source of `MetaRanker` its columns are ``Parabel trees: log-probability`` and that of each tree.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    >>> Y = [[0], [0], [1], [1], [2], [3]]
    >>> found = Parabel(n_trees=1, random_state=0).fit(X, Y).shortlist(X[:1], k=1)
    >>> found.labels
    array([0], dtype=int32)

    With your own hierarchy, here of two branches:

    >>> from metarank.scorers.trees.hierarchy import Hierarchy
    >>> tree = Hierarchy.from_parents({"oak": "tree", "fir": "tree", "owl": "bird", "tit": "bird"},
    ...                               label_names=["oak", "fir", "owl", "tit"])
    >>> Parabel(hierarchy=tree).fit(X, Y).shortlist(X[4:], k=1).labels
    array([2, 3], dtype=int32)
    """

    loss: str = "squared_hinge"

    column = "Parabel trees: log-probability"

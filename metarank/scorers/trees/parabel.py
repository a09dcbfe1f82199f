"""`Parabel`: label trees trained from binary relevance."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from metarank._util.elementary import log, log1p, logistic
from metarank._util.parameters import check_flag, with_parameters
from metarank.metrics.logistic import Platt
from metarank.persist.fields import List, Number
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.label_weights import LEAST
from metarank.scorers.trees.label_tree import LabelTree
from metarank.types.view import TrainingView

# One row in so many is held out to learn the curve of calibration from, with this many labels a row.
_HELD_OUT = 5
_LABELS = 10


@with_parameters
class Parabel(LabelTree):
    """Label trees over relevant and irrelevant labels, searched by beam (Prabhu et al. 2018).

    Labels that share training points are clustered into trees, balanced by default. Every edge has a linear
    classifier that separates, among the points that reach its parent, those with a relevant label below. The
    score of a label is the product of the probabilities along its path, averaged over trees. It is meant for
    ranking; with `calibrate`, and roughly with the logistic loss, it is a probability of relevance.

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
        Whether the children of a node have equally many labels. False groups labels by k-means, however many
        come together. With ``branching=100`` these are the trees of Bonsai (Khandagale et al. 2020).
    beam : int
        Open nodes kept at each level of the search.
    loss : {"squared_hinge", "hinge", "logistic"}
    C : float or None
        Weight of the loss against ``1/2 ||w||^2``, which includes the bias (the weight of a constant feature
        1). None is 1 for a hinge loss and 10 for the logistic loss. It matters more than any other parameter:
        choose it by cross-validation.
    prune : float
        Weights of at most this absolute value are dropped.
    calibrate : bool
        Calibrate the scores of a hinge loss to probabilities, ``logit P' = a logit P + b``. A single tree
        that is fitted without a fifth of the rows provides the data. Calibration costs that tree and does not
        change the ranking.
    hierarchy : Hierarchy or None
        Your own label trees; see `metarank.scorers.trees.hierarchy.Hierarchy.from_parents`. `n_trees`,
        `branching`, `max_leaf` and `balanced` are then ignored.
    label_vectors : array or CSR (L, anything) or None
        Vectors by which to cluster labels, instead of their training points; for example of their texts:
        ``TextVectorizer.transform(names)``, or ``LabelEmbedder.encode_names(names)``.
    random_state : int, None, RandomState or Generator

    Notes
    -----
    What else the solver needs are constants of `metarank.scorers.trees.label_tree`, by loss. Rows of X are
    scaled to unit length. Relevance > 0 counts as 1. Labels without a training point are never proposed. As a
    source of `MetaRanker` its columns are ``parabel`` (log-probability) and ``parabel1`` ... for each tree.

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
    C: float | None = None
    calibrate: bool = False

    column = "parabel"
    _cheaper: ClassVar[dict[str, Any]] = {**LabelTree._cheaper, "calibrate": False}

    saved: ClassVar[Spec] = LabelTree.saved.extended(List("curve_", Number(""), 2, optional=True))

    def _check_params(self) -> None:
        super()._check_params()
        check_flag("calibrate", self.calibrate)

    def _learn_rest(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        self.curve_: list[float] | None = None
        if self.calibrate:
            self.curve_ = self._curve_of(view, sample_weight, n_jobs)

    def _curve_of(
        self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int
    ) -> list[float] | None:
        """(a, b) from held-out rows; None where they teach nothing."""
        parts = self._held_out(_HELD_OUT, view, sample_weight, n_jobs)
        if parts is None:
            return None
        tree, others, held_out = parts
        listed = tree.shortlist(held_out.X_as_new_to(others), _LABELS, n_jobs=n_jobs)
        relevant = listed.values_of(held_out.Y) > 0
        if not relevant.any() or relevant.all():
            return None
        platt = Platt().fit(_log_odds(listed.scores[self.column]), relevant.astype(np.float64))
        return [platt.slope, platt.offset] if platt.slope > 0 else None

    def planned(self) -> Planned | None:
        return super().planned() if self.curve_ is None else None

    def _relevance(self, probability: np.ndarray) -> np.ndarray:
        if self.curve_ is None:
            return probability
        slope, offset = self.curve_
        calibrated = logistic(slope * _log_odds(probability) + offset).astype(np.float32)
        return np.where(probability > LEAST, calibrated, np.float32(0))

    def _log_probability(self, probability: np.ndarray) -> np.ndarray:
        return super()._log_probability(self._relevance(probability))


def _log_odds(probability: np.ndarray) -> np.ndarray:
    """Finite, also of 0 and of 1."""
    p = np.clip(probability.astype(np.float64), LEAST, 1 - 1e-6)
    return log(p) - log1p(-p)

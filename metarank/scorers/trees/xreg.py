"""`XReg`: label trees trained from graded relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank.persist.fields import Number
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.label_weights import relevance_weights
from metarank.scorers.trees.label_tree import LabelTree
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.scorers.trees.tail_reranking import (
    KS,
    RERANKED,
    TAIL,
    TailReranking,
    check_alpha,
    is_without_tail,
)
from metarank.scorers.trees.tail_weight import choose_alpha
from metarank.types.candidates import Candidates
from metarank.types.view import Features, View

NORMALIZATIONS = ("global", "label", "auto")


@with_parameters
class XReg(TailReranking, LabelTree):
    """Extreme regression: the degree of relevance of each of very many labels (Prabhu et al. 2020).

    Relevances are divided by their maximum. A point reaches node n with m(n), the maximum of these shares
    below n (1 at the root), and proceeds to child c with probability m(c) / m(n): the soft target of a
    logistic regression with weight m(n) (eq. 5 and 6). Predicted probabilities are multiplied along the path,
    averaged over trees and scaled back.

    Parameters
    ----------
    relevance : {"graded", "inverse-propensity", "binary"}
        Target of the regression: Y itself; ``1 / p_l`` where Y > 0, the gain of propensity-scored precision;
        or 1 where Y > 0.
    propensity : "default", "wikipedia", "amazon" or (a, b)
        Curve of `metarank.metrics.propensity.inv_propensity`, applied to the training counts.
    normalize : {"global", "label", "auto"}
        By which maximum relevances are divided: that of all labels (section 4.2), or each label by its own.
        Where the relevance of a label is constant, as with inverse propensities, its own maximum leaves
        shares of 0 and 1: the trees are then those of `Parabel`, quick to train, and the search weights the
        probability of a label by its relevance. "auto" tries both on a fifth of the rows, and of constant
        relevances divided by their own maxima the logistic loss too, as `tune` tries settings: the one of
        less work is taken unless another is clearly better.
    cost : {"sum", "mean"}
        "sum": an edge minimises ``1/2 ||w||^2 + C sum_i cost_i loss_i``. "mean": with C divided by the
        number of points at the node, as eq. 5 prints.
    tail : float in (0, 1], "auto" or None
        XReg-t: alpha of `metarank.rerank.rerank_with_tail`, by which the 100 best labels of a point (or
        points of a label) are re-ranked with `metarank.scorers.trees.tail.TailClassifiers`, good for labels
        of few training points. "auto" is the alpha with the largest mean of WP@1, 3 and 5 (PSP for inverse
        propensities) on a fifth of the rows, with a single tree fitted without them, and for points of a
        label that with the largest mean of WP-l@1, 3 and 5; 1 with fewer than 10 rows. The scores then order
        labels, but no longer estimate the relevance. None is plain XReg.
    name_weight : float in [0, 1e6] or "auto"
        For how many training points the name of a label counts in its tail classifier, see
        `TailClassifiers`. "auto" chooses on the same rows as alpha, and is 0 with fewer than 10 rows and
        where names are not known: `fit` takes them from a Dataset with `label_names` and `feature_names`, or
        from the View. ``tail_.name_weight_`` is what was chosen.
    loss : {"auto", "logistic", "squared_hinge"}
        "auto" is logistic where shares are graded, else squared hinge, which cannot learn grades.
    C, visitors, tolerance, max_epochs : numbers or None
        As in `Parabel`. None is 10, 0, 0.02 and 20 for the logistic loss, which estimates relevances best
        without visitors; 1, 20, 0.1 and 5 for squared hinge.
    n_trees, branching, max_leaf, balanced, beam, link_power, path_weight, prune : see `Parabel`
    hierarchy, label_vectors, random_state, verbose : see `Parabel`
    tune : int
        As in `Parabel`; judged by WP@5 for graded relevance, PSP@5 for inverse propensities.

    Attributes
    ----------
    alpha_, alpha_points_ : float
        alpha of the labels of a point, and of the points of a label. 1 leaves them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]]
    >>> Y = np.array([[4, 2], [4, 2], [0, 1], [0, 1]], np.float32)
    >>> found = XReg(n_trees=1).fit(X, Y).shortlist(X[:1], k=2)
    >>> found.labels, found.scores["xreg"].round(0)
    (array([0, 1], dtype=int32), array([4., 2.], dtype=float32))
    """

    relevance: str = "graded"
    propensity: Any = "default"
    tail: Any = None
    cost: str = "sum"
    normalize: str = "global"
    name_weight: Any = "auto"

    column = "xreg"
    _losses: ClassVar[tuple[str, ...]] = ("auto", "logistic", "squared_hinge")
    _cheaper: ClassVar[dict[str, Any]] = {**LabelTree._cheaper, "tail": None, "name_weight": "auto"}

    rest: ClassVar[tuple[str, ...]] = (*TailReranking.rest, "alpha_points")

    saved: ClassVar[Spec] = LabelTree.saved.extended(
        *TAIL, Number("_alpha_points", 0, 1, key="alpha_points", older=None, omits_none=True)
    )

    @property
    def alpha_points_(self) -> float:
        return self.alpha_ if self._alpha_points is None else self._alpha_points

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("normalize", self.normalize, NORMALIZATIONS)
        if self.loss == "squared_hinge" and self._is_graded:
            also = (
                " and of inverse propensities with normalize='global'" if self.relevance != "graded" else ""
            )
            raise ValueError(
                f"loss must be 'logistic' or 'auto' for shares of graded relevance{also}, got 'squared_hinge'"
            )
        self._check_names(has_tail=self.tail is not None and not is_without_tail(self.tail))
        if self.tail is not None:
            check_alpha("tail", self.tail, "a number in (0, 1], 'auto' or None")

    @property
    def _is_graded(self) -> bool:
        """Whether shares may lie between 0 and 1."""
        return self.relevance == "graded" or (self.relevance != "binary" and self.normalize != "label")

    @property
    def _tries_both(self) -> bool:
        """Whether held-out rows say by which maximum; of binary relevance both are 1."""
        return self.normalize == "auto" and self.relevance != "binary"

    @property
    def _loss(self) -> str:
        if self.loss != "auto":
            return self.loss
        return "logistic" if self._is_graded else "squared_hinge"

    _loss_learned = _loss

    @property
    def is_tunable(self) -> bool:  # type: ignore[override]
        return self.tune > 0 or self._tries_both

    def settings_tried(self) -> list[dict[str, Any]]:
        """As `Parabel.settings_tried`; where `normalize` is "auto", its values first."""
        tried = super().settings_tried()
        if not self._tries_both:
            return tried
        of_all, own = ({"normalize": name} for name in ("global", "label"))
        first = [of_all, own]
        if self.loss == "auto" and self.relevance != "graded":  # own maxima alone change the loss as well
            first.append(own | {"loss": "logistic"})
        return [*first, *(of_all | setting for setting in tried[1:])][: max(len(first), self.tune)]

    def _learn_rest(self, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> dict[str, Any]:
        learned = self._learn_tail(view, sample_weight, self.tail, self._tails(view, [True]), n_jobs)
        return {"alpha_points": None, **learned}

    def _take_rest(self, rest: dict[str, Any]) -> None:
        super()._take_rest(rest)
        # None where it is alpha_, as in models of versions that had one weight for both.
        own = rest["alpha_points"]
        self._alpha_points: float | None = None if own == self.alpha_ else own

    def _more_weights(
        self,
        cheaper: XReg,
        tail: TailClassifiers,
        view: View,
        X: Features,
        Y: sp.csr_matrix,
        grid: Sequence[float],
        n_jobs: int,
    ) -> dict[str, float]:
        """alpha of the points of a label, of those labels that held-out rows have."""
        weights = relevance_weights(view, self.relevance, self.propensity)
        Y = Y.copy()
        if self.relevance != "graded":
            Y.data = np.ones_like(Y.data) if weights is None else weights[Y.indices].astype(np.float32)
        found = cheaper.shortlist_points(X, RERANKED, n_jobs=n_jobs)
        counts = np.where(np.bincount(Y.indices, minlength=view.n_labels) > 0, np.diff(found.indptr), 0)
        listed = np.repeat(counts > 0, np.diff(found.indptr))
        scores = {name: values[listed] for name, values in found.scores.items()}
        indptr = np.concatenate([[0], np.cumsum(counts)])
        found = Candidates(indptr, found.labels[listed], found.n_labels, scores).transpose()
        tail_scores = tail.score(X, found, n_jobs=n_jobs)[COLUMN]
        options: dict[str, Any] = {"scale": cheaper.scale_, "n_jobs": n_jobs}
        metrics = [f"WP-l@{k}" for k in KS]
        alpha = choose_alpha(found, tail_scores, Y, metric=metrics, grid=grid, standard_errors=0.0, **options)
        return {"alpha_points": alpha}

    def planned(self) -> Planned | None:
        return super().planned() if self._plain else None

    def shortlist(
        self, X: Any, k: int = 100, *, beam: int | None = None, n_jobs: int | None = 1
    ) -> Candidates:
        """As `Parabel.shortlist`. XReg-t re-ranks the 100 best labels and then cuts them to k."""
        if self._plain:
            return super().shortlist(X, k, beam=beam, n_jobs=n_jobs)
        check_integer("k", k, 1)
        rows = self._rows(X)
        found = super().shortlist(rows, max(k, RERANKED), beam=beam, n_jobs=n_jobs)
        return self._reranked(rows, found, self.alpha_, n_jobs).top(k)

    def shortlist_points(
        self, X: Any, k: int = 10, *, factor: float = 4.0, n_jobs: int | None = 1
    ) -> Candidates:
        """As `Parabel.shortlist_points`. With `tail`, the 100 best rows are re-ranked."""
        if self.tail_ is None or self.alpha_points_ == 1:
            return super().shortlist_points(X, k, factor=factor, n_jobs=n_jobs)
        check_integer("k", k, 1)
        rows = self._rows(X)
        by_label = super().shortlist_points(rows, max(k, RERANKED), factor=factor, n_jobs=n_jobs)
        found = self._reranked(rows, by_label.transpose(), self.alpha_points_, n_jobs)
        return found.transpose().top(k)

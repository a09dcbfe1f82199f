"""`XReg`: label trees trained from graded relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.stats import sem
from sklearn.base import clone

from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank._util.progress import in_turn, note
from metarank.metrics import per_row
from metarank.persist.fields import Number
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.crossfit import held_apart
from metarank.scorers.label_weights import relevance_weights
from metarank.scorers.trees.label_tree import LabelTree
from metarank.scorers.trees.tail import COLUMN, TailClassifiers
from metarank.scorers.trees.tail_reranking import (
    KS,
    RERANKED,
    TAIL,
    TailReranking,
    check_alpha,
    choose_alpha,
    is_without_tail,
)
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

NORMALIZATIONS = ("global", "label", "auto")
# Makes the part that is held out independent of the folds of the same seed.
_SHIFT = 3_000_017
# What judges a normalization, by what the labels are learned as, and the labels of a row that it looks at.
_LISTED = 5
_METRICS = {"inverse-propensity": "PSP@5", "graded": "WP@5"}


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
        The maximum that relevances are divided by: that of all labels (section 4.2), or that of each label.
        If the relevance of a label is constant, as with inverse propensities, "label" gives shares of 0 and
        1: the trees are then those of `Parabel`, fast to train, and the search weights the probability of a
        label by its relevance. "auto" tries both on a fifth of the rows, and for constant relevances also
        the logistic loss: it takes "global" unless another is clearly better.
    cost : {"sum", "mean"}
        "sum": an edge minimises ``1/2 ||w||^2 + C sum_i cost_i loss_i``. "mean": with C divided by the
        number of points at the node, as eq. 5 prints.
    tail : float in (0, 1], "auto" or None
        XReg-t: alpha of `metarank.metrics.rerank.rerank_with_tail`, by which the 100 best labels of a point
        (or points of a label) are re-ranked with `metarank.scorers.trees.tail.TailClassifiers`, good for
        labels of few training points. "auto" is the alpha with the largest mean of WP@1, 3 and 5 (PSP for
        inverse propensities) on a fifth of the rows, with a single tree fitted without them, and for points
        of a label that with the largest mean of WP-l@1, 3 and 5; 1 with fewer than 10 rows. The scores then
        order labels, but no longer estimate the relevance. None is plain XReg.
    name_weight : float in [0, 1e6] or "auto"
        The number of training points that the name of a label counts for in its tail classifier, see
        `TailClassifiers`. "auto" chooses on the same rows as alpha, and is 0 with fewer than 10 rows or
        without names: `fit` takes them from a Dataset with `label_names` and `feature_names`, or
        from the TrainingView. ``tail_.name_weight_`` is the choice.
    loss : {"auto", "logistic", "squared_hinge"}
        "auto" is logistic where shares are graded, else squared hinge, which cannot learn grades.
    n_trees, branching, max_leaf, balanced, beam, C, prune : see `Parabel`
    hierarchy, label_vectors, random_state : see `Parabel`

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
    >>> found.labels, found.scores["XReg"].round(0)
    (array([0, 1], dtype=int32), array([4., 2.], dtype=float32))
    """

    relevance: str = "graded"
    propensity: Any = "default"
    tail: Any = None
    cost: str = "sum"
    normalize: str = "global"
    name_weight: Any = "auto"

    column = "XReg trees: log-relevance"
    _losses: ClassVar[tuple[str, ...]] = ("auto", "logistic", "squared_hinge")
    _cheaper: ClassVar[dict[str, Any]] = {"n_trees": 1, "tail": None, "name_weight": "auto"}

    saved: ClassVar[Spec] = LabelTree.saved.extended(
        *TAIL, Number("_alpha_points", 0, 1, key="alpha_points", optional=True)
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
    def _loss(self) -> str:
        if self.loss != "auto":
            return self.loss
        return "logistic" if self._is_graded else "squared_hinge"

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> XReg:
        """An unfitted copy with the maxima that suit held-out rows, where `normalize` is "auto"."""
        return self._ready(view, None, n_jobs)

    def _ready(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> XReg:
        ready = super()._ready(view, sample_weight, n_jobs)
        if self.normalize != "auto" or self.relevance == "binary":  # whose maxima are all 1
            return ready
        settings: list[dict[str, Any]] = [{"normalize": "global"}, {"normalize": "label"}]
        if self.loss == "auto" and self.relevance != "graded":  # own maxima alone change the loss as well
            settings.append({"normalize": "label", "loss": "logistic"})
        return clone(self).set_params(**self._best_of(settings, view, sample_weight, n_jobs))

    def _best_of(
        self, settings: list[dict[str, Any]], view: TrainingView, row_weight: np.ndarray | None, n_jobs: int
    ) -> dict[str, Any]:
        """The first of some settings, unless held-out rows prefer another.

        Each is fitted on four fifths of the rows and judged on the other fifth, which is drawn by a hash of
        the seed; copies of a row and rows of a group stay together. A setting is taken if it is better than
        the one taken before it by more than the standard error of their mean difference. Rows of a group
        count as one.
        """
        parts = held_apart(view, view.seed + _SHIFT, view.X)
        if parts is None:
            note(f"XReg with {settings[0]}, since {view.n_rows} rows are too few to hold some out")
            return settings[0]
        others, held_out, learns = parts
        weight = None if row_weight is None else row_weight[learns]
        metric, gain = _METRICS[self.relevance], relevance_weights(view, self.relevance, self.propensity)
        Y = held_out.Y if self.relevance == "graded" else (held_out.Y > 0).astype(np.float32)

        def values(setting: dict[str, Any]) -> np.ndarray:
            fitted = clone(self).set_params(**setting).fit(others, sample_weight=weight, n_jobs=n_jobs)
            ranking = fitted.shortlist(held_out.X, k=_LISTED, n_jobs=n_jobs)
            return per_row(Y, ranking, metric, inv_propensity=gain, n_jobs=n_jobs)

        units = np.arange(held_out.n_rows) if held_out.groups is None else held_out.groups
        tried = in_turn(values, settings, lambda setting: f"with {setting}")
        best = 0
        for i, measured in enumerate(tried):
            counted = ~np.isnan(measured)
            unit = np.unique(units[counted], return_inverse=True)[1]
            better = np.bincount(unit, (measured - tried[best])[counted]) / np.bincount(unit)
            if len(better) > 1 and better.mean() > sem(better):
                best = i
        for setting, measured in zip(settings, tried):
            taken = ", taken" if setting is settings[best] else ""
            note(f"XReg with {setting}: {metric} {np.nanmean(measured):.4f}{taken}")
        return settings[best]

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        super()._learn(view, sample_weight, n_jobs)
        tails = self._tails(view, [True])
        more = self._learn_tail(view, sample_weight, self.tail, tails, n_jobs)
        # None where it is alpha_.
        alpha_points = more.get("alpha_points")
        self._alpha_points: float | None = None if alpha_points == self.alpha_ else alpha_points

    def _more_weights(
        self,
        cheaper: XReg,
        tail: TailClassifiers,
        view: TrainingView,
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
        by_label = cheaper.shortlist_points(X, RERANKED, n_jobs=n_jobs)
        has_rows = np.bincount(Y.indices, minlength=view.n_labels) > 0
        by_label = by_label.where(has_rows[by_label.row_of_pair]).transpose()
        tail_scores = tail.score(X, by_label, n_jobs=n_jobs)[COLUMN]
        options: dict[str, Any] = {"scale": cheaper.scale_, "n_jobs": n_jobs}
        metrics = [f"WP-l@{k}" for k in KS]
        return {"alpha_points": choose_alpha(by_label, tail_scores, Y, metrics, grid, **options)}

    def planned(self) -> Planned | None:
        return super().planned() if self._plain else None

    def shortlist(
        self, X: Any, k: int = 100, *, beam: int | None = None, n_jobs: int | None = 1
    ) -> Candidates:
        """As `Parabel.shortlist`. XReg-t re-ranks the 100 best labels and then keeps k."""
        if self._plain:
            return super().shortlist(X, k, beam=beam, n_jobs=n_jobs)
        check_integer("k", k, 1)
        rows = self._rows(X)
        listed = super().shortlist(rows, max(k, RERANKED), beam=beam, n_jobs=n_jobs)
        return self._reranked(rows, listed, self.alpha_, n_jobs).top(k)

    def shortlist_points(
        self, X: Any, k: int = 10, *, factor: float = 4.0, n_jobs: int | None = 1
    ) -> Candidates:
        """As `Parabel.shortlist_points`. With `tail`, the 100 best rows are re-ranked."""
        if self.tail_ is None or self.alpha_points_ == 1:
            return super().shortlist_points(X, k, factor=factor, n_jobs=n_jobs)
        check_integer("k", k, 1)
        rows = self._rows(X)
        by_label = super().shortlist_points(rows, max(k, RERANKED), factor=factor, n_jobs=n_jobs)
        listed = self._reranked(rows, by_label.transpose(), self.alpha_points_, n_jobs)
        return listed.transpose().top(k)

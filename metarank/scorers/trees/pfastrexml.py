"""`PfastreXML`: PfastXML re-ranked with tail classifiers (Jain et al. 2016, section 6.2)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from metarank._util.parameters import check_integer, check_real, with_parameters
from metarank._util.threads import resolve_n_jobs
from metarank.persist.spec import Spec
from metarank.scorers.trees.instance_tree import PfastXML
from metarank.scorers.trees.tail_reranking import TAIL, TailReranking, check_alpha, is_without_tail
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingView


@with_parameters
class PfastreXML(TailReranking, PfastXML):
    """`PfastXML` with its labels re-ranked by the distance of a point to the mean of their training points.

    Trees give labels of few training points low probabilities, since errors in the upper nodes separate these
    points. Every label of the leaves that a point reaches is therefore scored by (eq. 8)

        alpha log P + (1 - alpha) log P_tail

    where P is the mean relevance divided by its maximum, and P_tail that of
    `metarank.scorers.trees.tail.TailClassifiers`. Other parameters are as in `FastXML`; `relevance` is
    "inverse-propensity" by default.

    Parameters
    ----------
    alpha : float in (0, 1] or "auto"
        1 is PfastXML itself; the paper uses 0.8. "auto" is the alpha with the largest mean of PSP@1, 3 and 5
        (WP for other relevances) on a fifth of the rows, with ten trees grown without them; features that no
        other row has are left out of these rows, as new rows do not have them. It is the best value,
        unlike in `metarank.scorers.trees.tail_reranking.choose_alpha`.
    gamma : float > 0
        How fast P_tail falls with the distance. Far from all means, log P_tail is -gamma / 2 |x - mu_l|^2, so
        that only gamma (1 - alpha) / alpha matters and one of the two can stay fixed.
    unit_means : bool or "auto"
        See `TailClassifiers`; False is eq. 7 as printed. "auto" is chosen on the same rows as alpha.
    max_terms : int or None
        As in `TailClassifiers`. None keeps whole means, as published. Held-out rows of six sets were ranked
        as well or better with 500 terms and `unit_means` chosen; with long rows, in far less time and memory.
    name_weight : float in [0, 1e6] or "auto"
        As in `XReg`.

    Attributes
    ----------
    alpha_ : float
        The weight in use; 1 for "auto" with fewer than 10 rows.
    tail_ : TailClassifiers or None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2, 3]]
    >>> Y = [[0], [0], [1], [1], [2], [3]]
    >>> found = PfastreXML(n_trees=5, max_leaf=2, C=10.0).fit(X, Y).shortlist(X[:1], k=1)
    >>> found.labels
    array([0], dtype=int32)
    """

    alpha: Any = "auto"
    gamma: float = 30.0
    unit_means: Any = "auto"
    max_terms: int | None = 500
    name_weight: Any = "auto"

    column = "PfastreXML trees: log-relevance"
    _cheaper: ClassVar[dict[str, Any]] = {"n_trees": 10, "alpha": 1.0, "name_weight": "auto"}

    saved: ClassVar[Spec] = PfastXML.saved.extended(*TAIL)

    def _check_params(self) -> None:
        super()._check_params()
        check_alpha("alpha", self.alpha, "a number in (0, 1] or 'auto'")
        check_real("gamma", self.gamma, 1e-6, 1e6, "a positive number, at most 1e6")
        if self.max_terms is not None:
            check_integer("max_terms", self.max_terms, 1)
        auto = isinstance(self.unit_means, str) and self.unit_means == "auto"
        if not auto and not isinstance(self.unit_means, (bool, np.bool_)):
            raise TypeError(f"unit_means must be True, False or 'auto', got {self.unit_means!r}")
        self._check_names(not is_without_tail(self.alpha))

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        super()._learn(view, sample_weight, n_jobs)
        tails = self._tails(
            view,
            (True, False) if isinstance(self.unit_means, str) else (bool(self.unit_means),),
            gamma=float(self.gamma),
            max_terms=self.max_terms,
        )
        # Of nothing to re-rank, nothing is to be chosen.
        tails = tails[:1] if is_without_tail(self.alpha) else tails
        self._learn_tail(view, sample_weight, self.alpha, tails, n_jobs)

    def shortlist(self, X: Any, k: int = 100, *, n_jobs: int | None = 1) -> Candidates:
        """As `FastXML.shortlist`, after the labels of the leaves are re-ranked."""
        if self._plain:
            return super().shortlist(X, k, n_jobs=n_jobs)
        check_integer("k", k, 1)
        assert self.tail_ is not None
        tail = (self.tail_.means_.index, float(self.tail_.gamma), bool(self.tail_.unit_means))
        rows, n_threads = self._unit_parts(X), resolve_n_jobs(n_jobs)
        return self._listed(*self._trees.top_reranked(rows, k, *tail, self.alpha_, n_threads))

"""`Blending`: a linear model and boosted trees, whose scores are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from metarank.objectives.boosted_model import BoostedScorer, Boosting
from metarank.objectives.linear_model import LinearFit, LinearScorer
from metarank.objectives.objective_model import ObjectiveModel
from metarank.objectives.watch import Watch
from metarank.persist.fields import Array, Number, Object
from metarank.persist.spec import Spec


class BlendedScorer(ObjectiveModel):
    """A weighted sum of a linear score and that of trees.

    Parameters
    ----------
    linear : LinearScorer
    trees : BoostedScorer
    factors : float64 array (2,)
        Of their scores.
    share : float
        Of the trees in the importances, in [0, 1].
    """

    kind = "blend"

    saved: ClassVar[Spec] = Spec(
        Object("linear", LinearScorer, ("d",), inline=True),
        Object("trees", BoostedScorer, ("d",), inline=True),
        Array("factors", np.float64, (2,), least=0),
        Number("share", 0, 1),
    )

    def __init__(self, linear: LinearScorer, trees: BoostedScorer, factors: np.ndarray, share: float) -> None:
        self.linear: LinearScorer = linear
        self.trees: BoostedScorer = trees
        self.factors: np.ndarray = factors
        self.share: float = share

    def score(self, X: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """float64 (n,): raw scores."""
        return self._sum(self.linear.score(X, n_jobs), self.trees.score(X, n_jobs))

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """float64 (n, d + 1): shares of the columns in both scores, and what all rows have in common."""
        return self._sum(self.linear.contributions(X), self.trees.contributions(X))

    def importances(self) -> np.ndarray:
        """float64 (d,): those of the parts, each summing to 1, by their shares."""
        parts = [part / (part.sum() or 1.0) for part in (self.linear.importances(), self.trees.importances())]
        return np.asarray((1 - self.share) * parts[0] + self.share * parts[1])

    def _sum(self, linear: np.ndarray, trees: np.ndarray) -> np.ndarray:
        return np.asarray(self.factors[0] * linear + self.factors[1] * trees)


class Blending:
    """Trains as often as asked: first the linear model, then trees beside it, which are watched together.

    Parameters
    ----------
    linear : LinearFit
    trees : Boosting
    factors, share :
        As of `BlendedScorer`.
    n_jobs : int
    """

    def __init__(
        self, linear: LinearFit, trees: Boosting, factors: np.ndarray, share: float, n_jobs: int
    ) -> None:
        self.linear: LinearFit = linear
        self.trees: Boosting = trees
        self.factors: np.ndarray = factors
        self.share: float = share
        self.n_jobs = n_jobs

    def fit(self, train: Callable[[Any, Watch], Any], watch: Watch) -> BlendedScorer:
        """`train` makes a scorer of either part, by a watch; the linear one stops by a watch of its own."""
        linear = train(self.linear, watch.anew())
        watch.beside = (
            self.factors[0] * linear.score(self.linear.X_eval, self.n_jobs),
            float(self.factors[1]),
        )
        return BlendedScorer(linear, train(self.trees, watch), self.factors, self.share)

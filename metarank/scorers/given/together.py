"""`GivenTogether`: what several given sources say of a pair together."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, List, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.given.given_source import GivenScorer
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.view import TrainingSet, View


@with_parameters
class GivenTogether(LabelScorer):
    """What several given sources say of a pair together.

    ``given_odds``
        The sum of what each source adds to the label's prior: sum of log chances, as in ``<source>_odds``,
        less (k - 1) times the log of the label's share of the rows, for k sources. That is the log of the
        chance if the sources erred independently.
    ``given_sources``
        The number of sources that propose the pair.

    Parameters
    ----------
    given : sequence of str
        The names of the sources.
    """

    given: Sequence[str] = ()

    reads_given = True

    saved: ClassVar[Spec] = Spec(
        Params(of=lambda scorer: {"given": list(scorer.given)}),
        List("scorers_", Object("", GivenScorer, ("L",))),
        Array("log_prior_", np.float32, ("L",)),
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> GivenTogether:
        """Learn from the rows of the View and their candidates. Returns self."""
        # Odds and presence are all that is read of them, so no habits.
        self.scorers_: list[GivenScorer] = [
            GivenScorer(given=name, by_fold=True).fit(view) for name in self.given
        ]
        self.log_prior_: NDArray[np.float32] = LabelPrior().fit(view).log_prior_
        return self

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The two columns, float32 (m,)."""
        columns = [scorer.score(X, candidates) for scorer in self.scorers_]
        return self._joined(columns, self.log_prior_[candidates.labels])

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows, equal to those of fits without the row's fold."""
        columns = [
            GivenScorer(given=name, by_fold=True).score_held_out(data, candidates, rows=rows)
            for name in self.given
        ]
        prior = held_out_columns(LabelPrior(), data, candidates, rows=rows)["prior"]
        return self._joined(columns, prior)

    def _joined(self, columns: list[dict[str, np.ndarray]], prior: np.ndarray) -> dict[str, np.ndarray]:
        odds = np.zeros(len(prior), np.float64)
        present = np.zeros(len(prior), np.float32)
        for name, own in zip(self.given, columns):
            odds += own[f"{name}_odds"]
            present += own[f"{name}_present"]
        odds -= (len(columns) - 1) * prior.astype(np.float64)
        return {"given_odds": odds.astype(np.float32), "given_sources": present}

    def n_columns(self) -> int:
        return 2

    def updated(self, view: View, *, n_jobs: int = 1) -> GivenTogether:
        """A scorer of the labels of the View; see `GivenScorer.updated`."""
        out = copy(self)
        out.scorers_ = [scorer.updated(view) for scorer in self.scorers_]
        more = view.n_labels - len(self.log_prior_)
        out.log_prior_ = np.append(self.log_prior_, np.full(more, self.log_prior_.min(), np.float32))
        return out

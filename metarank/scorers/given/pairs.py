"""`GivenTogether`: what several given sources say of a pair; `PairFeatures`: features of pairs as given."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, List, Object, Params, Strings
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.given.given_scorer import GivenScorer, column_of
from metarank.scorers.given.lists import positions
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.types.candidates import Candidates
from metarank.types.given import UNNAMED_FEATURE, Given, called
from metarank.types.view import TrainingView

# The parameter of `MetaRanker.fit`.
_OWN = "pair_features"


@with_parameters
class GivenTogether(LabelScorer):
    """What several given sources say of a pair together.

    ``all sources: log-probability``
        The sum of what each source adds to the label's prior: sum of log chances, as in ``<source>:
        log-probability``,
        less (k - 1) times the log of the label's share of the rows, for k sources. That is the log of the
        chance if the sources erred independently.
    ``all sources: number that propose``
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

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> GivenTogether:
        """Learn from the rows of the TrainingView and their candidates. Returns self."""
        # Odds and presence are all that is read of them, so no habits.
        self.scorers_: list[GivenScorer] = [
            GivenScorer(given=name, by_fold=True).fit(view) for name in self.given
        ]
        self.log_prior_: NDArray[np.float32] = LabelPrior().fit(view).log_prior_
        return self

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The two columns, float32 (m,)."""
        odds = np.zeros(candidates.n_pairs, np.float64)
        present = np.zeros(candidates.n_pairs, np.float32)
        for name, scorer in zip(self.given, self.scorers_):
            columns = scorer.score(X, candidates)
            odds += columns[column_of(name, "log-probability")]
            present += columns[column_of(name, "proposed")]
        odds -= (len(self.scorers_) - 1) * self.log_prior_[candidates.labels].astype(np.float64)
        return {
            "all sources: log-probability": odds.astype(np.float32),
            "all sources: number that propose": present,
        }

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> GivenTogether:
        """A scorer of the labels of the TrainingView; see `GivenScorer.updated`."""
        out = copy(self)
        out.scorers_ = [scorer.updated(view) for scorer in self.scorers_]
        more = view.n_labels - len(self.log_prior_)
        out.log_prior_ = np.append(self.log_prior_, np.full(more, self.log_prior_.min(), np.float32))
        return out


@with_parameters
class PairFeatures(LabelScorer):
    """Features of pairs as they were given: ``<name>``, 0 where a pair has none, and ``<name>: given``.

    Parameters
    ----------
    names : sequence of str

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> clicks = Given(1, 3, features={"clicks": sp.csr_matrix(np.float32([[0, 7, 0]]))})
    >>> PairFeatures(names=("clicks",)).score(clicks, Candidates.all_labels(1, 3))["clicks"]
    array([0., 7., 0.], dtype=float32)
    """

    names: Sequence[str] = ()

    reads_given = True
    is_label_free = True

    saved: ClassVar[Spec] = Spec(Params(of=lambda scorer: {"names": list(scorer.names)}), Strings("valued_"))

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> PairFeatures:
        """Nothing is learned but which features have values. Returns self."""
        self.valued_: list[str] = [name for name in self.names if (_OWN, name) not in view.all_given.unscored]
        return self

    def check_given(self, given: Given) -> None:
        """Raise ValueError if labels alone are given of a feature that had values in the fit."""
        for name in self.valued_:
            if (_OWN, name) in given.unscored:
                raise ValueError(f"{called(_OWN, name)} must hold values, as in fit, got only labels")

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Two columns for each feature, float32 (m,)."""
        out: dict[str, np.ndarray] = {}
        for name in self.names:
            pairs, shown = X.features[name], "pair feature" if name == UNNAMED_FEATURE else name
            at, is_present = positions(pairs, candidates)
            column = np.zeros(candidates.n_pairs, np.float32)
            column[is_present] = pairs.data[at[is_present]]
            out |= {shown: column, f"{shown}: given": is_present.astype(np.float32)}
        return out

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The features."""
        return (), tuple(self.names)

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> PairFeatures:
        """Itself, since it learns nothing of labels."""
        return self

"""`PairFeatures`: what else others say of pairs, beside their candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from metarank._util.parameters import with_parameters
from metarank.persist.fields import Params, Strings
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.given.lists import positions
from metarank.types.candidates import Candidates
from metarank.types.given import Given, called
from metarank.types.view import TrainingSet, View

# The parameter of `MetaRanker.fit`.
_OWN = "pair_features"


@with_parameters
class PairFeatures(LabelScorer):
    """Features of pairs as they were given: ``<name>``, 0 where a pair has none, and ``<name>_present``.

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
    reads_names = False
    has_held_out_columns = True

    saved: ClassVar[Spec] = Spec(
        Params(of=lambda scorer: {"names": list(scorer.names)}), Strings("valued_", older=list)
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> PairFeatures:
        """Nothing is learned but which features have values. Returns self."""
        self.valued_: list[str] = [name for name in self.names if (_OWN, name) not in view.all_given.unscored]
        return self

    def check_given(self, given: Given) -> None:
        """Raise ValueError if labels alone are given of a feature that had values in the fit."""
        for name in self.valued_:
            if (_OWN, name) in given.unscored:
                raise ValueError(f"{called(_OWN, name)} must hold values, as in fit, got labels alone")

    def score(self, X: Given, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Two columns for each feature, float32 (m,)."""
        out: dict[str, np.ndarray] = {}
        for name in self.names:
            own = X.features[name]
            at, found = positions(own, candidates)
            column = np.zeros(candidates.n_pairs, np.float32)
            column[found] = own.data[at[found]]
            out |= {name: column, f"{name}_present": found.astype(np.float32)}
        return out

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """The columns of training rows; labels play no part in them."""
        return self.score(data.read_by(self)[rows], candidates)

    def given_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The features."""
        return (), tuple(self.names)

    def n_columns(self) -> int:
        return 2 * len(self.names)

    def updated(self, view: View, *, n_jobs: int = 1) -> PairFeatures:
        """Itself, since it learns nothing of labels."""
        return self

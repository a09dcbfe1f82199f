"""`Habits`: how a source scores each label, whether right or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import log
from metarank.persist.fields import Array, Number
from metarank.persist.spec import Saved, Spec

# Columns of a pair.
OF_LABELS = ("unusual", "usual", "proposed")
# Proposals of the mean label in a label's own mean and spread, and how unusual it is not to be proposed.
_USUAL_PAIRS = 5.0
_NOT_PROPOSED = -5.0
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, eq=False)
class Habits(Saved):
    """How a source scores each label, whether right or not: what is usual for one is a find for another.

    Parameters
    ----------
    mean, spread, log_share : float32 arrays (L,)
        Of the levels of the label's proposals (see `levels`), and the log of the share of the rows that have
        one; `log_share` of a label never proposed is that of half a row.
    usual : float
        The mean level of all proposals, for a new label.
    usual_spread, least_share : float
        The same of `spread` and `log_share`.
    """

    mean: np.ndarray
    spread: np.ndarray
    log_share: np.ndarray
    usual: float
    usual_spread: float
    least_share: float

    saved: ClassVar[Spec] = Spec(
        Array("mean", np.float32, ("L",), above=0, most=1),
        Array("spread", np.float32, ("L",), above=0),
        Array("log_share", np.float32, ("L",)),
        Number("usual", 0, 1),
        Number("usual_spread", 0),
        Number("least_share"),
    )

    @classmethod
    def of(cls, own: sp.csr_matrix, edges: np.ndarray) -> Habits:
        """From all pairs that the source proposes."""
        n, n_labels = own.shape
        level, label = levels(own.data, edges), own.indices
        usual = float(level.mean()) if len(level) else 0.5
        usual_spread = max(float(level.std()) if len(level) else 0.0, _LEAST_SPREAD)
        counts = np.bincount(label, minlength=n_labels)
        pairs = counts + _USUAL_PAIRS
        mean = (np.bincount(label, weights=level, minlength=n_labels) + _USUAL_PAIRS * usual) / pairs
        squares = np.bincount(label, weights=(level - mean[label]) ** 2, minlength=n_labels)
        spread = np.sqrt((squares + _USUAL_PAIRS * usual_spread**2) / pairs)
        log_share = log((counts + 0.5) / (n + 1))
        mean, spread, log_share = (of.astype(np.float32) for of in (mean, spread, log_share))
        return cls(mean, spread, log_share, usual, usual_spread, float(log(np.array([0.5 / (n + 1)]))[0]))

    def columns(
        self, own: sp.csr_matrix, edges: np.ndarray, label: np.ndarray, at: np.ndarray, found: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The columns `OF_LABELS` of pairs, of which those `found` are the entries `at` of `own`."""
        unusual = np.full(len(label), _NOT_PROPOSED, np.float32)
        of_pair, level = label[found], levels(own.data[at[found]], edges)
        unusual[found] = (level - self.mean[of_pair]) / self.spread[of_pair]
        return dict(zip(OF_LABELS, (unusual, self.mean[label], self.log_share[label])))

    def grown(self, more: int) -> Habits:
        """With so many more labels, of which nothing is known."""
        return replace(
            self,
            mean=np.append(self.mean, np.full(more, self.usual, np.float32)),
            spread=np.append(self.spread, np.full(more, self.usual_spread, np.float32)),
            log_share=np.append(self.log_share, np.full(more, self.least_share, np.float32)),
        )


def levels(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Where scores stand among all training scores, float64 (m,) in (0, 1]: equal steps are equal factors of
    the number of better ones. It depends on their order alone."""
    return (np.searchsorted(edges, scores, side="right") + 1) / (len(edges) + 1)

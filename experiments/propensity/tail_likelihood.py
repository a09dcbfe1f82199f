"""The maximum likelihood solution of the tail classifiers (Jain et al. 2016, eq. 6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from metarank import _core
from metarank.scorers.neighbors.label_means import LabelMeans
from metarank.scorers.neighbors.training_rows import as_canonical
from metarank.types.arrays import csr_parts
from metarank.types.view import Features

# Points without the label that join its likelihood: so many, or as many as have the label.
NEGATIVES = 50
STEPS = 200
# A label is done when a step would move its mu by no more than that.
TOLERANCE = 1e-5
# Terms of a mu, which is about 1 long, that are not worth their memory.
NEGLIGIBLE = 1e-6
# Labels, pairs of points and labels, and terms of dense vectors that are worked on together.
_LABELS, _PAIRS, _TERMS = 64, 20_000, 2**24
_HALVINGS = 40


class Ascent:
    """The likelihood of several labels, each over points of its own, and its ascent.

    With v = exp(gamma / 2 |x - mu|^2), a point x that has the label adds ``-log(1 + v)`` to the logarithm
    (a constant left out), one that has it not ``log(1 - p / (1 + v))``. The gradient in mu is gamma times
    ``sum u x - mu sum u``, with the u of the paper.

    Parameters
    ----------
    rows : CSR (m, d), float64
        The points of all labels, label by label: a point of two labels stands there twice.
    label : int array (m,)
        Whose point it is, from 0 on, ascending.
    positive : bool array (m,)
        Whether it has the label; at least one of each label.
    propensity : float64 array (number of labels,)
    gamma : float
    unit : bool
        Keep each mu at length 1.
    """

    def __init__(
        self,
        rows: sp.csr_matrix,
        label: np.ndarray,
        positive: np.ndarray,
        propensity: np.ndarray,
        gamma: float,
        unit: bool,
    ) -> None:
        self.label: np.ndarray = label
        self.positive: np.ndarray = positive
        self.gamma: float = gamma
        self.unit: bool = unit
        self.n_labels: int = len(propensity)
        self.n_features: int = rows.shape[1]
        self._p = propensity[label]
        self._sq_row = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        # All mu as one flat vector over the (label, feature) with a point, so that the rows of all labels
        # are one block-diagonal matrix: a product with it serves every label at once.
        key = np.repeat(label, np.diff(rows.indptr)).astype(np.int64) * self.n_features + rows.indices
        present = np.zeros(self.n_labels * self.n_features, bool)
        present[key] = True
        self.support: np.ndarray = np.flatnonzero(present)
        column = np.cumsum(present, dtype=np.int32)[key] - 1
        self._owner = self.support // self.n_features
        shape = (len(label), len(self.support))
        self._rows = sp.csr_matrix((rows.data, column, rows.indptr), shape=shape)
        self._columns = self._rows.T
        count = np.bincount(label, positive, self.n_labels)
        self.mu: NDArray[np.float64] = self._columns @ (positive / count[label])
        if unit:
            length = np.sqrt(self._sums(self.mu**2))
            self.mu /= np.where(length > 0, length, 1)[self._owner]

    def run(self, steps: int = STEPS) -> Ascent:
        """From the mean of the points that have the label, at most that many steps upwards. Returns self."""
        dot, sq_mu = self._rows @ self.mu, self._sums(self.mu**2)
        value, u = self._likelihood(dot, sq_mu)
        stretch = np.ones(self.n_labels)
        climbing = np.ones(self.n_labels, bool)
        for _ in range(steps):
            # A whole step leads to the weighted mean of the points, sum u x / sum u, scaled to length 1 if so
            # asked. Where many points without the label push, the divisor may vanish or turn negative.
            pull = self._columns @ u
            divisor = self._sums(self.mu * pull) if self.unit else self._total(u)
            scale = np.maximum(divisor, 0.1 * self._total(u * self.positive))
            step = (pull - divisor[self._owner] * self.mu) / scale[self._owner]
            sq_step = self._sums(step**2)
            climbing &= sq_step > TOLERANCE**2
            if not climbing.any():
                break
            dot_step, along = self._rows @ step, self._sums(self.mu * step)
            stretch = np.minimum(1, 2 * stretch)
            waiting, taken = climbing.copy(), np.zeros(self.n_labels)
            for _ in range(_HALVINGS):
                moved = dot + stretch[self.label] * dot_step
                sq_moved = sq_mu + stretch * (2 * along + stretch * sq_step)
                length = np.sqrt(sq_moved) if self.unit else np.ones(self.n_labels)
                length[length == 0] = 1
                reached, _ = self._likelihood(moved / length[self.label], sq_moved / length**2)
                enough = value + 1e-4 * self.gamma * stretch * scale * sq_step  # Armijo's rule
                accepted = waiting & (reached >= enough)
                taken[accepted] = stretch[accepted]
                waiting &= ~accepted
                if not waiting.any():
                    break
                stretch[waiting] /= 2
            climbing &= ~waiting  # at the limit of rounding
            self.mu += taken[self._owner] * step
            if self.unit:
                length = np.sqrt(self._sums(self.mu**2))
                self.mu /= np.where(climbing & (length > 0), length, 1)[self._owner]
            dot, sq_mu = self._rows @ self.mu, self._sums(self.mu**2)
            value, u = self._likelihood(dot, sq_mu)
        return self

    @property
    def log_likelihood(self) -> np.ndarray:
        """float64 (number of labels,): the logarithm of the likelihood at `mu`."""
        return self._likelihood(self._rows @ self.mu, self._sums(self.mu**2))[0]

    def solution(self) -> sp.csr_matrix:
        """The mu as float32 CSR (number of labels, d), without the traces that far points leave."""
        kept = np.abs(self.mu) > NEGLIGIBLE
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self._owner[kept], minlength=self.n_labels))])
        shape = (self.n_labels, self.n_features)
        data, features = self.mu[kept].astype(np.float32), self.support[kept] % self.n_features
        return sp.csr_matrix((data, features, indptr), shape=shape)

    def _likelihood(self, dot: np.ndarray, sq_mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of each label's likelihood, and the u of each point."""
        log_v = self.gamma / 2 * np.maximum(self._sq_row - 2 * dot + sq_mu[self.label], 0)
        tail = expit(-log_v)  # 1 / (1 + v)
        value = np.where(self.positive, -np.logaddexp(0, log_v), np.log1p(-self._p * tail))
        push = self._p * tail / (1 - self._p * tail)
        return self._total(value), (1 - tail) * np.where(self.positive, 1, -push)

    def _total(self, of_points: np.ndarray) -> np.ndarray:
        return np.bincount(self.label, of_points, self.n_labels)

    def _sums(self, of_terms: np.ndarray) -> np.ndarray:
        return np.bincount(self._owner, of_terms, self.n_labels)


def likelihood_means(
    X: Features,
    points: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    propensity: np.ndarray,
    start: LabelMeans,
    *,
    gamma: float,
    unit: bool,
    max_terms: int | None,
) -> LabelMeans:
    """The mu of eq. 6 in place of the means.

    Parameters
    ----------
    X : float32 array or CSR (n, d), rows of unit length
    points : int array
        The rows of X that count as training points.
    indptr, rows : int64 array (L + 1,), int32 array
        The rows of each label, ``rows[indptr[l]:indptr[l + 1]]``.
    propensity : float64 array (L,)
    start : LabelMeans
        The means of those rows, all terms: what is nearest to a label is nearest to its mean.
    """
    known = np.flatnonzero(np.diff(indptr))
    allowed = as_canonical(X)[points].T.tocsr()
    X = as_canonical(X).astype(np.float64)
    parts = [sp.csr_matrix((0, X.shape[1]), dtype=np.float32)]
    most = max(1, min(_LABELS, _TERMS // max(1, X.shape[1])))
    for block in _blocks(known, np.diff(indptr), most):
        own = [rows[indptr[label] : indptr[label + 1]] for label in block]
        others = _nearest_others(sp.csr_matrix(start.means[block]) @ allowed, points, own)
        groups = [group for pair in zip(own, others) for group in pair]
        sizes = np.array([len(group) for group in groups])
        label = np.repeat(np.arange(len(groups)) // 2, sizes)
        positive = np.repeat(np.arange(len(groups)) % 2 == 0, sizes)
        ascent = Ascent(X[np.concatenate(groups)], label, positive, propensity[block], gamma, unit)
        parts.append(ascent.run().solution())
    means = sp.vstack(parts, "csr")
    filled = np.concatenate([[0], np.cumsum(np.diff(indptr) > 0)])
    one_each = np.arange(len(known), dtype=np.int32)
    return LabelMeans.of_rows(
        means if sp.issparse(start.means) else means.toarray(),
        filled,
        one_each,
        start.max_sq_norm,
        max_terms=max_terms,
    )


def _blocks(labels: np.ndarray, counts: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Labels in runs of limited work."""
    begin, pairs = 0, 0
    for end, label in enumerate(labels):
        pairs += counts[label] + max(NEGATIVES, counts[label])
        if end > begin and (pairs > _PAIRS or end - begin == most):
            yield labels[begin:end]
            begin, pairs = end, counts[label] + max(NEGATIVES, counts[label])
    if begin < len(labels):
        yield labels[begin:]


def _nearest_others(similar: sp.csr_matrix, points: np.ndarray, own: list[np.ndarray]) -> list[np.ndarray]:
    """For each label the points not its own that are most similar to its mean, by similarity > 0."""
    wanted = [max(NEGATIVES, len(rows)) for rows in own]
    most = max(k + len(rows) for k, rows in zip(wanted, own))
    order, scores = _core.top_k_listed(*csr_parts(similar), most, 1)
    others = []
    for best, score, rows, k in zip(order, scores, own, wanted):
        found = points[best[score > 0]]
        others.append(found[~np.isin(found, rows)][:k])
    return others

"""Seeded generators: a small multi-label task, and one with the statistics of an extreme data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from metarank.data.dataset import Dataset
from metarank.metrics.propensity import inv_propensity
from metarank.types.checks import indicator


def make_multilabel(
    n_rows: int = 1000,
    n_features: int = 20,
    n_labels: int = 6,
    *,
    labels_per_row: float = 2.0,
    noise: float = 0.3,
    seed: int = 0,
    sparse: bool = False,
) -> Dataset:
    """A multi-label task of moderate size: each label is a noisy half-space, and labels share directions.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
    labels_per_row : float
        Mean number of labels per row, below 0.9 L. Label l is relevant for a share of the rows that falls
        like 1 / (l + 2), at most 0.9.
    noise : float
        Standard deviation of the noise added to the (unit-variance) score of each label.
    seed : int
    sparse : bool
        Whether features are like words: non-negative, nine in ten zero, rows of unit length.

    Raises
    ------
    ValueError
        If `labels_per_row` is out of range.

    Examples
    --------
    >>> make_multilabel(200, 10, 4, labels_per_row=1.5)
    Dataset('multilabel': 200 rows, 10 features (dense), 4 labels, 1.50 labels per row)
    """
    if not 0 < labels_per_row < 0.9 * n_labels:
        raise ValueError(f"labels_per_row must lie in (0, {0.9 * n_labels:g}), got {labels_per_row!r}")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    if sparse:
        X = np.abs(X) * (rng.random(X.shape) < 0.1)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    n_directions = max(2, n_labels // 2)
    directions = rng.normal(size=(n_features, n_directions)) @ rng.normal(size=(n_directions, n_labels))
    scores = X @ directions
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-12)
    scores += noise * rng.normal(size=scores.shape)
    n_relevant = np.rint(_shares(1 / (np.arange(n_labels) + 2.0), labels_per_row) * n_rows).astype(int)
    rank = np.argsort(np.argsort(-scores, axis=0, kind="stable"), axis=0)
    return Dataset(X, sp.csr_matrix(rank < n_relevant), name="multilabel")


def _shares(weights: np.ndarray, total: float) -> np.ndarray:
    """Shares proportional to the weights, at most 0.9, that sum to `total`."""
    low, high = 0.0, 1.0 / weights.min()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * weights, 0.9).sum() < total else (low, middle)
    return np.minimum(high * weights, 0.9)


def make_extreme(
    n_rows: int = 10_000,
    n_features: int = 5_000,
    n_labels: int = 1_000,
    *,
    labels_per_row: float = 3.0,
    exponent: float = 1.0,
    nnz_per_row: float = 50.0,
    missing: tuple[float, float] | None = None,
    seed: int = 0,
) -> Dataset:
    """Sparse text-like rows with a long tail of labels, with given statistics.

    Labels come in topics: a row's first label is drawn by frequency (rank^-exponent), each further one
    from the same topic or, as often, from all. Each label has its own words (eight, or half a row's
    mean number). Six tenths of a row's words are words of its labels; the others are background, whose
    frequency falls like 1/rank. Values are inverse document frequencies, rows of unit length.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
    labels_per_row : float
        Mean number of distinct labels per row, at least 1 (one plus a Poisson number).
    exponent : float
        Exponent of the power law of label frequencies; 0 makes all labels equally frequent.
    nnz_per_row : float
        Mean number of distinct words per row.
    missing : (A, B) or None
        Propensity curve (Jain 2016, eq. 1): each relevant pair (i, l) of the complete data is kept with
        probability p_l, computed from the complete labels. Those are the labels of the same call without it.
    seed : int

    Raises
    ------
    ValueError
        If a mean is out of range.

    Examples
    --------
    >>> seen, complete = (make_extreme(500, 300, 100, missing=curve) for curve in ((0.55, 1.5), None))
    >>> (seen.X != complete.X).nnz, seen.Y.nnz < complete.Y.nnz
    (0, True)
    """
    if not 1 <= labels_per_row <= max(1, n_labels / 2):
        raise ValueError(f"labels_per_row must lie in [1, {max(1, n_labels / 2):g}], got {labels_per_row!r}")
    if not 1 <= nnz_per_row <= max(1, n_features / 2):
        raise ValueError(f"nnz_per_row must lie in [1, {max(1, n_features / 2):g}], got {nnz_per_row!r}")
    rng = np.random.default_rng(seed)
    Y = _draw_labels(n_rows, n_labels, labels_per_row, exponent, rng)
    X = _draw_words(Y, n_features, nnz_per_row, rng)
    if missing is not None:
        Y.data[rng.random(Y.nnz) >= 1 / inv_propensity(Y, *missing)[Y.indices]] = 0
        Y.eliminate_zeros()
    return Dataset(X, Y, name="extreme")


def _draw_labels(
    n_rows: int, n_labels: int, per_row: float, exponent: float, rng: np.random.Generator
) -> sp.csr_matrix:
    n_topics = max(1, int(np.sqrt(n_labels)))
    rank = rng.permutation(n_labels)  # an id says nothing about its frequency
    topic_size = -(-n_labels // n_topics)
    # Labels topic by topic, so that a topic is an interval of the cumulative frequencies.
    by_topic = np.argsort(rng.permutation(n_labels) // topic_size, kind="stable")
    cumulative = np.concatenate([[0], np.cumsum((rank[by_topic] + 1.0) ** -exponent)])

    def draw(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        at = np.searchsorted(cumulative, low + rng.random(len(low)) * (high - low), side="right") - 1
        return np.minimum(at, n_labels - 1)

    everything = np.full(n_rows, cumulative[-1])
    first = draw(np.zeros(n_rows), everything)
    topic_start = first // topic_size * topic_size
    low, high = cumulative[topic_start], cumulative[np.minimum(topic_start + topic_size, n_labels)]

    def more(rows: np.ndarray) -> np.ndarray:
        is_typical = rng.random(len(rows)) < 0.5
        return draw(np.where(is_typical, low[rows], 0), np.where(is_typical, high[rows], cumulative[-1]))

    wanted = np.minimum(1 + rng.poisson(per_row - 1, n_rows), n_labels)
    row, position = _draw_distinct(wanted, n_labels, more, np.arange(n_rows), first)
    return indicator(row, by_topic[position], (n_rows, n_labels))


def _draw_words(Y: sp.csr_matrix, n_words: int, per_row: float, rng: np.random.Generator) -> sp.csr_matrix:
    n_rows, n_labels = Y.shape
    own_words = rng.integers(0, n_words, (n_labels, max(8, round(per_row / 2))))
    background = np.cumsum(1 / (rng.permutation(n_words) + 2.0))
    n_own = np.diff(Y.indptr)

    def draw(rows: np.ndarray) -> np.ndarray:
        label = Y.indices[Y.indptr[rows] + (rng.random(len(rows)) * n_own[rows]).astype(int)]
        word = own_words[label, rng.integers(0, own_words.shape[1], len(rows))]
        other = np.searchsorted(background, rng.random(len(rows)) * background[-1], side="right")
        return np.where(rng.random(len(rows)) < 0.6, word, np.minimum(other, n_words - 1))

    none = np.empty(0, np.int64)
    row, word = _draw_distinct(np.clip(rng.poisson(per_row, n_rows), 1, n_words), n_words, draw, none, none)
    idf = np.log((1 + n_rows) / (1 + np.bincount(word, minlength=n_words))) + 1
    X = indicator(row, word, (n_rows, n_words))
    values = idf[X.indices]
    length = np.sqrt(np.add.reduceat(values**2, X.indptr[:-1]))  # no row is empty
    X.data = (values / np.repeat(length, np.diff(X.indptr))).astype(np.float32)
    return X


def _draw_distinct(
    wanted: np.ndarray, n_ids: int, draw: Callable[[np.ndarray], np.ndarray], row: np.ndarray, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add draws to (row, id) pairs until each row holds `wanted` distinct ids.

    The last few of a row that keeps drawing what it has (its labels have too few words) are given up
    after 20 rounds.
    """
    done, keys, lacking = [], np.sort(row * n_ids + ids), wanted.copy()
    np.subtract.at(lacking, row, 1)
    for _ in range(20):
        rows = np.repeat(np.arange(len(wanted)), lacking)
        keys = np.unique(np.concatenate([keys, rows * n_ids + draw(rows)]))
        lacking = wanted - np.bincount(keys // n_ids, minlength=len(wanted))
        # Rows that are complete step aside: later rounds concern ever fewer.
        open_row = lacking > 0
        complete = ~open_row[keys // n_ids]
        done.append(keys[complete])
        keys = keys[~complete]
        wanted = np.where(open_row, wanted, 0)
        lacking = np.where(open_row, lacking, 0)
        if not open_row.any():
            break
    keys = np.concatenate([*done, keys])
    return keys // n_ids, keys % n_ids

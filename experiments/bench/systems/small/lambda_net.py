"""LambdaRank (Burges, Ragno & Le 2007): a network that learns by lambdas."""

from __future__ import annotations

import numpy as np

from metarank.types.feature_table import FeatureTable

# As the paper has it for all that learns by stochastic gradients (3.4).
EPOCHS = 50
HIDDEN = 10
# Lists whose gradients are taken together.
BATCH = 4


class LambdaNet:
    """One hidden layer of tanh units on standardised columns; lists of equal length with 0/1 gains.

    For a relevant i and an irrelevant j the lambda is the change of nDCG if they changed places, over
    1 + exp(s_i - s_j); it draws s_i up and s_j down. The step falls to nothing over the epochs.

    Parameters
    ----------
    rate : first step
    seed : of the weights to begin with, and of the order of the lists
    """

    def __init__(self, rate: float = 0.1, seed: int = 0) -> None:
        self.rate = rate
        self.seed = seed

    def fit(self, values: np.ndarray, Y: np.ndarray) -> LambdaNet:
        """Learn from the pairs (n * L, d) of lists with labels Y, bool (n, L)."""
        n, n_labels = Y.shape
        self.mean = values.mean(axis=0, dtype=np.float64).astype(np.float32)
        spread = values.std(axis=0, dtype=np.float64)
        self.scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0).astype(np.float32)
        Z = ((values - self.mean) * self.scale).reshape(n, n_labels, -1)
        rng = np.random.default_rng(self.seed)
        d = Z.shape[2]
        self.V = rng.normal(size=(d, HIDDEN)).astype(np.float32) / np.float32(np.sqrt(d))
        self.b = np.zeros(HIDDEN, np.float32)
        self.w = rng.normal(size=HIDDEN).astype(np.float32) / np.float32(np.sqrt(HIDDEN))
        lists = np.flatnonzero(Y.any(axis=1) & ~Y.all(axis=1))
        n_steps, step = EPOCHS * (-(-len(lists) // BATCH)), 0
        for _ in range(EPOCHS):
            drawn = rng.permutation(lists)
            for start in range(0, len(drawn), BATCH):
                some = drawn[start : start + BATCH]
                self._step(Z[some], Y[some], self.rate * (1 - step / n_steps))
                step += 1
        return self

    def _step(self, Z: np.ndarray, Y: np.ndarray, rate: float) -> None:
        hidden = np.tanh(Z @ self.V + self.b)
        slope = lambdas(hidden @ self.w, Y) / len(Z)
        of_hidden = slope[:, :, None] * self.w * (1 - hidden * hidden)
        change = np.tensordot(slope, hidden, 2)
        self.V += np.float32(rate) * np.tensordot(Z, of_hidden, ((0, 1), (0, 1)))
        self.b += np.float32(rate) * of_hidden.sum(axis=(0, 1))
        self.w += np.float32(rate) * change

    def score_table(self, table: FeatureTable) -> np.ndarray:
        """float64 (m,)"""
        Z = (table.values - self.mean) * self.scale
        return (np.tanh(Z @ self.V + self.b) @ self.w).astype(np.float64)


def lambdas(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """For each pair of some lists, (n, L), the sum of its lambdas: what draws its score up, float32.

    Examples
    --------
    Two labels, the relevant one second. If they changed places nDCG would rise by 1 - 1 / log2(3) = 0.369;
    equal scores halve it.

    >>> lambdas(np.zeros((1, 2)), np.array([[False, True]])).round(3)
    array([[-0.185,  0.185]], dtype=float32)
    """
    n_labels = scores.shape[1]
    order = np.argsort(-scores, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(n_labels), scores.shape), axis=1)
    discount = 1 / np.log2(2 + np.arange(n_labels))
    ideal = np.cumsum(discount)[Y.sum(axis=1) - 1]
    share = discount[rank] / ideal[:, None]
    row, i = np.nonzero(Y)
    gap = np.clip(scores[row, i][:, None] - scores[row], -30, 30)
    change = np.abs(share[row, i][:, None] - share[row])
    pull = np.where(Y[row], 0, change / (1 + np.exp(gap)))
    out = np.zeros(scores.shape, np.float32)
    np.add.at(out, row, -pull)
    out[row, i] += pull.sum(axis=1)
    return out

"""A multi-layer perceptron with two hidden layers (ReLU) and Adam, trained on pairs within batches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.special import expit

# Scores of a batch and its rows to the derivative of the loss in the scores.
Gradient = Callable[[np.ndarray, np.ndarray], np.ndarray]


def pairwise_gradient(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Derivative of the mean logistic loss over a batch's pairs, costs |y - y'|; zeros without a pair."""
    cost = np.maximum(target[:, None] - target, 0)
    total = cost.sum()
    if total == 0:
        return np.zeros(len(scores))
    push = cost * expit(scores - scores[:, None]) / total
    return push.sum(axis=0) - push.sum(axis=1)


class Perceptron:
    """Input, `hidden`, `hidden`, one score; He initialisation, float32."""

    def __init__(self, n_inputs: int, hidden: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = (n_inputs, hidden, hidden, 1)
        self.weights = []
        for fan_in, fan_out in pairwise(sizes):
            self.weights.append((rng.normal(size=(fan_in, fan_out)) * np.sqrt(2 / fan_in)).astype(np.float32))
            self.weights.append(np.zeros(fan_out, np.float32))

    def _forward(self, X: np.ndarray) -> list[np.ndarray]:
        layers = [X]
        for w, b in zip(self.weights[:-2:2], self.weights[1:-2:2]):
            layers.append(np.maximum(layers[-1] @ w + b, 0))
        return [*layers, layers[-1] @ self.weights[-2] + self.weights[-1]]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._forward(X.astype(np.float32))[-1][:, 0].astype(np.float64)

    def fit(
        self, X: np.ndarray, gradient: Gradient, *, epochs: int, batch: int, rate: float, seed: int
    ) -> Perceptron:
        """Adam with its usual decays."""
        X = X.astype(np.float32)
        rng = np.random.default_rng(seed)
        first, second = ([np.zeros_like(w) for w in self.weights] for _ in range(2))
        step = 0
        for _ in range(epochs):
            order = rng.permutation(len(X))
            for start in range(0, len(X) - batch + 1, batch):
                step += 1
                rows = order[start : start + batch]
                slopes = self._backward(X[rows], gradient, rows)
                scale = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                for w, m, v, g in zip(self.weights, first, second, slopes):
                    m += 0.1 * (g - m)
                    v += 0.001 * (g * g - v)
                    w -= scale * m / (np.sqrt(v) + 1e-8)
        return self

    def _backward(self, X: np.ndarray, gradient: Gradient, rows: np.ndarray) -> list[np.ndarray]:
        layers = self._forward(X)
        down = gradient(layers[-1][:, 0].astype(np.float64), rows)[:, None].astype(np.float32)
        slopes: list[np.ndarray] = []
        for i in range(len(layers) - 2, -1, -1):
            slopes = [layers[i].T @ down, down.sum(axis=0), *slopes]
            if i:
                down = (down @ self.weights[2 * i].T) * (layers[i] > 0)
        return slopes

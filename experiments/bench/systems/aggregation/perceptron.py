"""Table 6: a perceptron trained on pairs of synthetic rows, the second label more or less skewed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import metarank
from systems.aggregation.theory import eta_of, expected_auc, grid, shift_of

LABEL, LOSS = "label aggregation", "loss aggregation"
# Seeds of each objective.
SEEDS = {"first alone": 1, "second alone": 1, LABEL: 10, LOSS: 10}
SLOPE = 20.0
ROWS, EPOCHS, BATCH, HIDDEN, RATE = 8000, 50, 128, 256, 1e-3

# Scores of a batch and its rows to the derivative of the loss in the scores.
Gradient = Callable[[np.ndarray, np.ndarray], np.ndarray]


def targets_of(objective: str, Y: np.ndarray) -> np.ndarray:
    """(n, targets): the loss is the mean of those of the targets."""
    if objective == LABEL:
        return Y.sum(axis=1, keepdims=True)
    return Y if objective == LOSS else Y[:, [list(SEEDS).index(objective)]]


def pairwise_gradient(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Derivative of the mean over targets of the mean logistic loss of all pairs, costs |y - y'|."""
    cost = np.zeros((len(scores), len(scores)), scores.dtype)
    for target in targets.T.astype(scores.dtype):
        above = np.maximum(target[:, None] - target, 0)
        cost += above / max(above.sum(), 1e-9) / targets.shape[1]
    push = cost * expit(scores - scores[:, None])
    return push.sum(axis=0) - push.sum(axis=1)


class Perceptron:
    """Input, `hidden`, `hidden`, one score, ReLU between; He initialisation; Adam with its usual decays."""

    def __init__(self, n_inputs: int, hidden: int, seed: int, dtype: type = np.float32) -> None:
        rng, sizes = np.random.default_rng(seed), (n_inputs, hidden, hidden, 1)
        self._shapes = [shape for a, b in pairwise(sizes) for shape in ((a, b), (b,))]
        self.flat = np.zeros(sum(int(np.prod(shape)) for shape in self._shapes), dtype)
        self.weights = self._views(self.flat)
        for w in self.weights[::2]:
            w[:] = rng.normal(size=w.shape) * np.sqrt(2 / len(w))

    def _views(self, flat: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), self._shapes)]

    def _forward(self, X: np.ndarray) -> list[np.ndarray]:
        layers = [X]
        for w, b in zip(self.weights[:-2:2], self.weights[1:-2:2]):
            layers.append(np.maximum(layers[-1] @ w + b, 0))
        return [*layers, layers[-1] @ self.weights[-2] + self.weights[-1]]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._forward(X.astype(self.flat.dtype))[-1][:, 0].astype(np.float64)

    def fit(
        self, X: np.ndarray, gradient: Gradient, *, epochs: int, batch: int, rate: float, seed: int
    ) -> Perceptron:
        X, rng = X.astype(self.flat.dtype), np.random.default_rng(seed)
        slope, first, second, change = (np.zeros_like(self.flat) for _ in range(4))
        step = 0
        for _ in range(epochs):
            order = rng.permutation(len(X))
            for start in range(0, len(X) - batch + 1, batch):
                step += 1
                rows = order[start : start + batch]
                self.backward(X[rows], gradient, rows, slope)
                first += 0.1 * (slope - first)
                second += 0.001 * (slope * slope - second)
                np.sqrt(second, out=change)
                change += 1e-8
                np.divide(first, change, out=change)
                change *= rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                self.flat -= change
        return self

    def backward(self, X: np.ndarray, gradient: Gradient, rows: np.ndarray, out: np.ndarray) -> None:
        """The derivative of the loss in all weights, into `out`."""
        layers, slopes = self._forward(X), self._views(out)
        down = gradient(layers[-1][:, 0], rows)[:, None]
        for i in range(len(layers) - 2, -1, -1):
            np.matmul(layers[i].T, down, out=slopes[2 * i])
            down.sum(axis=0, out=slopes[2 * i + 1])
            if i:
                down = (down @ self.weights[2 * i].T) * (layers[i] > 0)


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed = metarank.__version__, params["random_state"]
        self.share, self.seeds = params["share"], params.get("seeds", SEEDS)
        self.rows, self.epochs = params.get("rows", ROWS), params.get("epochs", EPOCHS)

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(seeds, 2) by objective: expected AUCs of both labels; a seed has the same rows and the same first
        weights for all objectives."""
        found = {name: [self.areas(name, i) for i in range(seeds)] for name, seeds in self.seeds.items()}
        return {}, {name: np.array(areas) for name, areas in found.items()}

    def areas(self, objective: str, number: int) -> list[float]:
        rng = np.random.default_rng([self.seed, 4, round(1000 * self.share), number])
        x = grid(200)
        shift = shift_of(x, SLOPE, self.share)
        X = rng.uniform(-1, 1, (self.rows, 2))
        Y = rng.random((self.rows, 2)) < eta_of(X, SLOPE, shift)
        targets = targets_of(objective, Y.astype(np.float32))
        model = Perceptron(2, HIDDEN, number)
        model.fit(
            X, lambda scores, rows: pairwise_gradient(scores, targets[rows]),
            epochs=self.epochs, batch=BATCH, rate=RATE, seed=number,
        )  # fmt: skip
        scores = model.predict(x)
        return [expected_auc(scores, eta) for eta in eta_of(x, SLOPE, shift).T]

"""Table 6: a trained perceptron on synthetic data, the second label more and more skewed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bayes_curves import LABEL, LOSS, eta_of, shift_of
from chapter import Chapter, Settings, table, with_error
from perceptron import Perceptron, pairwise_gradient

from metarank.objectives import per_label_auc

PAPER = json.loads((Path(__file__).parent / "paper.json").read_text())["table 6"]
OBJECTIVES = ("first alone", "second alone", LABEL, LOSS)
SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)
# Nearly deterministic labels, of which the paper's claim speaks, and noisy ones.
SLOPE, NOISY = 100.0, 10.0
_TRAIN, _TEST, _EPOCHS, _BATCH, _HIDDEN, _RATE, _SEEDS = 8000, 2000, 50, 128, 256, 1e-3, 2


def draw(slope: float, share: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x uniform on [-1, 1]^2, labels independent given x."""
    x = rng.uniform(-1, 1, (n, 2))
    many = np.random.default_rng(0).uniform(-1, 1, (100_000, 2))
    eta = eta_of(x, slope, shift_of(many, slope, share))
    return x, (rng.random((n, 2)) < eta).astype(float)


def gradient_of(objective: str, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    if objective == LABEL:
        return pairwise_gradient(scores, Y.sum(axis=1))
    if objective == LOSS:
        return (pairwise_gradient(scores, Y[:, 0]) + pairwise_gradient(scores, Y[:, 1])) / 2
    return pairwise_gradient(scores, Y[:, OBJECTIVES.index(objective)])


def areas_of(objective: str, slope: float, share: float, number: int, settings: Settings) -> np.ndarray:
    """AUCs of one trained perceptron on fresh rows."""
    rng = np.random.default_rng([settings.seed, 4, round(1000 * share), number])
    n, epochs = (1024, 2) if settings.quick else (_TRAIN, _EPOCHS)
    X, Y = draw(slope, share, n, rng)
    X_test, Y_test = draw(slope, share, _TEST, rng)
    model = Perceptron(2, _HIDDEN, number)
    model.fit(
        X, lambda scores, rows: gradient_of(objective, scores, Y[rows]),
        epochs=epochs, batch=_BATCH, rate=_RATE, seed=number,
    )  # fmt: skip
    return per_label_auc(model.predict(X_test), Y_test)


def differences(
    objectives: Sequence[str], slope: float, seeds: int, settings: Settings
) -> dict[str, np.ndarray]:
    """(shares, seeds) of each objective: Diff AUC."""
    return {
        name: np.array(
            [
                [float(np.ptp(areas_of(name, slope, share, i, settings))) for i in range(seeds)]
                for share in SHARES
            ]
        )
        for name in objectives
    }


def chapter(settings: Settings) -> Chapter:
    seeds = 1 if settings.quick else _SEEDS
    diff = differences(OBJECTIVES, SLOPE, seeds, settings)
    noisy = differences((LABEL, LOSS), NOISY, 1, settings)
    out = Chapter("A trained perceptron on synthetic data (Table 6)")
    for i, share in enumerate(SHARES[1:], start=1):
        label, loss = diff[LABEL][i].mean(), diff[LOSS][i].mean()
        out.claim(
            f"slope {SLOPE:g}, pi_2 = {share:g}: Diff AUC of label aggregation {label:.3f} below loss "
            f"aggregation's {loss:.3f}",
            label < loss,
        )
    alone = min(diff[name].mean(axis=1).min() for name in OBJECTIVES[:2])
    both = max(diff[name].mean(axis=1).max() for name in (LABEL, LOSS))
    out.claim(
        f"either label alone leaves a far greater difference (at least {alone:.2f}) than either aggregation "
        f"(at most {both:.2f})",
        alone > both,
    )
    rows = []
    for name in OBJECTIVES:
        rows.append([name, *(with_error(values) for values in diff[name])])
        rows.append(["*paper, settings unknown*", *(f"*{value:.2f}*" for value in PAPER[name])])
    rows += [[f"{name}, slope {NOISY:g}", *(f"{v.mean():.3f}" for v in noisy[name])] for name in noisy]
    out.text = (
        "Diff AUC. x is uniform on [-1, 1]^2, eta_1 = sigmoid(a x_1), eta_2 = sigmoid(a (x_2 - b)) with b "
        "chosen for "
        "pi_2. The paper draws directions and shifts at random and its skews are lost, so columns do not "
        "correspond. "
        f"The slope a is {SLOPE:g}, nearly deterministic; the last rows have noisy labels, a = {NOISY:g}, "
        "where the "
        f"order is the reverse, as it is for the Bayes-optimal scorers above. {_TRAIN} training and {_TEST} "
        "test "
        f"rows, perceptron of two hidden layers of {_HIDDEN} ReLU units, Adam with rate {_RATE:g}, {_EPOCHS} "
        "epochs "
        f"of batches of {_BATCH}, all pairs of a batch, {seeds} seeds (mean ± standard error; one seed where "
        "noisy)."
        "\n\n" + table(["objective", *(f"pi_2 = {share:g}" for share in SHARES)], rows)
    )
    return out

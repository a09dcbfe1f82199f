"""Figure 3: labels that were there go missing, so that the complete ground truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import SEED, Figures, Problem
from unbiased import unbiased

from metarank.metrics import evaluate
from metarank.metrics.propensity import PRESETS, inv_propensity
from metarank.shortlist import FastXML, PfastXML

B = PRESETS["default"][1]
CURVES = tuple((a, B) for a in (0.1, 0.3, 0.55, 0.8, 1.2))
REFERENCE_CURVE = PRESETS["default"]
ESTIMATES = ("nDCG@3", "P@3")
JUDGED = "nDCG@3"
TEST_MASKINGS = 50
TRAINING_MASKINGS = 2
_K = 10


def masked(Y: sp.csr_matrix, weight: np.ndarray, rng: np.random.Generator) -> sp.csr_matrix:
    """Y without those labels that go missing: each pair stays with probability 1 / weight of its label."""
    kept = rng.random(Y.nnz) * weight[Y.indices] < 1
    indptr = np.concatenate([[0], np.cumsum(kept)])[Y.indptr]
    return sp.csr_matrix((Y.data[kept], Y.indices[kept], indptr), shape=Y.shape)


def weighted(Y: sp.csr_matrix, weight: np.ndarray) -> sp.csr_matrix:
    """Y with the weight of its label for every pair: the relevances that PfastXML trains on."""
    return sp.csr_matrix((weight[Y.indices].astype(np.float32), Y.indices, Y.indptr), shape=Y.shape)


def curve_weights(problem: Problem, curve: tuple[float, float]) -> np.ndarray:
    """1 / p of each label by a curve of the complete training counts."""
    return inv_propensity(problem.Y, *curve)


def estimates(problem: Problem) -> list[Figures]:
    """(a) and (b): of each curve the labels missing, and metrics of the test labels that are left."""
    found = FastXML(relevance="binary").fit(problem.X, problem.Y).shortlist(problem.X_test, k=_K)
    complete = unbiased(problem.Y_test, found, ESTIMATES)
    rows = []
    for number, curve in enumerate(CURVES):
        weight = curve_weights(problem, curve)
        plain: dict[str, list[float]] = {name: [] for name in ESTIMATES}
        weighed: dict[str, list[float]] = {name: [] for name in ESTIMATES}
        for rng in _generators(number, TEST_MASKINGS):
            left = masked(problem.Y_test, weight, rng)
            for values, w in ((plain, None), (weighed, weight)):
                for name, value in unbiased(left, found, ESTIMATES, inv_propensity=w).items():
                    values[name].append(value)
        rows += [
            {
                "curve": list(curve),
                "missing": float(1 - np.mean(1 / weight[problem.Y.indices])),
                "metric": name,
                "complete": complete[name],
                "plain": float(np.mean(plain[name])),
                "unbiased": float(np.mean(weighed[name])),
                "error": float(np.std(weighed[name], ddof=1) / np.sqrt(TEST_MASKINGS)),
            }
            for name in ESTIMATES
        ]
    return rows


def training(problem: Problem) -> list[Figures]:
    """(c): trained on what is left by each curve, without propensities and with the right ones."""
    rows = []
    for number, curve in enumerate(CURVES):
        weight = curve_weights(problem, curve)
        made: dict[str, list[float]] = {"FastXML": [], "PfastXML": []}
        for i, rng in enumerate(_generators(number, TRAINING_MASKINGS)):
            left = masked(problem.Y, weight, rng)
            made["FastXML"].append(_judged(problem, FastXML(relevance="binary", random_state=i), left))
            model = PfastXML(relevance="graded", random_state=i)
            made["PfastXML"].append(_judged(problem, model, weighted(left, weight)))
        rows.append({"curve": list(curve), **made})
    return rows


def wrong_curves(problem: Problem) -> list[Figures]:
    """(d): labels go missing by the reference curve; PfastXML trained with it, with others, with none."""
    right, number = curve_weights(problem, REFERENCE_CURVE), CURVES.index(REFERENCE_CURVE)
    ways: dict[str, Any] = {"none": None, "right": right}
    ways |= {
        f"A = {a:g}, B = {b:g}": curve_weights(problem, (a, b))
        for a, b in (*CURVES, PRESETS["wikipedia"], PRESETS["amazon"])
        if (a, b) != REFERENCE_CURVE
    }
    rows: dict[str, list[float]] = {name: [] for name in (*ways, "default, of what is left")}
    for i, rng in enumerate(_generators(number, TRAINING_MASKINGS)):
        left = masked(problem.Y, right, rng)
        for name, weight in ways.items():
            model = PfastXML(relevance="graded", random_state=i)
            Y = left if weight is None else weighted(left, weight)
            rows[name].append(_judged(problem, model, Y))
        # What a user does, who has no complete counts.
        rows["default, of what is left"].append(_judged(problem, PfastXML(random_state=i), left))
    return [{"propensities": name, JUDGED: values} for name, values in rows.items()]


def _judged(problem: Problem, model: FastXML, Y: sp.csr_matrix) -> float:
    """On the complete test labels."""
    found = model.fit(problem.X, Y).shortlist(problem.X_test, k=_K)
    return float(evaluate(problem.Y_test, found, [JUDGED])[JUDGED])


def _generators(number: int, n: int) -> Iterator[np.random.Generator]:
    """One a masking, the same for all systems."""
    return (np.random.default_rng([SEED, number, i]) for i in range(n))

"""Eq. 6 against eq. 7: labels re-ranked by the maximum of the likelihood, and by the mean of their points."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from borrowed import SEED, Figures, Problem
from collection import allowed, weights
from tail_likelihood import likelihood_means

from metarank import Candidates
from metarank.metrics.inputs import Inputs
from metarank.metrics.propensity import inv_propensity
from metarank.scorers.neighbors.label_means import LabelMeans
from metarank.shortlist import PfastreXML
from metarank.types.arrays import unit_rows
from metarank.types.view import TrainingSet

KS = (1, 3, 5)
# Whether means have unit length, and gamma; whole means. The first is as published.
FORMS = {"as published": (False, 30.0), "unit length": (True, 30.0), "unit length, gamma 3": (True, 3.0)}
ALPHA = 0.8
# The longest that a mean of rows of unit length can be, squared.
LONGEST = 1.0
_RESAMPLES = 1000


def both_solutions(problem: Problem) -> list[Figures]:
    """PSP@k by either solution, and the standard error of the difference over test points drawn anew.

    The trees of both are the same.
    """
    rows = []
    for form, (unit, gamma) in FORMS.items():
        gains: dict[tuple[str, int], np.ndarray] = {}
        best: dict[int, np.ndarray] = {}
        row: Figures = {"form": form}
        for solution in ("means", "likelihood"):
            how = {"unit_means": unit, "gamma": gamma, "max_terms": None, "name_weight": 0}
            model = PfastreXML(alpha=ALPHA, **how)
            begun = time.process_time()
            model.fit(problem.X, problem.Y)
            if solution == "likelihood":
                assert model.tail_ is not None
                model.tail_.means_ = _likeliest(problem, gamma, unit)
            row[f"{solution} s"] = time.process_time() - begun
            # One more: a document of pydocs is not proposed as its own label.
            found = model.shortlist(problem.X_test, k=max(KS) + 1)
            for k in KS:
                gains[solution, k], best[k] = gains_of_rows(problem, found, k)
        for k in KS:
            a, b, whole = gains["likelihood", k], gains["means", k], best[k]
            row[f"likelihood {k}"] = float(a.sum() / whole.sum())
            row[f"means {k}"] = float(b.sum() / whole.sum())
            row[f"error {k}"] = spread(a - b, whole)
        rows.append(row)
    return rows


def _likeliest(problem: Problem, gamma: float, unit: bool) -> LabelMeans:
    """The maximum of the likelihood in the place of the means."""
    view = TrainingSet(problem.X, problem.Y, np.zeros(problem.X.shape[0], np.int32)).view()
    X = unit_rows(sp.csr_matrix(view.X))
    start = LabelMeans.of_rows(X, *view.rows_by_label, LONGEST)
    propensity = 1 / inv_propensity(problem.Y)
    return likelihood_means(
        X, view.rows, *view.rows_by_label, propensity, start, gamma=gamma, unit=unit, max_terms=None
    )


def gains_of_rows(problem: Problem, found: Candidates, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each test point, the weights of its labels among the first k found, and the most there could be."""
    weight, Y = weights(problem), problem.Y_test
    rank = Inputs(Y, allowed(problem, found), inv_propensity=weight).rank
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    gain = np.bincount(row, weight[Y.indices] * (rank <= k), minlength=Y.shape[0])
    best = [-np.sort(-weight[labels])[:k].sum() for labels in np.split(Y.indices, Y.indptr[1:-1])]
    # The positive of the negative: 0.0, not -0.0, of a point without labels.
    return gain, np.abs(np.array(best))


def spread(gained: np.ndarray, best: np.ndarray) -> float:
    """The standard deviation of a share of the best over points drawn with replacement."""
    rng, n = np.random.default_rng(SEED), len(best)
    draws = (rng.integers(n, size=n) for _ in range(_RESAMPLES))
    return float(np.std([gained[drawn].sum() / best[drawn].sum() for drawn in draws]))

"""What held-out training points say of the weight of the tail classifiers, by how they are held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from borrowed import SEED, Figures, Problem
from likelihood import KS, gains_of_rows, spread

from metarank.shortlist import PfastreXML
from metarank.types.view import TrainingSet

ALPHAS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_FOLDS = 5
_TREES = (10, 50)


def by_alpha(problem: Problem) -> list[Figures]:
    """PSP@1, 3 and 5 for each alpha: means over five folds of the training points, and of the test points.

    Held-out points are judged as they are, and without the features that no other point has, which test
    points lack as well. Labels that the other points do not have are left out, as test parts were made.
    """
    n = problem.X.shape[0]
    fold = np.random.default_rng(SEED).permutation(n) % _FOLDS
    rows: list[Figures] = []
    for trees in _TREES:
        sums: dict[str, np.ndarray] = {}
        for held_out in range(_FOLDS):
            inside = fold == held_out
            data = TrainingSet(problem.X, problem.Y, fold.astype(np.int32))
            others, own = (data.view().part(np.flatnonzero(part)) for part in (~inside, inside))
            part = replace(problem, X=others.X, Y=others.Y, X_test=own.X, Y_test=_known(own.Y, others.Y))
            model = _fitted(part, trees)
            for way, X in (("as they are", own.X), ("as new ones", own.X_as_new_to(others))):
                values = np.array([_gains(replace(part, X_test=X), model, alpha)[0] for alpha in ALPHAS])
                sums[way] = sums.get(way, 0) + values / _FOLDS
        rows += [_row(f"held out, {way}", trees, values) for way, values in sums.items()]
        model = _fitted(problem, trees)
        made = [_gains(problem, model, alpha) for alpha in ALPHAS]
        rows.append(_row("test", trees, np.array([values for values, _, _ in made])))
        gains, best = [gain for _, gain, _ in made], made[0][2]
        rows[-1]["errors"] = [spread(gain - gains[0], best) for gain in gains]
    return rows


def lengths(problem: Problem) -> list[Figures]:
    """Test points by how many features they have, and PSP@1 of points of that length for each alpha."""
    model = _fitted(problem, _TREES[-1])
    made = [_gains(problem, model, alpha)[1:] for alpha in ALPHAS]
    count = np.diff(problem.X_test.indptr)
    shares = [np.diff(problem.X.indptr), count]
    rows = []
    for low, high in ((1, 1), (2, 2), (3, 4), (5, 8), (9, None)):
        inside = [(of >= low) & (of <= (high or of.max())) for of in shares]
        rows.append(
            {
                "features": f"{low}" if low == high else f"{low} to {high}" if high else f"{low} and more",
                "training": float(inside[0].mean()),
                "test": float(inside[1].mean()),
                "PSP@1": [float(gain[inside[1]].sum() / best[inside[1]].sum()) for gain, best in made],
            }
        )
    return rows


def _fitted(problem: Problem, trees: int) -> PfastreXML:
    return PfastreXML(n_trees=trees, alpha=0.8, unit_means=False, name_weight=0).fit(problem.X, problem.Y)


def _gains(problem: Problem, model: PfastreXML, alpha: float) -> tuple[list[float], np.ndarray, np.ndarray]:
    """PSP@1, 3 and 5, and of each point what it gains at 1, and could."""
    model.alpha_ = alpha
    found = model.shortlist(problem.X_test, k=max(KS))
    made = [gains_of_rows(problem, found, k) for k in KS]
    return [gain.sum() / best.sum() for gain, best in made], *made[0]


def _row(name: str, trees: int, values: np.ndarray) -> Figures:
    chosen = ALPHAS[int(np.argmax(values.mean(axis=1)))]
    return {
        "points": name,
        "trees": trees,
        "PSP@1": values[:, 0].tolist(),
        "mean": values.mean(axis=1).tolist(),
        "chosen": chosen,
    }


def _known(Y: sp.csr_matrix, others: sp.csr_matrix) -> sp.csr_matrix:
    """Y without the labels that no other point has."""
    seen = np.bincount(others.indices, minlength=others.shape[1]) > 0
    Y = Y.copy()
    Y.data[~seen[Y.indices]] = 0
    Y.eliminate_zeros()
    return Y

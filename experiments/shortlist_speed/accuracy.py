"""What predicted lists are worth, in per cent, computed from the lists alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from metarank import Ranking, metrics
from metarank.metrics.propensity import inv_propensity

if TYPE_CHECKING:
    from datasets import Prepared

NAMES = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@100")
TAIL = "tail R@5"
TAIL_POINTS = 5  # a tail label has 1 to 5 training points


def measure(predictions: Path, dataset: Prepared) -> dict[str, float]:
    """P, nDCG, PSP and R of a predictions file, and the share of all tail labels found in the first five."""
    with np.load(predictions) as file:
        ranking = Ranking(file["labels"], file["scores"], int(dataset.sizes["L"]))
    Y, Y_test = dataset.matrix("Y"), dataset.matrix("Y_test")
    values = metrics.evaluate(Y_test, ranking, NAMES, inv_propensity=inv_propensity(Y))
    values[TAIL] = tail_recall(Y, Y_test, ranking)
    return {name: 100 * value for name, value in values.items()}


def tail_recall(Y: sp.csr_matrix, Y_test: sp.csr_matrix, ranking: Ranking) -> float:
    """Share of all test labels with 1 to 5 training points that are among the first five."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    is_tail = (counts > 0) & (counts <= TAIL_POINTS)
    tail = sp.csr_matrix(Y_test @ sp.diags(is_tail.astype(np.float32)))
    tail.eliminate_zeros()
    found = metrics.evaluate(tail, ranking, ["P@5"])["P@5"] * 5 * tail.shape[0]
    return found / tail.nnz if tail.nnz else float("nan")

"""What predicted lists are worth, in per cent, computed from the lists alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from metarank import Ranking, metrics
from metarank.metrics.propensity import inv_propensity

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
from list_quality import TAIL, tail_recall

if TYPE_CHECKING:
    from datasets import Prepared

NAMES = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@100")


def measure(predictions: Path, dataset: Prepared) -> dict[str, float]:
    """P, nDCG, PSP and R of a predictions file, and the share of all tail labels found in the first five."""
    with np.load(predictions) as file:
        ranking = Ranking(file["labels"], file["scores"], int(dataset.sizes["L"]))
    Y, Y_test = dataset.matrix("Y"), dataset.matrix("Y_test")
    values = metrics.evaluate(Y_test, ranking, NAMES, inv_propensity=inv_propensity(Y))
    values[TAIL] = tail_recall(Y, Y_test, ranking)
    return {name: 100 * value for name, value in values.items()}

"""Libraries that bring an OpenMP runtime, first used in any order, each order in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from isolation_child import embedded

from metarank import MetaRanker
from metarank._util import threads
from metarank.data import make_multilabel
from metarank.scorers import NeighborShortlister

PARAMS: dict[str, Any] = {
    "faiss": {"features": [NeighborShortlister(ks=(5,), index="hnsw")], "ranker": "logistic"},
    "lightgbm": {"features": ["prior"], "ranker": "lambdarank"},
}


def used(library: str) -> np.ndarray:
    """What a task gives that starts the library's threads."""
    if library == "torch":
        return embedded(n_jobs=2)[0]
    data = make_multilabel(80, n_features=8, n_labels=4, seed=0)
    if library == "sklearn":
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(max_iter=2).fit(data.X, data.X[:, 0]).predict(data.X)
    return MetaRanker(**PARAMS[library], n_folds=2, n_jobs=2).fit(data).rank(data).scores


def said(*libraries: str) -> str:
    run = subprocess.run([sys.executable, __file__, *libraries], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def expected() -> str:
    return said(*PARAMS, "sklearn", "torch")


@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
@pytest.mark.parametrize("order", list(permutations([*PARAMS, "sklearn", "torch"])), ids="-".join)
def test_openmp_libraries_are_first_used_in_any_order(order, expected):
    assert said(*order) == expected


if __name__ == "__main__":
    threads.WORK_OF_A_THREAD = 1  # LightGBM, too, has two threads
    for library in sys.argv[1:]:
        used(library)
    print({name: used(name).ravel().round(6).tolist() for name in sorted(sys.argv[1:])})

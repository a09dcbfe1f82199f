"""Sets with grades, with rows of unit length, or made, for a study's `make`; and relevances of any set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sets
from declared import Figures

from metarank import data
from metarank.metrics.propensity import inv_propensity
from metarank.types.arrays import unit_rows


def unit(name: str) -> Callable[[Path], Figures]:
    """A set of `sets.DATA`, relevant or not, its rows of unit length whatever they have."""
    return lambda folder: sets.write(*(_unit(part) for part in _parts(name, grades=False)), folder)


def graded(name: str, *, logarithm: bool = False, labelwise: bool = False) -> Callable[[Path], Figures]:
    """A set with its grades, or log2(1 + grade); `labelwise`: rows are recommended to labels."""
    change = (lambda y: np.log2(1 + y)) if logarithm else (lambda y: y)

    def make(folder: Path) -> Figures:
        parts = (_unit(part, change) for part in _parts(name, grades="auto"))
        return {**sets.write(*parts, folder), "graded": True, "labelwise": labelwise}

    return make


def extreme(n: int, n_words: int, n_labels: int, test_rows: int, **more: Any) -> Callable[[Path], Figures]:
    """What makes a set of n training rows by `make_extreme`."""

    def make(folder: Path) -> Figures:
        rows = data.make_extreme(n + test_rows, n_words, n_labels, seed=0, **more)
        return sets.write(rows.take(slice(0, n)), rows.take(slice(n, None)), folder)

    return make


def extreme_labelwise(folder: Path) -> Figures:
    """Far more labels than test rows, where labelwise prediction pays most."""
    made = data.make_extreme(10_500, 10_000, 20_000, seed=0)
    parts = (_unit(made.take(rows), np.ones_like) for rows in (slice(10_000), slice(10_000, None)))
    return {**sets.write(*parts, folder), "labelwise": True}


def relevances(folder: Path) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Of both parts: the grades of a set, or inverse propensities of relevant pairs."""
    Y, Y_test = sets.matrix(folder, "Y"), sets.matrix(folder, "Y_test")
    if sets.described(folder).get("graded"):
        return Y, Y_test
    weights = sp.diags(inv_propensity(Y))
    return sp.csr_matrix(Y @ weights, dtype=np.float32), sp.csr_matrix(Y_test @ weights, dtype=np.float32)


def _parts(name: str, *, grades: Any) -> list[data.Dataset]:
    return [data.load_named(name, part, data_dir=sets.DATA, grades=grades) for part in ("train", "test")]


def _unit(part: data.Dataset, change: Callable[[np.ndarray], np.ndarray] = np.ones_like) -> data.Dataset:
    Y = part.Y.copy()
    Y.data = change(Y.data)
    return replace(part, X=unit_rows(sp.csr_matrix(part.X)), Y=Y)

"""How many bytes results take, for the scheduler: where to run what, and what to spill, depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from metarank.distributed.results import Noted
from metarank.model.stages import PairsToRank, RankedPairs
from metarank.scorers.base import LabelScorer
from metarank.scorers.trees.tree_ensemble import TreeBlock
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet


def bytes_of(value: Any) -> int:
    """Bytes of the arrays that an object holds, each counted once, and a little for all else.

    Examples
    --------
    >>> rows = np.zeros((3, 2), np.float32)
    >>> bytes_of([rows, {"again": rows}]) < 2 * 24 + 512
    True
    """
    seen: dict[int, int] = {}

    def walk(value: Any, depth: int) -> None:
        if id(value) in seen or depth > 8:
            return
        seen[id(value)] = 64
        if isinstance(value, np.ndarray):
            seen[id(value)] += value.nbytes
        elif sp.issparse(value):
            seen[id(value)] += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
        elif isinstance(value, str):
            seen[id(value)] += len(value)
        elif isinstance(value, (list, tuple)):
            if value and isinstance(value[0], str):
                seen[id(value)] += sum(map(len, value)) + 57 * len(value)
                return
            for item in value:
                walk(item, depth + 1)
        elif isinstance(value, dict):
            for item in value.values():
                walk(item, depth + 1)
        elif hasattr(value, "__dict__"):
            walk(vars(value), depth + 1)

    walk(value, 0)
    return sum(seen.values())


def register_sizes() -> None:
    """Tell Dask to ask `bytes_of` for what our tasks return."""
    for known in (TrainingSet, LabelScorer, TreeBlock, Candidates, PairsToRank, RankedPairs, Noted):
        sizeof.register(known)(bytes_of)

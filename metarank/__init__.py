"""metarank: rank the labels of an instance and decide how many of them to keep.

data -> shortlist -> candidates -> meta-features -> ranker -> thresholds -> metrics
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from metarank._version import __version__

if TYPE_CHECKING:
    from metarank import data, features, metrics, objectives, ranker, shortlist, thresholds
    from metarank.candidates import Candidates
    from metarank.data.dataset import Dataset
    from metarank.multi_objective import MultiObjectiveRanker, ParetoFront, pareto_front
    from metarank.persist import load
    from metarank.pipeline import MetaRanker
    from metarank.ranking import Ranking

__all__ = [
    "Candidates",
    "Dataset",
    "MetaRanker",
    "MultiObjectiveRanker",
    "ParetoFront",
    "Ranking",
    "__version__",
    "data",
    "features",
    "load",
    "metrics",
    "objectives",
    "pareto_front",
    "ranker",
    "shortlist",
    "thresholds",
]

logging.getLogger("metarank").addHandler(logging.NullHandler())

# Names are imported when first used, so that `import metarank` stays quick.
_HOME = {
    "Candidates": "metarank.candidates",
    "Dataset": "metarank.data.dataset",
    "MetaRanker": "metarank.pipeline",
    "MultiObjectiveRanker": "metarank.multi_objective",
    "ParetoFront": "metarank.multi_objective",
    "Ranking": "metarank.ranking",
    "load": "metarank.persist",
    "pareto_front": "metarank.multi_objective",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in __all__:
        return importlib.import_module(f"metarank.{name}")
    raise AttributeError(f"module 'metarank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

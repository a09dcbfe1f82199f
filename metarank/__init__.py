"""metarank: rank the labels of an instance and decide how many of them to keep.

data -> shortlist -> candidates -> meta-features -> ranker -> thresholds -> metrics
"""

from __future__ import annotations

import importlib
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from metarank._util.version import __version__

if TYPE_CHECKING:
    from metarank import (
        data,
        distributed,
        metrics,
        objectives,
        plot,
        ranker,
        scorers,
        serve,
        shortlist,
        text,
        thresholds,
    )
    from metarank._util.config import show_config
    from metarank.data.dataset import Dataset
    from metarank.data.meaning import Encoder
    from metarank.model.estimator import MetaRanker
    from metarank.objectives.fronts import ParetoFront, pareto_front
    from metarank.objectives.multi_objective import MultiObjectiveRanker
    from metarank.persist import load
    from metarank.thresholds.learner import ThresholdLearner
    from metarank.types.candidates import Candidates
    from metarank.types.ranking import Ranking

__all__ = [
    "Candidates",
    "Dataset",
    "Encoder",
    "MetaRanker",
    "MultiObjectiveRanker",
    "ParetoFront",
    "Ranking",
    "ThresholdLearner",
    "__version__",
    "data",
    "distributed",
    "load",
    "metrics",
    "objectives",
    "pareto_front",
    "plot",
    "ranker",
    "scorers",
    "serve",
    "shortlist",
    "show_config",
    "text",
    "thresholds",
]
# What needs an extra as a whole is no name of a package that has it not: `import *` and `help` go over all.
if find_spec("dask") is None:
    __all__.remove("distributed")

logging.getLogger("metarank").addHandler(logging.NullHandler())

# Names are imported when first used, so that `import metarank` stays quick.
_HOME = {
    "Candidates": "metarank.types.candidates",
    "Dataset": "metarank.data.dataset",
    "Encoder": "metarank.data.meaning",
    "MetaRanker": "metarank.model.estimator",
    "MultiObjectiveRanker": "metarank.objectives.multi_objective",
    "ParetoFront": "metarank.objectives.fronts",
    "Ranking": "metarank.types.ranking",
    "ThresholdLearner": "metarank.thresholds.learner",
    "load": "metarank.persist",
    "pareto_front": "metarank.objectives.fronts",
    "show_config": "metarank._util.config",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in __all__ or name == "distributed":
        return importlib.import_module(f"metarank.{name}")
    raise AttributeError(f"module 'metarank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""metarank: rank the labels of an instance and decide how many of them to keep.

data -> shortlist -> candidates -> meta-features -> ranker -> thresholds -> metrics
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from metarank._util.modules import imported_when_used
from metarank._util.version import __version__ as __version__

if TYPE_CHECKING:  # what type checkers know by its definition
    from metarank import data as data
    from metarank import distributed as distributed
    from metarank import metrics as metrics
    from metarank import objectives as objectives
    from metarank import plot as plot
    from metarank import ranker as ranker
    from metarank import scorers as scorers
    from metarank import serve as serve
    from metarank import shortlist as shortlist
    from metarank import text as text
    from metarank import thresholds as thresholds
    from metarank._util.config import show_config as show_config
    from metarank.data.dataset import Dataset as Dataset
    from metarank.data.meaning import Encoder as Encoder
    from metarank.model.estimator import MetaRanker as MetaRanker
    from metarank.objectives.fronts import ParetoFront as ParetoFront
    from metarank.objectives.fronts import pareto_front as pareto_front
    from metarank.objectives.multi_objective import MultiObjectiveRanker as MultiObjectiveRanker
    from metarank.persist import load as load
    from metarank.thresholds.learner import ThresholdLearner as ThresholdLearner
    from metarank.types.candidates import Candidates as Candidates
    from metarank.types.ranking import Ranking as Ranking

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
_PACKAGES = [
    "data",
    "metrics",
    "objectives",
    "plot",
    "ranker",
    "scorers",
    "serve",
    "shortlist",
    "text",
    "thresholds",
]
# What needs an extra as a whole is no name of a package that has it not: `import *` and `help` go over all.
if find_spec("dask") is not None:
    _PACKAGES.append("distributed")

__all__ = sorted([*_HOME, *_PACKAGES, "__version__"])


__getattr__: Callable[[str], Any] = imported_when_used(
    __name__, _HOME | {name: f"metarank.{name}" for name in (*_PACKAGES, "distributed")}
)


def __dir__() -> list[str]:
    return __all__

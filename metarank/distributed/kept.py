"""`KeptResults`: results of tasks in a folder, so that a run that was cut off goes on where it was.

A result lies in a folder of its own, named after its inputs and written whole or not at all by
`metarank.persist`, with checksums and without pickle. One that is damaged is made again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from metarank import persist
from metarank._state import Fields
from metarank.candidates import Candidates
from metarank.persist.reading import load_values
from metarank.ranker import Ranker
from metarank.scorers.tree_ensemble import TreeBlock
from metarank.stages import RankedPairs
from metarank.thresholds import ThresholdLearner

T = TypeVar("T")
# Fields of a `TreeBlock` beside its arrays.
_BLOCK = ("first", "count", "n_features", "n_labels")
logger = logging.getLogger("metarank.distributed")


@dataclass(frozen=True, eq=False)
class Noted:
    """A result, and what was noted on the way to it."""

    result: Any
    notes: list[str]


class KeptResults:
    """Results by key.

    Parameters
    ----------
    folder : path
        Of one run or of several: a key tells the inputs of its result.
    missed : function of an OSError
        Called where a result cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> kept = KeptResults(tempfile.mkdtemp())
    >>> kept.get("squares", lambda: {"squares": np.arange(3) ** 2})["squares"]
    array([0, 1, 4])
    >>> kept.get("squares", lambda: {})["squares"]
    array([0, 1, 4])
    """

    def __init__(self, folder: str | Path, missed: Callable[[OSError], None] | None = None) -> None:
        self.folder = Path(folder)
        self.missed = missed

    def get(self, key: str, make: Callable[[], T]) -> T:
        """The result kept under `key`; where there is none, or a damaged one, what `make` returns.

        A result that cannot be kept, since a scorer's class does not say how or the disk is full, is returned
        all the same, and the log says so.
        """
        path = self.folder / key
        if path.exists():
            try:
                found: T = _restored(load_values(path))
                logger.info("kept: %s", key)
                return found
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                logger.warning("made again, since it is damaged: %s", error)
        result = make()
        try:
            persist.save(_state(result), path)
        except (TypeError, AttributeError, persist.ModelError, OSError) as error:
            logger.warning("not kept: %s (%s)", key, error)
            if isinstance(error, OSError) and self.missed is not None:
                self.missed(error)
        return result


def _state(result: Any) -> dict[str, Any]:
    if isinstance(result, Candidates):
        pairs = {"indptr": result.indptr, "labels": result.labels, "n_labels": result.n_labels}
        return {"kind": "candidates", **pairs, "scores": dict(result.scores)}
    if isinstance(result, RankedPairs):
        return {
            "kind": "ranked",
            "ranker": result.ranker.get_state(),
            "scores": result.scores,
            "feature_columns": result.feature_columns,
            "raw_columns": result.raw_columns,
            "importances": result.importances,
        }
    if isinstance(result, TreeBlock):
        numbers = {name: getattr(result, name) for name in _BLOCK}
        return {"kind": "trees", **numbers, "arrays": _state(result.arrays)}
    if isinstance(result, Noted):
        return {"kind": "noted", "result": _state(result.result), "notes": result.notes}
    if isinstance(result, ThresholdLearner):
        return {"kind": "thresholds", "learner": result.get_state()}
    if isinstance(result, (int, float)):
        return {"kind": "number", "value": result}
    if isinstance(result, dict):
        return {"kind": "values", "names": list(result), "values": list(result.values())}
    return {"kind": "scorer", "scorer": result}


def _restored(state: Any) -> Any:
    if Fields(state, "a kept result").text("kind") == "candidates":
        scores = {name: np.asarray(values) for name, values in state["scores"].items()}
        indptr, labels = np.asarray(state["indptr"]), np.asarray(state["labels"])
        return Candidates(indptr, labels, state["n_labels"], scores)
    if state["kind"] == "ranked":
        names = state["feature_columns"], state["raw_columns"], np.asarray(state["importances"])
        return RankedPairs(Ranker.from_state(state["ranker"]), np.asarray(state["scores"]), *names)
    if state["kind"] == "trees":
        return TreeBlock(**{name: state[name] for name in _BLOCK}, arrays=_restored(state["arrays"]))
    if state["kind"] == "noted":
        return Noted(_restored(state["result"]), state["notes"])
    if state["kind"] == "thresholds":
        return ThresholdLearner.from_state(state["learner"])
    if state["kind"] == "number":
        return state["value"]
    if state["kind"] == "values":
        values = [np.asarray(v) if isinstance(v, np.ndarray) else v for v in state["values"]]
        return dict(zip(state["names"], values))
    return state["scorer"]

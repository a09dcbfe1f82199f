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
from metarank.model.stages import RankedPairs
from metarank.persist.fields import Array, Each, Field, Integer, Known, Object, Strings
from metarank.persist.reading import load_values
from metarank.persist.spec import Spec
from metarank.ranker import Ranker
from metarank.scorers.trees.tree_ensemble import TreeBlock
from metarank.types.candidates import Candidates

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("metarank.distributed")


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
        self.folder: Path = Path(folder)
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


class _Result(Field):
    """A result within another."""

    def written(self, value: Any) -> dict[str, Any]:
        return _state(value)

    def read(self, value: Any, known: Known) -> Any:
        return _restored(value)


# Results of a class of their own. Others are numbers, dicts of values, and what can be saved by itself.
_KINDS: dict[str, tuple[Any, Spec]] = {
    "candidates": (
        Candidates,
        Spec(
            Array("indptr", np.int64),
            Array("labels", np.int32, ("pairs",)),
            Integer("n_labels"),
            Each("scores", Array("", (np.float32, np.float64), ("pairs",), floats="any")),
        ),
    ),
    "ranked": (
        RankedPairs,
        Spec(
            Object("ranker", Ranker, inline=True),
            Array("scores", np.float64),
            Strings("feature_columns", "columns"),
            Strings("raw_columns", optional=True),
            Array("importances", np.float64, ("columns",)),
        ),
    ),
    "trees": (
        TreeBlock,
        Spec(*map(Integer, ("first", "count", "n_features", "n_labels")), _Result("arrays")),
    ),
    "noted": (Noted, Spec(_Result("result"), Strings("notes"))),
}


def _state(result: Any) -> dict[str, Any]:
    for kind, (cls, spec) in _KINDS.items():
        if isinstance(result, cls):
            return {"kind": kind, **spec.state_of(result)}
    if isinstance(result, dict):
        return {"kind": "values", "names": list(result), "values": list(result.values())}
    return {"kind": "value", "value": result}


def _restored(state: Any) -> Any:
    kind = state["kind"]
    if kind in _KINDS:
        cls, spec = _KINDS[kind]
        return spec.restored(cls, state, {})
    return dict(zip(state["names"], state["values"])) if kind == "values" else state["value"]

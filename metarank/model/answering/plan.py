"""`Plan`: a fitted model's way from sparse rows to scored lists, run whole by the compiled core.

One call goes through proposals, union, cascade, columns, table and trees, row by row and without the
interpreter's lock. The stages in Python (`metarank.model.answering.answer`) give the same bytes. They answer
where a source or the model has something that the plan cannot do, and are its twin in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metarank import _core
from metarank._util.elementary import log
from metarank.model.cascade import ABSENT, GAP, Cascade
from metarank.ranker import Ranker
from metarank.ranker.assemble import joined_columns
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.source import Source
from metarank.types.arrays import Parts
from metarank.types.texts import WordRows

# What a subclass changes of these, the plan of its parent does not know.
_INTERFACES = ("shortlist", "score", "search")


class Listed(NamedTuple):
    """The candidates of some rows, as the core lists them.

    Attributes
    ----------
    indptr, labels : int64 array (n + 1,), int32 array (m,)
    rough : float64 array (m,)
        What the cascade says of them; empty without a cascade.
    ahead : uint8 array (m,)
        The pairs that are described; empty without a cascade.
    table : float32 array (pairs described, F)
        Their columns, where they were asked for.
    evidence : float64 array (m,)
        What the ranker makes of all pairs, otherwise.
    """

    indptr: np.ndarray
    labels: np.ndarray
    rough: np.ndarray
    ahead: np.ndarray
    table: np.ndarray
    evidence: np.ndarray


class Plan:
    """The compiled plan of a model.

    Parameters
    ----------
    core : metarank._core.Plan
    ranks : bool
        Whether it knows the model's ranker; otherwise it makes tables only.
    """

    def __init__(self, core: _core.Plan, ranks: bool) -> None:
        self._core = core
        self.ranks = ranks

    def listed(
        self, rows: Parts, k: int, *, table: bool, n_jobs: int, words: WordRows | None = None
    ) -> Listed:
        """The candidates of rows of canonical CSR, k proposed by each source, and their table or evidence.
        `words` are those of their texts, where a source looks at them.

        Raises
        ------
        ValueError
            If a score or column is not finite.
        """
        words = WordRows.of([]) if words is None else words
        return Listed(*self._core.answer(rows, words.indptr, words.words, k, table, n_jobs))


def plan_of(
    sources: Sequence[Source],
    cascade: Cascade | None,
    ranker: Ranker,
    feature_columns: Sequence[str],
    raw_columns: Sequence[str] | None,
    inv_propensity: np.ndarray,
    *,
    standardize: bool,
) -> Plan | None:
    """The plan of a model; None where only the stages in Python can answer: all labels are ranked, rows are
    dense or in blocks, or a source is a user's own or one whose scores the core does not compute."""
    planned = [_planned(source.scorer) for source in sources]
    known = [part for part in planned if part is not None]
    proposes = [i for i, source in enumerate(sources) if source.proposes]
    describes = [i for i, source in enumerate(sources) if source.describes]
    if len(known) < len(sources) or not proposes or not describes:
        return None
    none = np.zeros(0, np.float32)
    named, _ = joined_columns([dict.fromkeys(known[i].columns, none) for i in describes])
    raw = raw_columns if standardize else None
    scaled = [j for j, name in enumerate(named) if raw is None or name in raw]
    names = [name for name in named if raw is None or name in raw]
    names += [f"z({name})" for name in named] if standardize else []
    if names != list(feature_columns):
        return None
    trees = ranker.planned()
    judge = None if cascade is None else cascade.ranker.planned()
    stages = _core.PlanStages(
        proposes=proposes,
        describes=describes,
        own=scaled,
        standardize=standardize,
        survivors=0 if cascade is None else cascade.survivors,
        absent=ABSENT,
        gap=GAP,
    )
    core = _core.Plan(
        [part.core for part in known],
        stages,
        None if judge is None else judge.in_core,
        log(inv_propensity).astype(np.float32),
        None if trees is None else trees.in_core,
    )
    return Plan(core, trees is not None)


def _planned(scorer: LabelScorer) -> Planned | None:
    order = type(scorer).__mro__
    of_class = next(number for number, base in enumerate(order) if "planned" in vars(base))
    changed = [vars(scorer), *map(vars, order[:of_class])]
    return None if any(name in methods for methods in changed for name in _INTERFACES) else scorer.planned()

"""`Source`: an entry of a model's list of sources, which is a scorer and what the model uses it for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from metarank.persist.fields import Flag, Known, Object
from metarank.persist.spec import Saved, Spec
from metarank.scorers.base import LabelScorer


def _check_proposes(known: Known) -> None:
    if known.proposes and not known.scorer.proposes:
        raise ValueError(f"{type(known.scorer).__name__} must not propose: it has no shortlist")


@dataclass(frozen=True, eq=False)
class Source(Saved):
    """A scorer of a model.

    Parameters
    ----------
    scorer : LabelScorer
    proposes : bool
        Whether the model uses its proposals as candidates.
    describes : bool
        Whether the model uses its columns as meta-features.
    """

    scorer: Annotated[LabelScorer, Object("", LabelScorer, ("d", "L", "rows"))]
    proposes: Annotated[bool, Flag("")]
    describes: Annotated[bool, Flag("")]

    saved: ClassVar[Spec] = Spec(check=_check_proposes)

    @property
    def name(self) -> str:
        """Name of the scorer in reports."""
        return self.scorer.shown_as


def sources_of(shortlisters: Sequence[LabelScorer], scorers: Sequence[LabelScorer]) -> list[Source]:
    """One list of the scorers that propose and those that describe. A scorer in both lists is one source.

    The list keeps the order of `scorers`, which is the order of the columns, and the order of `shortlisters`
    where the two do not conflict.

    Examples
    --------
    >>> a, b, c = LabelScorer(), LabelScorer(), LabelScorer()
    >>> [(s.proposes, s.describes) for s in sources_of([a, c], [b, c])]
    [(False, True), (True, False), (True, True)]
    """
    describes = {id(s) for s in scorers}
    waiting = list({id(s): s for s in shortlisters}.values())
    proposes = {id(s) for s in waiting}
    out: list[Source] = []
    for scorer in {id(s): s for s in scorers}.values():
        if any(s is scorer for s in waiting):
            while waiting and waiting[0] is not scorer and id(waiting[0]) not in describes:
                out.append(Source(waiting.pop(0), True, False))
            waiting = [s for s in waiting if s is not scorer]
        out.append(Source(scorer, id(scorer) in proposes, True))
    return out + [Source(s, True, False) for s in waiting]


def with_scorers(sources: Iterable[Source], scorers: Iterable[Any]) -> list[Source]:
    """The same sources with their scorers replaced, such as by tuned or fitted ones."""
    return [replace(source, scorer=scorer) for source, scorer in zip(sources, scorers, strict=True)]


def proposers(sources: Iterable[Source]) -> list[LabelScorer]:
    """The scorers whose proposals are candidates, in their order."""
    return [source.scorer for source in sources if source.proposes]


def labels_told_of(
    sources: Iterable[Source], n_labels: int, named: Callable[[LabelScorer], Iterable[np.ndarray]]
) -> np.ndarray:
    """bool (L,): labels of which some source tells, if no training row has them.

    `named` returns the ids of labels with a known word in the texts that a source reads.
    """
    is_known = np.zeros(n_labels, bool)
    for scorer in describers(sources):
        reads_names = scorer.reads_text or scorer.reads_word_order
        if (scorer.reads_given and not scorer.reads_word_order) or (scorer.reads_names and not reads_names):
            return np.ones(n_labels, bool)
        for labels in named(scorer) if scorer.reads_names else ():
            is_known[labels] = True
    return is_known


def describers(sources: Iterable[Source]) -> list[LabelScorer]:
    """The scorers whose columns describe pairs, in the order of the columns."""
    return [source.scorer for source in sources if source.describes]

"""`Source`: a scorer and what it is asked for, an entry of the one list of a model's sources of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
        Whether the model takes its proposals as candidates.
    describes : bool
        Whether the model takes its columns as meta-features.
    """

    scorer: LabelScorer
    proposes: bool
    describes: bool

    saved: ClassVar = Spec(
        Object("scorer", LabelScorer, ("d", "L", "rows")),
        Flag("proposes"),
        Flag("describes"),
        check=_check_proposes,
    )

    @property
    def name(self) -> str:
        """What a report calls the scorer."""
        return type(self.scorer).__name__


def sources_of(shortlisters: Sequence[LabelScorer], scorers: Sequence[LabelScorer]) -> list[Source]:
    """The one list of those that propose and those that describe; a scorer in both is one source.

    The order of `scorers`, which is that of the columns, is kept, and that of `shortlisters` where the two
    agree.

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
    """The same sources with other scorers in their place, one each: tuned, or fitted."""
    return [replace(source, scorer=scorer) for source, scorer in zip(sources, scorers, strict=True)]


def proposers(sources: Iterable[Source]) -> list[LabelScorer]:
    """The scorers whose proposals are candidates, in their order."""
    return [source.scorer for source in sources if source.proposes]


def describers(sources: Iterable[Source]) -> list[LabelScorer]:
    """The scorers whose columns describe pairs, in the order of the columns."""
    return [source.scorer for source in sources if source.describes]

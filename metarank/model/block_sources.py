"""Sources of a model of several blocks: which of them describe each block by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sklearn.base import clone

from metarank.scorers.base import LabelScorer
from metarank.scorers.block import BlockScorer
from metarank.scorers.source import Source
from metarank.types.block_columns import BlockColumns

# Fewer numbers say too little for rows to be near each other.
_LEAST_NUMBERS = 3


def over_blocks(
    sources: list[Source], blocks: Sequence[BlockColumns], fields: Collection[str] = ()
) -> list[Source]:
    """The sources, those that describe each block by itself once for every block that suits them.

    `fields` are blocks of texts whose words another block joins: they describe what that block proposes, and
    propose nothing of their own, which would cost more than it finds.
    """
    if len(blocks) < 2:
        return sources
    out = []
    for source in sources:
        own = [
            block.name
            for block in blocks
            if source.scorer.by_block
            and _suits(source.scorer, block)
            and (block.name not in fields or source.scorer.needs_words or source.scorer.suits_any_block)
        ]
        of_blocks = [
            replace(
                source,
                scorer=BlockScorer(scorer=clone(source.scorer), block=name),
                proposes=source.proposes and name not in fields,
            )
            for name in own
        ]
        out += [one for one in of_blocks if one.proposes or one.describes] or [source]
    return out


def _suits(scorer: LabelScorer, block: BlockColumns) -> bool:
    if scorer.needs_words or block.words is not None:
        return block.words is not None
    return (
        scorer.suits_any_block
        or block.kind in ("vector", "sparse")
        or (block.kind == "numbers" and block.stop - block.start >= _LEAST_NUMBERS)
    )

"""Blocks in a fit: what they weigh, and which sources describe each of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sklearn.base import clone

from metarank._util.progress import note
from metarank.data.block_encoder import BlocksEncoder
from metarank.model.block_weights import block_weights
from metarank.model.inputs import FitOptions, TrainingInput, fold_map
from metarank.scorers.base import LabelScorer
from metarank.scorers.block import BlockScorer
from metarank.scorers.source import Source
from metarank.types.block_columns import BlockColumns

# Fewer numbers say too little for rows to be near each other.
_LEAST_NUMBERS = 3


def weighed(given: TrainingInput, options: FitOptions) -> TrainingInput:
    """The training input with its blocks on scales learned on held-out rows, without those of no use."""
    encoder = given.encoder
    if not isinstance(encoder, BlocksEncoder):
        return given
    if len(encoder.parts) == 1:
        only = encoder.parts[0]
        note(f"block {only.name}: {only.kind}, the only one")
        return given
    # Words find labels by their names too, which a ridge on rows knows nothing of.
    has_names = given.labels.names is not None and not given.labels.are_ids
    kept = [columns.name for columns in encoder.columns if columns.words is not None and has_names]
    own = given.label_vectors
    kept += [] if own is None else [columns.name for columns in encoder.columns if columns.start == own.start]
    weights, lines = block_weights(
        encoder.columns, given.X, given.labels.Y, fold_map(given, options), options.seed, kept
    )
    for line in lines:
        note(line)
    return replace(given, X=encoder.reweighed(given.X, weights))


def over_blocks(sources: list[Source], blocks: Sequence[BlockColumns]) -> list[Source]:
    """The sources, those that describe each block by itself once for every block that suits them."""
    if len(blocks) < 2:
        return sources
    out = []
    for source in sources:
        own = [block.name for block in blocks if source.scorer.by_block and _suits(source.scorer, block)]
        out += [
            replace(source, scorer=BlockScorer(scorer=clone(source.scorer), block=name)) for name in own
        ] or [source]
    return out


def _suits(scorer: LabelScorer, block: BlockColumns) -> bool:
    if scorer.needs_words or block.words is not None:
        return block.words is not None
    return block.kind in ("vector", "sparse") or (
        block.kind == "numbers" and block.stop - block.start >= _LEAST_NUMBERS
    )

"""What a model of blocks asks for, and the blocks of a file under the names of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metarank.data.block_encoder import BlocksEncoder, EncodedBlock
from metarank.data.blocks import Blocks
from metarank.data.encoder import InputEncoder
from metarank.types.block_columns import CATEGORIES, NUMBERS


def needed_blocks(encoder: InputEncoder) -> list[EncodedBlock]:
    """The blocks that every new row must have; none where a model is not of blocks."""
    return encoder.needed if isinstance(encoder, BlocksEncoder) else []


def columns_of(parts: Sequence[EncodedBlock]) -> dict[str, list[str]]:
    """The columns of a table that hold blocks, as `metarank.data.load` takes them.

    Raises
    ------
    ValueError
        If a block is sparse, which no column can hold.
    """
    sparse = next((part.name for part in parts if part.kind == "sparse"), None)
    if sparse is not None:
        raise ValueError(
            f"the model's block {sparse!r} is sparse, which no column of a table holds: write the rows "
            "with metarank.data.to_parquet"
        )
    return {
        option: [c for part in parts if part.kind == kind for c in part.columns or [part.name]]
        for option, kind in (
            ("text_columns", "text"),
            ("vector_columns", "vector"),
            ("number_columns", NUMBERS),
            ("category_columns", CATEGORIES),
        )
    }


def under_names_of(parts: Sequence[EncodedBlock], blocks: Blocks) -> Blocks:
    """Blocks that were read by `columns_of`, with their columns in the blocks of the model."""
    by_column: dict[tuple[str, str], Any] = {}
    for name, kind in blocks.kinds.items():
        for j, column in enumerate(blocks.columns.get(name, ())):
            by_column[kind, column] = blocks[name][:, j]
    by_name = {
        part.name: np.column_stack([by_column[part.kind, column] for column in part.columns])
        if part.kind in (NUMBERS, CATEGORIES)
        else blocks[part.name]
        for part in parts
    }
    columns = {part.name: part.columns for part in parts if part.kind in (NUMBERS, CATEGORIES)}
    return Blocks(by_name, {part.name: part.kind for part in parts}, columns)

"""The columns of X in whose space the vectors of a table of labels are."""

from __future__ import annotations

from metarank.data.block_encoder import BlocksEncoder, EncodedBlock
from metarank.data.encoder import InputEncoder
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.vectors_of_labels import LabelVectors

_RULE = "vectors of labels must be in the space of"


def vectors_in(encoder: InputEncoder, table: LabelDescriptions | None) -> LabelVectors | None:
    """The vectors of a table in the space of encoded X; None if there are none.

    Raises
    ------
    ValueError
        If X is not dense, or of another width; of several blocks, unless one block of vectors has the width.
    """
    if table is None or table.vectors is None:
        return None
    width = table.vectors.shape[1]
    if isinstance(encoder, BlocksEncoder) and len(encoder.parts) > 1:
        part = block_of_vectors(encoder, width)
        start = next((block.start for block in encoder.columns if block.name == part.name), None)
        return None if start is None else LabelVectors(table.vectors, start, part.encoder.transform.scale)
    if encoder.layout != "dense":
        raise ValueError(f"{_RULE} dense X, got vectors of {width} numbers beside texts or sparse features")
    if encoder.n_features != width:
        raise ValueError(
            f"{_RULE} dense X, which has {encoder.n_features} columns, got vectors of {width} numbers"
        )
    return LabelVectors(table.vectors, 0, encoder.transform.scale)


def block_of_vectors(encoder: BlocksEncoder, width: int) -> EncodedBlock:
    """The block of vectors of a width; ValueError unless there is exactly one."""
    vectors = [part for part in encoder.parts if part.kind == "vector"]
    found = [part for part in vectors if part.encoder.n_features == width]
    if len(found) != 1:
        widths = ", ".join(f"{part.name!r} ({part.encoder.n_features})" for part in vectors) or "none"
        raise ValueError(f"{_RULE} one block of X, got {width} numbers; blocks of vectors: {widths}")
    return found[0]

"""`Network`: encoders of queries and of label names, label vectors, and how they combine."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from metarank.text.combine import combined
from metarank.text.encoders import ENCODERS, Encoder
from metarank.text.kinds import WITH_IDS, WITH_NAMES, WITH_RELU, Combine, EncoderKind, NameActivation

# Encoded names begin so many times longer than torch would have them: queries then learn from them sooner.
_NAME_GAIN = 4.0
# Spread of the first label vectors around one where they scale the encoded name. From vectors that compare
# texts with names already they need no spread.
_ID_SPREAD = {"mean": 0.0}
_USUAL_SPREAD = 0.1


class Sizes(NamedTuple):
    """Subword vectors G, hidden layer H, embeddings E."""

    subword_dim: int
    hidden_dim: int
    embedding_dim: int


class Network(nn.Module):
    """The score of a query and a label is ``q . f + b``.

    q and f_text are the outputs of the query's and the name's encoder; the two share only the table of
    subword vectors. f combines f_text with a vector f_id of the label's own, see `combined`.

    With `label_bias` each label has its own b, otherwise all share one. The query's encoder ends in ReLU, but
    for "mean".
    If the name's does so too, as in the paper, the score of "text" is a sum of products that are never
    negative: no subword can lower a score, and training is slow and often stops short.

    Parameters
    ----------
    n_subwords : int
        Padding included; its vector is not learned.
    n_labels : int
    sizes : Sizes
    encoder : str
    combine : str
    name_activation : "linear" or "relu"
        At the end of the name's encoder.
    label_bias : bool
    """

    def __init__(
        self,
        n_subwords: int,
        n_labels: int,
        sizes: Sizes,
        *,
        encoder: EncoderKind = "bilstm",
        combine: Combine = "lale",
        name_activation: NameActivation = "linear",
        label_bias: bool = True,
    ) -> None:
        super().__init__()
        self.combine, self.encoder, self.name_activation = combine, encoder, name_activation
        self.has_label_bias = label_bias
        width = sizes.embedding_dim
        # Of length sqrt(G): from short vectors the layers above start nearly at zero, and training is slow.
        self.subwords: nn.Parameter = nn.Parameter(torch.randn(n_subwords, sizes.subword_dim))
        self.query: Encoder = ENCODERS[encoder](*sizes, relu=encoder in WITH_RELU)
        if combine in WITH_NAMES:
            self.name: Encoder = ENCODERS[encoder](*sizes, relu=name_activation == "relu")
            self.name.dense.weight.data *= _NAME_GAIN
        if combine in WITH_IDS:
            ids = torch.randn(n_labels, width)
            ids = (
                1 + _ID_SPREAD.get(encoder, _USUAL_SPREAD) * ids
                if combine == "lale"
                else ids / math.sqrt(width)
            )
            self.label_ids: nn.Parameter = nn.Parameter(ids)
        if combine == "concat":
            self.project: nn.Linear = nn.Linear(2 * width, width)
        if combine == "gile":
            self.scale: nn.Parameter = nn.Parameter(torch.ones(width))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(n_labels if label_bias else 1))

    @property
    def id_center(self) -> float:
        """What the entries of f_id are drawn towards."""
        return 1.0 if self.combine == "lale" else 0.0

    def head_parameters(self) -> dict[str, Tensor]:
        """The parameters common to all label vectors, by name."""
        named = self.named_parameters()
        return {name: p for name, p in named if name.partition(".")[0] in ("project", "scale")}

    def label_vectors(self, ids: Tensor | None, names: Tensor | None) -> Tensor:
        """f, float (r, E), of the labels' own vectors and encoded names (r, E), where they have such."""
        scale = self.scale if self.combine == "gile" else None
        return combined(self.combine, ids, names, scale, self._projected)

    def _projected(self, ids: Tensor, names: Tensor) -> Tensor:
        return torch.tanh(self.project(torch.cat([ids, names], dim=1)))

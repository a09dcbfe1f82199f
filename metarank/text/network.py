"""`Network`: encoders of queries and of label names, label vectors, and how they combine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from metarank._util.threads import openmp_threads
from metarank.text.subwords import PAD

# Whose encoder is asked.
Side = Literal["query", "name"]
# Models with a vector of each label's own, and models that read its name.
WITH_IDS = ("lale", "id", "concat")
WITH_NAMES = ("lale", "text", "concat", "gile")
# Neighbouring subwords that a filter of the convolution looks at.
_CNN_WIDTH = 3
# Encoded names begin so many times longer than torch would have them: queries then learn from them sooner.
_NAME_GAIN = 4.0
# Spread of the first label vectors around one where they scale the encoded name. From vectors that compare
# texts with names already they need no spread.
_ID_SPREAD = 0.1
_ENCODED_AT_ONCE = 1024


class Encoder(nn.Module):
    """``W h + b`` of a summary h of the text, through ReLU or as it is.

    * "bilstm": h = the last states of an LSTM read forwards and of one read backwards, H/2 each;
    * "cnn": h = the greatest response of each of H filters over three neighbouring subwords, through tanh;
    * "bow": h = tanh(W m + b) of the mean m of the subword vectors;
    * "mean": h = the sum of the subword vectors over the root of their number; begins with W = I. With
    vectors
      of `first_vectors` it begins as a comparison of texts with names, and learns from there.

    Vectors of padding are zero. A text without any subword gives the zero vector, so its scores are the
    labels' biases.
    """

    def __init__(
        self, kind: str, subword_dim: int, hidden_dim: int, embedding_dim: int, *, relu: bool
    ) -> None:
        super().__init__()
        self.kind: str = kind
        self.relu: bool = relu
        self.dense: nn.Linear = nn.Linear(subword_dim if kind == "mean" else hidden_dim, embedding_dim)
        if kind == "bilstm":
            self.lstm: nn.LSTM = nn.LSTM(subword_dim, hidden_dim // 2, batch_first=True, bidirectional=True)
        elif kind == "cnn":
            self.convolution: nn.Conv1d = nn.Conv1d(
                subword_dim, hidden_dim, _CNN_WIDTH, padding=_CNN_WIDTH // 2
            )
        elif kind == "bow":
            self.hidden: nn.Linear = nn.Linear(subword_dim, hidden_dim)
        else:
            nn.init.eye_(self.dense.weight)
            nn.init.zeros_(self.dense.bias)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Float (n, size of h) of vectors (n, T, G); lengths int64 (n,), in [1, T]."""
        if self.kind == "bilstm":
            packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
            _, (last, _) = self.lstm(packed)
            return torch.cat([last[0], last[1]], dim=1)
        if self.kind == "cnn":
            outside = torch.arange(vectors.shape[1])[None, :] >= lengths[:, None]
            response: Tensor = self.convolution(vectors.transpose(1, 2))
            return torch.tanh(response.masked_fill(outside[:, None, :], -torch.inf).amax(dim=2))
        total = vectors.sum(dim=1)
        if self.kind == "bow":
            return torch.tanh(self.hidden(total / lengths[:, None]))
        return total / lengths[:, None].sqrt()

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Float (n, E) of vectors (n, T, G); lengths int64 (n,), in [0, T]."""
        out: Tensor = self.dense(self.summary(vectors, lengths.clamp(min=1)))
        out = torch.relu(out) if self.relu else out
        return out * (lengths > 0)[:, None]


class Network(nn.Module):
    """The score of a query and a label is ``q . f + b``.

    q and f_text are the outputs of the query's and the name's encoder; the two share only the table of
    subword vectors. f combines f_text with a vector f_id of the label's own:

    * "id": ``f = f_id``;
    * "text": ``f = f_text``;
    * "gile": ``f = w * f_text``;
    * "concat": ``f = tanh(W [f_id; f_text] + c)``, the paper's Combined;
    * "lale": ``f = f_id * f_text``, entry by entry.

    The parameters are those of `LabelEmbedder`. The query's encoder ends in ReLU,
    except for "mean". If the name's does so too, as in the paper, the score of "text" is a sum of products
    that are never negative: no subword can lower a score, and training is slow and often stops short. In
    that of "lale" f_id can.
    """

    def __init__(self, params: Any, n_subwords: int, n_labels: int) -> None:
        super().__init__()
        combine, encoder = params.combine, params.encoder
        self.combine = combine
        # What an f_id is that says nothing of its own. A product that is never negative has no start to learn
        # from: there f_id begins on both sides of 0.
        self.id_center = float(combine == "lale" and params.name_activation == "linear")
        self.n_labels = n_labels
        subword_dim, embedding_dim = params.subword_dim, params.embedding_dim
        sizes = subword_dim, params.hidden_dim, embedding_dim
        # Of length sqrt(G): from short vectors the layers above start nearly at zero, and training is slow.
        self.subwords: nn.Embedding = nn.Embedding(n_subwords, subword_dim, padding_idx=PAD, sparse=True)
        self.dropout: nn.Dropout = nn.Dropout(params.dropout)
        self.query: Encoder = Encoder(encoder, *sizes, relu=encoder != "mean")
        if combine in WITH_NAMES:
            self.name: Encoder = Encoder(encoder, *sizes, relu=params.name_activation == "relu")
            self.name.dense.weight.data *= _NAME_GAIN
        if combine in WITH_IDS:
            self.label_ids: nn.Embedding = nn.Embedding(n_labels, embedding_dim, sparse=True)
            spread = 1 / math.sqrt(embedding_dim)
            if self.id_center:
                spread = 0.0 if encoder == "mean" else _ID_SPREAD
            self.label_ids.weight.data.mul_(spread).add_(self.id_center)
        if combine == "concat":
            self.project: nn.Linear = nn.Linear(2 * embedding_dim, embedding_dim)
        if combine == "gile":
            self.scale: nn.Parameter = nn.Parameter(torch.ones(embedding_dim))
        self.bias: nn.Embedding = nn.Embedding(n_labels if params.bias == "label" else 1, 1, sparse=True)
        if params.bias == "none":
            self.bias.weight.data.zero_()
            self.bias.weight.requires_grad = False

    def encode(self, side: Side, texts: Tensor) -> Tensor:
        """q of queries, or f_text of names, float (n, E), of subword ids (n, T), padded."""
        lengths = (texts != PAD).sum(dim=1)
        longest = max(1, int(lengths.max())) if len(texts) else 1
        vectors = self.subwords(texts[:, :longest])
        vectors = self.dropout(vectors) if side == "query" else vectors
        return getattr(self, side)(vectors, lengths)  # type: ignore[no-any-return]

    def label_vectors(self, ids: Tensor | None, names: Tensor | None) -> Tensor:
        """f, float (r, E), of f_id and f_text (r, E), each where `combine` has a use for it."""
        if ids is None:
            assert names is not None
            return self.scale * names if self.combine == "gile" else names
        if names is None:
            return ids
        if self.combine == "concat":
            return torch.tanh(self.project(torch.cat([ids, names], dim=1)))
        return ids * names

    def ids(self, labels: Tensor) -> Tensor | None:
        """f_id, float (r, E), of some labels; None where they have no vectors of their own."""
        return self.label_ids(labels) if self.combine in WITH_IDS else None

    def biases(self, labels: Tensor) -> Tensor:
        """b, float (r,), of some labels."""
        return self.bias(labels % self.bias.num_embeddings)[:, 0]  # type: ignore[no-any-return]

    # --- as arrays ---------------------------------------------------------

    @torch.no_grad()
    def encoded(self, side: Side, texts: np.ndarray, n_jobs: int) -> np.ndarray:
        """As `encode`, of subword ids int64 (n, T); float32 (n, E)."""
        self.eval()
        with torch_threads(n_jobs):
            parts = torch.split(torch.from_numpy(texts), _ENCODED_AT_ONCE)
            return torch.cat([self.encode(side, part) for part in parts]).numpy()  # type: ignore[no-any-return]

    @torch.no_grad()
    def all_labels(self, names: np.ndarray | None, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """f, float32 (L, E), and b, float32 (L,), of all labels and the subword ids of their names."""
        labels = torch.arange(self.n_labels)
        f_text = None if names is None else torch.from_numpy(self.encoded("name", names, n_jobs))
        with torch_threads(n_jobs):
            return self.label_vectors(self.ids(labels), f_text).numpy(), self.biases(labels).numpy()

    @torch.no_grad()
    def vectors_alike(self, f_text: np.ndarray, alike: np.ndarray | None, n_jobs: int) -> np.ndarray:
        """f, float32 (r, E), of encoded names; f_id is the mean of those of the labels `alike` (r, j)."""
        ids = None if alike is None else self.label_ids(torch.from_numpy(alike).long()).mean(dim=1)
        with torch_threads(n_jobs):
            return self.label_vectors(ids, torch.from_numpy(f_text)).numpy()


@contextmanager
def torch_threads(n_jobs: int) -> Iterator[None]:
    """torch uses at most this many threads within the block (`openmp_threads`), and after it what it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(openmp_threads(n_jobs, "torch"))
    try:
        yield
    finally:
        torch.set_num_threads(before)

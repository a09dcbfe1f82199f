"""Text encoders as torch modules: vectors of subwords in, one vector a text out.

All end in a dense layer. Padding has no effect. A text without any subword gives the zero vector, so its
scores are the labels' biases.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from metarank.text.kinds import CNN_WIDTH


class Encoder(nn.Module):
    """``W h + b`` of a summary h of the text, which subclasses make, through ReLU or as it is.

    Parameters
    ----------
    subword_dim, hidden_dim, embedding_dim : int
        G, H and E.
    relu : bool
    """

    def __init__(self, subword_dim: int, hidden_dim: int, embedding_dim: int, relu: bool = True) -> None:
        super().__init__()
        self.relu = relu
        self.dense: nn.Linear = nn.Linear(hidden_dim, embedding_dim)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Float (n, H) of vectors (n, T, G); lengths int64 (n,) on the CPU, in [1, T]."""
        raise NotImplementedError

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Float (n, E) of vectors (n, T, G); lengths int64 (n,) on the CPU, in [0, T]."""
        out = self.dense(self.summary(vectors, lengths.clamp(min=1)))
        out = torch.relu(out) if self.relu else out
        return out * (lengths > 0).to(out)[:, None]


class BiLSTM(Encoder):
    """h = the last states of an LSTM read forwards and of one read backwards, H/2 each."""

    def __init__(self, subword_dim: int, hidden_dim: int, embedding_dim: int, relu: bool = True) -> None:
        super().__init__(subword_dim, hidden_dim, embedding_dim, relu)
        self.lstm: nn.LSTM = nn.LSTM(subword_dim, hidden_dim // 2, batch_first=True, bidirectional=True)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return torch.cat([last[0], last[1]], dim=1)


class CNN(Encoder):
    """h = the greatest response of each of H filters over `CNN_WIDTH` neighbouring subwords, through tanh."""

    def __init__(self, subword_dim: int, hidden_dim: int, embedding_dim: int, relu: bool = True) -> None:
        super().__init__(subword_dim, hidden_dim, embedding_dim, relu)
        self.convolution: nn.Conv1d = nn.Conv1d(subword_dim, hidden_dim, CNN_WIDTH, padding=CNN_WIDTH // 2)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        inside = _inside(vectors, lengths)
        response = self.convolution((vectors * inside[:, :, None]).transpose(1, 2))
        response = response.masked_fill(~inside[:, None, :], -torch.inf)
        return torch.tanh(response.amax(dim=2))


class BagOfWords(Encoder):
    """h = tanh(W m + b) of the mean m of the subword vectors."""

    def __init__(self, subword_dim: int, hidden_dim: int, embedding_dim: int, relu: bool = True) -> None:
        super().__init__(subword_dim, hidden_dim, embedding_dim, relu)
        self.hidden: nn.Linear = nn.Linear(subword_dim, hidden_dim)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        total = (vectors * _inside(vectors, lengths)[:, :, None]).sum(dim=1)
        return torch.tanh(self.hidden(total / lengths.to(vectors)[:, None]))


class MeanOfSubwords(Encoder):
    """h = the sum of the subword vectors over the root of their number; begins with W = I and without ReLU.

    With vectors of `first_vectors` it begins as a comparison of texts with names, and learns from there.
    """

    def __init__(self, subword_dim: int, hidden_dim: int, embedding_dim: int, relu: bool = True) -> None:
        super().__init__(subword_dim, subword_dim, embedding_dim, relu)
        nn.init.eye_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)

    def summary(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        total = (vectors * _inside(vectors, lengths)[:, :, None]).sum(dim=1)
        return total / lengths.to(vectors)[:, None].sqrt()


ENCODERS: dict[str, type[Encoder]] = {
    "bilstm": BiLSTM,
    "cnn": CNN,
    "bow": BagOfWords,
    "mean": MeanOfSubwords,
}


def _inside(vectors: Tensor, lengths: Tensor) -> Tensor:
    """Bool (n, T): where the texts are, not padding."""
    position = torch.arange(vectors.shape[1], device=vectors.device)
    return position[None, :] < lengths.to(vectors.device)[:, None]

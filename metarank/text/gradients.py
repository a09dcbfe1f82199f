"""`BatchGradients`: gradients as sums over parts that do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from metarank.text.dropout import Dropout
from metarank.text.encoders import Encoder
from metarank.text.kinds import WITH_NAMES
from metarank.text.losses import FUNCTIONS
from metarank.text.network import Network
from metarank.text.parallel import Map
from metarank.text.subwords import PAD, TokenLists

# Parts a batch is cut into, of at least so many texts; more threads than parts have nothing to do.
_MOST_PARTS = 8
_LEAST_TEXTS = 16


class TextData(NamedTuple):
    """Texts with their labels, and what the labels are called.

    Attributes
    ----------
    texts : TokenLists, n of them
    Y : CSR (n, L), canonical
    names : TokenLists
        The distinct names.
    name_of_label : int64 array (L,)
        Which of them each label has.
    """

    texts: TokenLists
    Y: sp.csr_matrix
    names: TokenLists
    name_of_label: np.ndarray


class RowGradient(NamedTuple):
    """The gradient of some rows of a table; of the others it is zero."""

    rows: np.ndarray
    values: Tensor


class _Part(NamedTuple):
    """Texts of one part as a rectangle of places in the table of the batch.

    `mask`, float (n, T, G), is what their subword vectors are multiplied by, None where they are taken whole.
    """

    places: Tensor
    lengths: Tensor
    mask: Tensor | None


class BatchGradients:
    """Loss and gradients of one batch after another.

    Parameters
    ----------
    network : Network
    data : TextData
    loss : "bce" or "warp"
    device : torch.device
    run : callable
        See `workers`.
    """

    def __init__(self, network: Network, data: TextData, loss: str, device: torch.device, run: Map) -> None:
        self.network, self.data, self.device, self.run = network, data, device, run
        self.loss = FUNCTIONS[loss]

    def __call__(
        self,
        rows: np.ndarray,
        labels: np.ndarray,
        offset: np.ndarray | None,
        dropout: Dropout,
    ) -> tuple[float, dict[str, Tensor | RowGradient]]:
        """Mean loss of the rows over some labels, and its gradients by the parameter's name.

        Parameters
        ----------
        rows, labels : int64 array
            Labels ascending.
        offset : float array (len(labels),) or None
            Added to the scores before the loss.
        dropout : Dropout
            Of the entries of the texts' subword vectors.
        """
        network, data = self.network, self.data
        texts = data.texts.take(rows)
        named, name_of = np.unique(data.name_of_label[labels], return_inverse=True)
        names = data.names.take(named if network.combine in WITH_NAMES else named[:0])
        used = np.unique(np.concatenate([[PAD], texts.tokens, names.tokens]))
        table = network.subwords.detach()[self._to_device(used)]
        d_table = torch.zeros_like(table)
        gradients: dict[str, Tensor | RowGradient] = {}

        # Forward through the names, kept open until the gradient of the outcome is known.
        name_parts = self._parts(names, used)
        encoded = self.run(lambda part: _encode(network.name, table, part), name_parts)
        at = self._to_device(labels)
        ends: dict[str, Tensor] = {}  # what label vectors are made of
        if hasattr(network, "label_ids"):
            ends["label_ids"] = _leaf(network.label_ids[at])
        if name_parts:
            ends["names"] = _leaf(torch.cat([outcome for _, outcome in encoded]))
        ends |= network.head_parameters()
        f_text = ends["names"][self._to_device(name_of)] if name_parts else None
        vectors = network.label_vectors(ends.get("label_ids"), f_text)

        # The queries against those vectors, part by part.
        bias = network.bias.detach()[at] if network.has_label_bias else network.bias.detach()
        shift = 0.0 if offset is None else self._to_device(offset.astype(np.float32))
        parameters = dict(network.query.named_parameters())
        fixed = vectors.detach()

        def of_queries(job: tuple[_Part, np.ndarray]) -> tuple[float, Tensor, Sequence[Tensor]]:
            part, targets = job
            f, b = _leaf(fixed), _leaf(bias)
            subwords, q = _encode(network.query, table, part)
            loss = self.loss(q @ f.T + b + shift, self._to_device(targets)) / len(rows)
            first, *others = torch.autograd.grad(loss, [subwords, f, b, *parameters.values()])
            return float(loss.detach()), first, others

        mask = dropout.mask(len(texts.tokens), table.shape[1])
        query_parts = self._parts(texts, used, mask)
        targets = np.array_split(_targets(data.Y, rows, labels), len(query_parts))
        losses, d_subwords, others = zip(*self.run(of_queries, list(zip(query_parts, targets))))
        _add_up(d_table, query_parts, d_subwords)
        d_vectors, d_bias, *d_query = _summed(others)
        gradients |= {f"query.{name}": d for name, d in zip(parameters, d_query)}
        gradients["bias"] = RowGradient(labels, d_bias) if network.has_label_bias else d_bias

        # Back through the label vectors and the names.
        if vectors is ends.get("label_ids"):
            gradients["label_ids"] = RowGradient(labels, d_vectors)
        else:
            d_ends = dict(zip(ends, torch.autograd.grad(vectors, list(ends.values()), d_vectors)))
            if "label_ids" in ends:
                gradients["label_ids"] = RowGradient(labels, d_ends.pop("label_ids"))
            d_names = torch.split(d_ends.pop("names"), [len(part.lengths) for part in name_parts])
            gradients |= d_ends
            parameters = dict(network.name.named_parameters())

            def of_names(job: tuple[tuple[Tensor, Tensor], Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
                (subwords, outcome), d_outcome = job
                first, *others = torch.autograd.grad(outcome, [subwords, *parameters.values()], d_outcome)
                return first, others

            d_subwords, others = zip(*self.run(of_names, list(zip(encoded, d_names))))
            _add_up(d_table, name_parts, d_subwords)
            gradients |= {f"name.{name}": d for name, d in zip(parameters, _summed(others))}
        d_table[PAD] = 0
        gradients["subwords"] = RowGradient(used, d_table)
        return float(sum(losses)), gradients

    def _parts(self, texts: TokenLists, used: np.ndarray, mask: np.ndarray | None = None) -> list[_Part]:
        """The texts as places in `used`, cut into parts; the mask has a row a subword."""
        n_parts = min(_MOST_PARTS, -(-texts.n_rows // _LEAST_TEXTS))
        places = TokenLists(texts.indptr, np.searchsorted(used, texts.tokens))
        out = []
        for rows in np.array_split(np.arange(texts.n_rows), n_parts) if n_parts else []:
            padded, lengths = places.take(rows).padded()
            of_part = None
            if mask is not None:
                of_rows = mask[texts.indptr[rows[0]] : texts.indptr[rows[-1] + 1]]
                of_part = self._to_device(_rectangle(of_rows, lengths))
            out.append(_Part(self._to_device(padded), torch.from_numpy(lengths), of_part))
        return out

    def _to_device(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)


def _encode(encoder: Encoder, table: Tensor, part: _Part) -> tuple[Tensor, Tensor]:
    """The subword vectors of a part, to be differentiated, and what becomes of them."""
    subwords = table[part.places].requires_grad_()
    seen = subwords if part.mask is None else subwords * part.mask
    return subwords, encoder(seen, part.lengths)


def _rectangle(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Float32 (n, T, G), as `TokenLists.padded`: the values of each text's subwords, zeros after them."""
    out = np.zeros((len(lengths), max(1, int(lengths.max(initial=0))), values.shape[1]), np.float32)
    out[np.arange(out.shape[1]) < lengths[:, None]] = values
    return out


def _leaf(values: Tensor) -> Tensor:
    return values.detach().clone().requires_grad_()


def _summed(parts: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The sum over parts of each of their tensors, in the order of the parts."""
    total = [values.clone() for values in parts[0]]
    for part in parts[1:]:
        for sum_, values in zip(total, part):
            sum_ += values
    return total


def _add_up(d_table: Tensor, parts: Sequence[_Part], d_subwords: Sequence[Tensor]) -> None:
    """Add the gradients of the parts' subword vectors to those of the table."""
    for part, values in zip(parts, d_subwords):
        d_table.index_add_(0, part.places.flatten(), values.flatten(0, 1))


def _targets(Y: sp.csr_matrix, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Float32 (len(rows), len(labels)): 1 where relevant."""
    part = Y[rows]
    out = np.zeros((len(rows), len(labels)), np.float32)
    place = np.minimum(np.searchsorted(labels, part.indices), len(labels) - 1)
    there = labels[place] == part.indices
    out[np.repeat(np.arange(len(rows)), np.diff(part.indptr))[there], place[there]] = 1
    return out

"""`BatchGradients`: gradients as sums over parts that do not depend on the number of threads.

Within a part torch differentiates. Its own threads add up in an order that changes with their number, and so
would the bytes of a model: parts run side by side, with one thread of torch's each, and are added in their
order here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from metarank.text.dropout import Dropout
from metarank.text.encoders import Encoder
from metarank.text.kinds import WITH_IDS, WITH_NAMES
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


Gradients: TypeAlias = dict[str, Tensor | RowGradient]


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
    id_penalty : float
        See `LabelEmbedder`.
    """

    def __init__(
        self,
        network: Network,
        data: TextData,
        loss: str,
        device: torch.device,
        run: Map,
        id_penalty: float = 0.0,
    ) -> None:
        self.network: Network = network
        self.data: TextData = data
        self.device: torch.device = device
        self.run: Map = run
        self.loss: Callable[[Tensor, Tensor], Tensor] = FUNCTIONS[loss]
        counts = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
        self.penalty: np.ndarray | None = (
            (id_penalty / np.maximum(counts, 1)).astype(np.float32) if id_penalty else None
        )

    def __call__(
        self,
        rows: np.ndarray,
        labels: np.ndarray,
        offset: np.ndarray | None,
        dropout: Dropout,
    ) -> tuple[float, Gradients]:
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

        # Forward through the names, kept open until the gradient of the outcome is known.
        name_parts = self._parts(names, used)
        encoded = self.run(lambda part: _encode(network.name, table, part), name_parts)
        ends = network.head_parameters()  # what label vectors are made of
        if network.combine in WITH_IDS:
            ends["label_ids"] = _leaf(network.label_ids[self._to_device(labels)])
        f_text = None
        if name_parts:
            ends["names"] = _leaf(torch.cat([outcome for _, outcome in encoded]))
            f_text = ends["names"][self._to_device(name_of)]
        vectors = network.label_vectors(ends.get("label_ids"), f_text)

        query_parts = self._parts(texts, used, dropout.mask(len(texts.tokens), table.shape[1]))
        targets = np.array_split(_targets(data.Y, rows, labels), len(query_parts))
        jobs = list(zip(query_parts, targets))
        loss, d_queries, d_vectors, gradients = self._of_queries(
            jobs, table, vectors.detach(), labels, offset
        )

        # Back through the label vectors and the names.
        d_ends = dict(zip(ends, torch.autograd.grad(vectors, list(ends.values()), d_vectors)))
        d_outcomes = (
            torch.split(d_ends.pop("names"), [len(p.lengths) for p in name_parts]) if name_parts else ()
        )
        d_names, of_names = self._of_names(list(zip(encoded, d_outcomes)))
        gradients |= of_names
        if self.penalty is not None and "label_ids" in ends:
            weight = self._to_device(2 * self.penalty[labels])[:, None]
            d_ends["label_ids"] = d_ends["label_ids"] + weight * (
                ends["label_ids"].detach() - network.id_center
            )
        for name, d in d_ends.items():
            gradients[name] = RowGradient(labels, d) if name == "label_ids" else d
        d_table = torch.zeros_like(table)
        for part, d_subwords in zip([*query_parts, *name_parts], [*d_queries, *d_names]):
            d_table.index_add_(0, part.places.flatten(), d_subwords.flatten(0, 1))
        d_table[PAD] = 0
        gradients["subwords"] = RowGradient(used, d_table)
        return loss, gradients

    def _of_queries(
        self,
        jobs: list[tuple[_Part, np.ndarray]],
        table: Tensor,
        vectors: Tensor,
        labels: np.ndarray,
        offset: np.ndarray | None,
    ) -> tuple[float, Sequence[Tensor], Tensor, Gradients]:
        """The texts against label vectors, part by part.

        Returns the loss, the gradients of the parts' subword vectors, that of the label vectors, and those of
        the parameters by name.
        """
        network = self.network
        bias = network.bias.detach()
        if network.has_label_bias:
            bias = bias[self._to_device(labels)]
        shift = 0.0 if offset is None else self._to_device(offset.astype(np.float32))
        parameters = dict(network.query.named_parameters())

        def one(job: tuple[_Part, np.ndarray]) -> tuple[float, Tensor, Sequence[Tensor]]:
            part, targets = job
            f, b = _leaf(vectors), _leaf(bias)
            subwords, q = _encode(network.query, table, part)
            loss = self.loss(q @ f.T + b + shift, self._to_device(targets)) / n_rows
            first, *others = torch.autograd.grad(loss, [subwords, f, b, *parameters.values()])
            return float(loss.detach()), first, others

        n_rows = sum(len(targets) for _, targets in jobs)
        losses, d_subwords, others = zip(*self.run(one, jobs))
        d_vectors, d_bias, *d_query = _summed(others)
        gradients: Gradients = {f"query.{name}": d for name, d in zip(parameters, d_query)}
        gradients["bias"] = RowGradient(labels, d_bias) if network.has_label_bias else d_bias
        return float(sum(losses)), d_subwords, d_vectors, gradients

    def _of_names(
        self, jobs: list[tuple[tuple[Tensor, Tensor], Tensor]]
    ) -> tuple[Sequence[Tensor], Gradients]:
        """Gradients of the names' subword vectors, part by part, and of the parameters by name.

        A part has its subword vectors, what became of them, and the gradient of that.
        """
        if not jobs:
            return [], {}
        parameters = dict(self.network.name.named_parameters())

        def one(job: tuple[tuple[Tensor, Tensor], Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
            (subwords, outcome), d_outcome = job
            first, *others = torch.autograd.grad(outcome, [subwords, *parameters.values()], d_outcome)
            return first, others

        d_subwords, others = zip(*self.run(one, jobs))
        return d_subwords, {f"name.{name}": d for name, d in zip(parameters, _summed(others))}

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


def _targets(Y: sp.csr_matrix, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Float32 (len(rows), len(labels)): 1 where relevant."""
    part = Y[rows]
    out = np.zeros((len(rows), len(labels)), np.float32)
    place = np.minimum(np.searchsorted(labels, part.indices), len(labels) - 1)
    there = labels[place] == part.indices
    out[np.repeat(np.arange(len(rows)), np.diff(part.indptr))[there], place[there]] = 1
    return out

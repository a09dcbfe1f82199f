"""From texts and labels to a trained network: subwords, the held-out part, training, weights as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from metarank._util.progress import report
from metarank.text.epochs import MEASURE, Options, arrays_of, train
from metarank.text.gradients import TextData
from metarank.text.kinds import WITH_LABEL_BIAS
from metarank.text.network import Network, Sizes
from metarank.text.subword_vectors import first_vectors
from metarank.text.subwords import Subwords, joined

if TYPE_CHECKING:
    from metarank.text.embedder import LabelEmbedder

# With more labels than this a step looks at so many of them (sampled_labels="auto").
ALL_LABELS = 4096
# Fewer distinct texts than this leave none to hold out.
LEAST_TO_HOLD_OUT = 10


class Fitted(NamedTuple):
    """Result of training.

    Attributes
    ----------
    subwords : Subwords
    weights : dict of str to float32 array
    history : dict of str to list of float
    best_epoch : int
    """

    subwords: Subwords
    weights: dict[str, np.ndarray]
    history: dict[str, list[float]]
    best_epoch: int


def fit_network(
    model: LabelEmbedder,
    texts: list[str],
    Y: sp.csr_matrix,
    names: list[str],
    n_jobs: int,
    checkpoint: Path | None,
    unlabelled: Sequence[str] = (),
) -> Fitted:
    """Train as the parameters of `model` say, which are checked; `names` is empty where they play no part.

    Subwords, and with the encoder "mean" their first vectors, are learned from `unlabelled` texts as well.
    """
    device = _device(model.device)
    report("learning subwords", 0.0)
    distinct_names, name_of_label = _distinct(names)
    held_out = held_out_rows(texts, model.validation_fraction, model.random_state)
    learned = [text for text, out in zip(texts, held_out) if not out]
    subwords = Subwords.trained([*learned, *unlabelled, *distinct_names], model.vocabulary_size)
    if not names:
        name_of_label = np.zeros(Y.shape[1], np.int64)
    tokens = subwords.encode(texts, model.max_length)
    named = subwords.encode(distinct_names, model.max_length)
    data, watched = (
        TextData(tokens.take(rows), Y[rows], named, name_of_label) if len(rows) else None
        for rows in (np.flatnonzero(~held_out), np.flatnonzero(held_out))
    )
    assert data is not None
    network = _initial_network(model, len(subwords), data)
    if model.encoder == "mean":
        report("learning subword vectors", 0.0)
        read = joined(data.texts, subwords.encode(list(unlabelled), model.max_length), named)
        first = first_vectors(read, len(subwords), model.subword_dim, model.random_state)
        network.subwords.data[:] = torch.from_numpy(first)
    history = train(network, data, watched, _options(model, Y.shape[1]), device, n_jobs, checkpoint)
    weights = arrays_of(network)
    seen = {"loss": history.loss} | ({MEASURE: history.ndcg} if history.ndcg else {})
    return Fitted(subwords, weights, seen, history.best)


def held_out_rows(texts: list[str], fraction: float, seed: int) -> np.ndarray:
    """Bool (n,): the rows to choose the epoch by; equal texts, but for case, stay together.

    Examples
    --------
    >>> held_out_rows(["a", "A", "b"], 0.5, seed=0)
    array([False, False, False])
    """
    _, number = np.unique([text.casefold() for text in texts], return_inverse=True)
    n_distinct = int(number.max()) + 1
    if n_distinct < LEAST_TO_HOLD_OUT or fraction == 0:
        return np.zeros(len(texts), bool)
    n_out = min(n_distinct - 1, max(1, round(fraction * n_distinct)))
    out = np.zeros(n_distinct, bool)
    out[np.random.default_rng(seed).permutation(n_distinct)[:n_out]] = True
    return out[number]


def _distinct(names: list[str]) -> tuple[list[str], np.ndarray]:
    """The distinct names in the order they come, and which of them each label has."""
    place = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], np.int64)


def _initial_network(model: LabelEmbedder, n_subwords: int, data: TextData) -> Network:
    """A network whose bias is the log-odds of each label, or of labels at large, in the training texts."""
    n, n_labels = data.Y.shape
    label_bias = model.combine in WITH_LABEL_BIAS if model.bias == "auto" else model.bias == "label"
    count, most = np.bincount(data.Y.indices, minlength=n_labels), n
    if not label_bias:
        count, most = count.sum(keepdims=True), n * n_labels
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.random_state)
        sizes = Sizes(model.subword_dim, model.hidden_dim, model.embedding_dim)
        network = Network(
            n_subwords,
            n_labels,
            sizes,
            encoder=model.encoder,
            combine=model.combine,
            name_activation=model.name_activation,
            label_bias=label_bias,
        )
    network.bias.data[:] = torch.from_numpy(np.log((count + 0.5) / (most - count + 0.5)).astype(np.float32))
    return network


def _options(model: LabelEmbedder, n_labels: int) -> Options:
    sampled = model.sampled_labels
    if sampled == "auto":
        sampled = ALL_LABELS if n_labels > ALL_LABELS else None
    same = ("batch_size", "learning_rate", "n_epochs", "patience", "loss")
    return Options(
        **{name: getattr(model, name) for name in same},
        sampled_labels=sampled,
        seed=model.random_state,
        dropout=float(model.dropout),
        id_penalty=float(model.id_penalty),
    )


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device must be 'auto' or 'cpu' where torch sees no CUDA device, got 'cuda'")
    return torch.device(name)

"""Training of a `Network`: Adam over shuffled batches, early stopping on held-out texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from metarank._util.progress import report
from metarank.metrics import evaluate
from metarank.text.network import Network, torch_threads
from metarank.text.scores import ScoredLabels
from metarank.text.subword_vectors import first_vectors
from metarank.text.subwords import Subwords

# What early stopping looks at.
_MEASURE = "nDCG@5"
# With more labels than this a step looks at so many of them (sampled_labels="auto").
_ALL_LABELS = 4096
# Fewer distinct texts than this leave none to hold out.
_LEAST_TO_HOLD_OUT = 10
# By how much a relevant label should lead (WARP).
_MARGIN = 1.0


class Data(NamedTuple):
    """Texts with their labels, and the labels' names: subword ids int64 (n, T) and (L, T), Y CSR (n, L)."""

    texts: np.ndarray
    Y: sp.csr_matrix
    names: np.ndarray | None

    def rows(self, rows: np.ndarray) -> Data:
        return Data(self.texts[rows], self.Y[rows], self.names)


class Trained(NamedTuple):
    """A trained network, its subwords, what was measured after each epoch, and the best one, from 1."""

    network: Network
    subwords: Subwords
    history: dict[str, list[float]]
    best_epoch: int


def trained(
    model: Any,
    texts: list[str],
    Y: sp.csr_matrix,
    names: list[str] | None,
    seed: int,
    n_jobs: int,
    unlabelled: Sequence[str],
) -> Trained:
    """Train with the parameters of `model`, a `LabelEmbedder`; `names` is None if they are ignored.

    Subwords, and with the encoder "mean" their first vectors, are learned from `unlabelled` texts as well.
    """
    report("learning subwords", 0.0)
    held_out = held_out_rows(texts, model.validation_fraction, seed)
    read = [*(text for text, out in zip(texts, held_out) if not out), *unlabelled, *(names or ())]
    subwords = Subwords.trained(read, model.vocabulary_size)
    named = None if names is None else subwords.encode(names, model.max_length)
    data = Data(subwords.encode(texts, model.max_length), Y, named)
    learned, watched = data.rows(np.flatnonzero(~held_out)), data.rows(np.flatnonzero(held_out))
    with torch_threads(n_jobs), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(model, len(subwords), Y.shape[1])
        if model.bias != "none":
            network.bias.weight.data[:, 0] = _log_odds(learned.Y, network.bias.num_embeddings)
        if model.encoder == "mean":
            report("learning subword vectors", 0.0)
            first = first_vectors(
                subwords.encode(read, model.max_length), len(subwords), model.subword_dim, seed
            )
            network.subwords.weight.data[:] = torch.from_numpy(first)
        history, best_epoch = _train(network, learned, watched, model, seed, n_jobs)
    return Trained(network.eval(), subwords, history, best_epoch)


def held_out_rows(texts: list[str], fraction: float, seed: int) -> np.ndarray:
    """Bool (n,): the rows to choose the epoch by; texts that differ only in case stay together.

    Examples
    --------
    >>> held_out_rows(["a", "A", "b"], 0.5, seed=0)
    array([False, False, False])
    """
    _, number = np.unique([text.casefold() for text in texts], return_inverse=True)
    n_distinct = int(number.max()) + 1
    if n_distinct < _LEAST_TO_HOLD_OUT or fraction == 0:
        return np.zeros(len(texts), bool)
    n_out = min(n_distinct - 1, max(1, round(fraction * n_distinct)))
    out = np.zeros(n_distinct, bool)
    out[np.random.default_rng(seed).permutation(n_distinct)[:n_out]] = True
    return out[number]


def _log_odds(Y: sp.csr_matrix, n_biases: int) -> Tensor:
    """The log-odds of each label, or of labels at large, in the training texts."""
    count, most = np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0]
    if n_biases == 1:
        count, most = count.sum(keepdims=True), Y.shape[0] * Y.shape[1]
    return torch.from_numpy(np.log((count + 0.5) / (most - count + 0.5)).astype(np.float32))


def _train(
    network: Network, data: Data, held_out: Data, model: Any, seed: int, n_jobs: int
) -> tuple[dict[str, list[float]], int]:
    """Fit the network in place; with a held-out part, to the parameters of the best epoch."""
    step, n = _Step(network, data, model), len(data.texts)
    losses: list[float] = []
    ndcg: list[float] = []
    best: dict[str, Tensor] = {}
    best_epoch = 0
    for epoch in range(model.n_epochs):
        rng = np.random.default_rng([seed, epoch])
        order, total = rng.permutation(n), 0.0
        network.train()
        for start in range(0, n, model.batch_size):
            rows = order[start : start + model.batch_size]
            total += step(rows, rng) * len(rows)
            done = (epoch + (start + len(rows)) / n) / model.n_epochs
            report(f"training, epoch {epoch + 1}", min(done, 0.99))
        losses.append(total / n)
        if not len(held_out.texts):
            best_epoch = epoch + 1
            continue
        ndcg.append(_quality(network, held_out, n_jobs))
        if ndcg[-1] > max(ndcg[:-1], default=-1.0):
            best_epoch, best = epoch + 1, copy.deepcopy(network.state_dict())
        elif epoch + 1 - best_epoch >= model.patience:
            break
    if best:
        network.load_state_dict(best)
    return {"loss": losses} | ({_MEASURE: ndcg} if ndcg else {}), best_epoch


class _Step:
    """One step of Adam (Kingma and Ba, 2015); of a table it moves only the rows that a batch has touched."""

    def __init__(self, network: Network, data: Data, model: Any) -> None:
        self.network, self.data = network, data
        self.loss: Callable[[Tensor, Tensor], Tensor] = _LOSSES[model.loss]
        n_labels = data.Y.shape[1]
        sampled = min(n_labels, _ALL_LABELS) if model.sampled_labels == "auto" else model.sampled_labels
        self.n_sampled: int = n_labels if sampled is None else int(sampled)
        counts = np.bincount(data.Y.indices, minlength=n_labels)
        self.penalty: Tensor = torch.from_numpy(model.id_penalty / np.maximum(counts, 1)).float()
        tables = [part.weight for part in network.modules() if isinstance(part, nn.Embedding)]
        others = [p for p in network.parameters() if not any(p is table for table in tables)]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.SparseAdam(tables, lr=model.learning_rate),
            torch.optim.Adam(others, lr=model.learning_rate),
        ]

    def __call__(self, rows: np.ndarray, rng: np.random.Generator) -> float:
        """Learn from some rows; the mean loss of them before."""
        network, data = self.network, self.data
        sampled, log_share = labels_of_step(data.Y, rows, self.n_sampled, rng)
        labels = torch.from_numpy(sampled)
        ids = network.ids(labels)
        f_text = None if data.names is None else network.encode("name", torch.from_numpy(data.names[sampled]))
        queries = network.encode("query", torch.from_numpy(data.texts[rows]))
        scores = queries @ network.label_vectors(ids, f_text).T + network.biases(labels)
        targets = torch.from_numpy(data.Y[rows][:, sampled].toarray() > 0).float()
        loss = self.loss(scores - torch.from_numpy(log_share).float(), targets) / len(rows)
        drawn = loss
        if ids is not None:
            drawn = loss + (self.penalty[labels, None] * (ids - network.id_center) ** 2).sum()
        network.zero_grad()
        torch.autograd.backward(drawn)
        for optimizer in self.optimizers:
            optimizer.step()
        return float(loss.detach())


def labels_of_step(
    Y: sp.csr_matrix, rows: np.ndarray, n_sampled: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The labels of a step, ascending, and the logarithm of the chance to be among them, float64.

    The labels relevant for the batch and others drawn at random. An irrelevant pair (i, l) is then seen with
    probability ``pi_l = 1 - (1 - share of rows with l)^(n - 1) (1 - share of labels drawn)``, a relevant one
    always, so that the odds of what is seen are 1 / pi_l times too high: ``-log pi_l`` is added to the scores
    in training, and the scores themselves stay right.
    """
    n_labels = Y.shape[1]
    if n_sampled >= n_labels:
        return np.arange(n_labels), np.zeros(n_labels)
    relevant = np.unique(Y[rows].indices).astype(np.int64)
    others = np.setdiff1d(np.arange(n_labels), relevant, assume_unique=True)
    n_drawn = min(len(others), max(1, n_sampled - len(relevant)))
    drawn = rng.choice(others, n_drawn, replace=False, shuffle=False)
    labels = np.sort(np.concatenate([relevant, drawn]))
    share = np.bincount(Y.indices, minlength=n_labels)[labels] / Y.shape[0]
    return labels, np.log(1 - (1 - share) ** (len(rows) - 1) * (1 - n_drawn / max(1, len(others))))


def _bce(logits: Tensor, targets: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(logits, targets, reduction="sum")


def softmax_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the softmax over labels; the labels of a row share its target; without labels there is
    no loss."""
    share = targets / targets.sum(dim=1, keepdim=True).clamp(min=1)
    return -(share * torch.log_softmax(logits, dim=1)).sum()


def warp_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Weighted approximate-rank pairwise loss (Weston et al., 2011), as TagSpace learns with.

    For each relevant label with score s, ``Phi(v)`` times the mean of ``max(0, 1 - s + s')`` over the v
    irrelevant labels for which that is positive; ``Phi(v) = sum_{j <= v} 1 / j``. The original draws labels
    until it finds one of the v and guesses v from the number of draws; here v is counted.
    """
    row, column = torch.nonzero(targets, as_tuple=True)
    lead = _MARGIN - logits[row, column][:, None] + logits[row]
    lead = lead.clamp(min=0) * (targets[row] == 0)
    count = (lead > 0).sum(dim=1)
    harmonic = torch.cumsum(1 / torch.arange(1, logits.shape[1] + 1), dim=0)
    weight = torch.where(count > 0, harmonic[(count - 1).clamp(min=0)] / count.clamp(min=1), 0.0)
    return (weight * lead.sum(dim=1)).sum()


_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "bce": _bce,
    "softmax": softmax_loss,
    "warp": warp_loss,
}


def _quality(network: Network, held_out: Data, n_jobs: int) -> float:
    """nDCG@5 of the held-out part."""
    queries = network.encoded("query", held_out.texts, n_jobs)
    found = ScoredLabels(*network.all_labels(held_out.names, n_jobs)).best(queries, 5, n_jobs)
    return evaluate(held_out.Y, found, [_MEASURE])[_MEASURE]

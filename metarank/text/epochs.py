"""Training of a `Network`: Adam over shuffled batches, early stopping on held-out texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from metarank import _core
from metarank._util.progress import report
from metarank.metrics import evaluate
from metarank.text.checkpoint import fingerprint_of, read_checkpoint, write_checkpoint
from metarank.text.dropout import Dropout
from metarank.text.gradients import BatchGradients, Gradients, RowGradient, TextData
from metarank.text.inference import TextModel
from metarank.text.kinds import WITH_NAMES
from metarank.text.network import Network
from metarank.text.parallel import workers
from metarank.types.ranking import Ranking

# What early stopping looks at.
MEASURE = "nDCG@5"
# Held-out texts scored at once.
_EVALUATED_AT_ONCE = 1024
_TABLES = ("subwords", "label_ids", "bias")


@dataclass(frozen=True)
class Options:
    """How to train; see `LabelEmbedder`."""

    batch_size: int
    learning_rate: float
    n_epochs: int
    patience: int
    sampled_labels: int | None
    loss: str
    seed: int
    dropout: float
    id_penalty: float = 0.0


@dataclass
class History:
    """Measurements after each epoch.

    Attributes
    ----------
    loss : list of float
        Mean over the training texts.
    ndcg : list of float
        nDCG@5 on the held-out part; empty without one.
    best : int
        The epoch whose parameters were kept, from 1.
    """

    loss: list[float]
    ndcg: list[float]
    best: int = 0


class Optimizer:
    """Adam (Kingma and Ba, 2015); of a table it moves only the rows that a batch has touched."""

    def __init__(self, network: Network, learning_rate: float) -> None:
        self.parameters: dict[str, Tensor] = dict(network.named_parameters())
        self.tables: set[str] = {
            name for name in _TABLES if name in self.parameters and len(self.parameters[name]) > 1
        }
        tables = [p for name, p in self.parameters.items() if name in self.tables]
        others = [p for name, p in self.parameters.items() if name not in self.tables]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.SparseAdam(tables, lr=learning_rate),
            torch.optim.Adam(others, lr=learning_rate),
        ]

    def step(self, gradients: Gradients) -> None:
        """One step along the gradients, by name of the parameter."""
        for name, gradient in gradients.items():
            p = self.parameters[name]
            if isinstance(gradient, RowGradient) and name in self.tables:
                rows = torch.from_numpy(gradient.rows[None]).to(p.device)
                p.grad = torch.sparse_coo_tensor(
                    rows, gradient.values, p.shape, is_coalesced=True, check_invariants=False
                )
            else:
                p.grad = gradient.values if isinstance(gradient, RowGradient) else gradient
        for optimizer in self.optimizers:
            optimizer.step()


def train(
    network: Network,
    data: TextData,
    held_out: TextData | None,
    options: Options,
    device: torch.device,
    n_jobs: int,
    checkpoint: Path | None = None,
) -> History:
    """Fit the network in place; with a held-out part, to the parameters of the best epoch.

    The order of the texts, the sampled labels and the entries that dropout leaves out in an epoch follow from
    (seed, epoch) alone. After each epoch the file `checkpoint`, if given, is written; if it exists, training
    resumes from it.
    """
    network.to(device)
    training = _Training(network, data, held_out, options, checkpoint)
    # On one accelerator parts run one after another.
    with workers(n_jobs if device.type == "cpu" else 1) as run:
        gradients = BatchGradients(network, data, options.loss, device, run, options.id_penalty)
        while not training.is_over():
            training.epoch(gradients, n_jobs)
    if training.best:
        network.load_state_dict(training.best)
    return training.history


class _Training:
    """Where training stands between two epochs."""

    def __init__(
        self,
        network: Network,
        data: TextData,
        held_out: TextData | None,
        options: Options,
        checkpoint: Path | None,
    ) -> None:
        self.network, self.data, self.held_out, self.options = network, data, held_out, options
        self.checkpoint = checkpoint
        self.optimizer = Optimizer(network, options.learning_rate)
        self.history = History([], [])
        self.best: dict[str, Tensor] = {}
        self.fingerprint = ""
        if checkpoint is not None:
            self.fingerprint = fingerprint_of(options, _kind(network), self._origin())
            if checkpoint.exists():
                state, self.best, history = read_checkpoint(
                    checkpoint, self.fingerprint, self.optimizer.optimizers
                )
                try:
                    network.load_state_dict(state)
                    self.history = History(**history)
                except (RuntimeError, TypeError) as error:
                    what = " ".join(str(error).split())
                    raise ValueError(f"checkpoint {str(checkpoint)!r} cannot be read: {what}") from None

    def _origin(self) -> list[np.ndarray]:
        arrays = list(arrays_of(self.network).values())
        for part in (self.data, self.held_out):
            if part is not None:
                arrays += [*part.texts, part.Y.indptr, part.Y.indices, *part.names, part.name_of_label]
        return arrays

    def is_over(self) -> bool:
        """Whether all epochs are done, or no gain was seen for long enough."""
        done = len(self.history.loss)
        without_gain = done - self.history.best
        return done >= self.options.n_epochs or (bool(self.best) and without_gain >= self.options.patience)

    def epoch(self, gradients: BatchGradients, n_jobs: int) -> None:
        """Pass over the texts once and see what it brought."""
        data, options, history = self.data, self.options, self.history
        number, n_rows = len(history.loss), data.texts.n_rows
        rng = np.random.default_rng([options.seed, number])
        order = rng.permutation(n_rows)
        total = 0.0
        for step, start in enumerate(range(0, n_rows, options.batch_size)):
            rows = order[start : start + options.batch_size]
            labels, offset = _labels_of_batch(data, rows, options, rng)
            dropout = Dropout(options.dropout, options.seed, number, step)
            loss, d = gradients(rows, labels, offset, dropout)
            self.optimizer.step(d)
            total += loss * len(rows)
            done = (number + (start + len(rows)) / n_rows) / options.n_epochs
            report(_stage(number, history), min(done, 0.99))
        history.loss.append(total / n_rows)
        if self.held_out is None:
            history.best = number + 1
        else:
            history.ndcg.append(_ndcg(self.network, self.held_out, n_jobs))
            if not self.best or history.ndcg[-1] > history.ndcg[history.best - 1]:
                history.best = number + 1
                self.best = {name: values.clone() for name, values in self.network.state_dict().items()}
        if self.checkpoint is not None:
            state, optimizers = self.network.state_dict(), self.optimizer.optimizers
            write_checkpoint(self.checkpoint, self.fingerprint, state, self.best, optimizers, asdict(history))


def _ndcg(network: Network, held_out: TextData, n_jobs: int) -> float:
    """nDCG@5 of the held-out part, by the kernels that predict."""
    model = TextModel(arrays_of(network), network.encoder, network.combine, network.name_activation)
    f_text = None
    if network.combine in WITH_NAMES:
        f_text = model.names(held_out.names, n_jobs)[held_out.name_of_label]
    vectors = model.label_vectors(model.weights.get("label_ids"), f_text, n_jobs)
    bias = np.broadcast_to(model.weights["bias"], len(vectors)).copy()
    rankings = []
    for start in range(0, held_out.texts.n_rows, _EVALUATED_AT_ONCE):
        rows = np.arange(start, min(held_out.texts.n_rows, start + _EVALUATED_AT_ONCE))
        queries = model.queries(held_out.texts.take(rows), n_jobs)
        scores = _core.vector_scores(queries, vectors, bias, n_jobs)
        rankings.append(Ranking.from_scores(scores, 5, n_jobs=n_jobs))
    return evaluate(held_out.Y, Ranking.concatenate(rankings), [MEASURE])[MEASURE]


def arrays_of(network: Network) -> dict[str, np.ndarray]:
    """The parameters as float32 arrays on the CPU, by name."""
    return {name: values.cpu().numpy() for name, values in network.state_dict().items()}


def _kind(network: Network) -> tuple[str, str, str]:
    return network.encoder, network.combine, network.name_activation


def _stage(epoch: int, history: History) -> str:
    best = f", {MEASURE} {max(history.ndcg):.4f}" if history.ndcg else ""
    return f"training, epoch {epoch + 1}{best}"


def _labels_of_batch(
    data: TextData, rows: np.ndarray, options: Options, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """The labels of a step, ascending, and what makes up for those left out.

    The labels relevant for the batch and others drawn at random. An irrelevant pair (i, l) is then seen with
    probability ``pi_l = 1 - (1 - share of rows with l)^(n - 1) (1 - share of labels drawn)``, a relevant one
    always, so that the odds of what is seen are 1 / pi_l times too high: ``-log pi_l`` is added to the scores
    in training, and the scores themselves stay right.
    """
    n_labels = data.Y.shape[1]
    if options.sampled_labels is None or options.sampled_labels >= n_labels:
        return np.arange(n_labels), None
    relevant = np.unique(data.Y[rows].indices).astype(np.int64)
    others = np.setdiff1d(np.arange(n_labels), relevant, assume_unique=True)
    n_drawn = min(len(others), max(1, options.sampled_labels - len(relevant)))
    drawn = rng.choice(others, n_drawn, replace=False, shuffle=False)
    labels = np.sort(np.concatenate([relevant, drawn]))
    share = np.bincount(data.Y.indices, minlength=n_labels)[labels] / data.Y.shape[0]
    seen = 1 - (1 - share) ** (len(rows) - 1) * (1 - n_drawn / max(1, len(others)))
    return labels, -np.log(seen)

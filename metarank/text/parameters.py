"""The rules of `LabelEmbedder`'s parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metarank._util.parameters import check_choice, check_integer, check_random_state, check_real
from metarank._util.progress import check_verbose
from metarank._util.threads import resolve_n_jobs
from metarank.text.kinds import COMBINES, ENCODER_KINDS, LOSSES, NAME_ACTIVATIONS, WITH_IDS

if TYPE_CHECKING:
    from metarank.text.embedder import LabelEmbedder

SEARCHES = ("exact", "faiss")
# Parameters that a fitted model is made by: setting them afterwards says how the next fit is made.
STRUCTURE = (
    "combine",
    "encoder",
    "name_activation",
    "max_length",
    "subword_dim",
    "hidden_dim",
    "embedding_dim",
)


def check_parameters(model: LabelEmbedder) -> int:
    """Refuses parameters that do not keep their rule; the number of threads.

    Raises
    ------
    ValueError, TypeError
    """
    n_jobs = resolve_n_jobs(model.n_jobs)
    check_choice("combine", model.combine, COMBINES)
    check_choice("encoder", model.encoder, ENCODER_KINDS)
    check_choice("loss", model.loss, LOSSES)
    check_choice("name_activation", model.name_activation, NAME_ACTIVATIONS)
    check_choice("bias", model.bias, ("auto", "label", "global"))
    check_choice("search", model.search, SEARCHES)
    check_choice("device", model.device, ("auto", "cpu", "cuda"))
    sizes = ("subword_dim", "hidden_dim", "embedding_dim", "max_length")
    counts = (*sizes, "batch_size", "n_epochs", "patience")
    for name, least in {"vocabulary_size": 2, **dict.fromkeys(counts, 1)}.items():
        check_integer(name, getattr(model, name), least)
    check_random_state(model.random_state)
    check_verbose(model.verbose)
    if model.encoder == "bilstm" and model.hidden_dim % 2:
        raise ValueError(f"hidden_dim must be even for encoder='bilstm', got {model.hidden_dim!r}")
    if model.encoder == "mean" and model.name_activation != "linear":
        raise ValueError(
            f"name_activation must be 'linear' for encoder='mean', got {model.name_activation!r}"
        )
    if model.sampled_labels not in ("auto", None):
        check_integer("sampled_labels", model.sampled_labels, 1)
    check_real("learning_rate", model.learning_rate, 1e-12, 1e6, "a positive number, at most 1e6")
    check_real("id_penalty", model.id_penalty, 0, 1e6, "a number in [0, 1e6]")
    if model.id_penalty and model.combine not in WITH_IDS:
        raise ValueError(
            f"id_penalty must be 0 for combine={model.combine!r}, whose labels have no vector of their own, "
            f"got {model.id_penalty!r}"
        )
    below_one = np.nextafter(1.0, 0.0)
    for name in ("validation_fraction", "dropout"):
        check_real(name, getattr(model, name), 0, below_one, "a number in [0, 1)")
    return n_jobs

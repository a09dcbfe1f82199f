"""A fitted `LabelEmbedder` as plain values and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._extra import require_extra
from metarank._parameters import seed_of
from metarank._state import Fields
from metarank._tensors import Tensors
from metarank.text.inference import weight_shapes
from metarank.text.kinds import WITH_NAMES
from metarank.text.parameters import STRUCTURE, check_parameters
from metarank.text.subwords import Subwords

if TYPE_CHECKING:
    from metarank.text.embedder import LabelEmbedder


def state_of(model: LabelEmbedder) -> dict[str, Any]:
    """What `from_state` needs."""
    return {
        "params": {**model.get_params(deep=False), **model.structure_, "random_state": model.random_state_},
        "label_names": model.label_names_,
        "n_labels": model.n_labels_,
        "n_trained_labels": model.n_trained_labels_,
        "subwords": model.subwords_.state,
        "weights": Tensors(model.weights_),
        "labels": Tensors(vectors=model.label_vectors_, bias=model.label_bias_),
        "n_parameters": model.n_parameters_,
        "history": model.history_,
        "best_epoch": model.best_epoch_,
    }


def restored(cls: type[LabelEmbedder], state: dict[str, Any]) -> LabelEmbedder:
    """The inverse of `state_of`, of a state that need not be trusted.

    Raises
    ------
    ValueError
        If a value does not keep its rule; the message names it.
    ImportError
        Without `tokenizers`, of the extra ``text``.
    """
    require_extra("text", "tokenizers")
    fields = Fields(state, cls.__name__)
    model = fields.estimator(cls)
    check_parameters(model)
    model.random_state_ = seed_of(model.random_state)
    model.structure_ = {name: getattr(model, name) for name in STRUCTURE}
    labels = fields.part("labels")
    model.label_bias_ = labels.array("bias", np.float32, (None,))
    L, E = len(model.label_bias_), int(model.embedding_dim)
    model.n_labels_ = L
    model.label_vectors_ = labels.array("vectors", np.float32, (L, E))
    if fields.integer("n_labels", 1) != L:
        raise fields.fail("n_labels", f"be {L}, as there are vectors")
    model.n_trained_labels_ = fields.integer("n_trained_labels", 1, L)
    model.label_names_ = fields.strings("label_names", L) if fields.has("label_names") else None
    if model.label_names_ is None and model.combine in WITH_NAMES:
        raise fields.fail("label_names", f"be known for combine={model.combine!r}")
    model.subwords_ = Subwords.restored(fields.text("subwords"))
    weights = fields.part("weights")
    model.weights_ = {
        name: weights.array(name, np.float32, shape)
        for name, shape in weight_shapes(
            model.encoder,
            model.combine,
            (model.subword_dim, model.hidden_dim, E),
            n_subwords=len(model.subwords_),
            n_labels=L,
        ).items()
    }
    if len(model.weights_["bias"]) not in (1, L):
        raise weights.fail("bias", f"be of one label or {L}")
    model.n_parameters_ = fields.integer("n_parameters", 0, 2**62)
    history = fields.part("history")
    model.history_ = {name: history.raw(name) for name in history.values}
    if not all(isinstance(v, list) and all(type(x) is float for x in v) for v in model.history_.values()):
        raise fields.fail("history", "be lists of numbers")
    model.best_epoch_ = fields.integer("best_epoch")
    model.model_ = model._text_model()
    return model

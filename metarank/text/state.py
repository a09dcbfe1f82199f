"""What a fitted `LabelEmbedder` saves."""

from __future__ import annotations

from typing import Any

import numpy as np

from metarank._util.extra import require_extra
from metarank.persist.fields import (
    Array,
    Each,
    Entries,
    Field,
    Integer,
    Known,
    List,
    Nested,
    Number,
    Params,
    Strings,
    Text,
)
from metarank.persist.limits import MOST
from metarank.persist.spec import Spec
from metarank.persist.tensors import Tensors
from metarank.text.inference import weight_shapes
from metarank.text.kinds import WITH_NAMES
from metarank.text.parameters import check_parameters
from metarank.text.subwords import Subwords


class _Tensors(Nested):
    """Arrays in a file of the safetensors format."""

    def state_of(self, obj: Any) -> dict[str, Any]:
        return Tensors(super().state_of(obj))


class _Weights(Field):
    """The weights of a network whose parameters, subwords and labels are known."""

    def written(self, value: Any) -> Tensors:
        return Tensors(value)

    def read(self, value: Any, known: Known) -> Any:
        model, L = known.made, known["L"]
        shapes = weight_shapes(
            model.encoder,
            model.combine,
            (model.subword_dim, model.hidden_dim, model.embedding_dim),
            n_subwords=len(known.subwords_),
            n_labels=L,
        )
        arrays = (Array(name, np.float32, shape, key=name) for name, shape in shapes.items())
        weights = Entries(self.name, *arrays).read(value, known)
        if len(weights["bias"]) not in (1, L):
            raise ValueError(f"bias must be of one label or {L}, got {len(weights['bias'])}")
        return weights


def _params_of(model: Any) -> dict[str, Any]:
    return {**model.get_params(deep=False), **model.structure_}


def _check_params(model: Any) -> None:
    require_extra("text", "tokenizers")
    check_parameters(model)


def _check_names(known: Known) -> None:
    if known.label_names_ is None and known.combine in WITH_NAMES:
        raise known.fail("label_names", f"be known for combine={known.combine!r}", None)


SAVED = Spec(
    Params(of=_params_of, seeded=MOST, check=_check_params),
    _Tensors(
        "labels",
        Array("label_vectors_", np.float32, ("L", lambda known: int(known.embedding_dim)), key="vectors"),
        Array("label_bias_", np.float32, ("L",), key="bias"),
    ),
    Integer("n_labels_", 1, size="L"),
    Integer("n_trained_labels_", 1, "L"),
    Strings("label_names_", "L", optional=True),
    Text("subwords_", of=lambda model: model.subwords_.state, into=Subwords.restored),
    _Weights("weights_"),
    Integer("n_parameters_", 0, 2**62),
    Each("history_", List("", Number("", floats="any"))),
    Integer("best_epoch_"),
    check=_check_names,
)

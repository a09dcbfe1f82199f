"""The names of the models, encoders and losses, for modules with and without torch."""

from __future__ import annotations

from typing import Literal, get_args

Combine = Literal["lale", "id", "text", "concat", "gile"]
EncoderKind = Literal["bilstm", "cnn", "bow", "mean"]
Loss = Literal["bce", "warp"]
NameActivation = Literal["linear", "relu"]

COMBINES: tuple[str, ...] = get_args(Combine)
ENCODER_KINDS: tuple[str, ...] = get_args(EncoderKind)
LOSSES: tuple[str, ...] = get_args(Loss)
NAME_ACTIVATIONS: tuple[str, ...] = get_args(NameActivation)

# Neighbouring subwords that a filter of the convolution looks at.
CNN_WIDTH = 3
# Models with a vector of each label's own, and models that read its name.
WITH_IDS = ("lale", "id", "concat")
WITH_NAMES = ("lale", "text", "concat", "gile")
# Encoders whose queries end in ReLU.
WITH_RELU = ("bilstm", "cnn", "bow")
# Models with a bias of each label's own by default.
WITH_LABEL_BIAS = ("id", "concat")

"""`TextModel`: a trained `Network` in the compiled core, without torch.

The vector of a text depends on that text alone: sums have one order, whatever the batch and the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.text.combine import combined
from metarank.text.kinds import CNN_WIDTH, WITH_IDS, WITH_NAMES, WITH_RELU
from metarank.text.subwords import TokenLists


class TextModel:
    """The forward pass of `metarank.text.network.Network` with weights given as arrays.

    Parameters
    ----------
    weights : mapping of str to float32 array
        The network's ``state_dict``.
    encoder : "bilstm", "cnn", "bow" or "mean"
    combine, name_activation : str
        As in `Network`.
    """

    def __init__(
        self, weights: Mapping[str, np.ndarray], encoder: str, combine: str, name_activation: str = "linear"
    ) -> None:
        self.weights: dict[str, np.ndarray] = dict(weights)
        self.encoder: str = encoder
        self.combine: str = combine
        self.name_activation = name_activation

    def queries(self, texts: TokenLists, n_jobs: int = 1) -> np.ndarray:
        """q, float32 (n, E)."""
        return self._encode(texts, self._layers["query"], self.encoder in WITH_RELU, n_jobs)

    def names(self, names: TokenLists, n_jobs: int = 1) -> np.ndarray:
        """f_text, float32 (r, E)."""
        return self._encode(names, self._layers["name"], self.name_activation == "relu", n_jobs)

    def label_vectors(self, ids: np.ndarray | None, names: np.ndarray | None, n_jobs: int = 1) -> np.ndarray:
        """f, float32 (r, E), see `combined`."""

        def project(ids: np.ndarray, names: np.ndarray) -> np.ndarray:
            return _core.tanh_layer(np.hstack([ids, names]), *self._project, n_jobs)

        return combined(self.combine, ids, names, self.weights.get("scale"), project)

    def _encode(self, texts: TokenLists, layers: list[np.ndarray], relu: bool, n_jobs: int) -> np.ndarray:
        if self.encoder == "mean":
            return _means(texts, *layers)
        kernels: dict[str, Callable[..., np.ndarray]] = {
            "bilstm": _core.encode_bilstm,
            "cnn": _core.encode_cnn,
            "bow": _core.encode_bow,
        }
        encode, table = kernels[self.encoder], self.weights["subwords"]
        return encode(texts.indptr, texts.tokens, table, *layers, relu, n_jobs)

    @cached_property
    def _project(self) -> tuple[np.ndarray, np.ndarray]:
        return _transposed(self.weights["project.weight"]), self.weights["project.bias"]

    @cached_property
    def _layers(self) -> dict[str, list[np.ndarray]]:
        sides = ("query", "name") if self.combine in WITH_NAMES else ("query",)
        return {side: self._layers_of(side) for side in sides}

    def _layers_of(self, side: str) -> list[np.ndarray]:
        """What the kernel takes: matrices with a row an input, each with its bias."""
        w = {n.removeprefix(f"{side}."): v for n, v in self.weights.items() if n.startswith(f"{side}.")}
        if self.encoder == "mean":
            # The layer is linear: each subword goes through it once.
            no_bias = np.zeros(len(w["dense.weight"]), np.float32)
            return [
                _core.vector_scores(self.weights["subwords"], w["dense.weight"], no_bias, 1),
                w["dense.bias"],
            ]
        if self.encoder == "bilstm":
            layers = []
            for suffix in ("", "_reverse"):
                of_input, of_state = w[f"lstm.weight_ih_l0{suffix}"], w[f"lstm.weight_hh_l0{suffix}"]
                layers.append(_transposed(np.hstack([of_input, of_state])))
                layers.append(w[f"lstm.bias_ih_l0{suffix}"] + w[f"lstm.bias_hh_l0{suffix}"])
        elif self.encoder == "cnn":
            filters = w["convolution.weight"]  # (H, G, width)
            layers = [
                _transposed(filters.transpose(0, 2, 1).reshape(len(filters), -1)),
                w["convolution.bias"],
            ]
        else:
            layers = [_transposed(w["hidden.weight"]), w["hidden.bias"]]
        return [*layers, _transposed(w["dense.weight"]), w["dense.bias"]]


def weight_shapes(
    encoder: str, combine: str, sizes: tuple[int, int, int], *, n_subwords: int, n_labels: int
) -> dict[str, tuple[int | None, ...]]:
    """The arrays of `Network.state_dict` and their shapes; sizes are G, H and E; None: one, or one a label.

    Examples
    --------
    >>> weight_shapes("bow", "id", (2, 3, 4), n_subwords=9, n_labels=5)["query.hidden.weight"]
    (3, 2)
    """
    G, H, E = sizes
    if encoder == "bilstm":
        half = H // 2
        layers: dict[str, tuple[int | None, ...]] = {}
        for suffix in ("", "_reverse"):
            layers[f"lstm.weight_ih_l0{suffix}"] = (4 * half, G)
            layers[f"lstm.weight_hh_l0{suffix}"] = (4 * half, half)
            layers[f"lstm.bias_ih_l0{suffix}"] = layers[f"lstm.bias_hh_l0{suffix}"] = (4 * half,)
    elif encoder == "cnn":
        layers = {"convolution.weight": (H, G, CNN_WIDTH), "convolution.bias": (H,)}
    elif encoder == "bow":
        layers = {"hidden.weight": (H, G), "hidden.bias": (H,)}
    else:
        layers, H = {}, G
    layers |= {"dense.weight": (E, H), "dense.bias": (E,)}
    sides = ("query", "name") if combine in WITH_NAMES else ("query",)
    shapes: dict[str, tuple[int | None, ...]] = {"subwords": (n_subwords, G), "bias": (None,)}
    shapes |= {f"{side}.{name}": shape for side in sides for name, shape in layers.items()}
    if combine in WITH_IDS:
        shapes["label_ids"] = (n_labels, E)
    if combine == "concat":
        shapes |= {"project.weight": (E, 2 * E), "project.bias": (E,)}
    if combine == "gile":
        shapes["scale"] = (E,)
    return shapes


def _means(texts: TokenLists, vectors: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The sum of each text's subword vectors over the root of their number, and the bias; else zero."""
    lengths = np.diff(texts.indptr)
    weights = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths).astype(np.float32)
    there = sp.csr_matrix((weights, texts.tokens, texts.indptr), (texts.n_rows, len(vectors)))
    return np.asarray(there @ vectors + bias * (lengths > 0)[:, None], np.float32)


def _transposed(matrix: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(matrix.T)

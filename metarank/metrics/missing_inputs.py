"""Propensities, and numbers of labels, as the estimates of `missing_labels` take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank.metrics.inputs import Inputs


def weights_of_pairs(inv_propensity: Any, inputs: Inputs) -> np.ndarray:
    """float64: the inverse propensity of each relevant pair."""
    weights = as_inv_propensity(inv_propensity, inputs.n_rows, inputs.n_labels)
    if weights is None:
        return np.ones(len(inputs.row))
    if isinstance(weights, np.ndarray):
        labels = inputs.Y.indices
        return weights[labels] if weights.ndim == 1 else weights[inputs.row, labels]
    found, at = inputs.find(weights.indptr, weights.indices)
    if not found.all():
        missing = np.flatnonzero(~found)[0]
        raise ValueError(
            "inv_propensity, if sparse, must store a value for every relevant pair of Y_true, got none at "
            f"row {inputs.row[missing]}, label {inputs.Y.indices[missing]}"
        )
    return weights.data[at]


def as_inv_propensity(
    inv_propensity: Any, n_rows: int, n_labels: int | None = None
) -> NDArray[np.float64] | sp.csr_matrix | None:
    """Inverse propensities as float64 (L,) or (n, L), or a canonical CSR (n, L)."""
    if inv_propensity is None:
        return None
    if sp.issparse(inv_propensity):
        _check_kind(inv_propensity.dtype, "inv_propensity")
        weights = sp.csr_matrix(inv_propensity, dtype=np.float64)
        if not weights.has_canonical_format:
            weights = weights.copy()
            weights.sum_duplicates()
        values = weights.data
    else:
        weights = values = _as_numbers(inv_propensity, "inv_propensity")
    width = weights.shape[-1] if weights.ndim and n_labels is None else n_labels
    if weights.shape not in ((width,), (n_rows, width)):
        labels = "L" if n_labels is None else n_labels
        raise ValueError(
            f"inv_propensity must have shape ({labels},) or ({n_rows}, {labels}), got {weights.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 1.0)))
    if len(wrong):
        raise ValueError(
            "inv_propensity must hold finite values 1 / p >= 1, got "
            f"{values.flat[wrong[0]]} at {_place(weights, int(wrong[0]))}"
        )
    return weights


def _place(weights: np.ndarray | sp.csr_matrix, entry: int) -> str:
    if not isinstance(weights, np.ndarray):
        row = np.searchsorted(weights.indptr, entry, side="right") - 1
        return f"row {row}, label {weights.indices[entry]}"
    if weights.ndim == 1:
        return f"label {entry}"
    return "row {}, label {}".format(*np.unravel_index(entry, weights.shape))


def row_max(weights: np.ndarray | sp.csr_matrix | None, n_rows: int) -> NDArray[np.float64]:
    """float64 (n,): the greatest inverse propensity of each point, 0 where there is none."""
    if weights is None:
        return np.ones(n_rows)
    if sp.issparse(weights):
        return weights.max(axis=1).toarray().ravel()
    return np.broadcast_to(weights.max(axis=-1, initial=0.0), (n_rows,))


def as_n_relevant(n_relevant: Any) -> NDArray[np.float64]:
    """Numbers of relevant labels as float64 (n,)."""
    n = _as_numbers(n_relevant, "n_relevant")
    if n.ndim != 1:
        raise ValueError(f"n_relevant must have shape (n,), one number a point, got {n.shape}")
    wrong = np.flatnonzero(~(np.isfinite(n) & (n >= 0)))
    if len(wrong):
        raise ValueError(f"n_relevant must be finite and >= 0, got {n[wrong[0]]} at row {wrong[0]}")
    return n


def as_complete_counts(n_relevant: Any, inputs: Inputs) -> np.ndarray:
    """`n_relevant`, where it is possible given what was observed."""
    n = as_n_relevant(n_relevant)
    if n.shape != (inputs.n_rows,):
        raise ValueError(f"n_relevant must have shape ({inputs.n_rows},), got {n.shape}")
    wrong = np.flatnonzero((n < inputs.n_relevant) | (n > inputs.n_labels))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"n_relevant must lie between the number of observed labels, {inputs.n_relevant[row]} at row "
            f"{row}, and the number of labels, {inputs.n_labels}, got {n[row]:g}"
        )
    return n


def as_g(g: Any, n_labels: int | None = None) -> np.ndarray:
    """`g` of each label as float64, of shape (L,) where L is known."""
    values = _as_numbers(g, "g")
    if values.ndim > 1 or (values.ndim == 1 and n_labels not in (None, len(values))):
        labels = "L" if n_labels is None else n_labels
        raise ValueError(f"g must be a number or have shape ({labels},), got shape {values.shape}")
    if not np.all(np.isfinite(values) & (values > 0)):
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))[0]
        raise ValueError(f"g must be finite and positive, got {values.flat[wrong]}")
    return values if n_labels is None else np.broadcast_to(values, (n_labels,))


def _as_numbers(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be an array of numbers, got rows of unequal length") from None
    _check_kind(array.dtype, name)
    return array.astype(np.float64)


def _check_kind(dtype: np.dtype, name: str) -> None:
    if dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}")

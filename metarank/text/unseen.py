"""Vectors and biases for labels never seen in training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metarank import _core
from metarank.types.arrays import unit_rows

# Labels of the training that one never seen is like.
_NEAREST_NAMES = 5


def unseen_ids(f_text: np.ndarray, trained: np.ndarray, label_ids: np.ndarray, n_jobs: int) -> np.ndarray:
    """f_id, float32 (r, E): the mean over the five labels of the training that are named most alike.

    Parameters
    ----------
    f_text : float32 array (r, E)
        Encoded names of labels never seen.
    trained : float32 array (t, E)
        Encoded names of the labels of the training, compared by cosine.
    label_ids : float32 array (at least t, E)
        Their f_id.
    n_jobs : int
    """
    known = unit_rows(trained)
    similarity = _core.vector_scores(unit_rows(f_text), known, np.zeros(len(known), np.float32), n_jobs)
    nearest, _ = _core.top_k_dense(similarity, min(_NEAREST_NAMES, len(known)), n_jobs)
    return label_ids[nearest].mean(axis=1, dtype=np.float64).astype(np.float32)


def with_unseen(
    weights: Mapping[str, np.ndarray], n_new: int, ids: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The weights with those of `n_new` further labels.

    Parameters
    ----------
    weights : mapping of str to float32 array
    n_new : int
    ids : float32 array (n_new, E), or None where labels have no vectors of their own
        A bias of the label's own is the mean one.
    """
    out = dict(weights)
    if ids is not None:
        out["label_ids"] = np.vstack([weights["label_ids"], ids])
    if len(weights["bias"]) > 1:
        mean = np.full(n_new, weights["bias"].mean(), np.float32)
        out["bias"] = np.concatenate([weights["bias"], mean])
    return out

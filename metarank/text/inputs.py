"""Inputs of `LabelEmbedder`: texts, labels, names, query vectors and the path of a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from metarank.data.dataset import Dataset
from metarank.types.checks import check_labels


def check_input(texts: Any, Y: Any, label_names: Any) -> tuple[list[str], Any, list[str] | None]:
    """Texts, labels as canonical CSR, and names; integers in lists are places in [0, L), which have none."""
    if isinstance(texts, Dataset) and Y is None:
        Y = texts.Y
        if label_names is None and not texts.label_names_are_ids:
            label_names = texts.label_names
    texts = check_texts(texts, "texts")
    if not texts:
        raise ValueError("texts must hold at least one text, got none")
    if label_names is not None:
        label_names = check_texts(label_names, "label_names")
    Y, names, _ = check_labels(Y, label_names=label_names, ids="positions")
    if Y.shape[0] != len(texts):
        raise ValueError(f"Y must have a row a text ({len(texts)}), got {Y.shape[0]}")
    return texts, Y, names


def check_texts(texts: Any, name: str) -> list[str]:
    """A list of strings, from one or from a Dataset; TypeError or ValueError that calls it `name`."""
    if isinstance(texts, Dataset):
        if texts.texts is None:
            raise ValueError(f"{name} must be texts or a Dataset with texts, got a Dataset without")
        return list(texts.texts)
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of strings, got one string; wrap it in a list")
    if hasattr(texts, "columns") or isinstance(texts, (Mapping, Set)) or not isinstance(texts, Iterable):
        raise TypeError(
            f"{name} must be a sequence of strings, such as one column, got {type(texts).__name__}"
        )
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{position}] must be a string, got {text!r:.40}")
    return texts


def check_vectors(queries: Any, width: int) -> np.ndarray:
    """Finite float32 vectors (n, width), contiguous."""
    vectors = np.ascontiguousarray(queries, np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise ValueError(f"queries must be vectors (n, {width}) that encode gave, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError("queries must be finite")
    return vectors


def check_checkpoint(path: Any) -> Path:
    """The file, whose folder is there and can be written."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be the path of a file, got {path!r}")
    file = Path(path)
    if not file.name or file.is_dir():
        raise ValueError(f"checkpoint must be the path of a file, got {str(path)!r}")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"checkpoint must be in a folder that exists, got {str(path)!r}")
    if not os.access(file.parent, os.W_OK):
        raise PermissionError(f"checkpoint must be in a folder that can be written, got {str(path)!r}")
    return file

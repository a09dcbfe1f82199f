"""Fusion on yso-en: scores of two subject indexers become one ranking."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import MetaRanker, metrics
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking

SOURCES = ("bonsai", "mllm")
METRICS = ("nDCG@10", "nDCG@1000")


def folder() -> Path:
    root = os.environ.get("METARANK_DATA", Path(__file__).parents[3] / "shared" / "data")
    found = Path(root) / "fusion" / "yso-en"
    if not found.is_dir():
        raise FileNotFoundError(f"no folder {found}")
    return found


def checksum() -> str:
    """The first digits of SHA-256 over the digests that the set's META.json lists."""
    listed = json.loads((folder() / "META.json").read_text())["files"]
    digests = "".join(listed[name]["sha256"] for name in sorted(listed))
    return hashlib.sha256(digests.encode()).hexdigest()[:12]


def matrix(name: str) -> sp.csr_matrix:
    out = sp.csr_matrix(sp.load_npz(folder() / f"{name}.npz"), dtype=np.float32)
    out.sum_duplicates()
    return out


def measured(Y: sp.csr_matrix, ranking: Ranking | sp.csr_matrix) -> dict[str, float]:
    """nDCG against all gold labels, and the mean F1 of the five best."""
    found = {name: float(v) for name, v in metrics.evaluate(Y, ranking, list(METRICS)).items()}
    if not isinstance(ranking, Ranking):
        ranking = Ranking.from_scores(Candidates.from_csr(ranking), 5)
    hits = np.array(
        [
            np.isin(row, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]).sum()
            for i, row in enumerate(ranking.labels[:, :5])
        ]
    )
    return found | {"F1@5": float(np.mean(2 * hits / (5 + np.diff(Y.indptr))))}


def fused(seed: int) -> dict[str, Any]:
    """The figures of the sources, and of metarank with its default settings, pointwise, and for deep lists.

    The settings of deep lists were chosen by three folds of the training rows.
    """
    Y, Y_test = matrix("train-output"), matrix("test-output")
    train, test = ({name: matrix(f"{part}-{name}") for name in SOURCES} for part in ("train", "test"))
    rows: dict[str, Any] = {name: measured(Y_test, test[name]) for name in SOURCES}
    for shown, options, mode in (
        ("metarank", {}, "only"),
        ("metarank, ranker='pointwise'", {"ranker": "pointwise"}, "only"),
        (
            "metarank, candidates_mode='union', shortlist_size=300, propensity_weight=0",
            {"shortlist_size": 300, "propensity_weight": 0.0},
            "union",
        ),
    ):
        started = time.process_time()
        model = MetaRanker(**options, n_jobs=1, random_state=seed)
        model.fit(None, Y, candidates=train, candidates_mode=mode)
        trained = time.process_time() - started
        ranking = model.rank(None, k=1000, candidates=test)
        rows[shown] = measured(Y_test, ranking) | {
            "CPU s": time.process_time() - started,
            "training CPU s": trained,
            "choices": model.choices_,
        }
    return {
        "rows": rows,
        "checksum": checksum(),
        "n": Y.shape[0],
        "labels": Y.shape[1],
        "test": Y_test.shape[0],
    }

"""omikuji, PECOS and napkinXC on a set: the runs of `shortlist_speed`, which are kept in its cache."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from problems import EXTREME

from metarank import Candidates

_SPEED = Path(__file__).resolve().parent.parent / "shortlist_speed"
sys.path += [str(_SPEED), str(_SPEED.parent)]

from datasets import prepare  # noqa: E402
from runs import Laboratory, Run  # noqa: E402
from settings import PEERS, Extreme  # noqa: E402

TIMEOUT = 1800.0  # seconds


def run_peer(
    source: str, peer: str, cache: Path, environments: Path, only_kept: bool
) -> tuple[Candidates, dict[str, float]] | None:
    """The best labels of every test point, and what they cost; None if the run is not kept and not made.

    Raises
    ------
    FileNotFoundError
        If the peer's environment has not been made.
    RuntimeError
        If it fails, or takes too long.
    """
    setting = next(setting for setting in PEERS if str(setting) == peer)
    made = Extreme(EXTREME.n_rows, EXTREME.n_labels, EXTREME.n_features, EXTREME.n_test)
    run = Run(prepare(made if source == EXTREME.source else source, cache), setting, 0)
    laboratory = Laboratory(cache, environments, None, TIMEOUT)
    figures = laboratory.kept(run)
    if figures is None and not only_kept:
        figures = laboratory.make(run)
    if figures is None:
        return None
    if "failed" in figures:
        raise RuntimeError(f"{peer}: {figures['failed']}")
    with np.load(laboratory.predictions(run)) as file:
        labels, scores = file["labels"], file["scores"]
    listed = labels >= 0
    row = np.repeat(np.arange(len(labels)), listed.sum(1))
    shape = (len(labels), int(run.dataset.sizes["L"]))
    values = np.clip(scores[listed], 0, 1).astype(np.float32)
    found = Candidates.from_csr(sp.csr_matrix((values, (row, labels[listed])), shape=shape))
    cost = {
        "train_s": figures["train_cpu_s"],
        "test_ms": figures["batch_ms"],
        "model_mib": figures["model_mib"],
    }
    return found, cost

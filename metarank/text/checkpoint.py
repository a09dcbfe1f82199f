"""Checkpoints: all that training needs to go on after an epoch as if nothing had happened.

Batches and sampled labels follow from the seed and the epoch, so that parameters, Adam's moments and the
history are all the state there is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metarank._files import whole_file
from metarank._tensors import read_tensors, write_tensors

_NOW, _BEST, _MOMENTS = "now/", "best/", "moments/"


def write_checkpoint(
    path: Path,
    fingerprint: str,
    now: dict[str, Tensor],
    best: dict[str, Tensor],
    optimizers: list[torch.optim.Optimizer],
    history: dict[str, Any],
) -> None:
    """Replace the checkpoint at `path`, whole or not at all."""
    tensors = {f"{_NOW}{name}": values.cpu().numpy() for name, values in now.items()}
    tensors |= {f"{_BEST}{name}": values.cpu().numpy() for name, values in best.items()}
    steps: dict[str, float] = {}
    for k, optimizer in enumerate(optimizers):
        for i, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if name == "step":
                    steps[f"{k}/{i}"] = float(value)
                else:
                    tensors[f"{_MOMENTS}{k}/{i}/{name}"] = value.cpu().numpy()
    metadata = {
        "fingerprint": fingerprint,
        "history": json.dumps(history),
        "steps": json.dumps(steps),
    }
    with whole_file(path, "wb") as f:
        write_tensors(f, tensors, metadata)


def read_checkpoint(
    path: Path, fingerprint: str, optimizers: list[torch.optim.Optimizer]
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Any]]:
    """Parameters now and at the best epoch, and the history; the optimizers are set in place.

    Raises
    ------
    ValueError
        If the file is no checkpoint, or one of other data or parameters.
    """
    try:
        tensors, metadata = read_tensors(path)
        found, history = metadata["fingerprint"], json.loads(metadata["history"])
        steps = json.loads(metadata["steps"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"checkpoint {str(path)!r} cannot be read: {error}") from error
    if found != fingerprint:
        raise ValueError(
            f"checkpoint {str(path)!r} is of other texts, labels or parameters; remove it to start anew"
        )
    loaded = {name: torch.from_numpy(np.array(values)) for name, values in tensors.items()}
    for k, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Any]] = {}
        for place, step in steps.items():
            number, i = place.split("/")
            if int(number) == k:
                sparse = isinstance(optimizer, torch.optim.SparseAdam)
                state[int(i)] = {"step": int(step) if sparse else torch.tensor(step)}
                prefix = f"{_MOMENTS}{place}/"
                state[int(i)] |= {
                    n.removeprefix(prefix): v for n, v in loaded.items() if n.startswith(prefix)
                }
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
    now, best = (
        {name.removeprefix(kind): values for name, values in loaded.items() if name.startswith(kind)}
        for kind in (_NOW, _BEST)
    )
    return now, best, history


def fingerprint_of(options: Any, arrays: list[np.ndarray]) -> str:
    """A digest of what training starts from; how long it lasts is left out: it may be prolonged."""
    kept = {name: value for name, value in asdict(options).items() if name not in ("n_epochs", "patience")}
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode())
    for values in arrays:
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()

"""Checkpoints: the state from which training resumes after an epoch, with the same result.

The file is of the safetensors format: what torch writes itself is a pickle.
Batches and sampled labels follow from the seed and the epoch, so the state is the parameters, Adam's
moments and the history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metarank._util.files import whole_file
from metarank._util.json import parse_json
from metarank.data.guard import check_present
from metarank.persist.tensors import read_tensors, write_tensors

_NOW, _BEST, _MOMENTS = "now/", "best/", "moments/"
_MOMENTS_OF_ADAM = ("exp_avg", "exp_avg_sq")


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
        "sha256": _digest_of(tensors),
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
        check_present(path)
        tensors, metadata = read_tensors(path)
        found, history = metadata["fingerprint"], parse_json(metadata["history"])
        steps = parse_json(metadata["steps"])
        if metadata["sha256"] != _digest_of(tensors):
            raise ValueError("its contents do not match their checksum")
        if not (_is_numbers(steps) and isinstance(history, dict)):
            raise ValueError("its steps must be numbers by parameter, its history a mapping")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"checkpoint {str(path)!r} cannot be read: {error}") from error
    if found != fingerprint:
        raise ValueError(
            f"checkpoint {str(path)!r} is of other texts, labels or parameters; remove it to start anew"
        )
    loaded = {name: torch.from_numpy(np.array(values)) for name, values in tensors.items()}
    states = [_state_of(k, optimizer, steps, loaded) for k, optimizer in enumerate(optimizers)]
    for optimizer, state in zip(optimizers, states):
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
    now, best = (
        {name.removeprefix(kind): values for name, values in loaded.items() if name.startswith(kind)}
        for kind in (_NOW, _BEST)
    )
    return now, best, history


def _state_of(
    k: int, optimizer: torch.optim.Optimizer, steps: dict[str, float], loaded: dict[str, Tensor]
) -> dict[int, dict[str, Any]]:
    """Steps and moments of the parameters of optimizer k, by number.

    Raises
    ------
    ValueError
        If they are not of these parameters: PyTorch takes moments of any name and shape.
    """
    sparse = isinstance(optimizer, torch.optim.SparseAdam)
    params = [values for group in optimizer.param_groups for values in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for i, values in enumerate(params):
        step, prefix = steps.get(f"{k}/{i}"), f"{_MOMENTS}{k}/{i}/"
        if step is None:  # not trained yet
            continue
        moments = {n.removeprefix(prefix): v for n, v in loaded.items() if n.startswith(prefix)}
        if set(moments) != set(_MOMENTS_OF_ADAM) or any(v.shape != values.shape for v in moments.values()):
            raise ValueError(f"a checkpoint must hold the moments of parameter {i} in its shape")
        state[i] = {"step": int(step) if sparse else torch.tensor(step), **moments}
    return state


def _digest_of(tensors: Mapping[str, np.ndarray]) -> str:
    return _digest(b"", sorted(tensors.items()))


def _digest(start: bytes, arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    digest = hashlib.sha256(start)
    for name, values in arrays:
        digest.update(f"{name}{values.dtype.str}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _is_numbers(steps: Any) -> bool:
    return isinstance(steps, dict) and all(type(v) in (int, float) and 0 <= v < 2**53 for v in steps.values())


def fingerprint_of(options: Any, kind: Sequence[str], arrays: list[np.ndarray]) -> str:
    """A digest of what training starts from, of a `kind` of network; how long it lasts is left out."""
    kept = {name: value for name, value in asdict(options).items() if name not in ("n_epochs", "patience")}
    for name in ("dropout", "id_penalty"):  # as in the checkpoints of versions that knew of none
        if not kept[name]:
            del kept[name]
    kept["kind"] = list(kind)
    return _digest(json.dumps(kept, sort_keys=True).encode(), (("", values) for values in arrays))

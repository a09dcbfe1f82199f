"""The packed classifiers of label trees, as the core's `weight_blocks.h` describes them: a slow twin."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

TYPES = dict(shift=np.uint8, bucket_offset=np.uint32, data=np.uint8, bias=np.float32, scale=np.float32)
NAMES = ("node_block", "block_slot", "bucket_start", "data_start", *TYPES)


def rounded(W: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Each slot's scale, and its weights as multiples of it, from -127 to 127."""
    scale = np.abs(W).max(axis=1).toarray().ravel().astype(np.float32) / np.float32(127)
    scale = np.where(scale >= np.finfo(np.float32).tiny, scale, np.float32(0))
    by = np.repeat(np.where(scale > 0, scale, np.inf), np.diff(W.indptr))
    return scale, np.rint(W.data / by.astype(np.float32))


def encode(W: sp.csr_array, bias: np.ndarray, node_start: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a model: weights (S, d), biases (S,) and each node's first slot."""
    scale, steps = rounded(W)
    Q = sp.csr_array((steps, W.indices, W.indptr), shape=W.shape)
    out: dict[str, list] = {name: [] if name in TYPES else [0] for name in NAMES}
    for first, last in pairwise(node_start.tolist()):
        for begin in range(first, last, 256):
            end = min(begin + 256, last)
            rows: dict[int, bytes] = {}
            part = Q[begin:end].tocoo()
            for feature, slot, step in sorted(zip(*part.coords[::-1], part.data)):
                if step:
                    rows[int(feature)] = rows.get(int(feature), b"") + struct.pack("<Bb", slot, int(step))
            add_block(out, rows)
            out["block_slot"].append(end)
        out["node_block"].append(len(out["shift"]))
    out["data"] += [0] * 64
    out["bias"], out["scale"] = bias, scale
    return {name: np.array(values, TYPES.get(name, np.int64)) for name, values in out.items()}


def add_block(out: dict[str, list], rows: dict[int, bytes]) -> None:
    """Of each feature of a block its entries, in buckets of about seven features."""
    largest, shift = max(rows, default=-1), 0
    while rows and shift < 16 and ((largest >> shift) + 1) * 5 > len(rows):
        shift += 1
    start, buckets = len(out["data"]), dict[int, list[int]]()
    for f in rows:
        buckets.setdefault(f >> shift, []).append(f)
    for bucket in range((largest >> shift) + 1):
        out["bucket_offset"].append(len(out["data"]) - start)
        if inside := buckets.get(bucket):
            lows = [f & ((1 << shift) - 1) for f in inside]
            out["data"] += struct.pack(f"<{len(lows) + 1}{'B' if shift <= 8 else 'H'}", len(lows) - 1, *lows)
            out["data"] += bytes(len(rows[f]) // 2 - 1 for f in inside) + b"".join(rows[f] for f in inside)
    out["bucket_offset"].append(len(out["data"]) - start)
    out["shift"].append(shift)
    out["bucket_start"].append(len(out["bucket_offset"]))
    out["data_start"].append(len(out["data"]))


def decode(arrays: dict[str, np.ndarray], n_features: int) -> sp.csr_array:
    """The rounded weights (S, d)."""
    slots, features, values = [], [], []
    for b, shift in enumerate(arrays["shift"].tolist()):
        data = arrays["data"][arrays["data_start"][b] :].tobytes()
        offsets = arrays["bucket_offset"][slice(*arrays["bucket_start"][b : b + 2])].tolist()
        for bucket, (at, end) in enumerate(pairwise(offsets)):
            if at == end:
                continue
            low = "B" if shift <= 8 else "H"
            n = struct.unpack_from(f"<{low}", data, at)[0] + 1
            lows = struct.unpack_from(f"<{n + 1}{low}", data, at)[1:]
            at += (n + 1) * struct.calcsize(low)
            counts, at = data[at : at + n], at + n
            for feature, count in zip(lows, counts):
                for _ in range(count + 1):
                    slot, step = struct.unpack_from("<Bb", data, at)
                    slots.append(arrays["block_slot"][b] + slot)
                    features.append((bucket << shift) + feature)
                    values.append(arrays["scale"][slots[-1]] * np.float32(step))
                    at += 2
    W = sp.coo_array((values, (slots, features)), shape=(len(arrays["bias"]), n_features), dtype=np.float32)
    return W.tocsr()

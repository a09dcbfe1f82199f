"""MQ2008 of LETOR 4.0: queries with graded documents, 46 columns for each, in five parts."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from sets import DATA
from sklearn.datasets import load_svmlight_file

from metarank.data.compressed import raw_bytes, read_bytes

N_FEATURES, PARTS = 46, 5


def make(folder: Path) -> dict[str, Any]:
    """Writes `rows.npz`: X, grades, queries and part of all documents, in the order of the files."""
    paths = [DATA / "ltr" / "mq2008" / f"S{i}.txt.xz" for i in range(1, PARTS + 1)]
    files = [io.BytesIO(read_bytes(path)) for path in paths]
    read = [load_svmlight_file(file, n_features=N_FEATURES, query_id=True) for file in files]
    X, grades, queries = (
        np.concatenate([part[i].toarray() if i == 0 else part[i] for part in read]) for i in range(3)
    )
    part = np.repeat(np.arange(PARTS), [len(part[1]) for part in read])
    np.savez(folder / "rows.npz", X=X.astype(np.float32), grades=grades, queries=queries, part=part)
    digest = hashlib.sha256(b"".join(hashlib.sha256(raw_bytes(path)).digest() for path in paths))
    return {"checksum": digest.hexdigest(), "n": len(X), "queries": len(np.unique(queries))}

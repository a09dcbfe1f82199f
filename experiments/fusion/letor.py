"""Features of pairs: queries and documents of MQ2008, each with documents of its own."""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from metarank import MetaRanker, metrics
from metarank.data.compressed import raw_bytes, read_bytes

METRICS = ("nDCG@10", "MAP", "P@1")
N_FEATURES = 46
# BM25 of the whole document, from 0 (LETOR 4.0); it is the source of candidates.
BM25 = 24
PARTS = 5
_MOST_ROUNDS, _PATIENCE = 500, 25
_LIGHTGBM = {"objective": "lambdarank", "learning_rate": 0.05, "num_threads": 1, "verbose": -1}


class Pairs:
    """Queries with their documents, whose numbers begin at `first`, as matrices (queries, documents)."""

    def __init__(
        self, parts: list[tuple[sp.csr_matrix, np.ndarray, np.ndarray]], first: int, n: int, seed: int
    ) -> None:
        query = np.concatenate([part[2] for part in parts])
        # In an order of chance: that of the files may tell, and ties are ranked by it.
        order = np.lexsort((np.random.default_rng([seed, first]).random(len(query)), query))
        self.features = np.vstack([part[0].toarray() for part in parts])[order].astype(np.float32)
        self.grades = np.concatenate([part[1] for part in parts])[order]
        self.sizes = np.unique(query, return_counts=True)[1]
        self._columns, self._n = np.arange(first, first + len(query), dtype=np.int32), n
        self._indptr = np.concatenate([[0], np.cumsum(self.sizes)])

    def matrix(self, values: np.ndarray) -> sp.csr_matrix:
        """CSR (queries, documents) with a value for each pair, zeros too."""
        entries = (np.asarray(values, np.float32), self._columns, self._indptr)
        return sp.csr_matrix(entries, (len(self.sizes), self._n))

    @property
    def Y(self) -> sp.csr_matrix:
        out = self.matrix(self.grades)
        out.eliminate_zeros()
        return out

    def evidence(self) -> dict[str, Any]:
        """What metarank is given."""
        columns = {f"feature {j + 1}": self.matrix(self.features[:, j]) for j in range(N_FEATURES)}
        return {"candidates": {"BM25": self.matrix(self.features[:, BM25])}, "pair_features": columns}


def of_metarank(train: Pairs, test: Pairs, seed: int) -> sp.csr_matrix:
    model = MetaRanker(n_jobs=1, random_state=seed).fit(None, train.Y, **train.evidence())
    return model.rank(None, k=int(test.sizes.max()), **test.evidence()).to_csr()


def of_lightgbm(seen: Pairs, judge: Pairs, train: Pairs, test: Pairs, seed: int) -> sp.csr_matrix:
    """LambdaRank; the rounds that are best on a part are then learned from all parts."""
    parameters = _LIGHTGBM | {"seed": seed, "deterministic": True}

    def dataset(pairs: Pairs) -> lgb.Dataset:
        return lgb.Dataset(pairs.features, pairs.grades, group=pairs.sizes)

    stop = lgb.early_stopping(_PATIENCE, verbose=False)
    found = lgb.train(
        parameters | {"metric": "ndcg", "eval_at": [10]},
        dataset(seen),
        _MOST_ROUNDS,
        valid_sets=[dataset(judge)],
        callbacks=[stop],
    )
    scores = lgb.train(parameters, dataset(train), found.best_iteration).predict(test.features)
    return test.matrix(scores - scores.min() + 1)


def compared(seed: int) -> dict[str, Any]:
    """Means over five parts, each tested once, of BM25, LightGBM and metarank."""
    root = os.environ.get("METARANK_DATA", Path(__file__).parents[3] / "shared" / "data")
    paths = [Path(root) / "ltr" / "mq2008" / f"S{i}.txt.xz" for i in range(1, PARTS + 1)]
    parts = [
        load_svmlight_file(io.BytesIO(read_bytes(path)), n_features=N_FEATURES, query_id=True)
        for path in paths
    ]
    n = sum(part[0].shape[0] for part in parts)
    rows: dict[str, list[dict[str, float]]] = {}
    for number, tested in enumerate(parts):
        others = [parts[(number + i) % PARTS] for i in range(1, PARTS)]
        train, seen, judge = (
            Pairs(others, 0, n, seed),
            Pairs(others[:-1], 0, n, seed),
            Pairs(others[-1:], 0, n, seed),
        )
        test = Pairs([tested], len(train.grades), n, seed)
        ways: dict[str, Callable[[], sp.csr_matrix]] = {
            "BM25": partial(test.matrix, test.features[:, BM25] + 1),
            "LightGBM LambdaRank": partial(of_lightgbm, seen, judge, train, test, seed),
            "metarank": partial(of_metarank, train, test, seed),
        }
        for name, way in ways.items():
            started = time.process_time()
            scores = way()
            spent = time.process_time() - started
            values = metrics.evaluate(test.Y, scores, list(METRICS))
            rows.setdefault(name, []).append({k: float(v) for k, v in values.items()} | {"CPU s": spent})
    digest = hashlib.sha256(b"".join(hashlib.sha256(raw_bytes(path)).digest() for path in paths))
    means = {name: {k: float(np.mean([row[k] for row in of])) for k in of[0]} for name, of in rows.items()}
    return {"rows": means, "checksum": digest.hexdigest()[:12], "queries": sum(len(set(p[2])) for p in parts)}

"""A process of `test_cpu_levels`.

    save FOLDER      fit and save a model of every kind there
    answer FOLDER    load them, ask each for all that it answers; JSON of digests, by model and answer

Where `erring_libm.c` is preloaded, it errs once all is imported; a core that METARANK_SANITIZED_CORE names is
used in the place of the installed one.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
if "METARANK_SANITIZED_CORE" in os.environ:
    from sanitize.core import import_core

    import_core()

import makers  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from fuzz.targets import MODELS  # noqa: E402

from metarank import MetaRanker, MultiObjectiveRanker, load, persist  # noqa: E402
from metarank.model.answering.measure import Evaluation  # noqa: E402
from metarank.scorers.neighbors.training_rows import DenseRows  # noqa: E402
from metarank.thresholds import METRICS  # noqa: E402
from metarank.types import dense_index  # noqa: E402
from metarank.types.candidates import Candidates  # noqa: E402

# torch promises the same bytes of one machine.
KINDS = {name: make for name, make in MODELS.items() if not name.startswith("embedder")}
CUTS = ("instance", "expected-f1", "label", "half-f1")
GOLDEN = HERE.parent / "golden" / "kinds"


def save(folder: Path) -> None:
    for name, make in KINDS.items():
        persist.save(make(), folder / name)
    for cut in CUTS:
        params = {**makers.QUICK, "threshold": cut}
        persist.save(MetaRanker(**params).fit(makers.dense(80, L=5)), folder / f"cuts, {cut}")


def answer(folder: Path) -> dict[str, dict[str, str]]:
    dense_index.LEAST_ROWS = 1  # as where the approximate ones were saved
    models = {path.name: path for path in sorted(folder.iterdir())}
    models |= {f"golden {path.name}": path for path in sorted(GOLDEN.iterdir())}
    warnings.simplefilter("ignore")
    return {name: {what: digest(v) for what, v in answers(load(path))} for name, path in models.items()}


def answers(model: Any) -> list[tuple[str, Any]]:
    """Everything that a model says about forty rows."""
    X = rows_for(model)
    if isinstance(model, MultiObjectiveRanker):
        Y = relevances(40, len(model.objective_names_))
        return [
            ("scores", model.predict(X)),
            ("parts", model.contributions(X)),
            ("quality", [model.score(X, Y), model.score(X, Y, group=[20, 20])]),
        ]
    if isinstance(model, MetaRanker):
        ranking, Y = model.rank(X, k=10), relevances(40, model.n_labels_)
        return [
            ("ranking", ranking),
            ("leaning ranking", model.rank(X, k=10, propensity_weight=0.7)),
            ("probabilities", model.predict_proba(X)),
            *((f"kept, {metric}", model.predict(X, optimize=metric)) for metric in METRICS),
            *(
                (f"explanation {i}", model.explain(X[i : i + 1], ranking.labels[i, 0]))
                for i in range(0, 40, 9)
            ),
            ("quality", [model.score(X, Y), Evaluation(model, X, Y).values(["nDCG@5", "PSP@3"])]),
            ("explanation of nothing", model.explain(X[39:], ranking.labels[39, 0])),
        ]
    if hasattr(model, "subwords_"):
        found = [("ranking", model.rank(X, k=3)), ("probabilities", model.predict_proba(X))]
        return (
            found if model.combine == "id" else [*found, ("new", model.add_labels(["a name"]).rank(X, k=3))]
        )
    found = model.shortlist(X, 10)
    pairs = Candidates.all_labels(X.shape[0], model.named_sizes()["L"])
    by_label = [("points", model.shortlist_points(X, 3))] if hasattr(model, "shortlist_points") else []
    return [("shortlist", found), ("columns", model.score(X, pairs)), *by_label]


def relevances(n: int, width: int) -> np.ndarray:
    return (np.arange(n * width).reshape(n, width) * 7 % 5 < 2).astype(np.float32)


def rows_for(model: Any) -> Any:
    """Forty rows that the model takes; of integers alone, so that they are the same everywhere."""
    rng = np.random.default_rng(1)
    encoder = getattr(model, "encoder_", None)
    if hasattr(model, "subwords_") or getattr(encoder, "vectorizer", None) is not None:
        words = " ".join([*makers.WORDS, "numpy array of sorted values along an axis"]).split()
        return [*(" ".join(rng.choice(words, n % 17 + 1)) for n in range(39)), ""]
    n_features = getattr(model, "n_features_in_", None) or model.named_sizes().get("d")
    X = rng.integers(-999, 1000, (40, n_features)) / 500 * (np.arange(1, 41) / 10)[:, None]
    layout = getattr(encoder, "layout", "sparse")
    if isinstance(model, MultiObjectiveRanker) or isinstance(getattr(model, "rows_", None), DenseRows):
        layout = "dense"
    if layout == "dense":
        return X.astype(np.float32)
    X = np.where(np.abs(X) > np.abs(X).max(axis=1, keepdims=True) / 2, np.abs(X), 0)
    X[:15], X[39] = np.ceil(X[:15]), 0  # counts, and a row of nothing
    return sp.csr_matrix(X.astype(np.float32))


def digest(value: Any) -> str:
    sums = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            sums.update(f"{value.dtype} {value.shape}".encode())
            sums.update(np.ascontiguousarray(value).tobytes())
        elif sp.issparse(value):
            add([value.indptr, value.indices, value.data])
        elif isinstance(value, Candidates):
            add([value.indptr, value.labels, value.scores])
        elif hasattr(value, "to_dict"):
            sums.update(repr(value.to_dict()).encode())
        elif hasattr(value, "scores"):
            add([value.labels, value.scores])
        elif isinstance(value, dict):
            add([part for pair in value.items() for part in pair])
        elif isinstance(value, list):
            for part in value:
                add(part)
        else:
            sums.update(repr(value).encode())

    add(value)
    return sums.hexdigest()


if __name__ == "__main__":
    command, folder = sys.argv[1], Path(sys.argv[2])
    if command == "save":
        save(folder)
    else:
        if "LD_PRELOAD" in os.environ:
            ctypes.CDLL(os.environ["LD_PRELOAD"]).err()
        print(json.dumps(answer(folder)))

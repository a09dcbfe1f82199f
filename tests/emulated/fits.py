"""What is fitted and answered here, to be compared with the same of another machine; see `arm64.py`.

    python fits.py FOLDER [NAME ...]

Fits a model of every kind (those of `golden/make.py`) and some
on more rows. Saves each to FOLDER/NAME, what it answers to FOLDER/NAME.npz, and to FOLDER/said.json digests
of its files, of its answers, and of every array that a function of metarank returned while it was fitted, in
order. Also there: the digests of `wheels/smoke.py` and of what the models in `golden/` answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

TESTS = Path(__file__).absolute().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("golden", "check", "wheels", "")]

import make as golden  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import smoke  # noqa: E402
from cpu_levels_child import answer, answers, digest  # noqa: E402

from metarank import MetaRanker, load, persist  # noqa: E402
from metarank.types.candidates import Candidates  # noqa: E402

# What these return hangs on the order of a set or on the process, and reaches no model.
PASSED_OVER = ("metarank._util.", "metarank.persist")


def larger() -> dict[str, Callable[[], Any]]:
    """Fits of rankers on more rows, whose trees have many splits; of whole numbers, the same everywhere."""

    def fit(ranker: str) -> Any:
        X, Y = smoke.rows(900, 40, 12)
        return MetaRanker(ranker=ranker, effort="low", n_folds=2, n_jobs=1).fit(X, Y)

    return {f"900 rows, {name}": partial(fit, name) for name in ("auto", "ensemble", "lambdarank", "listnet")}


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays of a value, and its numbers if it holds more than one."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield value
    elif sp.issparse(value):
        csr = value.tocsr()
        yield from (csr.indptr, csr.indices, csr.data)
    elif isinstance(value, Candidates):
        yield from (value.indptr, value.labels, *value.scores.values())
    elif isinstance(value, (list, tuple)):
        numbers = [part for part in value if isinstance(part, float)]
        yield from [np.array(numbers)] if numbers else []
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    elif hasattr(value, "labels") and hasattr(value, "scores"):
        yield from arrays_in([value.labels, value.scores])


def noted(make: Callable[[], Any]) -> tuple[Any, list[list[str]]]:
    """What `make` makes, and a function and a digest for each return of arrays on the way."""
    found: list[list[str]] = []

    def look(frame: FrameType, event: str, value: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "return" or not module.startswith("metarank.") or module.startswith(PASSED_OVER):
            return
        sys.setprofile(None)
        sums = hashlib.sha256()
        parts = list(arrays_in(value))
        for part in parts:
            sums.update(f"{part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        if parts:
            found.append([f"{module[9:]}.{frame.f_code.co_qualname}", sums.hexdigest()[:12]])
        sys.setprofile(look)

    sys.setprofile(look)
    try:
        made = make()
    finally:
        sys.setprofile(None)
    return made, found


def main(folder: Path, names: list[str]) -> None:
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True)
    golden.dense_index.LEAST_ROWS = 1  # as where the approximate ones were saved
    (folder / "none").mkdir()
    said: dict[str, Any] = {
        "golden": smoke.fitted_in_the_core(),
        "saved before": smoke.saved_before(),
        "saved": answer(folder / "none"),
        "fits": {},
    }
    for name, make in (golden.every_kind() | larger()).items():
        if names and name not in names:
            continue
        model, returns = noted(make)
        path = folder / re.sub(r"\W+", "-", name)
        persist.save(model, path)
        values = dict(answers(load(path)))
        flat = {f"{what}/{i}": a for what, value in values.items() for i, a in enumerate(arrays_in(value))}
        np.savez(path.with_suffix(".npz"), **flat)
        digests_of = {what: digest(value) for what, value in values.items()}
        said["fits"][name] = {
            "answers": digests_of,
            "files": {
                str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest()
                for f in sorted(path.iterdir())
            },
            "returns": returns,
        }
        print(f"{name}: {len(digests_of)} answers, {len(returns)} returns", flush=True)
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

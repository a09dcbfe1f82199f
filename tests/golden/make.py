"""Golden models: one of every kind, and digests of what it answers, to compare before and after a change.

    python tests/golden/make.py make                     `kinds/` again, where it may change
    python tests/golden/make.py fit OUT.json [SET ...]   every kind, and `MetaRanker` on named sets
    python tests/golden/make.py differ BEFORE.json AFTER.json

A fit may depend on the machine's LAPACK and on what LightGBM and SciPy were compiled for, so these are
compared on one machine (and by `emulated/arm64.py` on two). What saved models answer does not: `kinds/` holds
a folder of every kind, `kinds.json` the digests of what it answers.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "check"), str(HERE.parents[1])]

import makers  # noqa: E402
from cpu_levels_child import CUTS, KINDS, answers, digest  # noqa: E402

from metarank import MetaRanker, load, persist  # noqa: E402
from metarank.data import load_named  # noqa: E402
from metarank.types import dense_index  # noqa: E402

KEPT = HERE / "kinds"


def every_kind() -> dict[str, Any]:
    """What makes a fitted model, by name."""
    made = dict(KINDS)
    for cut in CUTS:
        params = {**makers.QUICK, "threshold": cut}
        made[f"cuts, {cut}"] = lambda params=params: MetaRanker(**params).fit(makers.dense(80, L=5))
    every = ["neighbors", "one-vs-all", "parabel", "xreg", "names", "spelling"]
    made["texts, shortlisted"] = lambda: MetaRanker(every, n_folds=2, n_jobs=1).fit(makers.texts())
    made["texts, cascade"] = lambda: MetaRanker(
        ["neighbors", "names"], effort="low", ranker="logistic", n_folds=2, n_jobs=1
    ).fit(makers.many_texts(160))
    return made


def answered(path: Path) -> dict[str, str]:
    """Digests of what a saved model answers."""
    dense_index.LEAST_ROWS = 1  # as where the approximate ones were saved
    return {what: digest(value) for what, value in answers(load(path))}


def arrays(path: Path) -> dict[str, int]:
    """How often a folder holds an array or a long text, by a digest of its values."""
    found: dict[str, int] = {}

    def count(content: bytes) -> None:
        key = hashlib.sha256(content).hexdigest()
        found[key] = found.get(key, 0) + 1

    for file in sorted(path.iterdir()):
        if file.suffix == ".npy":
            array = np.load(file)
            count(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        elif file.name != persist.MANIFEST:
            count(file.read_bytes())
    return found


def fit(names: list[str]) -> dict[str, Any]:
    """Answers and arrays of models fitted now."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in every_kind().items():
            path = Path(folder) / re.sub(r"\W+", "-", name)
            persist.save(make(), path)
            found[name] = {"answers": answered(path), "arrays": arrays(path)}
        for name in names:
            train, test = (load_named(name, part) for part in ("train", "test"))
            model = MetaRanker(n_jobs=2).fit(train)
            path = Path(folder) / name
            model.save(path)
            X = test.texts if test.texts is not None else test.X
            said = {
                "ranking": digest(model.rank(X, k=10)),
                "probabilities": digest(model.predict_proba(X)),
                "cut": digest(model.predict(X)),
                "choices": digest(model.choices_),
                "columns": digest(model.feature_columns_),
            }
            found[name] = {"answers": said, "arrays": arrays(path)}
    return found


def differ(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each model whose answers differ, or that holds other arrays."""
    lines = [f"{name}: only in one" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        others = [what for what in old["answers"] if old["answers"][what] != new["answers"].get(what)]
        lines += [f"{name}: answers differ: {', '.join(others)}"] if others else []
        gone, come = (set(a["arrays"]) - set(b["arrays"]) for a, b in ((old, new), (new, old)))
        lines += (
            [f"{name}: {len(gone)} arrays of before are not held, {len(come)} are new"]
            if gone or come
            else []
        )
    return lines


def make() -> None:
    """Write a folder of every kind, and what it answers, in the place of all there were."""
    shutil.rmtree(KEPT, ignore_errors=True)
    said = {}
    for name, fitted in every_kind().items():
        path = KEPT / re.sub(r"\W+", "-", name)
        persist.save(fitted(), path)
        said[path.name] = answered(path)
    Path(f"{KEPT}.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def main(command: str, *rest: str) -> None:
    warnings.simplefilter("ignore")
    if command == "make":
        make()
    elif command == "fit":
        Path(rest[0]).write_text(json.dumps(fit(list(rest[1:])), indent=1), encoding="utf-8")
    else:
        before, after = (json.loads(Path(path).read_text(encoding="utf-8")) for path in rest)
        lines = differ(before, after)
        print("\n".join(lines) or f"{len(before)} models: the same answers and arrays")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])

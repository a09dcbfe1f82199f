"""What a wheel must do wherever it is installed: fit, save, load, and answer what is known, digest by digest.

    python tests/wheels/smoke.py

Needs metarank as it was installed and nothing else: no pytest, no extra. Prints what it runs on.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import metarank
from metarank import MetaRanker, _core, load
from metarank.shortlist import OneVsAll, Parabel, PfastreXML

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"


def rows(n: int, n_features: int = 40, n_labels: int = 12) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Counts of words and labels that hang on them, of whole numbers: the same everywhere."""
    i, j = np.arange(n)[:, None], np.arange(n_features)[None]
    X = ((i * 31 + j * 17 + i * j * 7) % 11 < 2) * (1 + (i + j) % 3)
    label = np.arange(n_labels)[None]
    Y = (X[:, :n_labels] > 0) & ((i + label) % 5 > 0)
    Y[~Y.any(axis=1), 0] = True
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y.astype(np.float32))


def digest(*arrays: Any) -> str:
    sums = hashlib.sha256()
    for array in arrays:
        sums.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return sums.hexdigest()[:16]


def fitted_in_the_core() -> dict[str, str]:
    """Fits whose arithmetic is the core's from end to end, so that they hold the same bytes everywhere."""
    X, Y = rows(120)
    new, _ = rows(30)
    found = {}
    for make in (Parabel, OneVsAll, PfastreXML):
        candidates = make().fit(X, Y).shortlist(new, 5)
        (scores,) = list(candidates.scores.values())[:1]
        found[make.__name__] = digest(candidates.indptr, candidates.labels, scores)
    return found


def fit_save_load() -> None:
    X, Y = rows(120)
    new, _ = rows(30)
    model = MetaRanker(effort="low", n_folds=2, n_jobs=1).fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "M")
        loaded = load(Path(folder) / "M")
        before, after = model.rank(new, k=5), loaded.rank(new, k=5)
        assert digest(before.labels, before.scores) == digest(after.labels, after.scores)
        assert (model.predict(new) != loaded.predict(new)).nnz == 0
    top = before.labels[:, 0]
    share = Y.toarray()[:30][np.arange(30), top].mean()
    assert share > 0.5, f"of the first labels only {share:.2f} are relevant"


def imports_only_what_it_uses() -> None:
    """A fit of sparse rows loads no library of dense search, training, plots or services."""
    code = (
        "import sys, smoke\nsmoke.fit_save_load()\n"
        "print([m for m in ('faiss', 'torch', 'matplotlib', 'fastapi') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE, check=True)
    assert run.stdout.strip() == "[]", run.stdout


def main() -> None:
    found = fitted_in_the_core()
    if "--golden" in sys.argv:
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found == expected, f"digests of fits: {found}, and not {expected}"
    fit_save_load()
    imports_only_what_it_uses()
    core = Path(_core.__file__)
    if sys.version_info >= (3, 12) and sys.platform != "win32" and "site-packages" in str(core):
        assert core.name.endswith(".abi3.so"), core.name
    print(
        f"metarank {metarank.__version__} of {core.name} on {platform.python_implementation()} "
        f"{platform.python_version()}, {platform.platform(terse=True)}, {platform.machine()}: "
        f"{len(found)} golden fits"
    )


if __name__ == "__main__":
    main()

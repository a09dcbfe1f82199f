"""One fit of few rows or labels in a process of its own: CPU time, and what new rows show.

fits.py JOB.json, written by run.py, which names `set`, `rows` (null: all), `contender` and `out`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import clocked, yardstick
from parts import split, with_fewer_rows
from stratified import stratified_folds
from titles import Titles, load

from metarank import MetaRanker, data, metrics

METRICS = ("MAP", "nDCG@5", "P@1")
SEED = 1
TEST_ROWS = 1500  # of cooking_stackexchange, its last
# A fit that takes less CPU seconds is repeated; its time is the median of so many.
SHORT, REPETITIONS = 5.0, 3
SMALL = ("emotions", "scene", "yeast", "reuters90")
ROWS: dict[str, tuple[int | None, ...]] = {
    "cooking_stackexchange": (300, 1000),
    "fashion_styles": (1000, 3000, None),
    **dict.fromkeys(SMALL, (None,)),
}
EFFORTS = ("low", "medium")
ALL_LABELS, ONE_VS_REST = "shortlister=None", "LightGBM one-vs-rest"


def contenders(name: str, rows: int | None) -> tuple[str, ...]:
    """Who is fitted on so many rows of a set."""
    return (*EFFORTS, ALL_LABELS, ONE_VS_REST) if (name, rows) == ("cooking_stackexchange", 300) else EFFORTS


@dataclass(frozen=True)
class Problem:
    """Rows and their labels, lists of names of texts, and rows to judge by.

    `Y_test` has a column for each of `names`, those of the training rows; each of its rows has one of them.
    """

    X: Any
    labels: Any
    X_test: Any
    Y_test: sp.csr_matrix
    names: list[str]

    @property
    def checksum(self) -> str:
        """sha256 of all that is fitted and judged by."""
        digest = hashlib.sha256()
        for part in (self.X, self.X_test):
            of = "\n".join(part).encode() if isinstance(part, list) else _numbers(part).tobytes()
            digest.update(of)
        for part in (self.labels, self.names):
            digest.update(json.dumps(part if isinstance(part, list) else part.tolist()).encode())
        digest.update(self.Y_test.indptr.tobytes() + self.Y_test.indices.tobytes())
        return digest.hexdigest()


def _numbers(X: np.ndarray | sp.csr_matrix) -> np.ndarray:
    return np.concatenate([X.indptr, X.indices, X.data]) if sp.issparse(X) else X


def problem(name: str, rows: int | None) -> Problem:
    """A problem by its set and the number of training rows, None for all.

    Raises
    ------
    FileNotFoundError
        If the set is not there; the message says where it is looked for.
    """
    if name in SMALL:
        return _small(name)
    titles = load(name)
    if name == "fashion_styles":
        parts = split(titles, 0)
        parts = parts if rows is None else with_fewer_rows(parts, rows, SEED)
        return _texts(parts.train, parts.test)
    n = len(titles.texts) - TEST_ROWS
    drawn = np.random.default_rng(SEED).choice(n, rows or n, replace=False)
    return _texts(titles.take(np.sort(drawn)), titles.take(np.arange(n, n + TEST_ROWS)))


def _texts(train: Titles, test: Titles) -> Problem:
    used = np.flatnonzero(train.Y.getnnz(axis=0))
    labels = [[train.names[j] for j in row.indices] for row in train.Y]
    Y_test = sp.csr_matrix(test.Y[:, used])
    judged = np.flatnonzero(Y_test.getnnz(axis=1))
    names = [train.names[j] for j in used]
    return Problem(train.texts, labels, [test.texts[i] for i in judged], Y_test[judged], names)


def _small(name: str) -> Problem:
    """Three quarters of a training part, and the other; the test part is not read."""
    folder = Path(os.environ.get("METARANK_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
    train = data.load_named(name, "train", data_dir=folder)
    Y = sp.csr_matrix(train.Y > 0, dtype=np.float32)
    X = sp.csr_matrix(train.X) if sp.issparse(train.X) else np.asarray(train.X)
    held_out = stratified_folds(Y.toarray(), 4, seed=SEED) == 0
    judged = held_out & (Y.getnnz(axis=1) > 0)
    names = [str(j) for j in range(Y.shape[1])]
    return Problem(X[~held_out], Y[~held_out].toarray(), X[judged], Y[judged], names)


# How texts become what they are scored by: a fitted model, as a function of new rows.
Fitted = Callable[[Any], np.ndarray]


def fitted(of: Problem, contender: str) -> Fitted:
    """Scores (n, L) of new rows, in the order of `names`."""
    if contender == ONE_VS_REST:
        return _one_vs_rest(of)
    arguments: dict[str, Any] = {"shortlister": None} if contender == ALL_LABELS else {"effort": contender}
    model = MetaRanker(n_jobs=1, **arguments).fit(of.X, of.labels)
    known = model.label_names_
    if known is None:
        return model.decision_function
    place = {label: j for j, label in enumerate(known)}
    return lambda X: model.decision_function(X)[:, [place[label] for label in of.names]]


def _one_vs_rest(of: Problem) -> Fitted:
    from lightgbm import LGBMClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(dtype=np.float32).fit(of.X)
    X = vectorizer.transform(of.X)
    models = [
        LGBMClassifier(n_jobs=1, verbose=-1).fit(X, np.array([label in row for row in of.labels]))
        for label in of.names
    ]
    return lambda rows: np.column_stack([m.predict_proba(vectorizer.transform(rows))[:, 1] for m in models])


def main(job_file: str) -> None:
    job = json.loads(Path(job_file).read_text())
    of = problem(job["set"], job["rows"])
    figures: dict[str, Any] = {"yardstick_cpu_s": clocked(yardstick)[0]}
    models: list[Fitted] = []
    times: list[float] = []
    while not times or (times[0] < SHORT and len(times) < REPETITIONS):
        times.append(clocked(lambda: models.append(fitted(of, job["contender"])))[0])
    figures |= {"cpu_s": float(np.median(times)), "fits": len(times)}
    figures |= {"rows": len(of.labels), "labels": len(of.names), "test_rows": of.Y_test.shape[0]}
    figures |= metrics.evaluate(of.Y_test, models[0](of.X_test), METRICS, n_jobs=1)
    Path(job["out"]).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

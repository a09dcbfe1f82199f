"""A fit of few rows or labels: its time; that of a row, of a row of a batch and of a request to the service.

`kind` is "metarank", the rest of the parameters its arguments, or "lightgbm", a classifier for each label.
Rows are texts with names of labels where the set has a `texts.json`, dense otherwise. Answers: scores (n, L).
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import clocked
from lightgbm import LGBMClassifier
from sets import matrix
from sklearn.feature_extraction.text import TfidfVectorizer

import metarank
from metarank import MetaRanker

SINGLES, WARM_UP, K = 200, 20, 10
# A fit of less CPU seconds is made so many times; its time is the median.
SHORT, FITS = 5.0, 3
# What a fit gives: the labels of one row, the scores of many in the order of the names, and a model to serve.
Answering = tuple[Callable[[Any], Any], Callable[[Any], np.ndarray], MetaRanker | None]


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        self.arguments = {"n_jobs": threads, **params}
        self.fit = {"metarank": of_metarank, "lightgbm": one_vs_rest}[self.arguments.pop("kind")]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        Y, file, names = matrix(folder, "Y").toarray() > 0, folder / "texts.json", None
        if file.is_file():
            X, X_test, names = json.loads(file.read_text()).values()
        else:
            X, X_test = (matrix(folder, name).toarray() for name in ("X", "X_test"))
        fitted: list[Answering] = []
        times: list[float] = []
        while not times or (times[0] < SHORT and len(times) < FITS):
            times.append(clocked(lambda: fitted.append(self.fit(X, Y, names, self.arguments))))
        one, scores, model = fitted[-1]
        answers: list[np.ndarray] = []
        batch = clocked(lambda: answers.append(scores(X_test)))
        figures = {"train_s": float(np.median(times)), "batch_ms": 1000 * batch / len(X_test)}
        figures["single"] = milliseconds(one, X_test)
        if model is not None:
            with served(model) as (ask, _):
                figures["http"] = milliseconds(ask, X_test)
        return figures, {"scores": answers[0]}


def of_metarank(X: Any, Y: np.ndarray, names: list[str] | None, arguments: dict[str, Any]) -> Answering:
    labels = [[names[j] for j in np.flatnonzero(row)] for row in Y] if names else Y.astype(np.int8)
    model = MetaRanker(**arguments).fit(X, labels)
    place = {label: j for j, label in enumerate(model.label_names_ or [])}
    order = [place[name] for name in names] if names else slice(None)
    return lambda row: model.rank([row], k=K), lambda rows: model.decision_function(rows)[:, order], model


def one_vs_rest(X: Any, Y: np.ndarray, names: list[str] | None, arguments: dict[str, Any]) -> Answering:
    encode = TfidfVectorizer(dtype=np.float32).fit(X).transform if names else np.asarray
    rows = encode(X)
    models = [LGBMClassifier(verbose=-1, **arguments).fit(rows, column) for column in Y.T]

    def scores(rows: Any) -> np.ndarray:
        encoded = encode(rows)
        return np.column_stack([model.predict_proba(encoded)[:, 1] for model in models])

    return lambda row: np.argsort(-scores([row])[0])[:K], scores, None


def milliseconds(ask: Callable[[Any], Any], rows: Sequence[Any]) -> tuple[float, float]:
    """Median and 99th percentile of wall milliseconds of calls with one row each, after a warm-up."""
    took = []
    for i in range(WARM_UP + SINGLES):
        started = time.perf_counter()
        ask(rows[i % len(rows)])
        took.append(1000 * (time.perf_counter() - started))
    return float(np.median(took[WARM_UP:])), float(np.quantile(took[WARM_UP:], 0.99))


@contextmanager
def served(model: MetaRanker) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """A call that asks `metarank serve`, a process of its own, over one connection that is kept; its id."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        command = [sys.executable, "-m", "metarank", "serve", f"{folder}/model", "--port", "0"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as server:
            told = (re.search(r"running on http://([\d.]+):(\d+)", line) for line in server.stderr)
            try:
                found = next(match for match in told if match)
                connection = http.client.HTTPConnection(found[1], int(found[2]))
                yield lambda row: asked(connection, row), server.pid
            finally:
                server.terminate()


def asked(connection: http.client.HTTPConnection, row: str | np.ndarray | sp.csr_matrix) -> Any:
    if sp.issparse(row):
        row = dict(zip(row.indices.tolist(), row.data.tolist()))
    body = json.dumps({"instance": row.tolist() if isinstance(row, np.ndarray) else row, "k": K})
    connection.request("POST", "/rank", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    told = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"the service answers {answer.status}: {told[:200]!r}")
    return json.loads(told)

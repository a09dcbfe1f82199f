"""What does looking at pairs bring: recall found by a hundred judgements, and fits that know of rejections?

python experiments/review/run.py [--sets bibtex,cooking_stackexchange] [--seeds 2] [--rows 4000]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import scipy.sparse as sp

from metarank import MetaRanker, data, metrics

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

SETS = ("bibtex", "cooking_stackexchange")
HIDDEN = 0.4
REVIEWED = 0.1  # of the training rows
DEPTH = 10  # candidates of a reviewed row that are judged
JUDGEMENTS = (100, 300, 1000)
PARAMS: dict[str, Any] = {"n_jobs": 1, "effort": "low", "shortlister": "neighbors"}
FIT_METRICS = ("P@1", "nDCG@5", "micro-F1", "macro-F1", "example-F1")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000, help="training rows, at most")
    add_options(parser, Path(__file__).with_name("results.md"))
    options = parser.parse_args(arguments)
    page = WholePage(options, parser, narrowed_by=("sets", "seeds", "rows"))
    found: list[str] = []
    fits: list[str] = []
    sums = []
    for name in options.sets.split(","):
        train, test = parts_of(name, options.rows)
        sums.append(f"{name} {checksum(train)}")
        trials = [trial(train, test, seed) for seed in range(options.seeds)]
        found += queue_rows(name, [queues for queues, _ in trials])
        fits += fit_rows(name, [own for _, own in trials])
    head = _HEAD.format(
        hidden=round(100 * HIDDEN),
        reviewed=round(100 * REVIEWED),
        depth=DEPTH,
        rows=options.rows,
        seeds=options.seeds,
        sums="; ".join(sums),
        python=platform.python_version(),
        numpy=np.__version__,
    )
    page.write("\n".join([head, *_QUEUES, *found, *_FITS, *fits]) + "\n")
    return 0


def parts_of(name: str, rows: int) -> tuple[data.Dataset, data.Dataset]:
    """Training rows, at most so many, and test rows."""
    root = Path(os.environ.get("METARANK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    if name == "bibtex":
        train, test = (data.load(root / "mlc" / name / f"{part}.svm.gz") for part in ("train", "test"))
    else:
        whole = data.load(root / "text" / name / "cooking.stackexchange.txt.xz")
        order = np.random.default_rng(0).permutation(whole.n_rows)
        train, test = whole.take(np.sort(order[3000:])), whole.take(np.sort(order[:3000]))
    drawn = np.random.default_rng(1).permutation(train.n_rows)[:rows]
    return train.take(np.sort(drawn)), test


def trial(
    train: data.Dataset, test: data.Dataset, seed: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """What each order of judgements finds in the test rows, and fits without and with rejections."""
    rng = np.random.default_rng(seed)
    truth = sp.csr_matrix((train.Y > 0).astype(np.float32))
    shown = truth.copy()
    shown.data = (rng.random(truth.nnz) >= HIDDEN).astype(np.float32)
    shown.eliminate_zeros()
    model = MetaRanker(**PARAMS, random_state=seed).fit(replace(train, Y=shown))
    reviewed = np.sort(rng.permutation(train.n_rows)[: round(REVIEWED * train.n_rows)])
    completed, rejected = reviewed_rows(model, train, truth, shown, reviewed)
    known = replace(train, Y=completed)
    started = time.process_time()
    without = MetaRanker(**PARAMS, random_state=seed).fit(known)
    between = time.process_time()
    judged = MetaRanker(**PARAMS, random_state=seed).fit(known, negatives=rejected)
    cost = (time.process_time() - between) / (between - started)
    complete = MetaRanker(**PARAMS, random_state=seed).fit(replace(train, Y=truth))
    fits = {
        "without": [*quality(without, test), 1.0],
        "with": [*quality(judged, test), cost],
        "all labels": [*quality(complete, test), float("nan")],
    }
    return found_by(judged, test, rng), fits


def reviewed_rows(
    model: MetaRanker, train: data.Dataset, truth: sp.csr_matrix, shown: sp.csr_matrix, rows: np.ndarray
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The labels, with those found by judging the first candidates of some rows; and those rejected there."""
    ranking = model.rank(train.take(rows), k=DEPTH).to_csr()
    row, label = ranking.nonzero()
    seen = sp.csr_matrix((np.ones(len(row), np.float32), (rows[row], label)), truth.shape)
    relevant = seen.multiply(truth > 0)
    return sp.csr_matrix((shown + relevant) > 0, dtype=np.float32), sp.csr_matrix(seen - relevant)


def quality(model: MetaRanker, test: data.Dataset) -> list[float]:
    """The metrics of `FIT_METRICS` on complete labels, and the sum of probabilities by relevant candidate."""
    truth, probabilities = test.Y > 0, sp.csr_matrix(model.predict_proba(test))
    told = metrics.evaluate(test.Y, model.rank(test, k=10), FIT_METRICS[:2]) | metrics.evaluate(
        test.Y, None, FIT_METRICS[2:], Y_pred=model.predict(test)
    )
    inside = truth.multiply(probabilities > 0).sum()
    return [*(100 * told[name] for name in FIT_METRICS), float(probabilities.sum() / inside)]


def found_by(model: MetaRanker, test: data.Dataset, rng: np.random.Generator) -> dict[str, list[float]]:
    """By order: of all relevant labels, the share by which judgements complete the label sets, and the wrong
    decisions that a hundred of them correct."""
    truth, kept = (test.Y > 0).toarray(), model.predict(test).toarray() > 0
    probabilities = sp.coo_matrix(model.predict_proba(test))
    most = max(JUDGEMENTS)
    surest = np.argsort(-probabilities.data, kind="stable")[:most]
    chance = rng.permutation(probabilities.nnz)[:most]
    unlabelled = replace(test, Y=sp.csr_matrix(test.Y.shape, dtype=np.float32))
    queue: Callable[[str], np.ndarray] = lambda goal: np.array(  # noqa: E731
        [(pair.row, pair.label) for pair in model.review_queue(unlabelled, most, goal=goal)]
    )
    orders = {
        "review_queue, recall": queue("recall"),
        "review_queue, errors": queue("errors"),
        "the surest": np.column_stack([probabilities.row[surest], probabilities.col[surest]]),
        "chance": np.column_stack([probabilities.row[chance], probabilities.col[chance]]),
    }
    out = {}
    for name, pairs in orders.items():
        row, label = pairs.T
        new = np.cumsum(truth[row, label] & ~kept[row, label])
        wrong = np.cumsum(truth[row, label] != kept[row, label])
        out[name] = [100 * new[n - 1] / truth.sum() * 100 / n for n in JUDGEMENTS]
        out[name] += [100 * wrong[n - 1] / n for n in JUDGEMENTS]
    return out


def queue_rows(name: str, trials: list[dict[str, list[float]]]) -> list[str]:
    """Rows of the table of orders."""
    means = {order: np.mean([found[order] for found in trials], axis=0) for order in trials[0]}
    recall, errors = slice(0, len(JUDGEMENTS)), slice(len(JUDGEMENTS), None)
    return [
        f"| {name} | {order} | {' | '.join(f'{v:.2f}' for v in values[recall])} | "
        f"{' | '.join(f'{v:.1f}' for v in values[errors])} |"
        for order, values in means.items()
    ]


def fit_rows(name: str, trials: list[dict[str, list[float]]]) -> list[str]:
    """Rows of the table of fits."""
    out = []
    for fit in trials[0]:
        values = np.mean([found[fit] for found in trials], axis=0)
        cells = [*(f"{v:.1f}" for v in values[:-2]), f"{values[-2]:.2f}"]
        cells.append("–" if np.isnan(values[-1]) else f"{values[-1]:.1f}")
        out.append(f"| {name} | {fit} | {' | '.join(cells)} |")
    return out


def checksum(train: data.Dataset) -> str:
    """Of the labels of the training rows that are used."""
    parts = (train.Y.indptr.astype(np.int64), train.Y.indices.astype(np.int64))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


_HEAD = """# What looking at pairs brings

Written by `python experiments/review/run.py`; Python {python}, NumPy {numpy}; means of {seeds} seeds.

From at most {rows} training rows {hidden} % of the labels are hidden at random. Of {reviewed} % of the rows
the first {depth} candidates are judged: relevant ones get their label, the others are `negatives`. The test
rows have all labels. Sources are neighbours, effort "low", one thread. sha256 of the training labels:
{sums}."""

_QUEUES = [
    """
## Judgements of test rows

Pairs of test rows are judged one after another, by the model that was fitted with rejections. Recall gained:
relevant labels that the label set of the row lacks and a judgement finds, in hundredths of all relevant
labels, for each hundred judgements. Errors: wrong decisions of the label sets that a hundred judgements
correct. Both over the first 100, 300 and 1,000 judgements. *The surest* are the pairs of greatest
probability, in the label set or not; *chance* draws among all candidates.
""",
    "| set | order | recall gained, 100 | 300 | 1,000 | errors, 100 | 300 | 1,000 |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
]

_FITS = [
    """
## Fits without and with rejections

Both know the labels that reviews found; *all labels* is a fit without any hidden. Probabilities: their sum
over the number of relevant candidates; 1 aims at the truth. Cost: CPU of the fit against that without.
""",
    f"| set | fit | {' | '.join(FIT_METRICS)} | probabilities | cost |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
]


if __name__ == "__main__":
    sys.exit(main())

"""results.md: the tables and how they were made."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from schemes import PLAIN
from trial import SEED, VALIDATION, Figures, K

import metarank
from metarank.data import Dataset

RANKED = ("nDCG@5", "PSP@5")


@dataclass
class Study:
    """What is known of a set: figures by scheme and number of folds."""

    name: str
    checksum: str
    train: Dataset
    new: Dataset
    costs: dict[tuple[str, int], list[Figures]] = field(default_factory=dict)
    alone: dict[str, Figures] = field(default_factory=dict)
    rankers: dict[tuple[str, int], Figures] = field(default_factory=dict)


def write(studies: Sequence[Study]) -> str:
    """The whole page, of whatever was measured."""
    findings = Path(__file__).with_name("findings.md")
    parts = [
        "# Leave-fold-out scores: cost, and accuracy of the ranker",
        findings.read_text().strip(),
        _LEGEND,
    ]
    for study in studies:
        parts.append(f"## {study.name}")
        parts.append(
            f"{study.train.n_rows:,} rows to learn from, {study.new.n_rows:,} new, "
            f"{study.train.n_features:,} features, {study.train.Y.shape[1]:,} labels "
            f"({study.train.Y.nnz / study.train.n_rows:.1f} a row)."
        )
        if study.costs:
            parts.append(_costs(study))
        if study.rankers:
            parts.append(_rankers(study))
    parts += ["## How it was made", _provenance(studies)]
    return "\n\n".join(parts) + "\n"


_LEGEND = f"""*refits*: the fits without a fold, and what is chosen before, as a multiple of one plain fit
of the same scorer on all rows; *cost*: CPU seconds, one thread, of all that a ranker asks of a scheme
(clustering, fits, {K} proposals for each training row, scores of the pairs), as a multiple of one plain fit
of the same scorer on all rows; median, and range where repeated. *R@{K}*, *nDCG@5*: of the proposals, by
the scorer's own order, in per cent. *unseen*: per cent of relevant pairs whose label has no relevant row
outside the fold (in training, for new rows). *relevant*: mean and spread (standard deviation) of the score
of the other relevant pairs; *irrelevant*: mean score of irrelevant proposals. Scores are log-probabilities,
of the ridge its values. A scheme is right if its held-out rows look like new rows described by fits on as
many rows; fits without a fold have fewer, so that plain refits with the same number of folds are the
yardstick. *ranker*: `MetaRanker(shortlister=scheme, ranker="lambdarank")`, new rows, in per cent; *vs
plain*: difference to plain refits with the same number of folds, with its standard error over rows."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _costs(study: Study) -> str:
    """For each scheme its numbers of folds, then what new rows look like to its fit on all rows."""
    rows, seconds = [], []
    for scheme in dict.fromkeys(scheme for scheme, _ in study.costs):
        runs: list[Figures] = []
        for (other, n_folds), figures in study.costs.items():
            if other == scheme:
                cost = [_multiple(figures, name) for name in ("refits_cpu_s", "held_out_cpu_s")]
                rows.append(_quality_row(scheme, str(n_folds), cost, figures[0]["held out"]))
                runs += figures
        rows.append(_quality_row(scheme, "new rows", ["", ""], runs[0]["new"]))
        seconds.append(f"{scheme} {statistics.median(f['fit_cpu_s'] for f in runs):.2f}")
    head = ["scheme", "folds", "refits", "cost", f"R@{K}", "nDCG@5", "unseen", "relevant", "irrelevant"]
    return (
        table(head, rows)
        + f"\n\nCPU seconds of a plain fit, measured beside each scheme: {', '.join(seconds)}."
    )


def _multiple(figures: list[Figures], name: str) -> str:
    """Median and range of a cost as a multiple of a plain fit."""
    multiples = [f[name] / f["fit_cpu_s"] for f in figures if name in f]
    if not multiples:
        return ""
    middle = f"{statistics.median(multiples):.2f}"
    return f"{middle} ({min(multiples):.2f} to {max(multiples):.2f})" if len(multiples) > 1 else middle


def _quality_row(scheme: str, folds: str, cost: list[str], q: dict[str, float]) -> list[str]:
    return [
        scheme,
        folds,
        *cost,
        *(f"{q[name]:.1f}" for name in (f"R@{K}", "nDCG@5", "unseen")),
        f"{q['relevant']:.3f} ± {q['spread']:.3f}",
        f"{q['irrelevant']:.3f}",
    ]


def _rankers(study: Study) -> str:
    rows = [
        [
            f"{scheme}: the scorer alone",
            "",
            *(f"{100 * np.nanmean(f[name]):.2f}" for name in RANKED),
            "",
            "",
            "",
        ]
        for scheme, f in study.alone.items()
    ]
    for (scheme, n_folds), f in study.rankers.items():
        values = [f"{100 * np.nanmean(f[name]):.2f}" for name in RANKED]
        plain = study.rankers.get((PLAIN, n_folds))
        gains = ["", ""]
        if scheme != PLAIN and plain is not None:
            gains = [_difference(np.array(f[name]) - np.array(plain[name])) for name in RANKED]
        rows.append([scheme, str(n_folds), *values, *gains, f"{f['cpu_s']:.0f}"])
    head = ["ranker", "folds", *RANKED, *(f"{name} vs plain" for name in RANKED), "fit, CPU s"]
    return table(head, rows)


def _difference(by_row: np.ndarray) -> str:
    counted = by_row[~np.isnan(by_row)]
    error = counted.std(ddof=1) / np.sqrt(len(counted))
    return f"{100 * counted.mean():+.2f} ± {100 * error:.2f}"


def _provenance(studies: Sequence[Study]) -> str:
    lines = [
        f"- {platform.machine()}, {os.cpu_count()} cores shared with other work, "
        f"Python {platform.python_version()}, "
        + ", ".join(f"{package} {version(package)}" for package in ("numpy", "scipy", "lightgbm"))
        + f", metarank {metarank.__version__}",
        f"- seed {SEED} (made set, split, fold map, models); of the training part {100 * VALIDATION:.0f} % "
        "are the new rows, drawn at random",
        "- the findings on top are written by hand, in findings.md",
        *(f"- sha256 of features and labels of {s.name}: {s.checksum}" for s in studies),
    ]
    return "\n".join(lines)

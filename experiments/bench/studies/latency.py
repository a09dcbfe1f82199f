"""What a row costs, and a fit: few labels or rows at each effort, by HTTP too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import named_texts
import numpy as np
import page_parts
import scipy.sparse as sp
import sets
from declared import Figures, Lines, Measure, Study, System
from page_parts import number

from metarank import metrics

prose = page_parts.prose_of(globals())

COOKING, TEST_ROWS = "cooking_stackexchange", 1500
ROWS = {f"{COOKING}-{n}": n for n in (300, 1000)}
SMALL = ("emotions", "scene", "yeast")
FEW = (*ROWS, *SMALL)
METRICS = ("MAP", "nDCG@5", "P@1")
HEAD = ("CPU s", "single ms (p99)", "by HTTP ms (p99)", "batch ms", *METRICS)
FITS = (
    System("effort low", "few_rows", {"kind": "metarank", "effort": "low"}, sets=FEW),
    System("effort medium", "few_rows", {"kind": "metarank", "effort": "medium"}, sets=FEW),
    System("shortlister=None", "few_rows", {"kind": "metarank", "shortlister": None}, sets=FEW[:1]),
    System("LightGBM one-vs-rest", "few_rows", {"kind": "lightgbm"}, sets=FEW),
)


def few(n_rows: int, seed: int = 1) -> Callable[[Path], Figures]:
    """What makes a set of so many questions with names of tags, and the last of all to judge by."""

    def make(folder: Path) -> Figures:
        questions = named_texts.READERS[f"{COOKING}-titles"]()
        n = questions.n_rows - TEST_ROWS
        drawn = np.sort(np.random.default_rng(seed).choice(n, n_rows, replace=False))
        used = np.flatnonzero(questions.Y[drawn].getnnz(axis=0))
        judged = n + np.flatnonzero(questions.Y[n:, used].getnnz(axis=1))
        texts = {
            part: [questions.texts[i] for i in rows] for part, rows in (("X", drawn), ("X_test", judged))
        }
        written = json.dumps({**texts, "names": [questions.label_names[j] for j in used]})
        (folder / "texts.json").write_text(written)
        sp.save_npz(folder / "Y.npz", questions.Y[drawn][:, used])
        sp.save_npz(folder / "Y_test.npz", questions.Y[judged][:, used])
        return {"checksum": hashlib.sha256(written.encode()).hexdigest(), "n": n_rows, "L": len(used)}

    return make


def judged(folder: Path, answers: Path) -> dict[str, dict[str, float]]:
    with np.load(answers) as file:
        values = metrics.evaluate(sets.matrix(folder, "Y_test"), file["scores"], METRICS, n_jobs=1)
    return {"": {name: float(value) for name, value in values.items()}}


def of_fit(line: Figures) -> list[str]:
    """CPU s of the fit, milliseconds of a row, by HTTP, of a batch; quality."""
    pairs = [line["single"], line.get("http")]
    both = ["–" if pair is None else f"{number(pair[0])} ({number(pair[1])})" for pair in pairs]
    quality = (f"{100 * line['quality'][''][metric]:.1f}" for metric in METRICS)
    return [number(line["train_s"]), *both, number(line["batch_ms"]), *quality]


def table(lines: Lines, names: Sequence[str]) -> str:
    rows = []
    for line in (line for name in names if name in lines.sets for line in lines if line["set"] == name):
        name = line["set"].replace(f"{COOKING}-", f"{COOKING}, ") + (" rows" if line["set"] in ROWS else "")
        found = [line["failed"]] if "failed" in line else of_fit(line)
        rows.append([name, lines.sets[line["set"]]["L"], line["system"], *found])
    return page_parts.table(["set", "labels", "fitted", *HEAD], rows)


def page(lines: Lines) -> str:
    parts = ["# What a row costs, and a fit", prose("TIMES")]
    parts += ["## A few hundred labels", prose("TEXTS"), table(lines, tuple(ROWS))]
    parts += ["## Small label sets", "Published splits.", table(lines, SMALL)]
    return "\n\n".join(parts)


STUDY = Study(
    "latency",
    FEW,
    FITS,
    judged,
    page,
    Measure(singles=200),
    make={name: few(n) for name, n in ROWS.items()},
    alone=("*",),
)

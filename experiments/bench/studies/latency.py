"""What a row costs, and a fit: few labels or rows at each effort, by HTTP too; what the cascade is worth."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import judging
import named_texts
import numpy as np
import page_parts
import scipy.sparse as sp
import sets
from declared import Figures, Lines, Measure, Study, System
from page_parts import number

from metarank import metrics

COOKING, TEST_ROWS = "cooking_stackexchange", 1500
ROWS = {f"{COOKING}-{n}": n for n in (300, 1000)}
SMALL = ("emotions", "scene", "yeast")
LARGER = ("LLMs4Subjects-dev-en", "CiteULike-t-tags", "LastFM-ArtistTags", "pydocs")
FEW = (*ROWS, *SMALL)
METRICS = ("MAP", "nDCG@5", "P@1")
FITS = (
    System("effort low", "few_rows", {"kind": "metarank", "effort": "low"}, sets=FEW),
    System("effort medium", "few_rows", {"kind": "metarank", "effort": "medium"}, sets=FEW),
    System("shortlister=None", "few_rows", {"kind": "metarank", "shortlister": None}, sets=FEW[:1]),
    System("LightGBM one-vs-rest", "few_rows", {"kind": "lightgbm"}, sets=FEW),
)
CASCADE = (
    System("with the cascade", "cascade", {"names": False}, sets=LARGER),
    # More than there are candidates: all are described.
    System("without the cascade", "cascade", {"names": False, "least_survivors": 10**6}, sets=LARGER),
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
        if "scores" not in file:
            return judging.of_lists(folder, answers)
        values = metrics.evaluate(sets.matrix(folder, "Y_test"), file["scores"], METRICS, n_jobs=1)
    return {"": {name: float(value) for name, value in values.items()}}


def of_fit(line: Figures) -> list[str]:
    """CPU s of the fit, milliseconds of a row, by HTTP, of a batch; quality."""
    pairs = [line["single"], line.get("http")]
    both = ["–" if pair is None else f"{number(pair[0])} ({number(pair[1])})" for pair in pairs]
    quality = (f"{100 * line['quality'][''][metric]:.1f}" for metric in METRICS)
    return [number(line["train_s"]), *both, number(line["batch_ms"]), *quality]


def of_cascade(line: Figures) -> list[str]:
    quality = (f"{100 * line['quality'][''][metric]:.2f}" for metric in ("nDCG@5", "PSP@5", "R@100"))
    times = (number(line[time]) for time in ("single_wall_ms", "batch_ms", "train_s"))
    return [*quality, *times, f"{line['described']:.0f} of {line['proposed']:.0f}"]


def table(
    lines: Lines, names: Sequence[str], head: Sequence[str], cells: Callable[[Figures], list[str]]
) -> str:
    rows = []
    for line in (line for name in names if name in lines.sets for line in lines if line["set"] == name):
        name = line["set"].replace(f"{COOKING}-", f"{COOKING}, ") + (" rows" if line["set"] in ROWS else "")
        found = [line["failed"]] if "failed" in line else cells(line)
        rows.append([name, lines.sets[line["set"]]["L"], line["system"], *found])
    return page_parts.table(["set", "labels", "fitted", *head], rows)


def page(lines: Lines) -> str:
    of_fits = ("CPU s", "single ms (p99)", "by HTTP ms (p99)", "batch ms", *METRICS)
    of_lists = ("nDCG@5", "PSP@5", "R@100", "single ms", "batch ms", "train s", "pairs described")
    parts = ["# What a row costs, and a fit", TIMES]
    parts += ["## A few hundred labels", TEXTS, table(lines, tuple(ROWS), of_fits, of_fit)]
    parts += ["## Small label sets", "Published splits.", table(lines, SMALL, of_fits, of_fit)]
    return "\n\n".join([*parts, "## The cascade", LISTS, table(lines, LARGER, of_lists, of_cascade)])


TIMES = (
    "Each line is a process of its own, alone on the machine, with one thread. *CPU s*: of the fit; below "
    "5 s the median of three. *single ms*: wall milliseconds of a call with one row, which gives ten labels: "
    "median of 200 calls and 99th percentile. *by HTTP*: the same by a client of `metarank serve` on this "
    "machine, on one connection. *batch ms*: CPU milliseconds a row, scores of all labels in one call. Rows "
    "of thousands of labels beside PECOS and omikuji are on the page of the study `thousands`."
)
TEXTS = (
    f"Questions with lists of names of tags, drawn from all but the last {TEST_ROWS:,}, which are judged by "
    "if they have a tag of a drawn one. *shortlister=None*: all labels are ranked, with effort medium. "
    "LightGBM: `LGBMClassifier()` of each label, texts by the TF-IDF of words."
)
LISTS = (
    "Lists of 100 labels of the test parts, without names of labels. *without the cascade*: all candidates "
    "are described (`LEAST_SURVIVORS = 10**6` in `metarank.model.fitting.auto`). *pairs described*: of how "
    "many candidates a row, over the first thousand test rows. *batch ms* and *train s* are CPU times."
)

STUDY = Study(
    "latency",
    (*FEW, *LARGER),
    (*FITS, *CASCADE),
    judged,
    page,
    Measure(singles=200),
    make={name: few(n) for name, n in ROWS.items()},
    alone=True,
)

"""Names in label embeddings: the models and Tables 1 and 2 of LALE's paper, trees and the pipeline beside."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import judging
import named_texts
import numpy as np
import page_parts
import scipy.sparse as sp
import sets
from declared import Lines, Measure, Study, System
from list_quality import of_labels, share_found

from metarank import Ranking, metrics

prose = page_parts.prose_of(globals())

SETS = ("fashion_styles-titles-3000", "product_attribute_values-titles", "pydocs-texts")
UNSEEN = tuple(f"{name}-unseen" for name in SETS)
PRINTED_SETS = ("fashion_styles-titles", "cooking_stackexchange-titles", "archaeology-titles")
LARGE_SETS = (*PRINTED_SETS, *SETS, "LLMs4Subjects-dev-en-titles")
# Of all networks alike.
NETWORKS: dict[str, Any] = {
    **dict.fromkeys(("subword_dim", "hidden_dim", "embedding_dim"), 128),
    "batch_size": 64,
    "sampled_labels": 512,
    "learning_rate": 3e-3,
    "steps": 2000,
    "patience_steps": 500,
}
# What the paper prints: G, H and E of 256, names through ReLU, no bias, all labels in each step.
PRINTED: dict[str, Any] = {
    **dict.fromkeys(("subword_dim", "hidden_dim", "embedding_dim"), 256),
    "encoder": "bilstm",
    "name_activation": "relu",
    "bias": "none",
    "sampled_labels": None,
    "learning_rate": 1e-3,
    "steps": 20_000,
    "patience_steps": 2000,
}
FORMS = {"ID-only": "id", "Text-only": "text", "Combined": "concat", "LALE": "lale", "GILE-like": "gile"}
TABLE_1 = ("nDCG@1", "nDCG@3", "nDCG@5", "P@3", "P@5")
TABLE_2 = ("coverage", "F1 head", "F1 tail")
BUCKETS = {"0": (0, 0), "1-2": (1, 2), "3-5": (3, 5), "6-20": (6, 20), "21+": (21, 10**9)}
RARE = tuple(f"R@5 {bucket}" for bucket in BUCKETS)
HEAD_SHARE = 0.87
NEVER_SEEN, UNSEEN_K = "never seen", 10
PAPER = ("65.5 → 65.9", "20.8 → 30.2", "30.2 → 33.8", "9.6 → 12.5")  # its Tables 1 and 2


def _network(name: str, sets: Sequence[str] = LARGE_SETS, seeds: int | None = None, **params: Any) -> System:
    return System(name, "lale", {**NETWORKS, **params}, sets=tuple(sets), seeds=seeds)


MEANS = tuple(
    _network(
        name,
        # Those that are asked for labels never seen as well.
        ("*",) if name in ("Text-only", "LALE") else LARGE_SETS,
        combine=form,
        encoder="mean",
        id_penalty=0.15 * (form == "lale"),
    )
    for name, form in FORMS.items()
)
TAGSPACE = _network("TagSpace-like", combine="id", encoder="mean", loss="warp")
BAGS = tuple(_network(f"{name}, bags", combine=form, encoder="bow") for name, form in FORMS.items())
AS_PRINTED = tuple(
    _network(f"{name}, as printed{behind}", PRINTED_SETS, 1, **PRINTED, combine=FORMS[name], loss=loss)
    for loss, behind in (("bce", ""), ("softmax", ", softmax"))
    for name in ("ID-only", "LALE")
)
TREES = (
    *(
        System(name, "shortlister", {"estimator": name}, sets=LARGE_SETS)
        for name in ("FastXML", "PfastreXML", "Parabel")
    ),
    System("omikuji, 3 trees", "omikuji", {"n_trees": 3}, "omikuji", sets=LARGE_SETS, seeds=1),
)
PIPELINE = (
    System("metarank, no names", "texts", {"names": False}, sets=LARGE_SETS, seeds=3),
    System("metarank", "texts", {}, seeds=3),
)


# --- what lists are worth ------------------------------------------------------------------


def of_titles(folder: Path, answers: Path) -> dict[str, dict[str, float]]:
    """Columns of both tables, with one cut for all that is best on the validation part; recall by rows."""
    Y, held_out, described = sets.matrix(folder, "Y"), sets.matrix(folder, "Y_test"), sets.described(folder)
    with np.load(answers) as file:
        labels, scores = judging.allowed(file["/labels"], file["/scores"], sets.excluded(folder))
    n = described["n_valid"]
    truth, found = held_out[n:], labels[n:]
    falling = np.broadcast_to(-np.arange(found.shape[1], dtype=np.float32), found.shape)
    ranking = Ranking(found, np.where(found >= 0, falling, -np.inf).astype(np.float32), Y.shape[1])
    if described["unseen"]:
        among = np.isin(np.arange(Y.shape[1]), described["unseen"])
        return {"": {NEVER_SEEN: share_found(of_labels(truth, among), ranking, UNSEEN_K)}}
    values = metrics.evaluate(truth, ranking, list(TABLE_1), n_jobs=1)
    threshold = best_threshold(held_out[:n], labels[:n], scores[:n])
    cut = np.where(scores[n:] >= threshold, found, -1)
    given = np.bincount(cut[cut >= 0], minlength=Y.shape[1])
    counts, head = np.bincount(Y.indices, minlength=Y.shape[1]), head_of(Y)
    values["coverage"] = np.count_nonzero(given) / len(given)
    values |= {f"F1 {name}": class_f1(truth, cut, among) for name, among in (("head", head), ("tail", ~head))}
    for bucket, (least, most) in BUCKETS.items():
        among = (counts >= least) & (counts <= most)
        values[f"R@5 {bucket}"] = share_found(of_labels(truth, among), ranking, 5)
    return {"": {name: float(value) for name, value in values.items()}}


def head_of(Y: sp.csr_matrix) -> np.ndarray:
    """Mask of the most frequent labels that make up 87 % of all occurrences."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = np.argsort(-counts, kind="stable")
    head = np.zeros(len(counts), bool)
    head[order] = np.cumsum(counts[order]) - counts[order] < HEAD_SHARE * counts.sum()
    return head & (counts > 0)


def best_threshold(Y: sp.csr_matrix, labels: np.ndarray, scores: np.ndarray) -> float:
    """The threshold for all pairs alike with the greatest micro-F1; of several, the greatest."""
    row, place = np.nonzero(labels >= 0)
    score = scores[row, place]
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(np.asarray(Y[row[order], labels[row, place][order]]).ravel() > 0)
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + Y.nnz)
    # Pairs of one score are cut together.
    score = score[order]
    possible = np.append(score[1:] != score[:-1], True)
    return float(score[np.argmax(np.where(possible, f1, -1.0))])


def class_f1(Y: sp.csr_matrix, labels: np.ndarray, among: np.ndarray) -> float:
    """Mean F1 of the labels of a mask, each of equal weight; only those with a relevant test row count."""
    relevant = np.bincount(Y.indices, minlength=Y.shape[1])
    row, label = np.nonzero(labels >= 0)[0], labels[labels >= 0]
    right = label[np.asarray(Y[row, label]).ravel() > 0]
    hits, given = (np.bincount(of, minlength=Y.shape[1]) for of in (right, label))
    judged = among & (relevant > 0)
    f1 = 2 * hits[judged] / (relevant + given)[judged]
    return float(np.mean(f1)) if judged.any() else math.nan


# --- the page ------------------------------------------------------------------------------


class Values:
    """Quality by set, system and column: one value a seed; none where there is none."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        done = [line for line in lines if "failed" not in line]
        self.systems = list(dict.fromkeys(line["system"] for line in done))
        self.sets = [name for name in LARGE_SETS if name in lines.sets]

    def of(self, dataset: str, system: str, column: str) -> list[float]:
        lines = [line for line in self.lines.of(dataset, system) if "failed" not in line]
        return [value for line in lines if not math.isnan(value := line["quality"][""].get(column, math.nan))]

    def shown(self, dataset: str, system: str, column: str) -> str:
        """Per cent: mean and, of several seeds, deviation; bold where no system's mean is greater."""
        found = self.of(dataset, system, column)
        if not found:
            return "–"
        means = [statistics.fmean(v) for s in self.systems if (v := self.of(dataset, s, column))]
        mean = f"{100 * statistics.fmean(found):.1f}"
        bold = "**" if mean == f"{100 * max(means):.1f}" else ""
        deviation = f" ± {100 * statistics.stdev(found):.1f}" if len(found) > 1 else ""
        return f"{bold}{mean}{deviation}{bold}"

    def rows(self, dataset: str, columns: Sequence[str]) -> list[list[str]]:
        there = [s for s in self.systems if any(self.of(dataset, s, column) for column in columns)]
        return [[system, *(self.shown(dataset, system, column) for column in columns)] for system in there]


def page(lines: Lines) -> str:
    values = Values(lines)
    parts = ["# Names in label embeddings: the tables of LALE's paper", prose("INTRODUCTION")]
    parts += ["## In short: LALE and ID-only", prose("IN_SHORT"), gains(values)]
    parts += ["## The sets", prose("SIZES"), sizes(values)]
    for name in values.sets:
        table = page_parts.table(["", *TABLE_1, *TABLE_2], values.rows(name, (*TABLE_1, *TABLE_2)))
        parts += [f"## {name}", table, "Costs:", page_parts.systems_table(lines, name, ())]
    parts += ["## By the rows that a label has", prose("BY_ROWS"), by_rows(values)]
    unseen = [name for name in lines.sets if name.endswith("-unseen")]
    if unseen:
        parts += ["## Labels never seen", prose("OF_UNSEEN"), never_seen(values, unseen)]
    return "\n\n".join(parts)


def gains(values: Values) -> str:
    columns = ("nDCG@5", *TABLE_2, "R@5 1-2")
    rows = [["the paper's log", "as printed", *PAPER, "–"]]
    for name in values.sets:
        for behind in ("", ", bags", ", as printed", ", as printed, softmax"):
            pair = [f"{model}{behind}" for model in ("ID-only", "LALE")]
            if all(values.of(name, model, "nDCG@5") for model in pair):
                told = [_gain(*(values.of(name, model, column) for model in pair)) for column in columns]
                rows.append([name, (behind or "sums").strip(", "), *told])
    return page_parts.table(["set", "models", *columns], rows)


def _gain(before: list[float], after: list[float]) -> str:
    if not before or not after:
        return "–"
    means = [statistics.fmean(found) for found in (before, after)]
    spread = max(map(statistics.stdev, (before, after))) if min(len(before), len(after)) > 1 else math.inf
    return f"{100 * means[0]:.1f} → {100 * means[1]:.1f}" + (" \\*" * (abs(means[1] - means[0]) > spread))


def sizes(values: Values) -> str:
    head = ["set", "rows", "distinct", "train", "valid", "test", "labels", "a row", "head", "tail", "no row"]
    rows = []
    for name in values.sets:
        of, Y = values.lines.sets[name], sets.matrix(values.lines.data / name, "Y")
        counts, top = np.bincount(Y.indices, minlength=Y.shape[1]), head_of(Y)
        numbers = [of[key] for key in ("rows", "distinct", "n", "n_valid", "n_test", "L")]
        labels = [top.sum(), (~top & (counts > 0)).sum(), (counts == 0).sum()]
        parts = [[f"{number:,}" for number in several] for several in (numbers, labels)]
        rows.append([name, *parts[0], f"{of['labels_per_row']:.1f}", *parts[1]])
    return page_parts.table(head, rows)


def by_rows(values: Values) -> str:
    rows = []
    for name in values.sets:
        for row in values.rows(name, RARE):
            lines = [line for line in values.lines.of(name, row[0]) if "best_epoch" in line]
            best = told = parameters = ""
            if lines:
                best = f"{100 * statistics.median(line['best_epoch'] for line in lines):.0f} %"
                told = "" if all(line["stopped"] for line in lines) else ", not done"
                parameters = f"{lines[0]['parameters'] / 1e6:.2f}"
            rows.append([name, *row, best + told, parameters])
    return page_parts.table(["set", "", *RARE, "best epoch", "M parameters"], rows)


def never_seen(values: Values, unseen: Sequence[str]) -> str:
    systems = [s for s in values.systems if any(values.of(name, s, NEVER_SEEN) for name in unseen)]
    rows = []
    for name in unseen:
        Y = sets.matrix(values.lines.data / name, "Y_test")[values.lines.sets[name]["n_valid"] :]
        hidden = values.lines.sets[name]["unseen"]
        shown = [values.shown(name, system, NEVER_SEEN) for system in systems]
        rows.append([name.removesuffix("-unseen"), len(hidden), Y[:, hidden].nnz, *shown])
    return page_parts.table(["set", "labels", "pairs", *systems], rows)


def _study(name: str, sets: Sequence[str], systems: Sequence[System], hours: float, **more: Any) -> Study:
    measure = Measure(limit=3600 * hours)
    return Study(name, sets, systems, of_titles, page, measure, make=named_texts.makers(sets), **more)


STUDY = _study("lale", (*SETS, *UNSEEN[:2]), (*TREES, *MEANS, TAGSPACE, *PIPELINE), 0.25)
LARGE = _study(
    "lale_large",
    (*LARGE_SETS, *UNSEEN),
    (*TREES, *MEANS, TAGSPACE, *BAGS, *AS_PRINTED, *PIPELINE),
    6,
    seeds=10,
    large=True,
)

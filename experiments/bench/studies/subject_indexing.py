"""Subject indexing: metarank alone and as a backend of Annif, beside Annif's projects and ensembles."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import corpora
import numpy as np
import page_parts
from declared import Figures, Lines, Measure, Study, System
from list_quality import F1_AT_5, f1_at_5, of_labels
from sets import matrix

from metarank import Ranking, metrics

prose = page_parts.prose_of(globals())

MAKE = {
    "LLMs4Subjects-dev-en-subjects": lambda folder: corpora.write(corpora.llms4subjects(), folder),
    "archaeology-subjects": lambda folder: corpora.write(corpora.archaeology(), folder),
    "tib_records_en-subjects": lambda folder: corpora.write(corpora.tib(), folder),
}
METRICS = ("nDCG@10", F1_AT_5, "R@10", "unseen, named", "unseen")
# What is to be reached beside the best of Annif's ensembles.
LEAST_GAIN, MOST_COST = 0.1, 0.5


def _annif(name: str, project: str) -> System:
    return System(name, "annif_project", {"project": project}, "annif", kept=project != "metarank")


SINGLE = (
    _annif("tfidf", "tfidf"),
    _annif("omikuji, Parabel", "parabel"),
    _annif("omikuji, Bonsai", "bonsai"),
    _annif("MLLM", "mllm"),
)
SIMPLE = _annif("simple ensemble, Bonsai 2 : MLLM 1", "simple")
TUNED = _annif("simple ensemble, weights by hyperopt", "tuned")
NEURAL = _annif("neural ensemble, Bonsai and MLLM", "neural")
ENSEMBLES = (SIMPLE, TUNED, NEURAL)
OURS = (System("metarank", "subject_indexing"), _annif("metarank, backend", "metarank"))


def judged(folder: Path, answers: Path) -> dict[str, dict[str, float]]:
    """nDCG@10, R@10, F1@5 of the five best or of the fewer that are suggested, and R@10 of subjects without a
    training record: means over records, of the last two over the records that have such subjects."""
    Y, Y_test = matrix(folder, "Y"), matrix(folder, "Y_test")
    with np.load(answers) as file:
        ranking = Ranking(file["labels"], file["scores"], Y.shape[1])
    found = {
        name: float(value) for name, value in metrics.evaluate(Y_test, ranking, ["nDCG@10", "R@10"]).items()
    }
    found[F1_AT_5] = f1_at_5(Y_test, ranking)
    named = np.array(json.loads((folder / "subjects.json").read_text())["named"])
    unseen = Y.getnnz(axis=0) == 0
    for name, columns in (("unseen", unseen), ("unseen, named", unseen & named)):
        only = of_labels(Y_test, columns)
        found[name] = float(metrics.evaluate(only, ranking, ["R@10"])["R@10"]) if only.nnz else float("nan")
    return {"": found}


def page(lines: Lines) -> str:
    parts = ["# Subject indexing: Annif's projects and metarank", HOW]
    for name, of in lines.sets.items():
        table = page_parts.systems_table(lines, name, METRICS, ("train s", "memory MiB", "batch ms"))
        parts += [f"## {name.removesuffix('-subjects')}", prose("COUNTS", **of), table]
        ran = [line for line in lines if line["set"] == name and line.get("said")]
        parts += [" ".join(f"{line['system']}: {line['said']}." for line in ran)] if ran else []
    return "\n\n".join([*parts, *differences(lines), *claims(lines)])


def differences(lines: Lines) -> list[str]:
    """How far the figures are from those of Annif's own evaluation of the same suggestions."""
    names = {"nDCG@10": "NDCG@10", "F1@5": "F1@5"}
    ran = [line for line in lines if "annif" in line]
    gaps = [100 * abs(line["quality"][""][a] - line["annif"][b]) for line in ran for a, b in names.items()]
    told = (
        "Annif's own evaluation of the same suggestions, which orders equal scores in another way, differs by"
    )
    return [f"{told} {max(gaps):.2f} in nDCG@10 and F1@5 at most."] if gaps else []


def claims(lines: Lines) -> list[str]:
    rows = []
    for name, of in lines.sets.items():
        found = {
            line["system"]: page_parts.scaled(line, lines)
            for line in lines
            if line["set"] == name and "failed" not in line
        }
        peers = [line for system, line in found.items() if system not in {ours.name for ours in OURS}]
        ensembles = [found[system.name] for system in ENSEMBLES if system.name in found]
        for system in (ours.name for ours in OURS if ours.name in found and ensembles):
            ours, best = found[system], max(ensembles, key=lambda line: line["quality"][""]["nDCG@10"])
            gains = [
                ours["quality"][""][metric] / max(line["quality"][""][metric] for line in peers) - 1
                for metric in ("nDCG@10", "F1@5")
            ]
            both, theirs = cost(ours, of), cost(best, of)
            ratios = (ours["train_s"] / best["train_s"], ours["batch_ms"] / best["batch_ms"], both / theirs)
            reached = min(gains) >= LEAST_GAIN and both <= MOST_COST * theirs
            cells = [*(f"{100 * gain:+.1f} %" for gain in gains), *(f"{ratio:.2f}" for ratio in ratios)]
            rows.append([f"{name.removesuffix('-subjects')}, {system}", *cells, "yes" if reached else "no"])
    head = ["set, system", "nDCG@10", "F1@5", "train", "suggest", "both", "reached"]
    parts = ["## metarank beside the best of Annif", prose("CLAIMS"), page_parts.table(head, rows)]
    return parts if rows else []


def cost(line: Figures, of: Figures) -> float:
    """CPU seconds of training and of the suggestions for the test records."""
    return line["train_s"] + line["batch_ms"] * of["n_test"] / 1000


HOW = f"""Annif as installed, by its own commands `load-vocab`, `train` and `hyperopt`, and asked by its
own `suggest`; each step is a process of one thread on one core, run once. *train s*: CPU seconds of the
whole process, text work and imports included; of an ensemble those of its parts are added. *batch ms*: CPU
milliseconds a record once the model is loaded, a hundred subjects each. *memory*: the largest peak of
these processes. Rows marked ~ were measured by an earlier run, their times scaled by a fixed piece of
work.

Figures are against **all** subjects of the test records, in per cent. *F1@5* is of the five best
subjects, or of fewer where fewer are suggested. *unseen, named*: R@10 of the subjects that have a name
and no training record, over the records that have such a subject; *unseen*: of all without a training
record; one with neither can be found by nobody. Every project has the words of a text by their stems
(snowball), Bonsai and Parabel also pairs of words, and what occurs in two records at least; NLTK splits
sentences without a list of abbreviations, which is no part of it. metarank has its defaults and the set's
language.

Ensembles that learn do so from one training record in {corpora.PART}, which sources trained on the others
have not seen, and are then used with sources that are trained on all: *train s* has the sources' training
twice. `hyperopt` looks for weights in 30 trials for nDCG@10. The neural ensemble has these weights, and
as many epochs, of 5, 10 and 20, as are best for one in {corpora.PART} of its records; its time is without
both searches."""

STUDY = Study("subject_indexing", tuple(MAKE)[:2], (*SINGLE, SIMPLE, *OURS), judged, page, make=MAKE)
LARGE = replace(
    STUDY,
    name="subject_indexing_large",
    sets=tuple(MAKE),
    systems=(*SINGLE, *ENSEMBLES, *OURS),
    measure=Measure(limit=3600),
    large=True,
)

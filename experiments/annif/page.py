"""The page of the study."""

from __future__ import annotations

from typing import NamedTuple

from pages import table
from sets import PART, Collection
from systems import EPOCHS, TRIALS

import metarank

SYSTEMS = {
    "tfidf": "tfidf",
    "parabel": "omikuji, Parabel",
    "bonsai": "omikuji, Bonsai",
    "mllm": "MLLM",
    "simple": "simple ensemble, Bonsai 2 : MLLM 1",
    "tuned": "simple ensemble, weights by hyperopt",
    "neural": "neural ensemble, Bonsai and MLLM",
    "alone": "metarank",
    "metarank": "metarank, backend",
}
ENSEMBLES = ("simple", "tuned", "neural")
OURS = ("alone", "metarank")
# What is to be reached beside the best of Annif's ensembles.
LEAST_GAIN, MOST_COST = 0.1, 0.5
_FIGURES = ("nDCG@10", "F1@5", "R@10", "unseen, named", "unseen")
# What the figures are called in Annif's evaluation.
_ANNIF = {"nDCG@10": "NDCG@10", "F1@5": "F1@5"}


_HEAD = """# Annif's projects and metarank

`python experiments/annif/run.py`. metarank {version}, its sources by digest {digest}; {installed}.
Seed of metarank 0; omikuji and the neural ensemble take none. Figures times 100.

## How it is measured

- Annif as installed, by its own commands `load-vocab`, `train` and `hyperopt`, and asked by its own
  `suggest`; each step is a process of one thread, bound to one core, and was run once. *train*: CPU
  seconds of the whole process, text work, imports and vocabulary included; of an ensemble those of its
  parts are added. *suggest*: CPU milliseconds a record once the model is loaded, in Annif's batches of 32
  records (metarank alone: all at once), a hundred subjects each. *MiB*: the largest peak of these
  processes.
- Annif's vocabulary and metarank's labels are all subjects of the vocabulary and of the records, those
  without a name too. Figures are against **all** subjects of the test records. *F1@5* is of the five best
  subjects, of fewer where fewer are suggested. *unseen, named*: R@10 of the subjects that have a name and
  no training record, over the records that have such a subject; *unseen*: of all without a training
  record. One with neither can be found by nobody.
- Every project has the words of a text by their stems (snowball), Bonsai and Parabel also pairs of words,
  and what occurs in two records at least. metarank has its default settings and the language of the set.
- The neural ensemble is learned from one training record in {part}, which its sources have not seen: sources
  trained on the other records suggest for these, and the ensemble is then used with sources that are
  trained on all training records. Its *train* holds the sources' training twice, and its own.
- The simple ensemble has the weights of Annif's tutorial, and such as `annif hyperopt` finds in {trials}
  trials for nDCG@10 on the records kept for ensembles. The neural ensemble has these weights too, and as
  many epochs, of {epochs}, as are best for one in {part} of these records after learning from the others.
  *train* is without this search.
"""
_COUNTS = """{:,} training records and {:,} of the test part; {:,} subjects, {:,} with a name, {:,} with a
training record. Of {:,} subjects of test records {:,} have no training record, {:,} of these no name either.
"""
_SETTINGS = {"part": PART, "trials": TRIALS, "epochs": ", ".join(map(str, sorted(EPOCHS)))}


class Row(NamedTuple):
    """A system on one set."""

    figures: dict[str, float | None]
    train_cpu: float
    suggest_cpu: float
    memory: float
    annif: dict[str, float] | None
    said: str

    @property
    def cpu(self) -> float:
        """Seconds of training and of the suggestions for the test records."""
        return self.train_cpu + self.suggest_cpu


Found = dict[str, tuple[Collection, dict[str, Row]]]


def write_page(found: Found, versions: dict[str, str], digest: str, older: list[str]) -> str:
    installed = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [_HEAD.format(version=metarank.__version__, digest=digest[:12], installed=installed, **_SETTINGS)]
    if older:
        parts.append(
            f"Kept from another state of what they read, or of metarank: {', '.join(sorted(older))}.\n"
        )
    parts += [_of_set(of, rows) for of, rows in found.values()]
    if any(rows for _, rows in found.values()):
        parts += [_check(found), _claims(found)]
    return "\n".join(parts)


def _of_set(of: Collection, rows: dict[str, Row]) -> str:
    trained = {uri for _, uris in of.parts["train"] for uri in uris}
    named = dict(zip(of.uris, of.named, strict=True))
    gold = [uri for _, uris in of.parts["test"] for uri in set(uris)]
    unseen = [uri for uri in gold if uri not in trained]
    checksums = "; ".join(f"{name} {digest[:12]}" for name, digest in of.checksums.items())
    lines = []
    for name, shown in SYSTEMS.items():
        if name in rows:
            row = rows[name]
            milliseconds = 1000 * row.suggest_cpu / len(of.parts["test"])
            cells = [_percent(row.figures[figure]) for figure in _FIGURES]
            cost = [f"{row.train_cpu:.0f}", f"{milliseconds:.1f}", f"{row.memory:,.0f}"]
            lines.append([shown, *cells, *cost])
    said = [
        f"{SYSTEMS[name]}: {rows[name].said}."
        for name in ("tuned", "neural", "alone")
        if name in rows and rows[name].said
    ]
    sizes = [len(of.parts["train"]), len(of.parts["test"]), len(of.uris), sum(of.named), len(trained)]
    sizes += [len(gold), len(unseen), sum(not named[uri] for uri in unseen)]
    counts = _COUNTS.format(*sizes)
    return f"""## {of.name}

{counts}SHA-256 begins: {checksums}.

{table(["system", *_FIGURES, "train", "suggest", "MiB"], lines)}

{" ".join(said)}
"""


def _check(found: Found) -> str:
    """Annif's own evaluation of the same suggestions."""
    differences = []
    for of, rows in found.values():
        for name, row in rows.items():
            for ours, theirs in _ANNIF.items():
                if row.annif is not None:
                    difference = row.figures[ours] - row.annif[theirs]
                    differences.append((abs(difference), of.name, SYSTEMS[name], ours, difference))
    if not differences:
        return ""
    lines = []
    for figure in _ANNIF:
        _, at, system, _, difference = max(d for d in differences if d[3] == figure)
        lines.append([figure, f"{100 * difference:+.2f}", f"{system}, {at}"])
    return f"""## Beside Annif's own evaluation

The largest difference of a figure to that of Annif's own evaluation of the same suggestions. Annif orders
equal scores in another way.

{table(["figure", "ours less Annif's", "of"], lines)}
"""


def _claims(found: Found) -> str:
    lines = []
    for of, rows in found.values():
        there = [rows[name] for name in ENSEMBLES if name in rows]
        every = [row for name, row in rows.items() if name not in OURS]
        for name in OURS if there else ():
            if name not in rows:
                continue
            ours = rows[name]
            gains = [
                ours.figures[figure] / max(row.figures[figure] for row in every) - 1
                for figure in ("nDCG@10", "F1@5")
            ]
            best = max(there, key=lambda row: row.figures["nDCG@10"])
            costs = [
                ours.train_cpu / best.train_cpu,
                ours.suggest_cpu / best.suggest_cpu,
                ours.cpu / best.cpu,
                ours.cpu / min(row.cpu for row in there),
            ]
            kept = min(gains) >= LEAST_GAIN and ours.cpu <= MOST_COST * best.cpu
            cells = [*(f"{100 * gain:+.1f} %" for gain in gains), *(f"{cost:.2f}" for cost in costs)]
            lines.append([f"{of.name}, {SYSTEMS[name]}", *cells, "yes" if kept else "no"])
    head = ["set, system", "nDCG@10", "F1@5", "train", "suggest", "both", "both, cheapest", "reached"]
    return f"""## metarank beside the best of Annif

nDCG@10 and F1@5 beside the best of Annif's projects and ensembles in that figure; CPU time of training, of
the suggestions for the test records and of both, as ratios to those of Annif's ensemble of best nDCG@10;
*both, cheapest*: to those of the cheapest of Annif's ensembles. *reached*: {LEAST_GAIN:.0%} more in both
figures at no more than {MOST_COST:.0%} of both costs.

{table(head, lines)}
"""


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"

"""Is this metarank as good, and as quick, as that of another checkout? `--before CHECKOUT`, on demand alone.

Both run in turn, seed by seed, with the systems of other studies; the page goes to `build/bench/part`.
"""

from __future__ import annotations

import statistics

import judging
import named_texts
import page_parts
from cells import BEFORE
from declared import Lines, Measure, Study, System

NOW = "now"
MATRICES = ("emotions", "scene", "yeast", "bibtex", "CiteULike-t-tags", "LLMs4Subjects-dev-en")
MATRICES += ("Wikispeedia-Links", "LastFM-ArtistTags", "pydocs")
TEXTS = ("cooking_stackexchange-titles", "fashion_styles-titles")
BOOSTED = "weight auto"
METRICS = ("P@1", "P@5", "nDCG@5", "PSP@5", *judging.F1)
COSTS = {"train s": "train_s", "batch ms": "batch_ms", "single ms": "single_ms", "memory MiB": "memory_mib"}
HOW = (
    "Medians over seeds. A ratio is now by before, the median of those of the seeds; *spread* is that of the "
    "seeds of before. *same bytes*: seeds whose lists, scores and label sets are the same to the last bit. "
    "*weight auto*: now with the boost of rare labels that the fit finds, against before by default."
)


def page(lines: Lines) -> str:
    costs, quality = [], []
    for name in lines.sets:
        pairs = list(zip(lines.of(name, BEFORE), lines.of(name, NOW)))
        if failed := [line for pair in pairs for line in pair if "failed" in line]:
            costs.append([name, *(f"{line['system']}: {line['failed']}" for line in failed[:1])])
            continue
        same = sum(before["answers_sha256"] == now["answers_sha256"] for before, now in pairs)
        ratios = [
            statistics.median(now[key] / before[key] for before, now in pairs) for key in COSTS.values()
        ]
        costs.append([name, f"{same} of {len(pairs)}", *(f"{ratio:.3f}" for ratio in ratios)])
        for metric in (*METRICS, *(f"{metric}, {BOOSTED}" for metric in METRICS[:4])):
            metric, _, boosted = metric.partition(", ")
            before = [100 * line["quality"][""][metric] for line, _ in pairs]
            now = [100 * line["quality"][boosted][metric] for _, line in pairs]
            middle, spread = statistics.median(before), max(before) - min(before)
            told = (middle, statistics.median(now), statistics.median(now) - middle, spread)
            quality.append([name, f"{metric} {boosted}".strip(), *(f"{value:.2f}" for value in told)])
    parts = ["# Before and after", HOW, "## Cost, now by before"]
    parts += [page_parts.table(["set", "same bytes", *COSTS], costs), "## Quality"]
    parts += [page_parts.table(["set", "metric", BEFORE, NOW, "difference", "spread"], quality)]
    return "\n\n".join(parts)


def _state(name: str, peer: str | None, **params: object) -> tuple[System, ...]:
    return (
        System(name, "pipeline", params, peer, sets=MATRICES),
        System(name, "texts", params, peer, sets=TEXTS),
    )


STUDY = Study(
    "before_after",
    (*MATRICES, *TEXTS),
    (*_state(BEFORE, BEFORE), *_state(NOW, None, weights=["auto"])),
    judging.of_lists,
    page,
    Measure(k=10),
    seeds=3,
    make=named_texts.makers(TEXTS),
    alone=True,
)

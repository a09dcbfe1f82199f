"""The page of the study."""

from __future__ import annotations

import platform
from typing import Any

import lightgbm
import numpy as np
import scipy
from pages import table

# Of the set's META.json and of the report of the published experiments.
PUBLISHED = {
    "published: neural ensemble of three sources": (0.643, 0.713, None),
    "published: best of each column, three sources": (0.662, 0.771, 0.474),
    "a quick LambdaRank over ten columns of both": (0.661, 0.762, 0.476),
}
_FUSION = ("nDCG@10", "nDCG@1000", "F1@5", "CPU s")
_LETOR = ("nDCG@10", "MAP", "P@1", "CPU s")
_RERANKING = ("P@1", "nDCG@5", "PSP@5")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _fusion(found: dict[str, Any]) -> str:
    rows = [[name, *map(_percent, values), "-"] for name, values in PUBLISHED.items()]
    for name, values in found["rows"].items():
        seconds = f"{values['CPU s']:.0f}" if "CPU s" in values else "-"
        rows.append([name, *(_percent(values[m]) for m in _FUSION[:3]), seconds])
    choices = "; ".join(found["rows"]["metarank"]["choices"])
    return f"""## Fusion on yso-en

{found["n"]} training documents, {found["test"]} of the test part, {found["labels"]:,} labels;
data {found["checksum"]}. Two sources, bonsai and mllm: the third of the published ensembles has no scores of
the training documents. Against all gold labels. CPU seconds of fit and ranking on one thread.
`MetaRanker().fit(None, Y, candidates=...)`: settings that no row names are the defaults. Those of
the last row serve deep lists; they were chosen by three folds of the training documents.

{table(["system", *_FUSION], rows)}

What metarank chose: {choices}.

The scores of mllm are far better on the training documents (nDCG@10 53.5) than on the test part (31.3): it
was trained on some of them, or these are documents of another kind. A fit learns too much trust in it.
"""


def _letor(found: dict[str, Any]) -> str:
    rows = [
        [name, *(_percent(values[m]) for m in _LETOR[:3]), f"{values['CPU s']:.1f}"]
        for name, values in found["rows"].items()
    ]
    return f"""## Features of pairs: MQ2008

{found["queries"]} queries with graded documents, which no other query has; data {found["checksum"]}.
Each of five parts is tested once, by fits on the four others; means. BM25 proposes, and 46 columns describe
(`pair_features=`). LightGBM has the same columns; its rounds are chosen on one of the four parts and learned
again from all. metarank has its default settings. CPU seconds of fit and ranking on one thread.

{table(["system", *_LETOR], rows)}
"""


def _reranking(tables: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, retrievers in tables.items():
        for retriever, found in retrievers.items():
            cells = [f"{_percent(found['before'][m])} -> {_percent(found['after'][m])}" for m in _RERANKING]
            cost = found["metarank CPU s"] / max(found["retriever CPU s"], 1e-9)
            rows.append([f"{name}, {retriever}", *cells, f"{cost:.1f}"])
    return f"""## Re-ranking

The hundred best labels of a retriever as `candidates`, before and after. Scores of training rows come
from retrievers that did not see the row's fold (`folds=`). Cost: CPU time of metarank (fit on all
training rows and ranking) by that of the retriever (its fits without each fold and on all rows,
and its answers).

{table(["set, retriever", *_RERANKING, "cost"], rows)}
"""


def write_page(
    fusion: dict[str, Any] | None,
    letor: dict[str, Any] | None,
    tables: dict[str, dict[str, Any]],
    seed: int,
    version: str,
) -> str:
    parts = ["# Candidates of others\n"]
    parts.append(
        "`python experiments/fusion/run.py`. Values times 100. "
        f"Seed {seed}; metarank {version}, LightGBM {lightgbm.__version__}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, Python {platform.python_version()}.\n"
    )
    if fusion is not None:
        parts.append(_fusion(fusion))
    if letor is not None:
        parts.append(_letor(letor))
    if any(tables.values()):
        parts.append(_reranking(tables))
    return "\n".join(parts)

"""What a table of labels is worth: alternative names, and parents with related labels.

python experiments/label_tables/run.py [--seeds 5]

Titles on archaeology and their YSO subjects: 700 rows to learn from and 600 others to judge by, drawn anew
for each seed. Names and neighbours propose; effort "low"; one thread. Nothing is tuned to these rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import metarank
from metarank import Dataset, MetaRanker, data, metrics

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
YSO = "http://www.yso.fi/onto/yso/"
WAYS = {
    "names": (),
    "and alternative names": ("alternative_names",),
    "and relations": ("parents", "related"),
    "and both": ("alternative_names", "parents", "related"),
}
METRICS = ("P@1", "nDCG@5", "PSP@5", "R@10", "micro-F1", "hF")
TRAIN, HELD_OUT = 700, 600


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="divisions of the rows")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("seeds",))
    base = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    folder = base / "annif" / "archaeology"
    if not folder.is_dir():
        print(f"{folder} is not there", file=sys.stderr)
        return 0
    labels = _labels(folder / "yso-archaeology.ttl")
    texts, subjects = _rows(folder / "documents.jsonl", {record["id"] for record in labels})
    figures: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for seed in range(options.seeds):
        order = np.random.default_rng(seed).permutation(len(texts))
        train, held_out = order[:TRAIN], order[-HELD_OUT:]
        for way, columns in WAYS.items():
            kept = [{k: v for k, v in record.items() if k in ("id", "name", *columns)} for record in labels]
            found = _measured(
                texts, subjects, train, held_out, data.read_labels(kept), data.read_labels(labels)
            )
            figures[way].append(found)
            print(f"{way}, seed {seed}: {found}", file=sys.stderr, flush=True)
    whole.write(_page(labels, len(texts), figures, folder))
    return 0


def _labels(path: Path) -> list[dict[str, Any]]:
    """The concepts of a SKOS file in Turtle with their Finnish names; relations within the file."""
    records = {}
    for block in re.split(r"\n\n", path.read_text(encoding="utf-8")):
        concept = re.match(r"\s*yso:(p\d+)\s", block)
        if concept is None or "Concept" not in block:
            continue

        def values(of: str, block: str = block) -> str:
            found = re.search(rf"skos:{of}\s+(.*?)\s*[;.]\s*(?:\n|$)", block, re.S)
            return found[1] if found else ""

        names = {of: re.findall(r'"([^"]*)"@fi', values(of)) for of in ("prefLabel", "altLabel")}
        name = next(iter(names["prefLabel"]), "")
        records[YSO + concept[1]] = {
            "id": YSO + concept[1],
            "name": name,
            "alternative_names": [other for other in dict.fromkeys(names["altLabel"]) if other != name],
            "parents": [YSO + other for other in re.findall(r"yso:(p\d+)", values("broader"))],
            "related": [YSO + other for other in re.findall(r"yso:(p\d+)", values("related"))],
        }
    for record in records.values():
        for relation in ("parents", "related"):
            record[relation] = [other for other in record[relation] if other in records]
    return list(records.values())


def _rows(path: Path, known: set[str]) -> tuple[list[str], list[list[str]]]:
    """Texts and their subjects in the table, of rows that have one."""
    texts, subjects = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        own = [subject["uri"] for subject in row["subjects"] if subject["uri"] in known]
        if own:
            texts.append(row["text"])
            subjects.append(own)
    return texts, subjects


def _measured(
    texts: list[str],
    subjects: list[list[str]],
    train: np.ndarray,
    held_out: np.ndarray,
    table: data.LabelDescriptions,
    whole: data.LabelDescriptions,
) -> dict[str, float]:
    """The metrics of a model that knows one table, by the hierarchy of the whole one; and its CPU seconds."""
    started = time.process_time()
    model = MetaRanker(effort="low", shortlister=["names", "neighbors", "spelling"], n_jobs=1)
    model.fit([texts[i] for i in train], [subjects[i] for i in train], labels=table)
    seconds = time.process_time() - started
    rows = [texts[i] for i in held_out]
    Y = Dataset(texts=rows, Y=[subjects[i] for i in held_out], labels=whole).Y
    found = metrics.evaluate(
        Y,
        model.rank(rows, k=10),
        METRICS,
        Y_pred=model.predict(rows),
        inv_propensity=model.inv_propensity_,
        parents=whole,
    )
    return found | {"columns": len(model.feature_columns_), "fit": seconds}


def _page(labels: list[Any], n_rows: int, figures: dict[str, list[dict[str, float]]], folder: Path) -> str:
    first = figures["names"]
    lines = [
        "# What a table of labels is worth",
        "",
        (__doc__ or "").split("\n\n")[-1].strip(),
        "",
        f"{n_rows} titles and {len(labels)} labels, of which "
        f"{sum(bool(record['alternative_names']) for record in labels)} have alternative names, "
        f"{sum(bool(record['parents']) for record in labels)} a parent and "
        f"{sum(bool(record['related']) for record in labels)} a related label. Means over {len(first)} "
        "divisions, times 100; in brackets the standard error of the difference to names alone. "
        "Fit: CPU time as a multiple.",
        "",
        f"| table | {' | '.join(METRICS)} | columns | fit |",
        f"| --- |{' --- |' * (len(METRICS) + 2)}",
    ]
    for way, found in figures.items():
        cells = []
        for name in METRICS:
            own, base = (np.array([run[name] for run in runs]) for runs in (found, first))
            error = np.std(own - base, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0
            cells.append(f"{100 * own.mean():.2f}" + ("" if way == "names" else f" ({100 * error:.2f})"))
        ratio = np.mean([run["fit"] for run in found]) / np.mean([run["fit"] for run in first])
        lines.append(f"| {way} | {' | '.join(cells)} | {found[0]['columns']} | {ratio:.1f} |")
    lines += ["", "## How it was made", ""]
    lines += [
        f"- {name}: sha256 {hashlib.sha256((folder / name).read_bytes()).hexdigest()}"
        for name in ("documents.jsonl", "yso-archaeology.ttl")
    ]
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "lightgbm"))
    lines += [
        f"- seeds 0 to {len(first) - 1}; metarank {metarank.__version__}, {packages}, "
        f"Python {platform.python_version()}, {platform.machine()}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())

"""Does MultiObjectiveRanker(model="auto") choose rightly between a linear model, boosted trees and a blend?

python experiments/model_choice/run.py [--sets "MQ2008;made"] [--quick] [--kept] [--out results.md]

What is measured of a set is kept in cache/; --sets measures some and takes the others from there, --kept all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))
sys.path.append(str(_HERE.parent))

import benchmark  # noqa: E402
import numpy as np  # noqa: E402
from judging import of_queries  # noqa: E402
from ranking_sets import SETS, Queries, example_files, mq_files  # noqa: E402
from whole_page import WholePage, add_options  # noqa: E402

import metarank  # noqa: E402
from metarank import MultiObjectiveRanker  # noqa: E402

SIZES = (50, 100, 200, None)
WAYS = ("linear", "linear, l2 1", "lightgbm", "half and half", "auto")
_SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {"model": "linear"},
    "linear, l2 1": {"model": "linear", "l2": 1.0},
    "lightgbm": {"model": "lightgbm"},
    "auto": {"model": "auto"},
}


def measured(name: str, data: Path, quick: bool) -> list[dict[str, Any]]:
    """A record for each split and number of training queries: nDCG of the test queries by each way."""
    out = []
    for number, (train, test) in enumerate(SETS[name](data)[: 1 if quick else None]):
        ids = np.unique(train.qid)
        for size in SIZES:
            if size is None or size < 0.9 * len(ids):
                drawn = np.random.default_rng([number, 3]).permutation(ids)[:size]
                out.append({"split": number, "size": size} | _of_sample(train.some(drawn), test, quick))
        print(f"{name}, split {number}", file=sys.stderr, flush=True)
    return out


def _of_sample(train: Queries, test: Queries, quick: bool) -> dict[str, Any]:
    scores, spent = {}, {}
    chosen = ""
    for way, settings in _SETTINGS.items():
        ranker = MultiObjectiveRanker(n_jobs=1, n_rounds=5 if quick else 100, **settings)
        started = time.process_time()
        ranker.fit(train.X, train.y, qid=train.qid)
        spent[way] = time.process_time() - started
        scores[way] = ranker.predict(test.X)
        chosen = ranker.choices_[0].rsplit(": ", 1)[0] if ranker.choices_ else chosen
    scores["half and half"] = sum(_standard(scores[way], test.qid) for way in ("linear, l2 1", "lightgbm"))
    values = {way: of_queries(scores[way], test.y, test.qid).tolist() for way in WAYS}
    return {"queries": len(np.unique(train.qid)), "values": values, "spent": spent, "chosen": chosen}


def _standard(scores: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Over their standard deviation within queries."""
    _, query = np.unique(qid, return_inverse=True)
    mean = np.bincount(query, scores) / np.bincount(query)
    return scores / (np.sqrt(((scores - mean[query]) ** 2).mean()) or 1.0)


def page(found: dict[str, Any]) -> str:
    parts = ['# A linear model, boosted trees or a blend: `model="auto"`', _opening(found)]
    for name, records in found["sets"].items():
        parts += [f"## {name}", _table(records)]
    if "benchmark" in found:
        parts += ["## MQ2008 as in a public benchmark of boosted trees", _benchmark(found["benchmark"])]
    return "\n\n".join([*parts, _provenance(found)]) + "\n"


def _by_size(records: list[dict[str, Any]]) -> list[tuple[int, list[dict[str, Any]]]]:
    of_size = {size: [r for r in records if r["size"] == size] for size in SIZES}
    return [(round(np.mean([r["queries"] for r in of])), of) for of in of_size.values() if of]


def _values(records: list[dict[str, Any]], way: str) -> np.ndarray:
    """Of all test queries that count."""
    values = np.concatenate([r["values"][way] for r in records])
    return values[~np.isnan(values)]


def _table(records: list[dict[str, Any]]) -> str:
    head = ["training queries", *WAYS, "auto - lightgbm", "auto - linear", "CPU, auto / lightgbm", "chosen"]
    rows = []
    for size, of in _by_size(records):
        means = {way: _values(of, way).mean() for way in WAYS}
        best = max(means.values())
        cells = [f"**{m:.4f}**" if m == best else f"{m:.4f}" for m in means.values()]
        cells += [_difference(_values(of, "auto") - _values(of, way)) for way in ("lightgbm", "linear")]
        spent = [sum(r["spent"][way] for r in of) for way in ("auto", "lightgbm")]
        cells.append(f"{spent[0] / spent[1]:.0f}")
        rows.append([str(size), *cells, _counts(of)])
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _difference(values: np.ndarray) -> str:
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def _kind(chosen: str) -> str:
    return "blend" if " + " in chosen else chosen.split(" ")[0]


def _counts(records: list[dict[str, Any]]) -> str:
    kinds = [_kind(r["chosen"]) for r in records]
    return ", ".join(
        f"{kind} {kinds.count(kind)}" for kind in ("linear", "blend", "lightgbm") if kind in kinds
    )


def _opening(found: dict[str, Any]) -> str:
    cells = [of for records in found["sets"].values() for _, of in _by_size(records)]
    means = [{way: _values(of, way).mean() for way in WAYS} for of in cells]
    behind = [max(m["linear"], m["lightgbm"]) - m["auto"] for m in means]
    lines = [
        "nDCG@10 of test queries, gains 2^y - 1, queries without a relevant document left out; all with "
        "the settings of `MultiObjectiveRanker`, but for the column with another penalty. *half and "
        "half*: scores of `linear, l2 1` and `lightgbm`, each over its deviation within queries, added "
        "up. Differences with standard errors over test queries (which repeat between splits of a row, "
        "so that errors are somewhat too small).",
        f"- In {sum(b <= 0 for b in behind)} of {len(cells)} rows `auto` is no worse than the better of "
        f"`linear` and `lightgbm`, which nobody knows beforehand; at worst it is {max(behind):.4f} below "
        f"it, on average {-np.mean(behind):+.4f}.",
    ]
    for way in ("linear", "lightgbm", "half and half"):
        apart = [m["auto"] - m[way] for m in means]
        lines.append(
            f"- Against `{way}` alone it is better in {sum(a > 0 for a in apart)} of {len(cells)} rows, by "
            f"{np.mean(apart):+.4f} on average, {min(apart):+.4f} at worst and {max(apart):+.4f} at best."
        )
    return "\n".join([lines[0], "", *lines[1:]])


def _benchmark(found: dict[str, list[float]]) -> str:
    rows = [f"| {name} | {value:.4f} | |" for name, value in benchmark.PUBLISHED.items()]
    for name, values in found.items():
        mean = f"{np.mean(values):.4f}" if len(values) > 1 else ""
        rows.append(f"| {name} | {values[0]:.4f} | {mean} |")
    grid = "; ".join(f"{name} {', '.join(map(str, of))}" for name, of in benchmark.GRID.items())
    return (
        "The first four rows are published (CatBoost's repository, `catboost/benchmarks/ranking`): "
        "Fold1, learned from S1 to S3, mean NDCG@10 of S5 with gains 2^y - 1; a query without a relevant "
        "document counts 1, and of equal scores the least relevant document comes first. There the "
        "learning rate, bins, depth and number of rounds (of up to 8,000) are those that are best *on "
        "the test part*; the rows that say so here are the ones to compare with. All others choose "
        f"nothing there. LightGBM is tuned over {grid}, and rounds {benchmark.STEP} to {benchmark.ROUNDS} "
        f"in steps of {benchmark.STEP}, by the same metric on the validation part. metarank has its "
        "default settings; `auto` chooses by cross-validation within what it learns from, and needs no "
        "validation part. Fold1 tests 156 queries: the standard error of a value is about .02, of "
        "differences about .01.\n\n"
        + "\n".join(["| | Fold1 | mean of five folds |", "| --- | --- | --- |", *rows])
    )


def _provenance(found: dict[str, Any]) -> str:
    lines = [
        "MQ2008: the five folds of LETOR, three parts to train, one to test, unless said otherwise. "
        "LightGBM's example: the 251 queries of its two parts in five folds. Made sets: two draws of "
        "1,700 + 300 queries of ten documents, twenty columns (`ranking_sets.py`). Training queries are "
        "drawn by chance.",
        f"Python {platform.python_version()}, metarank {metarank.__version__}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "lightgbm"))
        + f"; {found['seconds']:.0f} s on one core. `python experiments/model_choice/run.py`",
        *(f"sha256 of {line}" for line in found["inputs"]),
    ]
    return "## How it was made\n\n" + "\n".join(f"- {line}" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, _HERE / "results.md")
    default = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default, help="default: $METARANK_DATA")
    parser.add_argument(
        "--sets", default=";".join((*SETS, "benchmark")), help="to measure, by the beginnings of their names"
    )
    parser.add_argument("--quick", action="store_true", help="a split of each, as a trial of the code")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("quick",))
    options.cache.mkdir(parents=True, exist_ok=True)
    files = [*mq_files(options.data), *example_files(options.data)]
    inputs = [f"{path.name}: {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    found: dict[str, Any] = {"sets": {}, "inputs": inputs, "seconds": 0.0}
    for name in (*SETS, "benchmark"):
        kept = options.cache / f"{name}{'-quick' * options.quick}.json"
        if name.startswith(tuple(options.sets.split(";"))) and not options.kept:
            started = time.perf_counter()
            if name == "benchmark":
                records: Any = benchmark.measured(options.data, options.quick)
            else:
                records = measured(name, options.data, options.quick)
            kept.write_text(json.dumps({"records": records, "seconds": time.perf_counter() - started}))
        if kept.exists():
            own = json.loads(kept.read_text())
            found["seconds"] += own["seconds"]
            if name == "benchmark":
                found["benchmark"] = own["records"]
            else:
                found["sets"][name] = own["records"]
    whole.write(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Relevant labels are missing: aggregation with and without propensities, judged on complete labels.

python experiments/aggregation/missing_labels.py [--sets MQ2008] [--quick] [--kept] [--out missing.md]

What is measured of a set is kept in cache/; --sets measures some and takes the others from there, --kept all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

import letor  # noqa: E402
import numpy as np  # noqa: E402
from bank_data import LABELS, clipped  # noqa: E402
from bank_data import load as load_bank  # noqa: E402
from chapter import checksum, table, with_error  # noqa: E402
from scipy.stats import ttest_rel  # noqa: E402

import metarank  # noqa: E402
from metarank import MultiObjectiveRanker  # noqa: E402
from metarank.objectives import check_groups  # noqa: E402
from metarank.objectives.watch import Metrics  # noqa: E402

sys.path.append(str(_HERE.parent))
from whole_page import WholePage, add_options  # noqa: E402

PROPENSITIES = (0.8, 0.5, 0.2)
METHODS = ("label", "loss", "plug-in-label", "plug-in-loss")
MODELS = ("linear", "lightgbm")
COMPLETE, WITHOUT, WITH = "complete labels", "without", "with"
FIGURES = ("first", "second", "Diff AUC", "Min AUC", "objective", "off")
BANK, MQ = "bank_marketing", "MQ2008"
NAMES = {BANK: LABELS, MQ: ("relevance", "engagement")}
_SEEDS = {BANK: 10, MQ: 1}
_TREES = {
    BANK: {"n_rounds": 50, "params": {"num_leaves": 15, "min_data_in_leaf": 50}},
    MQ: {"n_rounds": 60, "params": {"num_leaves": 7, "min_data_in_leaf": 50}},
}
_BANK_ROWS = 12_000


class Part(NamedTuple):
    """Rows with complete labels, and their queries or None."""

    X: np.ndarray
    Y: np.ndarray
    qid: np.ndarray | None


def bank_parts(data: Path, seeds: int) -> Iterator[tuple[Part, Part]]:
    """Training rows and the fifth that is set aside, anew for each seed."""
    X, Y, _ = load_bank(data)
    for seed in range(seeds):
        rows = np.random.default_rng([seed, 1]).permutation(len(X))
        test, train = rows[: len(X) // 5], rows[len(X) // 5 :][:_BANK_ROWS]
        a, b = clipped(X[train], X[test])
        yield Part(a, Y[train], None), Part(b, Y[test], None)


def mq_parts(data: Path, seeds: int) -> Iterator[tuple[Part, Part]]:
    """The five folds of LETOR, three parts to train and one to test, as often as there are seeds."""
    splits, _ = letor.load(data)
    parts = []
    for X, grades, qid in splits:
        Y = np.column_stack([grades > 0, letor.engagement(X, grades, 0)]).astype(float)
        parts.append(Part(X, Y, qid))
    for _ in range(seeds):
        for fold in range(5):
            train = [parts[(fold + i) % 5] for i in range(3)]
            yield Part(*(np.concatenate(of) for of in zip(*train))), parts[(fold + 4) % 5]


def judged(scores: np.ndarray, test: Part, method: str) -> list[float]:
    """AUC of either label, Diff, Min, and what the aggregation maximises: AUC of the sum, or mean AUC."""
    grouping = check_groups(len(scores), qid=test.qid)
    values = np.column_stack([test.Y, test.Y.sum(axis=1)])
    areas = Metrics(values, grouping, ["first", "second", "sum"]).measure(scores)[:, 0]
    objective = areas[2] if "label" in method else areas[:2].mean()
    return [*areas[:2].tolist(), abs(areas[0] - areas[1]), areas[:2].min(), objective]


def measured(name: str, data: Path, quick: bool) -> list[dict[str, Any]]:
    """A record for each split, masked label, propensity, model and method."""
    records = []
    splits = {BANK: bank_parts, MQ: mq_parts}[name]
    for number, (train, test) in enumerate(splits(data, 1 if quick else _SEEDS[name])):
        if quick and number:
            break
        for model in MODELS:
            records += _of_split(name, number, train, test, model, quick)
        print(f"{name}, split {number}", file=sys.stderr, flush=True)
    return records


def _of_split(
    name: str, number: int, train: Part, test: Part, model: str, quick: bool
) -> Iterator[dict[str, Any]]:
    settings = dict(_TREES[name], metric="auc", n_jobs=1)
    if quick:
        settings["n_rounds"] = 3
    drawn = np.random.default_rng([number, 2]).random(train.Y.shape)
    # Plug-ins train one model a label, for either formula.
    for methods in (METHODS[:1], METHODS[1:2], METHODS[2:]):

        def fitted(Y: np.ndarray, propensities: Any, methods: tuple[str, ...] = methods) -> dict[str, Any]:
            out = {}
            for method in methods:
                ranker = MultiObjectiveRanker(method, model, **settings)
                scores = ranker.fit(train.X, Y, qid=train.qid, propensities=propensities).predict(test.X)
                out[method] = judged(scores, test, method)
            return out

        complete = fitted(train.Y, None)
        for masked in range(2):
            for p in PROPENSITIES:
                propensities = np.ones(2)
                propensities[masked] = p
                observed = train.Y * (drawn < propensities)
                found = {WITHOUT: fitted(observed, None), WITH: fitted(observed, propensities)}
                for method in methods:
                    first, second = complete[method][:2]
                    row = {COMPLETE: [*complete[method], 0.0]}
                    for how, of in found.items():
                        a, b = of[method][:2]
                        row[how] = [*of[method], abs((a - b) - (first - second))]
                    yield {
                        "set": name, "split": number, "model": model, "method": method,
                        "masked": NAMES[name][masked], "p": p, "figures": row,
                    }  # fmt: skip


def page(found: dict[str, Any]) -> str:
    records = found["records"]
    parts = ["# Aggregation where relevant labels are missing", _opening(records)]
    for name in dict.fromkeys(record["set"] for record in records):
        for model in MODELS:
            parts += [f"## {name}, {'a linear model' if model == 'linear' else 'boosted trees'}"]
            parts += [_table([r for r in records if r["set"] == name and r["model"] == model])]
    return "\n\n".join([*parts, _provenance(found)]) + "\n"


def _values(records: list[dict[str, Any]], how: str, figure: str) -> np.ndarray:
    return np.array([r["figures"][how][FIGURES.index(figure)] for r in records])


def _paired(records: list[dict[str, Any]], figure: str) -> tuple[float, float]:
    """Mean of with minus without, and the p-value of a paired t-test."""
    a, b = (_values(records, how, figure) for how in (WITH, WITHOUT))
    return float((a - b).mean()), float(ttest_rel(a, b).pvalue) if len(a) > 1 else float("nan")


def _groups(records: list[dict[str, Any]]) -> Iterator[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    keys = list(dict.fromkeys((r["set"], r["model"], r["method"], r["masked"], r["p"]) for r in records))
    for key in keys:
        yield key, [r for r in records if (r["set"], r["model"], r["method"], r["masked"], r["p"]) == key]


def _table(records: list[dict[str, Any]]) -> str:
    head = ["aggregation", "masked", "p", "trained"]
    head += ["Diff AUC", "Min AUC", "objective", "off", "with - without: objective", "off"]
    rows = []
    for (_, _, method, masked, p), of in _groups(records):
        for how in (COMPLETE, WITHOUT, WITH):
            if how == COMPLETE and p != PROPENSITIES[0]:
                continue
            cells = [with_error(_values(of, how, figure)) for figure in FIGURES[2:]]
            if how == COMPLETE:
                cells[-1] = ""
            told = ["", ""]
            if how == WITH:
                told = [
                    _verdict(*_paired(of, figure), better)
                    for figure, better in (("objective", 1), ("off", -1))
                ]
            shown = f"{p:g}" if how != COMPLETE else "1"
            rows.append([method, masked, shown, how, *cells, *told])
    return table(head, rows)


def _verdict(difference: float, chance: float, better: int) -> str:
    text = f"{difference:+.4f} (p = {chance:.1g})"
    return f"**{text}**" if chance < 0.05 and difference * better > 0 else text


def _opening(records: list[dict[str, Any]]) -> str:
    def told(figure: str, better: int) -> tuple[int, int, int]:
        pairs = [_paired(of, figure) for _, of in _groups(records)]
        sure = [better * difference for difference, chance in pairs if chance < 0.05]
        return sum(d > 0 for d in sure), sum(d < 0 for d in sure), len(pairs)

    def mean_off(family: str, how: str) -> float:
        chosen = [of for (_, _, method, _, _), of in _groups(records) if method == family]
        return float(np.mean([_values(of, how, "off").mean() for of in chosen]))

    better, worse, n = told("off", -1)
    gained, lost, _ = told("objective", 1)
    more, less, _ = told("Min AUC", 1)
    offs = "; ".join(f"`{m}` {mean_off(m, WITHOUT):.3f} and {mean_off(m, WITH):.3f}" for m in METHODS)
    lines = [
        "Of one of two labels relevant rows are hidden with probability 1 - p in training; AUCs are "
        "those of the *complete* labels of test rows. Each aggregation is trained on the complete "
        "labels, on the observed ones, and on the observed ones with `propensities=`. *off* is how far "
        "the difference of the two AUCs is from that of the model of complete labels. *objective* is "
        "what the aggregation maximises, on complete labels: the mean of the two AUCs for losses, the "
        "AUC of the labels' sum for labels. Plus or minus standard errors; differences with a paired "
        "t-test over splits, bold where p < .05 in favour of propensities.",
        f"- **Balance of the labels**: with propensities it is nearer to that of complete labels in {better} "
        f"of {n} rows beyond chance, farther in {worse}. Mean *off* without and with: {offs}.",
        "- **Rare labels** need no correction in loss aggregation: c = (1 - p pi) / (1 - pi) is at most 1.16 "
        "for the loan, which one row in six has. In label aggregation they do.",
        f"- **Objective**: better in {gained} of {n} rows beyond chance, worse in {lost}. A label that is "
        "seldom seen is learned with more noise, and its whole weight brings the whole noise: where little "
        "is seen of the harder label, a smaller weight would have cost less than it.",
        f"- **Min AUC**: greater in {more} of {n} rows beyond chance, less in {less}. It is not what an "
        "aggregation maximises: wrong weights raise it where they favour the harder label.",
    ]
    return "\n".join([lines[0], "", *lines[1:]])


def _provenance(found: dict[str, Any]) -> str:
    splits = {name: len({r["split"] for r in found["records"] if r["set"] == name}) for name in NAMES}
    trees = "; ".join(
        f"{name}: " + ", ".join(f"{k} {v}" for k, v in of.items()) for name, of in _TREES.items()
    )
    lines = [
        f"{BANK}: {splits[BANK]} random splits, a fifth to test, {_BANK_ROWS:,} rows to train, seven numeric "
        "features standardised and clipped at 3 deviations, no queries.",
        f"{MQ}: {splits[MQ]} splits, the five folds with a masking each, three parts to train and one to "
        "test; AUC within queries; relevance is a grade above 0, engagement as in `results.md`. Training "
        "parts overlap: p-values take splits for independent.",
        f"Untuned settings, {trees}. Linear models: defaults.",
        f"Python {platform.python_version()}, metarank {metarank.__version__}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "lightgbm"))
        + "; `python experiments/aggregation/missing_labels.py`",
        *(f"sha256 of {line}" for line in found["inputs"]),
    ]
    return "## How it was made\n\n" + "\n".join(f"- {line}" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, _HERE / "missing.md")
    default = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default, help="default: $METARANK_DATA")
    parser.add_argument("--sets", default=",".join(NAMES), help=f"to measure, among {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="a split of each, as a trial of the code")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("quick",))
    options.cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"records": [], "inputs": []}
    for name in NAMES:
        kept = options.cache / f"missing-{name}{'-quick' * options.quick}.json"
        if name in options.sets.split(",") and not options.kept:
            records = measured(name, options.data, options.quick)
            paths = [load_bank(options.data)[2]] if name == BANK else letor.load(options.data)[1]
            own = {"records": records, "inputs": [checksum(path) for path in paths]}
            kept.write_text(json.dumps(own))
        own = json.loads(kept.read_text()) if kept.exists() else {}
        for key, values in found.items():
            values += own.get(key, [])
    whole.write(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

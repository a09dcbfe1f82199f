"""LALE at its plateau: the four models with the same bias, as many steps each and a rate of their own.

python experiments/search_filters/plateau.py [--sets pydocs] [--seeds 10] [--parts tables,curves,log,bilstm]

Each cell (a model, a set, a rate, a seed) is kept in cache/plateau when it is done, so that an interrupted
study goes on where it stopped. Rates are chosen on the validation part with seed 0, the epoch on rows held
out of training.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from borrowed import clocked, digest_of_sources, log, version_of  # noqa: E402
from cells import packages  # noqa: E402
from page import with_deviation  # noqa: E402
from parts import Parts, split, with_fewer_rows  # noqa: E402
from query_log import query_log  # noqa: E402
from titles import SETS, Titles, load  # noqa: E402
from worth import Lists, values  # noqa: E402

from metarank.text import LabelEmbedder  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

PARTS = ("tables", "curves", "log", "bilstm")
STEPS = 2000
RATES = (1e-3, 3e-3, 1e-2)
K = 100
BUCKETS = {"0": (0, 0), "1-2": (1, 2), "3-5": (3, 5), "6-20": (6, 20), "21+": (21, 10**9)}
COLUMNS = ("nDCG@1", "nDCG@3", "nDCG@5", "P@3", "P@5", "coverage", "F1 head", "F1 tail")
FORMS = {"ID-only": "id", "Text-only": "text", "Combined": "concat", "LALE": "lale"}
# Of all alike: a bias a label, of 512 labels a step, vectors of 128.
COMMON: dict[str, Any] = {
    "subword_dim": 128,
    "hidden_dim": 128,
    "embedding_dim": 128,
    "batch_size": 64,
    "sampled_labels": 512,
    "bias": "label",
    "max_length": 32,
}
LARGE = {"fashion_styles": 256, "query log": 256}
CURVE = (300, 1000, 3000, 10_000)
CURVE_SET = "fashion_styles"
LOG = "query log"


@dataclass(frozen=True)
class Model:
    """A row: its parameters beside those common to all; `rates` that are tried on seed 0."""

    name: str
    params: dict[str, Any] = field(hash=False)
    rates: tuple[float, ...] = RATES


# The paper's four forms over bags of words, and over sums that begin as comparisons.
BAGS = tuple(Model(name, {"combine": form, "encoder": "bow"}) for name, form in FORMS.items())
RIVALS = (
    Model("GILE-like", {"combine": "gile", "encoder": "bow"}, (3e-3,)),
    Model("TagSpace-like", {"combine": "id", "encoder": "bow", "loss": "warp"}, (3e-3,)),
)
MEANS = tuple(
    Model(
        f"{name}, mean", {"combine": form, "encoder": "mean", "id_penalty": 0.15 * (form == "lale")}, (3e-3,)
    )
    for name, form in FORMS.items()
)
UNDRAWN = (Model("LALE, mean, no penalty", {"combine": "lale", "encoder": "mean"}, (3e-3,)),)
PAPER = {
    "encoder": "bilstm",
    "subword_dim": 256,
    "hidden_dim": 256,
    "embedding_dim": 256,
    "sampled_labels": 128,
}
BILSTM = tuple(
    Model(f"{name}, BiLSTM of 256", {"combine": form, **PAPER}, (3e-3,)) for name, form in FORMS.items()
)
OF_LOG = tuple(Model(model.name, model.params, (3e-3,)) for model in (*MEANS, *BAGS))
CURVED = (BAGS[0], BAGS[3], MEANS[0], MEANS[3])


class Study:
    """Makes the cells that are not kept; `made` is False where only what is kept counts."""

    def __init__(self, cache: Path, made: bool, threads: int) -> None:
        self.cache, self.made, self.threads = cache, made, threads

    def cells(
        self, parts: Parts, name: str, model: Model, seeds: int, unlabelled: list[str]
    ) -> list[dict[str, float]]:
        """The values of a model, an entry a seed, at the rate that is best on the validation part."""
        tried = [(self._cell(parts, name, model, rate, 0, unlabelled), rate) for rate in model.rates]
        found = [(cell["valid nDCG@5"], rate, cell) for cell, rate in tried if cell is not None]
        if not found:
            return []
        _, rate, first = max(found, key=lambda item: item[:2])
        others = (self._cell(parts, name, model, rate, seed, unlabelled) for seed in range(1, seeds))
        return [first, *(cell for cell in others if cell is not None)]

    def _cell(
        self, parts: Parts, name: str, model: Model, rate: float, seed: int, unlabelled: list[str]
    ) -> dict[str, float] | None:
        params = {**COMMON, **({"batch_size": LARGE[name]} if name in LARGE else {}), **model.params}
        params |= {"learning_rate": rate, "random_state": seed}
        key = {
            "set": parts.train.checksum,
            "params": params,
            "steps": STEPS,
            "unlabelled": len(unlabelled),
            "version": version_of("metarank"),
        }
        stem = "".join(c if c.isalnum() else "_" for c in f"{name} {model.name} {rate} {seed}")
        path = self.cache / f"{stem}.json"
        if path.is_file():
            kept = json.loads(path.read_text())
            if kept["key"] == key:
                return kept["values"]  # type: ignore[no-any-return]
        if not self.made:
            return None
        made = measured(parts, params, unlabelled, self.threads)
        path.write_text(
            json.dumps({"key": key, "values": made, "sources": digest_of_sources()}, indent=1) + "\n"
        )
        log(f"{stem}: {made['nDCG@5']:.4f}, {made['train_cpu_s']:.0f} s")
        return made


def measured(parts: Parts, params: dict[str, Any], unlabelled: list[str], threads: int) -> dict[str, float]:
    """Fit for `STEPS` steps, keep the best epoch, and judge the lists of the test part."""
    train = parts.train
    steps_of_epoch = max(1.0, 0.9 * len(train.texts) / params["batch_size"])
    epochs = max(1, round(STEPS / steps_of_epoch))
    model = LabelEmbedder(**params, n_epochs=epochs, patience=epochs, n_jobs=threads)
    # All models read the names as texts, whether they use them as names or not.
    seconds, _ = clocked(
        lambda: model.fit(train.texts, train.Y, train.names, unlabelled=[*unlabelled, *train.names])
    )
    valid, test = (_lists(model, part) for part in (parts.valid, parts.test))
    best = model.best_epoch_ / epochs
    return {**values(parts, valid, test), **recalls(parts, test), "train_cpu_s": seconds, "best": best}


def _lists(model: LabelEmbedder, titles: Titles) -> Lists:
    ranking = model.rank(titles.texts, min(K, len(titles.names)))
    return Lists(ranking.labels, 1 / (1 + np.exp(-ranking.scores.astype(float))))


def recalls(parts: Parts, test: Lists) -> dict[str, float]:
    """Recall@5 of the pairs of labels with so many training rows, by bucket."""
    labels = test.without(parts.test.own).labels[:, :5]
    row, place = np.nonzero(labels >= 0)
    shape = parts.test.Y.shape
    listed = sp.csr_matrix((np.ones(len(row), np.float32), (row, labels[row, place])), shape)
    hits = np.bincount(sp.csr_matrix(parts.test.Y.multiply(listed)).indices, minlength=shape[1])
    relevant = np.bincount(parts.test.Y.indices, minlength=shape[1])
    out = {}
    for bucket, (least, most) in BUCKETS.items():
        among = (parts.counts >= least) & (parts.counts <= most)
        out[f"R@5 {bucket}"] = (
            float(hits[among].sum() / relevant[among].sum()) if relevant[among].any() else np.nan
        )
        out[f"pairs {bucket}"] = float(relevant[among].sum())
    return out


def tables_of(study: Study, name: str, parts: Parts, models: tuple[Model, ...], seeds: int) -> Iterator[str]:
    """Rows of the two tables of a set."""
    rows = {model.name: study.cells(parts, name, model, seeds, []) for model in models}
    rows = {model: cells for model, cells in rows.items() if cells}
    yield from _table(rows, COLUMNS)
    yield ""
    yield "Recall@5 by the number of training rows of the label:"
    yield ""
    yield from _table(rows, tuple(f"R@5 {bucket}" for bucket in BUCKETS), ("train_cpu_s", "best"))


def _table(
    rows: dict[str, list[dict[str, float]]], columns: tuple[str, ...], plain: tuple[str, ...] = ()
) -> Iterator[str]:
    heads = {"train_cpu_s": "CPU s", "best": "best epoch"}
    yield f"| | n | {' | '.join(heads.get(c, c) for c in (*columns, *plain))} |"
    yield "| --- " * (2 + len(columns) + len(plain)) + "|"
    for model, cells in rows.items():
        shown = [with_deviation(np.array([cell[c] for cell in cells])) for c in columns]
        median = [float(np.median([cell[c] for cell in cells])) for c in plain]
        shown += [
            f"{value:.0f}" if c == "train_cpu_s" else f"{100 * value:.0f} %"
            for c, value in zip(plain, median)
        ]
        yield f"| {model} | {len(cells)} | {' | '.join('-' if 'nan' in cell else cell for cell in shown)} |"


def claims(study: Study, sets: dict[str, Parts], seeds: int) -> Iterator[str]:
    """LALE against ID-only, as bags and as means, on each set."""
    yield "| set | models | nDCG@5 of ID-only | of LALE | beyond a deviation | R@5, 1-2 rows | ratio |"
    yield "| --- " * 7 + "|"
    for name, parts in sets.items():
        for kind, by_id, lale in (("bags", BAGS[0], BAGS[3]), ("means", MEANS[0], MEANS[3])):
            both = [study.cells(parts, name, model, seeds, []) for model in (by_id, lale)]
            if not all(both):
                continue
            ndcg = [np.array([cell["nDCG@5"] for cell in cells]) for cells in both]
            rare = [float(np.mean([cell["R@5 1-2"] for cell in cells])) for cells in both]
            spread = max(float(np.std(values_, ddof=1)) if len(values_) > 1 else np.nan for values_ in ndcg)
            gain = float(ndcg[1].mean() - ndcg[0].mean())
            verdict = "-" if np.isnan(spread) else ("yes" if gain > spread else "no")
            ratio = f"{rare[1] / rare[0]:.2f}" if rare[0] > 0 else "-"
            before, after = (with_deviation(values_) for values_ in ndcg)
            tail = f"{100 * rare[0]:.1f} -> {100 * rare[1]:.1f}"
            yield f"| {name} | {kind} | {before} | {after} | {verdict} | {tail} | {ratio} |"


def curves(study: Study, seeds: int) -> Iterator[str]:
    """What few and many titles of fashion_styles teach; all are read without their labels."""
    whole = split(load(CURVE_SET), 0)
    yield "| titles | model | n | nDCG@5 | R@5 0 | R@5 1-2 | R@5 3-5 | R@5 6-20 | R@5 21+ |"
    yield "| --- " * 9 + "|"
    for n_rows in CURVE:
        parts = with_fewer_rows(whole, n_rows, 0)
        for model in CURVED:
            cells = study.cells(parts, f"{CURVE_SET} {n_rows}", model, seeds, whole.train.texts)
            if cells:
                columns = ("nDCG@5", *(f"R@5 {bucket}" for bucket in BUCKETS))
                shown = [with_deviation(np.array([cell[c] for cell in cells])) for c in columns]
                shown = ["-" if "nan" in cell else cell for cell in shown]
                yield f"| {n_rows:,} | {model.name} | {len(cells)} | {' | '.join(shown)} |"


def of_titles(whole: Parts, making: Callable[[str], Study], seeds: int) -> list[str]:
    """What is measured on titles of one set alone: few rows, a query log, the paper's encoder."""
    lines = [
        "",
        "## Few rows",
        "",
        f"Titles of {CURVE_SET}; all its training titles are read without labels.",
        "",
    ]
    rows: list[str] = []
    for number in range(1, min(3, seeds) + 1):
        rows = list(curves(making("curves"), number))
    made = query_log(load(CURVE_SET))
    parts = split(made, 0)
    counts = np.sort(parts.counts)[::-1]
    head = counts[:200].sum() / counts.sum()
    lines += [*rows, "", "## A query log", ""]
    lines += [
        f"{len(made.texts):,} searches made from titles of {CURVE_SET}, {len(set(made.texts)):,} distinct, "
        f"{made.Y.shape[1]} labels of which the 200 most frequent have {100 * head:.0f} % of the clicks.",
        "",
        *tables_of(making("log"), LOG, parts, OF_LOG, 1),
    ]
    lines += ["", "## The paper's BiLSTM", "", f"On {CURVE_SET}, 128 labels a step.", ""]
    return [*lines, *tables_of(making("bilstm"), f"{CURVE_SET} ", whole, BILSTM, 1)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help="make cells of these sets alone")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"make these alone, among {', '.join(PARTS)}"
    )
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1, ... of each model")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, make nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--cache", type=Path, default=_HERE / "cache" / "plateau", help="folder of what is kept"
    )
    add_options(parser, _HERE / "plateau.md")
    options = parser.parse_args(arguments)
    sets, chosen = options.sets.split(","), options.parts.split(",")
    for option, given, known in (("--sets", sets, SETS), ("--parts", chosen, PARTS)):
        if unknown := set(given) - set(known):
            parser.error(f"{option} must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser)
    options.cache.mkdir(parents=True, exist_ok=True)

    def making(part: str, name: str = "") -> Study:
        made = part in chosen and not options.kept and (part != "tables" or name in sets)
        return Study(options.cache, made, options.threads)

    of_sets, checksums = {}, []
    for name in SETS:
        try:
            titles = load(name)
        except FileNotFoundError as absent:
            log(f"{name} is left out: {absent}")
            continue
        of_sets[name] = split(titles, 0)
        checksums.append(f"{name} {titles.checksum[:12]}")
    models = (*BAGS, *RIVALS, *MEANS, *UNDRAWN)
    # A seed of all sets before the next, so that an interrupted study has whole tables.
    for seeds in range(1, options.seeds + 1):
        for name in of_sets:
            list(tables_of(making("tables", name), name, of_sets[name], models, seeds))
    lines = [
        "# LALE at its plateau",
        "",
        (_HERE / "plateau_findings.md").read_text().strip(),
        "",
        "## ID-only and LALE",
    ]
    lines += ["", *claims(making(""), of_sets, options.seeds)]
    for name, parts in of_sets.items():
        lines += ["", f"## {name}", "", *tables_of(making(""), name, parts, models, options.seeds)]
    if CURVE_SET in of_sets:
        lines += of_titles(of_sets[CURVE_SET], making, options.seeds)
    versions = ", ".join(f"{package} {version}" for package, version in packages().items())
    lines += ["", "## How it was made", ""]
    lines += [
        f"{STEPS} steps for all, of batches of 64 texts (256 on fashion_styles and the log), vectors of 128, "
        "512 labels a step, a bias a label; the best epoch by a tenth of the training rows. Rates of bags "
        f"are chosen among {', '.join(map(str, RATES))} on the validation part with seed 0 (on the log, and "
        "of all other models: .003). *best epoch*: when it came, as a share of the steps. Parts, coverage "
        "and F1 are those of results.md. "
        f"metarank {version_of('metarank')}, sources {digest_of_sources()}, "
        f"Python {platform.python_version()}, "
        f"{versions}. Data (sha256): {', '.join(checksums)}.",
        "",
    ]
    whole.write("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

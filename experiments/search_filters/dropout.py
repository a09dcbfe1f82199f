"""Does dropout help the embedders? Rates compared on rows held out of the training parts.

python experiments/search_filters/dropout.py [--sets cooking_stackexchange] [--seeds 2] [--rates 0,0.3]

Only the training parts of the sets are read: they are split once more, 8 : 1 : 1, the cut is chosen on the
first tenth and all is judged on the second. What is kept is not made again: an interrupted study goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

import numpy as np  # noqa: E402
from borrowed import clocked, digest_of_sources, log, version_of  # noqa: E402
from cells import packages  # noqa: E402
from contenders import EMBEDDERS, FEW  # noqa: E402
from models import Embedder, K  # noqa: E402
from page import with_deviation  # noqa: E402
from parts import Parts, split, with_fewer_rows  # noqa: E402
from titles import load  # noqa: E402
from worth import values  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

RATES = (0.0, 0.1, 0.3, 0.5)
MODELS = {"ID-only": "id", "LALE": "lale"}
COLUMNS = ("nDCG@1", "nDCG@5", "P@5", "coverage", "F1 head", "F1 tail")
# What the choice is made by.
MEASURE = "nDCG@5"
# Dropout takes more epochs: none of the fits is to end for want of them.
LONGER = {"n_epochs": 40, "patience": 3}


@dataclass(frozen=True)
class Setup:
    """What is learned from on a set, and how: so many rows of the part to learn from, None for all."""

    rows: int | None
    params: dict[str, Any]


# The sizes and steps of the page's cells; of fashion_styles, titles few enough to be overfitted.
SETUPS = {
    "fashion_styles": Setup(3000, {**EMBEDDERS, **FEW}),
    "cooking_stackexchange": Setup(None, {**EMBEDDERS, **LONGER}),
    "product_attribute_values": Setup(None, {**EMBEDDERS, **LONGER}),
}


def held_out(name: str, split_seed: int) -> tuple[Parts, str]:
    """The training part of a set, split once more, and its checksum; the other parts are not seen."""
    train = split(load(name), split_seed).train
    # Another hash than that by which rows are made fewer.
    inner = split(train, split_seed + 1000)
    rows = SETUPS[name].rows
    return inner if rows is None else with_fewer_rows(inner, rows, split_seed), train.checksum


@dataclass(frozen=True)
class Trial:
    """A model with a rate and a seed on a set."""

    set_name: str
    model: str
    rate: float
    seed: int

    @property
    def params(self) -> dict[str, Any]:
        return {**SETUPS[self.set_name].params, "combine": MODELS[self.model], "dropout": self.rate}

    def key(self, checksum: str, split_seed: int) -> dict[str, Any]:
        """What kept figures must agree in to stand for this trial."""
        return {
            "training part": checksum,
            "split seed": split_seed,
            "params": self.params,
            "rows": SETUPS[self.set_name].rows,
            "seed": self.seed,
            "version": version_of("metarank"),
        }

    def place(self, cache: Path) -> Path:
        return cache / "dropout" / f"{self.set_name}-{self.model}-{self.rate:g}-{self.seed}.json"


def measure(trial: Trial, parts: Parts) -> dict[str, Any]:
    """Accuracy on the last of the parts, epochs and CPU seconds of one fit."""
    system = Embedder(trial.params, trial.seed, 1)
    system.warm_up()
    seconds, _ = clocked(lambda: system.fit(parts.train))
    found = values(parts, system.lists(parts.valid, K), system.lists(parts.test, K))
    return {
        **{column: found[column] for column in COLUMNS},
        "best epoch": system.model.best_epoch_,
        "epochs": len(system.model.history_["loss"]),
        "train_cpu_s": seconds,
    }


def kept_or_made(
    trial: Trial, cache: Path, split_seed: int, parts: Parts, checksum: str, making: bool
) -> dict[str, Any] | None:
    """The figures of a trial; None where there are none and none are to be made."""
    place, key = trial.place(cache), trial.key(checksum, split_seed)
    if place.is_file():
        figures: dict[str, Any] = json.loads(place.read_text())
        if figures["key"] == key:
            return figures
    if not making:
        return None
    figures = {"key": key, "sources": digest_of_sources(), **measure(trial, parts)}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(figures, indent=1) + "\n")
    log(f"{trial}: {MEASURE} {100 * figures[MEASURE]:.1f}, {figures['train_cpu_s']:.0f} s")
    return figures


Found = dict[tuple[str, float], list[dict[str, Any]]]


def verdict(found: Found, model: str, rates: list[float]) -> str | None:
    """The best rate of a model by the mean of `MEASURE`, and its gain over none."""
    means = {
        rate: np.mean([figures[MEASURE] for figures in found[model, rate]])
        for rate in rates
        if (model, rate) in found
    }
    if 0.0 not in means or len(means) < 2:
        return None
    best = max(means, key=lambda rate: means[rate])
    if best == 0:
        return f"{model}: no rate has more {MEASURE} than none"
    n = min(len(found[model, rate]) for rate in (0.0, best))
    told = (
        f"{model}: rate {best:g} has the most {MEASURE}, {100 * (means[best] - means[0.0]):+.1f} against none"
    )
    if n < 2:
        return f"{told} (a single seed)"
    deviation = max(np.std([f[MEASURE] for f in found[model, rate]], ddof=1) for rate in (0.0, best))
    return f"{told} (deviation {100 * deviation:.1f}, {n} seeds)"


def table(found: Found, models: list[str], rates: list[float]) -> str:
    """A line a model and rate."""
    head = ["", "dropout", "n", *COLUMNS, "best epoch", "epochs", "CPU s"]
    lines = [head, ["---"] * len(head)]
    for model in models:
        for rate in rates:
            of_seeds = found.get((model, rate))
            if not of_seeds:
                continue
            accuracy = [with_deviation(np.array([f[column] for f in of_seeds])) for column in COLUMNS]
            others = [
                f"{np.mean([f[c] for f in of_seeds]):.0f}" for c in ("best epoch", "epochs", "train_cpu_s")
            ]
            lines.append([model, f"{rate:g}", str(len(of_seeds)), *accuracy, *others])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def section(
    name: str, parts: Parts, checksum: str, found: Found, models: list[str], rates: list[float]
) -> str:
    params = SETUPS[name].params
    steps = ", ".join(
        f"{key} {params[key]}" for key in ("batch_size", "learning_rate", "n_epochs", "patience")
    )
    told = [line for model in models if (line := verdict(found, model, rates))]
    sizes = f"{len(parts.train.texts):,} rows to learn from, {len(parts.test.texts):,} to judge by; {steps}."
    sources = sorted({f["sources"][:16] for of_seeds in found.values() for f in of_seeds})
    lines = [*told, f"sha256 of the training part: {checksum}", f"metarank's sources: {', '.join(sources)}"]
    return "\n\n".join(
        [f"## {name}", sizes, table(found, models, rates), "\n".join(f"- {line}" for line in lines)]
    )


def page(sections: list[str], split_seed: int) -> str:
    sizes = ", ".join(
        f"{key} {EMBEDDERS[key]}" for key in ("encoder", "subword_dim", "hidden_dim", "embedding_dim")
    )
    versions = ", ".join(f"{name} {version}" for name, version in packages().items())
    about = (
        "Written by `python experiments/search_filters/dropout.py`. Training parts alone are read, split "
        "once more, 8 : 1 : 1: the cut is chosen on the first tenth, all is judged on the second, and no "
        f"test part of the study is looked at. {sizes}; one thread. Mean ± standard deviation over n seeds, "
        "accuracy in per cent."
    )
    made = [
        f"Python {platform.python_version()}, {versions}, metarank {version_of('metarank')}",
        f"split seed {split_seed}, seeds from 0",
        f"sha256 of this script: {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}",
    ]
    how = "## How it was made\n\n" + "\n".join(f"- {line}" for line in made)
    return "\n\n".join(["# Dropout, on held-out rows of the training parts", about, *sections, how]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETUPS), help="fit on these sets alone")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rates", default=",".join(f"{rate:g}" for rate in RATES))
    parser.add_argument("--seeds", type=int, default=2, help="seeds 0, 1, ...")
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, fit nothing")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    add_options(parser, _HERE / "dropout.md")
    options = parser.parse_args(arguments)
    sets, models = options.sets.split(","), options.models.split(",")
    rates = [float(rate) for rate in options.rates.split(",")]
    for option, chosen, known in (("--sets", sets, SETUPS), ("--models", models, MODELS)):
        if unknown := set(chosen) - set(known):
            parser.error(f"{option} must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("seeds", "split_seed"))
    ready: dict[str, tuple[Parts, str]] = {}
    for name in SETUPS:
        try:
            ready[name] = held_out(name, options.split_seed)
        except FileNotFoundError as absent:
            log(f"{name} is left out: {absent}")
    found: dict[str, Found] = {name: {} for name in ready}
    # A seed of all before the next, so that an interrupted study has whole tables.
    for seed in range(options.seeds):
        for name, (parts, checksum) in ready.items():
            for model in MODELS:
                for rate in sorted({*RATES, *rates}):
                    making = not options.kept and name in sets and model in models and rate in rates
                    trial = Trial(name, model, rate, seed)
                    figures = kept_or_made(trial, options.cache, options.split_seed, parts, checksum, making)
                    if figures is not None:
                        found[name].setdefault((model, rate), []).append(figures)
    shown = sorted({rate for of_set in found.values() for _, rate in of_set})
    sections = [
        section(name, *ready[name], found[name], list(MODELS), shown) for name in ready if found[name]
    ]
    whole.write(page(sections, options.split_seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

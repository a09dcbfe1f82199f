"""What one row, a row of a batch and a fit cost, beside Parabel, PECOS and omikuji; and few labels.

python experiments/latency/run.py [--sets pydocs] [--parts rows,few] [--again metaranker] [--kept]

The peers' environments are made on first use, from the package index. What is kept is not measured again,
so that an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import fits
import numpy as np
import scipy.sparse as sp
from borrowed import (
    PEERS,
    PIPELINE,
    REFERENCE,
    SHORTLISTERS,
    SINGLES,
    THREAD_VARIABLES,
    WITH_NAMES,
    Figures,
    Judge,
    Laboratory,
    Prepared,
    Run,
    Setting,
    WholePage,
    add_options,
    available,
    bullets,
    cpu_model,
    digest_of_sources,
    environments,
    log,
    number,
    version_of,
)
from pages import table

from metarank import metrics

_HERE = Path(__file__).parent
PARTS = ("rows", "few", "small", "cascade")
SETS = (
    "LLMs4Subjects-dev-en",
    "CiteULike-t-tags",
    "LastFM-ArtistTags",
    "pydocs",
    "Wikispeedia-Links",
    REFERENCE,
)
FEW = ("cooking_stackexchange", "fashion_styles")
NAMELESS = (REFERENCE,)  # its labels have no names
PREDICTIONS = 3  # times of single rows and of batches are the medians of so many
HELD_OUT = 5  # one row of so many
SEED = 0

_WITHOUT, _WITH = PIPELINE[0], WITH_NAMES[0]
_BY_NAME = {str(setting): setting for setting in PEERS}
# Those that times are compared with, by their names in the heads of columns.
YARDSTICKS = {
    "Parabel": SHORTLISTERS[0],
    "PECOS": _BY_NAME["pecos default3"],
    "omikuji": _BY_NAME["omikuji parabel3"],
}
TIMES = {"single ms": "single_ms", "batch ms": "batch_ms", "train s": "train_cpu_s"}
# More than there are candidates: all are described.
_ALL = 10**6
Row = list[str]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = (*SETS, *FEW, *fits.SMALL)
    parser.add_argument("--sets", default=",".join(every), help=f"among {', '.join(every)}")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"tables, among {', '.join(PARTS)}")
    parser.add_argument("--again", default="", help="measure these even where a run is kept: patterns")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds a run may take")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of what is kept")
    parser.add_argument(
        "--environments", type=Path, default=environments.DEFAULT_FOLDER, help="folder of the peers"
    )
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    names, parts = options.sets.split(","), options.parts.split(",")
    for option, given, known in (("sets", names, every), ("parts", parts, PARTS)):
        if unknown := set(given) - set(known):
            parser.error(f"--{option} must be among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets", "parts"))
    options.cache.mkdir(parents=True, exist_ok=True)
    core = None if options.core < 0 else options.core
    study = Study(
        Laboratory(options.cache, options.environments, core, options.timeout),
        again=[pattern.strip() for pattern in options.again.split(",") if pattern],
        kept_only=options.kept,
    )
    chosen = [name for name in SETS if name in names] if {"rows", "cascade"} & set(parts) else []
    sets = list(available(chosen, options.cache))
    # In the order of the page: what matters most is there first, should the run be interrupted.
    if "rows" in parts:
        study.rows(sets)
    if "few" in parts:
        study.fits([name for name in FEW if name in names])
    if "small" in parts:
        study.fits([name for name in fits.SMALL if name in names])
    if "cascade" in parts:
        study.cascade(sets)
    whole.write(study.page())
    return 0


@dataclass
class Study:
    """Runs what is not kept, and the tables of what there is.

    Attributes
    ----------
    runs, halves : figures of runs by set and setting: of the test parts, and of rows held out
    of_fits : figures of fits by set, rows and contender
    checksums : of data, by what they are of
    failed : what has no figures, and why
    """

    laboratory: Laboratory
    again: list[str]
    kept_only: bool
    runs: dict[str, dict[Setting, Figures]] = field(default_factory=dict)
    halves: dict[str, dict[Setting, Figures]] = field(default_factory=dict)
    of_fits: dict[tuple[str, int | None], dict[str, Figures]] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    ready: dict[str, bool] = field(default_factory=dict)

    # --- what is measured ----------------------------------------------------------

    def rows(self, sets: Sequence[Prepared]) -> None:
        """One row, batches and fits of the sets, with names last."""
        for setting_of in ((_WITHOUT, *YARDSTICKS.values()), (_WITH,)):
            for dataset in sets:
                self.checksums[dataset.name] = dataset.checksum
                for setting in setting_of:
                    if setting == _WITH and dataset.name in NAMELESS:
                        continue
                    run = Run(dataset, setting, 0, k=10, predictions=PREDICTIONS, more=())
                    self._take(run, ("nDCG@5", "PSP@5"), self.runs)

    def cascade(self, sets: Sequence[Prepared]) -> None:
        """With the cascade and without, on rows held out of the training parts."""
        for dataset in sets:
            names = (_WITHOUT, _WITH) if dataset.name == "Wikispeedia-Links" else (_WITHOUT,)
            part = held_out(dataset, self.laboratory.cache)
            self.checksums[dataset.name] = dataset.checksum
            for setting in names:
                for of in (setting, without_cascade(setting)):
                    run = Run(part, of, 0, predictions=PREDICTIONS, more=("pairs",))
                    self._take(run, ("nDCG@5", "PSP@5", "R@100"), self.halves, dataset.name)

    def _take(
        self,
        run: Run,
        names: Sequence[str],
        into: dict[str, dict[Setting, Figures]],
        set_name: str | None = None,
    ) -> None:
        """Put the figures of a run, kept or made now, and what its lists are worth, where they belong."""
        name = set_name or run.dataset.name
        figures = self._one(
            f"{run.dataset.name} {run.setting}",
            str(run.setting),
            self.laboratory.kept(run),
            lambda: (
                self.laboratory.make(run)
                if environments.is_ready(run.setting.system, self.laboratory.environments)
                else None
            ),
        )
        if figures is None:
            return
        if "failed" in figures:
            self.failed.append(f"{run.setting} on {run.dataset.name}: {figures['failed']}")
            return
        judge = Judge(run.dataset)
        ranking = judge.ranking(self.laboratory.predictions(run))
        worth = metrics.evaluate(judge.Y_test, ranking, names, inv_propensity=judge.weights, n_jobs=1)
        into.setdefault(name, {})[run.setting] = {**figures, **worth}

    def fits(self, names: Iterable[str]) -> None:
        """Fits of few rows, or of few labels."""
        for name in names:
            for rows in fits.ROWS[name]:
                try:
                    checksum = fits.problem(name, rows).checksum
                except FileNotFoundError as error:
                    log(f"{name} is left out: {error}")
                    break
                self.checksums[_title(name, rows)] = checksum
                for contender in fits.contenders(name, rows):
                    place = self.laboratory.cache / "fits" / _stem(name, rows, contender)
                    key = {"set": checksum, "contender": contender, "version": version_of("metarank")}
                    figures = self._one(
                        f"{_title(name, rows)} {contender}",
                        contender,
                        _kept(place, key),
                        lambda: self._fit(name, rows, contender, place, key),  # noqa: B023
                    )
                    if figures is not None:
                        self.of_fits.setdefault((name, rows), {})[contender] = figures

    def _fit(self, name: str, rows: int | None, contender: str, place: Path, key: dict[str, str]) -> Figures:
        place.parent.mkdir(parents=True, exist_ok=True)
        core = self.laboratory.core
        bound = [] if core is None else ["taskset", "--cpu-list", str(core)]
        with tempfile.TemporaryDirectory() as scratch:
            out, job = Path(scratch) / "figures.json", Path(scratch) / "job.json"
            job.write_text(json.dumps({"set": name, "rows": rows, "contender": contender, "out": str(out)}))
            done = subprocess.run(
                [*bound, sys.executable, str(_HERE / "fits.py"), str(job)],
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
                capture_output=True,
                text=True,
                timeout=self.laboratory.timeout,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"exit {done.returncode}\n{done.stderr[-2000:]}")
            figures: Figures = {"key": key, "sources": digest_of_sources(), **json.loads(out.read_text())}
        place.write_text(json.dumps(figures, indent=1) + "\n")
        return figures

    def _one(
        self, title: str, contender: str, kept: Figures | None, make: Callable[[], Figures | None]
    ) -> Figures | None:
        """The figures that are kept, else those made now; None where there are none."""
        again = any(fnmatch(contender, pattern + "*") for pattern in self.again)
        if self.kept_only or (kept is not None and not again):
            return kept
        try:
            figures = make()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            log(f"{title}: {error}")
            return kept
        if figures is not None:
            shown = ("failed", "train_cpu_s", "single_ms", "batch_ms", "cpu_s", *fits.METRICS)
            told = {name: figures[name] for name in shown if name in figures}
            log(f"{title}: {told}")
        return figures

    # --- the page ------------------------------------------------------------------

    def page(self) -> str:
        few = {key: of for key, of in self.of_fits.items() if key[0] in FEW}
        small = {key: of for key, of in self.of_fits.items() if key[0] in fits.SMALL}
        parts = [_HEAD]
        if self.runs:
            head = ["contender", *(f"{time} ({', '.join(YARDSTICKS)})" for time in TIMES)]
            head += ["fit MiB", "model MiB", "nDCG@5", "PSP@5", "yardstick"]
            parts.append(f"## One row and batches\n\n{_ROWS}")
            parts += [f"### {name}\n\n{table(head, _rows_of(of))}" for name, of in self.runs.items()]
        if few:
            parts.append(f"## A few hundred labels\n\n{_FEW}\n\n{table(_FIT_HEAD, _fit_rows(few))}")
        if small:
            parts.append(f"## Small label sets\n\n{_SMALL}\n\n{table(_FIT_HEAD, _fit_rows(small))}")
        if self.halves:
            head = ["set", "", "nDCG@5", "PSP@5", "R@100", *TIMES, "pairs described", "yardstick"]
            parts.append(f"## The cascade\n\n{_CASCADE}\n\n{table(head, _cascade_rows(self.halves))}")
        return "\n\n".join([*parts, "## How it was made", self._provenance()]) + "\n"

    def _provenance(self) -> str:
        runs = {
            **{f"{setting} on {name}": f for name, of in self.runs.items() for setting, f in of.items()},
            **{
                f"{s} on rows held out of {name}": f
                for name, of in self.halves.items()
                for s, f in of.items()
            },
            **{
                f"{contender} on {_title(*key)}": f
                for key, of in self.of_fits.items()
                for contender, f in of.items()
            },
        }
        now = digest_of_sources()
        lines = [
            "`python experiments/latency/run.py`",
            f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, seed {SEED}, "
            f"{fits.SEED} for rows of fits",
            ", ".join(
                f"{package} {version(package)}" for package in ("numpy", "scipy", "scikit-learn", "lightgbm")
            ),
            ", ".join(f"{system} {version_of(system)}" for system in ("metarank", "omikuji", "pecos")),
            f"sha256 of metarank's sources: {now}",
        ]
        yardsticks = [figures["yardstick_cpu_s"] for figures in runs.values()]
        if yardsticks:
            low, middle, high = min(yardsticks), statistics.median(yardsticks), max(yardsticks)
            lines.append(f"{len(runs)} runs, yardstick {low:.2f} to {high:.2f} CPU s (median {middle:.2f})")
        older = [title for title, figures in runs.items() if figures.get("sources", now) != now]
        if older:
            lines.append(f"measured with another state of the sources: {', '.join(older)}")
        lines += [f"no figures of {told}" for told in self.failed]
        lines += [f"sha256 of {title}: {checksum}" for title, checksum in self.checksums.items()]
        return bullets(lines)


def held_out(dataset: Prepared, cache: Path) -> Prepared:
    """The training part of a set, a fifth of its rows in the place of the test part."""
    folder = cache / "data" / f"{dataset.name}-held-out"
    checksum = hashlib.sha256(f"{dataset.checksum} {HELD_OUT} {SEED}".encode()).hexdigest()
    X, Y = dataset.matrix("X"), dataset.matrix("Y")
    out = np.random.default_rng(SEED).permutation(X.shape[0]) % HELD_OUT == 0
    described = folder / "set.json"
    if not described.is_file() or json.loads(described.read_text()) != checksum:
        folder.mkdir(parents=True, exist_ok=True)
        matrices = {"X": X, "Y": Y} | (
            {"exclude": dataset.matrix("exclude")} if dataset.has("exclude") else {}
        )
        for name, matrix in matrices.items():
            for which, part in ((name, ~out), (f"{name}_test", out)):
                sp.save_npz(folder / f"{which}.npz", matrix[part], compressed=False)
        shutil.copy(dataset.folder / "names.json", folder)
        described.write_text(json.dumps(checksum))
    sizes = {**dataset.sizes, "n": int((~out).sum()), "n_test": int(out.sum())}
    return Prepared(f"{dataset.name}-held-out", folder, checksum, sizes)


def without_cascade(setting: Setting) -> Setting:
    params = {**setting.params, "least_survivors": _ALL}
    return Setting(setting.system, f"{setting.name}, without the cascade", params)


def _kept(place: Path, key: dict[str, str]) -> Figures | None:
    if not place.is_file():
        return None
    figures: Figures = json.loads(place.read_text())
    return figures if figures["key"] == key else None


def _stem(name: str, rows: int | None, contender: str) -> str:
    plain = "".join(c if c.isalnum() else "-" for c in contender)
    return f"{name}-{rows or 'all'}-{plain}.json"


def _title(name: str, rows: int | None) -> str:
    return name if rows is None else f"{name}, {rows:,} rows"


def _rows_of(measured: dict[Setting, Figures]) -> Iterable[Row]:
    """A line for each contender: ours first, then those that times are compared with."""
    for setting in sorted(measured, key=[_WITHOUT, _WITH, *YARDSTICKS.values()].index):
        figures = measured[setting]
        cells = [str(setting)]
        for time in TIMES.values():
            ratios = [_ratio(figures, measured.get(of), time) for of in YARDSTICKS.values()]
            cells.append(f"{number(figures[time])} ({', '.join(ratios)})")
        cells += [number(figures["peak_mib"] + figures["imports_mib"]), number(figures["model_mib"])]
        cells += [f"{100 * figures[name]:.1f}" for name in ("nDCG@5", "PSP@5")]
        yield [*cells, f"{figures['yardstick_cpu_s']:.2f}"]


def _ratio(figures: Figures, of: Figures | None, time: str) -> str:
    return "–" if of is None else f"{figures[time] / of[time]:.2f}"


_FIT_HEAD = ["set", "labels", "fitted", "CPU s", "of medium", *fits.METRICS, "yardstick"]


def _fit_rows(measured: dict[tuple[str, int | None], dict[str, Figures]]) -> Iterable[Row]:
    for (name, rows), of in measured.items():
        medium = of.get("medium")
        for contender, f in of.items():
            title = _title(name, rows) if rows else f"{name}, all {f['rows']:,} rows"
            effort = f"effort {contender}" if contender in fits.EFFORTS else contender
            cells = [title, str(f["labels"]), effort, number(f["cpu_s"]), _ratio(f, medium, "cpu_s")]
            yield [*cells, *(f"{100 * f[m]:.1f}" for m in fits.METRICS), f"{f['yardstick_cpu_s']:.2f}"]


def _cascade_rows(measured: dict[str, dict[Setting, Figures]]) -> Iterable[Row]:
    for name, of in measured.items():
        for setting, f in of.items():
            cells = [name, setting.name if "cascade" in setting.name else f"{setting.name}, with the cascade"]
            cells += [f"{100 * f[metric]:.2f}" for metric in ("nDCG@5", "PSP@5", "R@100")]
            cells += [number(f[time]) for time in TIMES.values()]
            pairs = f"{f['described']:.0f} of {f['proposed']:.0f}"
            yield [*cells, pairs, f"{f['yardstick_cpu_s']:.2f}"]


_HEAD = f"""# What a row costs, and a fit

Default settings but where a table says otherwise, one thread, each contender in a process of its own on
the same core, one after another. Accuracy is in per cent. *single ms*: median wall milliseconds of {SINGLES}
calls with one row each. *batch ms*: CPU milliseconds a row, all in one call. Both are medians of
{PREDICTIONS} repeats. *train s*: CPU seconds from data in memory to a model. *yardstick*: CPU seconds of a
fixed piece of work just before a run; other processes on the machine lengthen it, and all times with it."""
_ROWS = f"""Lists of 10 labels of the test parts. In brackets, times as ratios to those of
{", ".join(f"{short} ({setting})" for short, setting in YARDSTICKS.items())} in the same run.
*fit MiB*: peak resident memory of reading and training; *model MiB*: on disk. Those three read no names of
labels, which the {REFERENCE} has none of."""
_FEW = f"""Short texts with lists of names of labels, those of the drawn rows, as they are passed to `fit`.
cooking_stackexchange: questions drawn from all but the last {fits.TEST_ROWS:,}, which are judged by;
fashion_styles: titles, split by distinct text as in `search_filters`. Rows to judge by have at least one of
the labels. *of medium*: CPU time as a ratio to that of effort medium. A fit below {fits.SHORT:.0f} CPU
seconds is made {fits.REPETITIONS} times, and the median counts. {fits.ALL_LABELS}: all labels are ranked,
with effort medium. {fits.ONE_VS_REST}: `LGBMClassifier()` of each label by the TF-IDF of words."""
_SMALL = """Three quarters of the training part are fitted; the other quarter, stratified, is judged by. The
test part is not read. Columns are those of the table above."""
_CASCADE = """A fifth of the rows of the training part is held out to judge by; the test part is not read.
Lists of 100 labels. *without the cascade*: all candidates are described
(`LEAST_SURVIVORS = 10**6` in `metarank.model.fitting.auto`). *pairs described*: of how many candidates a row,
over the first thousand rows held out."""


if __name__ == "__main__":
    sys.exit(main())

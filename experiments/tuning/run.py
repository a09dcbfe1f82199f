"""Which settings suit a label tree: is there a rule by statistics of the data, and what does `tune` find?

python experiments/tuning/run.py [--sets bibtex,reuters90] [--rows 2000]

Only the training parts of the sets are read. A fifth of the rows chosen is held out to judge by. One thread.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import metarank
from metarank import data
from metarank.metrics import per_row
from metarank.propensity import inv_propensity
from metarank.shortlist import Parabel
from metarank.types.view import fold_of_rows

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
# With the rows that are read of each.
SETS = {
    "bibtex": 5_000,
    "delicious": 5_000,
    "reuters90": 8_000,
    "LLMs4Subjects-dev-en": 6_000,
    "Wikispeedia-Links": 4_000,
    "CiteULike-t-tags": 6_000,
    "LastFM-ArtistTags": 6_000,
    "YSO-FinnaTitles-27K": 25_000,
}
SETTINGS = Parabel(n_trees=1, tune=100).settings_tried()
SEED = 0
STATISTICS = ("rows", "rows per label", "terms per row")


@dataclass(frozen=True)
class Measured:
    """A set: its statistics, and for each setting nDCG@5 and PSP@5 of each held-out row and CPU seconds."""

    statistics: dict[str, float]
    ndcg: list[np.ndarray]
    psp: list[np.ndarray]
    seconds: list[float]

    def gain(self, i: int, *, of: str = "ndcg") -> tuple[float, float]:
        """The mean difference to the default, times 100, and its standard error."""
        values = getattr(self, of)
        difference = 100 * (values[i] - values[0])
        difference = difference[~np.isnan(difference)]
        return float(difference.mean()), float(difference.std(ddof=1) / len(difference) ** 0.5)


@dataclass(frozen=True)
class Rule:
    """A setting for sets whose statistic is below a cut, or not below it."""

    statistic: str
    cut: float
    below: bool
    setting: int

    def choice(self, of: Measured) -> int:
        return self.setting if (of.statistics[self.statistic] < self.cut) == self.below else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--rows", type=int, default=None, help="at most, of each set")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets", "rows"))
    found: dict[str, Measured] = {}
    for name in options.sets.split(","):
        try:
            rows = data.load_named(name)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        found[name] = _measured(rows, min(SETS[name], options.rows or SETS[name]))
        print(name, [f"{found[name].gain(i)[0]:+.2f}" for i in range(len(SETTINGS) + 1)], file=sys.stderr)
    if found:
        whole.write("\n\n".join([_HEAD, _settings(), *_tables(found), _rules(found), _provenance()]) + "\n")
    return 0


def _measured(of: data.Dataset, n_rows: int) -> Measured:
    """The settings one after another, and last what `tune` takes, which sees nothing of the rows held out."""
    rows = np.sort(np.random.default_rng(SEED).permutation(of.n_rows)[:n_rows])
    X, Y = sp.csr_matrix(of.X)[rows], sp.csr_matrix(of.Y > 0, dtype=np.float32)[rows]
    inside = fold_of_rows(len(rows), 5, SEED, X) == 0
    weights = inv_propensity(Y[~inside])
    out = Measured(
        {
            "rows": float((~inside).sum()),
            "rows per label": Y[~inside].nnz / len(np.unique(Y[~inside].indices)),
            "terms per row": X[~inside].nnz / (~inside).sum(),
        },
        [],
        [],
        [],
    )
    for params in [*SETTINGS, {"tune": len(SETTINGS)}]:
        started = time.process_time()
        tree = Parabel(n_trees=1, random_state=SEED, **params).fit(X[~inside], Y[~inside], n_jobs=1)
        out.seconds.append(time.process_time() - started)
        listed = tree.shortlist(X[inside], 5)
        out.ndcg.append(per_row(Y[inside], listed, "nDCG@5"))
        out.psp.append(per_row(Y[inside], listed, "PSP@5", inv_propensity=weights))
    return out


def _learned(sets: list[Measured]) -> Rule | None:
    """Of the rules that cost no set more than a standard error, the one that gains most in the mean."""
    best, most = None, 0.0
    for statistic in STATISTICS:
        values = sorted({of.statistics[statistic] for of in sets})
        for cut in [0.0, *((a * b) ** 0.5 for a, b in pairwise(values))]:  # 0: all sets
            for below in (True, False):
                for setting in range(1, len(SETTINGS)):
                    rule = Rule(statistic, cut, below, setting)
                    gains = [of.gain(rule.choice(of)) for of in sets]
                    mean = float(np.mean([gain for gain, _ in gains]))
                    if mean > most and all(gain >= -error for gain, error in gains):
                        best, most = rule, mean
    return best


def _settings() -> str:
    lines = [f"{i}. {_said(setting)}" for i, setting in enumerate(SETTINGS)]
    return "\n".join(["## The settings", "", *lines])


def _said(setting: dict[str, Any]) -> str:
    return f"`{', '.join(f'{k}={v}' for k, v in setting.items())}`" if setting else "the default"


def _tables(found: dict[str, Measured]) -> list[str]:
    names = [*map(str, range(1, len(SETTINGS))), "tune"]
    last = range(1, len(SETTINGS) + 1)
    facts = [["set", *STATISTICS, "nDCG@5", "PSP@5", "CPU s"]]
    facts += [
        [
            name,
            *(f"{of.statistics[s]:,.1f}" if s != "rows" else f"{of.statistics[s]:,.0f}" for s in STATISTICS),
            *(f"{100 * np.nanmean(values[0]):.1f}" for values in (of.ndcg, of.psp)),
            f"{of.seconds[0]:.1f}",
        ]
        for name, of in found.items()
    ]
    parts = [f"## The default\n\n{_table(facts)}"]
    for title, column in (("nDCG@5", "ndcg"), ("PSP@5", "psp")):
        lines = [["set", *names]]
        for name, of in found.items():
            gains = [of.gain(i, of=column) for i in last]
            lines.append([name, *(f"{gain:+.1f} ± {error:.1f}" for gain, error in gains)])
        parts.append(f"## {title}, difference to the default\n\n{_table(lines)}")
    lines = [["set", *names]]
    lines += [[name, *(f"{of.seconds[i] / of.seconds[0]:.1f}" for i in last)] for name, of in found.items()]
    return [*parts, f"## CPU time of the fit, of that of the default\n\n{_table(lines)}"]


def _rules(found: dict[str, Measured]) -> str:
    """What a rule learned from the other sets does to each."""
    lines = [["left out", "rule of the others", "setting there", "nDCG@5", "PSP@5", "CPU"]]
    for name, of in found.items():
        rule = _learned([other for other in found.values() if other is not of])
        i = 0 if rule is None else rule.choice(of)
        said = "none" if rule is None else f"setting {rule.setting} {_where(rule)}"
        gains = [f"{gain:+.1f} ± {error:.1f}" for gain, error in (of.gain(i), of.gain(i, of="psp"))]
        lines.append([name, said, str(i), *gains, f"{of.seconds[i] / of.seconds[0]:.1f}"])
    return f"## Rules, each learned without the set that it is judged on\n\n{_table(lines)}"


def _where(rule: Rule) -> str:
    if rule.cut == 0:
        return "everywhere"
    return f"if {rule.statistic} {'<' if rule.below else '>='} {rule.cut:,.1f}"


def _table(lines: list[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    )


def _provenance() -> str:
    return (
        f"## How it was made\n\n- `python experiments/tuning/run.py`; seed {SEED} chooses the rows and those "
        f"held out, and is the tree's\n- {platform.machine()}, cores shared with other work, Python "
        f"{platform.python_version()}, metarank {metarank.__version__}"
    )


_HEAD = """# Settings of a label tree

One tree (`Parabel(n_trees=1)`) on rows of the training part of each set, of which a fifth is held out. Times
100; differences are means over the held-out rows, with their standard errors. *tune*: what
`Parabel(n_trees=1, tune=N)` takes of all N settings, by a part of its own rows; its CPU time is that of all
trials and of the fit on all rows.

A rule is one setting for the sets on one side of a cut in one statistic, or for all sets. Of the rules that
cost none of the other sets more than a standard error of nDCG@5, the one that gains most in the mean is
applied to the set that is left out."""


if __name__ == "__main__":
    sys.exit(main())

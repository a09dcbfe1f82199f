"""Is what a fit reports of held-out rows what new rows show, and what does that cost?

python experiments/held_out/run.py --before PYTHON [--seeds 5] [--sets emotions]

PYTHON has the metarank of before installed, which is measured in turn with this one. Without it the page
would lose its rows "before", and is a part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
KINDS = ("coin flips", "one row a label", "copies")
FOLDS = (2, 5, 20)
SMALL = ("emotions", "scene", "yeast", "citeseer17-single", "birds", "medical")
LARGE = ("pydocs", "LLMs4Subjects-dev-en")
METRICS = ("nDCG@5", "PSP@5", "micro-F1", "macro-F1", "example-F1")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="PYTHON", help="a Python that has the metarank of before")
    parser.add_argument("--seeds", type=int, default=5, help="of each made set")
    parser.add_argument("--repetitions", type=int, default=3, help="of the fits of the small sets")
    parser.add_argument("--sets", default=",".join((*SMALL, *LARGE)))
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    page = WholePage(options, parser, narrowed_by=("seeds", "repetitions", "sets"))
    systems = {"before": options.before} if options.before else {}
    systems["now"] = sys.executable
    lines = [_HEAD.format(seeds=options.seeds, python=platform.python_version(), numpy=np.__version__)]
    lines += [_digest(), "", "## Labels that have nothing to do with the rows", ""]
    lines += made_rows(systems, options.seeds)
    lines += ["", "## Labels that have", ""]
    lines += real_rows(systems, [name for name in options.sets.split(",") if name], options.repetitions)
    page.write("\n".join(lines) + "\n")
    return 0


def made_rows(systems: dict[str, str], seeds: int) -> list[str]:
    """The table of the made sets."""
    lines = [
        "| labels | K | | reported | new rows | chance | reported - new, in standard errors: mean, most "
        "| surest tenth said | is |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in KINDS:
        for folds in FOLDS:
            runs: dict[str, list[dict[str, float]]] = {label: [] for label in systems}
            for seed in range(seeds):
                for label, python in systems.items():
                    runs[label].append(cell(python, "made", kind, str(folds), str(seed), "low"))
            for label, own in runs.items():
                away = [(r["reported"] - r["new"]) / r["error"] for r in own]
                values = [f"{mean(r[key] for r in own):.3f}" for key in ("reported", "new", "chance")]
                values += [f"{mean(away):.1f}, {max(away, key=abs):.1f}"]
                values += [f"{mean(r[key] for r in own):.3f}" for key in ("said", "is")]
                lines.append(f"| {kind} | {folds} | {label} | {' | '.join(values)} |")
    return lines


def real_rows(systems: dict[str, str], sets: list[str], repetitions: int) -> list[str]:
    """The table of the sets with test parts."""
    lines = [
        "| set | | " + " | ".join(METRICS) + " | held out nDCG@5 | CPU, share of before | fits |",
        "| --- |" + " --- |" * (len(METRICS) + 4),
    ]
    for name in sets:
        count = repetitions if name in SMALL else 1
        runs: dict[str, list[dict[str, float]]] = {label: [] for label in systems}
        for _ in range(count):
            for label, python in systems.items():
                runs[label].append(cell(python, "real", name))
        for label, own in runs.items():
            cost = [run["cpu"] / of["cpu"] for run, of in zip(own, runs.get("before", own))]
            spread = f" ± {stdev(cost):.2f}" if len(cost) > 1 and label == "now" else ""
            values = " | ".join(f"{100 * own[0][metric]:.1f}" for metric in METRICS)
            told = f"{100 * own[0]['held out']:.1f}" if "held out" in own[0] else "-"
            lines.append(f"| {name} | {label} | {values} | {told} | {median(cost):.2f}{spread} | {count} |")
    return lines


def cell(python: str, *arguments: str) -> dict[str, Any]:
    """One run of `trial.py`, a process of its own."""
    print(*arguments, file=sys.stderr, flush=True)
    done = subprocess.run(
        [python, str(_HERE / "trial.py"), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _digest() -> str:
    from metarank import data

    digest = hashlib.sha256()
    for name in SMALL:
        for part in ("train", "test"):
            own = data.load_named(name, part)
            X = own.X if isinstance(own.X, np.ndarray) else own.X.data
            digest.update(np.ascontiguousarray(X).tobytes() + own.Y.indices.tobytes())
    return f"Small sets: sha256 {digest.hexdigest()[:16]} of features and labels."


_HEAD = """# What a fit reports of held-out rows, and what new rows show

Written by `python experiments/held_out/run.py --before PYTHON`; Python {python}, NumPy {numpy}.

Made sets: 200 rows of ten normal features, effort "low", {seeds} seeds, 2,000 new rows. *Coin flips*: six
labels, each relevant with probability .3; *one row a label*: fifty labels, each of one random row; *copies*:
fifty rows of coin flips, each four times, judged on other rows. Reported: (AP + nDCG + 1 - RankLoss) / 3 of
the held-out scores that calibration and cuts learn from, and the ranker is chosen by; the standard error
is that of so many rows as were held out, copies counted once. The surest tenth: of all pairs of new rows.

Sets with test parts: default settings, one thread; the CPU of a fit against that of before in turn with it,
the median of the fits. The larger two are shortlisted; held-out nDCG@5 is of the training rows.
"""

if __name__ == "__main__":
    sys.exit(main())

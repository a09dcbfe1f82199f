"""Train on the documentation of installed packages and show what comes out.

The data need no download: a document is the docstring of a function, its labels are the functions
that its See Also section names.
"""

from __future__ import annotations

import argparse
import shlex
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from metarank.apps.cli._options import add_options
from metarank.apps.cli._printing import showing_progress, table
from metarank.model.fitting.auto import EFFORTS

if TYPE_CHECKING:
    from metarank.apps.report import Report
    from metarank.apps.report.examples import Example
    from metarank.data.dataset import Dataset

TABLE_METRICS = ("P@1", "P@5", "nDCG@5", "R@10", "PSP@5")
REASONS_ON_TERMINAL = 2

_OPTIONS = """
--out DIR  folder to write (default metarank-demo)
--effort   how many sources to use (default medium)
--rows N   train on N functions only
--seed --jobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    efforts = {"choices": EFFORTS, "default": "medium"}
    add_options(parser, _OPTIONS, out="metarank-demo", effort=efforts, rows={"type": int})


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.report import dated, measure_report, write_report
    from metarank.data.pydocs import load_pydocs
    from metarank.model.estimator import MetaRanker

    if args.rows is not None and args.rows < 50:
        raise ValueError(f"--rows must be at least 50, got {args.rows}")
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    train, test = load_pydocs("train", args.seed), load_pydocs("test", args.seed)
    if args.rows is not None:
        train = train.take(np.sort(np.random.default_rng(args.seed).permutation(train.n_rows)[: args.rows]))
    print(
        f"Data: the docstrings of {train.n_rows + test.n_rows:,} functions ({train.n_rows:,} to learn from, "
        f"{test.n_rows:,} to test); labels: the {train.n_labels:,} functions\nnamed in See Also sections, "
        f"{train.Y.nnz / train.n_rows:.1f} per function. Task: predict the See Also section.",
        flush=True,
    )
    model = MetaRanker(effort=args.effort, n_jobs=args.jobs, random_state=args.seed)
    with showing_progress():
        # A function is never in its own section, though no label fits its text better.
        model.fit(train, exclude=itself(train))
        report = replace(
            measure_report(model, test, exclude=itself(test)),
            title="Which functions belong in “See also”?",
            lead="Each document is the docstring of a function of numpy, scipy, scikit-learn or lightgbm "
            "without its See Also section; its labels are the functions that section names. metarank learns "
            f"from {train.n_rows:,} of them and proposes labels for {test.n_rows:,} others.",
        )
        model.save(out / "model")
        write_report(out / "report.html", dated(report, out / "model"))
    print(f"\n{_metrics(report)}\n")
    print("\n".join(_example(e) for e in report.examples))
    folder, text = shlex.quote(str(out / "model")), "eigenvalues of a symmetric matrix"
    print(f"report  {out / 'report.html'}")
    print(f"model   {out / 'model'}   ({time.monotonic() - started:.0f} s in all)")
    print(f'\nnext, for instance:\n  metarank predict {folder} --text "{text}"')
    print(f'  metarank explain {folder} --text "{text}" --top 2')


def itself(dataset: Dataset) -> list[list[int]]:
    """For each row the label that is the function itself, where it is a label."""
    from metarank.data.pydocs import own_labels

    return [[int(label)] if label >= 0 else [] for label in own_labels(dataset)]


def _metrics(report: Report) -> str:
    from metarank.metrics import Metric

    rows = [
        [method, *(Metric.parse(name).shown(values[name].value) for name in TABLE_METRICS)]
        for method, values in report.metrics.items()
    ]
    return table(["", *TABLE_METRICS], rows)


def _example(e: Example) -> str:
    lines = [e.title, *_indented(textwrap.shorten(e.text, 150, placeholder=" …"), 2)]
    for word, suggestions in (("found", e.found), ("new", e.proposed)):
        for name, s in suggestions:
            chance = "" if s.probability is None else f"  probability {100 * s.probability:.0f} %"
            lines.append(f"  {word:<7}{s.rank}. {name}{chance}")
            why = "; ".join(f"{r.text} {r.contribution:+.2f}" for r in s.reasons()[:REASONS_ON_TERMINAL])
            lines += _indented(why, 11)
    for name, rank in e.missed:
        lines.append(f"  missed {name}  ({f'at rank {rank}' if rank else 'not a candidate, or far down'})")
    return "\n".join(lines) + "\n"


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent=" " * width, subsequent_indent=" " * width)

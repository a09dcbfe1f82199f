"""Measure a model on a labelled file and write a report, as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from metarank.apps.cli._options import READING, add_options
from metarank.apps.cli._printing import showing_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    shared = "--quiet model test --slices --propensity-weight --jobs"
    page = "--out FILE  page to write (default report.html)"
    add_options(parser, f"{page}\n{shared}{READING}", out="report.html")


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import read_labelled
    from metarank.apps.report import dated, measure_report, write_report
    from metarank.metrics.slices import LABEL_FREQUENCY

    page = Path(args.out)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out must end in .html or .htm, got {args.out!r}")
    if not page.parent.is_dir():
        raise FileNotFoundError(2, "no such folder to write the report to", str(page.parent))
    model, dataset, _, slices = read_labelled(args)
    slices.pop(LABEL_FREQUENCY, None)  # which the page shows in any case
    with showing_progress(args.quiet):
        report = measure_report(model, dataset, slices=slices)
        write_report(args.out, dated(report, args.model, args.test))
    print(args.out)

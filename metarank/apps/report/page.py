"""`write_report`: a `Report` as one HTML file that needs nothing else."""

from __future__ import annotations

import os
from typing import Any

from jinja2 import Environment, PackageLoader

from metarank._util.files import whole_file
from metarank._util.printable import printable
from metarank._util.version import __version__
from metarank.apps.report import charts
from metarank.apps.report.charts import line_chart, percent
from metarank.apps.report.content import LENGTH, SHARES, Report
from metarank.metrics import Metric
from metarank.model.answering.reasons import DIGITS

# Figures that are shown by slice; of label frequency those that go with it.
_BY_SLICE = ("R@10", "R@5", "R@3", "R@1", "P@1", "nDCG@5", "PSP@5", "micro-F1", "macro-F1")


def write_report(path: str | os.PathLike[str], report: Report) -> None:
    """Write a report as self-contained HTML: inline style and SVG, no script, nothing fetched.

    Sections without data (no frequencies, no probabilities, ...) are left out. The file appears
    whole or not at all.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    with whole_file(path) as f:
        f.write(to_html(report))


def to_html(report: Report) -> str:
    """The page as a string."""
    template = Environment(
        loader=PackageLoader("metarank.apps.report", ""),
        autoescape=True,
        # Text from outside holds nothing that XML bars; what is markup already is left as it is.
        finalize=lambda value: printable(value, keep="\n") if type(value) is str else value,
    ).get_template("page.html.j2")
    names = dict.fromkeys(name for values in report.metrics.values() for name in values)
    return template.render(
        report=report,
        figures={name: _cells(report, name) for name in names},
        by_slice=_BY_SLICE,
        drawn=_charts(report),
        metric=Metric.parse,
        percent=percent,
        charts=charts,
        digits=DIGITS,
        version=__version__,
    )


def _cells(report: Report, name: str) -> list[tuple[str, str, bool]]:
    """A metric of each method: its value, its interval, and whether none is better."""
    metric = Metric.parse(name)
    intervals = [values.get(name) for values in report.metrics.values()]
    known = [i.value for i in intervals if i is not None and i.value == i.value]
    best = metric.shown((max if metric.greater_is_better else min)(known)) if known else None
    cells = []
    for interval in intervals:
        value, low, high = ("–", "–", "–") if interval is None else map(metric.shown, interval)
        cells.append((value, f"{low}–{high}" if low != "–" else "", value == best))
    return cells


def _charts(report: Report) -> dict[str, Any]:
    """The charts of which the report has numbers."""
    lengths, drawn = {float(k): str(k) for k in report.ks}, {}
    for name, y_label in SHARES.items():
        if curves := getattr(report, name):
            drawn[name] = line_chart(LENGTH, y_label, lengths, list(lengths), curves)
    if report.bins and report.tail:
        bins = {float(i): b.name for i, b in enumerate(report.bins)}
        drawn["tail"] = line_chart(
            "training rows of the label", f"recall at {report.tail_k}", bins, list(bins), report.tail
        )
    r = report.reliability
    if r is not None and r.counts.sum():
        drawn["calibration"] = line_chart(
            "probability forecast",
            "share that is relevant",
            {value: percent(value) for value in charts.ticks(1)},
            r.forecast.tolist(),
            {"forecast": r.observed.tolist()},
            r.counts.tolist(),
        )
    return drawn

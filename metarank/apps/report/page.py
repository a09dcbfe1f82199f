"""`write_report`: a `Report` as one HTML file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

from metarank._util import svg
from metarank._util.files import whole_file
from metarank._util.html import escape
from metarank._util.version import __version__
from metarank.apps.report.content import MODEL, Report
from metarank.apps.report.examples import Example, Suggestion
from metarank.apps.report.words import block_of
from metarank.metrics import Interval, Metric
from metarank.metrics.slices import LABEL_FREQUENCY
from metarank.model.explain import DIGITS
from metarank.model.measure import SliceFigures

# Columns shown in the chart of importance.
_TOP_COLUMNS = 15
# Figures that are shown by slice; of label frequency those that go with it.
_BY_SLICE = ("R@10", "R@5", "R@3", "R@1", "P@1", "nDCG@5", "PSP@5", "micro-F1", "macro-F1")
_OF_LABELS = (
    "Labels by the number of their training rows. The lists are those of all labels, of which only those "
    "of a line count as relevant: P@k says what they contribute, R@k which share of them is found."
)
# Lengths of which a headline tells.
_LENGTHS = (10, 5, 3, 1)
_FAR = "further down or is no candidate"


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
    charts = _over_k(report, "precision"), _over_k(report, "recall"), _tail(report), _calibration(report)
    body = [
        _header(report),
        _section("How good are the lists?", _metrics_table(report)),
        _section("Where the quality comes from", _charts(*charts)),
        _section("Where it is good, and where not", _slices(report)),
        _section("What the model looks at", _charts(_blocks(report), _columns(report))),
        _section("Rows and their labels", _examples(report)),
        _section("What the figures mean", _meanings(report)),
        _section("How this was made", _settings(report)),
    ]
    style = files("metarank.apps.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{style.strip()}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + f"\n<footer>metarank {escape(__version__)}</footer>\n</main></body></html>\n"
    )


def _charts(*charts: str) -> str:
    return f'<div class="charts">{"".join(charts)}</div>' if any(charts) else ""


def _header(report: Report) -> str:
    lead = f'<p class="lead">{escape(report.lead)}</p>' if report.lead else ""
    return f"<header><h1>{escape(report.title)}</h1>{lead}{_facts(report)}</header>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{content}</section>" if content else ""


def _facts(report: Report) -> str:
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in report.facts
    )
    return f'<dl class="facts">{cells}</dl>' if cells else ""


# --- the table of metrics ---


def _metrics_table(report: Report) -> str:
    methods = list(report.metrics)
    names = list(dict.fromkeys(name for values in report.metrics.values() for name in values))
    if not names:
        return ""
    head = "".join(f'<th scope="col">{escape(m)}</th>' for m in methods)
    rows = []
    for name in names:
        values = {m: report.metrics[m][name] for m in methods if name in report.metrics[m]}
        better = max if Metric.parse(name).greater_is_better else min
        known = [v.value for v in values.values() if v.value == v.value]
        best = better(known) if known else None
        cells = "".join(_metric_cell(name, values.get(m), best) for m in methods)
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in report.notes)
    but = ", but Coverage, which counts places" if "Coverage" in names else ""
    return (
        f'<div class="wide"><table><thead><tr><th scope="col">metric</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class='note'>In per cent{but}. Small figures are 95 % bootstrap intervals over the test rows; "
        f"the best value of a line is bold.{_lean(report)}</p>{notes}"
    )


def _lean(report: Report) -> str:
    """How far the lists lean towards rare labels, and what does not."""
    if report.lean is None:
        return ""
    if not report.lean:
        return " The lists do not lean towards rare labels (propensity weight 0)."
    return (
        f" The lists of {MODEL} lean towards rare labels by a propensity weight of {report.lean:g}, and with "
        "them the figures of lists. F1, Hamming loss and other figures of label sets stand on probabilities, "
        "which do not lean."
    )


def _lists_lean(report: Report) -> str:
    return f"Lists with propensity weight {report.lean:g}." if report.lean else ""


# --- slices, meanings, settings ---


def _slices(report: Report) -> str:
    parts = []
    for of, slices in report.slices.items():
        if not slices:
            continue
        names = [name for name in _BY_SLICE if name in slices[0].values]
        sizes = list(slices[0].size)
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in [of, *sizes, *names])
        rows = []
        for part in slices:
            cells = [svg.count(n) for n in part.size.values()]
            cells += [Metric.parse(name).shown(part.values[name]) for name in names]
            rows.append(
                f'<tr><th scope="row">{escape(part.name)}</th>{"".join(f"<td>{c}</td>" for c in cells)}</tr>'
            )
        first = f"By {of}: {_spread(slices, names)}"
        note = f"<p class='note'>{_OF_LABELS}</p>" if of == LABEL_FREQUENCY else ""
        parts.append(
            f'<h3>{escape(first)}</h3><div class="wide"><table class="slices"><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
        )
    return "".join(parts)


def _spread(slices: Sequence[SliceFigures], names: Sequence[str]) -> str:
    """The extremes of the first figure that all slices have."""
    name = next((n for n in names if all(s.values[n] == s.values[n] for s in slices)), None)
    if name is None or len(slices) < 2:
        return f"{len(slices)} slice{'s' * (len(slices) > 1)}"
    low, high = (f(slices, key=lambda s: s.values[name]) for f in (min, max))
    shown = Metric.parse(name).shown
    least, most = shown(low.values[name]), shown(high.values[name])
    if least == most:
        return f"{name} {least} in each"
    return f"{name} from {least} ({low.name}) to {most} ({high.name})"


def _meanings(report: Report) -> str:
    names = dict.fromkeys(name for values in report.metrics.values() for name in values)
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(Metric.parse(name).meaning)}.</dd></div>" for name in names
    )
    return f'<dl class="meanings">{items}</dl>' if items else ""


def _settings(report: Report) -> str:
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in report.settings
    )
    return f'<dl class="settings">{items}</dl>' if items else ""


def _metric_cell(name: str, interval: Interval | None, best: float | None) -> str:
    if interval is None:
        return "<td>–</td>"
    shown = Metric.parse(name).shown
    value = shown(interval.value)
    if best is not None and value == shown(best):
        value = f"<strong>{value}</strong>"
    span = "" if interval.low != interval.low else f"{shown(interval.low)}–{shown(interval.high)}"
    return f"<td>{value}<small>{span}</small></td>"


# --- the charts ---


def _figure(title: str, chart: str, names: Sequence[str] = (), note: str = "", bars: bool = False) -> str:
    key = svg.legend(names, bars=bars) if len(names) > 1 else ""
    caption = f"<p class='note'>{escape(note)}</p>" if note else ""
    return f"<figure><figcaption>{escape(title)}</figcaption>{key}{chart}{caption}</figure>"


def _over_k(report: Report, which: str) -> str:
    curves = report.precision if which == "precision" else report.recall
    if not curves or not report.ks:
        return ""
    first, values = next(iter(curves.items()))
    if which == "precision":
        title = f"Precision: {svg.percent(values[0])} of the first labels of {first} are right"
        label = "share of the first k that is relevant"
    else:
        k = max(k for k in (*_LENGTHS, report.ks[0]) if k in report.ks)
        found = svg.percent(values[list(report.ks).index(k)])
        title = f"Recall: {found} of the relevant labels are among the first {k}"
        label = "share of the relevant found"
    chart = svg.line_chart(title, "k (length of the list)", label, report.ks, curves)
    return _figure(title, chart, list(curves), _lists_lean(report))


def _tail(report: Report) -> str:
    if not report.bins or not report.tail:
        return ""
    first, values = next(iter(report.tail.items()))
    title = (
        f"From rare to frequent labels: {first} finds {svg.percent(values[0])} of the rarest, "
        f"{svg.percent(values[-1])} of the most frequent"
    )
    groups = [b.name for b in report.bins]
    chart = svg.grouped_bars(
        title, "training rows of the label", f"recall at {report.tail_k}", groups, report.tail
    )
    pairs = ", ".join(
        f"{b.name}: {svg.count(b.n_labels)} labels, {svg.count(b.n_pairs)} test pairs" for b in report.bins
    )
    return _figure(
        title,
        chart,
        list(report.tail),
        f"Labels by the number of their training rows ({pairs}). {_lists_lean(report)}".rstrip(),
        bars=True,
    )


def _calibration(report: Report) -> str:
    r = report.reliability
    if r is None or not r.counts.sum():
        return ""
    title = "Calibration: how often a forecast comes true"
    if r.error == r.error:
        title = f"Calibration: forecasts of 10 % and more are off by {100 * r.error:.2g} points on average"
    chart = svg.reliability(title, r.forecast.tolist(), r.observed.tolist(), r.counts.tolist())
    pairs = svg.count(r.counts.sum())
    return _figure(
        title,
        chart,
        note=f"{pairs} candidate pairs in ten bins; on the dashed line forecasts are exact. Probabilities "
        "do not lean towards rare labels.",
    )


def _blocks(report: Report) -> str:
    if report.importance is None or not report.importance.blocks:
        return ""
    names, values = zip(*report.importance.blocks)
    title = f"Sources of evidence: “{names[0]}” moves the score most"
    note = f"The sum of each source's columns, over {svg.count(report.importance.n_pairs)} listed labels."
    return _contributions(title, names, values, range(len(names)), note)


def _columns(report: Report) -> str:
    top = [] if report.importance is None else report.importance.columns
    top = [pair for pair in top if pair[1] > 0][:_TOP_COLUMNS]
    if report.importance is None or not top:
        return ""
    names, values = zip(*top)
    order = [title for title, _ in report.importance.blocks]
    title = f"Columns: the {len(top)} that move the score most"
    groups = [order.index(block_of(name).title) for name in names]
    note = "z(...) is a column standardised within the row's candidates; colours as for the sources."
    if max(groups) >= svg.SERIES:
        note += " Sources of little effect are grey."
    return _contributions(title, names, values, groups, note)


def _contributions(
    title: str, names: Sequence[str], values: Sequence[float], groups: Sequence[int], note: str
) -> str:
    chart = svg.horizontal_bars(title, "mean |contribution| to the score", names, values, groups)
    return _figure(title, chart, note=note)


# --- the examples ---


def _examples(report: Report) -> str:
    cards = "".join(_example(e) for e in report.examples)
    note = f"<p class='note'>{escape(report.examples_note)}</p>" if cards and report.examples_note else ""
    return note + cards


def _example(e: Example) -> str:
    text = e.text if len(e.text) <= 280 else e.text[:280].rsplit(" ", 1)[0] + " …"
    parts = [f"<article><h3>{escape(e.title)}</h3><p>{escape(text)}</p>"]
    if e.note:
        parts.append(f"<p class='note'>{escape(e.note)}</p>")
    if e.found:
        parts.append(_suggestions("Found", "found", e.found))
    if e.missed:
        items = "".join(
            f"<li><b>{escape(name)}</b> <small>stands {f'at {rank}' if rank else _FAR}</small></li>"
            for name, rank in e.missed
        )
        parts.append(f'<h4 class="missed">Missed</h4><ul>{items}</ul>')
    if e.proposed:
        parts.append(_suggestions("Newly proposed", "new", e.proposed))
    return "".join(parts) + "</article>"


def _suggestions(title: str, css: str, suggestions: Sequence[Suggestion]) -> str:
    items = []
    for s in suggestions:
        why = "; ".join(
            f"{escape(r.text)} <span class='effect'>{r.contribution:+.{DIGITS}f}</span>" for r in s.reasons
        )
        note = f" <em>{escape(s.note)}</em>" if s.note else ""
        items.append(
            f"<li><b>{escape(s.name)}</b> "
            f"<small>place {s.rank}, score {s.score:.{DIGITS}f}, "
            f"probability {svg.percent(s.probability)}</small>{note}"
            f"<div class='why'>{why}</div></li>"
        )
    return f'<h4 class="{css}">{title}</h4><ul>{"".join(items)}</ul>'

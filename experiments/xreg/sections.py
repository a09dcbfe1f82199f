"""The sections of results.md: findings.md, which is written by hand, then the figures of runs alone."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from ablations import FIXED_ALPHA
from pages import bullets, number, table, verdict
from problems import NATURAL, SEED, Problem
from study import Figures, digest_of_sources, labelwise
from systems import PEERS, SHORT_LISTS

import metarank

PAPER = json.loads(Path(__file__).with_name("paper.json").read_text())
_FINDINGS = Path(__file__).with_name("findings.md")
# Columns in per cent; all others are errors, in shares of the greatest relevance, or areas.
_PER_CENT = ("WP", "PSP", "Tau", "nDCG")
_GRADED = ("LastFM-ArtistTags-graded", "MovieLens-small-users")
_LABELWISE = ("MovieLens-small-users", "extreme-labelwise")
_XREGS = ("XReg", "XReg, chosen maxima", "XReg-t", "XReg-t, chosen maxima")
_WITHOUT_UNIT = "RankSVM, sampled"
# Not the authors' programs.
_OURS = {
    _WITHOUT_UNIT: "RankSVM-like, sampled \\*",
    "DiSMEC": "DiSMEC-like: `OneVsAll`, squared hinge \\*",
    "low rank (LEML)": "LEML-like, low rank \\*",
}


@dataclass
class Results:
    """Figures by set and system, and the rows of the smaller tables by name and set."""

    problems: dict[str, Problem] = field(default_factory=dict)
    figures: dict[str, dict[str, Figures]] = field(default_factory=dict)
    rows: dict[str, dict[str, list[Figures]]] = field(default_factory=dict)

    def done(self, name: str) -> dict[str, Figures]:
        """The runs of a set that were made."""
        return {s: f for s, f in self.figures.get(name, {}).items() if "failed" not in f}


def write(results: Results, figure: str | None) -> str:
    """The whole page, of whatever was run."""
    sections = [
        "# Extreme regression: the tables of Prabhu et al. (2020)",
        _FINDINGS.read_text().strip(),
        introduction(),
        propensity_claim(results),
        labelwise_claim(results),
        graded_claim(results),
        *(set_table(results, name) for name in results.problems if results.done(name)),
        reranking_table(results),
        ""
        if figure is None
        else f"## Precision and recall\n\n![precision-recall curves]({figure})\n\n"
        "All pairs of points and labels, kept by one threshold on the predicted relevance; XReg-zero is "
        "XReg's ranking with all sizes lost.",
        regret_table(results),
        parameter_table(results),
        provenance(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def introduction() -> str:
    return (
        "metarank's estimators have their default parameters but for what a row is about: the "
        "relevance learned from; how many ways a tree branches (16 by default, two in the paper); the "
        "maxima that XReg divides relevances by, one for all labels as in the paper, or in *own "
        'maxima* `normalize="label"` and in *chosen maxima* `normalize="auto"`, which asks held-out '
        'training rows; `tail="auto"` in XReg-t; `loss="logistic"` in *XReg, binary relevance* (the '
        "paper's Parabel-logloss); `OneVsAll`'s loss, and in *1-vs-all logistic*, an XReg, a flat "
        "hierarchy of one node. Where relevances are inverse propensities, own maxima leave shares of "
        '0 and 1, which are learned by the squared hinge, unless "logistic" is said. Rows marked \\* '
        "are our own re-implementations of the methods, not their authors' programs. The test parts "
        "only judge. WP@k, Tau@k and nDCG@k in per cent; errors in shares of the greatest relevance of "
        'the training part; "-l": labelwise, points ranked for every label, averaged over labels. On '
        "the labelwise sets XReg and XReg-t rank points for labels unless *pointwise* is said, all "
        "others labels for points. Relevances are inverse propensities (WP@k is then PSP@k) but for "
        "LastFM-ArtistTags-graded, log2(1 + users who gave the tag), and MovieLens-small-users, the "
        "rating. Lists hold 100 labels a point; what is not listed is predicted 0. Systems that know "
        "only relevant and irrelevant (Parabel, DiSMEC-like, the peers) have their probability times "
        "the greatest relevance as prediction; scores of the RankSVM-like ranker have no unit, and so "
        "no errors. Rows of X have unit length for all, on bibtex since a first look at test figures "
        "of unscaled rows. Times are CPU seconds of one thread on a shared machine, which other work "
        "lengthens: shortlist_speed is the comparison of times."
    )


def propensity_claim(results: Results) -> str:
    """PSP of XReg with inverse propensities as relevance against every peer, on natural long tails."""
    names = [name for name in NATURAL if results.done(name)]
    if not names:
        return ""
    parts = ["## Inverse propensities as relevance: PSP@1, 3, 5 on natural long tails"]
    columns = ("WP@1", "WP@3", "WP@5")
    rows, above, better = [], [], []
    for name in names:
        done = results.done(name)
        shown = [system for system in (*_XREGS, "XReg, own maxima", "Parabel", *PEERS) if system in done]
        rows += [
            [name, system, *(_cell(column, done[system]["metrics"][column]) for column in columns)]
            for system in shown
        ]
        ours = {s: [done[s]["metrics"][c] for c in columns] for s in _XREGS if s in done}
        peers = {s: [done[s]["metrics"][c] for c in columns] for s in PEERS if s in done}
        missing = [s for s in PEERS if s not in done]
        without = f" (without {', '.join(missing)})" if missing else ""
        for system, values in ours.items():
            beaten_by = [s for s, other in peers.items() if any(o >= v for o, v in zip(other, values))]
            against = "" if not beaten_by else f": not above {', '.join(beaten_by)}"
            above.append(f"{name}, {system} above every peer{without}: {verdict(not beaten_by)}{against}")
        for less, more in (("XReg", "XReg-t"), ("XReg, chosen maxima", "XReg-t, chosen maxima")):
            if less in ours and more in ours:
                gains = [100 * (t - x) for x, t in zip(ours[less], ours[more])]
                told = ", ".join(f"{gain:+.2f}" for gain in gains)
                better.append(f"{name}, {more} above {less}: {verdict(min(gains) > 0)} ({told})")
    table_of = table(["set", "system", "PSP@1", "PSP@3", "PSP@5"], rows)
    return "\n\n".join([*parts, table_of, bullets(above + better)])


def labelwise_claim(results: Results) -> str:
    """Labelwise against pointwise prediction (Table 5)."""
    names = [name for name in _LABELWISE if results.done(name)]
    if not names:
        return ""
    systems = (
        "Parabel, 10 labels a point",
        "Parabel",
        "XReg, binary relevance",
        "XReg, 10 labels a point",
        "XReg, pointwise",
        "XReg",
        "XReg, two-way trees",
        "XReg, own maxima",
        "XReg-t",
        "XReg-t, chosen maxima",
    )
    columns = ("WP-l@1", "WP-l@3", "WP-l@5", "Tau-l@5")
    rows, lines = [], []
    for name in names:
        done = results.done(name)
        rows += [
            [name, _direction(s), *(_cell(c, done[s]["metrics"][c]) for c in columns)]
            for s in systems
            if s in done
        ]
        if "XReg" in done:
            sizes = results.problems[name]
            label_count, points = sizes.Y.shape[1], sizes.Y_test.shape[0]
            lines.append(f"{name}: {label_count:,} labels, {points:,} test points")
            for other in ("XReg, 10 labels a point", "XReg, pointwise", "Parabel"):
                if other in done:
                    margin = 100 * (done["XReg"]["metrics"]["WP-l@5"] - done[other]["metrics"]["WP-l@5"])
                    lines.append(
                        f"{name}, XReg labelwise above {_direction(other)}, in WP-l@5: "
                        f"{verdict(margin > 0)} ({margin:+.2f})"
                    )
    head = ["set", "prediction", *columns]
    return "\n\n".join(["## Labelwise prediction (Table 5)", table(head, rows), bullets(lines)])


def _direction(system: str) -> str:
    if system == "Parabel":
        return "Parabel, pointwise, 100 labels"
    if system in ("XReg, pointwise", "XReg, binary relevance"):
        return f"{system.replace(', pointwise', '')}, pointwise, 100 labels"
    if "10 labels" in system:
        return system.replace("10 labels a point", "pointwise, 10 labels")
    return f"{system}, labelwise"


def graded_claim(results: Results) -> str:
    """XReg's errors and filtering against those of the same trees without grades."""
    names = [name for name in _GRADED if results.done(name)]
    if not names:
        return ""
    columns = ("XMAD@5", "XRMSE@5", "AUPRC", "WP@5")
    rows, lines = [], []
    for name in names:
        done = results.done(name)
        graded = "XReg, pointwise" if "XReg, pointwise" in done else "XReg"
        shown = [s for s in ("Parabel", "XReg, binary relevance", graded) if s in done]
        rows += [[name, s, *(_cell(c, done[s]["metrics"][c]) for c in columns)] for s in shown]
        if "Parabel" in done and graded in done:
            ours, theirs = done[graded]["metrics"], done["Parabel"]["metrics"]
            held = {
                "XMAD@5 below": ours["XMAD@5"] < theirs["XMAD@5"],
                "XRMSE@5 below": ours["XRMSE@5"] < theirs["XRMSE@5"],
                "AUPRC above": ours["AUPRC"] > theirs["AUPRC"],
            }
            lines += [f"{name}, XReg's {what} Parabel's: {verdict(holds)}" for what, holds in held.items()]
    text = (
        "Pointwise lists of both. *XReg, binary relevance*: XReg's own logistic trees, trained from relevant "
        "or not."
    )
    head = ["set", "system", *columns]
    return "\n\n".join(["## Graded relevance", text, table(head, rows), bullets(lines)])


def set_table(results: Results, name: str) -> str:
    """All systems on a set (Tables 2 and 7), the paper's figures beside where it has the set."""
    problem, done = results.problems[name], results.done(name)
    columns = ["WP@1", "WP@3", "WP@5", "Tau@1", "Tau@3", "Tau@5"]
    columns += [] if problem.spec.labelwise else ["nDCG@5"]
    columns += ["XMAD@5", "XRMSE@5"]
    columns = [labelwise(c) if problem.spec.labelwise else c for c in columns]
    columns += ["MAD-l" if problem.spec.labelwise else "MAD", "AUPRC"]
    head = [c.replace("WP", "PSP") if _is_propensity(problem) else c for c in columns]
    rows = []
    for system, figures in done.items():
        if system in SHORT_LISTS:
            continue
        unit = system != _WITHOUT_UNIT
        cells = [_cell(c, figures["metrics"][c]) if unit or not _is_error(c) else "-" for c in columns]
        costs = [number(figures[c]) for c in ("train_s", "test_ms", "model_mib")]
        rows.append([_shown(system, figures), *cells, *costs])
    n, n_features = problem.X.shape
    sizes = (
        f"{n:,} training and {problem.X_test.shape[0]:,} test points, {n_features:,} features, "
        f"{problem.Y.shape[1]:,} labels, {problem.Y.nnz / n:.1f} a point; greatest relevance "
        f"{problem.scale:.3g}."
    )
    parts = [f"## {name} (Tables 2 and 7)", sizes]
    parts += [table(["system", *head, "train s", "test ms", "model MiB"], rows)]
    left_out = [
        f"{_OURS.get(s, s)}: {f['failed']}" for s, f in results.figures[name].items() if "failed" in f
    ]
    if left_out:
        parts.append("Not here: " + "; ".join(left_out) + ".")
    if name in PAPER:
        rows = [
            [f"paper: {system}", *(_paper_cell(c, v) for c, v in zip(PAPER["columns"], values))]
            for system, values in PAPER[name].items()
        ]
        parts.append(table(["", *PAPER["columns"]], rows))
    return "\n\n".join(parts)


def _shown(system: str, figures: Figures) -> str:
    """The name of a row, and what was chosen for it on held-out training rows."""
    chosen = list(figures.get("chosen", {}).values())
    chosen += [f"alpha {figures['alpha']:g}"] if "alpha" in figures else []
    return _OURS.get(system, system) + (f" ({', '.join(chosen)})" if chosen else "")


def reranking_table(results: Results) -> str:
    """Table 3: good sizes of relevance, not good rankings alone, make good filters and good re-ranking."""
    rows = [
        [
            name,
            row["name"],
            _cell("AUPRC", row["AUPRC"]),
            *(_cell("WP", row[c]) for c in (row["metric"], "reranked")),
            f"{row['alpha']:g}",
            _cell("WP", row["fixed"]),
            f"{row['careful']:g}",
            *(_cell(c, row[c]) for c in ("XMAD@5", "MAD")),
        ]
        for name, of_set in results.rows.get("reranking", {}).items()
        for row in of_set
    ]
    if not rows:
        return ""
    head = ["set", "relevances of", "AUPRC", "WP@5", "WP-rerank@5", "alpha"]
    head += [f"at alpha {FIXED_ALPHA:g}", "careful alpha", "XMAD@5", "MAD"]
    text = (
        "Relevances combined with the same tail classifiers; WP@5 is that of alpha = 1, without them. "
        "alpha is the best below 1 for WP@5 on a fifth of the training points with all models fitted "
        "on the others. *Careful alpha* is what `choose_alpha` takes there by itself, the largest "
        "alpha within a standard error of the best: where it is 1, re-ranking is not worth it on "
        "held-out points. XReg-zero is XReg's ranking with all sizes lost. MovieLens-small-users: "
        "WP-l@5, of points ranked for labels but for Parabel's."
    )
    parts = ["## Filtering and re-ranking (Table 3)", text, table(head, rows)]
    return "\n\n".join([*parts, bullets(_what_reranking_shows(results))])


def _what_reranking_shows(results: Results) -> list[str]:
    lines = []
    for name, of_set in results.rows["reranking"].items():
        row = {r["name"]: r for r in of_set}
        xreg, gain = row["XReg"], 100 * (row["XReg"]["reranked"] - row["XReg"][row["XReg"]["metric"]])
        lines.append(f"{name}, re-ranking raises WP@5 of XReg: {verdict(gain > 0)} ({gain:+.2f})")
        for other in ("Parabel", "XReg-zero"):
            filters, reranks, errs = (
                xreg[column] - row[other][column] for column in ("AUPRC", "reranked", "XMAD@5")
            )
            lines.append(
                f"{name}, XReg against {other}: filters better (AUPRC) {verdict(filters > 0)}, re-ranked it "
                f"is better (WP-rerank@5) {verdict(reranks > 0)} ({100 * reranks:+.2f}), has smaller errors "
                f"(XMAD@5) {verdict(errs < 0)}"
            )
    return lines


def regret_table(results: Results) -> str:
    """Table 4: how closely errors bound the regret of the ranking."""
    rows = []
    for name, problem in results.problems.items():
        of_labels = problem.spec.labelwise
        for system, figures in results.done(name).items():
            if system in (*SHORT_LISTS, _WITHOUT_UNIT):
                continue
            values = figures["metrics"]
            regret, xmad, mad = (
                values[labelwise(c) if of_labels else c] for c in ("WP-regret@5", "XMAD@10", "MAD")
            )
            if regret > 0:
                row = [name, _OURS.get(system, system), f"{regret:.4f}", f"{2 * xmad:.4f}", f"{mad:.2f}"]
                rows.append([*row, f"{2 * xmad / regret:.2f}", f"{mad / regret:.1f}"])
    head = ["set", "system", "WP-regret@5", "2 XMAD@10", "MAD", "2 XMAD@10 / regret", "MAD / regret"]
    text = "Labelwise for MovieLens-small-users and extreme-labelwise."
    return "\n\n".join(["## Regret and errors (Table 4)", text, table(head, rows)]) if rows else ""


def parameter_table(results: Results) -> str:
    """Table 8: one parameter at a time."""
    rows = []
    for name, of_set in results.rows.get("parameters", {}).items():
        for row in of_set:
            values = [_cell(c, row[c]) for c in ("WP@5", "Tau@5", "XMAD@5")]
            costs = [number(row[c]) for c in ("train_s", "test_ms", "model_mib")]
            rows.append([name, f"{row['parameter']} = {row['value']}", *values, *costs])
    text = (
        "XReg on a fifth of the training points, trained on the others; labelwise for MovieLens-small-users "
        "(*factor*: F of Algorithm 1). The defaults are n_trees = 3, beam = 10, max_leaf = 100, factor = 4."
    )
    head = ["set", "parameter", "WP@5", "Tau@5", "XMAD@5", "train s", "test ms", "model MiB"]
    return "\n\n".join(["## Parameters (Table 8)", text, table(head, rows)]) if rows else ""


def provenance(results: Results) -> str:
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, seed {SEED}",
        f"metarank {metarank.__version__}, numpy {version('numpy')}, scipy {version('scipy')}",
        f"sha256 of metarank's sources: {digest_of_sources()}",
        "the findings on top are written by hand, in findings.md",
        "peers: as in shortlist_speed/settings.py, versions as in shortlist_speed/environments.py",
    ]
    now = digest_of_sources()
    older = {
        f"{system} on {name}"
        for name in results.problems
        for system, figures in results.done(name).items()
        if figures["sources"] != now and system not in PEERS
    }
    if older:
        lines.append(f"measured with another state of the sources: {', '.join(sorted(older))}")
    lines += [f"sha256 of {name}: {problem.checksum}" for name, problem in results.problems.items()]
    return "## How it was made\n\n" + bullets(lines)


def _is_propensity(problem: Problem) -> bool:
    return problem.spec.relevance == "inverse propensity"


def _is_error(column: str) -> bool:
    return column.startswith(("XMAD", "XRMSE", "MAD"))


def _cell(column: str, value: float) -> str:
    if column.startswith(_PER_CENT):
        return f"{100 * value:.2f}"
    return f"{value:.2f}" if column.startswith("MAD") else f"{value:.4f}"


def _paper_cell(column: str, value: float | None) -> str:
    """As the paper prints it, in per cent already."""
    if value is None:
        return "-"
    return f"{value:.2f}" if column.startswith(_PER_CENT) else f"{value:.4f}"

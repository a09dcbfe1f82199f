"""The sections of estimates.md that results.md does not have."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from borrowed import SEED, Figures, Problem, bullets, digest_of_sources, number, table, verdict
from fits import RESAMPLES
from held_out import ALPHAS
from likelihood import ALPHA, KS
from relations import Relation

import metarank
from metarank.metrics.propensity import PRESETS

# Points of PSP, as the paper's "0.2 %" of accuracy.
_NEAR = 0.2


@dataclass
class Made:
    """Whatever was run."""

    problems: dict[str, Problem]
    relations: dict[str, tuple[Relation, Figures]] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    solutions: dict[str, list[Figures]] = field(default_factory=dict)
    figures: dict[str, dict[str, Figures]] = field(default_factory=dict)
    alphas: list[Figures] = field(default_factory=list)
    lengths: list[Figures] = field(default_factory=list)


def relations_chapter(made: Made) -> str:
    """Section 5 and Fig. 2."""
    if not made.relations:
        return ""
    rows, errors, masked, notes = [], [], [], []
    for name, (relation, f) in made.relations.items():
        shown = [name, relation.kind, f"{f['labels']:,}", f"{f['n_points']:,}", f"{f['most']:,}"]
        shown += [_once(f["of_once"], f["once"]), f"{f['at_one']:.2f}"]
        if "a" not in f:
            rows.append([*shown, "too few", "too few", "-"])
        else:
            spread = f["resampled"]
            bound = f"{'yes' if f['at_bound'] else 'no'}, {spread['at_bound']} of {spread['fits']}"
            rows.append([*shown, _range(f["a"], spread["a"]), _range(f["b"], spread["b"]), bound])
            columns = ("fit", *PRESETS, "constant", "free")
            errors.append([name, *(f"{f['errors'][column]:.3f}" for column in columns)])
        if "masked" in f:
            m = f["masked"]
            masked.append([name, f"{m['a']:.2f}", f"{m['b']:.3g}", "yes" if m["at_bound"] else "no"])
            masked[-1] += [_once(m["of_once"]), f"{f['at_one']:.2f}", f"{m['bias']:+.2f}"]
        examples = f" Drawn: {'; '.join(relation.examples)}." if relation.examples else ""
        notes.append(f"{name}: {relation.what}.{examples}")
    close = [row[0] for row in errors if float(row[1]) <= 0.5 * min(map(float, row[2:6]))]
    inside = [name for name, (_, f) in made.relations.items() if "a" in f and not f["at_bound"]]
    head = ["relation", "method", "labels", "N", "greatest N_l", "p where N_l = 1", "1 / log N"]
    parts = [
        "## Propensities of real relations (section 5, Fig. 2)",
        "Eq. 1 fitted by least squares to the propensity of each label; by symmetry each label "
        "counts by its known "
        f"pairs. In brackets 5 to 95 % over {RESAMPLES} draws of the labels with replacement, and how "
        "many of "
        "these fits are at a bound of the search (a and b within 0.001, and 10 or 10,000). Whatever "
        "a and b, eq. "
        "1 is 1 / log N at N_l = 1. The paper has A = 0.5, B = 0.4 for Wikipedia's hierarchy and "
        "A = 0.6, B = 2.6 for Amazon.",
        table([*head, "A", "B", "at a bound, of the draws"], rows),
        bullets(notes),
        "How close curves are: root mean square, over bins of 20 labels of similar counts (at least "
        "five bins), of "
        "the bin's mean propensity less the curve. *free*: C of eq. 1 fitted too, in place of (log N "
        "- 1) (B + 1)^A.",
        table(["relation", "eq. 1, fitted", *PRESETS, "a constant", "free"], errors),
        bullets(
            [
                "eq. 1 fitted at most half as far as every preset and a constant: "
                f"{', '.join(close) or 'none'}",
                f"the fit lies inside the bounds: {', '.join(inside) or 'none'}",
            ]
        ),
    ]
    if masked:
        parts += [
            "What the methods find where the truth is known: the labels are completed by the "
            "relation, pairs are "
            "removed by the default curve (A = 0.55, B = 1.5) and estimated again. *bias*: the mean of the "
            "estimate less the curve.",
            table(["relation", "A", "B", "at a bound", "p where N_l = 1", "in truth", "bias"], masked),
        ]
    parts += [f"![{name}]({picture.name})" for name, picture in made.pictures.items()]
    return "\n\n".join(parts)


def likelihood_chapter(made: Made) -> str:
    """Eq. 6 against eq. 7."""
    rows, near = [], []
    for name, of_set in made.solutions.items():
        for row in of_set:
            cells = []
            for k in KS:
                means, difference = row[f"means {k}"], row[f"likelihood {k}"] - row[f"means {k}"]
                cells += [f"{100 * means:.2f}", f"{100 * difference:+.2f} ({100 * row[f'error {k}']:.2f})"]
                if row["form"] == "as published":
                    near.append(abs(100 * difference))
            seconds = [number(row[f"{solution} s"]) for solution in ("means", "likelihood")]
            rows.append([name, row["form"], *cells, *seconds])
    if not rows:
        return ""
    head = [f"{kind}@{k}" for k in KS for kind in ("means: PSP", "likelihood: PSP")]
    return "\n\n".join(
        [
            "## Eq. 6 against the means of eq. 7",
            f"PfastreXML with whole means, alpha {ALPHA:g} as published, in per cent: PSP@k with the "
            "means, and what "
            "the maximum of the likelihood adds (in brackets the standard error over test points drawn with "
            "replacement). *as published*: gamma 30, means as they are. The paper: the means are 0.2 % worse "
            "than the solution of stochastic gradient descent, on its smaller sets.",
            table(["set", "form", *head, "means: train s", "likelihood: train s"], rows),
            bullets(
                [
                    f"means within {_NEAR} of the likelihood as published, PSP@1, 3, 5 of "
                    f"{len(made.solutions)} "
                    f"sets: {verdict(max(near) <= _NEAR)} (at most {max(near):.2f})"
                ]
            ),
        ]
    )


def held_out_chapter(made: Made) -> str:
    """LastFM's PSP@1."""
    if not made.alphas:
        return ""
    rows = []
    for row in made.alphas:
        for metric in ("PSP@1", "mean"):
            shown = "mean of PSP@1, 3, 5" if metric == "mean" else metric
            cells = [f"{100 * value:.2f}" for value in row[metric]]
            best = f"{row['chosen']:g}" if metric == "mean" else ""
            rows.append([row["points"], str(row["trees"]), shown, *cells, best])
        if "errors" in row:
            cells = [f"{100 * error:.2f}" for error in row["errors"]]
            rows.append(["", "", "std. error of PSP@1 less that of 1", *cells, ""])
    head = [f"{alpha:g}" for alpha in ALPHAS]
    parts = [
        "## The first label of LastFM-ArtistTags: held-out points and test points",
        "PfastreXML by alpha (1 is PfastXML), means as printed. Held out: means over five folds of "
        "the training "
        "points, judged on labels that the other points have, as the test part is; *as new ones*: "
        "without the "
        "features that no other point has. The best alpha by the mean is chosen within a fit, on one "
        "fold and "
        "with ten trees.",
        table(["points", "trees", "", *head, "best"], rows),
        "By how many features a test point has (50 trees), PSP@1:",
        table(
            ["features", "training points", "test points", *head],
            [
                [
                    row["features"],
                    f"{100 * row['training']:.1f} %",
                    f"{100 * row['test']:.1f} %",
                    *(f"{100 * value:.2f}" for value in row["PSP@1"]),
                ]
                for row in made.lengths
            ],
        ),
    ]
    return "\n\n".join(parts)


def provenance(made: Made) -> str:
    now = digest_of_sources()
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, seed {SEED}",
        f"metarank {metarank.__version__}, numpy {version('numpy')}, scipy {version('scipy')}",
        f"sha256 of metarank's sources: {now}",
        "the findings on top are written by hand, in estimates_findings.md",
    ]
    older = {
        f"{system} on {name}"
        for name, systems in made.figures.items()
        for system, figures in systems.items()
        if figures.get("sources", now) != now
    }
    if older:
        lines.append(f"measured with another state of the sources: {', '.join(sorted(older))}")
    lines += [f"sha256 of {name}: {problem.checksum}" for name, problem in made.problems.items()]
    lines += [
        f"sha256 of the files of {name}: {relation.checksum}"
        for name, (relation, _) in made.relations.items()
        if relation.checksum
    ]
    return "## How it was made\n\n" + bullets(lines)


def _once(value: float | None, size: int | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + ("" if size is None else f" (of {size:,})")


def _range(value: float, ends: Any) -> str:
    low, high = ends
    return (
        f"{value:.2g} ({low:.2g} to {high:.2g})" if value < 0.1 else f"{value:.2f} ({low:.2f} to {high:.2f})"
    )

"""Do the figures that metarank gives of itself hold on the test part?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import page_parts
from declared import Figures, Lines, Study, System

prose = page_parts.prose_of(globals())

SETS = ("emotions", "yeast", "bibtex", "pydocs", "LLMs4Subjects-dev-en")
METARANK = System("metarank", "honesty", {"kind": "metarank"})
SYSTEMS = (
    METARANK,
    System("logistic one-vs-rest", "honesty", {"kind": "logistic"}, sets=SETS[:4]),
    # On words it takes many minutes.
    System("LightGBM one-vs-rest", "honesty", {"kind": "lightgbm"}, sets=SETS[:2]),
)
WIDTH = 1.96  # standard errors on each side of a 95 % interval


def quality(lines: Lines) -> str:
    rows, held, near = [], 0, 0
    for line in ours(lines):
        told = "{}: {:.2f} labels a row in the fit, {:.2f} in the test part".format(
            line["set"], *line["labels_a_row"]
        )
        for name, (promised, true) in line["quality_told"].items():
            gap, error = true[0] - promised[0], math.hypot(*map(error_within, (promised, true)))
            cells = [f"{value:.3g} [{low:.3g}, {high:.3g}]" for value, low, high in (promised, true)]
            holds = promised[1] <= true[0] <= promised[2]
            held, near = held + holds, near + (abs(gap) <= WIDTH * error)
            rows.append([told, name, *cells, verdict(holds, gap, error)])
            told = ""
    counted = f"Within its interval: {held} of {len(rows)}; within {WIDTH} standard errors of both: {near}."
    return f"{counted}\n\n{page_parts.table(['set', '', 'promised', 'true', 'within its interval'], rows)}"


def error_within(interval: Sequence[float]) -> float:
    """The standard error that a 95 % interval tells."""
    return (interval[2] - interval[1]) / 2 / WIDTH


def guarantees(lines: Lines) -> str:
    rows = []
    for line in ours(lines):
        for wish, found in line["guarantees"].items():
            of, _, level = wish.partition(">=")
            if isinstance(found, str):
                rows.append([line["set"], of, f"not {level}: {found}", "", "", ""])
                continue
            value, error, size = found
            holds = verdict(value >= float(level), value - float(level), error)
            rows.append([line["set"], of, f"at least {level}", f"{value:.3f}", holds, f"{size:.1f}"])
    return page_parts.table(["set", "", "promised", "true", "kept", "labels a row"], rows)


def decisions(lines: Lines) -> str:
    rows = []
    for line in ours(lines):
        told = line["set"]
        for missed, (own, best, nothing) in line["costs"].items():
            rows.append([told, missed, f"{own:.3g}", f"{best:.3g}", f"{own / best:.3f}", f"{nothing:.3g}"])
            told = ""
    head = ["set", "a missed label costs", "a row", "best cut in hindsight", "ratio", "no label at all"]
    surest = [
        [line["set"], *(f"{100 * expected:.0f} → {100 * true:.0f}" for expected, true in line["rows"])]
        for line in ours(lines)
    ]
    tenths = ["set", "surest tenth", *(f"{n}." for n in range(2, 10)), "least sure"]
    parts = [page_parts.table(head, rows), prose("ROWS"), page_parts.table(tenths, surest)]
    return "\n\n".join(parts)


def verdict(holds: bool, gap: float, error: float) -> str:
    return "yes" if holds else f"**no**, {gap / error:+.1f} standard errors" if error else "**no**"


def ours(lines: Lines) -> list[Figures]:
    found = (line for name in lines.sets for line in lines.of(name, METARANK.name))
    return [line for line in found if "failed" not in line]


def calibration(lines: Lines, dataset: str) -> str:
    ran = [line for s in SYSTEMS for line in lines.of(dataset, s.name) if "failed" not in line]
    rows = [
        [f".{b} to {'1' if b == 9 else f'.{b + 1}'}", *(of_bin(line["bins"][b]) for line in ran)]
        for b in range(10)
    ]
    rows.append(["expected calibration error", *(f"{error_of(line['bins']):.3f}" for line in ran)])
    return page_parts.table(["probability", *(line["system"] for line in ran)], rows)


def of_bin(found: Sequence[float]) -> str:
    """Promised → true (pairs); bold where chance alone would seldom have it so."""
    n, promised, true = found
    if not n:
        return "–"
    within = abs(true - promised) <= WIDTH * math.sqrt(promised * (1 - promised) / n) + 0.5 / n
    return f"{promised:.3f} → {f'{true:.3f}' if within else f'**{true:.3f}**'} ({n})"


def error_of(bins: Sequence[Sequence[float]]) -> float:
    """The mean distance of probability and share, by pairs."""
    return sum(n * abs(true - promised) for n, promised, true in bins) / sum(n for n, *_ in bins)


def page(lines: Lines) -> str:
    failed = [f"{line['set']}, {line['system']}: {line['failed']}" for line in lines if "failed" in line]
    parts = ["# Do the figures that metarank gives of itself hold?", prose("HEAD"), *failed]
    parts += ["## Quality of held-out rows", prose("QUALITY"), quality(lines)]
    parts += ["## Guaranteed label sets", prose("GUARANTEES"), guarantees(lines)]
    parts += ["## Costs, and single rows", prose("COSTS"), decisions(lines)]
    parts += ["## Probabilities", prose("PROBABILITIES")]
    for name in lines.sets:
        parts += [f"### {name}", calibration(lines, name)]
    return "\n\n".join(parts)


STUDY = Study("honesty", SETS, SYSTEMS, None, page)

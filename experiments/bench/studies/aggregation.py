"""Several labels, one ranking: tables, figures and claims of Lukasik et al. (2025), with a verdict each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mq2008
import numpy as np
from declared import Lines, Study, System
from page_parts import prose_of, table
from scipy import stats
from sets import DATA
from systems.aggregation import banking, enumeration, letor, perceptron, theory
from systems.aggregation.banking import CLIPPED, LABEL, LOSS, QUANTILES

prose = prose_of(globals())

PAPER = json.loads(Path(__file__).with_name("aggregation.json").read_text())
BOTH = (LABEL, LOSS)
SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)
BANK, FORMULAS, ALL_SCORERS, MQ2008 = "bank-full", "formulas", "all scorers", "MQ2008"
TRAINED = tuple(f"Table 6, share {share:g}" for share in SHARES)
REPRODUCED, REFUTED, UNDECIDED = "**reproduced**", "**refuted**", "undecided"
# Of what a chapter finds: (name of a claim in aggregation.json, what is found, verdict).
Verdicts = list[tuple[str, str, str]]
Answers = Mapping[str, Any]


def interval(values: np.ndarray) -> tuple[float, float]:
    """Of a mean, at 95 %, by Student's t."""
    values = np.ravel(values)
    half = stats.t.ppf(0.975, values.size - 1) * stats.sem(values)
    return values.mean() - half, values.mean() + half


def told(values: np.ndarray) -> str:
    low, high = interval(values)
    return f"{np.mean(values):+.3f} ({low:+.3f} to {high:+.3f})"


def with_error(values: np.ndarray) -> str:
    return f"{np.mean(values):.3f} ± {stats.sem(np.ravel(values)):.3f}"


def verdict(values: np.ndarray) -> str:
    """Of the claim that a mean is negative."""
    low, high = interval(values)
    return REPRODUCED if high < 0 else REFUTED if low > 0 else UNDECIDED


def of_all(holds: Sequence[bool]) -> str:
    if all(holds) or not any(holds):
        return REPRODUCED if all(holds) else REFUTED
    return f"{REPRODUCED} in {sum(holds)} of {len(holds)}"


def paired(columns: Sequence[str]) -> list[str]:
    return [f"{column}, {how.split()[0]}" for column in columns for how in BOTH]


def table3(bank: Answers) -> tuple[Verdicts, str]:
    mean = {name: bank[name].mean(axis=(0, 1)) for name in banking.OBJECTIVES}
    paper = {name: np.array(values)[:, 0] for name, values in PAPER["table 3"].items()}
    away = {name: np.abs(mean[name] - paper[name]).max() for name in mean}
    apart = bank[LABEL] - bank[LOSS]
    verdicts: Verdicts = []
    compared = ("min", banking.OBJECTIVES, "the next best", -1, 3), ("diff", BOTH, LOSS, 1, 2)
    for key, others, rival, sign, column in compared:
        for scaling in (CLIPPED, QUANTILES):
            at = "" if scaling == CLIPPED else f"{scaling}: "
            gaps = [sign * (bank[at + LABEL] - bank[at + o])[..., column] for o in others if o != LABEL]
            nearest = max(gaps, key=np.mean)
            here = f"{at}{bank[at + LABEL][..., column].mean():.3f}; against {rival} {told(sign * nearest)}"
            verdicts.append((key, here, verdict(nearest)))
    verdicts.append(
        (
            "rows",
            "farthest: " + ", ".join(f"{name} {gap:.3f}" for name, gap in away.items()),
            of_all([gap <= 0.02 for gap in away.values()]),
        )
    )
    rates = [verdict(by_rate) for by_rate in apart[..., 2]]
    here = f"smaller at {rates.count(REPRODUCED)} of {len(rates)} rates, greater at {rates.count(REFUTED)}"
    verdicts.append(("rates", here, f"holds at {rates.count(REPRODUCED)}"))
    rows = []
    for name in banking.OBJECTIVES:
        rows.append([name, *(with_error(bank[name][..., c]) for c in range(4))])
        rows.append(["*paper*", *(f"*{value:.3f} ± {error:.3f}*" for value, error in PAPER["table 3"][name])])
    by_rate = []
    for r, rate in enumerate(banking.RATES):
        means = [f"{bank[how][r, :, c].mean():.3f}" for c in range(4) for how in BOTH]
        by_rate.append([f"{100 * rate:.0f} %", *means, told(apart[r, :, 2])])
    head = ["mortgages", *paired(banking.COLUMNS), "Diff AUC, label - loss"]
    text = prose("BANKING", trials=apart.shape[1]), table(["objective", *banking.COLUMNS], rows), "Fig. 3:"
    return verdicts, "\n\n".join([*text, table(head, by_rate)])


def figure2(formulas: Answers) -> tuple[Verdicts, str]:
    areas = formulas["bayes"]  # (slopes, shares, [label, loss], labels)
    gap = np.abs(areas[..., 0] - areas[..., 1])
    skewed = np.array(theory.SHARES) != 0.5
    wider = (gap[..., 1] > gap[..., 0])[:, skewed].sum(axis=1)
    counts = ", ".join(f"{n} at {slope:g}" for n, slope in zip(wider, theory.SLOPES))
    of_loss = gap[:, skewed, 1]
    grows, mean = (np.diff(of_loss, axis=0) > 0).all(axis=0), of_loss.mean(axis=1)
    slopes = ", ".join(f"{value:.3f}" for value in mean)
    on_average = f"{REPRODUCED} on average" if (np.diff(mean) > 0).all() else REFUTED
    verdicts = [
        ("most", f"of {skewed.sum()} skews, by slope: {counts}", of_all(list(2 * wider > skewed.sum()))),
        (
            "deterministic",
            f"mean by slope {slopes}; grows throughout at {grows.sum()} of {grows.size} skews",
            REPRODUCED if grows.all() else on_average,
        ),
    ]
    shown = [i for i, share in enumerate(theory.SHARES) if share <= 0.5]
    diffs = [[f"{theory.SHARES[i]:g}", *(f"{v:.3f}" for v in gap[:, i].ravel())] for i in shown]
    ends = areas[[0, -1]]  # y1 and y2, each by both
    each = [
        [f"{theory.SHARES[i]:g}", *(f"{v:.3f}" for v in ends[:, i].swapaxes(1, 2).ravel())] for i in shown
    ]
    names = [f"slope {slope:g}" for slope in theory.SLOPES]
    of_labels = [f"{name}, y{k}" for name in (names[0], names[-1]) for k in (1, 2)]
    texts = [prose("FIGURE2"), table(["pi_2", *paired(names)], diffs), "Fig. 6, the AUC of each label:"]
    return verdicts, "\n\n".join([*texts, table(["pi_2", *paired(of_labels)], each)])


STATED = {
    "product": ("(a) product of the labels", "11 above all others, these in any order"),
    "first dictates": ("(b) loss aggregation, alpha_1 > alpha_2", "11 > 10 > 01 > 00"),
    "second dictates": ("(c) loss aggregation, alpha_1 < alpha_2", "11 > 01 > 10 > 00"),
    "equal": ("(d) loss aggregation, alpha_1 = alpha_2", "11 > 10 and 01, in any order > 00"),
    "sum": ("(d) sum of the labels, uniform and difference costs", "11 > 10 and 01, in any order > 00"),
}


def figure5(enumerated: Answers) -> tuple[Verdicts, str]:
    counts = enumerated["counts"]
    cases, held = np.array([counts[kind] for kind in STATED]).T
    tried, contained = counts["lemma"]
    verdicts = [
        ("maximisers", f"exact in {held.sum():,} of {cases.sum():,} cases", of_all(list(held == cases))),
        (
            "lemma",
            f"the sum's maximisers are among the product's in {contained} of {tried} samples",
            of_all([contained == tried]),
        ),
    ]
    rows = [[*STATED[kind], *(f"{n:,}" for n in counts[kind])] for kind in STATED]
    head = ["objective", "its maximisers", "cases", "hold"]
    return verdicts, "\n\n".join([prose("ENUMERATION", enumeration=enumeration), table(head, rows)])


def examples(formulas: Answers) -> tuple[Verdicts, str]:
    uniform, difference = formulas["counterexample"]
    best = {row["cost"]: row["formula"] in row["best"] for row in (uniform, difference)}
    of_k = formulas["growth"].mean(axis=0)
    scaled = 1e4 * of_k * np.sqrt(theory.COUNTS)
    rate = np.polyfit(np.log(theory.COUNTS[3:]), np.log(of_k[3:]), 1)[0]
    better = "; ".join(uniform["dominated by"])
    optimum = f"{difference['formula']}, of all {difference['orders']} orders"
    verdicts = [
        (
            "dominated",
            f"four rows: {uniform['formula']}, by {better}",
            of_all([best["uniform"] and bool(better)]),
        ),
        ("optimal", optimum, of_all([best["difference"] and not difference["dominated by"]])),
        (
            "rate",
            f"adverse labels: falls as K^{rate:.2f}; times sqrt K at most {scaled.max():.1f}e-4",
            # Were it slower, sqrt K times it would grow.
            of_all([scaled[-1] < scaled[2:].max() <= 2 * scaled[2]]),
        ),
    ]
    rows = []
    for row in (uniform, difference):
        areas, above = [f"{area:.4f}" for area in row["AUC"]], "; ".join(row["dominated by"]) or "none"
        rows.append([row["cost"], ", ".join(row["best"]), row["formula"], *areas, above])
    growth = [
        [k, *(with_error(1e4 * formulas["growth"][:, c] * factor) for factor in (1, np.sqrt(k)))]
        for c, k in enumerate(theory.COUNTS)
    ]
    head = ["costs", "best of all orders", "the formula's", "AUC y1", "AUC y2", "dominated by"]
    texts = [prose("EXAMPLE"), table(head, rows), prose("GROWTH")]
    return verdicts, "\n\n".join([*texts, table(["K", "shortfall", "times sqrt K"], growth)])


def table6(formulas: Answers, *trained: Answers) -> tuple[Verdicts, str]:
    diff = {name: [np.abs(np.diff(each[name]))[:, 0] for each in trained] for name in perceptron.SEEDS}
    apart = [label - loss for label, loss in zip(diff[LABEL], diff[LOSS])]
    verdicts: Verdicts = []
    for i, share in enumerate(SHARES):
        if share != 0.5:
            both = f"share {share:g}: {diff[LABEL][i].mean():.3f}, {diff[LOSS][i].mean():.3f}"
            verdicts.append(("table 6", f"{both}; {told(apart[i])}", verdict(apart[i])))
    least = min(np.mean(values) for name in diff if name not in BOTH for values in diff[name])
    most = max(np.mean(values) for name in BOTH for values in diff[name])
    verdicts.append(("alone", f"at most {most:.2f}, at least {least:.2f}", of_all([most < least / 2])))
    at = theory.SLOPES.index(perceptron.SLOPE), [theory.SHARES.index(share) for share in SHARES]
    bayes = np.abs(np.diff(formulas["bayes"][at]))[..., 0]
    rows = []
    for name, values in diff.items():
        rows.append([name, *(with_error(v) if len(v) > 1 else f"{v[0]:.3f}" for v in values)])
        rows.append(["*paper*", *(f"*{value:.2f}*" for value in PAPER["table 6"][name])])
        if name in BOTH:
            rows.append(["its Bayes-optimal scorer", *(f"{v:.3f}" for v in bayes[:, BOTH.index(name)])])
    rows.append(["label - loss aggregation", *map(told, apart)])
    made = {key: getattr(perceptron, key.upper()) for key in ("slope", "rows", "epochs", "hidden", "rate")}
    text = prose("TABLE6", **made, batch=perceptron.BATCH, seeds=len(apart[0]))
    return verdicts, f"{text}\n\n{table(['', *(f'pi_2 = {share:g}' for share in SHARES)], rows)}"


def two_targets(found: Answers) -> tuple[Verdicts, str]:
    head = [f"{what} {name}" for what in ("nDCG@10", "AUC") for name in (*letor.NAMES, "Diff")]
    rows = [[name, *map(with_error, found[name].T)] for name in letor.OBJECTIVES]
    made = " ".join((letor.engagement.__doc__ or "").split())
    text = prose("TWO_TARGETS", rounds=letor.ROUNDS, made=made)
    return [], f"{text}\n\n{table(['objective', *head], rows)}"


CHAPTERS: tuple[tuple[str, tuple[str, ...], Callable[..., tuple[Verdicts, str]]], ...] = (
    ("Table 3 and Fig. 3: mortgage and loan", ("Table 3",), table3),
    ("Fig. 2 and 6: Bayes-optimal scorers", (FORMULAS,), figure2),
    ("Fig. 1 and 5: all scorers of deterministic labels", (ALL_SCORERS,), figure5),
    ("Uniform costs: Proposition 5.3, Corollary C.2", (FORMULAS,), examples),
    ("Table 6: a trained perceptron", (FORMULAS, *TRAINED), table6),
    ("MQ2008: relevance, and a target that is made", (MQ2008,), two_targets),
)
LEFT_OUT = {"mslr": "no such data", "helpsteer": "no such data", "prompts": "no such language model"}


def answers(lines: Lines, system: str) -> Answers:
    """Figures and arrays of a cell, or that it failed."""
    line = next((line for line in lines if line["system"] == system), {"failed": "not run"})
    return line if "failed" in line else {**line, **np.load(lines.run / line["answers"])}


def page(lines: Lines) -> str:
    verdicts: Verdicts = []
    chapters = []
    for title, systems, chapter in CHAPTERS:
        found = [answers(lines, system) for system in systems]
        failed = [f"{s}: {f['failed']}" for s, f in zip(systems, found) if "failed" in f]
        own, text = ([], "; ".join(failed)) if failed else chapter(*found)
        verdicts += own
        chapters += [f"## {title}", text]
    verdicts += [(name, why, "not run") for name, why in LEFT_OUT.items()]
    in_short = [[*PAPER["claims"][name], here, found] for name, here, found in verdicts]
    title = "# Loss or label aggregation: several labels, one ranking"
    head = ["claim", "paper", "here", ""]
    return "\n\n".join([title, prose("INTRODUCTION"), "## In short", table(head, in_short), *chapters])


STUDY = Study(
    "aggregation",
    (BANK, FORMULAS, MQ2008),
    (
        System("Table 3", "aggregation.banking", sets=(BANK,)),
        *(
            System(name, "aggregation.perceptron", {"share": share}, sets=(FORMULAS,))
            for name, share in zip(TRAINED, SHARES)
        ),
        System(FORMULAS, "aggregation.theory", sets=(FORMULAS,)),
        System(ALL_SCORERS, "aggregation.enumeration", sets=(FORMULAS,)),
        System(MQ2008, "aggregation.letor", sets=(MQ2008,)),
    ),
    None,
    page,
    make={
        BANK: lambda folder: banking.make(DATA, folder),
        FORMULAS: lambda folder: {"checksum": "none: drawn from seeds"},
        MQ2008: mq2008.make,
    },
)

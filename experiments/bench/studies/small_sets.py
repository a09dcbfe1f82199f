"""Small sets: Tables 2 to 7 and Fig. 2 of Yang & Gopal (2012), present-day peers, cuts learned alike."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import judging
import numpy as np
import page_parts
import sets
from declared import Lines, Measure, Study, System
from judging import OF_SCORES, OF_SETS
from scipy.stats import rankdata

from metarank import metrics

prose = page_parts.prose_of(globals())

METRICS = (*OF_SCORES, *OF_SETS)
TABLE_SETS = ("emotions", "scene", "yeast", "citeseer17-single", "reuters90")
# The paper's own sets; its Citeseer is another one.
OF_PAPER = ("emotions", "scene", "yeast", "reuters90")
SETS = (*TABLE_SETS, "vowel")
PAPER = json.loads(Path(__file__).with_name("small_sets.json").read_text())
NONE = "–"

_SMALL = ("emotions", "scene", "yeast", "citeseer*")


def _system(name: str, kind: str, sets: tuple[str, ...] = TABLE_SETS, **params: object) -> System:
    return System(name, "small_set", {"kind": kind, **params}, sets=sets)


METARANK = _system("metarank", "metarank", SETS)
PAPER_BASELINES = (
    _system("Binary-SVM", "BinarySVM", SETS),
    _system("Rank-SVM", "RankSVM"),
    _system("IBLR-ML", "IBLR"),
    _system("ML-kNN", "MLkNN"),
)
PICKS = (
    _system("IBLR-ML+", "IBLRPlus"),
    _system("Logistic", "LogisticOneVsRest"),
    _system("SVM, RBF", "RBFSVM", (*OF_PAPER, "vowel")),
    # On thousands of words these take minutes a fit, of which learned thresholds need six.
    _system("LightGBM", "LightGBMOneVsRest", _SMALL[:3]),
    _system("Extra trees 500", "ExtraTrees", (*_SMALL[:3], "vowel")),
    _system("Random forest 500", "RandomForest", _SMALL[:3]),
    _system("Chains of LR", "ClassifierChainLR"),
)
LISTNET = _system("MLC-ListNet", "PaperListNet", SETS, held_out=False)
# The learners of Table 6, in its order; the last is no ranker.
RANKERS = (
    _system("MLC-SVM-MAP", "PaperSVMMAP", held_out=False),
    _system("MLC-RankSVM-IR", "PaperRankSVM", held_out=False),
    _system("MLC-LambdaRank, a network", "PaperLambdaRank", held_out=False),
    LISTNET,
)
LOGISTIC = _system("Logistic regression on the columns", "PaperLogistic", held_out=False)
# Dense meta-features of 90 labels are too many.
ON_META = tuple(
    _system(f"{name} on meta-features", kind, sets, meta=True, held_out=False)
    for name, kind, sets in (
        ("Binary-SVM", "BinarySVM", (*_SMALL, "vowel")),
        ("Rank-SVM", "RankSVM", _SMALL),
        ("IBLR-ML", "IBLR", _SMALL),
        ("ML-kNN", "MLkNN", _SMALL),
    )
)
NEIGHBOURS = System("all neighbours", "all_neighbours", {}, sets=TABLE_SETS)
OTHERS = (*PAPER_BASELINES, *PICKS)
RULES = {"own": "own cut", "regression": "regression", "learned": "learned thresholds"}


class Values:
    """Figures by set, system and metric; medians over seeds; NaN where a system was not run."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.sets = [name for name in TABLE_SETS if name in lines.sets]

    def __call__(self, dataset: str, system: System, metric: str, rule: str = "") -> float:
        name = f"{rule} {metric}" if metric in OF_SETS else metric
        found = [line["quality"][""].get(name) for line in self._lines(dataset, system)]
        return statistics.median(found) if found and None not in found else math.nan

    def cost(self, dataset: str, system: System, key: str) -> float:
        found = [line[key] for line in self._lines(dataset, system)]
        return statistics.median(found) if found else math.nan

    def mark(self, dataset: str, system: System, metric: str, rule: str) -> str:
        """* or ** where a system and metarank differ by the paper's test at 5 % or 1 %."""
        pair = []
        for one, own in ((METARANK, "learned"), (system, rule)):
            lines = self._lines(dataset, one)
            answers = np.load(self.lines.run / lines[0]["answers"]) if lines else {}
            names = [f"{own} {metric}", own] if metric in OF_SETS else ["scores"]
            pair.append(next((answers[name] for name in names if name in answers), None))
        if system is METARANK or any(part is None for part in pair):
            return ""
        truth = sets.matrix(self.lines.data / dataset, "Y_test").toarray()
        p = metrics.significance(truth, *(part.astype(np.float64) for part in pair), metric)
        return metrics.significance_mark(p).replace("*", "\\*")

    def _lines(self, dataset: str, system: System) -> list:
        return [line for line in self.lines.of(dataset, system.name) if "failed" not in line]


def sign(metric: str) -> int:
    return 1 if metrics.Metric.parse(metric).greater_is_better else -1


def decimals(dataset: str, metric: str) -> int:
    """Four where the values of the set are tiny."""
    return 4 if dataset == "reuters90" and metric in ("RankLoss", "Hamming") else 3


def shown(value: float, dataset: str = "", metric: str = "") -> str:
    return NONE if math.isnan(value) else f"{value:.{decimals(dataset, metric)}f}"


def page(lines: Lines) -> str:
    values = Values(lines)
    parts = ["# Small multi-label sets: the tables of Yang & Gopal (2012)", prose("INTRODUCTION")]
    if values.sets:
        parts += ["## In short", prose("IN_SHORT"), in_short(values), won(values)]
        parts += ["## Table 2: all exact neighbours", table2(values)]
        rows = (METARANK, LISTNET, *OTHERS)
        table3 = comparison(values, rows, METRICS, "table3", first_rule)
        # metarank has no regression.
        table5 = comparison(values, rows[1:], OF_SETS, "table5", lambda system: "regression")
        alike = comparison(values, (METARANK, *OTHERS), OF_SETS, "", lambda system: "learned")
        parts += ["## Table 3: the systems", table3]
        parts += ["## Table 4: own cut → regression → learned thresholds", TABLE4, table4(values)]
        parts += ["## Table 5: all by the regression", table5, "## All by learned thresholds", alike]
        learners = (*RANKERS, LOGISTIC, METARANK)
        parts += [
            "## Table 6: the learners on the paper's columns",
            prose("TABLE6"),
            comparison(values, learners, METRICS, "table6", first_rule),
        ]
        parts += ["## Fig. 2: meta-features fed to the baselines", figure2(values)]
        parts += ["## Times", times(values)]
    if "vowel" in lines.sets:
        parts += ["## Table 7: vowel", table7(values)]
    return "\n\n".join(parts)


TABLE4 = "[The paper's own cut → regression]"


def first_rule(system: System) -> str:
    """What a system is shown with: its own cut, or the only rule that it has."""
    return "learned" if system is METARANK else "regression" if system in (*RANKERS, LOGISTIC) else "own"


def ranks(row: Sequence[float], dataset: str, metric: str) -> np.ndarray:
    """1 for the best; equal values as shown share the better rank; NaN for NaN."""
    rounded = np.round(np.asarray(row), decimals(dataset, metric)) * -sign(metric)
    return np.where(np.isnan(rounded), np.nan, rankdata(np.nan_to_num(rounded, nan=np.inf), method="min"))


def comparison(
    values: Values,
    systems: Sequence[System],
    names: Sequence[str],
    printed: str,
    rule: Callable[[System], str],
) -> str:
    """Metric by metric, set by set: value, significance, rank, and the paper's figure; then rank totals."""
    rows, every = [], []
    for metric in names:
        rows.append([f"**{metric}**", *[""] * len(systems)])
        for dataset in values.sets:
            row = [values(dataset, system, metric, rule(system)) for system in systems]
            place = ranks(row, dataset, metric)
            every.append(place)
            of_paper = PAPER.get(printed, {}).get(metric, {}).get(dataset.partition("17")[0], {})
            cells = []
            for system, value, rank in zip(systems, row, place):
                cell = NONE
                if not math.isnan(value):
                    bold = "**" if rank == 1 else ""
                    mark = values.mark(dataset, system, metric, rule(system))
                    cell = f"{bold}{shown(value, dataset, metric)}{bold}{mark} ({rank:.0f})"
                figure = of_paper.get(system.name.partition(",")[0])
                cells.append(cell if figure is None else f"{cell} [{shown(figure, dataset, metric)}]")
            rows.append([dataset, *cells])
    whole = np.array([place for place in every if not np.isnan(place).any()]).reshape(-1, len(systems))
    rows.append(
        [f"Rank total ({len(whole)} rows all have)", *(f"{total:.0f}" for total in whole.sum(axis=0))]
    )
    return page_parts.table(["", *(system.name for system in systems)], rows)


def best(found: Mapping[str, float], dataset: str, metric: str) -> tuple[float, str]:
    """The best value as shown, and whose it is; the first of equals."""
    there = {who: round(value, decimals(dataset, metric)) for who, value in found.items() if value == value}
    if not there:
        return math.nan, ""
    who = max(there, key=lambda name: sign(metric) * there[name])
    return there[who], who


def others(values: Values, dataset: str, metric: str, rules: Sequence[str]) -> dict[str, float]:
    """The value of every other system by each of the rules that it has."""
    if metric not in OF_SETS:
        return {s.name: values(dataset, s, metric) for s in OTHERS}
    return {
        s.name + (f", {RULES[rule]}" if rule != "own" else ""): values(dataset, s, metric, rule)
        for s in OTHERS
        for rule in rules
    }


def in_short(values: Values) -> str:
    rows = []
    for dataset in (name for name in OF_PAPER if name in values.sets):
        lines: list[list[str]] = [[dataset, "metarank"], ["", "best other"], ["", "paper's best"]]
        for metric in METRICS:
            printed = {
                who + (", regression" if table == 5 else ""): figure
                for table in (3, 6, 5)
                for who, figure in PAPER[f"table{table}"].get(metric, {}).get(dataset, {}).items()
            }
            three = [
                (round(values(dataset, METARANK, metric, "learned"), decimals(dataset, metric)), ""),
                best(others(values, dataset, metric, tuple(RULES)), dataset, metric),
                best(printed, dataset, metric),
            ]
            top, _ = best({str(i): value for i, (value, _) in enumerate(three)}, dataset, metric)
            for line, (value, who) in zip(lines, three):
                figure = shown(value, dataset, metric)
                line.append(f"{f'**{figure}**' if value == top else figure} {who}".rstrip())
        rows += lines
    return page_parts.table(["set", "", *METRICS], rows)


def won(values: Values) -> str:
    """In how many cells metarank is best of the systems run here, by their own cuts and by any rule."""
    told = []
    for rules, name in ((("own",), "their own cuts"), (tuple(RULES), "any rule")):
        cells, lost = 0, []
        for dataset in (name for name in OF_PAPER if name in values.sets):
            for metric in METRICS:
                theirs, who = best(others(values, dataset, metric, rules), dataset, metric)
                ours, _ = best({"": values(dataset, METARANK, metric, "learned")}, dataset, metric)
                if math.isnan(theirs) or math.isnan(ours):
                    continue
                cells += 1
                if sign(metric) * ours < sign(metric) * theirs:
                    pair = f"{shown(ours, dataset, metric)} against {shown(theirs, dataset, metric)}"
                    lost.append(f"{dataset} {metric} ({pair}, {who})")
        rest = f"; not {', '.join(lost)}" if lost else ""
        told.append(
            f"- against all others by {name}: as good or better in {cells - len(lost)} of {cells}{rest}"
        )
    return "\n".join(told)


def table2(values: Values) -> str:
    rows = [
        [
            name,
            f"{values.cost(name, NEIGHBOURS, 'train_s'):.2f}",
            PAPER["table2"].get(name.partition("17")[0], NONE),
        ]
        for name in values.sets
    ]
    return page_parts.table(["set", "metarank, CPU s", "paper, CPU s"], rows)


def table4(values: Values) -> str:
    rows = []
    for metric in OF_SETS:
        rows.append([f"**{metric}**", *[""] * len(OTHERS)])
        for dataset in values.sets:
            printed = PAPER["table4"][metric].get(dataset.partition("17")[0], {})
            cells = []
            for system in OTHERS:
                cell = " → ".join(
                    shown(values(dataset, system, metric, rule), dataset, metric) for rule in RULES
                )
                if figures := printed.get(system.name):
                    pair = (shown(figures[rule], dataset, metric) for rule in ("default", "regression"))
                    cell += f" [{' → '.join(pair)}]"
                cells.append(cell)
            rows.append([dataset, *cells])
    return page_parts.table(["", *(system.name for system in OTHERS)], rows)


def figure2(values: Values) -> str:
    """Averages over the sets where all were run, of the regression's micro-F1 and of MAP."""
    on = [name for name in values.sets if not math.isnan(values(name, ON_META[0], "MAP"))]

    def mean(system: System, metric: str) -> float:
        rule = "learned" if system is METARANK else "regression"
        return float(np.mean([values(name, system, metric, rule) for name in on])) if on else math.nan

    rows = [
        [plain.name, *(f"{shown(mean(plain, m))} → {shown(mean(meta, m))}" for m in ("micro-F1", "MAP"))]
        for plain, meta in zip(PAPER_BASELINES, ON_META)
    ]
    rows += [
        [system.name, *(shown(mean(system, m)) for m in ("micro-F1", "MAP"))]
        for system in (*RANKERS, LOGISTIC, METARANK)
    ]
    head = ["original → meta-features", "micro-F1", "MAP"]
    return f"Averages over {', '.join(on)}.\n\n{page_parts.table(head, rows)}"


def times(values: Values) -> str:

    def told_of(system: System, name: str) -> str:
        seconds, ms = (values.cost(name, system, key) for key in ("train_s", "single_wall_ms"))
        return NONE if math.isnan(seconds) else f"{seconds:.1f} s, {ms:.2f} ms"

    systems = (METARANK, *OTHERS, *RANKERS)
    rows = [[system.name, *(told_of(system, name) for name in values.sets)] for system in systems]
    told = (
        "CPU seconds of the fit with its choice of parameters; milliseconds of one row, in a call of its own."
    )
    return f"{told}\n\n{page_parts.table(['', *values.sets], rows)}"


def table7(values: Values) -> str:
    here = (METARANK, LISTNET, PAPER_BASELINES[0], ON_META[0], PICKS[2], PICKS[4])
    printed = {
        "Binary-SVM": "SVM with plain features",
        "Binary-SVM on meta-features": "SVM with only meta-level features",
    }
    rows = [
        [
            s.name,
            shown(values("vowel", s, "One-error")),
            shown(PAPER["table7"].get(printed.get(s.name), math.nan)),
        ]
        for s in here
    ]
    rows += [
        [name, NONE, shown(error)] for name, error in PAPER["table7"].items() if name not in printed.values()
    ]
    return page_parts.table(["error rate", "here", "paper"], rows)


STUDY = Study(
    "small_sets",
    SETS,
    (METARANK, *OTHERS, *RANKERS, LOGISTIC, *ON_META, NEIGHBOURS),
    judging.of_scores,
    page,
    Measure(limit=1800),
)

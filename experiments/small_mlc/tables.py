"""The tables of the paper from kept results, in Markdown: one function a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from cache import Result
from methods import CUTS, IBLR_PLUS, LISTNET, METARANK, ON_META, PAPER_BASELINES, PEERS, RANKERS, Method
from scipy.stats import rankdata

from metarank import metrics

METRICS = ("MAP", "RankLoss", "nDCG", "One-error", "Coverage", "micro-F1", "macro-F1", "Hamming")
SET_METRICS = tuple(CUTS)
# The cells: four sets of the paper that are the same here.
CELL_SETS = ("emotions", "scene", "yeast", "reuters90")
_HERE = Path(__file__).parent
PAPER = json.loads((_HERE / "paper.json").read_text())
NOTED_PEERS = json.loads((_HERE / "peers.json").read_text())["figures"]
PAPER_SET = {"citeseer17-single": "citeseer"}
DASH = "–"


class Results:
    """What was measured: a result for each (set, method), or why there is none.

    Parameters
    ----------
    truth : set name -> bool (n, L), labels of the test part
    results : (set, method name) -> Result, or the reason it was skipped
    """

    def __init__(
        self, truth: Mapping[str, np.ndarray], results: Mapping[tuple[str, str], Result | str]
    ) -> None:
        self.truth = {name: Y.astype(np.float32) for name, Y in truth.items()}
        self.results = results
        self._values: dict[tuple[str, str, str, str], float] = {}

    @property
    def sets(self) -> list[str]:
        return list(self.truth)

    def get(self, set_name: str, method: str) -> Result | None:
        found = self.results.get((set_name, method))
        return None if isinstance(found, str) else found

    def judged(self, set_name: str, method: str, metric: str, threshold: str = "sets") -> np.ndarray | None:
        """What a metric judges: scores, or the label sets of a threshold: "sets", the system's own,
        "regression" or "learned"; None where there are none."""
        result = self.get(set_name, method)
        if result is None:
            return None
        if metric not in SET_METRICS:
            return result["scores"]
        # metarank's sets are of the cut learned for the metric, whatever the threshold of the others.
        names = (f"{threshold}:{metric}", f"sets:{metric}", threshold)
        found = next((result[name] for name in names if name in result), None)
        return None if found is None else found.astype(np.int8)

    def value(self, set_name: str, method: str, metric: str, threshold: str = "sets") -> float:
        """The metric; NaN where the method was not run."""
        key = (set_name, method, metric, threshold)
        if key not in self._values:
            given = self.judged(*key)
            self._values[key] = (
                float("nan") if given is None else _evaluate(self.truth[set_name], given, metric)
            )
        return self._values[key]

    def standard_error(self, set_name: str, method: str, metric: str) -> float:
        """Half the width of the bootstrap interval that holds 68.27 % of the draws."""
        given = self.judged(set_name, method, metric)
        scores, sets = (None, given) if metric in SET_METRICS else (given, None)
        interval = metrics.bootstrap(self.truth[set_name], scores, [metric], level=0.6827, Y_pred=sets)[
            metric
        ]
        return (interval.high - interval.low) / 2

    def mark(self, set_name: str, method: str, metric: str, threshold: str = "sets") -> str:
        """* or ** where the method and metarank differ by the paper's test at 5 % or 1 %."""
        ours = self.judged(set_name, METARANK.name, metric)
        theirs = self.judged(set_name, method, metric, threshold)
        if ours is None or theirs is None or method == METARANK.name:
            return ""
        return metrics.significance_mark(
            metrics.significance(self.truth[set_name], ours, theirs, metric)
        ).replace("*", "\\*")


def _evaluate(Y: np.ndarray, given: np.ndarray, metric: str) -> float:
    scores, sets = (None, given) if metric in SET_METRICS else (given, None)
    return metrics.evaluate(Y, scores, [metric], Y_pred=sets)[metric]


def greater_is_better(metric: str) -> bool:
    return metrics.Metric.parse(metric).greater_is_better


def digits(set_name: str, metric: str) -> int:
    """Decimals shown and compared: four where the values of the set are tiny."""
    return 4 if set_name == "reuters90" and metric in ("RankLoss", "Hamming") else 3


def number(value: float, decimals: int = 3) -> str:
    return DASH if np.isnan(value) else f"{value:.{decimals}f}"


def ranks(values: Sequence[float], metric: str, decimals: int) -> np.ndarray:
    """1 for the best; equal values as shown share the better rank; NaN for NaN."""
    shown = np.round(np.asarray(values, np.float64), decimals)
    out = np.full(len(shown), np.nan)
    there = ~np.isnan(shown)
    out[there] = rankdata(-shown[there] if greater_is_better(metric) else shown[there], method="min")
    return out


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def comparison(
    results: Results,
    methods: Sequence[Method],
    metric_names: Sequence[str],
    paper: Mapping,
    threshold: str = "sets",
) -> str:
    """Metric by metric, set by set: value, significance mark, rank, and the paper's figure beside it."""
    rows, all_ranks = [], []
    for metric in metric_names:
        rows.append([f"**{metric}**"] + [""] * len(methods))
        for name in results.sets:
            decimals = digits(name, metric)
            values = [results.value(name, m.name, metric, threshold) for m in methods]
            place = ranks(values, metric, decimals)
            all_ranks.append(place)
            printed = paper.get(metric, {}).get(PAPER_SET.get(name, name), {})
            cells = []
            for method, value, rank in zip(methods, values, place):
                cell = DASH
                if not np.isnan(value):
                    best = "**" if rank == 1 else ""
                    mark = results.mark(name, method.name, metric, threshold)
                    cell = f"{best}{number(value, decimals)}{best}{mark} ({int(rank)})"
                if method.title in printed:
                    cell += f" [{number(printed[method.title], decimals)}]"
                cells.append(cell)
            rows.append([name, *cells])
    table = np.array(all_ranks)
    whole = ~np.isnan(table).any(axis=1)
    rows.append(
        [f"Rank total ({whole.sum()} rows all have)"] + [f"{total:.0f}" for total in table[whole].sum(axis=0)]
    )
    rows.append(["Mean rank (rows it has)"] + [number(mean, 2) for mean in _mean_of_columns(table)])
    return markdown(["", *(m.title for m in methods)], rows)


def _mean_of_columns(table: np.ndarray) -> list[float]:
    return [float(np.nanmean(column)) if (~np.isnan(column)).any() else float("nan") for column in table.T]


def table2(seconds: Mapping[str, float]) -> str:
    rows = [
        [name, f"{s:.2f}", str(PAPER["table2"].get(PAPER_SET.get(name, name), DASH))]
        for name, s in seconds.items()
    ]
    return markdown(["set", "metarank, CPU s", "paper, CPU s"], rows)


def table3(results: Results) -> str:
    methods = (METARANK, LISTNET, *PAPER_BASELINES, *(p for p in PEERS if p not in PAPER_BASELINES))
    return comparison(results, methods, METRICS, PAPER["table3"])


def table4(results: Results) -> str:
    """Default and regression threshold of every peer."""
    methods = [
        *PAPER_BASELINES,
        IBLR_PLUS,
        *(p for p in PEERS if p not in PAPER_BASELINES and p is not IBLR_PLUS),
    ]
    rows = []
    for metric in SET_METRICS:
        rows.append([f"**{metric}**"] + [""] * len(methods))
        for name in results.sets:
            decimals = digits(name, metric)
            printed = PAPER["table4"][metric].get(PAPER_SET.get(name, name), {})
            cells = []
            for m in methods:
                pair = [
                    number(results.value(name, m.name, metric, t), decimals) for t in ("sets", "regression")
                ]
                cell = " → ".join(pair) if pair[0] != DASH else DASH
                if m.title in printed:
                    p = printed[m.title]
                    cell += f" [{number(p['default'], decimals)} → {number(p['regression'], decimals)}]"
                cells.append(cell)
            rows.append([name, *cells])
    return markdown(["default → regression", *(m.title for m in methods)], rows)


def table5(results: Results) -> str:
    methods = (METARANK, LISTNET, *PAPER_BASELINES, *(p for p in PEERS if p not in PAPER_BASELINES))
    return comparison(results, methods, SET_METRICS, PAPER["table5"], "regression")


def table6(results: Results) -> str:
    return comparison(results, (*RANKERS, METARANK), METRICS, PAPER["table6"])


def figure2(results: Results) -> str:
    """Averages over the sets where all were run: original features against meta-features, and the rankers."""
    sets, pairs = figure2_values(results)
    rows = [
        [title, *(f"{number(v[0])} → {number(v[1])}" if len(v) == 2 else number(v[0]) for v in columns)]
        for title, columns in pairs.items()
    ]
    return f"Averages over {', '.join(sets)}.\n\n" + markdown(
        ["original → meta-features", "micro-F1", "MAP"], rows
    )


def figure2_values(results: Results) -> tuple[list[str], dict[str, list[list[float]]]]:
    """(sets averaged over, title -> for micro-F1 and MAP [original, meta] or [meta])."""
    sets = [s for s in results.sets if all(results.get(s, m.name) is not None for m in ON_META)]

    def average(method: Method, metric: str) -> float:
        return float(np.mean([results.value(s, method.name, metric) for s in sets])) if sets else float("nan")

    out = {}
    for plain, meta in zip(PAPER_BASELINES, ON_META):
        out[plain.title] = [[average(plain, metric), average(meta, metric)] for metric in ("micro-F1", "MAP")]
    for method in (*RANKERS, METARANK):
        out[method.title] = [[average(method, metric)] for metric in ("micro-F1", "MAP")]
    return sets, out


def table7(vowel: Results, methods: Sequence[Method]) -> str:
    printed = {
        "Binary-SVM": "SVM with plain features",
        "Binary-SVM on meta-features": "SVM with only meta-level features",
    }
    rows = []
    for m in methods:
        paper = PAPER["table7"].get(printed.get(m.title, ""), float("nan"))
        rows.append([m.title, number(vowel.value("vowel", m.name, "One-error")), number(paper)])
    rows += [
        [title, DASH, number(error)]
        for title, error in PAPER["table7"].items()
        if title not in printed.values()
    ]
    return markdown(["error rate", "here", "paper"], rows)


def cells(results: Results) -> tuple[str, str]:
    """metarank against the paper's best and the best peer, cell by cell; (one line, table).

    Values are compared as shown. A loss is given in standard errors of our value (bootstrap over rows).
    """
    rows, verdicts, losses = [], [], []
    for name in (s for s in CELL_SETS if results.get(s, METARANK.name) is not None):
        for metric in METRICS:
            up, decimals = greater_is_better(metric), digits(name, metric)
            best = max if up else min
            printed = {
                f"{title}, Table {t}": v
                for t in (3, 6)
                for title, v in PAPER[f"table{t}"][metric][name].items()
            }
            here = {
                m.title: results.value(name, m.name, metric)
                for m in PEERS
                if results.get(name, m.name) is not None
            }
            noted = {f"{t} (noted)": v for t, v in NOTED_PEERS[metric].get(name, {}).items()}
            ours = round(results.value(name, METARANK.name, metric), decimals)
            row, rivals = [f"{name} {metric}", number(ours, decimals)], []
            for group in (printed, {**here, **noted}):
                if not group:
                    row.append("")
                    continue
                who = best(group, key=lambda title: round(group[title], decimals))
                rivals.append(round(group[who], decimals))
                row.append(f"{number(group[who], decimals)} {who}")
            behind = (best(rivals) - ours) * (1 if up else -1)
            verdict = "win" if behind < 0 else "tie" if behind == 0 else "loss"
            error = results.standard_error(name, METARANK.name, metric)
            verdicts.append(verdict)
            if verdict == "loss":
                losses.append(behind / error)
            rows.append([*row, verdict, f"{behind / error:.2f}" if verdict == "loss" else "", f"{error:.2g}"])
    most = max(losses, default=0.0)
    count = {v: verdicts.count(v) for v in ("win", "tie", "loss")}
    line = (
        f"{count['win'] + count['tie']} of {len(verdicts)} cells won or tied ({count['win']} won, "
        f"{count['tie']} tied, {count['loss']} lost; largest loss {most:.2f} standard errors)"
    )
    header = [
        "cell",
        "metarank",
        "paper's best",
        "best peer",
        "",
        "loss in standard errors",
        "standard error",
    ]
    return line, markdown(header, rows)


def times(results: Results) -> str:
    """Seconds of training and milliseconds of prediction of every method on every set."""
    rows = []
    for (name, method), result in results.results.items():
        if isinstance(result, str):
            rows.append([name, method, f"not run: {result}", "", "", "", ""])
            continue
        chosen = ", ".join(f"{k} = {v}" for k, v in result.get("chosen", {}).items()) or result.get(
            "cuts", ""
        )
        seconds = [f"{result[key]:.1f}" for key in ("fit_cpu_s", "fit_wall_s")]
        ms = [f"{result[key]:.3f}" for key in ("single_ms", "batch_ms_per_row")]
        rows.append([name, method, chosen, *seconds, *ms])
    return markdown(
        ["set", "method", "chosen", "fit, CPU s", "fit, wall s", "one row, ms", "batch, ms a row"], rows
    )

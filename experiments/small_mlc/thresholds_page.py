"""Tables 4, 5 and 6 of Yang & Gopal (2012) with section 2.3 as it is read here, and other readings.

python experiments/small_mlc/thresholds_page.py [--sets emotions,scene] [--kept]

Writes thresholds.md. What was measured stays in cache/, so that an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

# First: it sets what must be set before BLAS and OpenMP are there.
import run  # isort: split

import numpy as np
import rankers
from baselines import IBLR, BinarySVM, MLkNN, RankSVM
from baselines.base import MANY_ROWS, Baseline
from cache import Cache, Result
from datasets import TABLE_SETS, Problem, load_problem
from learned_cuts import unbounded
from methods import (
    LISTNET,
    RANKERS,
    Method,
    Settings,
    baseline_method,
    ranker_method,
    run_baseline,
    with_meta_features,
)
from paper_cut import READING, Reading, sets_of
from sklearn.exceptions import ConvergenceWarning
from tables import (
    DASH,
    METRICS,
    PAPER,
    PAPER_SET,
    SET_METRICS,
    Results,
    digits,
    greater_is_better,
    markdown,
    number,
)

from metarank import metrics
from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.instance_cut import InstanceCut
from metarank.thresholds.lists import ScoredLists
from metarank.types.candidates import Candidates
from metarank.types.view import fold_of_rows

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
# Readings are compared on the sets that are the paper's own, and small.
SMALL = ("emotions", "scene", "yeast")
SEEDS = range(10)
SEEDS_OF_FEATURES = range(3)
KINDS: dict[type[Baseline], str] = {
    BinarySVM: "Binary-SVM",
    RankSVM: "Rank-SVM",
    IBLR: "IBLR-ML",
    MLkNN: "ML-kNN",
}
BASELINES = tuple(
    baseline_method(kind, title, held_out=lambda p: len(p.Y) <= MANY_ROWS) for kind, title in KINDS.items()
)
# k = 30 on these alone: a linear SVM on thousands of dense columns takes minutes.
MANY_K_SETS = ("emotions", "scene")

READINGS = {
    "as chosen": READING,
    "scores of held-out rows": replace(READING, scores="held-out"),
    "scores by label": replace(READING, order="label"),
    "softmax": replace(READING, normalise="softmax"),
    "a constant added": replace(READING, normalise="mean"),
    "scores as they are": replace(READING, normalise="raw"),
    "widest gap": replace(READING, ties="widest"),
    "fewest labels": replace(READING, ties="fewest"),
    "lower end of the gap": replace(READING, place="lower"),
    "upper end of the gap": replace(READING, place="upper"),
    "none may be kept": replace(READING, least=0),
    "none may be kept, widest gap, softmax, by label": Reading(
        "softmax", "held-out", "label", "widest", "middle", 0
    ),
}


def described_otherwise(name: str, **attributes: object) -> Method:
    kind = type("PaperListNet", (rankers.PaperListNet,), attributes)
    return ranker_method(kind, f"listnet, {name}", name)


FEATURES = {
    "all other rows": LISTNET,
    "all other rows, the centroid of all": described_otherwise("of all", described="others, centroid of all"),
    "rows of the other folds": described_otherwise("folds", described="folds"),
    "all rows, a row its own nearest": described_otherwise("itself", described="itself"),
    "all other rows, features of unit variance only": described_otherwise("not centred", centred=False),
}


def on_meta(k: int) -> tuple[Method, ...]:
    """The baselines given meta-features, in their order (Fig. 2)."""

    def one(kind: type[Baseline], title: str) -> Method:
        def measure(problem: Problem, settings: Settings) -> Result:
            return run_baseline(kind, with_meta_features(problem, settings, k), settings, held_out=False)

        plain = next(m for m in BASELINES if m.title == title)
        return replace(plain, name=f"{plain.name} on meta-features, k {k}", run=measure)

    return tuple(one(kind, title) for kind, title in KINDS.items())


FIGURE_SETS = ("emotions", "scene", "yeast", "citeseer17-single")
ON_META = {k: on_meta(k) for k in (10, 30)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(TABLE_SETS), help=f"among {', '.join(TABLE_SETS)}")
    parser.add_argument("--quick", action="store_true", help="small grids on a part of the training rows")
    parser.add_argument("--kept", action="store_true", help="write the page from what is kept, run nothing")
    parser.add_argument("--n-jobs", type=int, default=1)
    add_options(parser, _HERE / "thresholds.md")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    if unknown := set(names) - set(TABLE_SETS):
        parser.error(f"--sets must be among {', '.join(TABLE_SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets", "quick"))
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    settings = Settings(options.quick, options.n_jobs, 0)
    study = Study(settings, options.kept)
    for name in names:
        try:
            study.problems[name] = load_problem(name, quick=options.quick)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    whole.write(page(study) + "\n\n## How it was made\n\n" + run.provenance(study.problems, settings) + "\n")
    return 0


class Study:
    """Results by set, method and seed, measured when they are first asked for."""

    def __init__(self, settings: Settings, only_kept: bool = False) -> None:
        self.settings = settings
        self.only_kept = only_kept
        self.problems: dict[str, Problem] = {}
        self.cache = Cache(folder=_HERE / "cache" / "thresholds" / ("quick" if settings.quick else "full"))
        self._found: dict[tuple[str, str, int], Result | None] = {}

    def result(self, name: str, method: Method, seed: int = 0) -> Result | None:
        """None where it is not run."""
        at = (name, method.name, seed)
        if at not in self._found:
            self._found[at] = self._measured(name, method, seed)
        return self._found[at]

    def _measured(self, name: str, method: Method, seed: int) -> Result | None:
        problem, settings = self.problems[name], replace(self.settings, seed=seed)
        key, stem = method.key(problem, settings), f"{method.name}, seed {seed}"
        if self.only_kept and not self.cache.has(name, stem, key):
            return None
        start = time.process_time()
        found = self.cache.get(name, stem, key, lambda: method.run(problem, settings))
        spent = time.process_time() - start
        if spent > 1:
            print(f"{name:18} {stem:24} {spent:7.1f} CPU s", file=sys.stderr, flush=True)
        return found

    def results(self, methods: Sequence[Method], sets: Sequence[str] | None = None) -> Results:
        """Of the first seed, cut by the chosen reading as "regression", the paper's systems by no other."""
        found: dict[tuple[str, str], Result | str] = {}
        sets = list(self.problems) if sets is None else sets
        for name in sets:
            for method in methods:
                result, problem = self.result(name, method), self.problems[name]
                if result is not None:
                    cut = sets_of(result, problem.Y)
                    own = cut if method in RANKERS else result["sets"]
                    found[name, method.name] = {**result, "regression": cut, "sets": own}
        return Results({name: self.problems[name].Y_test for name in sets}, found)

    def small(self) -> list[str]:
        return [name for name in SMALL if name in self.problems]


def of_sets(Y: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """micro-F1, macro-F1 and Hamming loss."""
    found = metrics.evaluate(Y.astype(np.float32), None, list(SET_METRICS), Y_pred=kept.astype(np.int8))
    return np.array([found[m] for m in SET_METRICS])


def printed(table: str, name: str, title: str, rule: str | None = None) -> np.ndarray:
    """The paper's micro-F1, macro-F1 and Hamming loss."""
    of_metric = [PAPER[table][m][PAPER_SET.get(name, name)][title] for m in SET_METRICS]
    return np.array([value if rule is None else value[rule] for value in of_metric])


def page(study: Study) -> str:
    """The page but for its provenance."""
    parts = [
        "# The threshold of section 2.3, read and run\n",
        "Written by `python experiments/small_mlc/thresholds_page.py`. Yang & Gopal (2012) predict the "
        "threshold of a row from its ranked scores by least squares; the threshold to learn from makes the "
        "fewest mistakes on a training row. Left open are which of several best thresholds that is, how "
        "scores are brought to sum to one, how a training row's meta-features leave the row out, and more. "
        "One reading is taken for all sets and systems, that which comes nearest to the paper's own figures; "
        "it is a reproduction, not a choice of what is best: [cuts.md](cuts.md) has cuts chosen on training "
        "rows. `citeseer17-single` is another set than the paper's Citeseer, whose figures stand beside it "
        "all the same.\n",
        "**The reading**: " + reading_in_words() + "\n",
        "## In short\n",
        in_short(study),
        "\n## Table 5: all with the regression threshold\n",
        "Here [paper]. \\* and \\*\\*: differs from MLC-ListNet at 5 % and 1 % by the paper's tests; "
        "the paper marks what is behind it alone.\n",
        table5(study),
        "\n## Table 4: default and regression threshold\n",
        "Here, then the paper in brackets.\n",
        table4(study),
        "\n## Table 6: the learners\n",
        "Here [paper]. MLC-LambdaRank is a network of one hidden layer (`lambda_net.py`). On the two "
        "sets of texts one fold chooses k, on reuters90 among 10, 20 and 30.\n",
        table6(study),
        "\n## Readings of the threshold\n",
        f"MLC-ListNet over {len(SEEDS)} seeds of the folds, which choose k and the penalty: mean micro-F1, "
        "macro-F1 and Hamming loss. *Distance*: the mean absolute difference from the paper's figures of "
        "MLC-ListNet (nine), and of the four baselines of Table 4 (36, one seed).\n",
        readings(study),
        f"\n{place_of_the_reading(study)}\n",
        "\n## The cut of the library\n",
        '`threshold="instance"` predicts the threshold from calibrated probabilities. Learned for F1 it '
        "takes the paper's reading of ties, the cut that keeps most labels, at least one; for other metrics "
        "that of the widest gap. Five-fold cross-validation on the held-out scores of training rows alone, "
        f"the mean of {', '.join(m.title for m in (LISTNET, *BASELINES))}.\n",
        library_cut(study),
        "\n## Readings of the meta-features\n",
        "What describes a training row, and how dense features are scaled. MLC-ListNet with the chosen "
        f"threshold, mean of {len(SEEDS_OF_FEATURES)} seeds. But for the row that is its own nearest, the "
        "figures hardly tell them apart.\n",
        features(study),
        "\n## Fig. 2: baselines on meta-features\n",
        "Original → meta-features (k = 10 a label, described by the other folds), averages over "
        f"{', '.join(FIGURE_SETS)}. The paper says of micro-F1 and MAP that meta-features hurt ML-kNN and "
        "IBLR-ML, and gain Binary-SVM next to nothing; its figure does not say which threshold it shows.\n",
        figure2(study),
        "\nThe same set by set; *default* and *regression* are micro-F1.\n",
        figure2_by_set(study),
        "\n## Seeds and sampling error\n",
        f"MLC-ListNet: mean ± standard deviation (least to greatest) over {len(SEEDS)} seeds, and the "
        "standard error that the draw of test rows alone gives (bootstrap, seed 0).\n",
        seeds(study),
        "\n## What was run\n",
        what_was_run(study),
    ]
    return "\n".join(parts)


def reading_in_words() -> str:
    order = "ranked scores" if READING.order == "sorted" else "scores, label by label,"
    return (
        "training rows are described by all other rows, dense features have mean 0 and variance 1; scores "
        "less the row's least one are divided by their sum; of equally good thresholds that is learned which "
        "keeps most labels, at least one, half-way between the scores that it parts (as Elisseeff & Weston "
        f"2001, whom the paper follows); it is predicted from the {order} of training rows by the model of "
        'all rows ("non-splitting", 3.4).'
    )


def in_short(study: Study) -> str:
    lines = []
    for name in study.small():
        found, paper = over_seeds(study, name, READING), printed("table5", name, LISTNET.title)
        if found is None:
            continue
        off = np.abs(found.mean(axis=0) - paper)
        within = "within" if off[:2].max() <= 0.01 else "not within"
        ours, theirs = (" / ".join(number(v) for v in part[:2]) for part in (found.mean(axis=0), paper))
        lines.append(f"- {name}, MLC-ListNet: micro- and macro-F1 {ours}, the paper's {theirs}: {within} .01")
    results = study.results(BASELINES)
    for metric in SET_METRICS[:2]:
        gained, in_paper = [], []
        for name in results.sets:
            for m in BASELINES:
                pair = [results.value(name, m.name, metric, rule) for rule in ("sets", "regression")]
                if not np.isnan(pair).any():
                    gained.append(pair[1] - pair[0])
                    paper = PAPER["table4"][metric][PAPER_SET.get(name, name)][m.title]
                    in_paper.append(paper["regression"] - paper["default"])
        if gained:
            won, also = (sum(d > 0 for d in part) for part in (gained, in_paper))
            lines.append(
                f"- Table 4, {metric}: regression is above the default threshold in {won} of {len(gained)} "
                f"cells (paper: {also}), by {np.mean(gained):.3f} on average (paper: {np.mean(in_paper):.3f})"
            )
    own = [name for name in results.sets if name not in PAPER_SET]
    with_listnet = study.results((LISTNET, *BASELINES), own)
    same = [
        is_behind(with_listnet, name, m, metric) == bool(mark_of_paper(name, m, metric))
        for name in own
        for metric in SET_METRICS
        for m in BASELINES
    ]
    lines.append(
        "- Table 5, the paper's sets: whether a baseline is behind MLC-ListNet at 5 % is as in the paper "
        f"in {sum(same)} of {len(same)} cells"
    )
    return "\n".join(lines)


def over_seeds(
    study: Study, name: str, reading: Reading, method: Method = LISTNET, seeds=SEEDS
) -> np.ndarray | None:
    """float64 (seeds, 3): what the label sets of the method's runs are worth; None where one is not run."""
    problem, out = study.problems[name], []
    for seed in seeds:
        result = study.result(name, method, seed)
        if result is None:
            return None
        out.append(of_sets(problem.Y_test, sets_of(result, problem.Y, reading)))
    return np.array(out)


def _cell(value: float, paper: float, decimals: int, mark: str = "", mark_of_paper: str = "") -> str:
    ours = DASH if np.isnan(value) else number(value, decimals) + mark
    return f"{ours} [{number(paper, decimals)}{mark_of_paper}]"


def table5(study: Study) -> str:
    methods = (LISTNET, *BASELINES)
    results, rows = study.results(methods), []
    for metric in SET_METRICS:
        rows.append([f"**{metric}**"] + [""] * len(methods))
        for name in results.sets:
            paper, cells = PAPER["table5"][metric][PAPER_SET.get(name, name)], []
            for m in methods:
                value = results.value(name, m.name, metric, "regression")
                marks = [mark(results, name, m, metric), mark_of_paper(name, m, metric)]
                cells.append(_cell(value, paper[m.title], digits(name, metric), *marks))
            rows.append([name, *cells])
    return markdown(["", *(m.title for m in methods)], rows)


def is_behind(results: Results, name: str, method: Method, metric: str) -> bool:
    """Whether MLC-ListNet is significantly better."""
    ours, theirs = (results.value(name, m, metric, "regression") for m in (LISTNET.name, method.name))
    ahead = ours > theirs if greater_is_better(metric) else ours < theirs
    return ahead and bool(mark(results, name, method, metric))


def mark_of_paper(name: str, method: Method, metric: str) -> str:
    printed = PAPER["table5_marks"][metric][PAPER_SET.get(name, name)]
    return printed.get(method.title, "").replace("*", "\\*")


def mark(results: Results, name: str, method: Method, metric: str) -> str:
    """* or ** where a system differs from MLC-ListNet."""
    ours, theirs = (results.judged(name, m, metric, "regression") for m in (LISTNET.name, method.name))
    if ours is None or theirs is None or method is LISTNET:
        return ""
    found = metrics.significance(results.truth[name], ours, theirs, metric)
    return metrics.significance_mark(found).replace("*", "\\*")


def table4(study: Study) -> str:
    results, rows = study.results(BASELINES), []
    for metric in SET_METRICS:
        rows.append([f"**{metric}**"] + [""] * len(BASELINES))
        for name in results.sets:
            paper, cells, decimals = (
                PAPER["table4"][metric][PAPER_SET.get(name, name)],
                [],
                digits(name, metric),
            )
            for m in BASELINES:
                pair = [
                    number(results.value(name, m.name, metric, r), decimals) for r in ("sets", "regression")
                ]
                other = [number(paper[m.title][r], decimals) for r in ("default", "regression")]
                cells.append(f"{' → '.join(pair) if pair[0] != DASH else DASH} [{' → '.join(other)}]")
            rows.append([name, *cells])
    return markdown(["default → regression", *(m.title for m in BASELINES)], rows)


def table6(study: Study) -> str:
    results, rows = study.results(RANKERS), []
    for metric in METRICS:
        rows.append([f"**{metric}**"] + [""] * len(RANKERS))
        for name in results.sets:
            paper = PAPER["table6"][metric][PAPER_SET.get(name, name)]
            values = [results.value(name, m.name, metric) for m in RANKERS]
            cells = [_cell(v, paper[m.title], digits(name, metric)) for m, v in zip(RANKERS, values)]
            rows.append([name, *cells])
    return markdown(["", *(m.title for m in RANKERS)], rows)


def distances(study: Study, reading: Reading) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """How far from the paper's three figures MLC-ListNet is on each set, and each baseline of Table 4."""
    of_listnet, of_baselines = [], []
    for name in study.small():
        found = over_seeds(study, name, reading)
        if found is not None:
            of_listnet.append(np.abs(found.mean(axis=0) - printed("table5", name, LISTNET.title)))
        for m in BASELINES:
            result = study.result(name, m)
            if result is not None:
                kept = sets_of(result, study.problems[name].Y, reading)
                value = of_sets(study.problems[name].Y_test, kept)
                of_baselines.append(np.abs(value - printed("table4", name, m.title, "regression")))
    return of_listnet, of_baselines


def readings(study: Study) -> str:
    rows = []
    for title, reading in READINGS.items():
        cells = []
        for name in study.small():
            found = over_seeds(study, name, reading)
            cells.append(DASH if found is None else " / ".join(number(v) for v in found.mean(axis=0)))
        mean = [number(float(np.mean(d)), 4) if d else DASH for d in distances(study, reading)]
        rows.append([title, *cells, *mean])
    paper = [" / ".join(number(v) for v in printed("table5", name, LISTNET.title)) for name in study.small()]
    rows.append(["paper", *paper, DASH, DASH])
    return markdown(["reading", *study.small(), "distance, ListNet", "distance, baselines"], rows)


def place_of_the_reading(study: Study) -> str:
    """Where the chosen reading stands among all combinations."""
    choices = product(
        ("shift", "softmax", "mean", "raw"),
        ("training", "held-out"),
        ("sorted", "label"),
        ("most", "fewest", "widest"),
        ("middle", "lower", "upper"),
        (1, 0),
    )
    found = {reading: distances(study, reading) for reading in (Reading(*choice) for choice in choices)}
    if not all(of_listnet and of_baselines for of_listnet, of_baselines in found.values()):
        return "Not all is there that the readings are compared by."
    by_listnet = {r: float(np.mean(parts[0])) for r, parts in found.items()}
    by_all = {r: float(np.mean(parts[0] + parts[1])) for r, parts in found.items()}
    places = [
        sum(d < values[READING] - 1e-12 for d in values.values()) + 1 for values in (by_listnet, by_all)
    ]
    told = [
        f"({values[READING]:.4f}; the least is {min(values.values()):.4f})" for values in (by_listnet, by_all)
    ]
    return (
        f"Of all {len(found)} combinations of what the rows vary, the chosen one has place {places[0]} by "
        f"the distance of MLC-ListNet {told[0]} and place {places[1]} by all 45 figures {told[1]}. It was "
        "chosen by these very figures, and since the paper speaks of scores of training rows."
    )


def library_cut(study: Study) -> str:
    """`InstanceCut` learned for F1 and, as before, for Hamming loss, by cross-validation on training rows."""
    rows = []
    names = ("micro-F1", "macro-F1", "example-F1", "Hamming")
    for name in study.small():
        Y = study.problems[name].Y
        for target, metric in (("widest gap", "hamming"), ("most labels", "micro-f1")):
            worth = []
            for method in (LISTNET, *BASELINES):
                result = study.result(name, method)
                if result is not None:
                    kept = cross_fitted_sets(result, Y, metric).astype(np.int8)
                    found = metrics.evaluate(Y.astype(np.float32), None, list(names), Y_pred=kept)
                    worth.append([found[m] for m in names])
            cells = [number(v) for v in np.mean(worth, axis=0)] if worth else [DASH] * len(names)
            rows.append([name, target, *cells])
    return markdown(["training rows of", "target", *names], rows)


def cross_fitted_sets(result: Result, Y: np.ndarray, metric: str) -> np.ndarray:
    """Label sets of training rows, bool (N, L), by a cut that has learned on the other rows."""
    scores = unbounded(result["held_out"], result["probabilities"]).ravel()
    pairs, n = Candidates.all_labels(*Y.shape), len(Y)
    # Folds that cross those of the scores, and one another.
    logits = Calibrator().fit(pairs, scores, Y.ravel(), fold_of_rows(n, 10, 1)).cross_fitted_
    lists, fold = ScoredLists(pairs, logits, Y.ravel()), fold_of_rows(n, 5, 2)
    kept = np.zeros(Y.shape, bool)
    for f in range(5):
        cut = InstanceCut().fit(lists.rows(np.flatnonzero(fold != f)), metric)
        kept[fold == f] = cut.keep(lists.rows(np.flatnonzero(fold == f))).reshape(-1, Y.shape[1])
    return kept


def features(study: Study) -> str:
    rows = []
    for title, method in FEATURES.items():
        cells = []
        for name in study.small():
            found = over_seeds(study, name, READING, method, SEEDS_OF_FEATURES)
            if found is None:
                cells.append(DASH)
                continue
            truth = study.problems[name].Y_test.astype(np.float32)
            results = [study.result(name, method, seed) for seed in SEEDS_OF_FEATURES]
            ranked = [metrics.evaluate(truth, r["scores"], ["MAP"])["MAP"] for r in results if r is not None]
            cells.append(" / ".join(number(v) for v in (np.mean(ranked), *found.mean(axis=0))))
        rows.append([title, *cells])
    paper = []
    for name in study.small():
        values = (PAPER["table6"]["MAP"][name][LISTNET.title], *printed("table5", name, LISTNET.title))
        paper.append(" / ".join(number(v) for v in values))
    rows.append(["paper", *paper])
    return markdown(["described by", *(f"{n}: MAP / F1s / Hamming" for n in study.small())], rows)


# What Fig. 2 shows, or may show: of label sets by which threshold, and of the ranking.
FIGURE_COLUMNS = {
    "default": ("micro-F1", "sets"),
    "regression": ("micro-F1", "regression"),
    "MAP": ("MAP", "sets"),
}


def figure2(study: Study) -> str:
    sets = [name for name in FIGURE_SETS if name in study.problems]
    rows, plain, meta = [], study.results(BASELINES, sets), study.results(ON_META[10], sets)
    for one, other in zip(BASELINES, ON_META[10]):
        cells = []
        for metric, rule in FIGURE_COLUMNS.values():
            before, after = (
                float(np.mean([results.value(name, m.name, metric, rule) for name in sets]))
                for results, m in ((plain, one), (meta, other))
            )
            cells.append(f"{number(before)} → {number(after)}")
        rows.append([one.title, *cells])
    return markdown(["", "micro-F1, default threshold", "micro-F1, regression", "MAP"], rows)


def figure2_by_set(study: Study) -> str:
    rows = []
    for name in (n for n in FIGURE_SETS if n in study.problems):
        shown = [BASELINES, *(ON_META[k] for k in (10, 30) if k == 10 or name in MANY_K_SETS)]
        of_parts = [(methods, study.results(methods, [name])) for methods in shown]
        for what, (metric, rule) in FIGURE_COLUMNS.items():
            cells = [
                " → ".join(number(r.value(name, methods[i].name, metric, rule)) for methods, r in of_parts)
                for i in range(len(BASELINES))
            ]
            rows.append([name, what, *cells])
    return markdown(["original → k = 10 → k = 30", "", *(m.title for m in BASELINES)], rows)


def seeds(study: Study) -> str:
    rows, results = [], study.results([LISTNET])
    for name in study.small():
        found = over_seeds(study, name, READING)
        if found is None:
            continue
        for i, metric in enumerate(SET_METRICS):
            values = found[:, i]
            spread = (
                f"{values.mean():.3f} ± {values.std(ddof=1):.3f} ({values.min():.3f} to {values.max():.3f})"
            )
            error = results.standard_error(name, LISTNET.name, metric)
            rows.append(
                [name, metric, number(printed("table5", name, LISTNET.title)[i]), spread, number(error)]
            )
    return markdown(["set", "", "paper", "here", "standard error"], rows)


def what_was_run(study: Study) -> str:
    rows = []
    for name in study.problems:
        for method in (*RANKERS, *BASELINES):
            result = study.result(name, method)
            if result is None:
                rows.append([name, method.title, "not run", ""])
                continue
            chosen = ", ".join(f"{k} = {v}" for k, v in result["chosen"].items())
            rows.append([name, method.title, chosen, f"{result['fit_cpu_s']:.1f}"])
    return markdown(["set", "system", "chosen", "fit with its choices, CPU s"], rows)


if __name__ == "__main__":
    sys.exit(main())

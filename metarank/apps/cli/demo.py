"""Train on the documentation of installed packages and show what comes out.

The data need no download: a document is the docstring of a function, its labels are the functions
that its See Also section names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from metarank.apps.cli._common import add_jobs_option, add_seed_option, print_page, showing_progress, table
from metarank.model.auto import EFFORTS

if TYPE_CHECKING:
    from metarank.apps.report import Report
    from metarank.apps.report.examples import Example
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.types.candidates import Candidates
    from metarank.types.ranking import Ranking


TABLE_METRICS = ("P@1", "P@5", "nDCG@5", "R@10", "PSP@5", "micro-F1")
# Neighbours that vote in the baseline: the number that is best, held out, on the training rows.
NEIGHBOR_CHOICES = (1, 3, 5, 10, 20, 50)
# Functions shown at length: one a package, at the middle of its quality.
EXAMPLE_LABELS = (3, 6)
LISTED = 5
CONFIRMED = "confirmed: it names this function"
REASONS_ON_TERMINAL = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "--out", metavar="DIR", default="metarank-demo", help="folder to write (default metarank-demo)"
    )
    add_seed_option(parser, "seed of the split and of the model (default 0)")
    parser.add_argument(
        "--effort", choices=EFFORTS, default="medium", help="how many sources to try (default medium)"
    )
    parser.add_argument("--rows", type=int, default=None, metavar="N", help="train on so many functions only")
    add_jobs_option(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank._util.threads import resolve_n_jobs
    from metarank.apps.report import dated, write_report
    from metarank.data.pydocs import load_pydocs
    from metarank.model.estimator import MetaRanker

    resolve_n_jobs(args.jobs)
    if args.rows is not None and args.rows < 50:
        raise ValueError(f"--rows must be at least 50, got {args.rows}")
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    train, test = load_pydocs("train", args.seed), load_pydocs("test", args.seed)
    if args.rows is not None:
        train = train.take(np.sort(np.random.default_rng(args.seed).permutation(train.n_rows)[: args.rows]))
    print_page(_about(train, test))
    sys.stdout.flush()

    model = MetaRanker(effort=args.effort, n_jobs=args.jobs, random_state=args.seed)
    with showing_progress():
        model.fit(train, exclude=itself(train))
        report = measure_demo(model, train, test)
        model.save(out / "model")
        write_report(out / "report.html", dated(report, out / "model"))
    print()
    print_page(_metrics(report))
    print()
    print_page(_examples(report))
    print(f"report  {out / 'report.html'}")
    print(f"model   {out / 'model'}   ({time.monotonic() - started:.0f} s in all)")
    print("\nnext, for instance:")
    folder, text = shlex.quote(str(out / "model")), "eigenvalues of a symmetric matrix"
    # As this program was called: from a virtual environment that is not active, by its path.
    by_path = os.path.basename(sys.argv[0]) == "metarank" and not shutil.which("metarank")
    program = os.path.relpath(sys.argv[0]) if by_path else "metarank"
    print(f'  {program} predict {folder} --text "{text}"')
    print(f'  {program} explain {folder} --text "{text}" --top 2')


def measure_demo(model: MetaRanker, train: Dataset, test: Dataset) -> Report:
    """The report on the test functions.

    A function is never in its own See Also section, though no label fits its text better; so its own
    label is excluded, for the model and the baselines alike.
    """
    from metarank._util.progress import as_part
    from metarank.apps.report.content import measure_report

    own = itself(test)
    ranking = model.rank(test, exclude=own)
    with as_part("baselines", 0.0, 0.0):
        others = baselines(model, train, test)
    report = measure_report(
        model,
        test,
        baselines=others,
        exclude=own,
        rows=_shown_rows(test, ranking),
    )
    answers = _Answers()
    examples = [
        replace(
            e,
            proposed=[
                replace(s, note=CONFIRMED if answers.named_by(s.name, e.title) else "") for s in e.proposed
            ],
        )
        for e in report.examples
    ]
    return replace(
        report,
        title="Which functions belong in “See also”?",
        lead=(
            "Each document is the docstring of a function of numpy, scipy, scikit-learn or lightgbm without "
            "its See Also section; its labels are the functions that section names. metarank learns from "
            f"{train.n_rows:,} of them and proposes labels for {test.n_rows:,} others."
        ),
        facts=[("training functions", f"{train.n_rows:,}"), *report.facts],
        examples=examples,
        examples_note=(
            "One function of each package, at the middle of the package's nDCG@5. A proposal is confirmed "
            "if the other function's own See Also section names this one: such links are missing, not wrong."
        ),
        notes=[*report.notes, answers.summary(test, ranking)],
    )


def itself(dataset: Dataset) -> list[list[int]]:
    """For each row the label that is the function itself, where it is a label."""
    from metarank.data.pydocs import own_labels

    return [[int(label)] if label >= 0 else [] for label in own_labels(dataset)]


def baselines(model: MetaRanker, train: Dataset, test: Dataset, k: int = 10) -> dict[str, Ranking]:
    """What a person would try first: frequent labels, neighbours' labels, labels with similar text."""
    from metarank import metrics
    from metarank.apps.report.baselines import POPULARITY
    from metarank.scorers.base import LabelScorer
    from metarank.scorers.crossfit import held_out_shortlist
    from metarank.scorers.names.words import NameScorer
    from metarank.scorers.neighbors.voting import NeighborShortlister
    from metarank.types.candidates import Candidates
    from metarank.types.checks import check_candidates
    from metarank.types.ranking import Ranking
    from metarank.types.view import TrainingSet, fold_of_rows

    X, X_test = model.encoder_.encode(train), model.encoder_.encode(test)
    names = list(train.label_names or ())
    text = model.encoder_.label_text(X, names, list(train.label_texts or ()), None)
    fold = fold_of_rows(train.n_rows, model.n_folds, model.random_state_)
    data = TrainingSet(X, train.Y, fold, label_names=names, label_text=text)

    own, own_of_train = (check_candidates(itself(part), part.n_rows, part.n_labels) for part in (test, train))

    def best(scores: Candidates, own: Candidates) -> Ranking:
        return Ranking.from_scores(scores.without(own), k, n_jobs=1)

    def proposals(scorer: LabelScorer) -> Ranking:
        fitted = scorer.fit(data.view())
        return best(fitted.shortlist(X_test, k + 1), own)

    def quality(n_neighbors: int) -> float:
        scorer = NeighborShortlister(ks=(n_neighbors,))
        held_out = held_out_shortlist(scorer, data, k + 1, rows=np.arange(train.n_rows))
        return metrics.evaluate(train.Y, best(held_out, own_of_train), ["nDCG@5"], n_jobs=1)["nDCG@5"]

    n_neighbors = max(NEIGHBOR_CHOICES, key=quality)
    frequency = np.bincount(train.Y.indices, minlength=train.n_labels).astype(np.float32)
    everywhere = Candidates.all_labels(test.n_rows, test.n_labels)
    everywhere = Candidates(
        everywhere.indptr, everywhere.labels, test.n_labels, {"": np.tile(frequency, test.n_rows)}
    )
    return {
        NameScorer.title: proposals(NameScorer()),
        f"{NeighborShortlister.title} (k = {n_neighbors})": proposals(NeighborShortlister(ks=(n_neighbors,))),
        POPULARITY: best(everywhere, own),
    }


# --- what is shown ---


def _about(train: Dataset, test: Dataset) -> str:
    n_labels, per_row = train.n_labels, train.Y.nnz / train.n_rows
    return (
        f"Data: the docstrings of {train.n_rows + test.n_rows:,} functions ({train.n_rows:,} to learn from, "
        f"{test.n_rows:,} to test); labels: the {n_labels:,} functions\n"
        f"named in See Also sections, {per_row:.1f} a function. Task: say what belongs there."
    )


def _metrics(report: Report) -> str:
    from metarank.metrics import Metric

    rows = [
        [method, *(Metric.parse(name).shown(values[name].value) for name in TABLE_METRICS)]
        for method, values in report.metrics.items()
    ]
    return table(["", *TABLE_METRICS], rows) + "\n" + "\n".join(textwrap.wrap(report.notes[-1], 100))


def _shown_rows(test: Dataset, ranking: Ranking) -> np.ndarray:
    """One row of each package: the median of nDCG@5 among those with a few labels."""
    from metarank.apps.report.examples import typical_rows

    n_labels = np.diff(test.Y.indptr)
    few = (n_labels >= EXAMPLE_LABELS[0]) & (n_labels <= EXAMPLE_LABELS[1])
    package = np.array([text.partition(".")[0] for text in test.texts or ()])
    rows = [typical_rows(test.Y, ranking, 1, eligible=few & (package == name)) for name in np.unique(package)]
    return np.concatenate(rows)


class _Answers:
    """Who names whom in the whole relation: does a proposed function name the one it is proposed for?"""

    def __init__(self) -> None:
        from metarank.data.pydocs import see_also_graph

        graph = see_also_graph()
        self.row = {name: i for i, name in enumerate(graph.names)}
        self.links = {(int(a), int(b)) for a, b in zip(*graph.links.nonzero())}

    def named_by(self, proposed: str, function: str) -> bool:
        """Whether the proposed function's own See Also section names the function."""
        return (self.row.get(proposed, -1), self.row.get(function, -1)) in self.links

    def summary(self, test: Dataset, ranking: Ranking) -> str:
        """How many of the newly proposed labels are confirmed that way."""
        names, functions = test.label_names or [], [text.partition("\n")[0] for text in test.texts or ()]
        relevant = test.Y.tolil().rows
        new = [
            self.named_by(names[label], functions[i])
            for i, row in enumerate(ranking)
            for label, _ in row[:LISTED]
            if label not in relevant[i]
        ]
        if not new:
            return ""
        return (
            f"Of {len(new):,} labels newly proposed among the first {LISTED}, {sum(new):,} "
            f"({100 * sum(new) / len(new):.0f} %) are links the data miss: the proposed function's own "
            "See Also section names the test function."
        )


def _examples(report: Report) -> str:
    return "\n".join(_example(e) for e in report.examples)


def _example(e: Example) -> str:
    lines = [e.title, *_indented(textwrap.shorten(e.text, 150, placeholder=" …"), 2)]
    for word, suggestions in (("found", e.found), ("new", e.proposed)):
        for s in suggestions:
            note = f"  ({s.note})" if s.note else ""
            lines.append(f"  {word:<7}{s.rank}. {s.name}  probability {100 * s.probability:.0f} %{note}")
            why = "; ".join(f"{r.text} {r.contribution:+.2f}" for r in s.reasons[:REASONS_ON_TERMINAL])
            lines += _indented(why, 11)
    for name, rank in e.missed:
        where = f"stands at {rank}" if rank else "no candidate, or far down"
        lines.append(f"  missed {name}  ({where})")
    return "\n".join(lines) + "\n"


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent=" " * width, subsequent_indent=" " * width)

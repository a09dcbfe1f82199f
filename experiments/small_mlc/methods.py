"""What is run on a set: metarank, the paper's systems, the baselines, and baselines on meta-features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import baselines
import numpy as np
import rankers
import scipy.sparse as sp
from baselines.base import Baseline, Features, Scorer, held_out_scores
from cache import Result, source_digest
from datasets import Problem
from timing import Stopwatch, latency

import metarank
from metarank import MetaRanker
from metarank.data.scaling import FeatureTransform
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

# The cut each metric of label sets is measured with.
CUTS = {"micro-F1": "micro-f1", "macro-F1": "macro-f1", "Hamming": "hamming"}
# Neighbours a pair in the meta-features fed to baselines (Fig. 2, Table 7).
META_K = 10
_HERE = Path(__file__).parent
_PACKAGE = Path(metarank.__file__).parent


@dataclass(frozen=True)
class Settings:
    """What all methods of a run share."""

    quick: bool = False
    n_jobs: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Method:
    """A column of the tables.

    run : what is measured
    is_peer : neither ours nor the paper's idea in our code
    skips : why it is not run on a problem, or None
    sources : files and folders its result depends on
    """

    name: str
    title: str
    run: Callable[[Problem, Settings], Result]
    sources: tuple[Path, ...]
    is_peer: bool = False
    skips: Callable[[Problem], str | None] = lambda problem: None

    def key(self, problem: Problem, settings: Settings) -> str:
        return f"{problem.key[:16]} {source_digest(self.sources)[:16]} {settings}"


# --- metarank ---------------------------------------------------------------


def run_metarank(problem: Problem, settings: Settings, **params: Any) -> Result:
    """Fit, score and cut; `params` are those of MetaRanker."""
    model = MetaRanker(n_jobs=settings.n_jobs, random_state=settings.seed, **params)
    with Stopwatch() as watch:
        model.fit(problem.X, sp.csr_matrix(problem.Y, dtype=np.float32))
    scores = model.decision_function(problem.X_test)
    sets = {f"sets:{m}": model.predict(problem.X_test, optimize=cut).toarray() > 0 for m, cut in CUTS.items()}
    return {
        "fit_cpu_s": watch.cpu,
        "fit_wall_s": watch.wall,
        "scores": scores,
        "cuts": model.thresholds_.summary(),
        **sets,
        **latency(lambda X: model.rank(X, k=10), problem.X_test),
    }


def metarank_method(name: str, title: str, **params: Any) -> Method:
    return Method(name, title, lambda p, s: run_metarank(p, s, **params), (_PACKAGE, _HERE / "methods.py"))


# --- baselines --------------------------------------------------------------


def run_baseline(
    kind: type[Baseline], problem: Problem, settings: Settings, *, held_out: bool = True
) -> Result:
    """Fit, score, and cut by the system's default.

    Kept too are the scores of training rows from which `paper_cut` learns and, with `held_out`, those by
    models of the other folds, from which `learned_cuts` does.
    """
    common = {"quick": settings.quick, "n_jobs": settings.n_jobs, "seed": settings.seed}
    model = kind(**common)
    with Stopwatch() as watch:
        model.fit(problem.scaled, problem.Y)
    scores = model.scores(problem.scaled_test)
    training, of_others = model.training_scores(), None
    if held_out or training is None:

        def fit(X: Features, Y: np.ndarray) -> Scorer:
            return kind(**common, given=model.chosen).fit(X, Y).scores

        of_others = held_out_scores(fit, problem.scaled, problem.Y, settings.seed)
    return {
        "fit_cpu_s": watch.cpu,
        "fit_wall_s": watch.wall,
        "chosen": model.chosen,
        "scores": scores,
        "sets": model.decide(scores),
        **({} if training is None else {"training": training}),
        **({} if of_others is None else {"held_out": of_others}),
        "probabilities": kind.cut == 0.5,
        **latency(model.scores, problem.scaled_test),
    }


def baseline_method(
    kind: type[Baseline],
    title: str,
    *,
    skips: Callable[[Problem], str | None] = lambda problem: None,
    held_out: Callable[[Problem], bool] = lambda problem: True,
) -> Method:
    return Method(
        kind.__name__,
        title,
        lambda p, s: run_baseline(kind, p, s, held_out=held_out(p)),
        _baseline_sources(kind),
        is_peer=True,
        skips=skips,
    )


def ranker_method(kind: type[rankers.PaperRanker], name: str, title: str) -> Method:
    """A system of the paper. Held-out scores of many rows, which no table needs, are left out for time."""
    return Method(
        name,
        title,
        lambda p, s: run_baseline(kind, p, s, held_out=len(p.Y) <= baselines.base.MANY_ROWS),
        (
            *(_HERE / f"{m}.py" for m in ("methods", "rankers", "lambda_net")),
            *(_PACKAGE / part for part in ("ranker", "scorers/neighbors", "_core")),
        ),
    )


def on_meta_features(kind: type[Baseline], title: str) -> Method:
    """A baseline that is given the concatenated meta-features of a row instead of its features (Fig. 2)."""
    return Method(
        f"{kind.__name__}-meta",
        f"{title} on meta-features",
        lambda p, s: run_baseline(kind, with_meta_features(p, s), s, held_out=False),
        _baseline_sources(kind),
        skips=lambda p: "90 labels x 32 meta-features a label, dense" if p.Y.shape[1] > 50 else None,
    )


def with_meta_features(problem: Problem, settings: Settings, k: int = META_K) -> Problem:
    """z_i of eq. 2: the meta-features of all labels side by side, scaled; training rows held out."""
    n, n_labels = problem.Y.shape
    fold = fold_of_rows(n, 5, settings.seed)
    data = TrainingSet(problem.scaled, sp.csr_matrix(problem.Y, dtype=np.float32), fold, seed=settings.seed)
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for scorer in (LabelNeighbors(k=k, columns="raw"), Centroids()):
        train = held_out_columns(scorer, data, Candidates.all_labels(n, n_labels), n_jobs=settings.n_jobs)
        scorer.fit(data.view())
        X_test = problem.scaled_test
        test = scorer.score(X_test, Candidates.all_labels(X_test.shape[0], n_labels), n_jobs=settings.n_jobs)
        for part, columns in zip(parts, (train, test)):
            part += [values.reshape(-1, n_labels) for values in columns.values()]
    X, X_test = (np.hstack(part) for part in parts)
    scale = FeatureTransform().fit(X)
    return replace(problem, scaled=scale.transform(X), scaled_test=scale.transform(X_test))


def _baseline_sources(kind: type[Baseline]) -> tuple[Path, ...]:
    modules = {c.__module__.rsplit(".", 1)[-1] for c in kind.__mro__ if c.__module__.startswith("baselines.")}
    return (*(_HERE / "baselines" / f"{m}.py" for m in sorted(modules | {"logistic"})), _HERE / "methods.py")


# --- the columns of the tables ----------------------------------------------


METARANK = metarank_method("metarank", "metarank")

# The baselines of the paper, in the order of its tables.
PAPER_BASELINES = (
    baseline_method(baselines.BinarySVM, "Binary-SVM"),
    baseline_method(baselines.RankSVM, "Rank-SVM"),
    baseline_method(baselines.IBLR, "IBLR-ML"),
    baseline_method(baselines.MLkNN, "ML-kNN"),
)
IBLR_PLUS = baseline_method(baselines.IBLRPlus, "IBLR-ML+")
PICKS = (
    baseline_method(baselines.LogisticOneVsRest, "Logistic"),
    baseline_method(baselines.RBFSVM, "SVM, RBF"),
    baseline_method(baselines.LightGBMOneVsRest, "LightGBM"),
    baseline_method(baselines.ExtraTrees, "Extra trees 500"),
    baseline_method(baselines.RandomForest, "Random forest 500"),
    baseline_method(baselines.ClassifierChainLR, "Chains of LR"),
)
PEERS = (*PAPER_BASELINES, IBLR_PLUS, *PICKS)
LISTNET = ranker_method(rankers.PaperListNet, "listnet", "MLC-ListNet")
# The learners of Table 6, in its order.
RANKERS = (
    ranker_method(rankers.PaperSVMMAP, "svmmap", "MLC-SVM-MAP"),
    ranker_method(rankers.PaperRankSVM, "ranksvm", "MLC-RankSVM-IR"),
    ranker_method(rankers.PaperLambdaRank, "lambdarank", "MLC-LambdaRank"),
    LISTNET,
)
ON_META = (
    on_meta_features(baselines.BinarySVM, "Binary-SVM"),
    on_meta_features(baselines.RankSVM, "Rank-SVM"),
    on_meta_features(baselines.IBLR, "IBLR-ML"),
    on_meta_features(baselines.MLkNN, "ML-kNN"),
)
VOWEL = (METARANK, LISTNET, PEERS[0], ON_META[0], PICKS[1], PICKS[3])

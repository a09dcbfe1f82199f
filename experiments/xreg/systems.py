"""The rows of the tables: each a function from a problem to predicted relevances, with what they cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from problems import EXTREME, Problem, SetSpec
from rivals import LowRank, PairwiseRanker, shortlist
from scipy.special import expit

from metarank import Candidates, persist
from metarank.scorers.trees.hierarchy import Hierarchy
from metarank.shortlist import OneVsAll, Parabel, PfastreXML, XReg
from metarank.types.view import TrainingSet

K = 100  # labels predicted for a point, points for a label
_LARGEST_DENSE = 2**31  # bytes of a weight matrix
_LONGEST_FLAT = 5e9  # labels times non-zeros of X that a flat logistic fit passes over again and again


@dataclass(frozen=True)
class Settings:
    """Where the peers' environments and runs are; `only_kept`: none of their runs is made."""

    environments: Path
    peers_cache: Path
    only_kept: bool = False


@dataclass
class Outcome:
    """Predictions for all test points, and what they cost.

    found : the best labels of every point, or the best points of every label, as rows of points
    """

    found: Candidates
    figures: dict[str, Any] = field(default_factory=dict)


class NotHere(RuntimeError):
    """Why a system has no row on a set."""


Run = Callable[[Problem, dict[str, Any], Settings], Outcome]


@dataclass(frozen=True)
class System:
    """A row of the tables; `params` are in the key of a kept run."""

    name: str
    run: Run = field(compare=False)
    params: dict[str, Any] = field(default_factory=dict, compare=False)


# In the words of shortlist_speed/settings.py.
PEERS = ("omikuji parabel3", "napkinxc parabel3", "pecos default3", "pecos one-vs-all")
# Few labels a point leave most labels without points: against labelwise prediction alone.
SHORT_LISTS = ("Parabel, 10 labels a point", "XReg, 10 labels a point")


def systems_for(spec: SetSpec) -> list[System]:
    """All rows of a set. Ours have their default parameters but for what is given here."""
    relevance: dict[str, Any] = {"relevance": "graded"}
    if spec.relevance == "inverse propensity":
        relevance = {"relevance": "inverse-propensity", "propensity": spec.propensity}
    direction = {"labelwise": True} if spec.labelwise else {}

    def xreg(name: str, **params: Any) -> System:
        return System(name, label_tree, {"estimator": "XReg", **relevance, **direction, **params})

    trees = [
        System("Parabel", label_tree, {"estimator": "Parabel"}),
        System("Parabel, two-way trees", label_tree, {"estimator": "Parabel", "branching": 2}),
    ]
    if spec.relevance != "inverse propensity" or spec.labelwise:
        binary = {"relevance": "binary", "loss": "logistic"}
        trees += [System("XReg, binary relevance", label_tree, {"estimator": "XReg", **binary})]
    if spec.labelwise:
        trees += [
            System("XReg, pointwise", label_tree, {"estimator": "XReg", **relevance}),
            System(SHORT_LISTS[0], label_tree, {"estimator": "Parabel", "k": 10}),
            System(SHORT_LISTS[1], label_tree, {"estimator": "XReg", "k": 10, **relevance}),
        ]
    trees += [
        xreg("XReg"),
        xreg("XReg, two-way trees", branching=2),
        xreg("XReg, own maxima", normalize="label"),
        xreg("XReg, chosen maxima", normalize="auto"),
        xreg("XReg-t", tail="auto"),
        xreg("XReg-t, chosen maxima", normalize="auto", tail="auto"),
    ]
    peers = [System(name, peer, {"peer": name}) for name in PEERS]
    flat = [
        System("1-vs-all least squares", one_vs_all, {"loss": "ridge", "relevance": "graded"}),
        System("DiSMEC", one_vs_all, {"loss": "squared_hinge"}),
    ]
    if spec.source == EXTREME.source:
        return [*trees, *flat, *peers]
    return [
        *trees,
        System("PfastreXML", instance_trees, relevance),
        *flat,
        System("1-vs-all logistic", one_vs_all_logistic),
        System("RankSVM, sampled", pairwise),
        System("low rank (LEML)", low_rank),
        *peers,
    ]


def label_tree(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """Parabel or XReg. Parabel sees relevant and irrelevant; its probability 1 is the greatest relevance."""
    params = dict(params)
    kind = {"Parabel": Parabel, "XReg": XReg}[params.pop("estimator")]
    labelwise, k = params.pop("labelwise", False), params.pop("k", K)
    model = kind(**params)
    clock = Clock()
    chooses = params.get("normalize") == "auto"
    if chooses:
        fold = np.zeros(problem.X.shape[0], np.int32)
        model = model.tuned(TrainingSet(problem.X, problem.Y, fold, seed=model.random_state).view())
    model.fit(problem.X, problem.Y)
    clock.trained()
    if labelwise:
        found = model.shortlist_points(problem.X_test, k=k).transpose()
    else:
        found = model.shortlist(problem.X_test, k=k)
    binary = kind is Parabel or params.get("relevance") == "binary"
    cost = clock.cost(problem, size_mib(model))
    if params.get("tail"):
        cost["alpha"] = model.alpha_points_ if labelwise else model.alpha_
    if chooses:
        settings = {name: getattr(model, name) for name in ("normalize", "loss")}
        cost["chosen"] = {name: value for name, value in settings.items() if value != "auto"}
    return Outcome(rescored(found, (lambda s: s * problem.scale) if binary else None), cost)


def instance_trees(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    model = PfastreXML(**params)
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = model.shortlist(problem.X_test, k=K)
    return Outcome(rescored(found), clock.cost(problem, size_mib(model)) | {"alpha": model.alpha_})


def one_vs_all(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """`OneVsAll`: the ridge on the relevances themselves, the squared hinge (DiSMEC) on relevant or not.

    The ridge's predictions below 0 count as 0 in errors; a margin z counts as 1 / (1 + exp(-4 z)).
    """
    model = OneVsAll(**params)
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = model.shortlist(problem.X_test, k=K)
    cost = clock.cost(problem, size_mib(model))
    if params["loss"] == "ridge":
        return Outcome(rescored(found, lambda s: np.maximum(s, 1e-6 * expit(s))), cost)
    return Outcome(rescored(found, lambda s: problem.scale * expit(4 * s)), cost)


def one_vs_all_logistic(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """XReg without a tree: a single node of all labels, trained on all points."""
    seen = np.flatnonzero(np.bincount(problem.Y.indices, minlength=problem.Y.shape[1]))
    if len(seen) * problem.X.nnz > _LONGEST_FLAT:
        raise NotHere("a flat logistic fit takes too long here")
    flat = Hierarchy.from_parents(dict.fromkeys(range(problem.Y.shape[1])), n_labels=problem.Y.shape[1])
    model = XReg(hierarchy=flat.restricted_to(seen))
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = model.shortlist(problem.X_test, k=K)
    return Outcome(rescored(found), clock.cost(problem, size_mib(model)))


def low_rank(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    return _rival(problem, LowRank())


def pairwise(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """A ranker's scores have no unit: 1 stands for the greatest relevance."""
    if 4 * problem.X.shape[1] * problem.Y.shape[1] > _LARGEST_DENSE:
        raise NotHere("its dense weights would not fit")
    outcome = _rival(problem, PairwiseRanker())
    outcome.found = rescored(outcome.found, lambda s: s * problem.scale)
    return outcome


def _rival(problem: Problem, model: LowRank | PairwiseRanker) -> Outcome:
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = shortlist(model, problem.X_test, K)
    return Outcome(rescored(found), clock.cost(problem, model.size_mib))


def peer(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """A system of shortlist_speed, in its own environment; it sees relevant and irrelevant."""
    from peers import run_peer

    try:
        made = run_peer(
            problem.spec.source,
            params["peer"],
            settings.peers_cache,
            settings.environments,
            settings.only_kept,
        )
    except FileNotFoundError:
        raise NotHere("its environment has not been made") from None
    if made is None:
        raise NotHere("the run is not kept")
    found, cost = made
    return Outcome(rescored(found, lambda s: s * problem.scale), cost)


class Clock:
    """CPU seconds of training and prediction of this process, one after the other."""

    def __init__(self) -> None:
        self.begun = time.process_time()

    def trained(self) -> None:
        self.between = time.process_time()

    def cost(self, problem: Problem, model_mib: float) -> dict[str, Any]:
        now = time.process_time()
        return {
            "train_s": self.between - self.begun,
            "test_ms": 1000 * (now - self.between) / problem.X_test.shape[0],
            "model_mib": model_mib,
        }


def rescored(found: Candidates, change: Callable[[np.ndarray], np.ndarray] | None = None) -> Candidates:
    """The same pairs with their first score alone, changed, named "relevance"."""
    scores = next(iter(found.scores.values()))
    if change is not None:
        scores = change(scores).astype(np.float32)
    return Candidates(found.indptr, found.labels, found.n_labels, {"relevance": scores})


def size_mib(model: Any) -> float:
    """Of the saved model, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        persist.save(model, place)
        return sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 2**20

"""The rows of the tables: the baselines, and metarank's own in the same run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from annexml import AnnexML
from borrowed import Clock, Figures, Outcome, Problem, Settings, System, rescored
from compressed_sensing import CompressedSensing
from cplst import CPLST
from cssp import CSSP
from dismec import DiSMEC
from least_squares import LeastSquares
from protocol import Baseline, Popularity, shortlist
from proxml import ProXML
from sleec import SLEEC
from wsabie import WSABIE

from metarank import Candidates, metrics
from metarank.metrics.propensity import PRESETS, inv_propensity
from metarank.shortlist import OneVsAll, Parabel, PfastreXML

K = 100  # labels proposed for a row
METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")
_LONGEST_SOLVES = 1e12  # squared rows times labels, which least squares of all labels take at least
_LONGEST_STEPS = 5e9  # terms of X times labels, over which proximal steps pass again and again

BASELINES: dict[str, type[Baseline]] = {
    "Popularity": Popularity,
    "1-vs-all-LS": LeastSquares,
    "DiSMEC": DiSMEC,
    "ProXML": ProXML,
    "SLEEC": SLEEC,
    "AnnexML": AnnexML,
    "WSABIE": WSABIE,
    "CPLST": CPLST,
    "ML-CSSP": CSSP,
    "CS": CompressedSensing,
}
BONSAI: dict[str, Any] = {"branching": 100, "balanced": False}
OWN: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "Bonsai: `Parabel(branching=100, balanced=False)`": (Parabel, BONSAI),
    "`Parabel()`": (Parabel, {}),
    "`PfastreXML()`": (PfastreXML, {}),
    "`OneVsAll()`": (OneVsAll, {}),
    '`OneVsAll(loss="ridge")`': (OneVsAll, {"loss": "ridge"}),
}
# Single trees whose labels are grouped in equal numbers or not: settings, each with seeds 0 to SEEDS - 1.
TREES: dict[str, dict[str, Any]] = {
    "16 ways, balanced (default)": {},
    "16 ways, not balanced": {"balanced": False},
    "100 ways, balanced": {"branching": 100},
    "100 ways, not balanced (Bonsai)": BONSAI,
}
SEEDS = 3


def judge(problem: Problem, found: Candidates) -> dict[str, float]:
    """All columns, fractions of one."""
    curve = inv_propensity(problem.Y, *PRESETS[problem.spec.propensity])
    return metrics.evaluate(problem.Y_test, found, METRICS, inv_propensity=curve)


def systems() -> list[System]:
    """All rows. A baseline is run anew where its file or `protocol.py` has changed."""
    shared = _digest("protocol")
    ours = [
        System(name, _baseline, {"row": name, "code": [shared, _digest(kind.__module__)]})
        for name, kind in BASELINES.items()
    ]
    return [*ours, *(System(name, _own, {"row": name}) for name in OWN)]


def balance(problem: Problem) -> list[Figures]:
    """A row for each setting of `TREES` and seed."""
    rows = []
    for name, params in TREES.items():
        for seed in range(SEEDS):
            outcome = _fitted(problem, Parabel(n_trees=1, **params, random_state=seed))
            rows.append({"trees": name, "seed": seed, **outcome.figures, **judge(problem, outcome.found)})
    return rows


def too_long(problem: Problem, row: str) -> str | None:
    """Why a row is left out on a set; None where it is not."""
    n, L = problem.Y.shape
    if row == "1-vs-all-LS" and n * n * L > _LONGEST_SOLVES:
        return f"its dense solution of {n} rows and {L} labels takes too long"
    if row == "ProXML" and problem.X.nnz * L > _LONGEST_STEPS:
        return f"150 steps over {problem.X.nnz} terms for each of {L} labels take too long"
    return None


def _baseline(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    model = BASELINES[params["row"]]()
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = shortlist(model, problem.X_test, K)
    return Outcome(found, clock.cost(problem, 0.0))


def _own(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    kind, given = OWN[params["row"]]
    return _fitted(problem, kind(**given))


def _fitted(problem: Problem, model: Any) -> Outcome:
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = model.shortlist(problem.X_test, k=K)
    return Outcome(rescored(found), clock.cost(problem, 0.0))


def _digest(module: str) -> str:
    return hashlib.sha256((Path(__file__).parent / f"{module}.py").read_bytes()).hexdigest()[:16]

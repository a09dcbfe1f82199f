"""The rows of Tables 3 and 4, and how their lists are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from borrowed import (
    Clock,
    Figures,
    K,
    Outcome,
    Problem,
    SetSpec,
    Settings,
    System,
    label_tree,
    low_rank,
    one_vs_all,
    peer,
    rescored,
    size_mib,
)
from collection import REFERENCE, allowed, weights
from sklearn.cluster import MiniBatchKMeans

from metarank import Candidates, metrics
from metarank.shortlist import FastXML, OneVsAll, PfastreXML, PfastXML

KS = (1, 3, 5)
METRICS = tuple(f"{name}@{k}" for name in ("PSP", "PSnDCG", "C", "P", "nDCG") for k in KS)
TREE_PEERS = ("omikuji parabel3", "pecos default3", "napkinxc parabel3")
YARDSTICK = TREE_PEERS[0]
POINTS_A_PARTITION = 500  # of the LPSR-like rival, on average

_OTHER_SEEDS = (1, 2)
_KINDS = {kind.__name__: kind for kind in (FastXML, PfastXML, PfastreXML)}


def judge(problem: Problem, found: Candidates) -> dict[str, float]:
    """All columns, fractions of one."""
    found = allowed(problem, found)
    return metrics.evaluate(problem.Y_test, found, METRICS, inv_propensity=weights(problem))


def contenders(spec: SetSpec) -> list[System]:
    """The rows of a set: default parameters but for what the name says."""
    curve = {"propensity": spec.propensity}
    binary = {"relevance": "binary"}
    if spec.name == REFERENCE:  # only there to compare with the authors' program, which grew 10 trees
        return [
            System("FastXML", forest, {"estimator": "FastXML", "n_trees": 10, **binary}),
            System("PfastXML", forest, {"estimator": "PfastXML", "n_trees": 10, **curve}),
            System(YARDSTICK, peer, {"peer": YARDSTICK}),
        ]
    return [
        System("Popularity", popularity),
        System("1-vs-All", one_vs_all, {"loss": "squared_hinge"}),
        System("LPSR-like", label_partitioning),
        System("LEML-like", low_rank),
        System("FastXML", forest, {"estimator": "FastXML", **binary}),
        System("PfastXML", forest, {"estimator": "PfastXML", **curve}),
        System("PfastreXML, alpha 0.8", forest, {"estimator": "PfastreXML", "alpha": 0.8, **curve}),
        System("PfastreXML", forest, {"estimator": "PfastreXML", **curve}),
        System("Parabel", label_tree, {"estimator": "Parabel"}),
        *(System(name, peer, {"peer": name}) for name in TREE_PEERS),
    ]


def other_seeds(problem: Problem) -> list[Figures]:
    """FastXML and PfastXML of a few trees, as on the reference set, with other seeds than the default."""
    systems = [system for system in contenders(problem.spec) if system.run is forest]
    rows = []
    for system in systems:
        for seed in _OTHER_SEEDS:
            found = forest(problem, {**system.params, "random_state": seed}).found
            rows.append({"system": system.name, "seed": seed, "metrics": judge(problem, found)})
    return rows


def forest(problem: Problem, params: dict[str, Any], settings: Settings | None = None) -> Outcome:
    """FastXML, PfastXML or PfastreXML."""
    params = dict(params)
    model = _KINDS[params.pop("estimator")](**params)
    clock = Clock()
    model.fit(problem.X, problem.Y)
    clock.trained()
    found = model.shortlist(problem.X_test, k=K)
    cost = clock.cost(problem, size_mib(model))
    if hasattr(model, "alpha_"):
        cost["alpha"] = model.alpha_
    return Outcome(rescored(found), cost)


def popularity(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """The most frequent labels, the same for every point."""
    clock = Clock()
    counts = np.bincount(problem.Y.indices, minlength=problem.Y.shape[1])
    best = np.sort(np.argsort(-counts, kind="stable")[:K])
    clock.trained()
    n = problem.X_test.shape[0]
    indptr = np.arange(n + 1, dtype=np.int64) * len(best)
    scores = {"relevance": np.tile(counts[best], n).astype(np.float32)}
    found = Candidates(indptr, np.tile(best, n).astype(np.int32), len(counts), scores)
    return Outcome(found, clock.cost(problem, best.nbytes / 2**20))


def label_partitioning(problem: Problem, params: dict[str, Any], settings: Settings) -> Outcome:
    """LPSR (Weston et al. 2013), simplified: 1-vs-all scores of the labels in the point's own cluster.

    k-means parts the points; a part has the labels of its training points.
    """
    clock = Clock()
    base = OneVsAll().fit(problem.X, problem.Y)
    n_parts = max(1, problem.X.shape[0] // POINTS_A_PARTITION)
    parts = MiniBatchKMeans(n_parts, random_state=0, n_init=3).fit(problem.X)
    member = sp.csr_matrix(
        (np.ones(len(parts.labels_), np.float32), (parts.labels_, np.arange(len(parts.labels_)))),
        shape=(n_parts, problem.X.shape[0]),
    )
    labels = sp.csr_matrix(member @ problem.Y)
    labels.sort_indices()
    clock.trained()
    listed = Candidates.from_csr(labels[parts.predict(problem.X_test)])
    scores = next(iter(base.score(problem.X_test, listed).values()))
    found = Candidates(listed.indptr, listed.labels, listed.n_labels, {"relevance": scores}).top(K)
    return Outcome(found, clock.cost(problem, size_mib(base) + labels.nnz * 4 / 2**20))

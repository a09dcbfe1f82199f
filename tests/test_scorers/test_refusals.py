"""Parameters that sources refuse: the message names the parameter, the rule and the value."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Candidates, Dataset
from metarank.scorers.base import LabelScorer
from metarank.scorers.classical.forest import ExtraTrees
from metarank.scorers.classical.kernel_ridge import KernelRidge
from metarank.scorers.label_weights import FLOOR
from metarank.scorers.linear.linear_svm import LinearClassifier
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.scorers.trees.tail import TailClassifiers
from metarank.shortlist import FastXML, NeighborShortlister, OneVsAll, Parabel, PfastreXML, XReg
from metarank.types.view import TrainingSet

REFUSED = [
    (Parabel, {"n_trees": 0}, "n_trees must be between 1 and 10000, got 0"),
    (Parabel, {"n_trees": 2.0}, "n_trees must be an integer, got 2.0"),
    (Parabel, {"n_trees": True}, "n_trees must be an integer, got True"),
    (Parabel, {"max_leaf": 257}, "max_leaf must be between 1 and 256, got 257"),
    (Parabel, {"balanced": 0}, "balanced must be True or False, got 0"),
    (Parabel, {"C": "auto"}, "C must be a positive number, at most 1e6, got 'auto'"),
    (Parabel, {"C": float("nan")}, "C must be a positive number, at most 1e6, got nan"),
    (Parabel, {"random_state": 1.5}, "random_state must be None, an integer from 0 to .*, got 1.5"),
    (Parabel, {"loss": "absolute"}, "loss must be one of .*, got 'absolute'"),
    (Parabel, {"hierarchy": [[0, 1]]}, "hierarchy must be a Hierarchy or None"),
    (XReg, {"branching": 1}, "branching must be between 2 and 256, got 1"),
    (XReg, {"beam": 0}, "beam must be at least 1, got 0"),
    (XReg, {"prune": -0.1}, "prune must be a non-negative number, at most 1e6, got -0.1"),
    (XReg, {"relevance": "high"}, "relevance must be .*, got 'high'"),
    (XReg, {"normalize": "row"}, "normalize must be one of .*, got 'row'"),
    (
        XReg,
        {"relevance": "inverse-propensity", "loss": "squared_hinge"},
        "loss must be 'logistic' or 'auto' for .* with normalize='global', got 'squared_hinge'",
    ),
    (XReg, {"cost": "median"}, r"cost must be one of \['sum', 'mean'\], got 'median'"),
    (XReg, {"propensity": (0.5, -1)}, r"propensity must be a pair \(a, b\) with 0 < a <= 6 and 0.001 <= b"),
    (XReg, {"propensity": 3}, "propensity must be among .*, got 3"),
    (XReg, {"tail": 0}, "tail must be a number in .0, 1., 'auto' or None, got 0"),
    (XReg, {"tail": "best"}, "tail must be .*, got 'best'"),
    (
        XReg,
        {"tail": 0.5, "name_weight": -1.0},
        r"name_weight must be a number in \[0, 1e6\] or 'auto', got -1.0",
    ),
    (XReg, {"name_weight": 1.0}, r"name_weight must be 0 or 'auto' without tail classifiers, got 1\.0"),
    (XReg, {"tail": 1.0, "name_weight": 1.0}, "name_weight must be 0 or 'auto' without tail classifiers"),
    (XReg, {"tail": 0.5, "name_weight": 1.0}, "where labels have no names, got 1.0; pass a Dataset"),
    (
        PfastreXML,
        {"alpha": 1, "name_weight": 1.0},
        "name_weight must be 0 or 'auto' without tail classifiers",
    ),
    (PfastreXML, {"name_weight": 1.0}, "where labels have no names, got 1.0; pass a Dataset"),
    (PfastreXML, {"name_weight": "yes"}, "name_weight must be"),
    (PfastreXML, {"max_leaf": 1.5}, "max_leaf must be an integer, got 1.5"),
    (PfastreXML, {"labels_per_leaf": 0}, "labels_per_leaf must be at least 1, got 0"),
    (PfastreXML, {"C": 0.0}, "C must be a number between 1e-06 and 1e"),
    (PfastreXML, {"relevance": "clicks"}, "relevance must be 'binary', 'graded' or"),
    (PfastreXML, {"tolerance": 2.0}, "tolerance must be a number between 1e-06 and 1"),
    (PfastreXML, {"alpha": 0}, r"alpha must be a number in \(0, 1\] or 'auto', got 0"),
    (PfastreXML, {"gamma": -1.0}, "gamma must be a positive number"),
    (PfastreXML, {"unit_means": 0}, "unit_means must be True, False or 'auto', got 0"),
    (OneVsAll, {"loss": np.ones(2)}, r"loss must be (?s:.*), got array\(\[1., 1.\]\)"),
    (OneVsAll, {"relevance": "graded"}, "relevance must be .*, got 'graded'"),
    (OneVsAll, {"propensity": "books"}, "propensity must be .*, got 'books'"),
    (OneVsAll, {"C": 1e300}, r"C must be .*, got 1e\+300"),
    (OneVsAll, {"weights_per_label": 1.5}, "weights_per_label must be .*, got 1.5"),
    (OneVsAll, {"tolerance": None}, "tolerance must be .*, got None"),
    (OneVsAll, {"max_epochs": 10**12}, "max_epochs must be .*, got 1000000000000"),
    (OneVsAll, {"intercept_scaling": -1}, "intercept_scaling must be .*, got -1"),
    (OneVsAll, {"max_size": 0}, "max_size must be .*, got 0"),
    (LabelNeighbors, {"k": 0}, "k must be between 1 and 65536, got 0"),
    (LabelNeighbors, {"metrics": ("l3",)}, "metrics must be distinct and among"),
    (LabelNeighbors, {"metrics": ()}, "metrics must be distinct and among"),
    (LabelNeighbors, {"columns": "all"}, "columns must be one of .*, got 'all'"),
    (NeighborShortlister, {"ks": ()}, "ks must not be empty"),
    (NeighborShortlister, {"ks": (3, -1)}, "ks must be between 1 and 65536, got -1"),
    (NeighborShortlister, {"relevance": "graded"}, "relevance must be one of .*, got 'graded'"),
    (NeighborShortlister, {"index": "lsh"}, "index must be one of .*'hnsw'.*, got 'lsh'"),
    (TailClassifiers, {"gamma": np.inf}, "gamma must be"),
    (TailClassifiers, {"unit_means": 1}, "unit_means must be"),
    (TailClassifiers, {"max_terms": 0}, "max_terms must be"),
    (KernelRidge, {"kernel": "poly"}, "kernel must be"),
    (KernelRidge, {"gamma": 0.0}, "gamma must be"),
    (KernelRidge, {"alpha": "x"}, "alpha must be"),
    (KernelRidge, {"max_rows": 10}, "max_rows"),
    (LinearClassifier, {"C": np.nan}, "C must be"),
    (ExtraTrees, {"n_trees": 0}, "n_trees must be"),
    (ExtraTrees, {"min_samples_leaf": 0}, "min_samples_leaf must be"),
]


@pytest.mark.parametrize(("cls", "params", "message"), REFUSED)
def test_bad_parameters(cls: type[LabelScorer], params: dict, message: str) -> None:
    ds = makers.sparse(30)
    alone = cls in (Parabel, XReg, PfastreXML, OneVsAll)
    data = (ds.X, ds.Y) if alone else (makers.training_set(ds.X, ds.Y).view(),)
    with pytest.raises((TypeError, ValueError), match=message):
        cls(**params).fit(*data)


@pytest.mark.parametrize("cls", [Parabel, XReg, FastXML, PfastreXML, OneVsAll])
def test_estimators_refuse_what_is_not_rows_and_labels(cls: type[LabelScorer], tmp_path) -> None:
    ds = makers.sparse(30)
    X, Y, n = ds.X, ds.Y, ds.X.shape[0]
    every, fitted = Candidates.all_labels(*Y.shape), cls().fit(X, Y)
    cases = [
        ("this .* is not fitted yet", lambda: cls().shortlist(X)),
        ("this .* is not fitted yet", lambda: cls().score(X, every)),
        ("This .* is not fitted yet", lambda: cls().save(tmp_path / "model")),
        ("y is None", lambda: cls().fit(X)),
        ("Y must be None if X is a Dataset", lambda: cls().fit(Dataset(X=X, Y=Y), Y)),
        ("X has 30 rows", lambda: cls().fit(X, Y[:10])),
        ("inf", lambda: cls().fit(np.full((n, 2), np.inf), Y)),
        ("NaN", lambda: fitted.shortlist(np.full((1, X.shape[1]), np.nan, np.float32))),
        ("features", lambda: fitted.shortlist(X[:, :5])),
        ("candidates must be", lambda: fitted.score(X, None)),
        *[
            (f"k must be .*, got {k!r}", lambda k=k: fitted.shortlist(X, k))
            for k in (0, 2.5, "5", True, None)
        ],
    ]
    if cls is OneVsAll:
        nothing = TrainingSet(X, Y, np.zeros(n, np.int32)).without_fold(0)
        cases += [
            ("at least one row", lambda: cls().fit(nothing)),
            ("at least one row", lambda: cls().tuned(nothing)),
        ]
    else:
        bad = (np.ones(3), -np.ones(n), np.zeros(n), np.full(n, np.nan))
        cases += [("sample_weight", lambda w=w: cls().fit(X, Y, sample_weight=w)) for w in bad]
    for message, call in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


UNSEEN = {OneVsAll: -1.0}


@pytest.mark.parametrize("cls", [Parabel, XReg, FastXML, PfastreXML, OneVsAll])
def test_the_smallest_problems(cls: type[LabelScorer]) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(80, 30, 0.2, "csr", np.float32, random_state=rng)
    Y = np.where(rng.random((80, 25)) < 0.2, rng.integers(1, 5, (80, 25)), 0).astype(np.float32)
    Y[:, [*range(1, 25, 2), 24]] = 0
    Y[::9] = 0  # rows without a label, or features
    X = sp.csr_matrix(sp.diags((np.arange(80) % 7 > 0).astype(np.float32)) @ X)
    model = cls().fit(X, Y)
    found = model.shortlist(X, 100)
    assert set(found.labels.tolist()) <= set(range(0, 24, 2))
    assert all(np.isfinite(values).all() for values in found.scores.values())
    assert model.shortlist(X[:0], 3).n_rows == 0
    scores = model.score(X, Candidates.all_labels(80, 25))[model.column].reshape(80, 25)
    assert np.all(scores[:, [*range(1, 25, 2), 24]] == UNSEEN.get(cls, np.float32(FLOOR)))
    # One label, no label, one row, no feature.
    assert cls().fit(X, np.ones((80, 1), np.float32)).shortlist(X, 5).labels.tolist() == [0] * 80
    unseen = cls().fit(X, sp.csr_matrix((80, 7), dtype=np.float32))
    assert unseen.shortlist(X, 5).n_pairs == 0
    scores = unseen.score(X, Candidates.all_labels(80, 7))[unseen.column]
    assert np.all(scores == UNSEEN.get(cls, np.float32(FLOOR)))
    assert set(cls().fit(X[1:2], Y[1:2]).shortlist(X[1:2], 99).labels) == set(np.flatnonzero(Y[1]))
    lists = cls().fit(X * 0, Y).shortlist(X * 0, 3).labels.reshape(-1, 3)
    assert np.all(lists == lists[0])

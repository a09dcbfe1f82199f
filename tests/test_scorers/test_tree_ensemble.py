"""A fit divides into blocks of trees: joined, they are the fit in one piece, to the byte, for any cuts."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from metarank import _core, persist
from metarank.data import make_extreme
from metarank.scorers.classical.forest import ExtraTrees
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.scorers.trees.hierarchy import Hierarchy, learn_hierarchy
from metarank.scorers.trees.tree_ensemble import TreeBlock, TreeEnsemble, stacked_ids
from metarank.shortlist import FastXML, Parabel, PfastreXML, PfastXML, XReg
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, View

LABELS = 80
SMALL = {"max_leaf": 6, "n_trees": 5}


def given_trees() -> Hierarchy:
    """Two trees of different shapes over all labels, some of which have no row."""
    nested = [[[*range(20)], [[*range(20, 50)], [*range(50, 80)]]], [[*range(40, 80)], *range(40)]]
    a, b = (Hierarchy.from_nested(tree) for tree in nested)
    child = np.where(b.child >= 0, b.child + a.n_nodes, b.child)
    start = np.concatenate([a.child_start, b.child_start[1:] + a.n_slots])
    return Hierarchy(np.array([0, a.n_nodes]), start, np.concatenate([a.child, child]), LABELS)


ENSEMBLES: dict[str, TreeEnsemble] = {
    "FastXML": FastXML(**SMALL, relevance="graded"),
    "FastXML of single leaves": FastXML(n_trees=4, max_leaf=1000),
    "PfastXML": PfastXML(**SMALL, random_state=3),
    "PfastreXML": PfastreXML(**SMALL),
    "Parabel": Parabel(**SMALL),
    "Parabel, calibrated": Parabel(n_trees=3, max_leaf=20, calibrate=True, visitors=0),
    "Parabel, binary trees": Parabel(n_trees=4, branching=2, max_leaf=3),
    "Parabel, trees of any shape": Parabel(n_trees=4, branching=20, max_leaf=3, balanced=False),
    "Parabel, trees given": Parabel(hierarchy=given_trees()),
    "Parabel, label vectors": Parabel(
        n_trees=3, max_leaf=9, label_vectors=np.random.default_rng(1).random((LABELS, 5), np.float32)
    ),
    "XReg": XReg(**SMALL),
    "XReg-t": XReg(n_trees=3, tail="auto", relevance="inverse-propensity"),
    "ExtraTrees": ExtraTrees(n_trees=6),
}


@cache
def view(seed: int = 0, n_labels: int = LABELS) -> View:
    """The rows outside a fold, with grades."""
    rows = make_extreme(150, n_features=60, n_labels=n_labels, labels_per_row=3, nnz_per_row=8, seed=seed)
    Y = sp.csr_matrix(rows.Y, dtype=np.float32)
    Y.data[:] = np.random.default_rng(seed).integers(1, 5, len(Y.data))
    return TrainingSet(rows.X, Y, np.arange(150) % 3, seed=5).without_fold(1)


def saved(scorer: TreeEnsemble) -> str:
    """The digest of the saved scorer."""
    with tempfile.TemporaryDirectory() as folder:
        persist.save(scorer, Path(folder) / "scorer")
        return str(json.loads((Path(folder) / "scorer" / "manifest.json").read_text())["digest"])


@cache
def whole(name: str) -> str:
    return saved(clone(ENSEMBLES[name]).fit(view(), n_jobs=1))


@pytest.mark.parametrize("name", list(ENSEMBLES))
@settings(max_examples=6, deadline=None)
@given(choice=st.data())
def test_any_split_gives_the_bytes_of_a_whole_fit(name: str, choice: st.DataObject) -> None:
    scorer = ENSEMBLES[name]
    n = scorer.tree_count
    cuts = sorted(choice.draw(st.sets(st.integers(1, n - 1)), label="cuts"))
    bounds = [*zip([0, *cuts], [*cuts, n])]
    threads = choice.draw(st.sampled_from([1, 3]), label="threads")
    blocks = [scorer.fit_trees(view(), a, b - a, n_jobs=threads) for a, b in bounds]
    rest = scorer.fit_rest(view(), n_jobs=threads) if scorer.rest else None
    joined = scorer.joined(choice.draw(st.permutations(blocks), label="order"), rest)
    assert saved(joined) == whole(name)
    assert not [attribute for attribute in vars(scorer) if attribute.endswith("_")]


@pytest.mark.parametrize("name", list(ENSEMBLES))
def test_joined_trees_answer_like_the_whole(name: str) -> None:
    """Not only saved: what was joined can be asked, pickled and fitted again."""
    scorer = clone(ENSEMBLES[name])
    blocks = [scorer.fit_trees(view(), t, 1) for t in range(scorer.tree_count)]
    joined = scorer.joined(blocks, scorer.fit_rest(view()))
    fitted = clone(scorer).fit(view(), n_jobs=1)
    pairs = Candidates.all_labels(view().n_rows, LABELS)
    ours, theirs = (s.score(view().X, pairs) for s in (joined, fitted))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[column], theirs[column]) for column in ours)
    assert saved(joined.fit(view(), n_jobs=1)) == whole(name)


@pytest.mark.parametrize("scorer", ENSEMBLES.values(), ids=str)
def test_blocks_hold_each_tree_once(scorer: TreeEnsemble) -> None:
    trees = [t for first, count in scorer.blocks() for t in range(first, first + count)]
    assert trees == list(range(scorer.tree_count))
    assert all(1 <= count <= scorer.trees_per_block for _, count in scorer.blocks())


def test_labels_without_a_row_and_a_view_without_labels() -> None:
    empty = TrainingSet(
        sp.eye(4, format="csr", dtype=np.float32), sp.csr_matrix((4, 3), dtype=np.float32), np.zeros(4)
    ).view()
    for scorer in (
        Parabel(n_trees=3),
        FastXML(n_trees=3),
        Parabel(hierarchy=Hierarchy.from_nested([0, 1, 2])),
    ):
        blocks = [scorer.fit_trees(empty, t, 1) for t in range(scorer.tree_count)]
        joined = scorer.joined(blocks, scorer.fit_rest(empty))
        assert saved(joined) == saved(clone(scorer).fit(empty))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 120),
    branching=st.integers(2, 20),
    max_leaf=st.integers(1, 30),
    seed=st.integers(0, 10),
)
def test_learned_trees_over_the_same_labels_have_as_many_slots(n, branching, max_leaf, seed) -> None:
    """Their shape follows from numbers alone, so that a tree knows the number of its first slot."""
    rng = np.random.default_rng(seed)
    X = sp.random(60, 12, 0.4, "csr", np.float32, random_state=rng)
    Y = sp.csr_matrix((rng.random((60, n)) < 0.05).astype(np.float32))
    whole = learn_hierarchy(X, Y, n_trees=3, branching=branching, max_leaf=max_leaf, seed=seed)
    starts = [int(whole.child_start[root]) for root in whole.roots]
    assert starts == [t * (whole.n_slots // 3) for t in range(3)]
    for first, count in ((0, 2), (1, 2), (2, 1)):
        options = {"branching": branching, "max_leaf": max_leaf, "seed": seed}
        some = learn_hierarchy(X, Y, n_trees=count, first_tree=first, **options)
        assert some == whole.trees(first, count)


def test_trees_of_a_hierarchy() -> None:
    both = given_trees()
    assert [both.trees(t, 1).nested() for t in range(2)] == [both.nested(t) for t in range(2)]
    assert both.trees(0, 2) == both
    for wrong, rule in (
        ((2, 1), "first must be between 0 and 1, got 2"),
        ((1, 2), "count must be between 1 and 1"),
    ):
        with pytest.raises(ValueError, match=rule):
            both.trees(*wrong)
    with pytest.raises(ValueError, match="first_tree must be between 0 and 10000, got -1"):
        learn_hierarchy([[1]], [[1]], first_tree=-1)


@pytest.mark.parametrize("scorer", [FastXML(n_trees=4), Parabel(n_trees=4), ExtraTrees(n_trees=4)], ids=str)
@pytest.mark.parametrize(
    ("first", "count", "error", "rule"),
    [
        (-1, 1, ValueError, "first must be between 0 and 3, got -1"),
        (4, 1, ValueError, "first must be between 0 and 3, got 4"),
        (1, 0, ValueError, "count must be between 1 and 3, got 0"),
        (1, 4, ValueError, "count must be between 1 and 3, got 4"),
        (0.0, 1, TypeError, "first must be an integer, got 0.0"),
        (0, True, TypeError, "count must be an integer, got True"),
    ],
)
def test_trees_that_do_not_exist_are_refused(scorer, first, count, error, rule) -> None:
    with pytest.raises(error, match=rule):
        scorer.fit_trees(view(), first, count)


def test_bad_input_is_refused() -> None:
    with pytest.raises(TypeError, match="view must be a View, got ndarray"):
        Parabel().fit_trees(np.eye(2), 0, 1)
    with pytest.raises(TypeError, match="view must be a View, got ndarray"):
        Parabel().fit_rest(np.eye(2))
    for call in (
        lambda s: s.blocks(),
        lambda s: s.fit_trees(view(), 0, 1),
        lambda s: s.fit_rest(view()),
        lambda s: s.joined([]),
    ):
        with pytest.raises(ValueError, match="n_trees must be between 1 and 10000, got 0"):
            call(FastXML(n_trees=0))
    with pytest.raises(ValueError, match="hierarchy must hold the 80 labels of Y, got 3"):
        Parabel(hierarchy=Hierarchy.from_nested([0, 1, 2])).fit_trees(view(), 0, 1)
    with pytest.raises(ValueError, match="n_jobs"):
        Parabel().fit_trees(view(), 0, 1, n_jobs=0)


def test_blocks_that_do_not_fit_together_are_refused() -> None:
    forest = FastXML(n_trees=3, max_leaf=20)
    a, b = forest.fit_trees(view(), 0, 2), forest.fit_trees(view(), 2, 1)
    for blocks, found in (
        ([], "none"),
        ([a], "0 to 1"),
        ([b], "2 to 2"),
        ([a, b, b], "0 to 1, 2 to 2, 2 to 2"),
        ([a, forest.fit_trees(view(), 1, 2)], "0 to 1, 1 to 2"),
    ):
        with pytest.raises(ValueError, match=f"blocks must hold each of 3 trees once, got trees {found}$"):
            forest.joined(blocks)
    wider = forest.fit_trees(view(n_labels=90), 2, 1)
    with pytest.raises(ValueError, match="from trees 0 and 2 on differ in numbers of features or labels"):
        forest.joined([a, wider])
    tree = Parabel(n_trees=2)
    rest = tree.fit_rest(view())
    others = [tree.fit_trees(view(), 0, 1), tree.fit_trees(view(seed=1), 1, 1)]
    with pytest.raises(ValueError, match=r"blocks must be of one View, .* differ in label_scale"):
        tree.joined(others, rest)
    with pytest.raises(ValueError, match=r"rest must hold \['curve'\], as fit_rest gives it, got \[\]"):
        tree.joined([tree.fit_trees(view(), 0, 2)])
    with pytest.raises(ValueError, match=r"rest must hold \[\], as fit_rest gives it, got \['curve'\]"):
        forest.joined([a, b], rest)


def test_ids_beyond_32_bits_are_refused() -> None:
    parts = [TreeBlock(t, 1, 1, 1, {"child": np.zeros(2, np.int32)}) for t in range(2)]
    with pytest.raises(ValueError, match="fewer than 2\\^30 nodes and leaves, got 1073741824 and 2"):
        stacked_ids(parts, "child", [2**30 - 1, 1], [1, 1])


def test_a_subclass_with_a_fit_of_its_own_does_not_divide() -> None:
    class Halved(FastXML):
        def fit(self, X: Any, Y: Any = None, **options: Any) -> Any:
            return super().fit(X.part(np.arange(X.n_rows // 2)), Y, **options)

    class Named(FastXML):
        column = "named"

    class Regrown(Halved):
        def _grow(self, *args: Any) -> dict[str, Any]:
            return super()._grow(*args)

    assert Halved(n_trees=12).blocks() == [(0, 12)]
    assert Named(n_trees=12).blocks() == Regrown(n_trees=12).blocks() == FastXML(n_trees=12).blocks()
    assert not hasattr(LabelPrior(), "fit_trees")


def test_the_core_refuses_negative_numbers() -> None:
    X = csr_parts(sp.eye(3, format="csr", dtype=np.float32))
    ones = np.ones(3, np.float32)
    logistic = _core.L1LogisticOptions(tolerance=0.1, max_steps=2, max_passes=2)
    split = _core.SplitOptions(
        log_cost=1.0, rank_cost=1.0, balanced=True, rounds=1, ideal_normaliser=False, logistic=logistic
    )
    grow = _core.GrowOptions(first_tree=-1, n_trees=1, max_leaf=2, labels_per_leaf=2, max_depth=9, seed=0)
    with pytest.raises(ValueError, match="first_tree must not be negative"):
        _core.train_instance_trees((*X, 3), (*X, 3), ones, split, grow, 1)
    tree = Hierarchy.from_nested([0, 1, 2])
    nodes = (tree.roots, tree.child_start, tree.child)
    options = _core.LabelTreeOptions(
        loss=1, C=1.0, mean_cost=False, tolerance=0.1, max_epochs=2, bias=1.0, threshold=0.1, visitors=0,
        link=1, seed=0, first_slot=-1,
    )  # fmt: skip
    with pytest.raises(ValueError, match="first_slot must be non-negative"):
        _core.train_label_trees((*X, 3), X, ones, nodes, options, 1)

"""Columns of relatives against a slow twin, and their laws."""

from __future__ import annotations

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker
from metarank.model.fitting.auto import named_scorers
from metarank.ranker.assemble import joined_columns
from metarank.ranker.relatives import KINDS, OF_LABELS, known_columns, relatives_columns, wanted_columns
from metarank.scorers.crossfit import held_out_columns
from metarank.types.candidates import Candidates
from metarank.types.label_descriptions import LabelDescriptions, relation

L = 12


def table(parents: sp.csr_matrix, related: sp.csr_matrix | None) -> LabelDescriptions:
    return LabelDescriptions(
        names=[f"label {i}" for i in range(parents.shape[0])], parents=parents, related=related
    )


def relations(seed: int = 0) -> LabelDescriptions:
    rng = np.random.default_rng(seed)
    order = rng.permutation(L)
    pairs = [
        (order[i], order[j]) for i in range(1, L) for j in np.unique(rng.integers(0, i, rng.integers(0, 3)))
    ]
    a, b = rng.integers(0, L, (2, 6))
    other = relation([*a, *b], [*b, *a], L)
    return table(relation(*zip(*pairs), L), other)


def lists(seed: int = 0, n: int = 9) -> tuple[Candidates, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(rng.random(L) < 0.5).astype(np.int32) for _ in range(n - 1)] + [
        np.zeros(0, np.int32)
    ]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    candidates = Candidates(indptr, np.concatenate(rows), L)
    return candidates, rng.integers(0, 4, candidates.n_pairs).astype(np.float32)  # with ties


def by_hand(kind: str, candidates: Candidates, values: np.ndarray, of: LabelDescriptions) -> list[float]:
    P, R = of.parents.toarray() > 0, of.related.toarray() > 0
    share = (P.astype(int) @ P.T.astype(int)) > 0
    is_relative = {"parent": P, "child": P.T, "sibling": share & ~np.eye(L, dtype=bool), "related": R}[kind]
    out = []
    for row in range(candidates.n_rows):
        inside = slice(candidates.indptr[row], candidates.indptr[row + 1])
        labels, own = candidates.labels[inside], values[inside]
        for label in labels:
            found = own[is_relative[label][labels]]
            out.append(found.max() if len(found) else own.min())
    return out


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_columns_agree_with_their_twin(kind, seed):
    of, (candidates, values) = relations(seed), lists(seed)
    name = f"{kind} labels: score"
    found = relatives_columns([name], {"score": values}, candidates, of)
    assert found[name].dtype == np.float32
    np.testing.assert_array_equal(found[name], by_hand(kind, candidates, values, of))


def test_columns_depend_on_their_own_list_alone():
    of, (candidates, values) = relations(), lists()
    wanted = wanted_columns(["score"], ["score"], of)
    assert wanted == [*(f"{kind} labels: score" for kind in KINDS), *OF_LABELS]
    whole = relatives_columns(wanted, {"score": values}, candidates, of)
    for row in range(candidates.n_rows):
        inside = slice(candidates.indptr[row], candidates.indptr[row + 1])
        alone = relatives_columns(wanted, {"score": values[inside]}, candidates.rows(np.array([row])), of)
        for name in wanted:
            assert alone[name].tobytes() == whole[name][inside].tobytes()


def test_no_pairs_and_no_relations():
    none = Candidates(np.zeros(3, np.int64), np.zeros(0, np.int32), L)
    wanted, empty = ["sibling labels: s", "parent labels: s"], {"s": np.zeros(0, np.float32)}
    found = relatives_columns(wanted, empty, none, relations())
    assert [len(values) for values in found.values()] == [0, 0]
    nothing = table(sp.csr_matrix((L, L), dtype=np.float32), None)
    assert wanted_columns(["score"], ["score"], nothing) == []
    candidates, values = lists()
    found = relatives_columns(["child labels: s", "related labels: s"], {"s": values}, candidates, nothing)
    for row in found.values():
        np.testing.assert_array_equal(
            row, by_hand("child", candidates, values, table(nothing.parents, nothing.parents))
        )


def test_names_of_columns_are_read_back():
    of_relatives = ["parent labels: a #2", "sibling labels: z", "label hierarchy: depth"]
    names = ["prior", *(f"{name} (relative)" for name in of_relatives), "sibling labels: z", "a (relative)"]
    assert known_columns(names) == of_relatives


def test_a_model_is_the_same_by_batches_threads_and_after_changes(tmp_path):
    data = makers.texts()
    labels = LabelDescriptions(
        names=[*makers.TOPICS, "ports"], parents=[[], [], [], ["the sea"]], related=[["bread"], [], [], []]
    )
    params = {**makers.QUICK, "features": ["votes", "names", "linear-svm"]}
    model = MetaRanker(**params).fit(data, labels=labels)
    votes = "neighbors, weighted vote of 30"
    expected = {f"parent labels: {votes}", "child labels: label name, cosine", f"related labels: {votes}"}
    assert {f"{name} (relative)" for name in (*expected, OF_LABELS[0])} <= set(model.feature_columns_)
    whole = model.decision_function(data)
    parts = [model.decision_function(data.take(slice(i, i + 7))) for i in range(0, data.n_rows, 7)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    other = MetaRanker(**(params | {"n_jobs": 4})).fit(data, labels=labels)
    assert other.decision_function(data).tobytes() == whole.tobytes()
    model.update_labels(add=[{"name": "salt harbours", "parents": ["ports"]}], merge={"ports": "the sea"})
    assert model.labels_.columns()["parents"][4] == ["the sea"]
    assert np.isfinite(model.rank(data, k=5).scores).any()


def test_own_labels_do_not_reach_the_columns_of_relatives():
    """They follow from columns that are held out; other rows' labels do reach them."""
    data = makers.sparse(40, L=4)
    of = table(relation([1, 2, 3], [0, 0, 2], 4), relation([1, 3], [3, 1], 4))
    scorers = [named_scorers()[name]() for name in ("votes", "names", "linear-svm")]
    candidates = Candidates.all_labels(40, 4)

    def columns_of(Y: np.ndarray) -> dict[str, np.ndarray]:
        training = makers.training_set(data.X, sp.csr_matrix(Y))
        found = [held_out_columns(scorer.tuned(training.view()), training, candidates) for scorer in scorers]
        named, classifiers = joined_columns(found, [scorer.is_classifier for scorer in scorers])
        return relatives_columns(wanted_columns(named, classifiers, of), named, candidates, of)

    Y = data.Y.toarray()
    before = columns_of(Y)
    assert len(before) == 3 * len(KINDS) + 2
    for row in (0, 11):
        for changed in (1 - Y[row], np.ones(4), np.zeros(4)):
            other = Y.copy()
            other[row] = changed
            after, inside = columns_of(other), slice(4 * row, 4 * row + 4)
            assert all(before[name][inside].tobytes() == after[name][inside].tobytes() for name in before)
            if not np.array_equal(changed, Y[row]):
                assert any(before[name].tobytes() != after[name].tobytes() for name in before)

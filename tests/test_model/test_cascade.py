"""Which candidates are described: the kernels beside their slow twins, and what the cascade promises."""

from __future__ import annotations

from functools import cache

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, _core, load, metrics
from metarank.data import make_extreme
from metarank.model.cascade import Cascade, Lists, foremost, learned_cascade, proposal_table, wide_enough
from metarank.model.fitting import auto
from metarank.types.candidates import Candidates


def _lists(rng: np.random.Generator, n: int, n_labels: int, most: int, name: str = "score") -> Candidates:
    rows = [np.sort(rng.choice(n_labels, rng.integers(0, most + 1), replace=False)) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    labels = np.concatenate([*rows, np.zeros(0)]).astype(np.int32)
    scores = rng.integers(-3, 4, len(labels)).astype(np.float32)  # many are equal
    return Candidates(indptr, labels, n_labels, {name: scores})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threads", [1, 4])
def test_columns_of_proposals_are_those_of_their_slow_twin(seed, threads):
    rng = np.random.default_rng(seed)
    parts = [_lists(rng, 90, 30, most) for most in (12, 5, 0)]
    union = Candidates.united(parts)
    inverse = rng.uniform(1, 9, union.n_pairs)
    table = proposal_table(union, parts, inverse, threads)
    columns = [f"source {i}: {what}" for i in (1, 2, 3) for what in ("score", "rank")]
    assert table.names == [*columns, "label frequency: log inverse propensity"]
    expected = np.zeros_like(table.values)
    for pair, (row, label) in enumerate(zip(union.row_of_pair, union.labels)):
        for s, part in enumerate(parts):
            own = part.rows([row])
            order = np.lexsort((own.labels, -own.final_score))
            at = np.flatnonzero(own.labels[order] == label)
            least = own.final_score.min(initial=np.inf) if own.n_pairs else 0
            expected[pair, 2 * s] = own.final_score[order[at[0]]] if len(at) else least
            expected[pair, 2 * s + 1] = at[0] if len(at) else 1e6
    expected[:, -1] = np.log(inverse)
    np.testing.assert_allclose(table.values, expected, rtol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_the_foremost_pairs_are_those_of_a_sort(k):
    lists = _lists(np.random.default_rng(k), 60, 25, 14)
    scores = lists.final_score.astype(np.float64)
    expected = np.zeros(lists.n_pairs, bool)
    for start, end in zip(lists.indptr[:-1], lists.indptr[1:]):
        expected[start + np.argsort(-scores[start:end], kind="stable")[:k]] = True
    np.testing.assert_array_equal(foremost(lists, scores, k), expected)


def test_dropped_pairs_are_behind_in_their_own_order():
    rng = np.random.default_rng(0)
    lists = _lists(rng, 50, 40, 20)
    rough, evidence = rng.normal(size=lists.n_pairs), rng.normal(size=lists.n_pairs)
    ahead = foremost(lists, rough, 6)
    found = Lists(lists, rough, ahead).evidence(evidence[ahead])
    np.testing.assert_array_equal(found[ahead], evidence[ahead])
    for start, end in zip(lists.indptr[:-1], lists.indptr[1:]):
        own, kept, order = found[start:end], ahead[start:end], rough[start:end]
        if kept.all():
            continue
        assert own[~kept].max() == pytest.approx(own[kept].min() - 1e-3)
        np.testing.assert_allclose(np.diff(own[~kept]), np.diff(order[~kept]))
    none = np.zeros(lists.n_pairs, bool)
    np.testing.assert_array_equal(Lists(lists, rough, none).evidence(evidence[none]), rough)


@pytest.mark.parametrize(
    ("kernel", "args"),
    [
        ("proposal_columns", ([], [0], [], [], 9.0, 1)),
        ("proposal_columns", ([([0, 1], [3], [])], [0, 1], [3], [1], 9.0, 1)),
        ("proposal_columns", ([([0, 1], [3], [1])], [0, 1], [3], [], 9.0, 1)),
        ("proposal_columns", ([([0, 0, 1], [3], [1])], [0, 1], [3], [1], 9.0, 1)),
        ("foremost", ([1.0], [0, 2], 1)),
        ("foremost", ([1.0], [0, 1], 0)),
        ("with_pairs_behind", ([1.0], [1.0, 2.0], [1, 1], [0, 2], 0.1)),
        ("with_pairs_behind", ([1.0], [1.0], [1, 0], [0, 2], 0.1)),
    ],
)
def test_kernels_refuse_lists_that_do_not_fit(kernel, args):
    kinds = {
        "proposal_columns": ("qif", "q", "i", "f", None, None),
        "foremost": ("d", "q", None),
        "with_pairs_behind": ("d", "d", "B", "q", None),
    }[kernel]
    given = [
        value if kind is None else np.array(value, kind) for kind, value in zip(kinds, args) if kind != "qif"
    ]
    if kinds[0] == "qif":
        given.insert(0, [tuple(map(np.array, part, "qif")) for part in args[0]])
    with pytest.raises(ValueError):
        getattr(_core, kernel)(*given)


# --- in a model -----------------------------------------------------------------------


@cache
def fitted(n_jobs: int = 1) -> MetaRanker:
    train = makers.many_texts(160)
    return MetaRanker(
        effort="low", n_folds=2, shortlister=["neighbors", "names"], ranker="pointwise", n_jobs=n_jobs
    ).fit(train)


ROWS = slice(0, 12)


def test_few_candidates_are_described_and_all_are_ranked():
    model, train = fitted(), makers.many_texts(160)
    rows = train.take(ROWS)
    assert model.fitted_.cascade.survivors == auto.LEAST_SURVIVORS
    every = np.diff(makers.candidates(model, rows).indptr)
    ranking = model.rank(rows, k=int(every.max()))
    listed = (ranking.labels >= 0).sum(axis=1)
    assert (every > auto.LEAST_SURVIVORS).any()
    assert (listed >= every).all()
    assert (np.diff(ranking.scores[:, : every.min()], axis=1) <= 0).all()


def test_longer_lists_begin_with_shorter_ones_and_every_door_has_the_same_answer(tmp_path):
    model, rows = fitted(), makers.many_texts(160).take(ROWS)
    short, expected, long = (model.rank(rows, k=k) for k in (5, 40, 45))
    np.testing.assert_array_equal(long.labels[:, :5], short.labels)
    np.testing.assert_array_equal(long.scores[:, :5], short.scores)
    np.testing.assert_array_equal(long.labels[:, :40], expected.labels)
    model.save(tmp_path / "M")
    others = {"saved": load(tmp_path / "M"), "threads": fitted(4)}
    for name, other in others.items():
        np.testing.assert_array_equal(other.rank(rows, k=40).scores, expected.scores, err_msg=name)
    alone = [model.rank(rows.take([i]), k=40) for i in range(12)]
    np.testing.assert_array_equal(np.concatenate([r.labels for r in alone]), expected.labels)
    of_scores = np.sort(model.decision_function(rows), axis=1)[:, ::-1][:, :40]
    np.testing.assert_array_equal(of_scores, expected.scores)


def test_allowed_labels_are_all_described():
    model, rows = fitted(), makers.many_texts(160).take(range(3))
    allowed = list(range(0, 1200, 24))
    ranking = model.rank(rows, k=50, allowed=allowed)
    np.testing.assert_array_equal(np.sort(ranking.labels, axis=1), [allowed] * 3)
    for i in range(3):
        last = int(ranking.labels[i, -1])
        found = model.explain(rows.take([i]), last, allowed=allowed)
        assert found.is_candidate
        assert found.score == ranking.scores[i, -1]


def test_a_dropped_label_is_explained_as_if_it_had_been_described():
    model, rows = fitted(), makers.many_texts(160).take(ROWS)
    every = makers.candidates(model, rows)
    i = int(np.argmax(np.diff(every.indptr)))
    last = int(model.rank(rows.take([i]), k=int(np.diff(every.indptr)[i])).labels[0, -1])
    found = model.explain(rows.take([i]), last)
    assert not found.is_candidate
    assert found.contributions


def test_there_is_no_cascade_where_it_would_drop_little_or_cannot_learn():
    rng = np.random.default_rng(0)
    parts = [_lists(rng, 40, 60, 40)]
    union = Candidates.united(parts)
    given = {"fold": np.arange(40, dtype=np.int32) % 2, "weight": None, "seed": 0, "n_jobs": 1}
    ones = np.ones(union.n_pairs)
    gains = (rng.random(union.n_pairs) < 0.2).astype(np.float32)
    assert learned_cascade(union, parts, ones, gains, survivors=5, **given) is not None
    assert learned_cascade(union, parts, ones, gains, survivors=50, **given) is None
    assert learned_cascade(union, parts, ones, 0 * gains, survivors=5, **given) is None
    bare = [Candidates(part.indptr, part.labels, part.n_labels) for part in parts]
    assert learned_cascade(union, bare, ones, gains, survivors=5, **given) is None


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (3, 10),  # what is relevant survives
        (12, 15),  # it is dropped, and would come first: more survive
        (21, 23),
        (39, None),  # nearly all would have to survive
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_as_many_survive_as_lose_nothing_that_would_come_first(at, expected, is_first):
    """The only relevant label of each row has place `at` in the order of the small trees."""
    n, n_labels = 50, 40
    lists = Candidates.all_labels(n, n_labels)
    rough = -np.tile(np.arange(n_labels, dtype=np.float64), n)
    own = np.zeros(n_labels, np.float32)
    own[at if is_first else (at + 1) % n_labels] = 1  # a source has it first, or another one
    proposals = [Candidates(lists.indptr, lists.labels, n_labels, {"score": np.tile(own, n)})]
    Y = sp.csr_matrix((np.ones(n, np.float32), np.full(n, at), np.arange(n + 1)), (n, n_labels))
    cut = Cascade(None, 10).filtered(lists, rough)
    found = wide_enough(cut, proposals, Y, inv_propensity=np.ones(n_labels), n_jobs=1)
    wanted = expected if is_first else 10
    assert (None if found is None else found.cascade.survivors) == wanted
    if found is not None:
        np.testing.assert_array_equal(found.ahead, foremost(lists, rough, wanted))


def test_trees_that_judge_a_training_row_did_not_see_it():
    """Labels that were flipped in one half of the folds change nothing that is said of that half."""
    rng = np.random.default_rng(1)
    parts = [_lists(rng, 200, 80, 40)]
    union = Candidates.united(parts)
    fold = (np.arange(200) % 4).astype(np.int32)
    given = {"fold": fold, "weight": None, "seed": 0, "survivors": 5, "n_jobs": 1}
    gains = (rng.random(union.n_pairs) < 0.2).astype(np.float32)
    even = (fold % 2 == 0)[union.row_of_pair]
    before = learned_cascade(union, parts, np.ones(union.n_pairs), gains, **given)
    after = learned_cascade(union, parts, np.ones(union.n_pairs), np.where(even, 1 - gains, gains), **given)
    np.testing.assert_array_equal(before.rough[even], after.rough[even])
    assert (before.rough[~even] != after.rough[~even]).any()


def test_what_is_dropped_does_not_cost_the_first_places(monkeypatch):
    rows = make_extreme(800, n_features=300, n_labels=800, seed=0)
    train, test = rows.take(range(600)), rows.take(range(600, 800))
    quality = {}
    for name, least in (("cascade", 30), ("all", 10**6)):
        monkeypatch.setattr(auto, "LEAST_SURVIVORS", least)
        model = MetaRanker(effort="low", n_folds=2, n_jobs=1, shortlister=["neighbors", "parabel"]).fit(train)
        assert (model.fitted_.cascade is not None) == (name == "cascade")
        ranking = model.rank(test, k=5)
        quality[name] = metrics.evaluate(test.Y, ranking, ["P@5"])["P@5"]
    assert quality["cascade"] > quality["all"] - 0.01, quality

"""Costs of mistakes, sizes of label sets, and what to expect of a row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Candidates, MetaRanker, ThresholdLearner, data, load
from metarank.thresholds.costs import Costs
from metarank.thresholds.lists import ScoredLists
from metarank.thresholds.row_quality import RowQuality

COSTS = {"false_positive": 1, "false_negative": 4}


@pytest.fixture(scope="module", params=[None, "neighbors"])
def fitted(request):
    both = data.make_multilabel(400, n_features=8, n_labels=8, seed=3)
    model = MetaRanker(shortlister=request.param, effort="low", ranker="logistic", n_jobs=1)
    return model.fit(both.take(slice(0, 250))), both.take(slice(250, 400))


def test_least_expected_cost(fitted):
    """A label is kept if its probability is at least the share of the costs, in every form of these."""
    model, test = fitted
    p = sp.csr_matrix(model.predict_proba(test)).toarray()
    by_label = np.linspace(0.5, 3, 8)
    for fp, fn in ((1.0, 4.0), (3.0, 1.0), (by_label, 1.0), (by_label, by_label[::-1].copy())):
        kept = model.predict(test, optimize={"false_positive": fp, "false_negative": fn}).toarray()
        sure = np.abs(p - fp / (fp + fn)) > 1e-6  # probabilities are float32
        np.testing.assert_array_equal(kept[sure], ((p >= fp / (fp + fn)) & (p > 0))[sure])
    text = model.predict(test, optimize="false_positive=1, false_negative=4")
    assert abs(text - model.predict(test, optimize=COSTS)).nnz == 0
    names = [f"label {j}" for j in range(8)]
    ds = data.Dataset(test.X, test.Y, label_names=names)
    named = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(ds)
    in_order = named.predict(test.X, optimize={"false_positive": by_label, "false_negative": 1})
    pandas = pytest.importorskip("pandas")
    turned = pandas.Series(by_label, index=names)[::-1]
    for of_names in (turned, dict(turned)):
        kept = named.predict(test.X, optimize={"false_positive": of_names, "false_negative": 1})
        assert abs(kept - in_order).nnz == 0
    with pytest.raises(ValueError, match="must name all labels and no other, see 'label 0'"):
        named.predict(
            test.X, optimize={"false_positive": turned.rename({"label 0": "x"}), "false_negative": 1}
        )
    table = pandas.DataFrame({"false_positive": by_label, "false_negative": np.ones(8)})
    of_columns = {"false_positive": by_label, "false_negative": 1}
    assert abs(model.predict(test, optimize=table) - model.predict(test, optimize=of_columns)).nnz == 0
    nothing = model.predict(test, optimize={"false_positive": 1, "false_negative": 0})
    assert nothing.nnz == 0


def test_no_other_set_is_expected_to_cost_less():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=6)
    p = 1 / (1 + np.exp(-logits))
    lists = ScoredLists(Candidates.all_labels(1, 6), logits)
    kept = Costs.read(COSTS).keep(lists)
    sets = (np.arange(64)[:, None] >> np.arange(6)) & 1
    expected = (sets * (1 - p)).sum(axis=1) + 4 * ((1 - sets) * p).sum(axis=1)
    np.testing.assert_array_equal(sets[expected.argmin()], kept)


def test_a_threshold_learner_takes_costs():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(300, 4))
    Y = (S + rng.normal(size=S.shape) > 1).astype(int)
    learner = ThresholdLearner().fit(S, Y)
    kept = learner.predict(S, optimize=COSTS).toarray()
    np.testing.assert_array_equal(kept, learner.predict_proba(S) >= 0.2)
    with pytest.raises(ValueError, match="pass costs to predict"):
        ThresholdLearner(optimize=COSTS).fit(S, Y)
    with pytest.raises(ValueError, match="must hold 1 or 4 numbers, got 3"):
        learner.predict(S, optimize={"false_positive": [1, 1, 1], "false_negative": 1})


def test_sizes_of_sets(fitted):
    model, test = fitted
    plain = model.predict(test)
    ranked = model.rank(test, k=8)
    sized = model.predict(test, at_least=2, at_most=3)
    size = np.diff(sized.indptr)
    assert size.min() >= 2
    assert size.max() <= 3
    for i in range(test.n_rows):
        row = {*sized.indices[sized.indptr[i] : sized.indptr[i + 1]].tolist()}
        assert row == {*ranked.labels[i, : len(row)].tolist()}
    assert abs(model.predict(test, at_least=np.int64(0), at_most=np.int64(8)) - plain).nnz == 0
    names = model.predict(test, at_most=1, return_names=True)
    assert max(map(len, names)) == 1
    for void in ({"at_most": 2}, {"allowed": [0, 1]}):
        with pytest.warns(UserWarning, match=f"recall>=0.2 is not guaranteed with {next(iter(void))}"):
            model.predict(test, "recall>=0.2", **void)
    for rule, sizes in (("at_least must", {"at_least": -1}), ("at_most must", {"at_least": 3, "at_most": 2})):
        with pytest.raises(ValueError, match=rule):
            model.predict(test, **sizes)


def test_what_to_expect_of_a_row(fitted, tmp_path):
    model, test = fitted
    kept, quality = model.predict(test, return_quality=True)
    assert list(quality) == ["precision", "recall", "f1"]
    p = sp.csr_matrix(model.predict_proba(test))
    size = np.diff(kept.indptr)
    mean = np.asarray(p.multiply(kept).sum(axis=1)).ravel()[size > 0] / size[size > 0]
    np.testing.assert_allclose(quality["precision"][size > 0], mean, rtol=1e-5)
    assert np.isnan(quality["precision"][size == 0]).all()
    assert len({*quality["f1"][size == 0].tolist()}) < 2
    relevant = sp.csr_matrix(test.Y > 0)
    hits = np.asarray(relevant.multiply(kept).sum(axis=1)).ravel()
    true = 2 * hits / np.maximum(size + np.diff(relevant.indptr), 1)
    order = np.argsort(-quality["f1"])
    assert true[order[:50]].mean() > true[order[-50:]].mean() + 0.1
    assert abs(true.mean() - quality["f1"].mean()) < 0.1
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").predict(test, return_quality=True)[1]
    np.testing.assert_array_equal(again["f1"], quality["f1"])
    with pytest.raises(TypeError, match="return_quality must be"):
        model.predict(test, return_quality="yes")


def test_curves_rise_and_are_those_of_held_out_rows():
    """Half of the relevant labels are no candidates: a recall that seems whole is half."""
    rng = np.random.default_rng(0)
    candidates = Candidates.all_labels(400, 3)
    relevant = rng.random(1200) < 0.5
    missed = relevant.reshape(-1, 3).sum(axis=1).astype(float)
    lists = ScoredLists(candidates, np.zeros(1200), relevant, missed)
    every = np.ones(1200, bool)
    learned = RowQuality.learned(lists, every)
    assert (np.diff(learned.observed, axis=1) >= 0).all()
    expected = learned.of(lists, every)
    np.testing.assert_allclose(expected["recall"].mean(), 0.5, atol=0.02)
    # Half of the rows have no relevant label: their F1 is 0, and 1 where nothing is kept.
    none = rng.permutation(400) < 200
    relevant, missed = relevant & ~np.repeat(none, 3), np.where(none, 0, missed)
    lists = ScoredLists(candidates, np.zeros(1200), relevant, missed)
    every[:300] = False
    expected = RowQuality.learned(lists, every).of(lists, every)["f1"]
    hits = relevant.reshape(-1, 3).sum(axis=1)  # of twice as many relevant labels
    np.testing.assert_allclose(expected[:100], (hits[:100] == 0).mean(), rtol=1e-6)
    true = 2 * hits / (3 + 2 * hits)
    np.testing.assert_allclose(expected[100:].mean(), true[100:].mean(), atol=0.05)
    every[:300] = True
    few = RowQuality.learned(lists.rows(np.arange(20)), every[:60])
    np.testing.assert_allclose(few.of(lists, every)["recall"], 1.0)


@pytest.mark.parametrize(
    ("rule", "optimize"),
    [
        ("optimize must hold the costs", {"false_positive": 1}),
        ("optimize must hold the costs", {"false_positive": 1, "false_negative": 1, "else": 2}),
        ("false_negative must be >= 0, got -1", {"false_positive": 1, "false_negative": -1}),
        ("must not both be 0", {"false_positive": 0, "false_negative": 0}),
        ("false_positive must be finite", {"false_positive": np.nan, "false_negative": 1}),
        ("false_positive must be numbers", {"false_positive": "much", "false_negative": 1}),
        ("must hold 1 or 8 numbers, got 2", {"false_positive": [1, 2], "false_negative": 1}),
        ("optimize must hold the costs", "false_positive=1"),
        ("optimize must hold the costs", "false_positive=1,false_positive=2,false_negative=4"),
        ("false_positive must be numbers", {"false_positive": 10**400, "false_negative": 1}),
    ],
)
def test_bad_costs_are_refused_by_name(fitted, rule, optimize):
    model, test = fitted
    with pytest.raises(ValueError, match=rule):
        model.predict(test, optimize=optimize)

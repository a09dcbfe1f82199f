"""The weight of rare labels: chosen without leaks, and worth what it costs."""

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, metrics
from metarank.data import make_extreme
from metarank.metrics.propensity import inv_propensity
from metarank.model.fitting.judge import tuned_propensity_weight
from metarank.model.fitting.lists import held_out_inv_propensity
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows


def labels(n=60, L=9, seed=0):
    return sp.random(n, L, 0.3, "csr", np.float32, np.random.default_rng(seed))


def test_held_out_weights_count_without_the_fold():
    Y = labels()
    Y.data[:] = 1
    data = TrainingSet(np.zeros((60, 1), np.float32), Y, fold_of_rows(60, 4, 0))
    rows = np.arange(0, 60, 2)
    pairs = Candidates.all_labels(len(rows), 9)
    found = held_out_inv_propensity(data, rows, pairs).reshape(len(rows), 9)
    for i, row in enumerate(rows):
        others = Y[data.fold != data.fold[row]]
        np.testing.assert_allclose(found[i], inv_propensity(others), rtol=1e-12)


def test_the_choice_is_the_best_psp_within_a_hundredth_of_ndcg():
    rng = np.random.default_rng(1)
    Y = labels(300, 12)
    Y.data[:] = 1
    pairs = Candidates.all_labels(300, 12)
    weight = rng.uniform(1, 20, 12)
    rare = np.tile(np.log(weight), 300)
    logits = Y.toarray().ravel() + rng.normal(size=3600)
    chosen = tuned_propensity_weight(pairs, logits, rare, Y, inv_propensity=weight)

    def judged(a):
        scores = (logits + a * rare).reshape(300, 12).astype(np.float32)
        return metrics.evaluate(Y, scores, ["nDCG@5", "PSP@5"], inv_propensity=weight)

    values = {a: judged(a) for a in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)}
    least = 0.99 * max(v["nDCG@5"] for v in values.values())
    good = {a: v["PSP@5"] for a, v in values.items() if v["nDCG@5"] >= least}
    assert chosen == max(good, key=lambda a: (good[a], -a))


def test_of_nothing_relevant_the_weight_is_zero():
    pairs = Candidates.all_labels(2, 3)
    nothing = sp.csr_matrix((2, 3), dtype=np.float32)
    assert tuned_propensity_weight(pairs, np.zeros(6), np.zeros(6), nothing, inv_propensity=np.ones(3)) == 0


@pytest.fixture(scope="module")
def model():
    ds = make_extreme(400, n_features=200, n_labels=1200, labels_per_row=3, nnz_per_row=12, seed=0)
    return MetaRanker(**makers.QUICK).fit(ds), ds


@pytest.mark.check_beyond(1)
def test_a_greater_weight_ranks_rarer_labels(model):
    ranker, ds = model
    mean = []
    for weight in (0, 0.5, 3):
        top = ranker.rank(ds, k=5, propensity_weight=weight).labels
        mean.append(ranker.inv_propensity_[top].mean())
    assert mean[0] < mean[1] < mean[2]


def test_lists_are_by_probability_unless_the_learned_weight_is_asked_for(model):
    ranker, ds = model
    scores = ranker.rank(ds, k=5).scores
    assert ranker.propensity_weight_ == 0 < ranker.tuned_weight_
    assert ranker.rank(ds, k=5, propensity_weight=0).scores.tobytes() == scores.tobytes()
    asked = MetaRanker(**makers.QUICK, propensity_weight="auto").fit(ds)
    assert asked.propensity_weight_ == asked.tuned_weight_ == ranker.tuned_weight_
    learned = asked.rank(ds, k=5).scores
    assert ranker.rank(ds, k=5, propensity_weight="auto").scores.tobytes() == learned.tobytes()
    assert learned.tobytes() != scores.tobytes()


@pytest.mark.parametrize("maker", list(makers.MAKERS))
def test_no_label_is_more_probable_than_one_above_it(maker):
    """Nor where labels have no rows yet, whose probability is a share of rows."""
    ds = makers.MAKERS[maker]()
    later = MetaRanker(**makers.QUICK).fit(ds).update_labels(add=["moon", "star"] if ds.label_names else 2)
    for answers in (makers.fitted(maker), later):
        probability = answers.predict_proba(ds)
        ranking = answers.rank(ds, k=answers.n_labels_)
        for i, of_row in enumerate(ranking.labels):
            listed = probability[i].toarray().ravel() if sp.issparse(probability) else probability[i]
            assert (np.diff(listed[of_row[of_row >= 0]]) <= 0).all()


def test_label_sets_do_not_depend_on_the_weight(model):
    ranker, ds = model
    before = ranker.predict(ds)
    kept = ranker.propensity_weight_
    ranker.fitted_.propensity_weight = 2.0
    try:
        assert (before != ranker.predict(ds)).nnz == 0
    finally:
        ranker.fitted_.propensity_weight = kept

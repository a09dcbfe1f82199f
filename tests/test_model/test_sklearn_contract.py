"""scikit-learn's own checks of `MetaRanker`, and what `clone` asks of every scorer."""

from __future__ import annotations

import pickle

import makers
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from metarank import MetaRanker, load
from metarank.model.fitting.auto import named_scorers

WEIGHTS = "weights count in the ranker alone; neighbours, centroids and folds know rows, repeated or not"
SHAPE = "a vector of classes is one label a row, and answers are label sets (n, L), not a column"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_estimator_sparse_array": SHAPE,
    "check_estimator_sparse_matrix": SHAPE,
}


@pytest.mark.check
@parametrize_with_checks(
    [MetaRanker(effort="low", n_folds=2, n_jobs=1)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_score_checks_the_width():
    ds = makers.dense()
    with pytest.raises(ValueError, match=f"X has 1 features, but MetaRanker is expecting {ds.n_features}"):
        makers.fitted("dense").score(ds.X[:, :1], ds.Y)


@pytest.mark.parametrize("name", named_scorers())
def test_scorers_store_their_parameters_and_clone(name):
    scorer = named_scorers()[name]()
    params = scorer.get_params()
    copy = clone(scorer)
    assert type(copy) is type(scorer)
    assert copy.get_params() == params
    assert vars(scorer) == params
    assert scorer.set_params(**params) is scorer


def test_the_model_stores_its_parameters():
    model = MetaRanker(n_folds=3, features=["prior"])
    assert vars(model) == model.get_params(deep=False)
    fitted = MetaRanker(**makers.QUICK)
    before = fitted.get_params()
    fitted.fit(makers.dense())
    assert fitted.get_params() == before
    assert clone(fitted).get_params() == before
    assert {name for name in vars(fitted) if not name.endswith("_")} == set(before)


@pytest.mark.parametrize("maker", ["dense", "sparse", "texts", "many labels", "many texts"])
def test_fitted_and_loaded_models_go_through_pickle_in_memory(maker, tmp_path):
    """For worker processes; what is saved uses none."""
    model, ds = makers.fitted(maker), makers.MAKERS[maker]()
    model.save(tmp_path / "M")
    rows = ds.texts if ds.X is None else ds.X
    for original in (model, load(tmp_path / "M")):
        copy = pickle.loads(pickle.dumps(original))
        assert copy.decision_function(rows).tobytes() == model.decision_function(rows).tobytes()

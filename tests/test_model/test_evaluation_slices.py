"""Figures of a model by slice, and the training rows of its labels that they are told by."""

from __future__ import annotations

import makers
import numpy as np
import pytest

from metarank import MetaRanker, data, metrics
from metarank.model.answering.measure import Evaluation, training_counts

NAMES = ["P@1", "nDCG@3", "PSP@3", "MAP", "AUPRC", "micro-F1", "Hamming"]


@pytest.fixture(scope="module")
def fitted():
    both = data.make_multilabel(150, n_features=8, n_labels=6, seed=3)
    train = both.take(slice(0, 100))
    return MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(train), train, both.take(slice(100, 150))


def test_a_slice_is_the_evaluation_of_its_rows(fitted):
    model, _, test = fitted
    source = np.array(["web", "book"])[(np.arange(50) % 3 > 0).astype(int)]
    found = Evaluation(model, test, test).values(NAMES, slices=source)
    assert list(found) == ["book", "web"]
    for name, values in found.items():
        own = test.take(source == name)
        assert values == pytest.approx(Evaluation(model, own, own).values(NAMES))


def test_label_frequency_is_that_of_the_training_rows(fitted):
    model, train, test = fitted
    counts = np.asarray((train.Y > 0).sum(axis=0)).ravel()
    evaluation = Evaluation(model, test, test)
    np.testing.assert_array_equal(evaluation.label_counts, counts)
    found = evaluation.values(["R@2", "PSP@2"], slices="label frequency")
    expected = metrics.evaluate(
        test.Y,
        model.rank(test, k=2),
        ["R@2", "PSP@2"],
        inv_propensity=model.inv_propensity_,
        slices="label frequency",
        label_counts=counts,
    )
    assert found == expected
    [parts] = evaluation.by_slices([*NAMES, "R@2"], {"label frequency": None}).values()
    assert "AUPRC" not in parts[0].values
    assert sum(part.size["pairs"] for part in parts) == test.Y.nnz
    with pytest.raises(ValueError, match="intervals must be False"):
        evaluation.values(["R@2"], slices="label frequency", intervals=True)


def test_unknown_labels_have_no_training_row(fitted):
    model, _, test = fitted
    more = data.Dataset(test.X, np.hstack([test.Y.toarray(), np.ones((50, 1))]))
    with pytest.warns(UserWarning, match="that the model does not know"):
        found = Evaluation(model, test.X, more).values(["R@3"], slices="label frequency")
    assert found["none"]["R@3"] == 0


@pytest.mark.parametrize("n_rows", [3, 40, 100_000])
def test_counts_are_found_in_the_propensities(n_rows):
    """Whatever proposes; and after more rows have come."""
    counts = np.unique(np.geomspace(1, n_rows, 50).astype(int))
    weights = metrics.propensity.inv_propensity(np.append(counts, 0), n_points=n_rows)
    np.testing.assert_array_equal(metrics.propensity.counts_of_weights(weights, n_rows), [*counts, 0])


def test_counts_of_models_that_were_changed():
    both = data.make_multilabel(120, n_features=8, n_labels=4, seed=0)
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
    model.partial_fit(both.take(slice(80, 120)))
    np.testing.assert_array_equal(
        training_counts(model.fitted_), np.asarray((both.Y > 0).sum(axis=0)).ravel()
    )
    assert training_counts(makers.fitted("texts").fitted_).shape == (3,)

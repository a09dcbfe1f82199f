"""Labels that training rows lack: found where they were taken away, kept with the model."""

from __future__ import annotations

import makers
import numpy as np
import pytest

from metarank import MetaRanker, data, load
from metarank.types.suggested import MAX_PAIRS, MissingLabel


@pytest.mark.parametrize("maker", ["dense", "texts", "many labels", "many texts"])
def test_unlabelled_sorted_and_named(maker):
    model, train = makers.fitted(maker), makers.MAKERS[maker]()
    Y = train.Y.toarray()
    found = model.suggest_missing(50)
    assert 0 < len(found) <= 50
    assert len({(pair.row, pair.label) for pair in found}) == len(found)
    assert not any(Y[pair.row, pair.label] for pair in found)
    keys = [(-pair.probability, pair.row, pair.label) for pair in found]
    assert keys == sorted(keys)
    assert all(0 <= pair.probability <= 1 for pair in found)
    assert model.suggest_missing(7) == found[:7]
    first = found[0]
    assert first.label_name == (None if train.label_names is None else train.label_names[first.label])
    assert (first.row_name is None) == (train.texts is None)
    if train.texts is not None:
        assert train.texts[first.row].startswith(first.row_name[:20])
    assert 0 < len(model.suggest_missing(10**6)) <= MAX_PAIRS


def test_labels_taken_away_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    Y = (X > 0).astype(np.float32)
    gone = [(i, int(np.argmax(X[i]))) for i in range(0, 300, 30)]
    for i, label in gone:
        Y[i, label] = 0
    model = MetaRanker(**makers.QUICK).fit(X, Y)
    found = {(pair.row, pair.label) for pair in model.suggest_missing(15)}
    assert len(found & set(gone)) >= 8


def test_excluded_pairs_are_not_suggested():
    train = data.make_multilabel(80, n_features=6, n_labels=4, seed=1)
    exclude = [[i % 4] for i in range(80)]
    model = MetaRanker(**makers.QUICK).fit(train, exclude=exclude)
    assert not any(pair.label in exclude[pair.row] for pair in model.suggest_missing(1000))


def test_saved_with_the_model(tmp_path):
    model = makers.fitted("texts")
    model.save(tmp_path / "M")
    again = load(tmp_path / "M")
    assert again.suggest_missing(20) == model.suggest_missing(20)
    assert isinstance(again.suggest_missing(1)[0], MissingLabel)

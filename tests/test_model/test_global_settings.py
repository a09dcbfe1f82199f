"""Settings of a whole process, which somebody else made: fits and answers stay as they are, to the byte."""

import locale
import warnings
from contextlib import contextmanager
from functools import cache

import makers
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn

from metarank import MetaRanker, load

QUICK = {"effort": "low", "n_jobs": 1, "n_folds": 2}
# Of each kind of features; the second proposes labels, the third learns from lists in which values underflow.
MODELS = {
    "dense": {"ranker": "lambdarank"},
    "many texts": {"ranker": "logistic"},
    "texts": {"ranker": "logistic", "shortlister": "one-vs-all"},
}


@contextmanager
def warnings_raise():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def other_print():
    """Short numbers, with decimal commas where the machine has such a locale."""
    before = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    try:
        with np.printoptions(precision=1, threshold=3, suppress=True):
            yield
    finally:
        locale.setlocale(locale.LC_ALL, before)


SETTINGS = {
    "pandas output": lambda: sklearn.config_context(transform_output="pandas"),
    "polars output": lambda: sklearn.config_context(transform_output="polars"),
    "other of scikit-learn's": lambda: sklearn.config_context(
        enable_metadata_routing=True,
        assume_finite=True,
        skip_parameter_validation=True,
        working_memory=1,
        display="text",
        print_changed_only=False,
    ),
    "numpy raises": lambda: np.errstate(all="raise"),
    "warnings raise": warnings_raise,
    "print": other_print,
}


def answers(model, ds):
    X = ds.X if ds.texts is None else ds.texts
    ranking = model.rank(X[:9], k=3)
    return [
        ranking.labels.tobytes(),
        ranking.scores.tobytes(),
        model.predict(X[:9]).toarray().tobytes(),
        sp.csr_matrix(model.predict_proba(X[:9])).data.tobytes(),
        str(model.explain(X[:1], 0)),
    ]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    @cache
    def made(maker):
        ds = makers.MAKERS[maker]()
        model = MetaRanker(**QUICK, **MODELS[maker]).fit(ds)
        return makers.saved_bytes(model, tmp_path_factory.mktemp("usual") / "model"), answers(model, ds)

    return made


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize("maker", MODELS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_process_change_no_byte(setting, maker, usual, tmp_path):
    files, answered = usual(maker)
    ds = makers.MAKERS[maker]()
    with SETTINGS[setting]():
        model = MetaRanker(**QUICK, **MODELS[maker]).fit(ds)
        assert makers.saved_bytes(model, tmp_path / "model") == files
        assert answers(model, ds) == answered
        assert answers(load(tmp_path / "model"), ds) == answered


@pytest.mark.check
def test_values_that_underflow_are_no_error():
    ds = makers.dense()
    tiny = (ds.X * 1e-42).astype(np.float32)
    model = makers.fitted("dense")
    expected = model.rank(tiny).scores.tobytes()
    with np.errstate(all="raise"):
        assert model.rank(tiny).scores.tobytes() == expected
        assert model.rank(tiny.astype(np.float64)).scores.tobytes() == expected
        assert MetaRanker(**QUICK).fit(tiny, ds.Y).rank(tiny[:2]).labels.shape == (2, ds.n_labels)

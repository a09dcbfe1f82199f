"""`tune=N`: the settings that are tried, on which rows, and which one is taken."""

from __future__ import annotations

from functools import cache
from typing import Any

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from metarank import MetaRanker, load
from metarank.data import Dataset, make_extreme
from metarank.metrics import per_row
from metarank.metrics.propensity import inv_propensity
from metarank.scorers.tuning import _SHIFT, Trial, worth_most
from metarank.shortlist import OneVsAll, Parabel, XReg
from metarank.types.view import TrainingSet, fold_of_rows

N, LABELS = 200, 60
PIPELINE = {**makers.QUICK, "shortlister": ["neighbors", "parabel", "one-vs-all"]}
# Each with the metric that judges its settings.
SCORERS: dict[str, tuple[Any, str]] = {
    "Parabel": (Parabel(n_trees=2, tune=4), "nDCG@5"),
    "Parabel, hinge": (Parabel(n_trees=2, loss="hinge", calibrate=True, tune=3), "nDCG@5"),
    "Parabel, C given": (Parabel(n_trees=2, C=0.7, tune=4), "nDCG@5"),
    "XReg": (XReg(tune=3), "WP@5"),
    "XReg of propensities": (
        XReg(n_trees=2, relevance="inverse-propensity", normalize="label", tail=0.8, tune=3),
        "PSP@5",
    ),
    "XReg, auto": (XReg(n_trees=2, relevance="inverse-propensity", normalize="auto", tune=3), "PSP@5"),
    "OneVsAll": (OneVsAll(tune=8), "nDCG@5"),
    "OneVsAll, ridge": (OneVsAll(loss="ridge", tune=4), "PSP@5"),
}
MODELS = {name: scorer for name, (scorer, _) in SCORERS.items()} | {
    "MetaRanker": MetaRanker(**PIPELINE, tune=3)
}


@cache
def rows() -> Dataset:
    """Rows with grades, some of them copies of others."""
    made = make_extreme(N, n_features=80, n_labels=LABELS, labels_per_row=3, nnz_per_row=8, seed=1)
    X = made.X[np.r_[:180, :20]]
    Y = sp.csr_matrix(made.Y[np.r_[:180, :20]], dtype=np.float32)
    Y.data[:] = np.random.default_rng(0).integers(1, 5, len(Y.data))
    return Dataset(X, Y, name="rows")


def fit(model: Any, n_jobs: int = 1) -> Any:
    model = clone(model)
    if isinstance(model, MetaRanker):
        return model.set_params(n_jobs=n_jobs).fit(rows())
    return model.fit(rows().X, rows().Y, n_jobs=n_jobs)


def learned(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a saved model but the one with its parameters."""
    return {name: content for name, content in files.items() if name != "manifest.json"}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bytes_for_any_threads(name, tmp_path):
    one, twin, four = fit(MODELS[name]), fit(MODELS[name]), fit(MODELS[name], 4)
    files = [makers.saved_bytes(m, tmp_path / str(i)) for i, m in enumerate((one, twin, four))]
    assert files[0] == files[1]
    if name == "MetaRanker":  # which has n_jobs among its parameters
        files = [learned(some) for some in files]
    assert files[0] == files[2]
    assert one.choices_ == four.choices_
    assert one.get_params() == MODELS[name].get_params()
    loaded = load(tmp_path / "0")
    assert (loaded.choices_, loaded.tune) == (one.choices_, one.tune)
    again = makers.saved_bytes(loaded, tmp_path / "loaded")
    assert {name: again[name] for name in files[0]} == files[0]


def by_hand(scorer: Any, metric: str) -> tuple[dict[str, Any], list[float]]:
    """The slow and obvious way: one fit a setting on plain rows, one comparison after another."""
    X, Y = rows().X, rows().Y
    seed = 0
    inside = fold_of_rows(N, 5, seed + _SHIFT, X) == 0
    assert 20 < inside.sum() < 60
    truth = Y[inside] if metric == "WP@5" else (Y[inside] > 0).astype(np.float32)
    weights = inv_propensity(Y > 0)
    tried = []
    for setting in scorer.settings_tried():
        fitted = clone(scorer).set_params(**setting, tune=0).fit(X[~inside], Y[~inside], n_jobs=1)
        values = per_row(truth, fitted.shortlist(X[inside], 5), metric, inv_propensity=weights)
        part = TrainingSet(X[~inside], Y[~inside], np.zeros((~inside).sum(), np.int32)).view()
        tried.append((fitted._work(part), len(tried), setting, values[~np.isnan(values)]))
    taken = None
    for _, _, setting, values in sorted(tried, key=lambda t: t[:2]):
        if taken is None:
            taken = setting, values
            continue
        gain = values - taken[1]
        if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)):
            taken = setting, values
    assert taken is not None
    return taken[0], [float(values.mean()) for *_, values in tried]


@pytest.mark.parametrize("name", SCORERS)
def test_the_setting_taken_is_that_of_trials_by_hand(name):
    scorer, metric = SCORERS[name]
    model = fit(scorer)
    setting, means = by_hand(scorer, metric)
    assert model.best_params_ == setting
    head, *told = model.choices_
    assert head.startswith(f"tune: {len(means)} settings of {type(scorer).__name__}")
    assert [f"{metric} {mean:.4f}" in line for mean, line in zip(means, told, strict=True)] == [True] * len(
        told
    )
    assert [line.endswith(", taken") for line in told].index(True) == scorer.settings_tried().index(setting)
    alone = fit(clone(scorer).set_params(**setting, tune=0))
    ours, theirs = (m.shortlist(rows().X, 20) for m in (model, alone))
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    np.testing.assert_array_equal(ours.scores[scorer.column], theirs.scores[scorer.column])
    assert (alone.best_params_, alone.choices_) == ({}, [])


@pytest.mark.parametrize("name", sorted(SCORERS.keys() - {"XReg, auto"}))
def test_the_first_setting_is_the_default(name, tmp_path):
    first = clone(SCORERS[name][0]).set_params(tune=1)
    assert first.settings_tried() == [{}]
    model, plain = fit(first), fit(clone(first).set_params(tune=0))
    assert model.choices_[1].split(": work")[0].startswith(f"tune: {type(first).__name__} as given")
    files = [learned(makers.saved_bytes(m, tmp_path / str(m.tune))) for m in (model, plain)]
    assert files[0] == files[1]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("value", "error", "rule"),
    [
        (-1, ValueError, "tune must be at least 0, got -1"),
        (2**31, ValueError, "tune must be between 0 and"),
        (1.5, TypeError, "tune must be an integer, got 1.5"),
        (True, TypeError, "tune must be an integer, got True"),
        ("3", TypeError, "tune must be an integer, got '3'"),
        (None, TypeError, "tune must be an integer, got None"),
    ],
)
def test_bad_values(model, value, error, rule):
    with pytest.raises(error, match=rule):
        clone(model).set_params(tune=value).fit("neither read", "nor checked")


@pytest.mark.parametrize(
    ("scorer", "n", "given"),
    [
        (Parabel(C=7.0, tune=100), 6, "C"),
        (Parabel(max_leaf=8, visitors=3, tune=100), 5, "max_leaf"),
        (XReg(C=2.0, tune=100), 5, "C"),
        (OneVsAll(C=2.0, tune=100), 5, "C"),
        (OneVsAll(loss="ridge", C=2.0, tune=100), 4, "C"),
    ],
)
def test_what_is_given_stays(scorer, n, given):
    tried = scorer.settings_tried()
    assert len(tried) == n
    assert tried[0] == {}
    assert not any(given in setting for setting in tried)


def test_held_out_rows_are_not_seen():
    """Nor are other rows of their group; the last fit sees all rows."""
    seen = []

    class Watched(Parabel):
        def _learn(self, view, sample_weight, n_jobs):
            seen.append(set(view.rows.tolist()))
            assert sample_weight is None or len(sample_weight) == view.n_rows
            super()._learn(view, sample_weight, n_jobs)

    X, Y, weight = rows().X, rows().Y, np.linspace(1, 2, N)
    held_out = np.flatnonzero(fold_of_rows(N, 5, 3 + _SHIFT, X) == 0)
    Watched(tune=3, random_state=3).fit(X, Y, sample_weight=weight, n_jobs=1)
    assert seen == [set(range(N)) - set(held_out.tolist())] * 3 + [set(range(N))]
    groups = np.arange(N) // 8
    seen.clear()
    data = TrainingSet(X, Y, np.zeros(N, np.int32), groups=groups)
    tuned = Watched(tune=2).tuned(data.view())
    assert tuned.tune == 0
    for some in seen:
        assert 100 < len(some) < N
        assert not set(groups[sorted(some)]) & set(groups[sorted(set(range(N)) - some)])


@pytest.mark.parametrize(
    ("trials", "taken"),
    [
        ([([0.5, 0.5], 2), ([0.5, 0.5], 1)], 1),  # equally good: the cheaper
        ([([0.5, 0.5], 1), ([0.5, 0.5], 1)], 0),  # equally dear: the first
        ([([0.2, 0.2], 1), ([0.3, 0.3], 2)], 1),  # better for sure
        ([([0.2, 0.2], 1), ([0.6, 0.1], 2)], 0),  # better within the error
        ([([0.2, 0.2], 3), ([0.3, 0.3], 2), ([0.1, 0.4], 1)], 2),
        ([([np.nan, 0.2, 0.2], 1), ([np.nan, 0.3, 0.3], 2)], 1),  # rows that do not count
        ([([0.2], 1), ([0.9], 2)], 0),  # one row says nothing
    ],
)
def test_a_dearer_setting_must_be_better_by_an_error(trials, taken):
    made = [Trial({"number": i}, np.array(values), work) for i, (values, work) in enumerate(trials)]
    assert worth_most(made).setting == {"number": taken}


def test_rows_of_a_group_count_as_one():
    pair = [Trial({}, np.zeros(40), 1), Trial({"C": 3.0}, np.r_[np.ones(20), np.full(20, -0.9)], 2)]
    wide = [Trial(t.setting, np.r_[t.values, np.full(20, 0.4) * t.work], t.work) for t in pair]
    assert worth_most(wide).setting == {"C": 3.0}
    assert worth_most(wide, np.repeat([0, 1, 2], 20)).setting == {}


def test_too_few_rows_are_told_of():
    model = Parabel(tune=3).fit(np.eye(6, dtype=np.float32), [[i % 3] for i in range(6)])
    assert model.best_params_ == {}
    assert model.choices_ == ["tune: Parabel as given, since 6 rows are too few to hold some out"]


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_every_seed_holds_rows_out(seed):
    assert len(Parabel(n_trees=1, tune=2, random_state=seed).fit(rows()).choices_) == 3


def test_a_fit_in_parts_is_refused():
    view = TrainingSet(rows().X, rows().Y, np.zeros(N, np.int32)).view()
    with pytest.raises(ValueError, match="tune must be 0 for a fit in parts"):
        Parabel(tune=2).fit_trees(view, 0, 1)


def test_a_pipeline_tunes_its_trees_and_classifiers_once():
    """Each by itself; the models that a pipeline holds have the parameters that were taken."""
    model = fit(MetaRanker(**PIPELINE, tune=4))
    told = [line for line in model.choices_ if line.startswith("tune: ")]
    assert [line.split(",")[0] for line in told if " settings of " in line] == [
        "tune: 4 settings of Parabel",
        "tune: 4 settings of OneVsAll",
    ]
    assert len(told) == 10
    for scorer in model.shortlisters_[1:]:
        (line,) = [s for s in told if s.endswith(", taken") and f": {type(scorer).__name__} " in s]
        assert scorer.tune == 0
        for name in ("C", "visitors", "max_leaf", "max_epochs"):
            given = getattr(scorer, name, None)
            if f"{name}=" in line:
                assert f"{name}={given}" in line
    own = MetaRanker(**{**PIPELINE, "shortlister": ["neighbors", Parabel(n_trees=2, tune=2)]})
    assert sum("settings of" in line for line in fit(own).choices_) == 1
    none = MetaRanker(**{**PIPELINE, "shortlister": "neighbors"}, tune=2)
    assert "tune: no source has settings to try" in fit(none).choices_


def test_a_grid_search_varies_it():
    search = GridSearchCV(MetaRanker(**PIPELINE), {"tune": [0, 2]}, cv=2)
    search.fit(rows().X, rows().Y.toarray())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()

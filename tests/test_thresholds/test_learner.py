"""`ThresholdLearner`: cuts alone, on the scores of any model; what it refuses, and what it was."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import metarank
from metarank import ThresholdLearner, metrics
from metarank.thresholds import METRICS, THRESHOLDS, LearnedThresholds
from metarank.types.candidates import Candidates


def scored(n=200, L=5, seed=0):
    """Scores whose log-odds are a line in them, and the relevance drawn from these."""
    rng = np.random.default_rng(seed)
    true = rng.normal(-1.0, 1.8, (n, L)) + rng.normal(0, 0.7, L)
    return 0.4 * true + 3.0, (rng.random((n, L)) < expit(true)).astype(np.float32)


def stored(S):
    """All entries of a matrix as those of a CSR matrix, zeros included."""
    n, L = S.shape
    return sp.csr_matrix((S.ravel(), np.tile(np.arange(L), n), np.arange(n + 1) * L), shape=S.shape)


def shortlisted(n=200, L=6, seed=0):
    S, Y = scored(n, L, seed)
    keep = np.median(S, axis=1, keepdims=True) < S
    return sp.csr_matrix(np.where(keep, S, 0)), Y, keep


def same(a, b, S):
    """Whether two learners say the same of rows."""
    p, q = a.predict_proba(S), b.predict_proba(S)
    if sp.issparse(p):
        p, q = p.data, q.data
    return p.tobytes() == q.tobytes() and all((a.predict(S, m) != b.predict(S, m)).nnz == 0 for m in METRICS)


def micro_f1(Y, kept):
    return metrics.evaluate(Y, None, ["micro-F1"], Y_pred=kept)["micro-F1"]


# --- what it does -------------------------------------------------------------


def test_it_calibrates_and_its_cuts_beat_one_half():
    S, Y = scored(1500)
    learner = ThresholdLearner().fit(S[:500], Y[:500])
    found = learner.predict(S[500:])
    assert found.dtype == np.int8
    halved = learner.predict_proba(S[500:]) > 0.5
    assert micro_f1(Y[500:], found) > micro_f1(Y[500:], halved)
    p = learner.predict_proba(S[500:])
    assert p.shape == (1000, 5)
    assert p.dtype == np.float32
    assert abs(p.mean() - Y[500:].mean()) < 0.02


@pytest.mark.parametrize("form", [np.asarray, stored, lambda S: pd.DataFrame(S, columns=list("abcde"))])
def test_no_rows_have_no_sets(form):
    S, Y = scored()
    learner = ThresholdLearner().fit(form(S), Y)
    for wish in ("micro-f1", "recall>=0.6"):
        assert learner.predict(form(S)[:0], optimize=wish).shape == (0, 5)
    assert learner.predict_proba(form(S)[:0]).shape == (0, 5)


def test_of_a_sparse_matrix_the_stored_entries_are_the_candidates():
    S, Y, keep = shortlisted()
    learner = ThresholdLearner().fit(S, Y)
    p, found = learner.predict_proba(S), learner.predict(S)
    assert p.indptr.tolist() == S.indptr.tolist()
    assert p.indices.tolist() == S.indices.tolist()
    assert not found.toarray()[~keep].any()


def test_relevant_labels_outside_the_candidates_count_as_missed():
    S, Y, keep = shortlisted()
    learned = LearnedThresholds().fit(
        Candidates(S.indptr, S.indices, 6),
        S.data,
        Y[keep],
        fold=np.zeros(200, int),
        missed=(Y * ~keep).sum(axis=1).astype(int),
    )
    learner = ThresholdLearner().fit(S, Y)
    assert Y[~keep].sum() > 0
    for metric in METRICS:
        kept = learner.predict(S, metric).toarray()[keep] > 0
        assert (kept == learned.keep(Candidates(S.indptr, S.indices, 6), S.data, metric)).all()
    assert learner.score(S, Y) == micro_f1(Y, learner.predict(S)) < 1


@pytest.mark.parametrize("metric", METRICS)
def test_score_is_the_metric(metric):
    S, Y = scored()
    learner = ThresholdLearner(optimize=metric).fit(S, Y)
    name = {"hamming": "Hamming"}.get(metric, metric.replace("f1", "F1"))
    value = metrics.evaluate(Y, None, [name], Y_pred=learner.predict(S, metric))[name]
    assert learner.score(S, y=Y) == pytest.approx(-value if metric == "hamming" else value)


def test_cross_validation_works():
    S, Y = scored(150)
    values = cross_val_score(ThresholdLearner("global"), S, Y, groups=np.arange(150) // 3, cv=GroupKFold(3))
    assert values.shape == (3,)
    assert (values > 0.5).all()
    assert cross_val_predict(ThresholdLearner("global"), S, Y, cv=3).shape == (150, 5)


def test_rows_of_a_group_share_a_fold():
    """Scores that tell the group, whose rows have the same labels: only folds of groups show it."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 20)
    label = rng.random((20, 3)) < 0.4
    S = rng.normal(size=(400, 3)) * 1e-3 + rng.normal(size=(20, 3))[group]
    apart = ThresholdLearner().fit(S, label[group])
    together = ThresholdLearner().fit(S, label[group], groups=[f"g{g}" for g in group])
    assert together.learned_.held_out_["micro-f1"] != apart.learned_.held_out_["micro-f1"]
    assert min(together.learned_.calibrator_.losses_.values()) > min(
        apart.learned_.calibrator_.losses_.values()
    )
    each_its_own = ThresholdLearner().fit(S, label[group], groups=np.arange(400))
    assert each_its_own.learned_.calibrator_.losses_ == apart.learned_.calibrator_.losses_


# --- laws ---------------------------------------------------------------------


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_dense_equals_sparse_and_frame(threshold):
    S, Y = scored()
    S[3, 2] = 0.0
    learner = ThresholdLearner(threshold).fit(S, Y)
    for container in (stored(S), pd.DataFrame(S), S.tolist(), np.asfortranarray(S)):
        other = ThresholdLearner(threshold).fit(container, sp.csr_matrix(Y))
        assert same(learner, other, S)
    assert learner.predict_proba(stored(S)).toarray().tobytes() == learner.predict_proba(S).tobytes()
    assert ((learner.predict(stored(S)) != learner.predict(S)).nnz) == 0


def test_it_is_saved(tmp_path):
    S, Y = scored()
    learner = ThresholdLearner("label", optimize="macro-f1", random_state=np.random.RandomState(3))
    learner.fit(pd.DataFrame(S, columns=list("abcde")), Y)
    learner.save(tmp_path / "model")
    loaded = metarank.load(tmp_path / "model")
    assert same(learner, loaded, S)
    assert loaded.get_params() == learner.get_params() | {"random_state": learner.random_state_}
    assert loaded.feature_names_in_.tolist() == list("abcde")
    assert loaded.summary() == learner.summary()


# The others want targets of another shape than the features.
FITTING = {"check_estimator_cloneable", "check_estimator_repr", "check_estimator_tags_renamed"}
FITTING |= {"check_valid_tag_types", "check_no_attributes_set_in_init", "check_get_params_invariance"}
FITTING |= {"check_parameters_default_constructible", "check_set_params", "check_mixin_order"}
FITTING |= {"check_do_not_raise_errors_in_init_or_set_param"}


@parametrize_with_checks([ThresholdLearner()])
def test_sklearn_checks(estimator, check):
    if getattr(check, "func", check).__name__ in FITTING:
        check(estimator)


# --- bad input ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"S": scored()[0] * 1e300}, "S must hold numbers of at most 3.4e"),
        ({"S": np.full((200, 5), np.nan)}, "Input S contains NaN"),
        ({"S": stored(np.full((200, 5), np.inf))}, "Input S contains infinity"),
        ({"S": np.zeros(200)}, "Expected 2D array, got 1D array"),
        ({"S": np.zeros((0, 5))}, "minimum of 1 is required"),
        ({"S": np.full((200, 5), 1j)}, "Complex data not supported"),
        ({"S": pd.DataFrame({"a": ["x"] * 200})}, "could not convert string to float: 'x'"),
        ({"S": sp.csr_matrix((200, 5))}, "candidates must hold at least one pair"),
        ({"Y": None}, "y is None"),
        ({"Y": np.zeros((199, 5))}, "Y must have as many rows as S, 200, got 199"),
        ({"Y": np.zeros((200, 4))}, "Y must have 5 labels, got 4"),
        ({"Y": np.full((200, 5), -1.0)}, "Y must hold values >= 0, got -1 at row 0, column 0"),
        ({"Y": np.full((200, 5), np.nan)}, "Y contains NaN at row 0"),
        ({"Y": [[7]] * 200}, "7"),
        ({"groups": np.zeros(3)}, r"groups must have shape \(200,\), got 3 values"),
        ({"groups": [None] + ["a"] * 199}, "groups must give the group of each row, got None at row 0"),
        ({"groups": np.zeros(200)}, "groups must hold at least 2 groups"),
    ],
)
def test_bad_input_is_named(change, message):
    S, Y = scored()
    given = {"S": S, "Y": Y} | change
    with pytest.raises(ValueError, match=message):
        ThresholdLearner().fit(given.pop("S"), given.pop("Y"), **given)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": "best"}, r"threshold must be one of auto, .* got 'best'"),
        ({"optimize": "f1"}, r"optimize must be None or one of micro-f1, .* got 'f1'"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_parameters_are_named_in_fit(params, message):
    with pytest.raises(ValueError, match=message):
        ThresholdLearner(**params).fit(*scored())


def test_what_prediction_refuses():
    S, Y = scored()
    frame = pd.DataFrame(S, columns=list("abcde"))
    with pytest.raises(ValueError, match="not fitted"):
        ThresholdLearner().predict(S)
    learner = ThresholdLearner("global").fit(frame, Y)
    with pytest.raises(ValueError, match="S has 4 labels, but ThresholdLearner is expecting 5"):
        learner.predict(S[:, :4])
    with pytest.raises(ValueError, match="feature names should match"):
        learner.predict_proba(frame[list("edcba")])
    with pytest.raises(ValueError, match="optimize must be None or one of"):
        learner.predict(S, "f1")
    with pytest.raises(ValueError, match="Y must have the columns of S"):
        ThresholdLearner().fit(frame, pd.DataFrame(Y, columns=list("edcba")))
    with pytest.raises(ValueError, match="two names of one argument"):
        ThresholdLearner().fit(S, Y, y=Y)


@pytest.mark.parametrize(("scale", "offset"), [(2.0**-30, 0), (2.0**90, 0), (1, 2.0**30)])
def test_scores_of_any_scale_give_the_same_sets(scale, offset):
    """Far from 0 too, where 32 bits would make all scores equal."""
    S = np.round(scored()[0] * 2**12) / 2**12  # of which the sums are exact
    Y, moved = scored()[1], S * scale + offset
    groups = np.arange(200) // 2
    plain = ThresholdLearner().fit(S[:150], Y[:150], groups=groups[:150])
    other = ThresholdLearner().fit(moved[:150], Y[:150], groups=groups[:150])
    assert (plain.predict(S[150:]) != other.predict(moved[150:])).nnz <= 2
    assert ThresholdLearner().fit(np.ones_like(S), Y).predict(S).shape == S.shape


def test_of_many_labels_the_best_of_each_row_are_enough():
    rng = np.random.default_rng(0)
    p = 0.3 / (1 + np.arange(250)) ** 0.7
    Y = rng.random((400, 250)) < p
    S = rng.normal(size=Y.shape) + 3 * Y + np.log(p)
    learner = ThresholdLearner().fit(S[:300], Y[:300].astype(int))
    assert learner.n_listed_ == 100
    listed = np.argsort(-S, axis=1, kind="stable")[:, :100]
    rows = np.repeat(np.arange(len(S)), 100)
    only = sp.csr_matrix((S[rows, listed.ravel()], (rows, listed.ravel())), Y.shape)
    of_lists = ThresholdLearner().fit(only[:300], Y[:300].astype(int))
    for metric in ("micro-f1", "macro-f1", "hamming"):
        assert (learner.predict(S[300:], metric) != of_lists.predict(only[300:], metric)).nnz == 0
    assert learner.predict_proba(S[300:]).shape == (100, 250)
    sure = ThresholdLearner(optimize="recall>=0.95").fit(S[:300], Y[:300].astype(int))
    assert sure.n_listed_ is None
    assert sure.score(S[300:], Y[300:].astype(int)) > 0.9

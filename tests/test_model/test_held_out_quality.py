"""What a fit reports of held-out rows is what new rows show, be there something to learn or nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from metarank import MetaRanker, _core, load, metrics
from metarank.__main__ import main
from metarank.model.fitted import quality_lines
from metarank.model.fitting.auto import named_scorers
from metarank.ranker.lists import RankingData
from metarank.scorers.classical.forest import ExtraTrees
from metarank.scorers.crossfit import can_nest, inner_parts, nested_columns
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import TrainingSet, fold_of_rows, same_content

N = 200
N_NEW = 2000


def coin_flips(rng, n):
    return rng.normal(size=(n, 10)), rng.random((n, 6)) < 0.3


def one_row_a_label(rng, n):
    Y = np.zeros((n, 50), bool)
    for start in range(0, n, N):
        Y[start + rng.integers(0, N, 50), np.arange(50)] = True
    return rng.normal(size=(n, 10)), Y


def copies(rng, n):
    """Each row four times in what is fitted; new rows are new."""
    X, Y = coin_flips(rng, n if n == N_NEW else n // 4)
    order = rng.permutation(n) % len(X)
    return X[order], Y[order]


def learnable(rng, n):
    weights = np.random.default_rng(5).normal(size=(10, 6))
    X = rng.normal(size=(n, 10))
    return X, X @ weights + rng.logistic(size=(n, 6)) > 1.5


KINDS = {make.__name__: make for make in (coin_flips, one_row_a_label, copies, learnable)}


@cache
def fitted(kind, n_folds):
    rng = np.random.default_rng(KINDS_SEED[kind])
    X, Y = KINDS[kind](rng, N)
    new, truth = KINDS[kind](rng, N_NEW)
    features = ["neighbors", "votes", "centroids", "prior"]  # with low effort no ranker would be chosen
    model = MetaRanker(n_jobs=1, features=features, n_folds=n_folds).fit(X, Y.astype(int))
    return model, new, truth


KINDS_SEED = {"coin_flips": 1, "one_row_a_label": 2, "copies": 3, "learnable": 4}
# Each kind with few or many folds; what is left over is for the slower checks.
CASES = [(kind, n_folds) for folds in ((2, 5), (5, 2)) for kind, n_folds in zip(KINDS, folds * 2)]


def apart(value, error, other, other_error):
    """The distance in standard errors."""
    return abs(value - other) / max(np.hypot(error, other_error), 1e-9)


@pytest.mark.check
def test_the_surest_tenth_of_coin_flips_is_not_overstated():
    over = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(N + N_NEW, 8)), rng.random((N + N_NEW, 6)) < np.linspace(0.1, 0.4, 6)
        model = MetaRanker(n_jobs=1, effort="low", random_state=seed).fit(X[:N], Y[:N].astype(int))
        proba = model.predict_proba(X[N:])
        top = proba >= np.quantile(proba, 0.9)
        over.append(proba[top].mean() - Y[N:][top].mean())
    assert abs(np.mean(over)) < 0.03


@pytest.mark.check_beyond(4)
@pytest.mark.parametrize(("kind", "n_folds"), CASES)
def test_what_is_reported_comes_true_on_new_rows(kind, n_folds):
    """Quality of the order, of label sets and of the chosen ranker, and probabilities."""
    model, new, truth = fitted(kind, n_folds)
    quality, copied = model.held_out_quality_, kind == "copies"
    assert {"P@1", "nDCG@5", "MAP"} <= set(quality)
    scores, proba = model.decision_function(new), model.predict_proba(new)
    for name in ("P@1", "nDCG@5", "MAP"):
        value, low, high = quality[name]
        shown = metrics.per_row(truth, scores, name)
        shown = shown[~np.isnan(shown)]
        error = shown.std() / np.sqrt(len(shown))
        assert apart(value, (high - low) / 3.92, shown.mean(), error) <= 3, (name, value, shown.mean())
    for name in ("micro-F1", "Hamming"):
        value, low, high = quality[name]
        shown = metrics.evaluate(truth, None, [name], Y_pred=model.predict(new, optimize=name))[name]
        error = max((high - low) / 3.92, 0.02) * (2 if copied else 1)
        assert apart(value, error, shown, 0) <= 3, (name, value, shown)
    for share in (0.1, 1.0):
        top = proba >= np.quantile(proba, 1 - share)
        # The surest pairs of the training rows stand for as many: that is what a share is learned from.
        rows = (N / 4 if copied else N) * (1 if share == 1 else truth.shape[1] * share)
        expected = truth[top].mean()
        assert apart(proba[top].mean(), np.sqrt(expected * (1 - expected) / rows), expected, 0) <= 3
    if not getattr(model.ranker_, "quality_", None):  # too few rows with labels: nothing was compared
        assert kind == "one_row_a_label"
        return
    indptr = np.arange(N_NEW + 1) * truth.shape[1]
    lists = scores.astype(np.float64).ravel(), truth.ravel().astype(np.float32)
    ap, ndcg, rank_loss = _core.list_quality(*lists, indptr, 1).T
    shown = ((ap + ndcg + 1 - rank_loss) / 3)[~np.isnan(ap)]
    chosen = model.ranker_.quality_[model.ranker_.choice_]
    # Copies count once, and a quality is that of the better of two.
    error = shown.std() / np.sqrt(N / 4 if copied else N)
    assert f"{chosen:.4f}" in " ".join(model.choices_)
    assert apart(chosen, error, shown.mean(), 0) <= 3


def test_labels_that_only_the_rows_name_are_not_found_by_name():
    """New rows have labels that no training row has; of a table, all are known beforehand."""
    rng = np.random.default_rng(0)
    names = [" ".join(rng.choice([f"word{i}" for i in range(300)], 2, replace=False)) for _ in range(120)]
    how = {"effort": "low", "n_jobs": 1, "language": None}
    of_rows, of_table = (MetaRanker(**how).fit(names, [[n] for n in names], labels=t) for t in (None, names))
    assert of_rows.held_out_quality_["P@1"].value == 0
    assert of_table.held_out_quality_["P@1"].value > 0.9
    assert of_rows.choices_[-1].count("counts as missed") > of_table.choices_[-1].count("counts as missed")


def test_it_is_saved_and_does_not_depend_on_threads(tmp_path):
    model, _, _ = fitted("learnable", 5)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").held_out_quality_ == model.held_out_quality_
    X, Y = KINDS["learnable"](np.random.default_rng(4), N)
    again = clone(model).set_params(n_jobs=4).fit(X, Y.astype(int))
    assert again.held_out_quality_ == model.held_out_quality_


@pytest.mark.check_beyond(2)
@pytest.mark.parametrize(
    ("n", "n_labels", "options"),
    [
        pytest.param(300, 5, {"shortlister": "neighbors"}, id="shortlisted"),
        pytest.param(60, 4, {"n_folds": 3}, id="few rows"),
        pytest.param(12, 3, {}, id="too few to nest"),
        pytest.param(80, 4, {"ranker": "lambdarank"}, id="one ranker"),
        pytest.param(80, 4, {"threshold": "global"}, id="cuts that are not judged"),
    ],
)
def test_every_fit_reports(n, n_labels, options):
    X, Y = KINDS["learnable"](np.random.default_rng(0), n)
    model = MetaRanker(n_jobs=1, effort="low", **options).fit(X, Y[:, :n_labels].astype(int))
    for value, low, high in model.held_out_quality_.values():
        assert 0 <= low <= value <= high <= 1


NAMED = ("name-record", "tail")
SPARSE = ("parabel", "xreg", "fastxml", "pfastxml", "pfastrexml", "one-vs-all", "linear-svm", *NAMED)


@pytest.mark.check_beyond(6)
@pytest.mark.parametrize(
    "name", sorted(set(named_scorers()) - {"names", "spelling", "mentions", "label-vectors", "two-sided"})
)
def test_columns_that_judge_a_part_know_nothing_of_its_labels(name):
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 5))).astype(np.float32)
    Y = rng.random((60, 4)) < 0.4
    fold = fold_of_rows(60, 4, 0)
    few = {"extra-trees": {"n_trees": 9}}
    scorer = named_scorers()[name](**few.get(name, {}))
    pairs = Candidates.all_labels(60, 4)
    features = sp.csr_matrix(X) if name in SPARSE else X

    text = sp.csr_matrix(np.eye(4, 5, dtype=np.float32)) if name in NAMED else None

    def parts_of(Y):
        data = TrainingSet(features, sp.csr_matrix(Y.astype(np.float32)), fold, label_text=text)
        tuned = scorer.tuned(whole.view())
        return nested_columns([tuned], data, pairs, 1, lambda part: part)

    whole = TrainingSet(features, sp.csr_matrix(Y.astype(np.float32)), fold, label_text=text)
    before = parts_of(Y)
    assert sorted(np.concatenate([part.held_out for part in before]).tolist()) == list(range(60))
    for number, part in enumerate(before):
        changed = Y.copy()
        changed[part.held_out] = ~changed[part.held_out]
        after = parts_of(changed)[number]
        for column, values in part.described[0].items():
            assert values.tobytes() == after.described[0][column].tobytes(), column


def test_nested_columns_are_those_of_fits_without_both_parts():
    rng = np.random.default_rng(0)
    X, Y = (
        rng.normal(size=(60, 5)).astype(np.float32),
        sp.csr_matrix((rng.random((60, 4)) < 0.4) * np.float32(1)),
    )
    data = TrainingSet(X, Y, fold_of_rows(60, 3, 0))
    scorer = ExtraTrees(n_trees=12)
    for part in nested_columns([scorer], data, Candidates.all_labels(60, 4), 2, lambda part: part):
        for other in set(data.fold[part.seen]):
            inside = data.fold[part.seen] == other
            rows = np.flatnonzero((data.fold != other) & ~np.isin(np.arange(60), part.held_out))
            alone = ExtraTrees(n_trees=4).fit(TrainingSet(X[rows], Y[rows], np.zeros(len(rows))).view())
            pairs = Candidates.all_labels(int(inside.sum()), 4)
            [expected] = alone.score(X[part.seen[inside]], pairs).values()
            [column] = part.described[0].values()
            assert column[np.repeat(inside, 4)].tobytes() == expected.tobytes()


def test_inner_parts_learn_from_their_own_fold():
    fold, inner = np.arange(24) % 3, np.arange(24) // 3 % 2
    parts = inner_parts(fold, inner)
    assert sorted(np.concatenate([part.held_out for part in parts]).tolist()) == list(range(24))
    for part in parts:
        assert len(set(fold[part.held_out]) | set(fold[part.seen])) == 1
        assert not set(part.held_out) & set(part.seen)
    assert not can_nest(TrainingSet(np.zeros((24, 1), np.float32), sp.csr_matrix((24, 1)), np.arange(24) % 2))


def test_a_label_without_evidence_takes_the_place_of_another():
    pairs = Candidates.all_labels(400, 10)
    shown = np.tile(np.arange(10) < 9, 400)
    shown[:10] = False
    table = FeatureTable(np.zeros((4000, 1), np.float32), ["x"], pairs)
    data = RankingData.checked(table, np.zeros(4000), None, None, 0)
    scores = np.where(shown, np.random.default_rng(0).normal(size=4000), 99.0)
    placed = replace(data, shown=shown).placed(scores)
    assert np.array_equal(placed[shown], scores[shown])
    lists = placed.reshape(400, 10)[1:]
    ranks = (lists[:, :9] > lists[:, 9:]).sum(axis=1)
    assert np.bincount(ranks, minlength=10).min() > 15  # of 399, 40 each
    assert len(set(placed[:10])) == 1
    assert placed[0] < 99


def slow_same_content(X):
    first = {}
    rows = [first.setdefault((row + 0.0).tobytes(), i) for i, row in enumerate(X)]
    often = np.bincount(rows, minlength=len(rows)) > max(2, len(rows) // 10)
    return np.array([i if often[row] else row for i, row in enumerate(rows)])


@pytest.mark.parametrize("distinct", [3, 20, 400])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_copies_are_found(distinct, layout):
    rng = np.random.default_rng(distinct)
    values = rng.integers(0, 3, (distinct, 6)).astype(np.float32)
    X = values[rng.integers(0, distinct, 200)]
    negative = np.where(X == 0, np.float32(-0.0), X)
    assert np.array_equal(same_content(layout(X)), slow_same_content(X))
    assert np.array_equal(same_content(np.ascontiguousarray(negative)), slow_same_content(X))
    fold = fold_of_rows(200, 5, 0, layout(X))
    assert np.array_equal(fold, fold[slow_same_content(X)])
    assert np.array_equal(
        fold_of_rows(200, 5, 0, rng.normal(size=(200, 3)).astype(np.float32)), fold_of_rows(200, 5, 0)
    )


def test_train_and_inspect_tell_it(tmp_path, capsys):
    X, Y = KINDS["learnable"](np.random.default_rng(4), N)
    lines = [f"{N} 10 6"]
    for row, labels in zip(X, Y):
        values = " ".join(f"{i}:{v:.9g}" for i, v in enumerate(row))
        lines.append(",".join(map(str, np.flatnonzero(labels))) + " " + values)
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    command = ["train", tmp_path / "train.txt", "--model", tmp_path / "M", "--effort", "low", "--jobs", "1"]
    assert main(list(map(str, command))) == 0
    said = capsys.readouterr().out
    quality = load(tmp_path / "M").held_out_quality_
    value, low, high = (100 * v for v in quality["P@1"])
    assert f"held out: P@1 {value:.1f} ({low:.1f} to {high:.1f}); nDCG@5" in said
    assert main(["inspect", str(tmp_path / "M")]) == 0
    assert "\n".join(quality_lines(quality)[:1]) in capsys.readouterr().out

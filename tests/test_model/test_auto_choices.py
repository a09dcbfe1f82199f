"""What "auto" means where labels are many or few, rows sparse or dense, and efforts low or high."""

from __future__ import annotations

import makers
import pytest

from metarank import MetaRanker
from metarank.model.fitting import auto
from metarank.model.fitting.auto import Sizes, choose_features, choose_ranker, choose_shortlister
from metarank.ranker import make_ranker


@pytest.mark.parametrize(
    ("n_labels", "is_sparse", "shortlists"),
    [(100, True, False), (101, True, True), (101, False, False), (1000, False, False), (1001, False, True)],
)
def test_labels_that_are_all_ranked(n_labels, is_sparse, shortlists):
    sizes = Sizes(300, n_labels, is_sparse, n_terms=9000)
    chosen = choose_shortlister("auto", sizes)
    assert bool(chosen) == shortlists
    columns = choose_features("auto", sizes, shortlisters=chosen)
    assert all(any(own is scorer for own in columns) for scorer in chosen)  # who proposes also describes


FEW, MANY = auto.FEW_PAIRS - 1, auto.FEW_PAIRS


@pytest.mark.parametrize(
    ("ranker", "n_pairs", "is_shortlisted", "is_given", "effort", "expected"),
    [
        ("auto", FEW, True, False, "medium", "ensemble"),
        ("auto", MANY, True, False, "medium", "pointwise"),
        ("auto", MANY, True, False, "low", "pointwise"),
        ("auto", FEW, True, False, "low", "logistic"),
        ("auto", MANY, False, False, "low", "logistic"),
        ("auto", FEW, True, True, "low", "auto"),
        ("lambdarank", FEW, True, False, "low", "lambdarank"),
    ],
)
def test_rankers_by_name(ranker, n_pairs, is_shortlisted, is_given, effort, expected):
    found = choose_ranker(ranker, n_pairs, ["svm"], effort, is_shortlisted, is_given)
    by_name, own = make_ranker(expected), ("label_columns", "n_models", "candidates")
    assert type(found) is type(by_name)
    assert {k: v for k, v in vars(found).items() if k not in own} == {
        k: v for k, v in vars(by_name).items() if k not in own
    }


def test_low_effort_averages_fewer_models(monkeypatch):
    monkeypatch.setattr(auto, "FEW_PAIRS", 1)
    train = makers.many_texts(120)
    model = MetaRanker(effort="low", n_folds=3, n_jobs=1).fit(train)
    assert model.ranker_.trees_.n_outputs == auto.FEWER_MODELS


@pytest.mark.parametrize(
    ("effort", "per_row", "enough", "of_rows"),
    [
        ("medium", 1, 120, 120),
        ("medium", 1, 90, 90),  # by rows: three folds of four
        ("medium", 4, 90, 30),  # by relevant pairs: 30 rows have 120 of them
        ("low", 1, 120, 60),  # half as many
        ("low", 1, 90, 45),  # and no more of a fold than that
    ],
)
def test_rows_with_many_labels_teach_as_much_as_more_rows_with_few(
    monkeypatch, effort, per_row, enough, of_rows
):
    monkeypatch.setattr(auto, "ENOUGH_ROWS", enough)
    monkeypatch.setattr(auto, "ENOUGH_RELEVANT_PAIRS", 120)
    monkeypatch.setattr(auto, "LEAST_RANKED_ROWS", 10)
    texts = [f"word{i % 7} term{i % 11} thing{i}" for i in range(120)]
    labels = [[f"label{(i * 3 + j) % 130}" for j in range(per_row)] for i in range(120)]
    model = MetaRanker("neighbors", effort=effort, ranker="logistic", n_folds=4, n_jobs=1).fit(texts, labels)
    told = [choice for choice in model.choices_ if choice.startswith("ranker: learns from")]
    expected = [] if of_rows == 120 else [f"ranker: learns from {of_rows} of 120 rows"]
    found = [int(text.split()[3]) for text in told]
    assert all(abs(n - of_rows) <= 20 for n in found), told
    assert len(found) == len(expected)

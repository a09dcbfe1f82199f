"""`evaluate(..., slices=)` against evaluating what a slice holds; values of columns as few slices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import Ranking
from metarank.metrics import evaluate, few_values, frequency_bins, known_names
from metarank.metrics.names import Metric
from metarank.metrics.slices import LABEL_FREQUENCY, goes_by_label, rows_by_value

NAMES = [name.replace("@k", "@2") for name in known_names()]
COUNTS = np.array([1, 40, 3, 0, 7, 2, 2, 90])


@pytest.fixture(scope="module")
def judged_rows():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, (30, 8)) * (rng.random((30, 8)) < 0.4)
    Y[4] = 0
    more = {
        "inv_propensity": rng.random(8) + 1,
        "Y_pred": (rng.random((30, 8)) < 0.4).astype(int),
        "parents": [[], [0], [0], [], [3], [4], [], []],
        "scale": 2.0,
    }
    return Y, rng.random((30, 8)), more


def of_rows(values, rows):
    """The arguments of `evaluate` for some rows."""
    Y, scores, more = values
    return Y[rows], scores[rows], more | {"Y_pred": more["Y_pred"][rows]}


@pytest.mark.parametrize("kind", ["dense", "ranking", "csr"])
def test_a_slice_is_the_evaluation_of_its_rows(judged_rows, kind):
    Y, scores, more = judged_rows
    names = NAMES if kind == "dense" else ["P@2", "nDCG@2", "PSP@2", "MRR@2", "MAP", "Coverage", "WN-l@2"]
    form = {"dense": np.asarray, "ranking": lambda s: Ranking.from_scores(s, 5), "csr": sp.csr_matrix}[kind]
    source = np.array(["web", "news", "", "web", "forum"] * 6)
    found = evaluate(Y, form(scores), names, slices=source, **more)
    assert list(found) == ["forum", "news", "web", "(none)"]
    for name, values in found.items():
        truth, own, args = of_rows(judged_rows, np.flatnonzero(source == name.replace("(none)", "")))
        assert values == pytest.approx(evaluate(truth, form(own), names, **args), nan_ok=True)


def test_judged_pairs_go_with_slices(judged_rows):
    Y, scores, _ = judged_rows
    judged = [[i % 8, (3 * i) % 8] for i in range(30)]
    years = [2019 + i % 3 for i in range(30)]
    found = evaluate(Y, scores, ["MAP", "P@2"], judged=judged, slices=years)
    for j, values in enumerate(found.values()):
        assert values == evaluate(Y[j::3], scores[j::3], ["MAP", "P@2"], judged=judged[j::3])


def test_labels_by_frequency(judged_rows):
    """Lists against labels of which only those of the bin are relevant, sets against their columns."""
    Y, scores, more = judged_rows
    names = [name for name in NAMES if goes_by_label(Metric.parse(name))]
    assert {"P@2", "R@2", "MAP", "PSP@2", "micro-F1", "Hamming", "AUC"} <= set(names)
    found = evaluate(Y, scores, names, slices=LABEL_FREQUENCY, label_counts=COUNTS, **more)
    bins = frequency_bins(sp.csr_matrix(Y), COUNTS)
    assert list(found) == [b.name for b in bins]
    assert sum(b.n_pairs for b in bins) == np.count_nonzero(Y)
    assert sum(values["P@2"] for values in found.values()) == pytest.approx(
        evaluate(Y, scores, ["P@2"])["P@2"]
    )
    lists = [name for name in names if Metric.parse(name).needs != "sets"]
    for b in bins:
        among = (b.low <= COUNTS) & (b.high >= COUNTS)
        of_lists = evaluate(Y * among, scores, lists, **more)
        of_sets = {
            name: evaluate(Y[:, among], None, [name], Y_pred=more["Y_pred"][:, among])[name]
            for name in names
            if name not in lists
        }
        assert found[b.name] == pytest.approx(of_lists | of_sets, nan_ok=True)


@pytest.mark.parametrize(
    ("slices", "counts", "said"),
    [
        ([1, 2], None, "a value per row, 30, got 2"),
        ("source", None, "slices must be 'label frequency' or a sequence of values, got 'source'"),
        (3, None, "slices must be"),
        (LABEL_FREQUENCY, None, "label_counts must hold .* of the 8 labels"),
        (LABEL_FREQUENCY, [1, 2], "got shape"),
        (LABEL_FREQUENCY, [1.5] * 8, "float64"),
        (LABEL_FREQUENCY, [-1] * 8, "integers >= 0"),
        ([1] * 30, COUNTS, "label_counts must be left out"),
        (None, COUNTS, "label_counts must be left out"),
    ],
)
def test_what_is_no_slice_is_refused(judged_rows, slices, counts, said):
    Y, scores, _ = judged_rows
    with pytest.raises(ValueError, match=said):
        evaluate(Y, scores, ["P@1"], slices=slices, label_counts=counts)


@pytest.mark.parametrize("name", ["hF", "XMAD@2", "WP-l@2"])
def test_metrics_without_a_label_frequency_are_refused(judged_rows, name):
    Y, scores, more = judged_rows
    with pytest.raises(ValueError, match=f"does not go with '{name}'"):
        evaluate(Y, scores, [name], slices=LABEL_FREQUENCY, label_counts=COUNTS, **more)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([10, 9, 9.5, None, float("nan")], ["9", "9.5", "10", "(none)"]),
        (np.array(["2024-02-01", "2023-01-01", "NaT"], "datetime64[D]"), None),
        (["b 10", "(others)", "b 2", "", "a"], ["a", "b 2", "b 10", "(others)", "(none)"]),
        ([True, False, True], ["False", "True"]),
        ([-5, -10, 3], ["-10", "-5", "3"]),
    ],
)
def test_slices_are_in_order(values, names):
    found = rows_by_value(values, len(values))
    assert list(found) == (names or ["2023-01-01", "2024-02-01", "(none)"])
    assert sorted(np.concatenate(list(found.values())).tolist()) == list(range(len(values)))


@pytest.mark.parametrize(
    "values",
    [
        [f"20{i:02}-0{1 + i % 9}-11" for i in range(40)],
        [f"2024-{1 + i % 12:02}-{1 + i % 28:02}T10:00" for i in range(60)],
        [i / 7 for i in range(100)],
        [0] * 90 + list(range(30)),
        [f"source {i % 33}" for i in range(99)],
        [str(i) for i in range(50)] + [None],
    ],
    ids=["years", "months", "numbers", "mostly zero", "texts", "numbers as text"],
)
def test_many_values_become_few(values):
    few = few_values(values, 12)
    assert len(few) == len(values)
    assert 2 <= len(set(few) - {"(none)"}) <= 12
    assert [value is None for value in values] == [text == "(none)" for text in few]
    of_value = {}
    for value, text in zip(values, few):
        assert of_value.setdefault(value, text) == text
    assert few_values(few, 12) == few

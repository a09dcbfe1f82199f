"""Metrics of label sets: worked examples and scikit-learn."""

import metrics_by_name as by_name
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sk

from metarank import metrics

SET_NAMES = ["micro-F1", "macro-F1", "example-F1", "Hamming", "subset-accuracy", "LabelCoverage"]


def decisions(seed, n=30, n_labels=7):
    rng = np.random.default_rng(seed)
    Y, pred = (rng.random((2, n, n_labels)) < 0.3).astype(int)
    pred[:5] = Y[:5]
    Y[:, 2] = pred[:, 2] = 0  # a label nobody has
    Y[3] = pred[3] = 0  # a row with nothing
    return Y, pred


def test_worked_example():
    Y = [[2.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    pred = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert metrics.evaluate(Y, None, SET_NAMES, Y_pred=pred) == pytest.approx(
        {
            "micro-F1": 2 * 2 / (2 * 2 + 1 + 1),
            "macro-F1": (1 + 2 / 3 + 0 + 0) / 4,
            "example-F1": (1 / 2 + 1 + 1) / 3,
            "Hamming": 2 / 12,
            "subset-accuracy": 2 / 3,
            "LabelCoverage": 2 / 4,
        }
    )


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_scikit_learn(seed):
    Y, pred = decisions(seed)
    assert by_name.micro_f1(Y, pred) == pytest.approx(sk.f1_score(Y, pred, average="micro"))
    assert by_name.macro_f1(Y, pred) == pytest.approx(sk.f1_score(Y, pred, average="macro", zero_division=0))
    assert metrics.f1_per_label(Y, pred) == pytest.approx(sk.f1_score(Y, pred, average=None, zero_division=0))
    assert by_name.example_f1(Y, pred) == pytest.approx(
        sk.f1_score(Y, pred, average="samples", zero_division=1)
    )
    assert by_name.hamming_loss(Y, pred) == pytest.approx(sk.hamming_loss(Y, pred))
    assert by_name.subset_accuracy(Y, pred) == pytest.approx(sk.accuracy_score(Y, pred))


def test_every_container_gives_the_same_numbers():
    Y, pred = decisions(9)
    base = metrics.evaluate(Y, None, SET_NAMES, Y_pred=pred)
    matrices = sp.csr_matrix(pred), sp.csc_array(pred.astype(np.float32))
    for container in (pred.tolist(), pred.astype(bool), *matrices):
        assert metrics.evaluate(sp.csr_matrix(Y), None, SET_NAMES, Y_pred=container) == base


@pytest.mark.parametrize("name", SET_NAMES)
def test_per_row_values_average_to_the_metric_where_it_is_a_mean_over_rows(name):
    Y, pred = decisions(1)
    if name in ("micro-F1", "macro-F1", "LabelCoverage"):
        with pytest.raises(ValueError, match="not a mean over rows"):
            metrics.per_row(Y, None, name, Y_pred=pred)
        return
    values = metrics.per_row(Y, None, name, Y_pred=pred)
    assert values.mean() == pytest.approx(metrics.evaluate(Y, None, [name], Y_pred=pred)[name])


def test_nothing_relevant_and_nothing_predicted():
    got = metrics.evaluate(np.zeros((2, 3)), None, SET_NAMES, Y_pred=np.zeros((2, 3)))
    assert list(got.values()) == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("pred", "message"),
    [([[0.5, 1]], "0 and 1, got 0.5"), ([[1]], "shape of Y_true"), ([[-1, 0]], "Y_pred must hold")],
)
def test_bad_decisions(pred, message):
    with pytest.raises(ValueError, match=message):
        metrics.evaluate([[1, 0]], None, ["micro-F1"], Y_pred=pred)

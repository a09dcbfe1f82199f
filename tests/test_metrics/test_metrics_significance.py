"""Significance tests against SciPy and hand-worked cases."""

import numpy as np
import pytest
from scipy import stats

from metarank import metrics


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 6)) < 0.3).astype(int)
    Y[::9] = 0
    flip = [rng.random(Y.shape) < share for share in (0.1, 0.3)]
    return Y, *(np.where(f, 1 - Y, Y) for f in flip)


def test_sign_test_agrees_with_scipy(data):
    Y, a, b = data
    a_wins = int(np.sum((a == Y) & (b != Y)))
    b_wins = int(np.sum((b == Y) & (a != Y)))
    expected = stats.binomtest(a_wins, a_wins + b_wins).pvalue
    assert metrics.sign_test(Y, a, b) == pytest.approx(expected)
    assert metrics.sign_test(Y, b, a) == pytest.approx(expected)
    assert metrics.significance(Y, a, b, "micro-F1") == metrics.sign_test(Y, a, b)


def test_sign_test_by_hand():
    Y = [[1, 1, 1, 1, 0, 0]]
    # four wins to one: 2 (1 + 5) / 32; the pair decided alike does not count
    assert metrics.sign_test(Y, [[1, 1, 1, 0, 0, 0]], [[0, 0, 0, 1, 0, 1]]) == pytest.approx(12 / 32)
    assert metrics.sign_test(Y, [[1, 0, 0, 0, 0, 0]], [[0, 1, 0, 0, 0, 0]]) == 1.0


def test_wilcoxon_agrees_with_scipy(data):
    Y, a, b = data
    values = [metrics.per_row(Y, None, "Hamming", Y_pred=p) for p in (a, b)]
    wrong = [np.sum(p != Y, axis=1) for p in (a, b)]  # SciPy sees ties among integers only
    expected = stats.wilcoxon(*wrong).pvalue
    assert metrics.wilcoxon_rows(*values) == pytest.approx(expected)
    assert metrics.significance(Y, a, b, "Hamming") == pytest.approx(expected)
    by_label = [metrics.f1_per_label(Y, p) for p in (a, b)]
    assert metrics.significance(Y, a, b, "macro-F1") == pytest.approx(stats.wilcoxon(*by_label).pvalue)


def test_values_left_out_and_equal_values():
    assert metrics.wilcoxon_rows([0.5, np.nan], [0.5, np.nan]) == 1.0
    assert metrics.wilcoxon_rows([0.1 + 0.2, 0.5], [0.3, 0.5]) == 1.0  # a rounding error is no difference
    a, b = np.arange(1.0, 8), np.zeros(7)
    with_nan = [np.append(v, np.nan) for v in (a, b)]
    assert metrics.wilcoxon_rows(*with_nan) == metrics.wilcoxon_rows(a, b) == pytest.approx(2 / 2**7)


@pytest.mark.parametrize("name", [n.replace("@k", "@3") for n in metrics.known_names()])
def test_every_metric_with_rows_or_labels_has_a_test(data, name):
    Y, a, b = data
    w = np.linspace(1, 3, Y.shape[1])
    if name in ("micro-AUC", "AUPRC", "RMSE", "C@3", "LabelCoverage", "hP", "hR", "hF", "example-precision"):
        with pytest.raises(ValueError, match=r"not a mean over rows|parents must be given|NaN in the same"):
            metrics.significance(Y, a, b, name)
        return
    p = metrics.significance(Y, a, b, name, inv_propensity=w)
    assert 0 <= p <= 1
    assert metrics.significance(Y, a, a, name, inv_propensity=w) == 1.0


def test_marks():
    marks = {0: "**", 0.01: "**", 0.0101: "*", 0.05: "*", 0.0501: "", 1: ""}
    assert {p: metrics.significance_mark(p) for p in marks} == marks
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="p must lie"):
            metrics.significance_mark(p)


def test_bad_input():
    with pytest.raises(ValueError, match="same length"):
        metrics.wilcoxon_rows([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN in the same rows"):
        metrics.wilcoxon_rows([1.0, np.nan], [1.0, 2.0])

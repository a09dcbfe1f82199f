"""The study honesty: bins and promises by hand, a model that is honest where all rows are alike, the page."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank import data

with study("bench"):
    import sets
    from declared import Lines
    from studies import honesty
    from systems import honesty as system


def test_bins_of_probabilities_by_hand():
    p, relevant = np.array([[0.05, 0.1], [0.15, 1.0]]), np.array([[False, True], [False, True]])
    bins = system.reliability(p, relevant)
    assert bins[0] == [1, 0.05, 0.0]
    assert bins[1] == pytest.approx([2, 0.125, 0.5])
    assert bins[9] == [1, 1.0, 1.0]
    assert honesty.error_of(bins) == pytest.approx((0.05 + 2 * 0.375) / 4)
    assert honesty.of_bin([100, 0.5, 0.61]) == "0.500 → **0.610** (100)"
    assert honesty.of_bin([100, 0.5, 0.59]) == "0.500 → 0.590 (100)"


def test_the_most_probable_labels_are_those_that_are_not_out_of_the_question():
    p, Y = np.array([[0.9, 0.8, 0.1, 0.2, 0.3, 0.4]]), sp.csr_matrix([[0, 1, 0, 0, 0, 0]])
    best, relevant = system.most_probable(sp.csr_matrix(p), Y, sp.csr_matrix([[1, 0, 0, 0, 0, 0]]))
    assert best.tolist() == [[0.8, 0.4, 0.3, 0.2, 0.1]]
    assert relevant.tolist() == [[True, False, False, False, False]]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    rows = data.make_multilabel(900, n_features=8, n_labels=5, seed=1)
    folder = tmp_path_factory.mktemp("set")
    described = sets.write(rows.take(slice(0, 400)), rows.take(slice(400, None)), folder)
    found = []
    for kind in ("metarank", "logistic"):
        figures, _ = system.System({"kind": kind, "random_state": 0}, 1).experiment(folder)
        name = next(s.name for s in honesty.SYSTEMS if s.params["kind"] == kind)
        found.append({"set": "toy", "system": name, **figures})
    return Lines(found, {"toy": described})


def test_promises_hold_where_all_rows_are_alike(lines):
    ours = next(iter(lines))
    for promised, true in ours["quality_told"].values():
        assert promised[1] - 0.03 <= true[0] <= promised[2] + 0.03
    kept = {wish: found[0] for wish, found in ours["guarantees"].items() if not isinstance(found, str)}
    assert kept
    assert all(value >= float(wish.partition(">=")[2]) - 0.02 for wish, value in kept.items())
    assert all(sum(n for n, *_ in line["bins"]) == 500 * 5 for line in lines)
    assert honesty.error_of(ours["bins"]) < 0.05


def test_the_page_tells_what_does_not_hold_and_what_is_refused(lines):
    ours, other = lines
    quality = {"P@1": [[0.8, 0.7, 0.9], [0.5, 0.4, 0.6]]}
    guarantees = {"recall>=0.9": [0.85, 0.05, 2.0], "precision>=0.8": "the best possible is"}
    told = {**ours, "quality_told": quality, "guarantees": guarantees}
    page = honesty.page(Lines([told, other], lines.sets))
    assert "| P@1 | 0.8 [0.7, 0.9] | 0.5 [0.4, 0.6] | **no**, -4.2 standard errors |" in page
    assert "Within its interval: 0 of 1; within 1.96 standard errors of both: 0." in page
    assert "| toy | recall | at least 0.9 | 0.850 | **no**, -1.0 standard errors | 2.0 |" in page
    assert "| toy | precision | not 0.8: the best possible is |" in page

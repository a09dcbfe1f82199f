"""The report: balanced HTML that holds the numbers, escapes what users wrote, and copes with little data."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, Ranking, data, metrics
from metarank._util import svg
from metarank.apps.report import Report, evaluation_report, measure_report, to_html, write_report
from metarank.apps.report.baselines import alone
from metarank.apps.report.examples import Example, Suggestion, typical_rows
from metarank.apps.report.measures import (
    frequency_bins,
    importance,
    precision_and_recall,
    recall_by_frequency,
    reliability_bins,
)
from metarank.apps.report.words import Reason, block_of, reasons
from metarank.metrics import Interval
from metarank.model.explain import Explanation

VOID = {"meta"}


class Balanced(HTMLParser):
    """Fails on a tag that is not closed, and collects text and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.urls: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag != "script"
        self.urls += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)


def parsed(html: str) -> str:
    page = Balanced()
    page.feed(html)
    page.close()
    assert page.open == []
    assert page.urls == []
    assert "NaN" not in html
    assert ">nan" not in html
    return " ".join(page.text)


@pytest.fixture(scope="module")
def fitted():
    both = data.make_multilabel(160, n_features=8, n_labels=5, seed=1)
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 110)))
    return model, both.take(slice(110, 160))


def test_evaluation_report_holds_the_numbers(fitted, tmp_path):
    model, test = fitted
    report = evaluation_report(model, test, tmp_path / "r.html")
    text = parsed((tmp_path / "r.html").read_text())
    ranking = model.rank(test, k=5)
    expected = metrics.evaluate(test.Y, ranking, ["P@1", "nDCG@5"])
    for name, value in expected.items():
        assert report.metrics["metarank"][name].value == pytest.approx(value)
        assert f"{100 * value:.1f}" in text
    assert report.precision["metarank"][0] == pytest.approx(expected["P@1"])
    for part in ("most frequent", "Precision", "Calibration", "Sources of evidence", "Found", "test rows"):
        assert part in text
    assert "R@10" not in report.metrics["metarank"]  # there are five labels
    assert to_html(report) == to_html(measure_report(model, test))


def test_evaluate_writes_it(fitted, tmp_path, capsys):
    from metarank.apps.cli import main

    model, test = fitted
    model.save(tmp_path / "model")
    data.write_xc(tmp_path / "test.txt", test)
    arguments = ["evaluate", str(tmp_path / "model"), str(tmp_path / "test.txt"), "--json", "--report"]
    assert main([*arguments, str(tmp_path / "r.html")]) == 0
    assert '"P@1"' in capsys.readouterr().out
    assert "most frequent" in parsed((tmp_path / "r.html").read_text())
    assert main([*arguments, str(tmp_path / "none" / "r.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_baselines_of_the_user(fitted):
    model, test = fitted
    best = Ranking.from_scores(test.Y.toarray().astype(float), 5)
    report = measure_report(model, test, baselines={"oracle <b>": best}, n_examples=0)
    assert list(report.metrics) == ["metarank", "oracle <b>"]
    assert "oracle <b>" in parsed(to_html(report))
    assert "oracle <b>" not in to_html(report)


def test_names_are_escaped():
    evil = "<script>alert(1)</script>"
    reason = Reason(evil, 0.5)
    report = Report(
        title=evil,
        lead=evil,
        facts=[(evil, evil)],
        notes=[evil],
        examples_note=evil,
        metrics={evil: {"P@1": Interval(0.5, 0.4, 0.6)}},
        ks=[1, 2],
        precision={evil: [0.5, 0.4], evil + "2": [0.1, 0.2]},
        recall={evil: [0.1, 0.2]},
        examples=[Example(evil, evil, [Suggestion(evil, 1, 2.0, 0.5, [reason], evil)], [(evil, 0)])],
    )
    html = to_html(report)
    assert evil not in html
    assert evil in parsed(html)


def test_empty_parts_are_left_out(tmp_path):
    text = parsed(to_html(Report(title="Nothing")))
    assert "Calibration" not in text
    assert "metric" not in text
    nan = float("nan")
    parsed(to_html(Report(title="Unknown", metrics={"m": {"nDCG@5": Interval(nan, nan, nan)}})))
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "none" / "r.html", Report(title="Nothing"))


def test_writing_leaves_no_other_file(tmp_path):
    write_report(tmp_path / "r.html", Report(title="one"))
    write_report(tmp_path / "r.html", Report(title="two"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert "two" in (tmp_path / "r.html").read_text()


def test_one_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X[:, :1] > 0).astype(np.float32)
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(X, Y)
    report = measure_report(model, data.Dataset(X, Y))
    assert report.ks == (1,)
    parsed(to_html(report))


def test_rows_without_labels(fitted):
    model, test = fitted
    empty = data.Dataset(test.X, sp.csr_matrix(test.Y.shape, dtype=np.float32))
    report = measure_report(model, empty)
    assert report.bins == []
    assert list(report.examples) == []
    parsed(to_html(report))


def test_what_does_not_fit_is_refused(fitted, tmp_path):
    model, test = fitted
    with pytest.raises(ValueError, match="at least one row"):
        evaluation_report(model, test.take([]), tmp_path / "r.html")
    with pytest.raises(ValueError, match="the 5 labels of the model, got 1"):
        evaluation_report(model, data.Dataset(test.X, test.Y[:, :1]), tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_excluded_labels_are_not_counted(fitted):
    model, test = fitted
    irrelevant = sp.csr_matrix(1 - test.Y.toarray())
    report = measure_report(model, test, exclude=irrelevant, n_examples=0)
    assert report.recall["metarank"][-1] == pytest.approx(1.0)
    assert report.reliability.counts.sum() == test.Y.nnz
    assert report.reliability.observed[report.reliability.counts > 0] == pytest.approx(1.0)


def test_alone_are_the_scorers(fitted):
    model, test = fitted
    lists = alone(model, test, 3)
    assert set(lists) == {"most frequent", "nearest neighbours"}
    counts = np.diff(model.scorers_[0].labels_.indptr)
    assert lists["most frequent"].labels[7].tolist() == np.argsort(-counts, kind="stable")[:3].tolist()


# --- the numbers ---


def test_precision_and_recall_by_hand():
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1]], np.float32))
    ranking = Ranking.from_scores(np.array([[3.0, 1, 2], [3, 2, 1]]), 3)
    precision, recall = precision_and_recall(Y, ranking, [1, 2, 3])
    assert precision == pytest.approx([0.5, 0.25, 0.5])
    assert recall == pytest.approx([0.25, 0.25, 1.0])


def test_frequency_bins_and_recall():
    counts = np.array([0, 1, 5, 5, 20])
    Y = sp.csr_matrix(np.array([[1, 1, 0, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 1]], np.float32))
    bins = frequency_bins(Y, counts, 4)
    assert [b.name for b in bins] == ["none", "1", "2–20"]
    assert sum(b.n_pairs for b in bins) == Y.nnz
    assert [b.n_labels for b in bins] == [1, 1, 3]
    ranking = Ranking(np.array([[4, 1], [4, -1], [0, 1]]), np.zeros((3, 2)), 5)
    assert recall_by_frequency(Y, ranking, counts, bins, 2) == pytest.approx([0, 1 / 2, 2 / 4])
    assert frequency_bins(sp.csr_matrix((2, 5)), counts) == []


def test_reliability_by_hand():
    r = reliability_bins(np.array([0, 1, 1, 0]), np.array([0.05, 0.55, 0.56, 0.58]), 10)
    assert r.counts.tolist() == [1, 0, 0, 0, 0, 3, 0, 0, 0, 0]
    assert r.observed[5] == pytest.approx(2 / 3)
    assert r.error == pytest.approx(abs(2 / 3 - (0.55 + 0.56 + 0.58) / 3))
    assert reliability_bins(np.array([1]), np.array([1.0])).counts[-1] == 1


def test_importance_is_the_mean_absolute_contribution(fitted):
    model, test = fitted
    found = importance(model, test, model.rank(test, k=5), max_rows=1000)
    features, asked = model.encoder_.encode(test), model.answering()
    table = asked.table_of(features, asked.candidates_of(features))
    expected = np.abs(model.ranker_.contributions(table)[:, :-1]).mean(axis=0)
    assert dict(found.columns) == pytest.approx(dict(zip(table.names, expected)))
    assert found.n_pairs == len(table.values)
    assert [v for _, v in found.blocks] == sorted((v for _, v in found.blocks), reverse=True)


def test_typical_rows_are_neither_best_nor_worst():
    Y = sp.csr_matrix(np.eye(4, dtype=np.float32))
    scores = np.array([[4.0, 3, 2, 1]] * 4)  # row i finds its label at place i + 1
    ranking = Ranking.from_scores(scores, 4)
    assert typical_rows(Y, ranking, 1).tolist() == [2]
    assert typical_rows(Y, ranking, 4).tolist() == [0, 1, 2, 3]
    assert typical_rows(Y, ranking, 2, eligible=np.array([1, 0, 0, 1], bool)).tolist() == [0, 3]
    assert typical_rows(sp.csr_matrix((4, 4)), ranking, 2).tolist() == []


def test_reasons_add_up(fitted):
    model, test = fitted
    explanation = model.explain(test.take([0]), 0)
    told = reasons(explanation, 100)
    assert f"{sum(r.contribution for r in told):.3f}" == f"{explanation.score:.3f}"
    assert any("similar rows carry it" in r.text for r in told)


def test_contributions_are_asked_for_shown_pairs_alone(fitted, monkeypatch):
    """They cost hundreds of times what scores do."""
    model, test = fitted
    asked = []
    whole = type(model.ranker_).contributions

    def watched(self, table):
        asked.append(table.candidates.n_pairs)
        return whole(self, table)

    monkeypatch.setattr(type(model.ranker_), "contributions", watched)
    model.explain(test.take([0]), 0)
    assert asked == [1]
    ranking = model.rank(test, k=2)
    importance(model, test, ranking)
    assert asked[1] == int((ranking.labels >= 0).sum())


@pytest.mark.parametrize(
    ("column", "title", "text"),
    [
        ("z(spelling_share)", "spelling of label names", "words spelled like those of its name"),
        ("spelling_share", "spelling of label names", "50 % of the words spelled like its name's"),
        (
            "clicks: vote10",
            "votes of similar rows (clicks)",
            "5 of the 10 most similar rows carry it",
        ),
        ("pfastrexml", "label trees", "way through the label trees"),
    ],
)
def test_every_source_has_words(column, title, text):
    assert block_of(column).title == title
    explanation = Explanation(0, "tea", 1, 9, 2.0, 0.9, [], [(column, 0.5, 1.0)])
    assert reasons(explanation)[0].text.startswith(text)


# --- drawing ---


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.03), (-2, 7), (3, 3000), (0, 1e-9), (5, 5)])
def test_ticks_are_round_and_inside(low, high):
    values = svg.ticks(low, high)
    assert 1 <= len(values) <= 12
    assert all(low - 1e-9 <= v <= high + 1e-9 for v in values)
    assert values == sorted(values)


def test_charts_skip_nan():
    nan = float("nan")
    chart = svg.line_chart("t", "k", "y", [1, 2, 3], {"a": [0.5, nan, 0.2]}) + svg.grouped_bars(
        "t", "x", "y", ["g"], {"a": [nan]}
    )
    assert "nan" not in chart
    parsed(chart)

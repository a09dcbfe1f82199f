"""The report: balanced HTML that holds the numbers, escapes what users wrote, and copes with little data."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, Ranking, data, metrics
from metarank.apps.report import Report, charts, dated, measure_report, to_html, write_report
from metarank.apps.report.content import Reliability
from metarank.apps.report.evidence import importance
from metarank.apps.report.examples import Example, typical_rows
from metarank.metrics import Interval
from metarank.model.answering.answer import read_request
from metarank.model.answering.explain import Explanation
from metarank.types.feature_table import source_of

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


def test_a_report_holds_the_numbers(fitted, tmp_path):
    model, test = fitted
    report = measure_report(model, test)
    write_report(tmp_path / "r.html", report)
    text = parsed((tmp_path / "r.html").read_text())
    ranking = model.rank(test, k=5)
    expected = metrics.evaluate(test.Y, ranking, ["P@1", "nDCG@5"])
    for name, value in expected.items():
        assert report.metrics["metarank"][name].value == pytest.approx(value)
        assert f"{100 * value:.1f}" in text
    assert report.precision["metarank"][0] == pytest.approx(expected["P@1"])
    for part in ("most frequent", "Precision", "Calibration", "Sources of evidence", "Found", "test rows"):
        assert part in text
    assert "R@10" not in report.metrics["most frequent"]  # there are five labels
    assert to_html(report) == to_html(measure_report(model, test))


def test_report_shows_what_evaluate_says(fitted, tmp_path, capsys):
    """The same figures as `metarank evaluate --json`, slices among them, and what they were made of."""
    from metarank.apps.cli import main

    _, test = fitted
    names = [f"x{j}" for j in range(test.n_features)]
    labels = [" ".join(map(str, test.Y[i].indices)) for i in range(test.n_rows)]
    lines = [",".join([*map(str, row), label]) for row, label in zip(test.X.tolist(), labels)]
    sources = ["web", "news"] * (test.n_rows // 2)
    lines = [f"{line},{source},202{i % 3}-05-01" for i, (line, source) in enumerate(zip(lines, sources))]
    table = "\n".join([",".join([*names, "labels", "source", "date"]), *lines])
    (tmp_path / "test.csv").write_text(table)
    columns = {"number_columns": names, "label_separator": " "}
    train = data.load(tmp_path / "test.csv", **columns)
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1, random_state=3).fit(train)
    model.fitted_.propensity_weight = 0.5
    model.save(tmp_path / "table")
    arguments = [str(tmp_path / "table"), str(tmp_path / "test.csv"), "--slices", "source,date"]
    page = tmp_path / "page.html"
    assert main(["evaluate", *arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert main(["report", *arguments, "--out", str(page), "--quiet"]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    slices = {"source": sources, "date": [f"202{i % 3}-05-01" for i in range(test.n_rows)]}
    report = dated(measure_report(model, train, slices=slices), tmp_path / "table", tmp_path / "test.csv")
    figures = {name: value for name, value in said.items() if isinstance(value, float)}
    figures.pop("propensity_weight")
    assert {name: v.value for name, v in report.metrics["metarank"].items()} == pytest.approx(figures)
    assert list(report.slices) == ["label frequency", "source", "date"]
    assert list(said["slices"]) == ["source", "date"]
    for of, parts in said["slices"].items():
        shown = {part.name: part.size | part.values for part in report.slices[of]}
        assert shown == {name: pytest.approx(values) for name, values in parts.items()}
    assert sum(part.size["rows"] for part in report.slices["source"]) == test.n_rows
    text = parsed(page.read_text())
    for value in figures.values():
        assert f"{100 * value:.2f}" in text or f"{value:.3f}" in text
    for name in figures:
        assert metrics.Metric.parse(name).meaning in text
    digests = [json.loads((tmp_path / "table" / "manifest.json").read_text())["digest"]]
    digests.append(hashlib.sha256((tmp_path / "test.csv").read_bytes()).hexdigest())
    facts = dict(report.settings)
    assert facts["seed"] == "3"
    assert "effort='low'" in facts["settings"]
    assert [fact in text for fact in [*digests, facts["settings"]]] == [True] * 3
    assert f"{datetime.now(UTC):%Y-}" in facts["date"]
    # The rare-label boost is named at the lists, and where there is none.
    for remark in (
        "with propensity weight 0.5",
        "Lists with propensity weight 0.5.",
        "based on probabilities, without boost",
    ):
        assert remark in text
    bare = replace(report, propensity_weight=0.0)
    assert "Lists with" not in parsed(to_html(bare))
    assert "(propensity weight 0)" in parsed(to_html(bare))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--slices", "source"], "--slices must be among"),
        (["--slices", ","], "--slices must be comma-separated names"),
        (["--out", "page.pdf"], "--out must end in .html"),
        (["--out", "none/page.html"], "no such folder"),
    ],
)
def test_report_refuses_before_any_work(fitted, tmp_path, monkeypatch, capsys, arguments, said):
    from metarank.apps.cli import main

    model, _ = fitted
    monkeypatch.chdir(tmp_path)
    model.save("model")
    names = ",".join(f"x{j}" for j in range(8))
    Path("test.csv").write_text(f"{names},labels\n{'1,' * 8}0\n")
    argv = ["report", "model", "test.csv", "--number-columns", names, "--labels-column", "labels", *arguments]
    assert main(argv) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


def test_no_two_series_have_one_colour():
    """In the light and in the dark; the light ones are those of the plots."""
    css = files("metarank.apps.report").joinpath("style.css").read_text()
    for part in css.split("prefers-color-scheme:dark"):
        colours = dict(re.findall(r"--(s\d+|rest|card):(#\w{6})", part.split("@media print")[0]))
        assert len(set(colours.values())) == len(charts.COLOURS) + 2
        if part in css.split("prefers-color-scheme:dark")[0]:
            assert [colours[f"s{i}"] for i in range(len(charts.COLOURS))] == list(charts.COLOURS)


def test_baselines_of_the_user(fitted):
    model, test = fitted
    best = Ranking.from_scores(test.Y.toarray().astype(float), 5)
    report = measure_report(model, test, baselines={"oracle <b>": best}, n_examples=0)
    assert list(report.metrics) == ["metarank", "oracle <b>"]
    assert "oracle <b>" in parsed(to_html(report))
    assert "oracle <b>" not in to_html(report)


@pytest.mark.parametrize(
    ("n_labels", "removed", "recall"), [(5, 0, "R@3"), (8, 3, "R@3"), (11, 0, "R@10"), (11, 1, "R@5")]
)
def test_no_headline_speaks_of_lists_of_all_labels(n_labels, removed, recall):
    both = data.make_multilabel(120, n_features=8, n_labels=n_labels, seed=1)
    model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
    if removed:
        model.update_labels(remove=list(range(removed)))
    report = measure_report(model, both.take(slice(80, 120)))
    assert [name for name in report.metrics["metarank"] if name.startswith("R@")] == [recall]
    assert dict(report.facts)["labels"] == str(n_labels - removed)
    assert max(report.ks) == min(10, n_labels - removed - 1)
    assert f"of the relevant labels are among the first {max(report.ks)}<" in to_html(report)


def test_names_are_escaped():
    evil = "<script>alert(1)</script>"
    explanation = Explanation(0, evil, 1, 1, 2.0, 0.5, [], [(evil, 1.0, 0.5)])
    report = Report(
        title=evil,
        lead=evil,
        facts=[(evil, evil)],
        notes=[evil],
        metrics={evil: {"P@1": Interval(0.5, 0.4, 0.6)}},
        ks=[1, 2],
        precision={evil: [0.5, 0.4], evil + "2": [0.1, 0.2]},
        recall={evil: [0.1, 0.2]},
        examples=[Example(evil, evil, [(evil, explanation)], [(evil, 0)], [], evil)],
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


def test_what_does_not_fit_is_refused(fitted):
    model, test = fitted
    with pytest.raises(ValueError, match="at least one row"):
        measure_report(model, test.take([]))
    with pytest.raises(ValueError, match="the 5 labels of the model, got 1"):
        measure_report(model, data.Dataset(test.X, test.Y[:, :1]))


def test_excluded_labels_are_not_counted(fitted):
    model, test = fitted
    irrelevant = sp.csr_matrix(1 - test.Y.toarray())
    report = measure_report(model, test, exclude=irrelevant, n_examples=0)
    n_relevant = np.diff(test.Y.indptr)
    n_relevant = n_relevant[n_relevant > 0]
    expected = np.mean(np.minimum(n_relevant, report.ks[-1]) / n_relevant)
    assert report.recall["metarank"][-1] == pytest.approx(expected)
    assert report.reliability.counts.sum() == test.Y.nnz
    assert report.reliability.observed[report.reliability.counts > 0] == pytest.approx(1.0)


# --- the numbers ---


def test_reliability_by_hand():
    r = Reliability.of(np.array([0, 1, 1, 0]), np.array([0.05, 0.55, 0.56, 0.58]), 10)
    assert r.counts.tolist() == [1, 0, 0, 0, 0, 3, 0, 0, 0, 0]
    assert r.observed[5] == pytest.approx(2 / 3)
    assert r.error == pytest.approx(abs(2 / 3 - (0.55 + 0.56 + 0.58) / 3))
    assert Reliability.of(np.array([1]), np.array([1.0])).counts[-1] == 1


def test_importance_is_the_mean_absolute_contribution(fitted):
    model, test = fitted
    found = importance(model, test, model.rank(test, k=5), max_rows=1000)
    request = read_request(model.fitted_, test)
    table = model.answering().table_of(request, makers.candidates(model, test), {})
    contributions = model.ranker_.contributions(table)[:, :-1]
    expected: dict[str, np.ndarray] = {}
    for name, column in zip(table.names, contributions.T):
        expected[source_of(name)] = expected.get(source_of(name), 0) + column
    assert dict(found.sources) == pytest.approx({name: np.abs(v).mean() for name, v in expected.items()})
    assert found.n_pairs == len(table.values)
    assert [v for _, v in found.sources] == sorted((v for _, v in found.sources), reverse=True)


def test_typical_rows_are_neither_best_nor_worst():
    Y = sp.csr_matrix(np.eye(4, dtype=np.float32))
    scores = np.array([[4.0, 3, 2, 1]] * 4)  # row i finds its label at place i + 1
    ranking = Ranking.from_scores(scores, 4)
    assert typical_rows(Y, ranking, 1).tolist() == [2]
    assert typical_rows(Y, ranking, 4).tolist() == [0, 1, 2, 3]
    assert typical_rows(sp.csr_matrix((4, 4)), ranking, 2).tolist() == []


def test_reasons_add_up(fitted):
    model, test = fitted
    explanation = model.explain(test.take([0]), 0)
    told = explanation.reasons(100)
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


# --- drawing ---


@pytest.mark.parametrize("top", [1, 0.03, 7, 3000, 1e-9])
def test_ticks_are_round_and_inside(top):
    values = charts.ticks(top)
    assert 2 <= len(values) <= 7
    assert values == sorted(values)
    assert values[0] == 0
    assert values[-1] <= top * (1 + 1e-9)


@pytest.mark.parametrize(
    ("column", "source", "text"),
    [
        ("label name: spelling share (relative)", "label name", "label name"),
        ("label name: spelling share", "label name", "50 % of the words spelled like its name's"),
        ("neighbors (clicks): vote of 10", "neighbors (clicks)", "5 of the 10 most similar rows carry it"),
        (
            "label name in training: log-odds of words",
            "label name in training",
            "what the words of its name say: log-odds 0.5",
        ),
        ("label name: share of words", "label name", "50 % of the words that describe it"),
        ("PfastreXML trees: log-relevance", "PfastreXML trees", "PfastreXML trees"),
        ("label name: cosine, best name", "label name", "label name"),
        ("label name: number of names found", "label name", "none of its names occur in the text"),
        ("label vector: cosine", "label vector", "similarity of the row and the label's vector: 0.50"),
        ("parent labels: label name, cosine (relative)", "parent labels", "parent labels"),
        ("clicks of mine", "clicks of mine", "clicks of mine = 0.5"),
    ],
)
def test_columns_in_plain_words(column, source, text):
    assert source_of(column) == source
    explanation = Explanation(0, "tea", 1, 9, 2.0, 0.9, [], [(column, 0.5, 1.0)])
    assert explanation.reasons()[0].text.startswith(text)


def test_a_source_is_told_by_the_column_that_moved_the_score_most():
    columns = [("label name: spelling share", 0.5, 0.1), ("label name: share of words", 0.2, -0.1)]
    columns += [("label name: share of words (relative)", 2.0, -0.4), ("neighbors: vote of 10", 0.0, 0.3)]
    (told, votes, *_) = Explanation(0, "tea", 1, 9, 2.0, 0.9, [], columns).reasons()
    assert told.text.startswith("20 % of the words that describe it")
    assert votes.text == "neighbors"  # "none of the 10" is no reason for a label


def test_charts_skip_nan():
    chart = charts.line_chart("k", "y", {1: "1", 3: "3"}, [1, 2, 3], {"a": [0.5, float("nan"), 0.2], "b": []})
    assert [[note for *_, note in marks] for marks in chart["lines"]] == [
        ["a, 1: 50.0 %", "a, 3: 20.0 %"],
        [],
    ]

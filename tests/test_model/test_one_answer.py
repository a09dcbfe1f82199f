"""One ranking score for a pair, in every place that shows one: the laws, over kinds of models."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import Any, NamedTuple

import clusters
import makers
import numpy as np
import pytest

from metarank import MetaRanker, load, metrics
from metarank.apps.cli import main
from metarank.apps.report.content import MODEL, measure_report
from metarank.data import to_parquet
from metarank.model.answering.answer import read_request
from metarank.model.answering.measure import Evaluation
from metarank.model.answering.reasons import BOOST, rounded_to_sum


class Case(NamedTuple):
    """A model that boosts rare labels, and rows it is asked about."""

    model: MetaRanker
    rows: Any


def _lean(model: MetaRanker) -> MetaRanker:
    model.fitted_.propensity_weight = 0.7
    return model


def _weighted(maker: str, **params: Any) -> MetaRanker:
    return MetaRanker(**(makers.QUICK | {"propensity_weight": 0.7} | params))


def _text() -> Case:
    train = makers.texts(80)
    return Case(_weighted("texts").fit(train), train.take(range(12)))


def _dense() -> Case:
    train = makers.dense(80)
    return Case(_weighted("dense", ranker="auto").fit(train), train.take(range(12)))


def _shortlisted() -> Case:
    train = makers.many_texts()
    return Case(_weighted("many texts", ranker="pointwise").fit(train), train.take(range(10)))


def _cascaded() -> Case:
    train = makers.many_texts(160)
    model = _weighted("many texts", ranker="pointwise", shortlister=["neighbors", "names"]).fit(train)
    assert model.fitted_.cascade is not None
    return Case(model, train.take(range(10)))


def _several_objectives() -> Case:
    train = makers.dense(80)
    second = (train.X[:, [0]] + np.arange(train.n_labels) > 1).astype(np.float32)
    targets = {"relevance": train.Y, "clicks": second}
    model = _weighted("dense", ranker="auto").fit(train.X, targets, objectives="plug-in-label")
    return Case(model, train.take(range(12)))


def _updated() -> Case:
    train = makers.texts(80)
    model = _weighted("texts", features=["votes", "names"]).fit(train)
    model.update_labels(add=["salt"], merge={"code": "bread"}).partial_fit(["salt sea"], [["the sea"]])
    rows = train.take(range(12))
    lists = [[name for name in ("the sea", "bread") if name in own] for own in _names(rows)]
    return Case(model, type(rows)(texts=rows.texts, Y=lists, label_names=[*model.label_names_]))


def _names(rows: Any) -> list[list[str]]:
    return [[rows.label_names[j] for j in rows.Y[i].indices] for i in range(rows.n_rows)]


def _excluding_own_scorer() -> Case:
    train = makers.sparse(80)
    model = _weighted("sparse", features=["votes", makers.MeanFeature()], ranker="lambdarank").fit(train)
    return Case(model, train.take(range(12)))


KINDS = {
    "text": _text,
    "dense": _dense,
    "shortlisted": _shortlisted,
    "cascaded": _cascaded,
    "several objectives": _several_objectives,
    "updated": _updated,
    "own scorer": _excluding_own_scorer,
}


@cache
def case(kind: str) -> Case:
    return KINDS[kind]()


@pytest.fixture(params=list(KINDS))
def kind(request) -> str:
    return request.param


WEIGHTS = [None, 0, 2.5]


@pytest.mark.check_beyond(8)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_an_explanation_has_the_place_and_the_score_of_rank(kind, weight):
    model, rows = case(kind)
    rows = rows.take(range(3))
    ranking = model.rank(rows, k=6, propensity_weight=weight)
    for i, listed in enumerate(ranking):
        for place, (label, score) in enumerate(listed[:2] + listed[-1:], 1):
            found = model.explain(rows.take([i]), label, propensity_weight=weight)
            assert found.score == score
            if place <= 2:
                assert found.rank == place
            assert found.is_candidate
            assert found.propensity_weight == (model.propensity_weight_ if weight is None else weight)


def test_contributions_add_up_to_the_score(kind):
    model, rows = case(kind)
    label = int(model.rank(rows, k=1).labels[0, 0])
    found = model.explain(rows.take([0]), label)
    total = math.fsum([found.base, *(effect for _, _, effect in found.contributions)])
    assert np.float32(total) == np.float32(found.score)
    expected = [effect for column, _, effect in found.contributions if column == BOOST]
    assert expected == [pytest.approx(model.fitted_.boost_of(np.array([label]), 0.7)[0])] * (
        len(expected) > 0
    )
    assert (len(expected) == 1) == (model.thresholds_.scores_per_logit > 0)
    # The base is what the ranker says where it starts, but for rounding: it hides nothing.
    request = read_request(model.fitted_, rows.take([0]))
    ((_, table, _),) = model.answering().describe(request)
    at = np.flatnonzero(table.labels == label)
    start = model.ranker_.contributions(table.pairs(at))[0, -1]
    assert found.base == pytest.approx(start, abs=1e-4 * max(1, abs(found.score)))


def test_what_is_printed_adds_up_to_the_last_digit(kind):
    model, rows = case(kind)
    for label in model.rank(rows, k=3).labels[1]:
        found = model.explain(rows.take([1]), int(label))
        page = str(found)
        lines = page[page.index("what makes up the score") :].splitlines()[1:]
        effects = [int(re.match(r" *([+-]\d+\.\d{3}) ", line)[1].replace(".", "")) for line in lines[:-1]]
        assert lines[-1].strip() == f"={found.score:.3f}"
        assert sum(effects) == round(1000 * found.score)
        if any(column == BOOST for column, _, _ in found.contributions):
            assert sum(BOOST in line for line in lines) == 1
        for n in (1, 3, 100):
            told = found.reasons(n)
            assert round(sum(1000 * r.contribution for r in told)) == round(1000 * round(found.score, 3))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_evaluation_measures_what_is_ranked_and_predicted(kind, weight):
    model, rows = case(kind)
    names = ["P@1", "P@3", "nDCG@3", "PSP@3", "MAP", "micro-F1"]
    found = Evaluation(model, rows, rows.Y, propensity_weight=weight).values(names)
    options = {"inv_propensity": model.inv_propensity_}
    ranking = model.rank(rows, k=model.n_labels_, propensity_weight=weight)
    of_lists = metrics.evaluate(rows.Y, ranking, names[:-1], **options)
    of_sets = metrics.evaluate(rows.Y, None, names[-1:], Y_pred=model.predict(rows, "micro-f1"))
    assert found == pytest.approx(of_lists | of_sets, abs=1e-12)
    dense = model.decision_function(rows, propensity_weight=weight)
    top = {name: found[name] for name in ("P@1", "P@3", "nDCG@3")}
    assert metrics.evaluate(rows.Y, dense, list(top)) == pytest.approx(top)
    assert model.score(rows, propensity_weight=weight) == pytest.approx(
        metrics.evaluate(rows.Y, dense, ["MAP"])["MAP"]
    )


def test_the_report_says_what_evaluation_says(kind, tmp_path):
    model, rows = case(kind)
    report = measure_report(model, rows, baselines={}, n_examples=2)
    values = report.metrics[MODEL]
    found = Evaluation(model, rows, rows.Y).values(list(values))
    assert {name: interval.value for name, interval in values.items()} == pytest.approx(found)
    ranking = model.rank(rows, k=10)
    titles = {e.title for e in report.examples}
    assert titles
    for example in report.examples:
        for _, suggestion in (*example.found, *example.proposed):
            assert f"{sum(r.contribution for r in suggestion.reasons()):.3f}" == f"{suggestion.score:.3f}"
            assert np.float32(suggestion.score) in ranking.scores[:, suggestion.rank - 1]
    sources = [title for title, _ in report.importance.sources]
    assert (BOOST in sources) == (model.thresholds_.scores_per_logit > 0)


def test_the_lean_changes_orders_here():
    """Else the laws above would hold of any score."""
    changed = 0
    for kind in KINDS:
        model, rows = case(kind)
        changed += np.any(model.rank(rows, 3).labels != model.rank(rows, 3, propensity_weight=0).labels)
    assert changed >= 3


def test_cuts_and_probabilities_stand_on_the_evidence_alone(kind):
    model, rows = case(kind)
    label = int(model.rank(rows, k=1).labels[0, 0])
    found = [model.explain(rows.take([0]), label, propensity_weight=w).probability for w in (0, 3)]
    assert found[0] == found[1]
    probability = model.predict_proba(rows)
    assert found[0] == pytest.approx(float(probability[0, label]), abs=1e-7)


@pytest.mark.parametrize("kind", ["text", "shortlisted"])
def test_rows_without_evidence_have_one_answer_too(kind):
    model = case(kind).model
    unknown = ["qqqq zzzz"]
    ranking = model.rank(unknown, k=5)
    assert ranking.without_evidence.tolist() == [True]
    for place, (label, score) in enumerate(next(iter(ranking)), 1):
        found = model.explain(unknown, label)
        assert (found.rank, found.score, found.without_evidence) == (place, score, True)
        total = math.fsum([found.base, *(effect for _, _, effect in found.contributions)])
        assert np.float32(total) == np.float32(score)
    assert model.predict(unknown).nnz == 0


def test_a_label_that_is_no_candidate_is_explained_as_if_it_were_proposed():
    model, rows = case("shortlisted")
    row = rows.take([0])
    listed = set(model.rank(row, k=model.n_labels_).labels[0].tolist())
    label = next(v for v in range(model.n_labels_) if v not in listed)
    found = model.explain(row, label)
    assert not found.is_candidate
    assert "not a candidate of this row" in str(found)
    assert found.n_candidates == len(listed - {-1}) + 1


def test_explanations_keep_to_what_is_allowed_and_excluded():
    model, rows = case("shortlisted")
    row = rows.take([0])
    first, second, *_ = (int(v) for v in model.rank(row, k=4).labels[0])
    limits = {"exclude": [[first]]}
    ranking = model.rank(row, k=30, **limits)
    found = model.explain(row, second, **limits)
    place = ranking.labels[0].tolist().index(second)
    assert (found.rank, found.score) == (place + 1, float(ranking.scores[0, place]))
    for ruled_out in (limits, {"allowed": [second]}):
        with pytest.raises(ValueError, match="ruled out by exclude or allowed"):
            model.explain(row, first, **ruled_out)


def test_other_weights_of_objectives_are_explained():
    model, rows = case("several objectives")
    ranking = model.rank(rows, k=1, objective_weights=[3, 1])
    found = model.explain(rows.take([0]), int(ranking.labels[0, 0]), objective_weights=[3, 1])
    assert (found.rank, found.score) == (1, float(ranking.scores[0, 0]))


@pytest.mark.parametrize("value", [-0.1, 11, float("nan"), float("inf"), "much", True])
def test_a_weight_out_of_range_is_refused_by_every_door(value):
    model, rows = case("text")
    for ask in (
        lambda: model.rank(rows, propensity_weight=value),
        lambda: model.decision_function(rows, propensity_weight=value),
        lambda: model.score(rows, propensity_weight=value),
        lambda: model.explain(rows.take([0]), 0, propensity_weight=value),
        lambda: Evaluation(model, rows, rows.Y, propensity_weight=value).values(["P@1"]),
    ):
        with pytest.raises((ValueError, TypeError), match="propensity_weight must be a number in"):
            ask()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model and rows as files, for the command line."""
    folder = tmp_path_factory.mktemp("one-answer")
    model, rows = case("shortlisted")
    model.save(folder / "model")
    to_parquet(rows, folder / "rows.parquet")
    return folder


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_command_line_gives_the_same_answers(files, weight, capsys):
    model, rows = case("shortlisted")
    boost = [] if weight is None else ["--propensity-weight", str(weight)]
    used = model.propensity_weight_ if weight is None else weight
    there = [str(files / "model"), str(files / "rows.parquet")]
    ranking = model.rank(rows, k=3, propensity_weight=weight)
    assert main(["predict", *there, "--top", "3", "--format", "jsonl", *boost]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[entry["label"] for entry in r["labels"]] for r in records] == ranking.labels.tolist()
    scores = [[entry["score"] for entry in r["labels"]] for r in records]
    np.testing.assert_array_equal(np.float32(scores), ranking.scores)

    assert main(["explain", *there, "--row", "2", "--top", "2", "--json", *boost]) == 0
    explanations = json.loads(capsys.readouterr().out)
    assert [e["label"] for e in explanations] == ranking.labels[2, :2].tolist()
    assert [e["rank"] for e in explanations] == [1, 2]
    assert [e["score"] for e in explanations] == ranking.scores[2, :2].tolist()
    for e in explanations:
        total = math.fsum([e["base"], *(effect for _, _, effect in e["contributions"])])
        assert np.float32(total) == np.float32(e["score"])
        assert [column for column, _, _ in e["contributions"]].count(BOOST) == (used > 0)

    report = files / f"report-{weight}.html"
    names = ["P@1", "P@3", "nDCG@5", "PSP@5", "micro-F1"]
    arguments = ["evaluate", *there, "--metrics", ",".join(names), *boost]
    assert main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["propensity_weight"] == used
    expected = Evaluation(model, rows, rows.Y, propensity_weight=weight).values(names)
    assert {name: said[name] for name in names} == pytest.approx(expected)
    assert main(arguments) == 0
    table = capsys.readouterr().out
    assert main(["report", *there, *boost, "--out", str(report)]) == 0
    assert (f"propensity weight {used:g}" in table) == (used > 0)
    page = report.read_text()
    for name in names:
        value = metrics.Metric.parse(name).shown(expected[name])
        assert re.search(rf"{re.escape(name)} +{re.escape(value)}", table)
        row = page[page.index(f'<th scope="row">{name}</th>') :].partition("</tr>")[0]
        assert value in re.findall(r"\d+\.\d+", row.partition("</td>")[0])


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "serve"])
def test_a_weight_on_the_command_line_is_checked_first(command, capsys):
    places = ["no-model"] if command == "serve" else ["no-model", "no-file"]
    with pytest.raises(SystemExit) as ended:
        main([command, *places, "--propensity-weight", "11"])
    assert ended.value.code == 2
    assert "--propensity-weight: must be a number in [0, 10], got '11'" in capsys.readouterr().err


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_service_gives_the_same_answers(weight):
    pytest.importorskip("fastapi")
    from metarank.apps.serve.answers import Answerer

    model, rows = case("shortlisted")
    answerer = Answerer(model)
    text = rows.texts[1]
    ranking = model.rank([text], k=4, propensity_weight=weight)
    asked: dict[str, Any] = {"instance": text, "k": 4}
    asked |= {} if weight is None else {"propensity_weight": weight}

    body = json.dumps(asked).encode()
    entries = answerer.rank(body)["rankings"][0]
    assert [entry["label"] for entry in entries] == ranking.labels[0].tolist()
    assert [entry["score"] for entry in entries] == ranking.scores[0].tolist()
    for place, found in enumerate(answerer.explain(body)["explanations"], 1):
        assert (found["label"], found["rank"]) == (entries[place - 1]["label"], place)
        assert found["score"] == entries[place - 1]["score"]
        assert f"{sum(r['contribution'] for r in found['reasons']):.3f}" == f"{found['score']:.3f}"


def test_a_service_takes_its_weight_from_the_command_line(files, monkeypatch):
    pytest.importorskip("fastapi")
    from metarank.apps.serve.reload import ModelHolder

    holders = []
    monkeypatch.setattr(
        "metarank.apps.serve.run.create_app",
        lambda model, propensity_weight, **_: holders.append(ModelHolder(model, propensity_weight)),
    )
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    assert main(["serve", str(files / "model"), "--propensity-weight", "0"]) == 0
    assert holders[0].current.answerer.model.propensity_weight_ == 0


@pytest.mark.parametrize("name", ["text", "shortlisted"])
def test_a_loaded_model_and_a_cluster_give_the_same_answers(name, tmp_path):
    pytest.importorskip("distributed")
    from metarank.distributed import DaskMetaRanker

    model, rows = case(name)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    expected = model.rank(rows, k=3)
    x, label = rows.take([0]), int(expected.labels[0, 0])
    assert again.explain(x, label) == model.explain(x, label)
    with clusters.cluster(2) as client:
        distributed = DaskMetaRanker(client, **model.get_params(deep=False))
        distributed.fitted_ = model.fitted_
        for found in (again.rank(rows, k=3), distributed.rank(rows, 3)):
            np.testing.assert_array_equal(found.labels, expected.labels)
            np.testing.assert_array_equal(found.scores, expected.scores)


def test_scores_that_look_equal_are_ordered_by_label():
    model = case("dense").model
    scored = model.fitted_.with_scores(makers.pairs_of(1, 4), np.array([1.0, 1.0 + 1e-9, 1.0, 0.5]), 0)
    assert scored.scores.dtype == np.float32
    assert scored.scores[0] == scored.scores[1]


@pytest.mark.parametrize(
    ("parts", "total"), [([0.1234, -5.5555, 2.0001], -3.432), ([1 / 3] * 3, 1.0), ([0.0], -0.0004), ([], 0.0)]
)
def test_rounded_parts_add_up(parts, total):
    found = rounded_to_sum(parts, total)
    assert round(sum(found), 6) == round(total, 3)
    assert all(abs(a - b) <= 1.0001e-3 for a, b in zip(found, parts))


def test_without_a_label_the_first_three_are_explained():
    model, text = makers.fitted("texts"), makers.texts().texts[0]
    first = model.rank([text], 3).labels[0]
    assert [str(page) for page in model.explain(text)] == [str(model.explain(text, int(j))) for j in first]

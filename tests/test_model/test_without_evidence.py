"""Rows of which a model knows nothing: none kept, probabilities are shares, and it is said everywhere."""

from __future__ import annotations

import csv
import json
import pickle
import warnings

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, Ranking, load
from metarank.apps.cli import main
from metarank.metrics import evaluate
from metarank.model.answering.measure import Evaluation
from metarank.scorers.neighbors.prior import PRIOR
from metarank.thresholds.set_metrics import METRICS
from metarank.types.label_descriptions import LabelDescriptions

KINDS = ["texts", "many texts", "sparse", "many labels"]
FLAGS = [True, False, True, False]


def rows(kind: str):
    """Four rows, the first and the third blank."""
    ds = makers.MAKERS[kind]()
    if ds.texts is not None:
        return ["zzyzx qwrt", ds.texts[0], "", f"zzyzx {ds.texts[1]}"]
    X = sp.lil_matrix((4, ds.n_features), dtype=np.float32)
    X[1], X[3] = ds.X[0], ds.X[1]
    return X.tocsr()


def shares(kind: str) -> np.ndarray:
    Y = makers.MAKERS[kind]().Y
    return (np.asarray((Y > 0).sum(axis=0)).ravel() + 0.5) / (Y.shape[0] + 1)


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_and_probabilities_are_shares_of_the_rows(kind):
    model, X = makers.fitted(kind), rows(kind)
    for metric in METRICS:
        assert model.predict(X, metric)[[0, 2]].nnz == 0
    found, prior = dense(model.predict_proba(X)), shares(kind)
    for i in (0, 2):
        listed = found[i] > 0
        assert listed.sum() == min(model.n_labels_, model.shortlist_size)
        np.testing.assert_allclose(found[i][listed], prior[listed], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_is_that_of_frequency_and_flagged(kind):
    model, X = makers.fitted(kind), rows(kind)
    k = min(model.n_labels_, 60)
    ranking = model.rank(X, k)
    assert ranking.without_evidence.tolist() == FLAGS
    count = shares(kind)[ranking.labels[0, : min(k, model.shortlist_size)]]
    assert (np.diff(count) <= 0).all()
    assert count[0] == shares(kind).max()
    assert ranking.labels[0].tobytes() == ranking.labels[2].tobytes()
    for part, flags in (
        (ranking.top(2), FLAGS),
        (ranking.rows(np.array([2, 1])), [True, False]),
        (ranking.rows(slice(1, 2)), [False]),
        (Ranking.concatenate([ranking, ranking.rows(slice(0, 1))]), [*FLAGS, True]),
        (pickle.loads(pickle.dumps(ranking)), FLAGS),
    ):
        assert part.without_evidence.tolist() == flags


@pytest.mark.parametrize("kind", KINDS)
def test_other_rows_do_not_notice(kind):
    """Bytes of a row with evidence are those it has alone, whatever stands beside it."""
    model, X = makers.fitted(kind), rows(kind)
    ranking = model.rank(X, 3)
    for i in (1, 3):
        own = model.rank(X[i : i + 1], 3)
        assert own.labels.tobytes() == ranking.rows(slice(i, i + 1)).labels.tobytes()
        assert own.scores.tobytes() == ranking.rows(slice(i, i + 1)).scores.tobytes()
        np.testing.assert_array_equal(
            dense(model.predict_proba(X[i : i + 1])), dense(model.predict_proba(X))[[i]]
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [0, 1.5])
def test_one_answer(kind, weight):
    """Ranking, decision function, explanation and evaluation agree on blank rows too."""
    model, X = makers.fitted(kind), rows(kind)
    ranking = model.rank(X, 3, propensity_weight=weight)
    scores = model.decision_function(X, propensity_weight=weight)
    found = dense(model.predict_proba(X))
    for place, label in enumerate(ranking.labels[0]):
        assert scores[0, label] == ranking.scores[0, place]
        told = model.explain(X[:1], int(label), propensity_weight=weight)
        assert (told.rank, told.score) == (place + 1, float(ranking.scores[0, place]))
        assert told.probability == found[0, label]
        assert told.score == pytest.approx(told.base + sum(c for *_, c in told.contributions), abs=1e-9)
        assert (told.without_evidence, told.neighbors) == (True, [])
        assert {name for name, *_ in told.contributions} <= {PRIOR, "rare-label boost"}
        assert "the model knows nothing about this row" in str(told)
    told = model.explain(X[1:2], int(ranking.labels[1, 0]))
    assert not told.without_evidence
    assert "knows nothing about this row" not in str(told)


@pytest.mark.parametrize("kind", ["many texts", "many labels"])
def test_limits_hold(kind):
    model, X = makers.fitted(kind), rows(kind)
    frequent = model.rank(X, 5).labels[0].tolist()
    assert not set(model.rank(X, 5, exclude=[frequent[:2]] * 4).labels[0]) & set(frequent[:2])
    assert set(model.rank(X, 5, allowed=[7, 9, 11]).labels[0]) == {7, 9, 11, -1}
    assert set(model.rank(X, 5, allowed=[[7], [8], [9, 11], [1]]).labels[2]) == {9, 11, -1}
    own = model.rank(X, 5, candidates=[[7, 9]] * 4)
    assert set(own.labels[0]) == {7, 9, -1}
    assert own.without_evidence.tolist() == FLAGS


def test_a_dense_row_of_zeros_is_a_measurement():
    model = makers.fitted("dense")
    assert not model.rank(np.zeros((2, model.n_features_in_)), 2).without_evidence.any()


def test_saved_and_updated_models_know_the_frequencies(tmp_path):
    model, X = makers.fitted("texts"), rows("texts")
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    again.partial_fit(["salt flour"] * 40, [["code"]] * 40)
    assert again.rank(X, 1).label_names[again.rank(X, 1).labels[0, 0]] == "code"
    with pytest.warns(UserWarning, match="no word of 'new'"):
        again.update_labels(add=["new"])
    assert again.predict_proba(X)[0, 3] == pytest.approx(0.5 / 101)


def test_evaluation_counts_them_as_they_are_answered():
    model, X = makers.fitted("texts"), rows("texts")
    Y = sp.csr_matrix(np.eye(4, 3, dtype=np.float32) + np.eye(4, 3, -1, dtype=np.float32))
    found = Evaluation(model, X, Y).values(["MAP", "micro-F1"])
    assert found["MAP"] == evaluate(Y, model.decision_function(X), ["MAP"])["MAP"]
    kept = model.predict(X, "micro-f1")
    assert found["micro-F1"] == evaluate(Y, None, ["micro-F1"], Y_pred=kept)["micro-F1"]


def test_the_command_line_says_so(tmp_path, capsys):
    makers.fitted("texts").save(tmp_path / "m")
    command = ["predict", str(tmp_path / "m"), "--text", "zzyzx", "--text", "salt flour", "--jobs", "1"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.err.startswith("metarank: the model knows nothing about 1 of 2 rows")
    assert said.out.splitlines()[1] == (
        "# the model knows nothing about this row: its labels are in order of frequency"
    )
    assert said.out.count("# the model knows nothing") == 1
    assert main([*command, "--format", "jsonl", "--optimize", "hamming"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["without_evidence"] for r in records] == [True, False]
    assert records[0]["labels"] == []
    assert main([*command, "--format", "csv"]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {line["without_evidence"] for line in lines if line["row"] == "0"} == {"1"}
    assert {line["without_evidence"] for line in lines if line["row"] == "1"} == {"0"}
    assert main(["explain", str(tmp_path / "m"), "--text", "zzyzx", "--json"]) == 0
    assert all(page["without_evidence"] for page in json.loads(capsys.readouterr().out))


def test_the_service_says_so():
    pytest.importorskip("fastapi")
    from metarank.apps.serve.answers import Answerer

    answerer = Answerer(makers.fitted("texts"))
    reply = answerer.rank(json.dumps({"instances": rows("texts"), "optimize": "micro-f1"}).encode())
    assert reply["without_evidence"] == FLAGS
    assert not any(entry["kept"] for i in (0, 2) for entry in reply["rankings"][i])
    reply = answerer.explain(json.dumps({"instance": "zzyzx"}).encode())
    assert [page["without_evidence"] for page in reply["explanations"]] == [True] * 3


def test_the_report_says_so():
    from metarank import Dataset
    from metarank.apps.report import to_html
    from metarank.apps.report.content import measure_report

    model, X = makers.fitted("texts"), rows("texts")
    test = Dataset(texts=X, Y=[["bread"]] * 4, label_names=model.label_names_)
    page = to_html(measure_report(model, test.take([0, 1]), n_examples=2))
    assert page.count("the model knows nothing about this row") == 1


@pytest.mark.parametrize("kind", ["texts", "many labels"])
def test_a_cluster_says_so(kind, tmp_path):
    pytest.importorskip("distributed")
    from clusters import cluster

    from metarank.distributed import DaskMetaRanker

    model, X = makers.fitted(kind), rows(kind)
    local = model.rank(X, 60)
    with cluster(2) as client:
        distributed = DaskMetaRanker(client, **makers.QUICK)
        distributed.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
        found = distributed.rank(X, 60)
        assert found.without_evidence.tolist() == FLAGS
        assert found.labels.tobytes() == local.labels.tobytes()
        assert found.scores.tobytes() == local.scores.tobytes()
        assert distributed.predict(X)[[0, 2]].nnz == 0
        np.testing.assert_array_equal(dense(distributed.predict_proba(X)), dense(model.predict_proba(X)))


# --- labels of which nothing is known ------------------------------------------------

UNHEARD = ["zork", "quagga", "blip"]
DOORS = {
    "a table in fit": lambda X, Y, names: MetaRanker(**makers.QUICK).fit(
        X, Y, labels=LabelDescriptions(ids=[*names, *UNHEARD], names=[*names, *[""] * 3])
    ),
    "update_labels": lambda X, Y, names: (
        MetaRanker(**makers.QUICK)
        .fit(X, Y, labels=[{"name": name} for name in names])
        .update_labels(add=UNHEARD)
    ),
}


@pytest.mark.filterwarnings("ignore:no word of")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["dense", "texts"])
def test_labels_of_which_nothing_is_known_have_their_share_and_change_no_other(kind, door, tmp_path):
    data = getattr(makers, kind)()
    X = data.texts if kind == "texts" else data.X
    names = data.label_names or [f"label {j}" for j in range(data.Y.shape[1])]
    L = len(names)
    Y = [[names[j] for j in row.indices] for row in data.Y]
    plain = MetaRanker(**makers.QUICK).fit(X, Y, labels=[{"name": name} for name in names])
    model = DOORS[door](X, Y, names)
    model.save(tmp_path / "model")
    for of in (model, load(tmp_path / "model")):
        wide, narrow = of.decision_function(X), plain.decision_function(X)
        assert np.ascontiguousarray(wide[:, :L]).tobytes() == narrow.tobytes()
        probability = dense(of.predict_proba(X))
        # Less by a little where less probable labels stand above them: see `in_order` of `LearnedThresholds`.
        np.testing.assert_allclose(probability[:, L:], 0.5 / (len(Y) + 1), rtol=0.1)
        np.testing.assert_allclose(np.median(probability[:, L:]), 0.5 / (len(Y) + 1), rtol=1e-5)
        assert of.predict(X)[:, L:].nnz == 0
        # The others divide by labels, or are of cuts, which look at lists of all labels in another way.
        for metric in ("P@1", "nDCG@5", "MAP"):
            assert of.held_out_quality_[metric] == plain.held_out_quality_[metric]
    told = model.explain(X[:1], L + 1)
    assert [name for name, _, _ in told.contributions] == [PRIOR]
    assert told.base + sum(effect for _, _, effect in told.contributions) == pytest.approx(told.score)


@pytest.mark.parametrize("known", [True, False])
def test_score_tells_of_rows_of_which_nothing_is_known(known):
    model, X = makers.fitted("texts"), rows("texts")
    X = X[1::2] if known else X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.score(X, [["bread"]] * len(X))
        Evaluation(model, X, [["bread"]] * len(X)).values(["P@1"])
    said = [str(w.message) for w in caught]
    assert [s.startswith("the model knows nothing about 2 of 4 rows") for s in said] == [True, True] * (
        not known
    )

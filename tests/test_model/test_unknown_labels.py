"""Labels that are not in the training data count as missed, in every interface, with a message."""

from __future__ import annotations

import json
import warnings

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

from metarank import Dataset, MetaRanker, load, metrics
from metarank.apps.cli import main
from metarank.apps.report import measure_report
from metarank.metrics.propensity import inv_propensity
from metarank.metrics.relevance import Relevance
from metarank.model.answering.measure import Evaluation, aligned_relevance

METRICS = ["MAP", "P@1", "nDCG@3", "R@2", "PSP@2", "RankLoss", "Coverage", "micro-F1", "macro-F1"]
METRICS += ["example-F1", "Hamming", "subset-accuracy", "XMAD@2", "C@2"]


def rows_of(name: str) -> Dataset:
    return makers.MAKERS[name]().take(slice(0, 15))


def with_new_labels(names: list[str], Y: sp.csr_matrix) -> list[list[str]]:
    """Lists of names, with two that no model met: "moon" in every third row, "star" in the first."""
    lists = [[names[label] for label in row.indices] for row in Y]
    for i in range(0, len(lists), 3):
        lists[i].append("moon")
    lists[0].append("star")
    return lists


def by_hand(model: MetaRanker, rows: Dataset, lists: list[list[str]], unseen: float) -> dict[str, float]:
    """The metrics of full matrices in which new labels have a column each."""
    names = [*model.label_names_, "moon", "star"]
    place = {name: i for i, name in reversed(list(enumerate(names)))}
    n, L = len(lists), model.n_labels_
    Y, sets = np.zeros((n, L + 2)), np.zeros((n, L + 2))
    for i, row in enumerate(lists):
        Y[i, [place[name] for name in row]] = 1
    scores = np.full((n, L + 2), -np.inf)
    for i, row in enumerate(model.rank(rows, k=L)):
        for label, score in row:
            scores[i, label] = score
    out: dict[str, float] = {}
    proba = np.zeros((n, L + 2))
    proba[:, :L] = sp.csr_matrix(model.predict_proba(rows)).toarray()
    weights = np.append(model.inv_propensity_, [unseen, unseen])
    for name in METRICS:
        metric = metrics.Metric.parse(name)
        if metric.needs == "sets":
            cut = metric.name
            sets[:, :L] = model.predict(rows, cut).toarray()
            out |= metrics.evaluate(Y, None, [name], Y_pred=sets)
        else:
            found = proba if metric.needs == "relevance" else scores
            out |= metrics.evaluate(Y, found, [name], inv_propensity=weights)
    return out


@pytest.mark.parametrize("name", ["texts", "many texts"])
def test_missed_in_every_metric(name):
    model, rows = makers.fitted(name), rows_of(name)
    lists = with_new_labels(model.label_names_, rows.Y)
    train = makers.MAKERS[name]()
    unseen = inv_propensity(sp.csr_matrix((train.n_rows, 1)))[0]
    expected = by_hand(model, rows, lists, unseen)
    with pytest.warns(UserWarning, match=r"does not know: 2 \('moon', 'star'\), in 6 of .* count as missed"):
        found = Evaluation(model, rows, lists).values(METRICS)
    assert found == pytest.approx(expected, rel=1e-6)
    known = Evaluation(model, rows, rows.Y).values(METRICS)
    assert found["R@2"] < known["R@2"]
    assert found["macro-F1"] == pytest.approx(known["macro-F1"] * model.n_labels_ / (model.n_labels_ + 2))
    with pytest.warns(UserWarning, match="that the model does not know: 2"):
        assert model.score(rows.texts if rows.X is None else rows.X, lists) == pytest.approx(expected["MAP"])


def test_the_same_by_every_container():
    model, rows = makers.fitted("texts"), rows_of("texts")
    lists = with_new_labels(model.label_names_, rows.Y)
    names = ["moon", *reversed(model.label_names_), "star", "never used"]
    Y = np.array([[float(name in row) for name in names] for row in lists])
    expected = aligned_relevance(model.fitted_, lists)
    assert (expected.unknown, expected.n_known, expected.n_unknown_pairs) == (["moon", "star"], 3, 6)
    series = pd.Series(lists, index=range(100, 115))
    for same in (series, Dataset(Y=Y, label_names=names), pd.DataFrame(Y, columns=names), Dataset(Y=lists)):
        found = aligned_relevance(model.fitted_, same, 15)
        assert found.unknown == expected.unknown
        assert (found.Y != expected.Y).nnz == 0
    dataset = Dataset(texts=rows.texts, Y=Y, label_names=names)
    with pytest.warns(UserWarning, match="that the model does not know: 2"):
        assert model.score(dataset) == model.score(rows.texts, series)


def test_known_labels_are_measured_as_ever_and_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("texts", "dense", "many texts"):
            model, rows = makers.fitted(name), rows_of(name)
            assert not aligned_relevance(model.fitted_, rows).unknown
            assert model.score(rows) == model.score(rows.texts if rows.X is None else rows.X, rows.Y)
            assert Evaluation(model, rows, rows).values(["P@1"]) == Evaluation(model, rows, rows.Y).values(
                ["P@1"]
            )
        frame = pd.DataFrame(makers.dense().Y.toarray())
        assert aligned_relevance(makers.fitted("dense").fitted_, frame).Y.shape == (60, 4)


def test_integers_are_names_where_they_were():
    X, lists = makers.dense(30).X, [[7 + i % 2, 100] for i in range(30)]
    model = MetaRanker(**makers.QUICK).fit(X, lists)
    with pytest.warns(UserWarning, match=r"that the model does not know: 1 \('9'\), in 1 of 60"):
        model.score(X, [*lists[:-1], [9, 7]])
    places = MetaRanker(**makers.QUICK).fit(X, [[i % 2] for i in range(30)], n_labels=2)
    with pytest.raises(ValueError, match=r"ids in \[0, 2\), got 2"):
        places.score(X, [[2]] * 30)


def test_cross_validation_of_a_long_tail():
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(12)]
    frame = pd.DataFrame({"text": [" ".join(rng.choice(words, 4)) for _ in range(36)]})
    frame["tags"] = [[text.split()[0], f"once {i}"] for i, text in enumerate(frame.text)]
    with pytest.warns(UserWarning, match="that the model does not know") as caught:
        values = cross_val_score(MetaRanker(**makers.QUICK), frame.text, frame.tags, cv=2)
    assert np.isfinite(values).all()
    assert len([w for w in caught if "that the model does not know" in str(w.message)]) == 2  # one per fold
    # A half of what is to be found is new in each fold.
    assert (values > 0).all()
    assert (values < 0.6).all()


@pytest.mark.check_beyond(1)
@pytest.mark.parametrize("format", ["names", "ids", "ids of a header"])
def test_command_line_and_report(format, tmp_path, capsys):
    """Lists of names, or ids of which the model knows the lower ones."""
    model = makers.fitted("texts" if format == "names" else "dense")
    rows = rows_of("texts" if format == "names" else "dense")
    model.save(tmp_path / "M")
    file = tmp_path / ("test.jsonl" if format == "names" else "test.txt")
    if format == "names":
        lists = with_new_labels(model.label_names_, rows.Y)
        lines = [json.dumps({"text": text, "labels": row}) for text, row in zip(rows.texts, lists)]
        test, named = Dataset(texts=rows.texts, Y=lists), "'moon', 'star'"
    else:
        Y = np.zeros((15, 7))
        Y[:, :4] = rows.Y.toarray()
        Y[::3, 6], Y[0, 4] = 1, 1
        X = rows.X.round(3)
        lines = [
            " ".join([",".join(map(str, np.flatnonzero(y))), *(f"{j}:{v:.3f}" for j, v in enumerate(x))])
            for x, y in zip(X, Y)
        ]
        lines = (["15 6 7"] if format == "ids of a header" else []) + lines
        test, named = Dataset(X, Y), "'label 4', 'label 6'"
    file.write_text("\n".join(lines) + "\n")
    names = ["MAP", "R@2", "PSP@2", "micro-F1"]
    evaluate = ["evaluate", str(tmp_path / "M"), str(file)]
    assert main([*evaluate, "--metrics", ",".join(names), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found.pop("unknown_labels"), found.pop("unknown_pairs")) == (2, 6)
    assert (found.pop("removed_labels"), found.pop("removed_pairs")) == (0, 0)
    assert said.err.count("that the model does not know") == 1
    assert f"2 ({named}), in 6 of" in said.err
    relevance = aligned_relevance(model.fitted_, test)
    assert found.pop("surest_rows")["100%"]["rows"] == 1
    assert found.pop("propensity_weight") == model.propensity_weight_
    assert found == pytest.approx(Evaluation(model, test, relevance).values(names))
    report = measure_report(model, test, baselines={}, n_examples=2)
    assert report.metrics["metarank"]["micro-F1"].value == pytest.approx(found["micro-F1"])
    assert any("that the model does not know: 2" in note for note in report.notes)
    assert main(["report", *evaluate[1:3], "--quiet", "--out", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().err.count("that the model does not know") == 1
    assert "that the model does not know: 2" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("kind", "Y", "said"),
    [
        ("texts", np.ones((15, 2)), "Y must have 3 labels, got 2"),
        ("texts", sp.csr_matrix((15, 4)), "Y must have 3 labels, got 4"),
        ("texts", Dataset(Y=np.ones((15, 2))), "Y must have the 3 labels of the model, got 2"),
        ("texts", [["bread"]], "15 rows"),
        ("dense", [["bread"]] * 15, "Y must be a matrix of 4 columns or lists of ids"),
    ],
)
def test_what_cannot_be_told_is_refused(kind, Y, said):
    model, rows = makers.fitted(kind), rows_of(kind)
    with pytest.raises(ValueError, match=said):
        model.score(rows.texts if rows.texts is not None else rows.X, Y)


def test_a_name_that_labels_share_is_refused():
    rows = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(
        Dataset(texts=rows.texts, Y=rows.Y, label_names=["tree", "bread", "tree"])
    )
    with pytest.raises(ValueError, match="got 'tree', the name of labels 0, 2"):
        model.score(rows.texts, [["tree"]] * rows.n_rows)
    assert model.score(rows.texts, Dataset(Y=rows.Y, label_names=["tree", "bread", "tree"])) > 0.5


def test_new_rows_still_need_known_labels():
    model = MetaRanker(**{**makers.QUICK, "shortlister": ("neighbors",)}).fit(makers.texts())
    with pytest.raises(ValueError, match="Y must have only labels of this model, got 'moon': add it first"):
        model.partial_fit(["moon"], [["moon"]])


def test_the_weight_of_a_label_never_met_is_saved(tmp_path):
    model = makers.fitted("texts")
    model.save(tmp_path / "M")
    lists = with_new_labels(model.label_names_, rows_of("texts").Y)
    relevance = aligned_relevance(model.fitted_, lists)
    assert isinstance(relevance, Relevance)
    weights, loaded = (
        Evaluation(m, rows_of("texts").texts, relevance).inv_propensity for m in (model, load(tmp_path / "M"))
    )
    np.testing.assert_array_equal(loaded, weights)
    assert weights[-1] == inv_propensity(np.zeros(1), n_points=60)[0] > weights[:3].max()


@pytest.fixture(scope="module")
def changed() -> MetaRanker:
    """Of the labels 0 .. 3, 0 was merged into 1, that into 2, and 3 removed."""
    model = MetaRanker(**makers.QUICK).fit(makers.dense(60, L=5))
    return model.update_labels(merge={0: 1}).update_labels(merge={1: 2}, remove=[3])


def test_merged_labels_are_those_they_became(changed, tmp_path):
    rows = makers.dense(60, L=5)
    Y = rows.Y.toarray()
    now = Y.copy()
    now[:, 2] = Y[:, :3].max(axis=1)
    now[:, [0, 1]] = 0
    changed.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for model in (changed, again):
        np.testing.assert_array_equal(model.fitted_.merged, [[0, 2], [1, 2]])
        for same in (Y, Dataset(X=rows.X, Y=rows.Y), [np.flatnonzero(row).tolist() for row in Y]):
            np.testing.assert_array_equal(aligned_relevance(model.fitted_, same).Y.toarray(), now)
    with pytest.warns(UserWarning, match=r"removed from the model: 1 \('3'\), in \d+ of .* count as missed"):
        found = changed.score(rows.X, Y)
    with pytest.warns(UserWarning, match="removed from the model: 1"):
        assert Evaluation(changed, rows.X, Y).values(["MAP"])["MAP"] == found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = np.where(np.arange(5) == 3, 0, Y)
        assert changed.score(rows.X, kept) > found
    # Rows that are added later name the labels of then, too.
    more = load(tmp_path / "model").partial_fit(rows.X[:2], [[0], [1]])
    assert more.n_rows_ == 62
    with pytest.raises(ValueError, match="removed"):
        more.partial_fit(rows.X[:1], [[3]])


def test_a_merge_ends_with_its_target_or_a_label_of_its_name():
    rows = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(rows)
    first, second, third = model.label_names_
    model.update_labels(merge={first: second}).update_labels(add=[first])
    assert model.fitted_.merged is None
    model.update_labels(merge={first: second}).update_labels(remove=[second])
    assert model.fitted_.merged is None
    assert sorted(aligned_relevance(model.fitted_, [[first, second, third]]).removed.values()) == sorted(
        [first, second]
    )

"""Labels by name: taken wherever ids are, the same by Python, command line and service."""

from __future__ import annotations

import copy
import csv
import json
import pickle

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from metarank import Dataset, MetaRanker, data, load
from metarank.apps.cli import main
from metarank.types.label_table import LabelTable

KINDS = ["texts", "dense", "many texts", "shared", "nameless ones", "removed", "digits"]


def model_of(kind: str) -> MetaRanker:
    """A model of one kind of label set, of texts but for "dense"."""
    if kind in makers.MAKERS:
        return makers.fitted(kind)
    names = {
        "shared": ["tree", "bread", "tree"],
        "nameless ones": ["", "bread", " "],
        "digits": ["2", "bread", "1"],
        "removed": makers.TOPICS,
    }[kind]
    model = MetaRanker(**makers.QUICK).fit(Dataset(texts=DATA.texts, Y=DATA.Y, label_names=names))
    return model.update_labels(remove=["code"]) if kind == "removed" else model


DATA = makers.texts()


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    model = model_of(request.param)
    data = makers.dense() if request.param == "dense" else DATA
    if request.param == "many texts":
        data = makers.many_texts()
    return model, data.take(slice(0, 6))


def spoken(model: MetaRanker, label: int) -> str | int:
    """The label by its name, where it has one of its own."""
    names = model.label_names_ or []
    own = bool(names) and names[label].strip() and names.count(names[label]) == 1
    return names[label] if own else label


def written(label: str | int) -> str:
    """As in a file: in quotes, where need be."""
    return f'"{label}"' if isinstance(label, str) else str(label)


def some(model: MetaRanker, n: int) -> list[int]:
    here = np.setdiff1d(np.arange(model.n_labels_), model.removed_)[:n]
    return here.tolist()


def same(a, b) -> None:
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.scores, b.scores)


@pytest.mark.check_beyond(5)
@pytest.mark.parametrize("parameter", ["allowed", "exclude", "candidates"])
def test_names_are_taken_as_ids_are(fitted, parameter):
    """One list for all rows in any container, or a list per row; mixed with ids."""
    model, data = fitted
    ids = some(model, 2)
    names = [spoken(model, label) for label in ids]
    expected = model.rank(data, k=4, **{parameter: [ids] * data.n_rows})
    mixed = [names[0], ids[1]], np.array(ids), [names] * data.n_rows
    for lists in (ids, names, tuple(names), set(names), *mixed):
        same(model.rank(data, k=4, **{parameter: lists}), expected)
    if all(isinstance(name, str) for name in names):
        same(model.rank(data, k=4, **{parameter: np.array(names)}), expected)
        same(model.rank(data, k=4, **{parameter: np.array(names, object)}), expected)
    rows = [ids[:1] if i % 2 else [] for i in range(data.n_rows)]
    by_name = [[spoken(model, label) for label in row] for row in rows]
    same(model.rank(data, k=4, **{parameter: by_name}), model.rank(data, k=4, **{parameter: rows}))


@pytest.mark.filterwarnings("ignore:labels removed from the model")
def test_names_in_every_method(fitted):
    model, data = fitted
    ids = some(model, 2)
    names = [spoken(model, label) for label in ids]
    for method in ("predict", "predict_proba", "decision_function"):
        ask = getattr(model, method)
        for parameter in ("allowed", "exclude"):
            by_id, by_name = (sp.csr_matrix(ask(data, **{parameter: lists})) for lists in (ids, names))
            np.testing.assert_array_equal(by_id.toarray(), by_name.toarray())
    rows = data.texts if data.X is None else data.X
    assert model.score(rows, data.Y, exclude=names[:1]) == model.score(
        rows, data.Y, exclude=[ids[:1]] * data.n_rows
    )
    with pytest.raises(ValueError, match="Y must be left out if X is a Dataset"):
        model.score(data, data.Y)
    one = data.take([0])
    assert str(model.explain(one, names[0])) == str(model.explain(one, ids[0]))


def test_a_list_for_all_rows_in_fit():
    params = dict(makers.QUICK)
    by_name = MetaRanker(**params).fit(DATA, exclude=["bread"])
    by_id = MetaRanker(**params).fit(DATA, exclude=[[makers.TOPICS.index("bread")]] * DATA.n_rows)
    same(by_name.rank(DATA), by_id.rank(DATA))
    with pytest.raises(ValueError, match="exclude must name known labels"):
        MetaRanker(**params).fit(DATA, exclude=["the moon"])


@pytest.mark.parametrize("saved", [False, True])
def test_service_and_command_line_know_the_same_labels(fitted, saved, tmp_path):
    pytest.importorskip("fastapi")
    from metarank.apps.serve.answers import Answerer

    model, data = fitted
    model.save(tmp_path / "M")
    if saved:
        model = load(tmp_path / "M")
    names = [spoken(model, label) for label in some(model, 2)]
    X = list(data.texts) if data.texts is not None else data.X
    for parameter in ("allowed", "exclude"):
        expected = model.rank(X, k=4, **{parameter: names})
        body = {"instances": X if isinstance(X, list) else X.tolist(), "k": 4, parameter: names}
        found = Answerer(model).rank(json.dumps(body).encode())["rankings"]
        assert [[(e["label"], e["score"]) for e in row] for row in found] == list(expected)
        if data.texts is None:
            continue
        (tmp_path / "lists.txt").write_text(", ".join(map(written, names)) + "\n")
        arguments = [a for text in X for a in ("--text", text)]
        out = tmp_path / "top.csv"
        options = [f"--{parameter}", str(tmp_path / "lists.txt"), "--top", "4", "--out", str(out)]
        assert main(["predict", str(tmp_path / "M"), *arguments, *options]) == 0
        with open(out, newline="") as f:
            records = [(int(r["row"]), int(r["label"])) for r in csv.DictReader(f)]
        assert records == [(i, label) for i, row in enumerate(expected) for label, _ in row]


# --- what is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "label", "error", "said"),
    [
        ("texts", "the moon", ValueError, r"by ids in \[0, 3\) or names, got 'the moon'"),
        ("texts", "beard", ValueError, "got 'beard'.*; near it: 'bread'"),
        ("texts", "Bread ", ValueError, "near it: 'bread'"),
        ("texts", "", ValueError, "got ''"),
        ("texts", "0", ValueError, "got '0'"),
        ("texts", 3, ValueError, r"ids in \[0, 3\) or names, got 3"),
        ("texts", -1, ValueError, "got -1"),
        ("texts", np.int64(3), ValueError, "got 3"),
        ("texts", 1.0, TypeError, "by ids or names, got 1.0"),
        ("texts", True, TypeError, "by ids or names, got True"),
        ("texts", None, TypeError, "by ids or names, got None"),
        ("dense", "bread", ValueError, r"by ids in \[0, 4\), got 'bread'.*, since its labels have no names"),
        ("shared", "tree", ValueError, "if several share the name, got 'tree'.*, the name of labels 0, 2$"),
        ("nameless ones", " ", ValueError, "got ' '"),
        ("removed", "code", ValueError, "not name a removed label, got 'code'"),
        ("removed", 2, ValueError, "not name a removed label, got 2"),
    ],
)
def test_unknown_shared_and_removed_labels_are_refused(kind, label, error, said):
    model = model_of(kind)
    x = makers.dense().take([0, 1]) if kind == "dense" else DATA.take([0, 1])
    for parameter in ("allowed", "exclude", "candidates"):
        # Beside known candidates names that no label has are left out: `test_given_candidates.py`.
        left_out = parameter == "candidates" and isinstance(label, str) and label not in model.label_table_
        for lists in ([label],) if left_out else ([label], [[0], [label]]):
            with pytest.raises(error, match=f"^{parameter} must .*{said}") as caught:
                model.rank(x, **{parameter: lists})
            assert ("at row 1" in str(caught.value)) == (lists != [label])
            assert "\n" not in str(caught.value)
    if label is not None:
        with pytest.raises(error, match=f"^label must .*{said}"):
            model.explain(x.take([0]), label)
        for change in ({"remove": [label]}, {"rename": {label: "x"}}, {"merge": {label: 1}}):
            with pytest.raises(error, match=f"^{next(iter(change))} must .*{said}"):
                copy.deepcopy(model).update_labels(**change)


@pytest.mark.parametrize("parameter", ["allowed", "exclude", "candidates"])
@pytest.mark.parametrize("value", ["bread", b"bread", {"bread": 1}, 1, [{"bread": 1}], [["bread"], "code"]])
def test_what_is_no_list_of_labels_is_refused(parameter, value):
    with pytest.raises((TypeError, ValueError), match=f"^{parameter} must"):
        model_of("texts").rank(DATA.take([0, 1]), **{parameter: value})


def test_digits_are_names_first(tmp_path):
    """In files; in Python a text is a name, and a number an id."""
    model = model_of("digits")
    assert [model.label_table_.id_of_text(text, "--label") for text in ("2", "1", "0")] == [0, 2, 0]
    assert model.label_table_.id_of("2", "label") == 0
    assert model.label_table_.id_of(2, "label") == 2
    with pytest.raises(ValueError, match="got '0'"):
        model.label_table_.id_of("0", "label")


def test_the_index_follows_the_labels():
    """After a change of names, a copy, a pickle and another fit."""
    model = model_of("texts")
    model = copy.deepcopy(model)
    assert model.label_table_.id_of("bread", "label") == 1
    with pytest.warns(UserWarning, match="no word"):
        model.update_labels(rename={"bread": "quince"})
    for m in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert m.label_table_.id_of("quince", "label") == m.label_table_.id_of("bread", "label") == 1
    assert model.label_table_ is model.label_table_
    model.fit(Dataset(texts=DATA.texts, Y=DATA.Y, label_names=["a", "b", "c"]))
    assert model.label_table_.id_of("c", "label") == 2


def test_labels_as_they_are_shown():
    table = LabelTable(6, ["sea", "tree", "", "tree", " ", "tree"], [5])
    shown = ["sea", "tree (id 1)", "2", "tree (id 3)", "4", "tree (id 5)"]
    assert [table.shown(i) for i in range(6)] == shown
    assert [table.called(i) for i in (0, 1, 2)] == ["sea", "tree (id 1)", "label 2"]
    assert LabelTable(2).shown(1) == "1"
    assert LabelTable(2).called(1) == "label 1"
    many = LabelTable(20, ["tree"] * 20)
    with pytest.raises(ValueError, match=r"labels 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10 more$"):
        many.id_of("tree", "label")


@pytest.mark.parametrize(
    "metric", ["micro-F1", "Macro-F1", "example-F1", "Hamming", "subset-accuracy", "HAMMING"]
)
def test_cuts_take_the_spelling_of_metrics(metric):
    pytest.importorskip("fastapi")
    from metarank.apps.serve.answers import Answerer

    model = model_of("texts")
    texts = list(DATA.texts[:5])
    expected = model.predict(texts, metric.lower())
    assert (model.predict(texts, metric) != expected).nnz == 0
    body = json.dumps({"instances": texts, "optimize": metric}).encode()
    rows = Answerer(model).rank(body)["rankings"]
    for i, row in enumerate(rows):
        assert {e["label"] for e in row if e["kept"]} == set(expected[i].indices.tolist())
    with pytest.raises(ValueError, match="optimize must be"):
        model.predict(texts, f" {metric}")


# --- names given back --------------------------------------------------------------


def test_sets_by_name_are_those_of_the_matrix(fitted):
    model, data = fitted
    for metric in (None, "macro-F1"):
        kept, found = model.predict(data, metric), model.predict(data, metric, return_names=True)
        for i, (row, names) in enumerate(zip(model.rank(data, k=model.n_labels_), found)):
            own = set(kept[i].indices.tolist())
            assert names == [model.label_table_.shown(label) for label, _ in row if label in own]
    with pytest.raises(TypeError, match="return_names must be True or False, got 'yes'"):
        model.predict(data, return_names="yes")


def test_names_by_every_reader(fitted, tmp_path, capsys):
    """The ranking, the command line, the service and an explanation call a label alike."""
    pytest.importorskip("fastapi")
    from metarank.apps.serve.answers import Answerer

    model, data = fitted
    if data.texts is None:
        pytest.skip("texts alone")
    ranking = model.rank(data.texts, k=3)
    shown = ranking.names.tolist()
    for row, names in zip(ranking, shown):
        assert names == [model.label_table_.shown(label) for label, _ in row] + [None] * (3 - len(row))
    body = json.dumps({"instances": list(data.texts), "k": 3}).encode()
    rows = Answerer(model).rank(body)["rankings"]
    assert [[e["name"] for e in row] for row in rows] == [[n for n in names if n] for names in shown]
    model.save(tmp_path / "M")
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in data.texts))
    assert main(["predict", str(tmp_path / "M"), str(tmp_path / "in.jsonl"), "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = []
    for i, (row, text) in enumerate(zip(ranking, data.texts)):
        expected += [f"row {i}: {text[:80].strip()}"]
        expected += [f"{score:8.3f}  {model.label_table_.shown(label)}" for label, score in row]
    assert lines == expected
    label = int(ranking.labels[0, 0])
    page = str(model.explain(data.texts[0], label))
    assert page.startswith(f"{model.label_table_.called(label)}: rank 1 of")
    label = some(model, 2)[-1]
    command = ["explain", str(tmp_path / "M"), "--text", data.texts[0], "--json", "--label"]
    assert main([*command, str(spoken(model, label))]) == 0
    expected = json.dumps([model.explain(data.texts[0], label).to_dict()])
    assert json.loads(capsys.readouterr().out) == json.loads(expected)


def test_the_index_of_a_frame_is_kept():
    model, rows = makers.fitted("texts"), DATA.texts[:4]
    series = pd.Series(rows, index=["d", "a", "c", "b"])
    ranking = model.rank(series, k=2)
    assert ranking.to_frame()["row"].tolist() == ["d", "d", "a", "a", "c", "c", "b", "b"]
    assert ranking[1:3].to_frame()["row"].tolist() == ["a", "a", "c", "c"]
    assert ranking.top(1).rows([3, 0]).to_frame()["row"].tolist() == ["b", "d"]
    again = type(ranking).concatenate([ranking[:1], ranking[[1, 2, 3]]])
    assert again.to_frame().equals(ranking.to_frame())
    assert pickle.loads(pickle.dumps(ranking)).to_frame().equals(ranking.to_frame())
    same(model.rank(rows, k=2), ranking)
    for plain in (rows, pd.Series(rows)):
        assert model.rank(plain, k=2).to_frame()["row"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert model.rank(pd.Series(rows)[2:], k=1).to_frame()["row"].tolist() == [2, 3]
    pairs = pd.MultiIndex.from_product([["x", "y"], [1, 2]])
    assert model.rank(pd.Series(rows, index=pairs), k=1).to_frame()["row"].tolist() == pairs.tolist()
    days = pd.date_range("2026-01-01", periods=4)
    assert model.rank(pd.Series(rows, index=days), k=1).to_frame()["row"].dtype == days.dtype
    frame = pd.DataFrame(makers.dense().X[:4], index=list("wxyz"))
    assert makers.fitted("dense").rank(frame, k=1).to_frame()["row"].tolist() == list("wxyz")


def test_a_renamed_label_keeps_its_old_name_for_later_files(tmp_path):
    ds = makers.texts()
    model = MetaRanker(**makers.QUICK).fit(ds)
    first, second = ds.label_names[:2]
    model.update_labels(rename={first: "newer"})
    model.update_labels(rename={"newer": "newest", second: first})  # a name that a label has now is its own
    model.save(tmp_path / "M")
    for changed in (model, load(tmp_path / "M")):
        table = changed.label_table_
        assert [table.id_of(name, "allowed") for name in ("newest", "newer", first, second)] == [0, 0, 1, 1]
        renamed = Dataset(texts=ds.texts, Y=ds.Y, label_names=["newer", second, *ds.label_names[2:]])
        assert changed.score(renamed) == changed.score(ds.texts, ds.Y)
        assert changed.label_names_[:2] == ["newest", first]


def test_the_same_names_give_the_same_model_by_every_way_in(tmp_path):
    ds = makers.texts()
    lists = [[ds.label_names[j] for j in row.indices] for row in ds.Y]
    lines = (json.dumps({"text": text, "labels": of}) for text, of in zip(ds.texts, lists))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    binarizer = MultiLabelBinarizer()
    matrix = binarizer.fit_transform(lists)
    table = [{"name": name} for name in ds.label_names]
    ways = {
        "data set": (ds,),
        "file": (data.load(tmp_path / "rows.jsonl"),),
        "lists": (ds.texts, lists),
        "columns of a frame": (ds.texts, pd.DataFrame(ds.Y.toarray(), columns=ds.label_names)),
        "matrix and names": (ds.texts, ds.Y, {"labels": ds.label_names}),
        "binarizer's classes_": (ds.texts, matrix, {"labels": binarizer.classes_}),
        "table": (ds.texts, lists, {"labels": table}),
    }
    scores = {}
    for way, given in ways.items():
        *given, more = given if len(given) == 3 else (*given, {})
        model = MetaRanker(**makers.QUICK).fit(*given, **more)
        order = [model.label_names_.index(name) for name in ds.label_names]
        scores[way] = model.decision_function(ds.texts)[:, order].tobytes()
    assert len(set(scores.values())) == 1, scores.keys()


def test_it_is_told_what_names_would_be_read():
    ds = makers.many_texts()
    words = data.TextVectorizer().fit(ds.texts)
    rows = words.transform(ds.texts)
    names = [f"{name} {i}" for i, name in enumerate(ds.label_names)]
    of_words = Dataset(rows, ds.Y, label_names=names, feature_names=words.vocabulary_)
    for X, labels, told in (
        (ds.texts, None, "without names"),
        (rows, names, "names are not read"),
        (of_words, None, "names are compared word by word"),
    ):
        said = MetaRanker(**makers.QUICK).fit(X, None if X is of_words else ds.Y, labels=labels).choices_
        assert any(line.startswith(f"labels: {told}") for line in said)


def test_an_empty_name_of_a_table_is_a_label_without_a_name():
    ds = makers.texts()
    names = ["", *ds.label_names[1:]]
    model = MetaRanker(**makers.QUICK).fit(ds.texts, ds.Y, labels=[{"name": name} for name in names])
    assert model.labels_.names == names
    assert model.labels_.ids == ["label 0", *ds.label_names[1:]]

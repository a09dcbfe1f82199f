"""A model with a table of labels: fit, files, changes of labels, the command line."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache

import makers
import numpy as np
import pandas as pd
import pytest

from metarank import Dataset, MetaRanker, data, load, metrics
from metarank.apps.cli import main
from metarank.data import LabelDescriptions, to_parquet
from metarank.model.answering.measure import Evaluation

# The texts know nothing of the words of the names, but of those of the alternative ones.
TABLE = LabelDescriptions(
    ids=["p0", "p1", "p2", "p3", "p4"],
    names=["ocean", "baking", "programs", "gardens", "shores"],
    alternative_names=[["sea", "tide"], ["bread", "dough"], ["code"], ["tree"], ["sand port", "wave"]],
    descriptions=["", "Flour and yeast.", "", "", ""],
    parents=[[], [], [], [], ["p0"]],
)
DATA = makers.texts()
Y = [
    [{"the sea": "p0", "bread": "p1", "code": "p2"}[DATA.label_names[j]] for j in row.indices]
    for row in DATA.Y
]
SHORT = {
    **makers.QUICK,
    "shortlist_size": 2,
    "shortlister": ["names", "neighbors"],
    "features": ["neighbors", "names", "spelling"],
}


@cache
def model_of(**params) -> MetaRanker:
    return MetaRanker(**(makers.QUICK | params)).fit(DATA.texts, Y, labels=TABLE)


@cache
def shortlisted() -> MetaRanker:
    return MetaRanker(**SHORT).fit(DATA.texts, Y, labels=TABLE)


def test_all_labels_of_the_table_are_labels_of_the_model():
    model = model_of()
    assert model.label_names_ == TABLE.names
    assert model.n_labels_ == 5
    assert model.labels_.ids == TABLE.ids
    assert "label name: cosine, best name" in model.feature_columns_
    assert model.label_table_.id_of("p3", "label") == model.label_table_.id_of("gardens", "label") == 3
    assert any("5 of the table" in choice for choice in model.choices_)


def test_a_ranking_has_names_and_ids(tmp_path):
    model = model_of()
    model.save(tmp_path / "M")
    for answers in (model, load(tmp_path / "M")):
        ranking = answers.rank(DATA.texts, k=3)
        assert [[TABLE.ids[label] for label, _ in row] for row in ranking] == ranking.ids.tolist()
        frame = ranking[1:].to_frame()
        assert frame.label_id.tolist() == ranking[1:].ids.ravel().tolist()
        assert frame.label_name.tolist() == ranking[1:].names.ravel().tolist()
    plain = makers.fitted("texts").rank(makers.texts(), k=2)
    assert plain.ids.tolist() == plain.labels.tolist()
    assert "label_id" not in plain.to_frame()


def test_a_data_set_of_ids_is_judged_by_ids():
    """Also where two labels share a name, which is then shown with the id."""
    model, rows = model_of(), Dataset(texts=DATA.texts, Y=Y)
    names, ranking, kept = ["P@1", "MAP"], model.rank(rows, k=5), model.predict(rows)
    expected = Evaluation(model, rows, rows).values([*names, "micro-F1"])
    assert metrics.evaluate(rows, ranking, names) == pytest.approx({n: expected[n] for n in names})
    by_sets = {"micro-F1": pytest.approx(expected["micro-F1"])}
    assert metrics.evaluate(rows, None, ["micro-F1"], Y_pred=kept) == by_sets
    listed = pd.Series(model.predict(rows, return_names=True))
    assert metrics.evaluate(rows, ranking, ["micro-F1"], Y_pred=listed) == by_sets
    with pytest.warns(UserWarning, match="got none, such as 'baking'"):
        assert metrics.evaluate(rows, None, ["micro-F1"], Y_pred=list(listed)) == {"micro-F1": 0}
    shared = replace(ranking, label_names=["tree", "tree", *TABLE.names[2:]])
    assert shared.label_table.name_of(1) == "tree (p1)"
    assert shared.label_table.id_of("tree (p1)", "label") == 1
    assert metrics.evaluate(rows, shared, names) == metrics.evaluate(rows, ranking, names)


@pytest.mark.parametrize("of", ["names", "ids"])
def test_alternative_names_find_labels_where_no_name_has_a_known_word(of):
    others = [["sea", "tide"], ["bread"], ["code"], ["water port"]]
    own = {"names": ["alpha", "beta", "gamma", "delta"]} if of == "names" else {}
    table = LabelDescriptions(ids=["p0", "p1", "p2", "p3"], alternative_names=others, **own)
    model = MetaRanker(**makers.QUICK).fit(DATA.texts, Y, labels=table)
    assert "label name: cosine, best name" in model.feature_columns_


def test_one_model_by_every_door(tmp_path):
    wanted = model_of().decision_function(DATA.texts)
    path = tmp_path / "labels.jsonl"
    columns = {"ids": "id", "names": "name", "descriptions": "description"}
    rows = zip(*TABLE.columns().values(), strict=True)
    names = [columns.get(column, column) for column in TABLE.columns()]
    path.write_text("\n".join(json.dumps(dict(zip(names, row))) for row in rows))
    by_name = [[TABLE.names[TABLE.ids.index(label)] for label in row] for row in Y]
    relevance = TABLE.covering(*_matrix(Y))[0]
    doors = [
        MetaRanker(**makers.QUICK).fit(DATA.texts, by_name, labels=TABLE),
        MetaRanker(**makers.QUICK).fit(DATA.texts, Y, labels=path),
        MetaRanker(**makers.QUICK).fit(DATA.texts, relevance, labels=TABLE),
        MetaRanker(**makers.QUICK).fit(Dataset(texts=DATA.texts, Y=Y, labels=TABLE)),
        MetaRanker(**makers.QUICK).fit(Dataset(texts=DATA.texts, Y=Y), labels=TABLE),
    ]
    for model in doors:
        assert model.decision_function(DATA.texts).tobytes() == wanted.tobytes()
    model_of().save(tmp_path / "M")
    loaded = load(tmp_path / "M")
    assert loaded.decision_function(DATA.texts).tobytes() == wanted.tobytes()
    assert repr(loaded.labels_.columns()) == repr(TABLE.columns())


def _matrix(lists):
    data = Dataset(texts=DATA.texts, Y=lists)
    return data.Y, data.label_names


def test_alternative_names_alone_find_a_label_without_rows():
    model = shortlisted()
    assert "gardens" in model.rank(["tree"], k=5).names[0]
    assert model.rank(["zzz"], k=5).labels.shape == (1, 5)  # no known word
    bare = LabelDescriptions(ids=TABLE.ids, names=TABLE.names)
    without = MetaRanker(**{**SHORT, "features": ["neighbors"], "shortlister": ["neighbors"]})
    without.fit(DATA.texts, Y, labels=bare)
    assert "gardens" not in without.rank(["tree"], k=5).names[0]


def test_without_alternative_names_a_model_is_as_without_a_table():
    bare = LabelDescriptions(names=makers.TOPICS)
    plain, tabled = MetaRanker(**makers.QUICK).fit(DATA), MetaRanker(**makers.QUICK).fit(DATA, labels=bare)
    assert tabled.feature_columns_ == plain.feature_columns_
    assert tabled.decision_function(DATA).tobytes() == plain.decision_function(DATA).tobytes()


def test_labels_of_y_that_the_table_lacks_are_kept_with_a_warning():
    with pytest.warns(UserWarning, match="the table of labels lacks: 'clouds'"):
        model = MetaRanker(**makers.QUICK).fit(DATA.texts, [["clouds"], *Y[1:]], labels=TABLE)
    assert model.label_names_ == [*TABLE.names, "clouds"]
    assert any("and 1 that it lacks" in choice for choice in model.choices_)


def test_rows_to_be_judged_name_labels_by_id_or_name():
    model, by_name = model_of(), [[TABLE.names[TABLE.ids.index(label)] for label in row] for row in Y]
    assert model.score(DATA.texts, Y) == model.score(DATA.texts, by_name) > 0.5
    by_id, named = (model.rank(DATA.texts[:3], exclude=[label]) for label in ("p0", "ocean"))
    assert by_id.scores.tobytes() == named.scores.tobytes()


def test_a_table_is_given_once():
    with pytest.raises(ValueError, match="labels must be left out if the Dataset has a table"):
        MetaRanker().fit(Dataset(texts=DATA.texts, Y=Y, labels=TABLE), labels=TABLE)
    with pytest.raises(ValueError, match="label_texts must be left out with labels"):
        Dataset(texts=DATA.texts, Y=Y, labels=TABLE, label_texts=["x"] * 5)
    with pytest.raises(TypeError, match=r"must be a LabelDescriptions, see data\.read_labels, got 3"):
        Dataset(texts=DATA.texts, Y=Y, labels=3)


def test_a_parquet_file_keeps_the_table(tmp_path):
    table = LabelDescriptions(**{**TABLE.columns(), "vectors": np.random.default_rng(0).normal(size=(5, 3))})
    dataset = Dataset(texts=DATA.texts, Y=Y, labels=table)
    to_parquet(dataset, tmp_path / "rows.parquet")
    found = data.load(tmp_path / "rows.parquet")
    assert repr(found.labels.columns()) == repr(table.columns())
    assert found.label_names == dataset.label_names
    assert (found.Y != dataset.Y).nnz == 0
    assert repr(found.take([3]).labels) == repr(table)


# --- labels that change ---------------------------------------------------------------


def fresh() -> MetaRanker:
    return MetaRanker(**SHORT).fit(DATA.texts, Y, labels=TABLE)


def test_a_new_label_brings_what_is_known_of_it(tmp_path):
    model = fresh()
    model.update_labels(add=[{"name": "ovens", "id": "p9", "alternative_names": ["oven"], "parents": ["p1"]}])
    assert model.label_names_[5] == "ovens"
    assert model.labels_.columns()["parents"][5] == ["p1"]
    assert "ovens" in model.rank(["oven"], k=6).names[0]
    model.partial_fit(["an oven"], [["p9"]])
    assert "ovens" in model.rank(["oven"], k=6).names[0]
    model.save(tmp_path / "M")
    again, now = (each.rank(["oven", "tree"], k=6) for each in (load(tmp_path / "M"), model))
    assert again.scores.tobytes() == now.scores.tobytes()


def test_a_merged_label_gives_its_names_and_children():
    model = fresh().update_labels(merge={"p0": "p3"})
    columns = model.labels_.columns()
    assert columns["alternative_names"][3] == ["tree", "ocean", "sea", "tide"]
    assert columns["parents"][4] == ["p3"]
    assert "gardens" in model.rank(["sea tide"], k=2).names[0]
    assert "ocean" not in model.rank(["sea tide"], k=6).names[0]


def test_a_renamed_label_keeps_its_id_and_alternative_names():
    model = fresh().update_labels(rename={"p3": ("woods", "Trees, all kinds of them.")})
    assert (model.labels_.names[3], model.labels_.ids[3]) == ("woods", "p3")
    assert model.labels_.descriptions[3] == "Trees, all kinds of them."
    assert "woods" in model.rank(["tree"], k=5).names[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"add": [{"name": "x", "colour": "red"}]}, "labels must have only the columns .*, got 'colour'"),
        ({"add": [{"name": "x", "parents": ["zz"]}]}, "parents of label 'x' must name known labels"),
        ({"add": [{"name": "x", "id": "p1"}]}, "got 'p1' twice"),
        ({"add": [{"name": "x", "alternative_names": ["a", "a"]}]}, "must hold names, each once"),
        ({"merge": {"p9": "p1"}}, "merge must name known labels"),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(change, message):
    model = shortlisted()
    before = model.labels_
    with pytest.raises(ValueError, match=message):
        model.update_labels(**change)
    assert model.labels_ is before


def test_dicts_need_a_model_with_a_table():
    with pytest.raises(ValueError, match="since this model has no table of labels"):
        makers.fitted("texts").update_labels(add=[{"name": "x"}])


# --- the command line -------------------------------------------------------------------


def test_the_command_line_takes_a_table(tmp_path, capsys):
    (tmp_path / "train.jsonl").write_text(
        "\n".join(json.dumps({"text": text, "labels": row}) for text, row in zip(DATA.texts, Y))
    )
    (tmp_path / "labels.csv").write_text(
        "id,name,synonyms,broader\np0,ocean,sea|tide,\np1,baking,bread,\np2,programs,code,p1\np3,gardens,,\n"
    )
    command = ["train", str(tmp_path / "train.jsonl"), "--model", str(tmp_path / "M"), "--effort", "low"]
    options = ["--ranker", "logistic", "--folds", "2", "--quiet"]
    assert main([*command, *options, "--labels", str(tmp_path / "labels.csv")]) == 0
    model = load(tmp_path / "M")
    assert model.label_names_ == ["ocean", "baking", "programs", "gardens"]
    assert main(["inspect", str(tmp_path / "M")]) == 0
    assert "4 labels: alternative names of 3, parents of 1" in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "M"), str(tmp_path / "train.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.5 < found["hF"] <= 1
    sets = model.predict(DATA.texts)
    relevance = TABLE.covering(*_matrix(Y))[0][:, :4]
    wanted = metrics.evaluate(relevance, None, ["hP", "hR", "hF"], Y_pred=sets, parents=model.labels_)
    assert {name: found[name] for name in wanted} == wanted
    (tmp_path / "labels.csv").write_text("id,name,broader\np0,ocean,p1\np1,baking,p0\n")
    options[-1:] = ["--labels", str(tmp_path / "labels.csv")]
    assert main(["train", command[1], "--model", str(tmp_path / "N"), *options]) == 2
    assert "parents must not form a cycle, got '" in capsys.readouterr().err


def test_rows_do_not_depend_on_threads_or_each_other():
    model = shortlisted()
    whole = model.decision_function(DATA.texts)
    parts = [model.decision_function(DATA.texts[i : i + 7]) for i in range(0, len(DATA.texts), 7)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    other = MetaRanker(**(SHORT | {"n_jobs": 4})).fit(DATA.texts, Y, labels=TABLE)
    assert other.decision_function(DATA.texts).tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    "new",
    [
        pd.DataFrame({"uri": ["h"], "name": ["harbour"], "parent": ["p0"], "synonyms": ["tide port"]}),
        pd.DataFrame({"id": ["h"], "name": ["harbour"], "parents": [["ocean"]], "altLabel": [["tide port"]]}),
        [{"id": "h", "name": "harbour", "parents": ["ocean"], "alternative_names": ["tide port"]}],
    ],
)
def test_new_labels_may_stand_below_known_ones(new):
    model = deepcopy(model_of()).update_labels(add=new)
    assert model.labels_.columns()["parents"] == [[], [], [], [], ["p0"], ["p0"]]
    assert model.labels_.alternative_names[5] == ["tide port"]
    assert model.label_names_[5] == "harbour"


def test_a_table_of_new_labels_without_names_has_ids():
    new = LabelDescriptions(ids=["tide", "h"], names=["", "port"], parents=[["h"], []])
    model = deepcopy(model_of()).update_labels(add=new)
    assert model.label_names_[5:] == ["tide", "port"]
    assert model.labels_.columns()["parents"][5:] == [["h"], []]
    model.update_labels(add=[{"id": "p9", "name": "ocean"}])  # ids tell labels of one name apart
    assert model.label_table_.name_of(7) == "ocean (p9)"
    assert model.label_table_.id_of("p9", "label") == 7


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], ValueError, "'a', which is taken"),
        ([{"name": "new", "description": 3}], TypeError, "descriptions must hold texts, got 3"),
        (pd.DataFrame({"word": ["new"]}), ValueError, "labels must have a column 'id' or 'name'"),
        ([{"name": "new", "parents": ["nobody"]}], ValueError, "parents of label 'new' must name known"),
        (pd.DataFrame({"name": ["ocean"]}), ValueError, "'ocean', which is taken"),
        ([{"id": "p0", "name": "ocean"}], ValueError, "'ocean', which is taken"),
    ],
)
def test_new_labels_that_are_refused(new, error, message):
    model = deepcopy(model_of())
    with pytest.raises(error, match=message):
        model.update_labels(add=new)
    assert model.n_labels_ == 5

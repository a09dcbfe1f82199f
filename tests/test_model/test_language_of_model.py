"""`MetaRanker(language=)`: other forms of words are found; "auto" is the default, None changes nothing."""

import json

import makers
import numpy as np
import pytest

from metarank import MetaRanker, load
from metarank.apps.cli import main
from metarank.data import Dataset
from metarank.model.fitting.encoding import chosen_language

QUICK = dict(shortlister=["neighbors", "names"], n_folds=2, n_jobs=1)
THINGS = ["bridge", "kettle", "garden", "window", "candle", "forest", "pocket", "button"]


def subjects(n=120, seed=0):
    """Titles that hold their labels in the plural, and names in the singular; half of the rows at random."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(len(THINGS), 2, replace=False) for _ in range(n)]
    ends = rng.choice(["s", "ing", "ed"], n)
    texts = [
        f"the {THINGS[a].rstrip('e')}{'es' if THINGS[a].endswith('e') and e == 's' else e} of the "
        f"{THINGS[b]}s, part {rng.integers(999)}"
        for (a, b), e in zip(rows, ends)
    ]
    return Dataset(texts=texts, Y=[[THINGS[a], THINGS[b]] for a, b in rows])


@pytest.fixture(scope="module")
def stemmed():
    return MetaRanker(language="en", **QUICK).fit(subjects())


def test_plural_meets_the_name_in_the_singular(stemmed):
    ranked = stemmed.rank(["candling by the bridges"], k=2).labels[0]
    assert {stemmed.label_names_[label] for label in ranked} == {"bridge", "candle"}


def test_saved_and_loaded_alike(stemmed, tmp_path):
    stemmed.save(tmp_path / "model")
    again = load(tmp_path / "model")
    rows = subjects(20, seed=1)
    np.testing.assert_array_equal(again.decision_function(rows), stemmed.decision_function(rows))
    assert again.language == "en"
    assert again.encoder_.vectorizer.language_ == "english"


def test_answers_do_not_depend_on_threads_or_batches(stemmed):
    other = MetaRanker(language="en", **QUICK | {"n_jobs": 4}).fit(subjects())
    rows = subjects(20, seed=1)
    whole = stemmed.decision_function(rows)
    np.testing.assert_array_equal(other.decision_function(rows), whole)
    parts = [stemmed.decision_function(rows.take(slice(i, i + 3))) for i in range(0, 20, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_stems_of_a_language_that_the_texts_show_are_the_default():
    model = MetaRanker(**QUICK).fit(subjects())
    assert model.encoder_.vectorizer.language_ == "english"
    assert "language: english, whose stems are used" in model.choices_
    assert MetaRanker(language=None, **QUICK).fit(subjects()).encoder_.vectorizer.language_ is None
    assert not any("language" in line for line in MetaRanker(**makers.QUICK).fit(makers.dense()).choices_)


def test_auto_stays_without_a_language_where_none_is_clear():
    texts = [f"{THINGS[i % 8]} {THINGS[i % 7]}" for i in range(40)]
    model = MetaRanker(language="auto", **QUICK).fit(texts, [[THINGS[i % 8]] for i in range(40)])
    assert model.encoder_.vectorizer.language_ is None
    assert "language: none or several, so words are not stemmed" in model.choices_
    assert chosen_language(["the kettle of the town", "der Kessel in der Stadt und auf dem Land"] * 5) is None


def test_a_language_that_is_none_or_of_numbers_is_refused_before_any_work():
    for language in ("klingon", 3):
        with pytest.raises(ValueError, match="language must be"):
            MetaRanker(language=language).fit(None, None)
    with pytest.raises(ValueError, match="language must be None if X has no texts, got 'en'"):
        MetaRanker(language="en").fit(np.eye(4), [[0], [1], [0], [1]])


def test_by_the_command_line(tmp_path, capsys):
    rows = subjects()
    lines = [json.dumps({"text": t, "labels": [rows.label_names[j] for j in Y.indices]})
             for t, Y in zip(rows.texts, rows.Y)]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    model = str(tmp_path / "model")
    train = ["train", str(tmp_path / "rows.jsonl"), "--model", model]
    train += ["--quiet", "--jobs", "1", "--folds", "2"]
    assert main([*train, "--shortlister", "neighbors,names", "--language", "en"]) == 0
    assert main(["predict", model, "--text", "candling by the bridges", "--top", "2"]) == 0
    assert {"candle", "bridge"} <= set(capsys.readouterr().out.split())
    assert main([*train, "--overwrite", "--language", "klingon"]) == 2
    assert "language must be" in capsys.readouterr().err

"""`fit(labels=...)` without Y: labels are ranked by meaning and names until rows teach more."""

import numpy as np
import pytest

from metarank import Dataset, MetaRanker, load
from metarank.apps.cli import main
from metarank.apps.report.content import measure_report
from metarank.apps.serve.answers import Answerer
from metarank.model.answering.measure import Evaluation

TABLE = [
    {"name": "red wine", "description": "a drink of grapes", "alternative_names": ["claret"]},
    {"name": "green tea", "description": "a hot drink of leaves"},
    {"name": "roses", "description": "flowers that smell"},
]
TEXTS = [
    "a cup of tea",
    "a glass of wine",
    "a bunch of roses",
    "Claret & grapes",
    "tea leaves in the pot",
] * 4
FIRST = ["green tea", "red wine", "roses", "red wine", "green tea"] * 4
LABELS = [[name] for name in FIRST]
PARTS = {"title": TEXTS, "body": TEXTS}


class Beginnings:
    """Words of the same first letters mean the same."""

    def encode(self, texts):
        seeds = [[sum(map(ord, word[:3])) for word in text.lower().split()] for text in texts]
        return np.array([sum(np.random.default_rng(s).normal(size=12) for s in own) for own in seeds])


def fitted(encoder=None, X=None, Y=None):
    model = MetaRanker(encoder=encoder, effort="low", n_jobs=1, language="english")
    return model.fit(X, Y, labels=TABLE)


by_names_and_meaning = pytest.mark.parametrize("encoder", [None, Beginnings()], ids=["names", "meaning"])


@by_names_and_meaning
@pytest.mark.parametrize(
    "X", [None, TEXTS, Dataset(texts=TEXTS), PARTS], ids=["none", "texts", "set", "parts"]
)
def test_it_ranks_explains_and_is_saved(encoder, X, tmp_path):
    model, asked = fitted(encoder, X), PARTS if X is PARTS else TEXTS
    ranking = model.rank(asked, k=3)
    assert ranking.names[:, 0].tolist() == FIRST
    for told in model.explain({name: of[:1] for name, of in PARTS.items()} if X is PARTS else TEXTS[0]):
        assert told.probability is None
        assert told.base == pytest.approx(0, abs=1e-6)
        assert "not a probability" in str(told)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", encoder=encoder)
    assert again.rank(asked, k=3).scores.tobytes() == ranking.scores.tobytes()


@by_names_and_meaning
def test_rows_make_it_the_model_of_an_ordinary_fit(encoder, tmp_path):
    model = fitted(encoder)
    model.save(tmp_path / "model")
    fitted(encoder, TEXTS, LABELS).save(tmp_path / "ordinary")
    for beginner in (model, load(tmp_path / "model", encoder=encoder)):
        beginner.partial_fit(TEXTS, LABELS).save(tmp_path / "taught")
        for file in (tmp_path / "ordinary").glob("[!R]*"):  # README.md says how each was fitted
            assert (tmp_path / "taught" / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("asked", ["predict_proba", "predict", "rank_points", "review_queue"])
def test_what_needs_probabilities_is_refused(asked):
    with pytest.raises(ValueError, match=r"no probabilities .* partial_fit\(X, Y\)"):
        getattr(fitted(), asked)(TEXTS)


def test_the_order_is_measured_served_and_reported():
    model, test = fitted(), Dataset(texts=TEXTS, Y=LABELS)
    evaluation = Evaluation(model, test, test)
    found = evaluation.values(evaluation.default_names())
    assert found["P@1"] == model.score(test) == 1
    assert not {"micro-F1", "PSP@5"} & found.keys()
    with pytest.raises(ValueError, match="no probabilities"):
        evaluation.values(["micro-F1"])
    assert measure_report(model, test).reliability is None
    assert Answerer(model).facts()["optimize"] == []
    assert Answerer(model).rank(b'{"instance": "tea"}')["rankings"][0][0]["name"] == "green tea"


def test_commands(tmp_path, capsys):
    labels, rows, model = (str(tmp_path / name) for name in ("labels.csv", "rows.csv", "model"))
    (tmp_path / "labels.csv").write_text("name\nred wine\ngreen tea\nroses\n")
    (tmp_path / "rows.csv").write_text("text,labels\n" + "".join(f"{x},{y}\n" for x, y in zip(TEXTS, FIRST)))
    assert main(["train", "--labels", labels, "--model", model, "--quiet"]) == 0
    assert "not probabilities" in capsys.readouterr().out
    assert main(["update", model, "--rows", rows]) == 0
    assert load(model).n_rows_ == len(TEXTS)
    assert main(["train", "--labels", labels, "--model", model, "--overwrite", "--text-column", "text"]) != 0
    assert "--text-column needs TRAIN" in capsys.readouterr().err

"""Model cards: what the model knows and nothing else, in its folder, on the command line and as HTML."""

from __future__ import annotations

import re

import makers
import numpy as np
import pytest

from metarank import MetaRanker, MultiObjectiveRanker, ThresholdLearner, load
from metarank.apps.cli import main
from metarank.persist import ModelError
from metarank.persist.card import README
from metarank.shortlist import Parabel


def test_a_card_holds_what_the_model_knows_and_says_what_it_does_not(tmp_path):
    model = makers.fitted("texts")
    card = model.card()
    for name, (value, low, high) in model.held_out_quality_.items():
        assert f"| {name} | {value:.3f} | {low:.3f} to {high:.3f} |" in card
    assert f"It ranks {model.n_labels_} labels of a row" in card
    assert "| checksum of the training data | the model keeps none |" in card
    assert "The model keeps no estimates by label frequency" in card
    hub = pytest.importorskip("huggingface_hub")
    read = hub.ModelCard(card).data
    assert (read.license, read.library_name) == ("unknown", "metarank")
    assert "multi-label-classification" in read.tags
    model.save(tmp_path / "M")
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    exec(code.replace("FOLDER", str(tmp_path / "M")), {})


def test_a_model_without_rows_claims_nothing():
    card = MetaRanker(n_jobs=1).fit(labels=["red wine", "green tea"]).card()
    assert "None: the model has no training rows." in card
    assert "not probabilities" in card
    assert "95 %" not in card


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Parabel(n_trees=1), "| n_trees | 1 |"),
        (ThresholdLearner(), "| scorer | ThresholdLearner |"),
        (MultiObjectiveRanker(n_rounds=3, n_jobs=1), "| objectives | seen, bought |"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_else_can_be_saved_has_a_short_card(model, said, tmp_path, capsys):
    ds = makers.sparse(80)
    targets = {"seen": ds.Y.toarray()[:, 0], "bought": ds.Y.toarray()[:, 1]}
    X = ds.Y.toarray() if isinstance(model, ThresholdLearner) else ds.X
    model.fit(X, targets if isinstance(model, MultiObjectiveRanker) else ds.Y)
    model.save(tmp_path / "M")
    card = (tmp_path / "M" / README).read_text()
    assert said in card
    assert "Held-out" not in card
    assert main(["card", str(tmp_path / "M")]) == 0
    assert capsys.readouterr().out == card
    assert main(["inspect", str(tmp_path / "M")]) == 0


def test_what_a_person_wrote_stays_and_what_metarank_wrote_is_replaced(tmp_path):
    place = tmp_path / "M" / README
    makers.fitted("texts").save(tmp_path / "M")
    first = place.read_bytes()
    place.write_bytes(
        first.replace(b"license: unknown", b"license: mit") + "\nMore by us, naïve.\r\n".encode()
    )
    load(tmp_path / "M")
    makers.fitted("dense").save(tmp_path / "M")
    second = place.read_bytes()
    assert b"license: mit" in second
    assert second.endswith("\nMore by us, naïve.\r\n".encode())
    assert b"a matrix (n, " in second
    assert b'["a text"]' not in second
    place.write_text("All by a person.")
    makers.fitted("texts").save(tmp_path / "M")
    assert place.read_text() == "All by a person."
    place.unlink()
    load(tmp_path / "M").save(tmp_path / "M")
    assert place.read_bytes() == first


def test_a_card_that_is_no_file_is_not_part_of_a_model(tmp_path):
    makers.fitted("texts").save(tmp_path / "M")
    (tmp_path / "M" / README).rename(tmp_path / "elsewhere")
    (tmp_path / "M" / README).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match=r"holds 'README\.md'"):
        load(tmp_path / "M")
    with pytest.raises(ValueError, match=r"README\.md"):
        makers.fitted("texts").save(tmp_path / "M")


def test_names_are_text_in_both_forms(tmp_path):
    names = {
        "<script>alert(1)</script>|*a*": ["red wine", "green tea", "black tea"] * 4,
        "b": [1.0, 2, 3] * 4,
    }
    Y = np.array([[1, 0], [0, 1], [1, 1]] * 4)
    MetaRanker(effort="low", n_folds=2, n_jobs=1).fit(names, Y).save(tmp_path / "M")
    card = (tmp_path / "M" / README).read_text()
    assert r"\<script\>alert(1)\</script\>\|\*a\*" in card
    assert main(["card", str(tmp_path / "M"), "--html", "--out", str(tmp_path / "card.html")]) == 0
    page = (tmp_path / "card.html").read_text()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert page.startswith("<!DOCTYPE html>")
    assert main(["card", str(tmp_path / "nothing")]) == 2

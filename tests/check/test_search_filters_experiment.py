"""experiments/search_filters: parts and figures say what they claim, and the command writes its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score
from studies import study

from metarank import metrics
from metarank.data import Dataset

with study("search_filters", "shortlist_speed"):
    import cell
    import contenders
    import models
    import parts as parts_of
    import run
    import titles
    import worth


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(cell, "SINGLES", 2)
    monkeypatch.setattr(cell, "yardstick", lambda: None)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc"
)

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("shirt", "shoes", "watch", "cap", "belt", "scarf")


def toy(n: int = 400, seed: int = 0) -> titles.Titles:
    """Titles that tell colour and thing; rows repeat."""
    rng = np.random.default_rng(seed)
    colour, thing = rng.integers(len(COLOURS), size=n), rng.integers(len(THINGS), size=n)
    texts = [f"Brand{i % 40} {COLOURS[c]} {THINGS[t]}" for i, (c, t) in enumerate(zip(colour, thing))]
    labels = [[f"colour: {COLOURS[c]}", f"type: {THINGS[t]}"] for c, t in zip(colour, thing)]
    return titles.of_dataset(Dataset(texts=texts, Y=labels, name="toy"))


def lists(labels: list[list[int]], chances: list[list[float]]) -> worth.Lists:
    return worth.Lists(np.array(labels, np.int32), np.array(chances, float))


# --- parts -------------------------------------------------------------------


def test_no_text_is_in_two_parts_and_copies_are_merged():
    dataset = Dataset(
        texts=[text for i in range(300) for text in (f"Red Shirt {i}", f" red  SHIRT {i}")],
        Y=[[label] for _ in range(300) for label in ("a", "b")],
    )
    parts = parts_of.split(titles.of_dataset(dataset), 0)
    keys = [{titles.normalised(t) for t in part.texts} for part in (parts.train, parts.valid, parts.test)]
    assert not keys[0] & (keys[1] | keys[2])
    assert not keys[1] & keys[2]
    assert len(keys[0] | keys[1] | keys[2]) == 300
    assert 15 < len(keys[1]) < 45
    assert 15 < len(keys[2]) < 45
    for part in (parts.valid, parts.test):
        assert len(part.texts) == len({titles.normalised(text) for text in part.texts})
        assert part.Y.toarray().tolist() == [[1, 1]] * len(part.texts)
    assert len(parts.train.texts) == 2 * len(keys[0])
    assert parts.train.Y.sum(axis=1).max() == 1


def test_head_and_tail_by_hand():
    # 60, 20, 15 and 5 of a hundred occurrences: the first two make up 80 %, the first three 95 %.
    labels = [[0]] * 60 + [[1]] * 20 + [[2]] * 15 + [[3]] * 5
    Y = sp.csr_matrix(np.eye(5, dtype=np.float32)[np.ravel(labels)])
    part = titles.Titles("toy", ["x"] * 100, Y, list("abcde"), np.full(100, -1))
    parts = parts_of.Parts(part, part, part, np.zeros(0, np.int64))
    assert parts.head.tolist() == [True, True, True, False, False]
    figures = parts_of.statistics(part, parts)
    assert (figures["head"], figures["tail"], figures["without a training row"]) == (3, 1, 1)
    assert figures["share of head"] == pytest.approx(0.95)


def test_unseen_labels_leave_no_trace():
    parts = parts_of.split(toy(), 0)
    rarer = parts_of.without_unseen(parts, 0)
    assert len(rarer.unseen) == 1
    for part in (rarer.train, rarer.valid):
        assert part.Y[:, rarer.unseen].nnz == 0
        assert part.Y.nnz > 0
    assert (rarer.test.Y != parts.test.Y).nnz == 0
    assert parts_of.statistics_of_unseen(rarer) == (1, int((parts.test.Y[:, rarer.unseen] > 0).sum()))
    assert rarer.train.texts == parts.train.texts


# --- figures -----------------------------------------------------------------


def test_a_label_that_is_out_of_the_question_is_moved_over():
    found = lists([[2, 0, 1], [1, -1, -1]], [[0.9, 0.8, 0.7], [0.5, -np.inf, -np.inf]])
    less = found.without(np.array([2, -1]))
    assert less.labels.tolist() == [[0, 1, -1], [1, -1, -1]]
    assert less.chances.tolist() == [[0.8, 0.7, -np.inf], [0.5, -np.inf, -np.inf]]


def test_the_threshold_is_the_best_there_is():
    rng = np.random.default_rng(0)
    for _ in range(20):
        Y = sp.csr_matrix((rng.random((15, 6)) < 0.3).astype(np.float32))
        labels = np.argsort(rng.random((15, 6)), axis=1)[:, :4].astype(np.int32)
        # Few distinct chances: many pairs are cut together.
        chances = -np.sort(-rng.integers(1, 6, size=(15, 4)) / 5, axis=1)
        found = worth.Lists(labels, chances)

        def micro(threshold, Y=Y, found=found):
            return f1_score(Y.toarray(), found.cut(threshold, 6).toarray(), average="micro", zero_division=0)

        best = worth.best_threshold(Y, found)
        assert micro(best) == pytest.approx(max(micro(c) for c in np.unique(chances)))


def test_values_of_lists_made_by_hand():
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 0]], np.float32))
    part = titles.Titles("toy", ["a", "b"], Y, list("wxyz"), np.array([-1, 3], np.int32))
    parts = parts_of.Parts(part, part, part, np.array([2]))
    found = lists([[0, 2, 1], [3, 2, 0]], [[0.9, 0.6, 0.4], [0.8, 0.7, 0.1]])
    values = worth.values(parts, found, found)
    assert (values["nDCG@1"], values["P@3"]) == (1, 0.5)
    second = (1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3))
    assert values["nDCG@3"] == pytest.approx((second + 1) / 2)
    # Down to 0.4: four pairs with three hits, F1 6 / 7; down to 0.7 two with two, F1 4 / 5.
    assert worth.best_threshold(Y, found.without(part.own)) == 0.4
    assert values["coverage"] == 0.75
    assert values["coverage at .5"] == 0.5
    assert values["valid nDCG@5"] == values["nDCG@5"]
    assert worth.unseen_recall(parts, found, k=1) == 1
    assert worth.unseen_recall(parts, lists([[0], [1]], [[1.0], [1.0]]), k=1) == 0
    found_by_us = metrics.evaluate(Y, worth.ranking_of(found.without(part.own), 4), ["nDCG@3"])
    assert found_by_us["nDCG@3"] == values["nDCG@3"]


# --- cells -------------------------------------------------------------------


@needs_proc
@pytest.mark.parametrize("threads", [1, 2])
def test_a_tree_learns_the_toy_set(threads):
    parts = parts_of.split(toy(), 0)
    system = models.make("shortlister", {"estimator": "Parabel"}, 0, threads)
    figures, valid, test = cell.run(system, parts)
    values = worth.values(parts, valid, test)
    assert values["nDCG@3"] > 0.95
    assert values["coverage"] == 1
    assert figures["model_mib"] > 0
    assert figures["n_parameters"] is None
    again = cell.run(models.make("shortlister", {"estimator": "Parabel"}, 0, 1), parts)
    np.testing.assert_array_equal(again[2].labels, test.labels)
    np.testing.assert_array_equal(again[2].chances, test.chances)
    with pytest.raises(NotImplementedError):
        system.add(["colour: pink"])


def test_the_pipeline_finds_a_label_by_its_name():
    parts = parts_of.without_unseen(parts_of.split(toy(200), 0), 0)
    system = models.make("pipeline", {"names": True, "effort": "low", "n_folds": 3}, 0, 1)
    _, _, test = cell.run(system, parts)
    assert worth.unseen_recall(parts, test, k=3) > 0.5
    at_fit = models.make("pipeline", {"names": True, "effort": "low", "n_folds": 3}, 0, 1)
    _, _, known = cell.run(at_fit, parts, at_fit=True)
    assert known.labels.shape == test.labels.shape
    # Ids are those of the whole set, each once a row.
    for row in test.labels:
        assert sorted(row) == list(range(11))
    of_list = [test.chances[i][np.argsort(row)] for i, row in enumerate(test.labels)]
    assert np.all((np.array(of_list) >= 0) & (np.array(of_list) <= 1))


@needs_proc
@pytest.mark.parametrize("contender", [*contenders.FOUR, *contenders.RIVALS], ids=lambda c: c.name)
def test_the_embedders_rank_and_take_names(contender):
    pytest.importorskip("torch")
    pytest.importorskip("metarank.text")
    parts = parts_of.split(toy(120), 0)
    small = {"subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "n_epochs": 2}
    if contender.unseen:
        parts = parts_of.without_unseen(parts, 0)
    params = {**contender.params_on("fashion_styles"), **small}
    figures, _, test = cell.run(models.make("embedder", params, 0, 1), parts)
    assert figures["n_parameters"] > 11 * 8 * (contender.params["combine"] not in ("text", "gile"))
    for row in test.labels:
        assert sorted(row[row >= 0]) == list(range(11))


@pytest.fixture
def tags(tmp_path, monkeypatch):
    """The toy set in the place of a real one, for the cells' own processes."""
    folder = tmp_path / "data" / "text" / "cooking_stackexchange"
    folder.mkdir(parents=True)
    of_toy = toy(150)
    names = ["__label__" + name.replace(" ", "") for name in of_toy.names]
    labels = [" ".join(names[j] for j in of_toy.Y[i].indices) for i in range(150)]
    lines = [f"{label} {text}" for label, text in zip(labels, of_toy.texts)]
    (folder / "cooking.stackexchange.txt").write_text("\n".join(lines))
    monkeypatch.setenv("METARANK_DATA", str(tmp_path / "data"))
    return titles.load("cooking_stackexchange")


@needs_proc
def test_cells_are_kept_and_the_page_is_written(tags, tmp_path, monkeypatch, capsys):
    few = tuple(c for c in contenders.ALL if c.name == "Parabel")
    monkeypatch.setattr(run, "ALL", few)
    monkeypatch.setattr(run, "SETS", ("cooking_stackexchange", "fashion_styles"))
    arguments = ["--cache", str(tmp_path), "--out", str(tmp_path / "page.md"), "--seeds", "1"]
    assert run.main(arguments) == 0
    log = capsys.readouterr().err
    assert "fashion_styles is left out: it is not in" in log
    assert log.count("cooking_stackexchange, Parabel, seed") == 1
    written = (tmp_path / "page.md").read_text()
    assert "| Parabel | 1 |" in written
    assert "split seed 0; cells: 1" in written
    assert run.main(arguments) == 0
    assert "Parabel" not in capsys.readouterr().err
    kept = next(tmp_path.glob("cells/cooking_stackexchange/Parabel-0.json"))
    record = json.loads(kept.read_text())
    record["key"]["params"] = {"estimator": "FastXML"}
    kept.write_text(json.dumps(record))
    assert run.main([*arguments, "--kept"]) == 0
    assert "Parabel" not in (tmp_path / "page.md").read_text()
    with pytest.raises(SystemExit):
        run.main(["--sets", "nothing"])

"""experiments/search_filters: parts and figures say what they claim, and the command writes its page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score

FOLDER = Path(__file__).parents[2] / "experiments" / "search_filters"
_PATH, _MODULES = list(sys.path), dict(sys.modules)
# Another study may have a module of the same name.
_OWN = tuple(path.stem for path in FOLDER.glob("*.py"))
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.path[:0] = [str(FOLDER), str(FOLDER.with_name("shortlist_speed"))]

import cell  # noqa: E402
import cells  # noqa: E402
import claims  # noqa: E402
import contenders  # noqa: E402
import dropout  # noqa: E402
import models  # noqa: E402
import page  # noqa: E402
import parts as parts_of  # noqa: E402
import run  # noqa: E402
import titles  # noqa: E402
import worth  # noqa: E402

sys.path[:] = _PATH
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.modules.update({name: module for name, module in _MODULES.items() if name in _OWN})

from metarank import metrics  # noqa: E402
from metarank.data import Dataset  # noqa: E402


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


def test_parts_do_not_depend_on_the_order_of_rows():
    whole = toy()
    order = np.random.default_rng(1).permutation(len(whole.texts))
    for part in parts_of.SHARES:
        a, b = (getattr(parts_of.split(t, 3), part) for t in (whole, whole.take(order)))
        assert sorted(a.texts) == sorted(b.texts)
        rows = dict(zip(b.texts, b.Y.toarray().tolist()))
        if part != "train":
            assert all(rows[text] == row for text, row in zip(a.texts, a.Y.toarray().tolist()))
    assert set(parts_of.split(whole, 4).test.texts) != set(parts_of.split(whole, 3).test.texts)


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


def test_fewer_rows_are_some_of_the_training_part():
    parts = parts_of.split(toy(), 0)
    few, fewer = (parts_of.with_fewer_rows(parts, rows, 0) for rows in (60, 20))
    assert (len(few.train.texts), len(fewer.train.texts)) == (60, 20)
    assert set(fewer.train.texts) <= set(few.train.texts) <= set(parts.train.texts)
    assert few.valid.texts == parts.valid.texts
    assert few.counts.sum() == few.train.Y.nnz


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


def test_f1_by_class_and_coverage():
    rng = np.random.default_rng(1)
    Y, predicted = (sp.csr_matrix((rng.random((30, 8)) < 0.2).astype(np.float32)) for _ in range(2))
    Y = sp.csr_matrix(Y.multiply(np.arange(8) != 5))
    Y.eliminate_zeros()
    among = np.array([True, False] * 4)
    judged = [j for j in range(8) if among[j] and Y[:, [j]].nnz]
    of_each = [f1_score(Y[:, [j]].toarray(), predicted[:, [j]].toarray(), zero_division=0) for j in judged]
    assert worth.class_f1(Y, predicted, among) == pytest.approx(np.mean(of_each))
    assert np.isnan(worth.class_f1(Y, predicted, np.arange(8) == 5))


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


@needs_proc
@pytest.mark.parametrize(
    "names", ["words", {"combine": "text", "encoder": "bow", "n_epochs": 1, "embedding_dim": 8}]
)
def test_a_tree_puts_labels_together_by_their_names(names):
    if names != "words":
        pytest.importorskip("torch")
    train, *_ = vars(parts_of.split(toy(), 0)).values()
    tree = models.make("shortlister", {"estimator": "Parabel", "n_trees": 1, "names": names}, 0, 1)
    tree.fit(train)
    assert tree.model.label_vectors.shape[0] == len(train.names)
    hits = tree.lists(train, 2).labels
    assert np.mean([train.Y[i, label] for i in range(len(hits)) for label in hits[i]]) > 0.9


def test_the_pipeline_finds_a_label_by_its_name():
    parts = parts_of.without_unseen(parts_of.split(toy(200), 0), 0)
    system = models.make("pipeline", {"label_text": "auto", "effort": "low", "n_folds": 3}, 0, 1)
    _, _, test = cell.run(system, parts)
    assert worth.unseen_recall(parts, test, k=3) > 0.5
    at_fit = models.make("pipeline", {"label_text": "auto", "effort": "low", "n_folds": 3}, 0, 1)
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


@needs_proc
def test_a_cell_that_fails_is_told(tags, tmp_path):
    cabinet = cells.Cabinet(tmp_path, tmp_path, 0, 1, timeout=60)
    wrong = contenders.Contender("wrong", "shortlister", "trees", {"estimator": "Nothing"})
    failing = cells.Cell("cooking_stackexchange", tags.checksum, wrong, 0)
    with pytest.raises(RuntimeError, match="cooking_stackexchange, wrong, seed 0: exit 1"):
        cabinet.make(failing, parts_of.split(tags, 0))
    assert cabinet.kept(failing) is None


# --- rates of dropout --------------------------------------------------------


def test_rates_are_compared_on_training_rows_alone(tags, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    parts = parts_of.split(tags, 0)
    inner, checksum = dropout.held_out("cooking_stackexchange", 0)
    assert checksum == parts.train.checksum
    used = {text for part in (inner.train, inner.valid, inner.test) for text in part.texts}
    assert used == set(parts.train.texts)
    assert not used & {*parts.valid.texts, *parts.test.texts}
    small = {"encoder": "bow", "subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "n_epochs": 1}
    steps = {"batch_size": 32, "learning_rate": 0.01, "patience": 1}
    setup = dropout.Setup(None, {**small, **steps})
    monkeypatch.setattr(dropout, "SETUPS", {"cooking_stackexchange": setup, "fashion_styles": setup})
    arguments = ["--cache", str(tmp_path), "--out", str(tmp_path / "page.md"), "--seeds", "1"]
    assert dropout.main([*arguments, "--rates", "0,0.3", "--models", "ID-only"]) == 0
    log = capsys.readouterr().err
    assert "fashion_styles is left out: it is not in" in log
    assert log.count("Trial(") == 2
    written = (tmp_path / "page.md").read_text()
    assert "| ID-only | 0.3 | 1 |" in written
    assert f"sha256 of the training part: {checksum}" in written
    assert dropout.main([*arguments, "--kept"]) == 0
    assert "Trial(" not in capsys.readouterr().err
    assert (tmp_path / "page.md").read_text() == written
    place = next(tmp_path.glob("dropout/*-0.3-0.json"))
    record = json.loads(place.read_text())
    record["key"]["seed"] = 5
    place.write_text(json.dumps(record))
    assert dropout.main([*arguments, "--kept"]) == 0
    assert "| ID-only | 0.3 |" not in (tmp_path / "page.md").read_text()
    with pytest.raises(SystemExit):
        dropout.main(["--sets", "pydocs"])


def test_the_best_rate_is_told_with_its_gain():
    def trials(*ndcg):
        return [{"nDCG@5": value} for value in ndcg]

    found = {("LALE", 0.0): trials(0.50, 0.52), ("LALE", 0.1): trials(0.53, 0.53), ("LALE", 0.5): trials(0.2)}
    told = dropout.verdict(found, "LALE", [0.0, 0.1, 0.5])
    assert told == "LALE: rate 0.1 has the most nDCG@5, +2.0 against none (deviation 1.4, 2 seeds)"
    found["LALE", 0.5] = trials(0.6)
    assert dropout.verdict(found, "LALE", [0.0, 0.1, 0.5]).endswith("+9.0 against none (a single seed)")
    assert dropout.verdict(found, "ID-only", [0.0, 0.1]) is None
    found["LALE", 0.0] = trials(0.7)
    assert dropout.verdict(found, "LALE", [0.0, 0.1, 0.5]) == "LALE: no rate has more nDCG@5 than none"


# --- the page ----------------------------------------------------------------


def test_verdicts_ask_for_more_than_a_deviation():
    def rows(*ndcg):
        return [{"nDCG@5": value, "coverage": 0.3, "F1 tail": 0.1} for value in ndcg]

    values = {"LALE": rows(0.60, 0.62), "ID-only": rows(0.58, 0.59), "Text-only": rows(0.59, 0.61)}
    told = dict(claims.claims_of(values, {"LALE": [0.2, 0.4], "Combined": [0.0]}, 0.01))
    above = {sentence.partition(" (")[0]: holds for sentence, holds in told.items()}
    assert above["nDCG@5 of LALE above ID-only by more than a deviation"]
    assert not above["nDCG@5 of LALE above Text-only by more than a deviation"]
    assert not above["coverage of LALE above ID-only by more than a deviation"]
    assert above["LALE finds labels never seen"]
    assert not above["Combined finds labels never seen"]
    single = dict(claims.claims_of({name: rows[:1] for name, rows in values.items()}, {}, 0.01))
    assert set(single.values()) == {None}
    assert not any("Combined above" in sentence for sentence in above)


def test_numbers_are_printed_with_their_deviation():
    assert page.with_deviation(np.array([0.5])) == "50.0"
    assert page.with_deviation(np.array([0.5, 0.6])) == "55.0 ± 7.1"


@pytest.mark.parametrize("name", ["LLMs4Subjects-dev-en", "product_attribute_values"])
def test_the_sets_are_still_those_of_the_page(name):
    try:
        checksum = titles.load(name).checksum
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    assert f"- sha256 of {name}: {checksum}\n" in (FOLDER / "results.md").read_text()

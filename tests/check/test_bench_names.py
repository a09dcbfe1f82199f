"""experiments/bench, the studies of named labels: parts, figures by hand, systems, and pages from lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score
from studies import study

from metarank.data import Dataset

with study("bench"):
    import named_texts
    import sets
    from declared import Lines
    from studies import lale, names
    from systems import lale as networks
    from systems import texts

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("shirt", "shoes", "watch", "cap", "belt", "scarf")


def toy(n: int = 400) -> Dataset:
    """Titles that tell colour and thing; rows repeat."""
    rng = np.random.default_rng(0)
    colour, thing = rng.integers(len(COLOURS), size=n), rng.integers(len(THINGS), size=n)
    titles = [f"Brand{i % 40} {COLOURS[c]} {THINGS[t]}" for i, (c, t) in enumerate(zip(colour, thing))]
    labels = [[f"colour: {COLOURS[c]}", f"type: {THINGS[t]}"] for c, t in zip(colour, thing)]
    return Dataset(texts=titles, Y=labels, name="toy")


def made(folder: Path, dataset: Dataset, **more) -> Path:
    return sets.prepare("toy", folder, lambda place: named_texts.write(place, dataset, **more))


def test_no_text_is_in_two_parts_and_copies_are_merged(tmp_path):
    both = [text for i in range(300) for text in (f"Red Shirt {i}", f" red  SHIRT {i}")]
    folder = made(tmp_path, Dataset(texts=both, Y=[[label] for _ in range(300) for label in "ab"]))
    read, of = json.loads((folder / "texts.json").read_text()), sets.described(folder)
    train, test = ([named_texts.normalised(text) for text in read[part]] for part in ("train", "test"))
    assert not set(train) & set(test)
    assert len(set(train) | set(test)) == 300
    assert len(test) == len(set(test)) == of["n_valid"] + of["n_test"]
    assert 15 < min(of["n_valid"], of["n_test"]) <= max(of["n_valid"], of["n_test"]) < 45
    assert (sets.matrix(folder, "Y_test").toarray() == 1).all()
    assert of["n"] == len(train) == 2 * len(set(train))
    assert sets.matrix(folder, "Y").sum(axis=1).max() == 1


def test_labels_never_seen_leave_no_trace_and_few_rows_are_the_same_for_all(tmp_path):
    own = np.where(np.arange(400) % 2, 3, -1)
    whole = made(tmp_path / "a", toy(), own=own)
    few = made(tmp_path / "b", toy(), n_train=50, unseen=True)
    (hidden,), n_valid = sets.described(few)["unseen"], sets.described(few)["n_valid"]
    assert sets.matrix(few, "Y").shape == (50, 11)
    assert sets.matrix(few, "Y")[:, hidden].nnz == sets.matrix(few, "Y_test")[:n_valid, hidden].nnz == 0
    assert sets.matrix(few, "Y_test")[n_valid:, hidden].nnz > 0
    test, without = (sets.matrix(folder, "Y_test")[n_valid:] for folder in (whole, few))
    assert (test != without).nnz == 0
    assert sets.described(whole)["unseen"] == []
    for part, excluded in (("Y", "exclude"), ("Y_test", "exclude_test")):
        assert set(sets.matrix(whole, excluded).indices) == {3}
        assert sets.matrix(whole, excluded).shape == sets.matrix(whole, part).shape


def test_readers_of_filters_by_hand(tmp_path):
    path = tmp_path / "styles.csv"
    header = "id,gender,articleType,baseColour,season,usage,productDisplayName"
    path.write_text(f"{header}\n1,Men,Perfume,NA,Spring,Casual,Boss Men Perfume, Balm and Gel\n")
    found = named_texts.read_fashion_styles(path)
    assert found.texts == ["Boss Men Perfume, Balm and Gel"]
    assert found.label_names == ["gender: men", "season: spring", "type: perfume", "usage: casual"]
    shirts = [f"Mark Taylor Men {letter} Shirt" for letter in "ABCDE"]
    assert named_texts.leading_brands([*shirts, "Mark Taylor Belt", "Red Belt"])[-2:] == ["mark taylor", ""]


def test_the_threshold_is_the_best_there_is():
    rng = np.random.default_rng(0)
    for _ in range(20):
        Y = sp.csr_matrix((rng.random((15, 6)) < 0.3).astype(np.float32))
        labels = np.argsort(rng.random((15, 6)), axis=1)[:, :4].astype(np.int32)
        # Few distinct scores: many pairs are cut together.
        scores = -np.sort(-rng.integers(1, 6, size=(15, 4)) / 5, axis=1)

        def micro(threshold, Y=Y, labels=labels, scores=scores):
            cut = np.zeros(Y.shape, int)
            row, place = np.nonzero(scores >= threshold)
            cut[row, labels[row, place]] = 1
            return f1_score(Y.toarray(), cut, average="micro", zero_division=0)

        best = lale.best_threshold(Y, labels, scores)
        assert micro(best) == pytest.approx(max(micro(score) for score in np.unique(scores)))


def judged(folder: Path, labels, scores, **described) -> dict[str, float]:
    """Of a set with one validation and two test rows; for the last label 3 is out of the question."""
    folder.mkdir(exist_ok=True)
    Y, held_out = [[1, 1, 0, 0]] * 7 + [[0, 1, 1, 0]], [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]]
    exclude = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    for name, values in (("Y", Y), ("Y_test", held_out), ("exclude_test", exclude)):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(np.array(values, np.float32)))
    (folder / "set.json").write_text(json.dumps({"n_valid": 1, "unseen": [], **described}))
    arrays = {"/labels": np.array(labels, np.int32), "/scores": np.array(scores, np.float32)}
    np.savez(folder / "answers.npz", **arrays)
    return lale.of_titles(folder, folder / "answers.npz")[""]


def test_figures_of_lists_made_by_hand(tmp_path):
    labels = [[0, 1, 2], [0, 2, 1], [3, 2, 0]]
    values = judged(tmp_path, labels, [[0.9, 0.4, 0.1], [0.9, 0.6, 0.4], [0.8, 0.7, 0.1]])
    assert (values["nDCG@1"], values["P@3"]) == (1, 0.5)
    second = (1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3))
    assert values["nDCG@3"] == pytest.approx((second + 1) / 2)
    # Cut at .4; of 16 occurrences in training label 1 has 8, label 0 has 7, label 2 one: the head is 94 %.
    assert lale.head_of(sets.matrix(tmp_path, "Y")).tolist() == [True, True, False, False]
    assert values["coverage"] == 0.75
    assert (values["F1 head"], values["F1 tail"]) == (1, pytest.approx(2 / 3))
    np.testing.assert_equal([values[f"R@5 {of}"] for of in ("1-2", "3-5", "6-20")], [1, np.nan, 1])
    scores = [[3.0, 2, 1]] * 3
    assert judged(tmp_path, labels, scores, unseen=[2]) == {lale.NEVER_SEEN: 1}
    assert judged(tmp_path, [[0, 1, 3]] * 3, scores, unseen=[2]) == {lale.NEVER_SEEN: 0}


def answers(system, folder: Path, k: int) -> tuple[np.ndarray, np.ndarray]:
    system.read(folder)
    system.train()
    rows = system.prepare(system.test_rows(folder))
    return system.top(system.predict(rows, k), k)


def test_the_pipeline_finds_a_label_by_its_name_and_ids_are_those_of_the_set(tmp_path):
    folder = made(tmp_path, toy(200), unseen=True)
    labels, scores = answers(texts.System({"effort": "low", "n_folds": 3, "random_state": 0}, 1), folder, 11)
    assert all(sorted(row) == list(range(11)) for row in labels)
    assert (np.diff(scores, axis=1) <= 0).all()
    np.savez(tmp_path / "answers.npz", **{"/labels": labels, "/scores": scores})
    assert lale.of_titles(folder, tmp_path / "answers.npz")[""][lale.NEVER_SEEN] > 0.5


def test_a_table_of_labels_is_read_as_declared(tmp_path):
    dataset = toy(200)
    table = [
        {"id": f"x{i}", "fi": name, "en": f"also {name}", "others": ["so"], "broader": ["x0"] * (i > 0)}
        for i, name in enumerate(dataset.label_names)
    ]
    folder = made(tmp_path, dataset, table=table)
    columns = {"name": "fi", "alternative_names": ["others", "en"], "parents": "broader"}
    system = texts.System({"effort": "low", "n_folds": 3, "random_state": 0, "table": columns}, 1)
    labels, _ = answers(system, folder, 3)
    known = system.model.labels_
    assert known.alternative_names[2] == ["so", f"also {dataset.label_names[2]}"]
    assert known.has_relations
    held_out = sets.matrix(folder, "Y_test")
    assert np.asarray(held_out[np.arange(len(labels)), labels[:, 0]]).mean() > 0.9


@pytest.mark.parametrize(
    "system", [*lale.MEANS, lale.TAGSPACE, lale.BAGS[3], *lale.AS_PRINTED[2:]], ids=lambda s: s.name
)
def test_the_networks_rank_and_take_names(system, tmp_path):
    pytest.importorskip("torch")
    folder = made(tmp_path, toy(120), unseen=system.runs_on("toy-unseen"))
    small = {"subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "steps": 20, "patience_steps": 20}
    model = networks.System({**system.params, **small, "random_state": 0}, 1)
    labels, scores = answers(model, folder, 11)
    assert all(sorted(row) == list(range(11)) for row in labels)
    assert (np.diff(scores, axis=1) <= 0).all()
    if system.params.get("loss") == "softmax":
        np.testing.assert_allclose(np.exp(scores.astype(float)).sum(axis=1), 1, rtol=1e-5)
    assert 0 < model.figures([])["best_epoch"] <= 1


def line(dataset: str, system: str, seed: int, **quality: float) -> dict:
    costs = dict.fromkeys(("train_s", "memory_mib", "model_mib", "batch_ms", "single_ms"), 1.0)
    found = {"quality": {"": quality}, "best_epoch": 0.5, "stopped": True, "parameters": 10**6}
    return {"set": dataset, "system": system, "seed": seed, **costs, **found}


def test_pages_say_what_lines_say(tmp_path):
    assert len([c for c in lale.LARGE.cells(["pydocs-texts"]) if c.system in lale.PIPELINE]) == 2 * 3
    of = sets.described(made(tmp_path, toy()).rename(tmp_path / "pydocs-texts"))
    all_columns = dict.fromkeys((*lale.TABLE_1, *lale.TABLE_2, *lale.RARE), 0.5)
    lines = [
        line("pydocs-texts", name, seed, **{**all_columns, "nDCG@5": value})
        for name, several in (("ID-only", (0.4, 0.5)), ("LALE", (0.6, 0.7)))
        for seed, value in enumerate(several)
    ]
    page = lale.page(Lines(lines, {"pydocs-texts": of}, data=tmp_path))
    assert "| pydocs-texts | sums | 45.0 → 65.0 \\* | 50.0 → 50.0 |" in page
    assert "| LALE | **50.0 ± 0.0** | **50.0 ± 0.0** | **65.0 ± 7.1** |" in page
    assert "| 50 % | 1.00 |" in page
    lines = [
        line("s", name, 0, **dict.fromkeys(names.METRICS, v)) for name, v in (("no names", 0.2), ("n", 0.5))
    ]
    assert "| s | n | +30.0 | +30.0 | +30.0 | +30.0 | 1.00 |" in names.gains(Lines(lines, {"s": of}))

"""Models of blocks: one answer by every door, and nothing of a row's own labels in its evidence."""

from __future__ import annotations

from dataclasses import replace

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from metarank import Dataset, MetaRanker, load
from metarank.data import Blocks
from metarank.data.block_encoder import BlocksEncoder, CategoriesEncoder, NumbersEncoder
from metarank.model.fitting.auto import Sizes, choose_features
from metarank.model.fitting.encoding import block_weights
from metarank.model.fitting.sources import over_blocks
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.scorers.names.mentions import NameMentions
from metarank.scorers.names.words import NameScorer
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.voting import LabelNeighbors, NeighborShortlister
from metarank.scorers.source import Source
from metarank.types.candidates import Candidates
from metarank.types.feature_table import qualified
from metarank.types.view import TrainingSet, fold_of_rows

DATA = makers.blocks()
NEW = makers.blocks(30, seed=9)


SPARSE = {"words": makers.sparse().X, "title": makers.texts().texts}, makers.texts().Y


def parts(data: Dataset) -> dict:
    """The blocks as a user has them."""
    numbers = pd.DataFrame(data.X["numbers"], columns=data.X.columns["numbers"])
    own = {"title": data.X["title"], "vector": data.X["vector"], "numbers": numbers}
    return own | {"colour": data.X["colour"][:, 0].tolist()}


def frame(data: Dataset) -> pd.DataFrame:
    numbers = {f"numbers {j}": data.X["numbers"][:, j] for j in range(3)}
    own = {"title": data.X["title"], "vector": list(data.X["vector"])} | numbers
    return pd.DataFrame(own | {"colour": data.X["colour"][:, 0]})


@pytest.fixture(scope="module")
def model() -> MetaRanker:
    return MetaRanker(**makers.QUICK).fit(DATA)


def same(a, b) -> None:
    assert a.labels.tobytes() == b.labels.tobytes()
    assert a.scores.tobytes() == b.scores.tobytes()


def test_the_same_answer_by_every_way_in_and_any_number_of_threads(model, tmp_path):
    ranking = model.rank(NEW, k=3)
    same(ranking, model.rank(parts(NEW), k=3))
    same(ranking, model.rank(Blocks.of(parts(NEW)), k=3))
    model.save(tmp_path / "model")
    same(ranking, load(tmp_path / "model").rank(parts(NEW), k=3))
    again = MetaRanker(**makers.QUICK | {"n_jobs": 4}).fit(parts(DATA), DATA.Y, n_labels=3)
    same(ranking, MetaRanker(**makers.QUICK | {"n_jobs": 4}).fit(DATA).rank(NEW, k=3))
    assert [line for line in again.choices_ if line.startswith("block")] == [
        line for line in model.choices_ if line.startswith("block")
    ]


def test_rows_do_not_depend_on_the_others(model):
    whole = model.rank(NEW, k=3)
    rows = np.random.default_rng(0).permutation(NEW.n_rows)
    mixed = model.rank(NEW.take(rows), k=3)
    assert whole.scores[rows].tobytes() == mixed.scores.tobytes()
    for row in range(4):
        assert model.rank(NEW.take([row]), k=3).scores.tobytes() == whole.scores[[row]].tobytes()


def test_a_service_is_ready_before_its_first_request(model):
    pytest.importorskip("fastapi")
    from metarank.apps.serve.reload import warm_up

    for of in (
        model,
        makers.fitted("texts"),
        makers.fitted("dense"),
        MetaRanker(**makers.QUICK).fit(*SPARSE),
    ):
        warm_up(of)
        assert of.rank(of.encoder_.example(), k=1).labels.shape == (1, 1)


def test_a_data_frame_is_blocks():
    model = MetaRanker(**makers.QUICK).fit(frame(DATA), DATA.Y)
    assert any(line.startswith("block title: text") for line in model.choices_)
    assert model.rank(frame(NEW), k=2).labels.shape == (30, 2)
    assert {p.name: p.columns for p in model.encoder_.parts}["numbers"] == [f"numbers {j}" for j in range(3)]


ALONE = {
    "text": ({"body": makers.texts().texts}, makers.texts().texts),
    "vector": ({"body": makers.dense().X}, makers.dense().X),
    "sparse": ({"body": makers.sparse().X}, makers.sparse().X),
}


@pytest.mark.parametrize("kind", ALONE)
def test_one_block_alone_is_what_it_was(kind):
    blocks, plain = ALONE[kind]
    Y = makers.texts().Y
    one, other = MetaRanker(**makers.QUICK).fit(blocks, Y), MetaRanker(**makers.QUICK).fit(plain, Y)
    assert one.feature_columns_ == other.feature_columns_
    same(one.rank(blocks, k=3), other.rank(plain, k=3))
    same(one.rank(blocks, k=3), one.rank(plain, k=3))


def test_blocks_are_described_by_themselves_and_explanations_add_up(model):
    described = {name.split("(")[1].split(")")[0] for name in model.feature_columns_ if "): " in name}
    used = {part.name for part in model.encoder_.used}
    assert len(used) > 1
    assert described <= used
    assert "label name (title): cosine" in model.feature_columns_
    assert not any(name.startswith("label name (vector)") for name in model.feature_columns_)
    page = model.explain(NEW.take([0]), 1)
    assert page.base + sum(v for _, _, v in page.contributions) == pytest.approx(page.score, abs=1e-4)


def test_rows_and_labels_change(model, tmp_path):
    changed = makers.fitted("blocks")
    changed.save(tmp_path / "m")
    changed = load(tmp_path / "m")
    n = changed.n_rows_
    changed.partial_fit(dict(NEW.X), NEW.Y)
    assert list(changed.row_names_)[n:] == NEW.X["title"]
    assert changed.partial_fit(NEW.take([0])).n_rows_ == n + NEW.n_rows + 1
    changed.update_labels(rename={"bread": "a loaf of bread"}, add=["salt"])
    assert changed.n_labels_ == 4
    assert changed.rank(NEW, k=4).labels.max() == 3
    changed.save(tmp_path / "n")
    same(changed.rank(NEW, k=4), load(tmp_path / "n").rank(NEW, k=4))
    own = int(NEW.Y[0].indices[0])
    assert changed.explain(NEW.take([0]), own).neighbors[0].distance == pytest.approx(0, abs=1e-6)


BAD_ROWS = [
    (
        lambda X: {k: v for k, v in X.items() if k != "title"},
        "X must have the block 'title', as in fit; it has",
    ),
    (lambda X: X | {"more": X["title"]}, "no other block than in fit .*, got 'more': leave it out"),
    (lambda X: X | {"title": X["title"][:3]}, "must have as many rows: 'title' has 3, 'numbers' has 30"),
    (lambda X: X | {"vector": X["vector"][:, :2]}, "the block 'vector' of X: X has 2 features, but .* 5"),
    (
        lambda X: X | {"vector": X["vector"] * np.nan},
        "the block 'vector' of X contains NaN at row 0, column 0",
    ),
    (
        lambda X: X | {"numbers": X["numbers"].iloc[:, :2]},
        "the block 'numbers' of X must have the columns numbers 0, numbers 1, numbers 2",
    ),
    (lambda X: X["title"], "X must be a dict of the blocks title, numbers, colour, vector, or a data frame"),
    (lambda X: X["vector"], "X must be a dict of the blocks"),
]


@pytest.fixture(scope="module")
def every() -> MetaRanker:
    """A model that leaves no block out."""
    model = MetaRanker(**makers.QUICK).fit(parts(DATA), DATA.Y)
    for part in model.encoder_.parts:
        part.weight = 1.0
    return model


@pytest.mark.parametrize(("change", "message"), BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_rows_that_do_not_suit_the_model(change, message, every):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        every.rank(change(parts(NEW)), k=2)
    assert "\n" not in str(error.value)


COUNTED = pd.DataFrame({"price": DATA.X["numbers"][:, 0], "size": DATA.X["vector"][:, 0]})
WORDS = sp.random(60, 300, 0.05, "csr", random_state=np.random.default_rng(0))
FRAME, PRICE = frame(DATA), COUNTED[["price"]]
# Training rows, what is asked for, and doors of no rows.
EMPTY = {
    "frame": (FRAME, {}, [FRAME.iloc[:0], {k: [] for k in FRAME}, Dataset(FRAME).take([])]),
    "a vector": ({"v": DATA.X["vector"]}, {}, [{"v": []}, DATA.X["vector"][:0], []]),
    "numbers": ({"price": COUNTED["price"]}, {}, [{"price": []}, [], np.zeros((0, 1)), PRICE[:0]]),
    "categories": ({"c": DATA.X["colour"][:, 0]}, {}, [{"c": []}, []]),
    "sparse": ({"s": WORDS, "t": DATA.X["title"]}, {}, [{"s": WORDS[:0], "t": []}]),
    "a frame of numbers": (COUNTED, {"price": "numbers"}, [COUNTED[:0]]),
}


@pytest.mark.parametrize("case", EMPTY)
def test_no_rows_have_an_empty_answer(case):
    X, wish, doors = EMPTY[case]
    model = MetaRanker(**makers.QUICK).fit(Blocks.of(X, wish) if wish else X, DATA.Y)
    for rows in doors:
        assert model.rank(rows, k=2).labels.shape == (0, 2)
        assert model.predict(rows).shape == (0, 3)
        assert model.predict_proba(rows).shape == (0, 3)
        assert model.decision_function(rows).shape == (0, 3)
        assert model.review_queue(rows) == []


def test_a_frame_of_numbers_is_blocks_if_it_is_asked_for():
    model = MetaRanker(**makers.QUICK).fit(Blocks.of(COUNTED, {"price": "numbers"}), DATA.Y)
    assert {p.name: p.columns for p in model.encoder_.parts} == {"price": ["price"], "numbers": ["size"]}
    same(model.rank(COUNTED, k=2), model.rank(COUNTED[["size", "price"]], k=2))
    own = MetaRanker(**makers.QUICK).fit(Dataset(Blocks.of(COUNTED), DATA.Y))
    assert own.rank(COUNTED, k=2).labels.shape == (60, 2)


MISSING = [
    (COUNTED, "numbers may be missing in blocks, which data.Blocks.of makes"),
    (COUNTED.to_numpy(), "numbers may be missing in blocks, which data.Blocks.of makes"),
    (FRAME.iloc[:0], "at least 2 rows, to hold one out, got none|0 sample"),
]


@pytest.mark.parametrize(("X", "message"), MISSING, ids=range(len(MISSING)))
def test_rows_that_no_fit_takes_tell_how_to_go_on(X, message):
    with pytest.raises(ValueError, match=message):
        MetaRanker().fit(X, DATA.Y)
    if "blocks" in message:
        with pytest.raises(ValueError, match=r"numbers may be missing in blocks, which data.Blocks.of makes"):
            Dataset(X)


def test_numbers_without_their_name_are_checked_too():
    model = MetaRanker(**makers.QUICK).fit({"n": COUNTED["price"]}, DATA.Y)
    same(model.rank({"n": [1.0, None]}, k=2), model.rank([1.0, None], k=2))
    for rows, message in (([float("inf")], "infinity"), ([[1, 2]], "must have the columns n, as in fit")):
        with pytest.raises(ValueError, match=f"the block 'n' of X.* {message}"):
            model.rank(rows)


NOISE = np.random.default_rng(0).normal(size=(DATA.n_rows, 20))


@pytest.fixture(scope="module")
def model_with_noise() -> MetaRanker:
    return MetaRanker(**makers.QUICK).fit(parts(DATA) | {"noise": NOISE}, DATA.Y)


def test_blocks_of_no_use_are_left_out_and_may_be_missing(model_with_noise):
    model = model_with_noise
    assert "block noise: vector, left out, of no use to held-out rows" in model.choices_
    with_it = parts(NEW) | {"noise": NOISE[: NEW.n_rows]}
    same(model.rank(with_it, k=3), model.rank(parts(NEW), k=3))


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (np.full((30, 20), np.nan), "the block 'noise' of X contains NaN"),
        (np.zeros((4, 20)), "must have as many rows: 'title' has 30, 'noise' has 4"),
        (["a text"] * 30, "the block 'noise' of X must hold a vector per row, got 'a text'"),
    ],
)
@pytest.mark.parametrize("door", [dict, Blocks.of])
def test_blocks_of_no_use_are_checked_where_they_are_given(noise, message, door, model_with_noise):
    with pytest.raises((ValueError, TypeError), match=message):
        model_with_noise.rank(door(parts(NEW) | {"noise": noise}), k=3)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, None),
        ({"noise": [0.0] * 20}, None),
        ({"noise": [0.0] * 3}, "must have at least 20 items, got a list of 3"),
        ({"noise": "a text"}, "must be a valid list"),
        ({"other": 1}, "is not a field"),
    ],
)
def test_a_service_checks_blocks_of_no_use(more, said, model_with_noise):
    pytest.importorskip("fastapi")
    from fastapi import HTTPException

    from metarank.apps.serve.instances import InstanceReader

    reader = InstanceReader(model_with_noise)
    row = {"title": "sea", "vector": [0.0] * 5, "colour": "red"} | {f"numbers {j}": 1.0 for j in range(3)}
    row = {name: value for name, value in row.items() if name in reader.blocks} | more
    if said is None:
        assert "noise" not in reader.read([row], "instances")
        return
    with pytest.raises(HTTPException, match=said):
        reader.read([row], "instances")


@pytest.mark.parametrize(
    ("X", "blocks", "message"),
    [
        (
            {"title": DATA.X["title"], "body": DATA.X["title"], "title + body": DATA.X["vector"]},
            {"title": "text", "body": "text"},
            r"X must have no block 'title \+ body', as all blocks of texts are called: rename it",
        ),
        (makers.texts().texts, {"a": "text"}, "X must be a dict of blocks or a data frame, got list"),
        (
            parts(DATA) | {"title": [""] * DATA.n_rows},
            {"title": "text"},
            "the block 'title' of X: X must hold texts with words",
        ),
    ],
)
def test_wishes_and_rows_that_are_refused_before_any_work(X, blocks, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MetaRanker(**makers.QUICK).fit(Blocks.of(X, blocks), DATA.Y)


UNSEEN = [(0, None, False), (3, "3 of 40 rows", False), (20, "20 of 40", False), (21, "21 of 40 rows", True)]


@pytest.mark.parametrize(("n", "told", "warned"), UNSEEN)
def test_categories_that_fit_did_not_meet_are_told_of(n, told, warned, caplog, recwarn):
    encoder = BlocksEncoder()
    encoder.fit_encode(Blocks.of({"code": [1, 2] * 20}, {"code": "categories"}))
    with caplog.at_level("INFO", "metarank.data"):
        encoder.encode({"code": [7.0] * n + ["1.0"] * (39 - n) + [None]})
    said = [record.getMessage() for record in caplog.records]
    assert said == (
        [] if told is None else [f"{n} of 40 rows have a value of 'code' that was not seen in fit"]
    )
    assert told is None or said[0].startswith(told)
    assert [str(w.message) for w in recwarn] == (said if warned else [])


def test_wishes_are_kept():
    model = MetaRanker(**makers.QUICK).fit(
        Blocks.of({n: x for n, x in parts(DATA).items() if n != "numbers"}, {"colour": "text"}), DATA.Y
    )
    assert {p.name: p.kind for p in model.encoder_.parts if not p.is_joint} == {
        "title": "text",
        "vector": "vector",
        "colour": "text",
    }


def test_a_word_in_a_title_is_not_one_in_a_body():
    rng = np.random.default_rng(0)
    n = 80
    title, Y = rng.integers(0, 2, n), np.zeros((n, 2), np.float32)
    Y[np.arange(n), title] = 1
    words = np.array(["left page", "right page"])
    X = {"title": words[title].tolist(), "body": words[1 - title].tolist()}
    model = MetaRanker(**makers.QUICK).fit(Blocks.of(X, dict.fromkeys(X, "text")), Y)
    assert model.rank({"title": ["left"], "body": ["right"]}, k=1).labels.item() == 0
    assert model.rank({"title": ["right"], "body": ["left"]}, k=1).labels.item() == 1


def test_names_are_found_in_the_fields_of_every_way_in():
    X = {"title": ["the sea", "a moon", "bread"] * 10, "body": ["salt water", "tides at sea", "baking"] * 10}
    data = Dataset(X=Blocks.of(X, dict.fromkeys(X, "text")), Y=np.eye(3)[np.arange(30) % 3])
    data = replace(data, label_names=["sea", "moon", "bread"])
    model = MetaRanker(shortlister=[NeighborShortlister(), NameMentions()], **makers.QUICK).fit(data)
    same(model.rank(data, k=3), model.rank(X, k=3))


# --- sources and encoders ------------------------------------------------------------


def encoded() -> tuple[BlocksEncoder, TrainingSet, np.ndarray]:
    encoder = BlocksEncoder()
    X = encoder.fit_encode(DATA.X)
    Y = DATA.Y.toarray()
    text = encoder.rows_of_names(makers.TOPICS, None)

    def training(Y: np.ndarray) -> TrainingSet:
        fold = fold_of_rows(len(Y), 3, 0)
        return TrainingSet(X, sp.csr_matrix(Y), fold, label_text=text, blocks=encoder.blocks)

    return encoder, training, Y


@pytest.mark.parametrize("scorer", [NeighborShortlister(names=True), LabelNeighbors(), Centroids()])
def test_own_labels_do_not_reach_own_columns_and_proposals(scorer):
    encoder, training, Y = encoded()
    sources = over_blocks([Source(scorer, scorer.proposes, True)], encoder.blocks)
    any_kind = {"colour"} if scorer.suits_any_block else set()
    assert {source.scorer.block for source in sources} == {"title", "vector", "numbers"} | any_kind
    for source in sources:
        for row in (0, 11, 29):
            flipped = Y.copy()
            flipped[row] = 1 - Y[row]
            rows, pairs = np.array([row]), Candidates.all_labels(1, 3)
            a, b = (held_out_columns(source.scorer, training(y), pairs, rows=rows) for y in (Y, flipped))
            assert {k: v.tobytes() for k, v in a.items()} == {k: v.tobytes() for k, v in b.items()}
            if source.proposes:
                a, b = (held_out_shortlist(source.scorer, training(y), 2, rows=rows) for y in (Y, flipped))
                assert a.labels.tobytes() == b.labels.tobytes()


def test_fields_describe_what_the_block_of_all_their_words_proposes():
    rows = {"title": ["wave wind", "oven flour"], "body": ["sea", "bread"], "numbers": [1.0, 2.0]}
    encoder = BlocksEncoder()
    encoder.fit_encode(Blocks.of(rows))
    assert encoder.joined_fields == ["title", "body"]
    scorers = (NeighborShortlister(), LabelNeighbors(), Centroids(), NameScorer())
    sources = [Source(scorer, scorer.proposes, True) for scorer in scorers]
    found = over_blocks(sources, encoder.blocks, encoder.joined_fields)
    roles = {(s.scorer.block, type(s.scorer.scorer).__name__): s.proposes for s in found}
    joint = ["title + body"]
    assert {block for block, name in roles if name == "LabelNeighbors"} == set(joint)
    assert {block for block, name in roles if name == "Centroids"} == {"title", "body", "numbers", *joint}
    assert [block for (block, name), proposes in roles.items() if name == "NameScorer" and proposes] == joint


@pytest.mark.parametrize("block", ["price", "colour"])
@pytest.mark.parametrize("effort", ["low", "medium"])
def test_a_number_and_a_category_tell_labels(block, effort):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    own = {"price": list(3.0 * y + rng.normal(size=150)), "colour": [["red", "blue", "green"][i] for i in y]}
    X = {"words": [" ".join(rng.choice(["a1", "b1", "c1", "d1"], 3)) for _ in y], block: own[block]}
    model = MetaRanker(effort=effort, n_jobs=1, random_state=0).fit(X, [[str(i)] for i in y])
    found = model.rank(X, k=1).to_frame()["label_name"]
    assert np.mean(found.to_numpy() == y.astype(str)) > 0.8


@pytest.mark.parametrize(
    ("rows", "dense_columns", "wanted"),
    [
        (20, 0, ["LinearClassifier", "KernelRidge"]),
        (20, 8, ["LinearClassifier", "KernelRidge"]),
        (20, 40, ["KernelRidge"]),
        (20_000, 40, ["LinearClassifier"]),
    ],
)
def test_many_columns_of_vectors_beside_words_are_left_to_the_ridge(rows, dense_columns, wanted):
    found = choose_features("auto", Sizes(rows, 5, is_sparse=True, dense_columns=dense_columns))
    assert [type(scorer).__name__ for scorer in found if scorer.is_classifier] == wanted


def test_a_block_is_described_as_if_it_were_alone():
    encoder, training, Y = encoded()
    data, pairs = training(Y), Candidates.all_labels(len(Y), 3)
    for source in over_blocks([Source(LabelNeighbors(), False, True)], encoder.blocks):
        own = data.block(source.scorer.block).of(data.X)
        alone = TrainingSet(own, data.Y, data.fold)
        wanted = held_out_columns(LabelNeighbors(), alone, pairs)
        found = held_out_columns(source.scorer, data, pairs)
        assert {qualified(k, source.scorer.block): v.tobytes() for k, v in wanted.items()} == {
            k: v.tobytes() for k, v in found.items()
        }
        fitted, plain = source.scorer.fit(data.view()), LabelNeighbors().fit(alone.view())
        a, b = fitted.score(data.X, pairs), plain.score(own, pairs)
        assert [v.tobytes() for v in a.values()] == [v.tobytes() for v in b.values()]


def test_every_block_has_rows_of_unit_length_on_average():
    encoder = BlocksEncoder()
    X = encoder.fit_encode(DATA.X)
    for block in encoder.columns:
        own = block.of(X)
        own = own.toarray() if sp.issparse(own) else own
        assert (own.astype(np.float64) ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-5), block.name


def test_weights_show_what_serves():
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix(np.eye(4, dtype=np.float32)[rng.integers(0, 4, 80)])
    good = (Y @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(80, 6))).astype(np.float32)
    noise = rng.normal(size=(80, 6)).astype(np.float32)
    encoder = BlocksEncoder()
    X = encoder.fit_encode(Blocks.of({"noise": noise, "good": good}))
    weights, lines = block_weights(encoder.columns, X, Y, fold_of_rows(80, 3, 0), 0)
    assert weights == {"noise": 0, "good": 1}
    assert lines == [
        "block noise: vector, left out, of no use to held-out rows",
        "block good: vector, weight 1.00",
    ]
    kept, _ = block_weights(encoder.columns, X, Y, fold_of_rows(80, 3, 0), 0, ["noise"])
    assert kept["noise"] == pytest.approx(0.25 * kept["good"])


def test_numbers_and_categories_of_new_rows():
    numbers = NumbersEncoder()
    X = np.float32([[1, 5, 7], [3, np.nan, 7]])
    np.testing.assert_array_equal(numbers.fit_encode(X), [[-1, 0, 0, 0], [1, 0, 0, 1]])
    np.testing.assert_array_equal(numbers.encode(np.float32([[np.nan, 6, 8]])), [[0, 1, 1, 0]])
    colours = CategoriesEncoder()
    first = colours.fit_encode(np.array([["red", "a"], ["blue", None]], object))
    np.testing.assert_array_equal(first.toarray(), [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(colours.encode(np.array([["green", "a"]], object)).toarray(), [[0, 0, 1]])

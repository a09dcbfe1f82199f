"""`LabelEmbedder`: its networks against slow twins, what it learns, and what it keeps."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from metarank import Dataset, _core, load
from metarank.metrics import evaluate
from metarank.text import LabelEmbedder
from metarank.text.index import LabelIndex
from metarank.text.scores import ScoredLabels

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from metarank.text.network import Network  # noqa: E402
from metarank.text.training import labels_of_step, softmax_loss, warp_loss  # noqa: E402

COMBINES = ("lale", "id", "text", "concat", "gile")
COLOURS = ["red", "green", "blue", "white", "black"]
THINGS = ["shirt", "shoe", "hat", "watch", "bag"]
NAMES = [f"colour: {c}" for c in COLOURS] + [f"type: {t}" for t in THINGS]
SIZES = {"subword_dim": 16, "hidden_dim": 16, "embedding_dim": 16}
SMALL = {**SIZES, "n_jobs": 1, "batch_size": 32, "encoder": "bow"}


def products(n, seed=0):
    """Titles such as "nice red shirt", with the colour and the thing as labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, 10), np.float32)
    texts = []
    for row in Y:
        c, t = rng.integers(5, size=2)
        texts.append(f"{rng.choice(['nice', 'new', 'men', 'women'])} {COLOURS[c]} {THINGS[t]}")
        row[[c, 5 + t]] = 1
    return texts, Y


def fitted(n=200, **params):
    texts, Y = products(n)
    return LabelEmbedder(**{**SMALL, "n_epochs": 4, "learning_rate": 0.01, **params}).fit(texts, Y, NAMES)


@pytest.fixture(scope="module")
def model():
    """A small fitted model; not to be changed."""
    return fitted(n_epochs=8)


def answers(model, texts):
    ranking = model.rank(texts, k=3)
    return [a.tobytes() for a in (ranking.labels, ranking.scores, model.decision_function(texts))]


# --- the networks ------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slow_summary(encoder, w, x):
    """h of subword vectors x (T, G), in float64."""
    if encoder == "bow":
        return np.tanh(w["hidden.weight"] @ x.mean(axis=0) + w["hidden.bias"])
    if encoder == "mean":
        return x.sum(axis=0) / np.sqrt(len(x))
    if encoder == "cnn":
        padded = np.vstack([np.zeros_like(x[:1]), x, np.zeros_like(x[:1])])
        responses = [
            np.einsum("hgw,wg->h", w["convolution.weight"], padded[t : t + 3]) + w["convolution.bias"]
            for t in range(len(x))
        ]
        return np.tanh(np.max(responses, axis=0))
    last = []
    for suffix, steps in (("", x), ("_reverse", x[::-1])):
        h = c = np.zeros(w[f"lstm.weight_hh_l0{suffix}"].shape[1])
        for step in steps:
            gates = w[f"lstm.weight_ih_l0{suffix}"] @ step + w[f"lstm.bias_ih_l0{suffix}"]
            gates = gates + w[f"lstm.weight_hh_l0{suffix}"] @ h + w[f"lstm.bias_hh_l0{suffix}"]
            i, f, g, o = np.split(gates, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        last.append(h)
    return np.concatenate(last)


def slow_encode(encoder, w, side, texts, relu):
    own = {n.removeprefix(f"{side}."): v for n, v in w.items()}
    out = np.zeros((len(texts), len(own["dense.bias"])))
    for row, text in zip(out, texts):
        if (text != 0).any():
            h = slow_summary(encoder, own, w["subwords.weight"][text[text != 0]])
            row[:] = own["dense.weight"] @ h + own["dense.bias"]
    return np.maximum(out, 0) if relu else out


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "bow", "mean"])
def test_encoders_are_their_slow_twins(encoder):
    """Of texts of any length, whatever stands beside them."""
    torch.manual_seed(0)
    sizes = {"subword_dim": 6, "hidden_dim": 10, "embedding_dim": 7}
    network = Network(LabelEmbedder("lale", encoder, bias="label", **sizes), 30, 5)
    for name, values in network.named_parameters():  # biases that start at zero would hide mistakes
        if name != "subwords.weight":
            values.data += 0.1 * torch.randn_like(values)
    lengths = np.array([3, 1, 0, 12, 2])
    texts = np.random.default_rng(0).integers(1, 30, (5, 12)) * (np.arange(12) < lengths[:, None])
    w = {name: values.numpy().astype(float) for name, values in network.state_dict().items()}
    for side, relu in (("query", encoder != "mean"), ("name", False)):
        found = network.encoded(side, texts, 1)
        np.testing.assert_allclose(found, slow_encode(encoder, w, side, texts, relu), atol=1e-5)
        np.testing.assert_allclose(network.encoded(side, texts[:2], 1), found[:2], atol=1e-6)


def test_warp_by_hand():
    # Two labels are less than 1 behind the relevant one: (1 + 1/2) / 2 * (.5 + 1.25).
    loss = warp_loss(torch.tensor([[1.0, 0.5, 1.25, -3.0]]), torch.tensor([[1.0, 0, 0, 0]]))
    assert loss.item() == pytest.approx(0.75 * 1.75)


def test_softmax_by_hand_and_against_its_slow_twin():
    # Shares 1/4 and 3/4: one label; both, of which each is half of the target; none.
    logits = torch.tensor([[0.0, np.log(3)]] * 3)
    losses = [softmax_loss(logits[:1], torch.tensor([row])).item() for row in ([1.0, 0], [1.0, 1], [0.0, 0])]
    np.testing.assert_allclose(losses, [np.log(4), (np.log(4) + np.log(4 / 3)) / 2, 0], rtol=1e-6)
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=(20, 7)) * 5, rng.random((20, 7)) < 0.3
    expected = 0.0
    for row, mask in zip(scores, relevant):
        shares = np.exp(row) / np.exp(row).sum()
        expected += -np.log(shares[mask]).mean() if mask.any() else 0
    found = softmax_loss(torch.from_numpy(scores), torch.from_numpy(relevant).double())
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("combine", COMBINES)
def test_no_form_has_a_bias_of_its_own(combine):
    assert len(set(fitted(combine=combine, n_epochs=1).label_bias_)) == 1
    assert not fitted(combine=combine, n_epochs=2, bias="none").label_bias_.any()


def test_labels_of_a_step_are_the_relevant_ones_and_random_others():
    Y = sp.csr_matrix((np.random.default_rng(0).random((30, 12)) < 0.1).astype(np.float32))
    rng = np.random.default_rng(1)
    for _ in range(50):
        rows = rng.choice(30, 5, replace=False)
        labels, log_chance = labels_of_step(Y, rows, 6, rng)
        relevant = np.unique(Y[rows].indices)
        assert set(relevant) <= set(labels)
        assert (np.diff(labels) > 0).all()
        assert len(labels) == max(6, len(relevant) + (len(relevant) < 12))
        share = Y.toarray().mean(axis=0, dtype=float)[labels]
        drawn = (len(labels) - len(relevant)) / (12 - len(relevant))
        np.testing.assert_allclose(np.exp(log_chance), 1 - (1 - share) ** 4 * (1 - drawn))
    assert labels_of_step(Y, np.arange(3), 12, rng)[1].tolist() == [0] * 12


# --- what it learns ----------------------------------------------------------------


@pytest.mark.check_beyond(3)
@pytest.mark.parametrize(
    "params",
    [
        *({"combine": c, "encoder": e} for c in COMBINES for e in ("bow", "mean")),
        *({"encoder": e} for e in ("bilstm", "cnn")),
        {"loss": "warp"},
        {"loss": "softmax", "bias": "none"},
        # As the paper prints it: scores of any sign from factors that have none.
        {"encoder": "bilstm", "name_activation": "relu", "bias": "none"}
        | {"n_epochs": 25, "learning_rate": 0.01},
        {"dropout": 0.3, "n_epochs": 15},
    ],
    ids=str,
)
def test_every_model_learns(params):
    model = fitted(**{"n_epochs": 10, "learning_rate": 0.02, "patience": 15, **params})
    texts, Y = products(100, seed=1)
    assert evaluate(Y, model.rank(texts, k=2), ["P@2"])["P@2"] > 0.85
    assert len(model.history_["nDCG@5"]) >= model.best_epoch_ >= 1


def test_sampled_labels_learn_the_same_probabilities():
    """The correction for labels left out keeps probabilities where they were."""
    texts, Y = products(300)
    rare = np.hstack([Y, np.zeros((300, 200), np.float32)])
    names = [*NAMES, *(f"other: {i}" for i in range(200))]
    params = {**SMALL, "n_epochs": 8, "learning_rate": 0.02, "validation_fraction": 0.0}
    for sampled in (None, 40):
        model = LabelEmbedder(**params, sampled_labels=sampled).fit(texts, rare, names)
        assert model.predict_proba(texts).sum(axis=1).mean() == pytest.approx(2, abs=0.4)


def test_further_texts_teach_words_that_no_row_has():
    texts, Y = products(150)
    further = [
        f"{word} {old}" for word in ("red", "scarlet") for old in ("silk", "rose", "wine", "silk")
    ] * 20
    small = {**SMALL, "encoder": "mean", "n_epochs": 2}
    taught = LabelEmbedder(**small).fit(texts, Y, NAMES, unlabelled=further)
    red, scarlet, green = taught.encode(["red", "scarlet", "green"])
    assert red @ scarlet > 3 * abs(green @ scarlet)
    assert not LabelEmbedder(**small).fit(texts, Y, NAMES).encode(["q"]).any()


# --- laws --------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "bow", "mean"])
def test_the_same_seed_and_threads_give_the_same_bytes(encoder):
    texts, _ = products(40, seed=2)
    params = {"encoder": encoder, "n_epochs": 2, "dropout": 0.2, "sampled_labels": 6}
    for n_jobs in (1, 2):
        before, state = torch.get_num_threads(), torch.get_rng_state()
        one, again = (answers(fitted(**params, n_jobs=n_jobs), texts) for _ in range(2))
        assert one == again
        assert torch.get_num_threads() == before
        assert torch.equal(torch.get_rng_state(), state)
    assert answers(fitted(**params, random_state=1), texts) != one


def test_answers_agree_and_permute_with_their_rows(model):
    texts, _ = products(20, seed=3)
    scores = model.decision_function(texts)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(model.decision_function([texts[i] for i in order]), scores[order], atol=1e-5)
    ranking = model.rank(texts, k=12)
    assert ranking.labels.shape == (20, 12)
    assert (ranking.labels[:, 10:] == -1).all()
    np.testing.assert_array_equal(ranking.scores[:, :10], -np.sort(-scores, axis=1))
    np.testing.assert_allclose(model.predict_proba(texts), 1 / (1 + np.exp(-scores)), rtol=1e-6)
    product = model.encode(texts) @ model.label_vectors_.T + model.label_bias_
    np.testing.assert_allclose(product, scores, atol=1e-4)
    for row in model.decision_function(["", "☃☃", "   "]):  # no known subword
        np.testing.assert_array_equal(row, model.label_bias_)
    assert model.rank([], k=3).labels.shape == (0, 3)
    long = "red shirt " * 2000
    np.testing.assert_array_equal(*(model.decision_function([t]) for t in (long, long + " blue hat")))
    assert answers(model, ["\ud800 red shirt"]) == answers(model, ["? red shirt"])


@pytest.mark.parametrize("combine", ["lale", "text", "concat", "gile"])
def test_labels_never_seen_in_training(combine):
    texts, Y = products(100)
    kept, new = [0, 1, 2, 3, 5, 6, 7, 8], ["type: bag", "colour: black"]
    params = {**SMALL, "n_epochs": 3, "bias": "label"}
    model = LabelEmbedder(combine, **params).fit(texts, Y[:, kept], [NAMES[i] for i in kept])
    more = model.add_labels(new)
    assert (model.n_labels_, more.n_labels_, more.label_names_[8:]) == (8, 10, new)
    np.testing.assert_array_equal(more.label_vectors_, [*model.label_vectors_, *model.encode_names(new)])
    np.testing.assert_allclose(more.label_bias_[8:], model.label_bias_.mean(), rtol=1e-6)
    np.testing.assert_array_equal(*(m.decision_function(["nice red shirt"])[:, :8] for m in (model, more)))
    one_by_one = model.add_labels(new[:1]).add_labels(new[1:])
    np.testing.assert_allclose(one_by_one.label_vectors_, more.label_vectors_, atol=1e-6)


@pytest.mark.parametrize("combine", COMBINES)
def test_save_load_pickle_and_later_parameters(combine, tmp_path):
    texts, _ = products(20, seed=3)
    model = fitted(combine=combine, n_epochs=1, random_state=3)
    expected = answers(model, texts)
    changed = copy.copy(model).set_params(encoder="cnn", combine="text", max_length=1, dropout=0.5)
    for i, other in enumerate((model, changed, pickle.loads(pickle.dumps(model)))):
        assert answers(other, texts) == expected
        other.save(tmp_path / f"{i}")
        again = load(tmp_path / f"{i}")
        assert answers(again, texts) == expected
        assert (again.combine, again.history_, again.random_state) == (combine, model.history_, 3)
    if combine != "id":
        more = again.add_labels(["colour: pink"])
        more.save(tmp_path / "more")
        assert answers(load(tmp_path / "more"), texts) == answers(more, texts)
    weights = next((tmp_path / "0").glob("*weights.safetensors"))
    theirs = pytest.importorskip("safetensors.torch").load_file(weights)
    for name, values in model.network_.state_dict().items():
        assert torch.equal(theirs[name], values)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        load(tmp_path / "0")


# --- what comes in -----------------------------------------------------------------


def test_names_may_be_equal_empty_or_missing_and_labels_come_as_lists():
    texts, Y = products(60)
    small = {**SMALL, "n_epochs": 1}
    expected = LabelEmbedder(**small).fit(texts, Y, NAMES).decision_function(texts)
    lists = [[NAMES[i] for i in np.flatnonzero(row)] for row in Y]
    ds = Dataset(texts=texts, Y=sp.csr_matrix(Y), label_names=NAMES)
    for given in ((texts, lists, NAMES), (ds,)):
        assert LabelEmbedder(**small).fit(*given).decision_function(ds).tobytes() == expected.tobytes()
    model = LabelEmbedder(**small).fit(texts, Y, ["colour", "colour", "", "", *NAMES[4:]])
    assert model.decision_function(texts).shape == (60, 10)
    unnamed = LabelEmbedder("id", **small).fit(texts, Y)
    assert unnamed.label_names_ is None
    with pytest.raises(ValueError, match="names are not used"):
        unnamed.encode_names(["colour"])
    with pytest.raises(ValueError, match="a Dataset without"):
        model.rank(Dataset(X=np.ones((2, 2)), Y=[[0], [1]]))


@pytest.mark.parametrize("combine", COMBINES)
def test_the_smallest_inputs(combine):
    params = {**SMALL, "n_epochs": 1}
    one = LabelEmbedder(combine, **params).fit(["red"], [[0]], ["colour"])
    assert one.rank(["red"], k=2).labels.tolist() == [[0, -1]]
    without = LabelEmbedder(combine, **params).fit(["red", ""], np.zeros((2, 3)), ["a", "b", "c"])
    assert np.isfinite(without.decision_function(["blue"])).all()
    two = LabelEmbedder(combine, sampled_labels=1, **params).fit(["red", "green"], [[0], [1]], ["a", "b"])
    assert np.isfinite(two.decision_function(["red"])).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        *(({name: "x"}, f"{name} must be one of") for name in ("combine", "encoder", "loss", "bias")),
        ({"name_activation": "tanh"}, "name_activation must be one of"),
        ({"encoder": "bilstm", "hidden_dim": 15}, "hidden_dim must be even"),
        ({"vocabulary_size": 1}, "vocabulary_size must be at least 2, got 1"),
        ({"n_epochs": 0}, "n_epochs must be at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a positive number, at most 1e6, got -1.0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be a number in \[0, 1\), got 1.0"),
        ({"dropout": float("nan")}, r"dropout must be a number in \[0, 1\), got nan"),
        ({"dropout": "0.3"}, r"dropout must be a number in \[0, 1\)"),
        ({"sampled_labels": 0}, "sampled_labels must be at least 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"encoder": "mean", "name_activation": "relu"}, "must be 'linear' for encoder='mean'"),
        ({"id_penalty": -1}, "id_penalty must be a number in"),
        ({"id_penalty": 0.1, "combine": "text"}, "id_penalty must be 0 for combine='text'"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LabelEmbedder(**{**SMALL, **params}).fit(["red"], [[0]], ["colour"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["a", "b"], np.array([[1, np.nan], [0, 1]]), ["x", "y"]), "NaN at row 0, column 1"),
        ((["a", "b"], np.array([[1, 0]]), ["x", "y"]), r"Y must have a row per text \(2\), got 1"),
        ((["a"], np.array([[1, 0]]), ["x"] * 3), r"label_names must hold one name per label \(2\), got 3"),
        ((["a"], np.array([[1, 0]])), "label_names must be given for combine='lale'"),
        (([], np.zeros((0, 2)), ["x", "y"]), "at least one text"),
        ((["a"], [[0]], [7]), r"label_names\[0\] must be a string, got 7"),
        ((["a", None], [[0], [0]], ["x"]), r"texts\[1\] must be a string, got None"),
        *((t, "must be a sequence of") for t in (pd.DataFrame({"t": ["a"]}), {"a": 1}, {"a"}, None, "a")),
    ],
    ids=str,
)
def test_bad_input_is_named(given, message):
    given = given if isinstance(given, tuple) else (given, [[0]], ["x"])
    with pytest.raises((ValueError, TypeError), match=message):
        LabelEmbedder(**SMALL).fit(*given)


def test_importing_needs_no_torch():
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *others):\n"
        "        if name == 'torch':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from metarank.text import LabelEmbedder\n"
        "try:\n    LabelEmbedder().fit(['a'], [[0]], ['x'])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'metarank-ltr[text]'" in out


# --- scores of vectors -------------------------------------------------------------


def test_scores_of_pairs_are_those_of_all_labels():
    rng = np.random.default_rng(0)
    Q, F = (rng.normal(size=(n, 37)).astype(np.float32) for n in (50, 70))
    bias = rng.normal(size=70).astype(np.float32)
    scores = _core.vector_scores(Q, F, bias, 1)
    np.testing.assert_allclose(scores, Q.astype(float) @ F.T.astype(float) + bias, atol=1e-4)
    assert scores.tobytes() == _core.vector_scores(Q, F, bias, 4).tobytes()
    assert scores[7].tobytes() == _core.vector_scores(Q[7:8], F, bias, 1).tobytes()
    indptr = np.array([0, *np.arange(2, 101, 2)])
    labels = np.tile(np.array([3, 64], np.int32), 50)
    pairs = _core.vector_scores_of_pairs(Q, F, bias, indptr, labels, 2)
    assert pairs.tobytes() == np.ascontiguousarray(scores[:, [3, 64]]).tobytes()
    with pytest.raises(ValueError, match="bias must have an entry a label"):
        _core.vector_scores(Q, F, bias[:3], 1)


def test_the_index_of_labels_finds_the_greatest_products_and_scores_stay():
    rng = np.random.default_rng(0)
    F, Q = (rng.normal(size=(n, 16)).astype(np.float32) for n in (2000, 30))
    F *= rng.uniform(0.1, 3, (2000, 1)).astype(np.float32)
    labels = ScoredLabels(F, rng.normal(size=2000).astype(np.float32))
    index = LabelIndex(F, labels.bias)
    exact, found = labels.best(Q, 5, 1), labels.best_proposed(Q, 5, 1, index)
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact.labels, found.labels)]) > 0.95
    scores = labels.scores(Q, 1)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, found.labels.astype(int), 1))
    pairs, again = index.propose(Q, 64, 1), LabelIndex(F, labels.bias).propose(Q[::-1], 64, 4)
    rows = np.split(again.labels, again.indptr[1:-1])
    np.testing.assert_array_equal(np.concatenate(rows[::-1]), pairs.labels)
    assert index.propose(Q, 4000, 1).n_pairs == 30 * 2000

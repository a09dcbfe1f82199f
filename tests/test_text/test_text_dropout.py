"""Dropout of `LabelEmbedder`: what is left out, gradients of what stays, and that nothing else changes."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from metarank import load
from metarank.text import LabelEmbedder
from metarank.text.dropout import Dropout
from metarank.text.kinds import COMBINES, ENCODER_KINDS
from metarank.text.subwords import TokenLists

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from metarank.text.checkpoint import fingerprint_of  # noqa: E402
from metarank.text.epochs import Options  # noqa: E402
from metarank.text.gradients import BatchGradients, RowGradient, TextData  # noqa: E402
from metarank.text.losses import FUNCTIONS  # noqa: E402
from metarank.text.network import Network, Sizes  # noqa: E402
from metarank.text.parallel import workers  # noqa: E402

COLOURS = ["red", "green", "blue", "white", "black"]
THINGS = ["shirt", "shoe", "hat", "watch", "bag"]
NAMES = [*COLOURS, *THINGS]
SMALL = {
    "encoder": "bow",
    "subword_dim": 16,
    "hidden_dim": 16,
    "embedding_dim": 16,
    "batch_size": 32,
    "learning_rate": 0.02,
    "n_epochs": 3,
    "n_jobs": 1,
}


def products(n: int = 160, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(seed)
    pairs = [(COLOURS[c], THINGS[t]) for c, t in rng.integers(5, size=(n, 2))]
    return [f"nice {c} {t} {i % 7}" for i, (c, t) in enumerate(pairs)], [list(pair) for pair in pairs]


def fitted(**params) -> LabelEmbedder:
    return LabelEmbedder(**{**SMALL, **params}).fit(*products(), NAMES)


def bytes_of(model: LabelEmbedder) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in model.weights_.items()}


def token_lists(lengths, seed=0, n_subwords=30) -> TokenLists:
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.random.default_rng(seed).integers(1, n_subwords, indptr[-1]).astype(np.int32)
    return TokenLists(indptr, tokens)


# --- what is left out --------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_what_stays_is_scaled_so_that_means_stay(rate):
    mask = Dropout(rate, 0, 0, 0).mask(500, 80)
    assert (mask.shape, mask.dtype) == ((500, 80), np.float32)
    np.testing.assert_allclose(np.unique(mask), [0, 1 / (1 - rate)], rtol=1e-6)
    assert (mask == 0).mean() == pytest.approx(rate, abs=0.01)
    assert mask.mean() == pytest.approx(1, abs=0.05)


def test_each_step_leaves_out_something_else_and_zero_nothing():
    def drawn(*key):
        return Dropout(0.5, *key).mask(20, 8).tobytes()

    assert drawn(0, 1, 2) == drawn(0, 1, 2)
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    dropout = Dropout(0.5, 0, 0, 0)
    assert dropout.mask(20, 8).tobytes() != dropout.mask(20, 8).tobytes()
    assert Dropout(0.0, 0, 1, 2).mask(20, 8) is None


# --- gradients ---------------------------------------------------------------------


def slow_loss(network, data, rows, labels, loss, mask):
    """The mean loss as one formula, text by text, over all of which torch differentiates."""

    def encoded(encoder, lists, mask):
        out = []
        for begin, end in pairwise(lists.indptr):
            ids = torch.from_numpy(lists.tokens[begin:end].astype(np.int64))
            vectors = network.subwords[ids]
            if mask is not None:
                vectors = vectors * torch.from_numpy(mask[begin:end])
            vectors = vectors if len(ids) else network.subwords[:1]
            out.append(encoder(vectors[None], torch.tensor([len(ids)])))
        return torch.cat(out)

    q = encoded(network.query, data.texts.take(rows), mask)
    ids = network.label_ids[labels] if hasattr(network, "label_ids") else None
    names = None
    if hasattr(network, "name"):
        names = encoded(network.name, data.names, None)[data.name_of_label[labels]]
    bias = network.bias[labels] if network.has_label_bias else network.bias
    targets = torch.from_numpy(data.Y[rows][:, labels].toarray().astype(np.float32))
    return FUNCTIONS[loss](q @ network.label_vectors(ids, names).T + bias, targets) / len(rows)


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize(
    ("combine", "encoder", "loss"),
    [*((c, "bow", "bce") for c in COMBINES), *(("lale", e, "warp") for e in ENCODER_KINDS)],
)
def test_gradients_are_those_of_the_slow_twin(combine, encoder, loss, rate):
    rng = np.random.default_rng(0)
    texts, names = token_lists(rng.integers(0, 9, 60)), token_lists([2, 1, 0, 3], seed=1)
    Y = sp.csr_matrix((rng.random((60, 6)) < 0.3).astype(np.float32))
    data = TextData(texts, Y, names, np.array([0, 1, 1, 2, 3, 0]))
    torch.manual_seed(0)
    network = Network(30, 6, Sizes(5, 8, 7), encoder=encoder, combine=combine)
    rows, labels = rng.permutation(60)[:40], np.array([0, 2, 3, 5])
    with workers(1) as run:
        gradients = BatchGradients(network, data, loss, torch.device("cpu"), run)
        value, found = gradients(rows, labels, None, Dropout(rate, 3, 1, 4))
    mask = Dropout(rate, 3, 1, 4).mask(len(texts.take(rows).tokens), 5)
    expected = slow_loss(network, data, rows, labels, loss, mask)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-5)
    assert set(found) == {name for name, _ in network.named_parameters()}
    for name, p in network.named_parameters():
        whole = np.zeros(p.shape, np.float32)
        if isinstance(found[name], RowGradient):
            whole[found[name].rows] = found[name].values.numpy()
        else:
            whole[:] = found[name].numpy()
        theirs = p.grad.numpy().copy()
        if name == "subwords":
            theirs[0] = 0  # padding is not learned
        np.testing.assert_allclose(whole, theirs, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("combine", ["id", "lale", "concat"])
def test_the_penalty_draws_labels_of_few_rows_most(combine):
    """Its gradient is that of ``penalty / N_l * |f_id - centre|^2``, of a label of no row as of one."""
    texts, names = token_lists([2] * 8), token_lists([1, 1, 1], seed=1)
    Y = sp.csr_matrix(np.array([[1, 1, 0]] + [[1, 0, 0]] * 3 + [[0, 0, 0]] * 4, np.float32))
    data = TextData(texts, Y, names, np.arange(3))
    torch.manual_seed(0)
    network = Network(30, 3, Sizes(5, 8, 7), encoder="mean", combine=combine)
    network.label_ids.data += 0.3
    labels, rows = np.arange(3), np.arange(8)
    with workers(1) as run:
        plain, drawn = (
            BatchGradients(network, data, "bce", torch.device("cpu"), run, penalty)(
                rows, labels, None, Dropout(0, 0, 0, 0)
            )[1]["label_ids"].values
            for penalty in (0.0, 0.6)
        )
    centre = 1.0 if combine == "lale" else 0.0
    expected = 2 * 0.6 / np.array([4, 1, 1])[:, None] * (network.label_ids.detach().numpy() - centre)
    np.testing.assert_allclose((drawn - plain).numpy(), expected, rtol=1e-4, atol=1e-6)


# --- the model ---------------------------------------------------------------------


@pytest.mark.parametrize("combine", ["id", "lale"])
def test_a_rate_changes_the_training_and_not_the_answers(combine):
    texts, _ = products(20, seed=1)
    plain, model = fitted(combine=combine), fitted(combine=combine, dropout=0.3)
    assert all(bytes_of(model)[name] != value for name, value in bytes_of(plain).items())
    scores = model.decision_function(texts)
    assert model.decision_function(texts).tobytes() == scores.tobytes()
    assert model.set_params(dropout=0.0).decision_function(texts).tobytes() == scores.tobytes()
    q, f = model.encode(texts), model.label_vectors_
    np.testing.assert_allclose(q @ f.T + model.label_bias_, scores, atol=1e-4)


def test_a_model_learns_with_dropout():
    texts, labels = products(60, seed=1)
    model = fitted(dropout=0.3, n_epochs=15, patience=15)
    found = model.rank(texts, k=2).labels
    assert np.mean([set(row) == {NAMES.index(name) for name in ls} for row, ls in zip(found, labels)]) > 0.9


@pytest.mark.parametrize("encoder", ENCODER_KINDS)
def test_threads_and_repetition_give_the_same_bytes(encoder):
    params = {"encoder": encoder, "dropout": 0.3, "batch_size": 100, "sampled_labels": 6}
    expected = bytes_of(fitted(**params))
    for n_jobs in (1, 4):
        assert bytes_of(fitted(**params, n_jobs=n_jobs)) == expected
    assert bytes_of(fitted(**params, random_state=1)) != expected


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(tmp_path):
    texts, labels = products()
    whole = fitted(dropout=0.3, n_epochs=4, sampled_labels=6)
    path = tmp_path / "checkpoint.safetensors"
    for n_epochs in (1, 3, 4):
        model = LabelEmbedder(**{**SMALL, "dropout": 0.3, "sampled_labels": 6, "n_epochs": n_epochs})
        model.fit(texts, labels, NAMES, checkpoint=path)
    assert bytes_of(model) == bytes_of(whole)
    assert (model.history_, model.best_epoch_) == (whole.history_, whole.best_epoch_)
    for rate in (0.0, 0.4):
        with pytest.raises(ValueError, match="of other texts, labels or parameters"):
            model.set_params(dropout=rate).fit(texts, labels, NAMES, checkpoint=path)


def test_checkpoints_of_versions_without_dropout_go_on():
    steps = {"batch_size": 8, "learning_rate": 0.1, "sampled_labels": None, "loss": "bce", "seed": 3}
    older = json.dumps({**steps, "kind": ["bow", "lale"]}, sort_keys=True)
    now = [
        fingerprint_of(Options(**steps, n_epochs=2, patience=1, dropout=rate), ("bow", "lale"), [])
        for rate in (0.0, 0.3)
    ]
    assert now[0] == hashlib.sha256(older.encode()).hexdigest()
    assert now[1] != now[0]


@pytest.mark.parametrize("rate", [-0.1, 1, 1.0, 2.5, float("nan"), float("inf")])
def test_a_rate_out_of_range_is_named(rate):
    with pytest.raises(ValueError, match=rf"dropout must be a number in \[0, 1\), got {rate}"):
        fitted(dropout=rate)


@pytest.mark.parametrize("rate", ["0.3", None, True, [0.3]])
def test_what_is_no_number_is_refused(rate):
    with pytest.raises(TypeError, match=r"dropout must be a number in \[0, 1\)"):
        fitted(dropout=rate)


def test_the_rate_is_saved_and_older_models_have_none(tmp_path):
    model = fitted(dropout=0.3)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.dropout == 0.3
    texts, _ = products(20, seed=1)
    scores = model.decision_function(texts).tobytes()
    assert again.decision_function(texts).tobytes() == scores
    state = model.get_state()
    del state["params"]["dropout"]
    older = LabelEmbedder.from_state(state)
    assert older.dropout == 0
    assert older.decision_function(texts).tobytes() == scores
    state["params"]["dropout"] = 1.5
    with pytest.raises(ValueError, match=r"dropout must be a number in \[0, 1\), got 1.5"):
        LabelEmbedder.from_state(state)

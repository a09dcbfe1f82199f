"""The compiled encoders: slow NumPy twins, torch's own forward pass, one text's result whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest

from metarank import _core
from metarank.text.inference import TextModel
from metarank.text.kinds import COMBINES, ENCODER_KINDS
from metarank.text.subwords import TokenLists

torch = pytest.importorskip("torch")

from metarank.text.network import Network, Sizes  # noqa: E402

SIZES = [(6, 10, 7), (16, 64, 80), (24, 256, 256)]
N_SUBWORDS = 30


def network_of(encoder, combine="lale", sizes=SIZES[0], n_labels=5, seed=0):
    torch.manual_seed(seed)
    network = Network(N_SUBWORDS, n_labels, Sizes(*sizes), encoder=encoder, combine=combine)
    for values in network.parameters():  # biases that start at zero would hide mistakes
        values.data += 0.1 * torch.randn_like(values)
    return network


def arrays(network):
    return {name: values.numpy() for name, values in network.state_dict().items()}


def token_lists(lengths, seed=0):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.random.default_rng(seed).integers(1, N_SUBWORDS, indptr[-1]).astype(np.int32)
    return TokenLists(indptr, tokens)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slow_summary(encoder, w, x):
    """h of subword vectors x (T, G), in float64."""
    if encoder == "bow":
        return np.tanh(w["hidden.weight"] @ x.mean(axis=0) + w["hidden.bias"])
    if encoder == "mean":
        return x.sum(axis=0) / np.sqrt(len(x))
    if encoder == "cnn":
        filters = w["convolution.weight"]
        padded = np.vstack([np.zeros_like(x[:1]), x, np.zeros_like(x[:1])])
        responses = [
            np.einsum("hgw,wg->h", filters, padded[t : t + 3]) + w["convolution.bias"] for t in range(len(x))
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


def slow_encode(encoder, weights, texts, side="query", relu=None):
    relu = encoder != "mean" if relu is None else relu
    w = {n.removeprefix(f"{side}."): v.astype(np.float64) for n, v in weights.items()}
    out = []
    for start, end in zip(texts.indptr[:-1], texts.indptr[1:]):
        if start == end:
            out.append(np.zeros(len(w["dense.bias"])))
            continue
        h = slow_summary(encoder, w, w["subwords"][texts.tokens[start:end]])
        out.append(w["dense.weight"] @ h + w["dense.bias"])
        if relu:
            out[-1] = np.maximum(out[-1], 0)
    return np.array(out)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("encoder", ENCODER_KINDS)
def test_the_core_agrees_with_the_slow_twin_and_with_torch(encoder, sizes):
    network = network_of(encoder, sizes=sizes)
    texts = token_lists([3, 1, 0, 12, 2, 7, 0])
    model = TextModel(arrays(network), encoder, "lale")
    fast = model.queries(texts)
    np.testing.assert_allclose(fast, slow_encode(encoder, model.weights, texts), atol=1e-5)
    padded, lengths = texts.padded()
    with torch.no_grad():
        vectors = network.subwords[torch.from_numpy(padded)]
        theirs = network.query(vectors, torch.from_numpy(lengths)).numpy()
    np.testing.assert_allclose(fast, theirs, atol=1e-5)
    names = model.names(texts)
    np.testing.assert_allclose(names, slow_encode(encoder, model.weights, texts, "name", False), atol=1e-5)
    with torch.no_grad():
        theirs = network.name(vectors, torch.from_numpy(lengths)).numpy()
    np.testing.assert_allclose(names, theirs, atol=1e-5)
    if encoder == "mean":
        return
    model = TextModel(model.weights, encoder, "lale", "relu")
    np.testing.assert_array_equal(model.names(texts), np.maximum(names, 0))


@pytest.mark.parametrize("encoder", ENCODER_KINDS)
def test_padding_never_matters_to_torch(encoder):
    network = network_of(encoder)
    padded, lengths = (torch.from_numpy(a) for a in token_lists([3, 1, 5]).padded())
    wider = torch.cat([padded, torch.full((3, 4), 9)], dim=1)  # any subword may stand there
    with torch.no_grad():
        short, long = (network.query(network.subwords[ids], lengths) for ids in (padded, wider))
    np.testing.assert_allclose(short.numpy(), long.numpy(), atol=1e-6)


@pytest.mark.parametrize("encoder", ENCODER_KINDS)
def test_a_text_has_the_same_bytes_in_any_batch(encoder):
    model = TextModel(arrays(network_of(encoder, sizes=SIZES[1])), encoder, "lale")
    texts = token_lists([4, 0, 9, 1, 3, 30, 2, 5, 6, 8, 1])
    whole = model.queries(texts, 4)
    assert whole.tobytes() == model.queries(texts, 1).tobytes()
    order = np.random.default_rng(1).permutation(texts.n_rows)
    assert model.queries(texts.take(order)).tobytes() == whole[order].tobytes()
    for i in range(texts.n_rows):
        assert model.queries(texts.take(np.array([i]))).tobytes() == whole[i].tobytes()


@pytest.mark.parametrize("combine", COMBINES)
def test_label_vectors_agree_with_torch(combine):
    network = network_of("bow", combine)
    rng = np.random.default_rng(0)
    ids, names = rng.normal(size=(2, 5, 7)).astype(np.float32)
    with torch.no_grad():
        theirs = network.label_vectors(torch.from_numpy(ids), torch.from_numpy(names)).numpy()
    ours = TextModel(arrays(network), "bow", combine).label_vectors(ids, names)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


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


def test_the_core_refuses_what_does_not_fit():
    model = TextModel(arrays(network_of("bilstm")), "bilstm", "lale")
    with pytest.raises(ValueError, match=r"tokens must lie in \[0, 30\)"):
        model.queries(TokenLists(np.array([0, 1]), np.array([30], np.int32)))
    with pytest.raises(ValueError, match="indptr"):
        model.queries(TokenLists(np.array([0, 2]), np.array([3], np.int32)))
    table, layers = model.weights["subwords"], model._layers["query"]
    with pytest.raises(ValueError, match="forward must have"):
        _core.encode_bilstm(np.array([0]), np.array([], np.int32), table[:, :5].copy(), *layers, True, 1)
    with pytest.raises(ValueError, match="bias must have an entry a label"):
        _core.vector_scores(table, table, layers[1][:3], 1)

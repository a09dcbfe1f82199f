"""Two-sided training of vectors against a slow twin; the same bytes by any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_label_partition import hash_pair, unit

from metarank import _core

OPTIONS = dict(epochs=3, batch=4, n_drawn=5, matrix_rate=0.01, offset_rate=0.1, scale=5.0, seed=3)


def drawn(n, n_labels, d, seed=0):
    rng = np.random.default_rng(seed)
    E, L = (rng.normal(size=(rows, d)).astype(np.float32) for rows in (n, n_labels))
    E, L = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (E, L))
    Y = rng.random((n, n_labels)) < 0.15
    hard = np.sort(np.argsort(-(E @ L.T), axis=1, kind="stable")[:, :3], axis=1).astype(np.int32)
    hard[0] = -1, -1, 7
    shares = rng.dirichlet(np.ones(n_labels)) * (np.arange(n_labels) != 2)  # one that stays as it is
    return E, L, Y, hard, np.cumsum(shares) / shares.sum()


def trained(E, L, Y, hard, cumulated, n_threads=1, **changed):
    options = _core.TwoSidedOptions(**{**OPTIONS, **changed})
    of_rows = sp.csr_matrix(Y)
    relevant = of_rows.indptr.astype(np.int64), of_rows.indices.astype(np.int32)
    return _core.train_two_sided(E, L, *relevant, hard, cumulated, options, n_threads)


def compared(row, epoch, Y, hard, cumulated):
    """The labels that a row is compared with: its own, hard ones, and some drawn; their chances."""
    own = np.flatnonzero(Y[row])
    fixed = [*own, *(label for label in hard[row] if label >= 0 and label not in own)]
    seed = hash_pair(hash_pair(OPTIONS["seed"] + 1, epoch), row)
    draws = [(hash_pair(seed, c) >> 11) * 2.0**-53 for c in range(OPTIONS["n_drawn"])]
    others = sorted({int(np.searchsorted(cumulated, at, "right")) for at in draws} - set(fixed))
    chances = np.minimum(1, np.diff(cumulated, prepend=0)[others] * OPTIONS["n_drawn"])
    return len(own), np.array([*fixed, *others]), np.r_[np.ones(len(fixed)), chances]


def twin(E, L, Y, hard, cumulated):
    """The matrix, and the labels' vectors at unit length, by autodiff-free NumPy in double."""
    d, o = E.shape[1], OPTIONS
    W, offset, squares, log_scale = np.eye(d), np.zeros(L.shape), np.zeros(len(L)), np.log(o["scale"])
    mean, square, step = np.zeros(d * d + 1), np.zeros(d * d + 1), 0
    order = [row for row in range(len(E)) if Y[row].any()]
    n_steps = o["epochs"] * -(-len(order) // o["batch"])
    for epoch in range(o["epochs"]):
        for i in range(len(order), 1, -1):
            j = hash_pair(hash_pair(o["seed"], epoch), i) % i
            order[i - 1], order[j] = order[j], order[i - 1]
        for start in range(0, len(order), o["batch"]):
            batch, rate = order[start : start + o["batch"]], 1 - step / n_steps
            length = np.linalg.norm(L + offset, axis=1)
            U, scale, by_label = (L + offset) / length[:, None], np.exp(log_scale), np.zeros(L.shape)
            gradient = np.zeros(d * d + 1)
            for row in batch:
                n_own, labels, chances = compared(row, epoch, Y, hard, cumulated)
                x = E[row] @ W
                q = x / np.linalg.norm(x)
                p = np.exp(scale * U[labels] @ q) / chances
                g = p / p.sum() - (np.arange(len(p)) < n_own) / n_own
                gradient[-1] += scale * g @ (U[labels] @ q)
                g = np.where(np.abs(g) < 1e-3, 0, scale * g)
                dx = g @ U[labels]
                dx = (dx - q * (q @ dx)) / np.linalg.norm(x)
                gradient[:-1] += np.outer(E[row], dx).ravel()
                np.add.at(by_label, labels, np.outer(g, q))
            by_label = (by_label - U * (by_label * U).sum(1, keepdims=True)) / length[:, None]
            by_label *= np.diff(cumulated, prepend=0)[:, None] > 0
            squares += (by_label**2).sum(1)
            offset -= rate * o["offset_rate"] * by_label / np.maximum(np.sqrt(squares), 1e-12)[:, None]
            gradient, step = gradient / len(batch), step + 1
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            move = rate * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            W -= o["matrix_rate"] * move[:-1].reshape(d, d)
            log_scale -= 0.01 * move[-1]
    return W, np.apply_along_axis(unit, 1, L + offset)


@pytest.mark.parametrize(("n", "n_labels", "d"), [(23, 11, 5), (9, 30, 40), (6, 3, 33)])
def test_training_agrees_with_its_twin(n, n_labels, d):
    given = drawn(n, max(n_labels, 8), d)
    for found, wanted in zip(trained(*given), twin(*given), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_the_same_bytes_for_any_number_of_threads():
    given = drawn(300, 90, 20)
    one, four = trained(*given, epochs=2), trained(*given, 4, epochs=2)
    assert [a.tobytes() for a in one] == [a.tobytes() for a in four]


def test_labels_without_rows_gain_from_labels_near_to_them():
    """Rows turned by one rotation for all labels: what some labels teach of it serves the others."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    L = rng.normal(size=(60, 8)).astype(np.float32)
    label = rng.integers(0, 60, 900)
    L /= np.linalg.norm(L, axis=1, keepdims=True)
    X = np.float32((L[label] + 0.1 * rng.normal(size=(900, 8))) @ turn)
    seen, Y = label < 45, label[:, None] == np.arange(60)
    hard = np.zeros((seen.sum(), 0), np.int32)
    even = np.arange(1, 61) / 60
    W, U = trained(X[seen], L, Y[seen], hard, even, n_drawn=30, matrix_rate=0.03, epochs=20, batch=32)
    of_new = np.flatnonzero(~seen)

    def right(rows, labels):
        return np.mean((rows @ labels[45:].T).argmax(axis=1) + 45 == label[of_new])

    assert right(X[of_new] @ W, U) > 0.7 > 4 * right(X[of_new], L)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda E, L, Y, hard, c: (E[:, :3], L, Y, hard, c), "as many columns"),
        (lambda E, L, Y, hard, c: (E, L, Y, hard[1:], c), "must be of each row"),
        (lambda E, L, Y, hard, c: (E, L, Y, hard + 9, c), r"lie in \[0, L\)"),
        (lambda E, L, Y, hard, c: (E, L, Y, hard, c[1:]), "one entry a label"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, message):
    given = [np.ascontiguousarray(a) for a in change(*drawn(9, 12, 5))]
    with pytest.raises(ValueError, match=message):
        trained(*given)

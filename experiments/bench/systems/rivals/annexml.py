"""AnnexML (Tagami 2017, "AnnexML: Approximate nearest neighbor search for extreme classification").

Rows whose label vectors are near come together in a partition, whose classifier routes new rows. Within it,
embeddings x W are learned to rank the neighbours of a row in label space above other rows, by a softmax over
cosines: -log exp(g cos(i, j)) / sum_k exp(g cos(i, k)), and the nearest training rows vote.

Small version: the graph of label vectors is exact; the partition alternates between classifiers of its parts
(ridge regression) and joining the part where one's neighbours are, a full part closed; the other rows of a
batch stand for those drawn as irrelevant; exact neighbours in place of their graph, three learners.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from systems.rivals.base import Ridge, drawn_pairs
from systems.rivals.sleec import SLEEC, neighbor_products


class AnnexML(SLEEC):
    """See above; `sharpness` is g."""

    rank, learners, rows_a_part, neighbors = 50, 3, 1000, 10
    sharpness, passes, rate, batch = 10.0, 10, 0.1, 128
    grid = (("voters", (15, 5)), ("passes", (10, 20)))

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.n_labels = Y.shape[1]
        graph = neighbor_products(normalize(Y), self.neighbors)
        graph.setdiag(0)
        graph.eliminate_zeros()
        n_parts = max(1, X.shape[0] // self.rows_a_part)
        router = Ridge(X, 1.0)
        self.parts = []
        for learner in range(self.learners):
            rng = np.random.default_rng([self.seed, learner])
            part, weights = partition(X, graph, router, n_parts, int(rng.integers(2**31)))
            members = [np.flatnonzero(part == p) for p in range(n_parts)]
            learned = [self._part(X[m], Y[m], graph[m][:, m], rng) for m in members]
            self.parts.append((lambda X, weights=weights: np.argmax(X @ weights, axis=1), learned))

    def _part(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, graph: sp.csr_matrix, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, sp.csr_matrix]:
        """The weights, embeddings and labels of the rows of a part."""
        W = rng.normal(0, 1, (X.shape[1], self.rank)).astype(np.float32)
        spent, graph = np.full(len(W), 1e-8, np.float32), graph.tocsr()
        for rows, near in drawn_pairs(graph, self.passes, self.batch, rng):
            features, gradient = ranking(W, X[rows], X[near], self.sharpness)[1:]
            spent[features] += (gradient**2).mean(axis=1)
            W[features] -= self.rate * gradient / np.sqrt(spent[features])[:, None]
        return W, normalize(X @ W) if X.shape[0] else np.zeros((0, self.rank)), Y


def partition(
    X: sp.csr_matrix, graph: sp.csr_matrix, router: Ridge, n_parts: int, seed: int, rounds: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """The part of each row, none larger than 1.5 times the mean, and weights (d, parts) that route rows."""
    n = X.shape[0]
    part = MiniBatchKMeans(n_parts, random_state=seed, n_init=1).fit(X).labels_
    most = int(np.ceil(1.5 * n / n_parts))
    order = np.random.default_rng(seed).permutation(n)
    for _ in range(rounds):
        weights = router.solve(np.eye(n_parts)[part])
        member = sp.csr_matrix((np.ones(n), (np.arange(n), part)), shape=(n, n_parts))
        degree = np.maximum(1, np.diff(graph.indptr))[:, None]
        wish = np.argsort(-((graph > 0) @ member).toarray() / degree - X @ weights, axis=1, kind="stable")
        size = np.zeros(n_parts, int)
        for i in order:
            part[i] = next(p for p in wish[i] if size[p] < most)
            size[part[i]] += 1
    return part, router.solve(np.eye(n_parts)[part])


def ranking(
    W: np.ndarray, X: sp.csr_matrix, near: sp.csr_matrix, sharpness: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """The softmax loss of rows and one neighbour each, among the neighbours of all, and its gradient by W:
    the numbers of the rows where it is not 0, and these rows."""
    both = sp.vstack([X, near], "csr")
    features, inside = np.unique(both.indices, return_inverse=True)
    both = sp.csr_matrix((both.data, inside, both.indptr), shape=(both.shape[0], len(features)))
    Z = both @ W[features]
    length = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    unit, n = Z / length, X.shape[0]
    likeness = sharpness * unit[:n] @ unit[n:].T
    likeness -= likeness.max(axis=1, keepdims=True)
    share = np.exp(likeness)
    share /= share.sum(axis=1, keepdims=True)
    loss = -np.log(np.maximum(np.diagonal(share), 1e-30)).sum()
    wrong = sharpness * (share - np.eye(n, dtype=share.dtype))
    by_unit = np.concatenate([wrong @ unit[n:], wrong.T @ unit[:n]])
    by_row = (by_unit - unit * (by_unit * unit).sum(axis=1, keepdims=True)) / length
    return float(loss), features, both.T @ by_row

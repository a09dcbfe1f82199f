"""SLEEC (Bhatia et al. 2015, "Sparse local embeddings for extreme multi-label classification").

Training rows are clustered by their features. Within a cluster, embeddings keep the inner products of the
label vectors of near neighbours alone: |P(YY') - P(ZZ')|^2 over pairs P of neighbours in Y, by singular value
projection. X is regressed on Z, and a row takes the labels of its nearest training rows among x W of its
cluster.

Small version: ridge regression without the l1 penalty on embeddings, exact neighbours by cosine.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

from systems.rivals.base import Ridge, Rival


class SLEEC(Rival):
    """See above; 15 learners as published, one while settings are tried."""

    rank, learners, rows_a_cluster, neighbors, voters, rounds, penalty = 100, 15, 1000, 15, 15, 6, 1.0
    grid = (("voters", (15, 5)), ("rows_a_cluster", (1000, 250)))
    in_trials = (("learners", 1),)

    def learn(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.n_labels = Y.shape[1]
        self.parts = []
        for learner in range(self.learners):
            seed = self.seed * self.learners + learner
            n_clusters = max(1, X.shape[0] // self.rows_a_cluster)
            clusters = MiniBatchKMeans(n_clusters, random_state=seed, n_init=1).fit(X)
            members = [np.flatnonzero(clusters.labels_ == c) for c in range(n_clusters)]
            self.parts.append((clusters.predict, [self._cluster(X[rows], Y[rows], seed) for rows in members]))

    def _cluster(self, X: sp.csr_matrix, Y: sp.csr_matrix, seed: int) -> tuple[np.ndarray, ...]:
        if X.shape[0] == 0:
            return np.zeros((X.shape[1], 1)), np.zeros((0, 1)), Y
        Z = embeddings(neighbor_products(Y, self.neighbors), self.rank, self.rounds, seed)
        W = Ridge(X, self.penalty).solve(Z)
        return W, normalize(X @ W), Y

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        total = np.zeros((X.shape[0], self.n_labels), np.float32)
        for part_of, parts in self.parts:
            of_row = part_of(X)
            for c in np.unique(of_row):
                rows = np.flatnonzero(of_row == c)
                W, Z, Y = parts[c]
                total[rows] += votes(normalize(X[rows] @ W), Z, Y, self.voters)
        return total


def neighbor_products(Y: sp.csr_matrix, neighbors: int) -> sp.csr_matrix:
    """Inner products of rows of Y: of each row with itself and the `neighbors` rows of largest product.

    Symmetric: a pair is there where one of the two has the other.
    """
    products = sp.csr_matrix(Y @ Y.T, dtype=np.float64)
    kept = []
    for i in range(products.shape[0]):
        begin, end = products.indptr[i : i + 2]
        value = products.data[begin:end] + 1e9 * (products.indices[begin:end] == i)
        kept.append(begin + np.argsort(-value, kind="stable")[: neighbors + 1])
    row, at = np.repeat(np.arange(len(kept)), [len(of_row) for of_row in kept]), np.concatenate(kept)
    part = sp.csr_matrix((products.data[at], (row, products.indices[at])), shape=products.shape)
    return part.maximum(part.T).tocsr()


def embeddings(known: sp.csr_matrix, rank: int, rounds: int, seed: int) -> np.ndarray:
    """Z (n, rank) whose ZZ' comes near the entries stored in `known`, by singular value projection."""
    n = known.shape[0]
    if n == 1:
        return np.sqrt(known.toarray())
    row, column = known.nonzero()
    target = np.asarray(known[row, column]).ravel()
    Z, start = np.zeros((n, 1)), np.random.default_rng(seed).standard_normal(n)
    for _ in range(rounds):
        left = sp.csr_matrix((target - (Z[row] * Z[column]).sum(axis=1), (row, column)), shape=(n, n))
        step = LinearOperator((n, n), lambda v, Z=Z, left=left: Z @ (Z.T @ v) + left @ v)
        values, vectors = eigsh(step, min(rank, n - 1), which="LA", v0=start, tol=1e-3)
        Z = vectors * np.sqrt(np.maximum(values, 0))
    return Z


def votes(Z: np.ndarray, of_training: np.ndarray, Y: sp.csr_matrix, voters: int) -> np.ndarray:
    """Mean labels of the `voters` training rows of largest cosine, weighted by it; Z has unit rows."""
    voters = min(voters, len(of_training))
    if voters == 0:
        return np.zeros((len(Z), Y.shape[1]), np.float32)
    cosine = Z @ of_training.T
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :voters]
    weight = np.maximum(np.take_along_axis(cosine, nearest, axis=1), 1e-6)
    indptr = np.arange(len(Z) + 1) * voters
    share = sp.csr_matrix((weight.ravel() / voters, nearest.ravel(), indptr), shape=cosine.shape)
    return (share @ Y).toarray().astype(np.float32)

"""The sets of the study: features, and relevances of any size, with the split or one of the training part."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from metarank import data
from metarank.data.dataset import Dataset
from metarank.metrics.propensity import PRESETS, inv_propensity
from metarank.types.arrays import unit_rows

SEED = 0
_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

Relevance = Literal["inverse propensity", "users", "rating", "binary"]


@dataclass(frozen=True)
class SetSpec:
    """Where a set comes from and what its relevances are; `labelwise`: points are recommended to labels."""

    name: str
    source: str
    relevance: Relevance
    labelwise: bool = False
    propensity: str = "default"


@dataclass(frozen=True)
class Made:
    """A set of `make_extreme`: far more labels than test points, where labelwise prediction pays most."""

    source: str = "make_extreme"
    n_rows: int = 10_000
    n_test: int = 500
    n_features: int = 10_000
    n_labels: int = 20_000


EXTREME = Made()
SETS = {
    spec.name: spec
    for spec in (
        SetSpec("bibtex", "bibtex", "inverse propensity"),
        SetSpec("LLMs4Subjects-dev-en", "LLMs4Subjects-dev-en", "inverse propensity"),
        SetSpec("CiteULike-t-tags", "CiteULike-t-tags", "inverse propensity"),
        SetSpec("Wikispeedia-Links", "Wikispeedia-Links", "inverse propensity"),
        SetSpec("LastFM-ArtistTags", "LastFM-ArtistTags", "inverse propensity"),
        SetSpec("LastFM-ArtistTags-graded", "LastFM-ArtistTags", "users"),
        SetSpec("MovieLens-small-users", "MovieLens-small-users", "rating", labelwise=True),
        SetSpec("extreme-labelwise", EXTREME.source, "inverse propensity", labelwise=True),
        # Of the Extreme Classification repository, for whoever has the files; the paper's figures are known.
        SetSpec("EURLex-4K", "EURLex-4K", "inverse propensity"),
        SetSpec("Wiki10-31K", "Wiki10-31K", "inverse propensity"),
        SetSpec("Amazon-670K", "Amazon-670K", "inverse propensity", propensity="amazon"),
        SetSpec("WikiLSHTC-325K", "WikiLSHTC-325K", "inverse propensity", propensity="wikipedia"),
    )
}
NATURAL = ("LLMs4Subjects-dev-en", "LastFM-ArtistTags", "Wikispeedia-Links", "CiteULike-t-tags")


@dataclass(frozen=True)
class Problem:
    """One set with its training and test part.

    X, X_test : CSR features
    Y, Y_test : CSR relevances > 0 of the relevant pairs, as all metrics judge them
    """

    spec: SetSpec
    X: sp.csr_matrix
    Y: sp.csr_matrix
    X_test: sp.csr_matrix
    Y_test: sp.csr_matrix

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def scale(self) -> float:
        """The greatest relevance of the training part, which counts as 1 in all errors."""
        return float(self.Y.data.max())

    @cached_property
    def checksum(self) -> str:
        digest = hashlib.sha256()
        for matrix in (self.X, self.Y, self.X_test, self.Y_test):
            for part in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def held_out_part(self, share: float = 0.2) -> Problem:
        """The training part alone, a share of it as the test part: choices are made on it."""
        order = np.random.default_rng(SEED).permutation(self.X.shape[0])
        cut = max(1, round(share * len(order)))
        held_out, kept = np.sort(order[:cut]), np.sort(order[cut:])
        return replace(
            self,
            X=self.X[kept],
            Y=self.Y[kept],
            X_test=self.X[held_out],
            Y_test=self.Y[held_out],
        )


def load_problem(spec: SetSpec) -> Problem:
    """A set with its relevances.

    Raises
    ------
    FileNotFoundError
        If the set is not in `$METARANK_DATA`.
    """
    if spec.source == EXTREME.source:
        n = EXTREME.n_rows
        made = data.make_extreme(n + EXTREME.n_test, EXTREME.n_features, EXTREME.n_labels, seed=SEED)
        return make_problem(spec, made.take(slice(n)), made.take(slice(n, None)))
    folder = os.environ.get("METARANK_DATA") or _SHARED
    train = data.load_named(spec.source, "train", data_dir=folder)
    return make_problem(spec, train, data.load_named(spec.source, "test", data_dir=folder))


def make_problem(spec: SetSpec, train: Dataset, test: Dataset) -> Problem:
    """Both parts of one width, rows of unit length, relevances as the set has them."""
    X, X_test = (unit_rows(M) for M in _widened([sp.csr_matrix(train.X), sp.csr_matrix(test.X)]))
    Y, Y_test = _widened([train.Y, test.Y])
    if spec.relevance == "inverse propensity":
        weight = inv_propensity(Y, *PRESETS[spec.propensity])
        Y, Y_test = (_with_values(M, weight[M.indices]) for M in (Y, Y_test))
    elif spec.relevance == "binary":
        Y, Y_test = (_with_values(M, np.ones(M.nnz)) for M in (Y, Y_test))
    elif spec.relevance == "users":
        # How many users gave the tag spans two orders of magnitude: one more doubling, one more point.
        Y, Y_test = (_with_values(M, np.log2(1 + M.data)) for M in (Y, Y_test))
    return Problem(spec, X, Y, X_test, Y_test)


def _widened(parts: Sequence[sp.csr_matrix]) -> list[sp.csr_matrix]:
    """The same matrices, as wide as the widest."""
    width = max(part.shape[1] for part in parts)
    out = []
    for part in parts:
        M = sp.csr_matrix((part.data, part.indices, part.indptr), shape=(part.shape[0], width))
        M.sort_indices()
        out.append(M.astype(np.float32))
    return out


def _with_values(M: sp.csr_matrix, values: np.ndarray) -> sp.csr_matrix:
    out = M.copy()
    out.data = values.astype(np.float32)
    return out

"""What votes by inverse propensity find: recall of held-out shortlists, of all labels and of rare ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.data import Dataset, load_named
from metarank.scorers.crossfit import held_out_shortlist
from metarank.scorers.neighbors.voting import NeighborShortlister
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

SETS = ("LLMs4Subjects-dev-en", "CiteULike-t-tags")
VOTERS = ((10, 30), (10, 30, 100))  # the scorer's default, and what "auto" takes where labels are shortlisted
CUTS = (10, 30, 100)
MOST_ROWS = 5_000
TAIL = 5  # training points of a rare label at most
N_FOLDS = 5
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"

Figures = dict[str, Any]


def load(name: str) -> Dataset:
    """The training part of a set.

    Raises
    ------
    FileNotFoundError
        If the set is not there; the message says where it is looked for.
    """
    return load_named(name, "train", data_dir=os.environ.get("METARANK_DATA") or _BESIDE)


def measure(data: Dataset) -> list[Figures]:
    """Recall at each cut with both kinds of votes, and with half of the list from each."""
    n, n_labels = data.Y.shape
    held_out = TrainingSet(sp.csr_matrix(data.X), data.Y, fold_of_rows(n, N_FOLDS, 0))
    rows = np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])
    Y = sp.csr_matrix((data.Y[rows] > 0).astype(np.float32))
    rare = np.bincount(data.Y.indices, minlength=n_labels) <= TAIL
    Y_rare = sp.csr_matrix(Y @ sp.diags_array(rare.astype(np.float32)))
    Y_rare.eliminate_zeros()
    out: list[Figures] = []
    for ks in VOTERS:
        plain, leaning = (
            held_out_shortlist(
                NeighborShortlister(ks=ks, relevance=relevance), held_out, max(CUTS), rows=rows
            )
            for relevance in ("binary", "inverse-propensity")
        )
        for votes, lists in (
            ("binary", [plain.top(k) for k in CUTS]),
            ("inverse-propensity", [leaning.top(k) for k in CUTS]),
            ("half of each", [plain.top(k // 2).union(leaning.top(k // 2)) for k in CUTS]),
        ):
            found = [(_found(list_, Y), _found(list_, Y_rare)) for list_ in lists]
            out.append({"neighbours": max(ks), "votes": votes, "recall": found})
    return out


def _found(candidates: Candidates, Y: sp.csr_matrix) -> float:
    """Share of the relevant pairs of all rows that are among the candidates."""
    hits = candidates.to_csr(np.ones(candidates.n_pairs, np.float32)).multiply(Y).sum()
    return float(hits / max(1, Y.nnz))

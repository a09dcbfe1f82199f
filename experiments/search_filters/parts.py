"""Training, validation and test part: 8 : 1 : 1 by distinct text; head and tail; labels never seen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from titles import Titles, normalised

HEAD_SHARE = 0.87
UNSEEN_SHARE = 0.1
# Test rows that an unseen label has at least: the most of these that so many labels have.
UNSEEN_ROWS = (3, 2, 1)
UNSEEN_AMONG = 200
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}


@dataclass(frozen=True)
class Parts:
    """The three parts of a set; they share no text, and the latter two repeat none.

    `unseen` are ids of labels without a trace in the training and validation part.
    """

    train: Titles
    valid: Titles
    test: Titles
    unseen: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Training rows of each label (L,)."""
        return np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1])

    @property
    def head(self) -> np.ndarray:
        """Mask of the most frequent labels that make up 87 % of the occurrences in the training part."""
        counts = self.counts
        order = np.argsort(-counts, kind="stable")
        before = np.cumsum(counts[order]) - counts[order]
        head = np.zeros(len(counts), bool)
        head[order] = before < HEAD_SHARE * counts.sum()
        return head & (counts > 0)


def hash_share(seed: int, text: str) -> float:
    """A number in [0, 1) that depends on seed and text alone."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def split(titles: Titles, seed: int) -> Parts:
    """The three parts, by a hash of each row's normalised text."""
    keys = [normalised(text) for text in titles.texts]
    place = np.array([hash_share(seed, key) for key in keys])
    bounds = np.cumsum([0.0, *SHARES.values()])
    bounds[-1] = 1.0
    train, valid, test = (np.flatnonzero((low <= place) & (place < high)) for low, high in pairwise(bounds))
    none = np.zeros(0, np.int64)
    return Parts(titles.take(train), _merged(titles, valid, keys), _merged(titles, test, keys), none)


def _merged(titles: Titles, rows: np.ndarray, keys: Sequence[str]) -> Titles:
    """A row for each distinct text of `rows`, with the labels of all of them."""
    group_of: dict[str, int] = {}
    group = np.array([group_of.setdefault(keys[i], len(group_of)) for i in rows], np.int64)
    first = rows[np.unique(group, return_index=True)[1]]
    together = sp.csr_matrix((np.ones(len(rows), np.float32), (group, np.arange(len(rows)))))
    Y = sp.csr_matrix(together @ titles.Y[rows])
    Y.data[:] = 1
    Y.sort_indices()
    return replace(titles.take(first), Y=Y)


def without_unseen(parts: Parts, seed: int) -> Parts:
    """A tenth of the labels, by a hash of their names, taken from the training and validation part.

    Only labels with enough test rows may be chosen, and with a training row. Rows keep their other labels.
    """
    in_test = np.bincount(parts.test.Y.indices, minlength=parts.test.Y.shape[1])
    share = np.array([hash_share(seed, name) for name in parts.test.names])
    enough = (np.flatnonzero((in_test >= least) & (parts.counts > 0)) for least in UNSEEN_ROWS)
    possible = next((labels for labels in enough if len(labels) >= UNSEEN_AMONG), None)
    if possible is None:
        possible = np.flatnonzero((in_test > 0) & (parts.counts > 0))
    number = max(1, round(UNSEEN_SHARE * len(possible)))
    unseen = np.sort(possible[np.argsort(share[possible], kind="stable")[:number]])
    seen = np.ones(len(share), np.float32)
    seen[unseen] = 0

    def less(part: Titles) -> Titles:
        Y = sp.csr_matrix(part.Y @ sp.diags(seen))
        Y.eliminate_zeros()
        return replace(part, Y=Y)

    return Parts(less(parts.train), less(parts.valid), parts.test, unseen)


def with_fewer_rows(parts: Parts, rows: int, seed: int) -> Parts:
    """So many rows of the training part, by a hash of their texts; head and tail then are of these rows."""
    share = np.array([hash_share(seed + 1, normalised(text)) for text in parts.train.texts])
    return replace(parts, train=parts.train.take(np.sort(np.argsort(share, kind="stable")[:rows])))


def statistics(titles: Titles, parts: Parts) -> dict[str, float]:
    """Sizes for the page."""
    counts, head = parts.counts, parts.head
    return {
        "rows": len(titles.texts),
        "distinct texts": len({normalised(text) for text in titles.texts}),
        "words a text": float(np.mean([len(text.split()) for text in titles.texts])),
        **{part: len(getattr(parts, part).texts) for part in SHARES},
        "labels": len(counts),
        "labels a row": titles.Y.nnz / titles.Y.shape[0],
        "head": int(head.sum()),
        "tail": int((~head & (counts > 0)).sum()),
        "without a training row": int((counts == 0).sum()),
        "share of head": float(counts[head].sum() / counts.sum()),
    }


def statistics_of_unseen(parts: Parts) -> tuple[int, int]:
    """Labels without a trace in the training and validation part, and pairs of a test row with one."""
    return len(parts.unseen), int(parts.test.Y[:, parts.unseen].nnz)

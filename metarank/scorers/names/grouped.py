"""`GroupedNames`: an index of labels that have several names each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank.types.arrays import Parts, csr_parts
from metarank.types.candidates import Candidates
from metarank.types.label_names import OtherNames
from metarank.types.ragged import entries_of_rows


class GroupedNames:
    """The names of L labels, row by row: for each label its name, then its other names.

    Parameters
    ----------
    text : float32 CSR (L, d), canonical
        The names; a row may be empty.
    others : OtherNames
    """

    def __init__(self, text: sp.csr_matrix, others: OtherNames) -> None:
        label = np.concatenate([np.arange(text.shape[0], dtype=np.int32), others.label])
        order = np.argsort(label, kind="stable")
        rows = sp.csr_matrix(sp.vstack([text, others.text], "csr")[order])
        rows.sort_indices()
        self.n_labels: int = text.shape[0]
        self.n_words: int = text.shape[1]
        self.label: NDArray[np.int32] = label[order]
        self.indptr: NDArray[np.int64] = np.searchsorted(self.label, np.arange(self.n_labels + 1))
        self.index: _core.LabelText = _core.LabelText((*csr_parts(rows), text.shape[1]))

    def evidence(self, rows: Parts, candidates: Candidates, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """What the best name of each pair's label says, float32 (4, m), and how many match, float32 (m,).

        The best name is that of the highest cosine, the first of equal ones. A name matches where all its
        known words occur in the row.
        """
        m = candidates.n_pairs
        first, places = entries_of_rows(self.indptr, candidates.labels)
        of_names = self.index.evidence(rows, first[candidates.indptr], places.astype(np.int32), n_jobs)
        if m == 0:
            return of_names, np.zeros(0, np.float32)
        cosine, share = of_names[0], of_names[1]
        is_best = cosine == np.repeat(np.maximum.reduceat(cosine, first[:-1]), np.diff(first))
        best = np.minimum.reduceat(np.where(is_best, np.arange(len(cosine)), len(cosine)), first[:-1])
        matched = np.add.reduceat((share == 1).astype(np.int64), first[:-1])
        return np.ascontiguousarray(of_names[:, best]), matched.astype(np.float32)

    def held(self, rows: Parts, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """(indptr, labels), labels ascending: those with a name of which a row has all words."""
        indptr, names = self.index.held(rows, n_jobs)
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        # Names are in the order of labels, so that those of a label are beside each other.
        key = row * np.int64(self.n_labels) + self.label[names]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        counts = np.bincount(row[first], minlength=len(indptr) - 1)
        return np.concatenate([[0], np.cumsum(counts)]), self.label[names[first]]

    def shortlist(self, rows: Parts, k: int, n_jobs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(indptr, labels, cosines) of the k labels with the best names for each row, labels ascending.

        Ties go to the smaller label. Rows whose first names do not belong to k labels are searched for more.
        """
        n = len(rows[0]) - 1
        X = sp.csr_matrix((rows[2], rows[1], rows[0]), shape=(n, self.n_words))
        open_, wanted = np.arange(n), k
        row, label, cosine = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        while len(open_):
            wanted = min(2 * wanted, len(self.label))
            indptr, names, scores = self.index.shortlist(csr_parts(X[open_]), wanted, n_jobs)
            at = np.repeat(np.arange(len(open_)), np.diff(indptr))
            order = np.lexsort((self.label[names], -scores, at))
            at, of, best = at[order], self.label[names][order], scores[order]
            key = at * np.int64(self.n_labels) + of
            first = np.sort(np.unique(key, return_index=True)[1])  # the best name of each label
            at, of, best = at[first], of[first], best[first]
            n_found = np.bincount(at, minlength=len(open_))
            place = np.arange(len(at)) - np.repeat(np.cumsum(n_found) - n_found, n_found)
            done = (n_found >= k) | (np.diff(indptr) < wanted) | (wanted == len(self.label))
            kept = done[at] & (place < k)
            row = np.append(row, open_[at[kept]])
            label, cosine = np.append(label, of[kept]), np.append(cosine, best[kept])
            open_ = open_[~done]
        order = np.lexsort((label, row))
        counts = np.bincount(row, minlength=n)
        return np.concatenate([[0], np.cumsum(counts)]), label[order], cosine[order]

"""`KnownLabels`: what labels that a row is known to have say of its others.

A record has three subjects; which are missing? The log-odds of each candidate, those of labels that often go
with the known ones added, are corrected by boosted trees, which see how often label and known labels are
together. They learn from training rows of which a drawn half of the labels is taken to be known. Counts, like
the log-odds, are of the rows of other folds: counts that know more rows would be trusted more than new rows
allow, and Wikispeedia would lose 1.3 points of nDCG@5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import log
from metarank.persist.fields import Object
from metarank.persist.spec import Saved
from metarank.ranker.boosting import grown, lightgbm_params
from metarank.ranker.lists import drawn, drawn_lists, hash_numbers
from metarank.types.boosters import BoosterArrays
from metarank.types.candidates import Candidates
from metarank.types.ragged import entries_of_rows, extreme_of_rows, found_at
from metarank.types.view import TrainingSet

# Rows to learn from: more make no better trees. Nor do few make any.
_MOST_ROWS, _LEAST_ROWS = 2_000, 50
# Labels that go with the known ones, added to the candidates of a row.
_ADDED = 50
# nDCG@5 of the labels that are not known, half of each test row's, four sets: 100 trees of 7 leaves add 5.6,
# 1.4, .6 and .2 points to ranking without, of 15 leaves 6.0, 1.5, .7 and -.2.
_TREES = {"num_leaves": 7, "learning_rate": 0.05, "min_data_in_leaf": 200, "lambda_l2": 10.0}
_ROUNDS = 100
# Pairs of labels of one row that are counted: 8 bytes each, at most.
_MOST_PAIRS = 20_000_000
_SHIFT = 7_000_003  # makes the draw of known labels independent of others


@dataclass(frozen=True, eq=False)
class Together:
    """How often two labels are labels of the same training row.

    Parameters
    ----------
    Y : CSR (n, L)
        Relevant where > 0.
    """

    Y: sp.csr_matrix

    @classmethod
    def of(cls, Y: sp.csr_matrix) -> Together:
        """Of all rows, or of as many drawn ones as have this many pairs of labels."""
        pairs = np.diff(Y.indptr).astype(np.int64) ** 2
        return cls(Y if pairs.sum() <= _MOST_PAIRS else Y[drawn_lists(pairs, _MOST_PAIRS, _SHIFT)])

    @cached_property
    def counts(self) -> sp.csr_matrix:
        """CSR (L, L), the diagonal included: the rows of a label."""
        ones = sp.csr_matrix(self.Y > 0, dtype=np.float32)
        out = sp.csr_matrix(ones.T @ ones)
        out.sort_indices()
        return out

    @cached_property
    def frequency(self) -> np.ndarray:
        """float64 (L,)"""
        return self.counts.diagonal().astype(np.float64)

    @cached_property
    def _keys(self) -> np.ndarray:
        n = self.counts.shape[0]
        return np.repeat(np.arange(n), np.diff(self.counts.indptr)) * np.int64(n) + self.counts.indices

    def of_pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64 (m,): the rows of pairs of labels."""
        at, there = found_at(self._keys, first * np.int64(self.counts.shape[0]) + second)
        return np.where(there, self.counts.data[at], 0.0) if len(self._keys) else np.zeros(len(first))


@dataclass(eq=False, repr=False)
class KnownLabels(Saved):
    """Trees that correct log-odds by known labels.

    Parameters
    ----------
    trees : BoosterArrays
    """

    trees: Annotated[BoosterArrays, Object("", BoosterArrays)]

    @classmethod
    def learned(
        cls,
        data: TrainingSet,
        rows: np.ndarray,
        candidates: Candidates,
        logits: np.ndarray,
        seed: int,
        n_jobs: int,
    ) -> KnownLabels | None:
        """Of some training rows, their candidates with log-odds (m,) by models that did not see their fold.
        None where too few rows have two labels."""
        import lightgbm as lgb

        Y = data.Y > 0
        several = np.flatnonzero(np.diff(Y[rows].indptr) > 1)
        if len(several) < _LEAST_ROWS:
            return None
        several = several[drawn(len(several), _MOST_ROWS, seed + _SHIFT)]
        labels = Candidates.from_csr(sp.csr_matrix(Y[rows[several]], dtype=np.float32))
        known, fold, parts = half_of(labels, seed), data.fold[rows[several]], []
        for f in np.unique(fold):
            inside, together = np.flatnonzero(fold == f), Together.of(Y[data.fold != f])
            pairs = entries_of_rows(candidates.indptr, several[inside])[1]
            of_fold = candidates.rows(several[inside]), logits[pairs], known.rows(inside)
            lists, base = widened(together, *of_fold)
            relevant = lists.among(labels.rows(inside)).astype(np.float32)
            parts.append((described(together, lists, base, of_fold[2]), relevant, base))
        values, relevant, base = (np.concatenate(part) for part in zip(*parts))
        params = lightgbm_params({**_TREES, "objective": "binary"}, seed, n_jobs, values.size)
        train = lgb.Dataset(values, label=relevant, init_score=base, params=params)
        return cls(grown(params, train, _ROUNDS))

    def corrected(
        self, together: Together, candidates: Candidates, logits: np.ndarray, known: Candidates, n_jobs: int
    ) -> tuple[Candidates, np.ndarray]:
        """Candidates, those that known labels add among them and without these, and their log-odds. Rows of
        which nothing is known stay as they are."""
        lists, base = widened(together, candidates, logits, known)
        told = np.repeat(np.diff(known.indptr) > 0, np.diff(lists.indptr))
        base[told] += self.trees.predict(described(together, lists, base, known)[told], n_jobs=n_jobs)
        return lists, base


def half_of(labels: Candidates, seed: int) -> Candidates:
    """A drawn half of the labels of each row, rounded down.

    >>> half_of(Candidates.all_labels(3, 5), seed=0).indptr
    array([0, 2, 4, 6])
    """
    order = np.lexsort((hash_numbers(labels.n_pairs, seed + _SHIFT), labels.row_of_pair))
    place = np.empty(labels.n_pairs, np.int64)
    place[order] = np.arange(labels.n_pairs)
    counts = np.repeat(np.diff(labels.indptr), np.diff(labels.indptr))
    return labels.where(place - np.repeat(labels.indptr[:-1], np.diff(labels.indptr)) < counts // 2)


def widened(
    together: Together, candidates: Candidates, logits: np.ndarray, known: Candidates
) -> tuple[Candidates, np.ndarray]:
    """The candidates with labels that go with the known ones, without these, and their log-odds: of added
    ones 1 less than the least of the row."""
    share = 1 / np.maximum(together.frequency[known.labels], 1.0)
    weights = sp.csr_matrix((share, known.labels, known.indptr), (known.n_rows, candidates.n_labels))
    expected = sp.csr_matrix(weights @ together.counts)
    best = Candidates.from_csr(sp.csr_matrix(expected, dtype=np.float32)).without(known).top(_ADDED)
    lists = candidates.without(known).union(best)
    least = extreme_of_rows(np.minimum, logits, candidates.indptr, np.float64(0.0)) - 1.0
    base = least[lists.row_of_pair]
    at, there = found_at(candidates.pair_keys, lists.pair_keys)
    base[there] = logits[at[there]]
    return lists, base


def described(together: Together, lists: Candidates, logits: np.ndarray, known: Candidates) -> np.ndarray:
    """float32 (m, 9): log-odds and place of each pair, the frequency of the label; the greatest and the mean
    share of the rows of a known label that have it, and of the log lift; with how many known labels it is
    together in any row; how many are known."""
    row, label = lists.row_of_pair, lists.labels
    counts = np.diff(known.indptr)[row]
    first, at = entries_of_rows(known.indptr, row)
    pair = np.repeat(np.arange(lists.n_pairs), counts)
    given = known.labels[at]
    both = together.of_pairs(given, label[pair])
    of_known, of_label = np.maximum(together.frequency[given], 1.0), together.frequency[label]
    by_chance = of_known * of_label[pair] / max(together.Y.shape[0], 1)
    share, lift = both / of_known, log((both + 1) / (by_chance + 1))
    many = np.maximum(counts, 1)
    order = np.lexsort((label, -logits, row))
    place = np.empty(lists.n_pairs)
    place[order] = np.arange(lists.n_pairs) - lists.indptr[:-1][row]
    columns = [logits, place, log(of_label + 1.0)]
    for values in (share, lift):
        columns.append(extreme_of_rows(np.maximum, values, first, np.float64(0.0)))
        columns.append(np.bincount(pair, values, lists.n_pairs) / many)
    columns += [np.bincount(pair, both > 0, lists.n_pairs), counts]
    return np.column_stack(columns).astype(np.float32)

"""`NameRecord`: how well a label's name predicts the label in training rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import log, log1p
from metarank.persist.fields import Array, Csr
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.names.grouped import GroupedNames
from metarank.scorers.names.words import indexed_names
from metarank.scorers.neighbors.training_rows import as_canonical, canonical_parts, check_lists, check_width
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates, canonical_csr
from metarank.types.view import Features, TrainingView

COLUMNS = tuple(
    f"label name in training: {what}"
    for what in ("log-odds of words", "log of rows found", "precision", "recall")
)
# Pairs of a label and one of its rows that a word is thought to have been in before any is seen, shared out
# as over all words.
_PRIOR_PAIRS = 4.0
_SOURCE = "label_text"


class NameRecord(LabelScorer):
    """How reliable the name of a label, `view.label_text`, is, by the training rows.

    A name that is in many rows without the label is weak evidence. A word such as "theory" is in the names of
    labels whose rows do not use it, a word such as "leukaemia" is not. The first is learned per label, the
    second per word, so it also describes labels without rows. Columns:

    * ``label name in training: log-odds of words``: the sum over the words w of the name of ``log(P(w | l) /
      P(w))`` where the row has w, of ``log((1 - P(w | l)) / (1 - P(w)))`` where it has not: the logarithm of
      the likelihood ratio of a naive Bayes classifier. P(w) is the share of rows that have w; P(w | l) is one
      number for all labels with w in their names: of the pairs of a row and such a label of it, the share in
      which the row has w.
    * ``label name in training: log of rows found``: log(1 + number of rows that have all known words of the
      name).
    * ``label name in training: precision``: the share of these rows that have the label.
    * ``label name in training: recall``: the share of the label's rows that are among them.

    Shares are smoothed: P(w | l) by four pairs and the precision by one row, with the share of all words and
    names; P(w) and the recall by half a row on either side. A label without a known word has the odds 0, and
    no rows. With alternative names, `view.other_names`, the last three columns count the rows that have all
    known words of any name.

    Notes
    -----
    The likelihood ratio of the words of names is that of the classifier of Robertson and Sparck Jones (1976)
    with one relevance weight per word, shared by all labels with the word in their names.

    Examples
    --------
    >>> from metarank.types.view import TrainingSet
    >>> X = sp.csr_matrix(np.float32([[1, 0], [1, 1], [1, 0], [0, 1]]))  # "theory", "tea"
    >>> Y = sp.csr_matrix(np.float32([[0, 0], [0, 1], [0, 0], [1, 1]]))
    >>> data = TrainingSet(X, Y, np.zeros(4, np.int32), label_text=sp.csr_matrix(np.eye(2, dtype=np.float32)))
    >>> record = NameRecord().fit(data.view())
    >>> found = record.score(X[:2], Candidates.all_labels(2, 2))
    >>> # three rows have "theory", none of them the label
    >>> found["label name in training: precision"][:2].round(2)
    array([0.1, 0.8], dtype=float32)
    >>> found["label name in training: log-odds of words"][2:].round(1)
    array([-0.3,  0.4], dtype=float32)
    """

    by_block = True
    needs_words = True
    is_quick = True
    reads_names = True
    reads_text: ClassVar[str] = _SOURCE

    saved: ClassVar[Spec] = Spec(
        Csr("label_text_", dims=("L", "d")),
        Array("present_", np.float32, ("d",)),
        Array("absent_", np.float32, ("d",)),
        Array("of_labels_", np.float32, (len(COLUMNS) - 1, "L")),
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> NameRecord:
        """Count the TrainingView's rows that have the words of names. Returns self.

        Raises
        ------
        ValueError
            If the TrainingView has no label text.
        """
        self.label_text_, self._index = indexed_names(view, _SOURCE, type(self).__name__)
        Y = sp.csr_matrix(view.Y > 0).astype(np.float64)
        self.present_: NDArray[np.float32]
        self.absent_: NDArray[np.float32]
        self.present_, self.absent_ = _weights_of_words(view, Y, self.label_text_)
        held = view.shared(f"{_SOURCE}-held", lambda X: self._held(X, view, n_jobs))
        self.of_labels_: NDArray[np.float32] = _record(held[view.rows], Y)
        return self

    def _held(self, X: Features, view: TrainingView, n_jobs: int) -> sp.csr_matrix:
        """CSR (n, L) of ones: the labels that have a name of which a row has all words."""
        rows, others = canonical_parts(X), view.other_names.get(_SOURCE)
        if others is None:
            indptr, labels = self._index.held(rows, n_jobs)
        else:
            indptr, labels = GroupedNames(self.label_text_, others).held(rows, n_jobs)
        return canonical_csr(np.ones(len(labels)), labels, indptr, (len(indptr) - 1, view.n_labels))

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The float32 columns (m,)."""
        check_width(X, self.label_text_.shape[1])
        check_lists(candidates, X.shape[0], self.label_text_.shape[0])
        pairs, weights = (candidates.indptr, candidates.labels), (self.present_, self.absent_)
        odds = self._index.weighed(canonical_parts(X), *pairs, *weights, n_jobs)
        return dict(zip(COLUMNS, [odds, *self.of_labels_[:, candidates.labels]]))

    def planned(self) -> Planned:
        core = _core.PlanNameRecord(self._index, self.present_, self.absent_, self.of_labels_)
        return Planned(core, list(COLUMNS))

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        return {_SOURCE: self.label_text_}

    @cached_property
    def _index(self) -> Any:
        return _core.LabelText((*csr_parts(self.label_text_), self.label_text_.shape[1]))


def _weights_of_words(
    view: TrainingView, Y: sp.csr_matrix, label_text: sp.csr_matrix
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What a word of a name adds to the log-odds, float32 (d,): where a row has it, and where it has not.

    All sums are of ones, and exact.
    """
    n, d = view.n_rows, view.n_features
    X = as_canonical(view.X)
    has = canonical_csr(np.ones(X.nnz), X.indices, X.indptr, X.shape)
    has.data[X.data == 0] = 0
    of_names = canonical_csr(np.ones(label_text.nnz), label_text.indices, label_text.indptr, label_text.shape)
    pairs = sp.csr_matrix(Y @ of_names)  # of each row, how many of its labels have a word in their names
    total = np.asarray(pairs.sum(axis=0)).reshape(d)
    both = np.asarray(pairs.multiply(has).sum(axis=0)).reshape(d)
    of_all = both.sum() / total.sum() if total.any() else 0.5
    given = (both + _PRIOR_PAIRS * of_all) / (total + _PRIOR_PAIRS)
    given = np.clip(given, 1e-3, 1 - 1e-3)
    rows = np.bincount(has.indices, has.data, minlength=d)
    anyway = (rows + 0.5) / (n + 1)
    return (
        log(given / anyway).astype(np.float32),
        log((1 - given) / (1 - anyway)).astype(np.float32),
    )


def _record(held: sp.csr_matrix, Y: sp.csr_matrix) -> NDArray[np.float32]:
    """Of each label, float32 (3, L): what the class says of the rows that hold its name."""
    n_labels = Y.shape[1]
    rows = np.bincount(held.indices, minlength=n_labels).astype(np.float64)
    hits = np.asarray(held.multiply(Y).sum(axis=0)).reshape(n_labels)
    of_all = hits.sum() / rows.sum() if rows.any() else 0.5
    counts = np.bincount(Y.indices, minlength=n_labels)
    columns = [log1p(rows), (hits + of_all) / (rows + 1), (hits + 0.5) / (counts + 1)]
    return np.stack(columns).astype(np.float32)

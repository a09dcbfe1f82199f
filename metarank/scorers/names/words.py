"""`NameScorer` and `SpellingScorer`: how well a document's words fit the label's name.

Label names need no training and describe labels without training rows.
On label sets with a long tail they are the strongest evidence.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank._util.parameters import check_integer
from metarank.persist.fields import Csr, Object
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.names.grouped import GroupedNames
from metarank.scorers.neighbors.training_rows import as_canonical, canonical_parts, check_lists, check_width
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates
from metarank.types.label_names import OtherNames
from metarank.types.view import Features, TrainingView

COLUMNS = tuple(
    f"label name: {what}"
    for what in ("cosine", "share of words", "weighted share of words", "number of words")
)
# How many of the names of a label occur whole, where it has several.
MATCHED = "label name: number of names found"
# What columns of the best of several names end with.
BEST = ", best name"


class NameScorer(LabelScorer):
    """Evidence from the labels' names, `TrainingView.label_text`; labels of rows are not used.

    Columns, for document x and the label's text t in one feature space:

    * ``label name: cosine``: x.t / (|x| |t|), 0 where either is empty;
    * ``label name: share of words``: share of the distinct words of t that occur in x;
    * ``label name: weighted share of words``: the same share by weight, sum of |t_j| over the words in x /
      sum of |t_j|;
    * ``label name: number of words``: number of distinct known words of t.

    All are 0 for a label without a known word. If labels have alternative names, `view.other_names`, five
    more columns: these four with ``, best name``, of the name, alternative or not, of the highest cosine, and
    ``label name: number of names found``, the number of names all of whose known words occur in x. Proposals
    then go by ``label name: cosine, best name``.

    Examples
    --------
    >>> from metarank.data.vectorizer import TextVectorizer
    >>> from metarank.types.view import TrainingSet
    >>> v = TextVectorizer().fit(["red wine glass", "green tea cup"])
    >>> text = v.transform(["wine", "green tea"])
    >>> X = v.transform(["a cup of tea"])
    >>> data = TrainingSet(X, sp.csr_matrix((1, 2), dtype=np.float32), np.zeros(1, np.int32), label_text=text)
    >>> scorer = NameScorer().fit(data.view())
    >>> scorer.score(X, Candidates.all_labels(1, 2))["label name: share of words"]
    array([0. , 0.5], dtype=float32)
    >>> scorer.shortlist(X, k=5).labels
    array([1], dtype=int32)
    """

    by_block = True
    needs_words = True
    is_quick = True
    is_label_free = True
    title = "label text alone"
    # What of a TrainingView is indexed, and the name of the proposals' score.
    reads_text: ClassVar[str] = "label_text"
    proposal: ClassVar[str] = "names"
    # Of the core's columns those that describe a pair, by their number.
    described: ClassVar[dict[int, str]] = dict(enumerate(COLUMNS))
    # The number of names that occur whole.
    matched: ClassVar[str] = MATCHED

    saved: ClassVar[Spec] = Spec(
        Csr("label_text_", dims=("L", "d")),
        Object("other_names_", OtherNames, ("L", "d"), optional=True),
    )
    other_names_: OtherNames | None = None

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Self:
        """Index the labels' texts, once for a fit. Returns self.

        Raises
        ------
        ValueError
            If the TrainingView has no label text.
        """
        self.label_text_, self._index = indexed_names(view, self.reads_text, type(self).__name__)
        self.other_names_ = others = view.other_names.get(self.reads_text)
        if others is not None:
            shared = f"{self.reads_text}-all"
            self._grouped = view.shared(shared, lambda X: GroupedNames(self.label_text_, others))
        return self

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """The float32 columns (m,)."""
        check_lists(candidates, X.shape[0], self.label_text_.shape[0])
        rows = self._rows(X)
        evidence = self._index.evidence(rows, candidates.indptr, candidates.labels, n_jobs)
        out = {name: evidence[number] for number, name in self.described.items()}
        if self.other_names_ is not None:
            best, matched = self._grouped.evidence(rows, candidates, n_jobs)
            out |= {name + BEST: best[number] for number, name in self.described.items()}
            out |= {self.matched: matched} if self.matched else {}
        return out

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1) -> Candidates:
        """The k labels of highest cosine for each row, exactly; the score is that cosine, of the best name.

        Ties go to the smaller label id; labels of cosine 0 or less are left out: a row may have
        fewer than k, or none.

        Raises
        ------
        ValueError, TypeError
            If k is not a positive integer, or X has another number of features.
        """
        check_integer("k", k, 1)
        k = min(int(k), max(1, self.label_text_.shape[0]))
        if self.other_names_ is None:
            indptr, labels, cosine = self._index.shortlist(self._rows(X), k, n_jobs)
        else:
            indptr, labels, cosine = self._grouped.shortlist(self._rows(X), k, n_jobs)
        return Candidates.of_core(indptr, labels, self.label_text_.shape[0], {self.proposal: cosine})

    def planned(self) -> Planned | None:
        if self.other_names_ is not None:
            return None
        return Planned(_core.PlanNames(self._index, list(self.described)), list(self.described.values()))

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        return {self.reads_text: self.label_text_}

    def other_names(self) -> dict[str, OtherNames]:
        return {} if self.other_names_ is None else {self.reads_text: self.other_names_}

    @cached_property
    def _index(self) -> _core.LabelText:
        return _indexed(self.label_text_)[1]

    @cached_property
    def _grouped(self) -> GroupedNames:
        assert self.other_names_ is not None
        return GroupedNames(self.label_text_, self.other_names_)

    def _rows(self, X: Features) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check_width(X, self.label_text_.shape[1])
        return canonical_parts(X)


class SpellingScorer(NameScorer):
    """Evidence from words that are spelled like those of the labels' names, `TrainingView.label_spelling`.

    It finds labels whose names are inflected or compounded differently in the document. Columns:
    ``label name: spelling cosine``, and ``label name: spelling share``, the share of the label's words that
    occur in the row, by weight; with alternative names also both with ``, best name``, those of
    the name of the highest cosine. See `metarank.data.spelling`.

    Examples
    --------
    >>> from metarank.data.spelling import SpellingIndex
    >>> from metarank.data.vectorizer import TextVectorizer
    >>> from metarank.types.view import TrainingSet
    >>> v = TextVectorizer().fit(["a red wine glass", "green tea cup"])
    >>> text = SpellingIndex(v.vocabulary_, v.idf_).transform(["Glasses", "Cups of tea"])
    >>> X = v.transform(["a glass of water"])
    >>> Y = sp.csr_matrix((1, 2), dtype=np.float32)
    >>> data = TrainingSet(X, Y, np.zeros(1, np.int32), label_spelling=text)
    >>> scorer = SpellingScorer().fit(data.view())
    >>> scorer.score(X, Candidates.all_labels(1, 2))["label name: spelling cosine"]
    array([1., 0.], dtype=float32)
    """

    reads_text = "label_spelling"
    proposal = "spelling"
    title = "spelling of label names alone"
    described: ClassVar[dict[int, str]] = {0: "label name: spelling cosine", 2: "label name: spelling share"}
    matched = ""


def indexed_names(view: TrainingView, source: str, title: str) -> tuple[sp.csr_matrix, Any]:
    """The texts of the labels by their name in the training data, and their index, once for a fit.

    Raises
    ------
    ValueError
        If the TrainingView has none; the message names the scorer by its `title`.
    """
    text = getattr(view, source)
    if text is None:
        raise ValueError(
            f"{title} needs names of the labels and of the features: pass texts with named labels, or a "
            "Dataset with both"
        )
    if text.shape != (view.n_labels, view.n_features):
        raise ValueError(f"{source} must have shape {(view.n_labels, view.n_features)}, got {text.shape}")
    return view.shared(source, lambda X: _indexed(text))


def _indexed(text: sp.csr_matrix) -> tuple[sp.csr_matrix, Any]:
    text = as_canonical(text)
    return text, _core.LabelText((*csr_parts(text), text.shape[1]))

"""`NameMentions`: where a text mentions the label's name, word by word."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank._util.elementary import log
from metarank._util.parameters import check_integer
from metarank.persist.fields import Array, Declared, Ids, Integer, Known
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.texts import NAME, NameForms
from metarank.types.view import TrainingView

COLUMNS = tuple(
    f"label mention: {what}"
    for what in (
        "count",
        "share alone",
        "nearness to the start",
        "earliness",
        "spread",
        "words of the name",
        "kind of name",
        "labels with this name",
        "rarity",
    )
)
SCORE = "mentions"


class NameMentions(LabelScorer):
    """Evidence from the words of a text in their order: where it mentions a label by one of its names.

    A label is mentioned where the words of its name, or of an alternative name, follow one another (stems, if
    the model has a language; without stop words). "Kant, Immanuel" is found as "Immanuel Kant" too, and
    "Mercury (planet)" as "Mercury". Columns, 0 for a label that is not mentioned:

    * ``label mention: count``: how often it is;
    * ``label mention: share alone``: the share of these places that are not within a longer name, as "salt"
      is within "potassium salt" if that is a name too;
    * ``label mention: nearness to the start``: 1 / (1 + number of words before the first place);
    * ``label mention: earliness``: 1 - number of words before the first place / number of words;
    * ``label mention: spread``: words from the first to the last place / number of words;
    * ``label mention: words of the name``: number of words of the name found; of several the label's own name
      comes before alternative ones and those before parts, then longer ones before shorter ones;
    * ``label mention: kind of name``: 2 for the label's name, 1 for an alternative one, 0 for a part;
    * ``label mention: labels with this name``: how many labels share the name;
    * ``label mention: rarity``: ln((1 + n) / (1 + texts that mention it)) over the n training texts.

    Labels without training rows are described like all others. The columns, and the score of proposals, are
    the lexical evidence of MLLM, the matcher of the indexing tool Annif, which learned it from Maui (Medelyan
    and Witten 2008).

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metarank.data.word_order import name_forms, word_rows
    >>> from metarank.types.view import TrainingSet
    >>> names = ["Salt", "Potassium salt", "Mercury (planet)"]
    >>> texts = ["Mining of potassium salt", "Salt on Mercury"]
    >>> Y = sp.csr_matrix((2, 3), dtype=np.float32)
    >>> given = Given(2, 3, words=word_rows(texts, None))
    >>> forms = name_forms(names, None, None)
    >>> data = TrainingSet(np.zeros((2, 1)), Y, np.zeros(2), given=given, name_forms=forms)
    >>> scorer = NameMentions().fit(data.view())
    >>> found = scorer.score(given, Candidates.all_labels(2, 3))
    >>> found["label mention: share alone"].reshape(2, 3)
    array([[0., 1., 0.],
           [1., 0., 1.]], dtype=float32)
    """

    reads_given = True
    reads_word_order = True
    is_label_free = True
    is_quick = True
    title = "mentions of label names"

    saved: ClassVar[Spec] = Spec(
        Declared("n_labels_", size="L"),
        Integer("n_texts_", 0),
        Array("indptr_", np.int64, (None,)),
        Array("words_", np.int64, (None,)),
        Ids("labels_", np.int32, ("M",), below="L"),
        Ids("kinds_", np.int32, ("M",), below=NAME + 1),
        Array("texts_with_", np.int64, ("M",)),
        check=lambda known: _check_forms(known),
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> NameMentions:
        """Learn the names, and how many training texts mention each. Returns self.

        Raises
        ------
        ValueError
            If the TrainingView has no names of labels, or no texts.
        """
        forms, words = view.name_forms, view.all_given.words
        if forms is None or words is None:
            missing = "the names of the labels" if forms is None else "the words of texts"
            raise ValueError(f"NameMentions needs {missing}: fit on texts, with label names")
        self._set(forms, view.n_labels)
        self._index = view.shared("index of mentions", lambda X: self._made_index())
        # Rows that are held out do no harm: no label of theirs is looked at.
        self.n_texts_: int = len(words)
        self.texts_with_: NDArray[np.int64] = view.shared(
            "texts with names", lambda X: self._index.texts_with(words.indptr, words.words, n_jobs)
        )
        return self

    def _set(self, forms: NameForms, n_labels: int) -> None:
        self.n_labels_: int = n_labels
        self.indptr_: NDArray[np.int64] = forms.words.indptr
        self.words_: NDArray[np.int64] = forms.words.words
        self.labels_: NDArray[np.int32] = forms.labels
        self.kinds_: NDArray[np.int32] = forms.kinds

    def search(self, X: Given, *, n_jobs: int = 1) -> dict[str, Any]:
        """The labels that each text mentions, and their columns."""
        return {"mentions": self._mentions(X, n_jobs)}

    def score(
        self, X: Given, candidates: Candidates, *, n_jobs: int = 1, mentions: _core.Mentions | None = None
    ) -> dict[str, np.ndarray]:
        """The columns, float32 (m,)."""
        if candidates.n_labels != self.n_labels_:
            raise ValueError(f"candidates must be of {self.n_labels_} labels, got {candidates.n_labels}")
        indptr, labels, columns = (mentions or self._mentions(X, n_jobs)).columns()
        mentioned = Candidates.of_core(indptr, labels, self.n_labels_, {})
        at, is_mentioned = candidates.found_in(mentioned)
        out = {}
        for name, values in zip(COLUMNS, columns):
            column = np.zeros(candidates.n_pairs, np.float32)
            column[is_mentioned] = values[at[is_mentioned]]
            out[name] = column
        return out

    def shortlist(
        self, X: Given, k: int, *, n_jobs: int = 1, mentions: _core.Mentions | None = None
    ) -> Candidates:
        """At most k labels that each text mentions; ties go to the smaller label id.

        The score is the rarity of the name times the root of the number of its words, divided by the number
        of labels that share it; reduced, down to three tenths, for places within longer names.
        """
        check_integer("k", k, 1)
        indptr, labels, scores = (mentions or self._mentions(X, n_jobs)).best(int(k))
        return Candidates.of_core(indptr, labels, self.n_labels_, {SCORE: scores})

    def planned(self) -> Planned:
        return Planned(_core.PlanMentions(self._index, self._rarity), list(COLUMNS))

    def _mentions(self, X: Given, n_jobs: int) -> _core.Mentions:
        if X.words is None:
            raise ValueError("the words of the rows' texts must be given, got none")
        mentions: _core.Mentions = self._index.find(X.words.indptr, X.words.words, self._rarity, n_jobs)
        return mentions

    @cached_property
    def _index(self) -> Any:
        return self._made_index()

    def _made_index(self) -> Any:
        return _core.NameMentions(self.n_labels_, self.indptr_, self.words_, self.labels_, self.kinds_)

    @cached_property
    def _rarity(self) -> NDArray[np.float32]:
        return log((1 + self.n_texts_) / (1 + self.texts_with_)).astype(np.float32)

    def updated(self, view: TrainingView, *, n_jobs: int = 1) -> NameMentions:
        """A scorer of the names of now. Of a name that is new no training text is known to mention it."""
        forms = view.name_forms
        if forms is None:
            return self
        out = NameMentions()
        out._set(forms, view.n_labels)
        known = {self._key(i): int(count) for i, count in enumerate(self.texts_with_)}
        out.n_texts_ = self.n_texts_
        out.texts_with_ = np.array([known.get(out._key(i), 0) for i in range(len(out.labels_))], np.int64)
        return out

    def _key(self, form: int) -> bytes:
        return self.words_[self.indptr_[form] : self.indptr_[form + 1]].tobytes()

    def labels_named(self) -> np.ndarray:
        return self.labels_


def _check_forms(known: Known) -> None:
    indptr, m = known.indptr_, known["M"]
    if (
        len(indptr) != m + 1
        or indptr[0] != 0
        or indptr[-1] != len(known.words_)
        or (np.diff(indptr) < 1).any()
    ):
        raise ValueError("indptr must divide the words into forms, none of them empty")
    if (known.texts_with_ < 0).any() or (known.texts_with_ > known.n_texts_).any():
        raise ValueError("texts_with must lie in [0, n_texts]")
